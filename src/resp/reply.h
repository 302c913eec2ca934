/* The reply builder: writes RESP2 or RESP3 into chunks of an arena. Knows no socket and no client.
 * A reply is a list of pieces: runs of bytes in the arena, and references to blobs (large values
 * are not copied). It cannot emit CR or LF inside a simple string or error. State: thread-owned. */
#ifndef RESP_REPLY_H
#define RESP_REPLY_H

#include "base/buf.h"
#include "base/compiler.h"
#include "base/slice.h"
#include "value/blob.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

/* Values of at least this many bytes are replied by reference: below, copying is cheaper than
 * another iovec and an atomic count. */
#define REPLY_REFERENCE_BYTES (16 * 1024)

struct reply_piece {
    const char *ptr;
    size_t len;
    struct blob *blob; /* holds a reference when not NULL; then ptr..len lie in it */
};

/* Pieces [begin, end) of a reply. */
struct reply_range {
    uint32_t begin, end;
};

struct reply_chunk;

struct reply {
    char *pos, *end;         /* free room of the current chunk */
    char *piece_start;       /* start of the run being written */
    int proto;               /* 2 or 3 */
    uint32_t errors;         /* error replies so far since reply_begin */
    struct slice last_error; /* text of the last one, without '-' and CR LF; until the next reset */
    struct reply_piece *pieces;
    uint32_t piece_count, piece_capacity;
    bool has_blobs;             /* some piece holds a reference */
    bool may_lose, lost;        /* see reply_allow_loss */
    size_t bytes;               /* bytes in closed pieces */
    struct reply_chunk *chunks; /* current first */
    struct reply_chunk *spare;
};

/* A reply builder without memory yet; frees all, references included. */
void reply_init(struct reply *r);
void reply_deinit(struct reply *r);
/* Forgets everything (references are released) and keeps some chunks. */
void reply_reset(struct reply *r);
/* Starts a reply to a client that speaks `proto`; pieces that follow are [mark, piece_count) after
 * reply_end. */
uint32_t reply_begin(struct reply *r, int proto);
/* Ends it: closes the open run. Returns the number of pieces, all in all. */
uint32_t reply_end(struct reply *r);
/* Allows (or no longer) that a bulk string whose memory is not to be had is left out: the reply is
 * lost then, and whoever allowed it takes note, goes back to a mark and replies an error. Without
 * that the process ends, as with every failed allocation. */
static inline void reply_allow_loss(struct reply *r, bool allowed)
{
    r->may_lose = allowed;
}
/* True, once, when something was left out. */
static inline bool reply_take_lost(struct reply *r)
{
    if (likely(!r->lost)) {
        return false;
    }
    r->lost = false;
    return true;
}
/* Drops everything since `mark` (of reply_begin, or reply_end's result). CLIENT REPLY OFF. */
void reply_drop(struct reply *r, uint32_t mark);
/* A point in a reply to go back to. A plain value; valid until reply_end or reply_reset. */
struct reply_mark {
    uint32_t piece_count, errors;
    size_t run_bytes;
};
static inline struct reply_mark reply_mark(const struct reply *r)
{
    return (struct reply_mark){r->piece_count, r->errors, (size_t)(r->pos - r->piece_start)};
}
/* Drops everything that was written after the mark was taken. */
void reply_rewind(struct reply *r, struct reply_mark mark);
/* Makes `to`, a builder without memory yet, a copy of all pieces of `from` (ended), in just the
 * memory that they need; blobs are referenced. To be sent or freed, not to be written on. */
void reply_copy(struct reply *to, const struct reply *from);
/* Bytes written since the last reset. */
size_t reply_bytes(const struct reply *r);
/* Changes the protocol for what follows (HELLO). */
void reply_set_proto(struct reply *r, int proto);

void reply_ok(struct reply *r);                       /* +OK */
void reply_status(struct reply *r, const char *text); /* +text; CR and LF become blanks */
void reply_status_slice(struct reply *r, struct slice text);
/* -text. `text` begins with its code ("ERR ...", "WRONGTYPE ..."). CR and LF become blanks. */
void reply_error(struct reply *r, const char *text);
void reply_error_slice(struct reply *r, struct slice text);
void reply_errorf(struct reply *r, const char *format, ...) PRINTF_LIKE(2, 3);
void reply_i64(struct reply *r, int64_t value);       /* :1 */
void reply_bulk(struct reply *r, struct slice bytes); /* $3 foo */
void reply_bulk_cstr(struct reply *r, const char *text);
void reply_bulkf(struct reply *r, const char *format, ...) PRINTF_LIKE(2, 3);
void reply_bulk_i64(struct reply *r, int64_t value); /* a number as a bulk string */
void reply_blob(struct reply *r,
                struct blob *blob); /* bulk by reference when large (takes its own reference) */
/* The same of `len` bytes from `offset` on. */
void reply_blob_part(struct reply *r, struct blob *blob, size_t offset, size_t len);
void reply_null(struct reply *r);                            /* $-1 or _ */
void reply_null_array(struct reply *r);                      /* *-1 or _ */
void reply_array(struct reply *r, uint64_t count);           /* *n */
void reply_map(struct reply *r, uint64_t pairs);             /* *2n or %n */
void reply_set(struct reply *r, uint64_t count);             /* *n or ~n */
void reply_push(struct reply *r, uint64_t count);            /* *n or >n */
void reply_attribute(struct reply *r, uint64_t pairs);       /* |n, RESP3 only (asserted) */
void reply_double(struct reply *r, double value);            /* bulk or , */
void reply_bool(struct reply *r, bool value);                /* :1 :0 or #t #f */
void reply_big_number(struct reply *r, struct slice digits); /* bulk or ( */
void reply_verbatim(struct reply *r, const char *format3, struct slice text); /* bulk or = */
/* Bytes that are already RESP. */
void reply_raw(struct reply *r, struct slice bytes);
/* The same of a whole blob; by reference when large (takes its own reference). */
void reply_raw_blob(struct reply *r, struct blob *blob);

/* An aggregate whose length is not known yet: opens it, and sets it later (nested ones inside out).
 */
uint32_t reply_deferred(struct reply *r);
void reply_set_deferred_array(struct reply *r, uint32_t handle, uint64_t count);
void reply_set_deferred_map(struct reply *r, uint32_t handle, uint64_t pairs);
void reply_set_deferred_set(struct reply *r, uint32_t handle, uint64_t count);
void reply_set_deferred_push(struct reply *r, uint32_t handle, uint64_t count);
void reply_set_deferred_attribute(struct reply *r, uint32_t handle, uint64_t pairs); /* RESP3 */

/* The usual errors, word for word as Redis 7.2 has them. */
void reply_wrong_type(struct reply *r);
void reply_syntax_error(struct reply *r);
void reply_not_integer(struct reply *r);
void reply_out_of_range(struct reply *r);
void reply_no_such_key(struct reply *r);

#endif
