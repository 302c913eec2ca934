/* Reads replies (RESP2 and RESP3) out of a stream of bytes that arrives in any pieces.
 *
 * Owns: the bytes not yet used and the reply under construction. State: one thread's.
 * Bounds, because the server is not trusted:
 *  - nesting is at most READER_DEPTH_MAX;
 *  - a line (type byte to CR LF) is at most READER_LINE_MAX bytes;
 *  - a bulk may be at most READER_BULK_MAX bytes, an aggregate may promise READER_ITEMS_MAX items;
 *  - memory follows the bytes that have arrived, never the length that was promised.
 * Failure: the first malformed byte puts the reader into an error it stays in; the stream cannot
 * be trusted any more and the connection is to be closed.
 *
 * Format: redis.io/docs/reference/protocol-spec. Streamed strings and aggregates ($?, *?) are not
 * sent by any server and are refused. Attributes are read and dropped. */
#ifndef TOOLS_COMMON_READER_H
#define TOOLS_COMMON_READER_H

#include <stddef.h>

#include "tools/common/reply.h"

#define READER_DEPTH_MAX 64
#define READER_LINE_MAX (1024 * 1024) /* an error text may quote arguments */
#define READER_BULK_MAX (64LL * 1024 * 1024 * 1024)
#define READER_ITEMS_MAX ((long long)1 << 32)

struct reader;

enum reader_result {
    READER_REPLY, /* a whole reply was returned */
    READER_MORE,  /* the bytes so far are used up: feed more */
    READER_ERROR, /* malformed: reader_error() says why */
};

/* A reader that has seen nothing; reader_destroy() ends it. */
struct reader *reader_create(void);

/* Frees it with all it holds, and nulls the pointer. */
void reader_destroy(struct reader **r);

/* Adds bytes that were received. */
void reader_feed(struct reader *r, const void *data, size_t len);

/* Room for `size_bytes` to receive into, without a copy; reader_received() then says how many
 * arrived. */
char *reader_room(struct reader *r, size_t size_bytes);
void reader_received(struct reader *r, size_t len);

/* Takes the next whole reply out of the bytes. On READER_REPLY the caller owns *out and ends it
 * with reply_destroy(); otherwise *out is NULL. */
enum reader_result reader_next(struct reader *r, struct reply **out);

/* What is wrong, as text for the user; valid after READER_ERROR until the reader is destroyed. */
const char *reader_error(const struct reader *r);

/* Bytes that have been fed and belong to no returned reply yet. */
size_t reader_pending(const struct reader *r);

/* Between two replies: the bytes that have been fed and not used, *len of them, valid until the
 * next call; and using some of them up, so that the next reply begins behind them. For what is no
 * reply. */
const char *reader_peek(const struct reader *r, size_t *len);
void reader_skip(struct reader *r, size_t count);

#endif
