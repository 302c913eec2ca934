/* The request parser: inline and multibulk requests out of a byte stream that may be cut anywhere.
 * Knows no socket. Arguments are slices into the stream's bytes (no copy); a bulk of more than
 * PARSER_BIG_BYTES that has not come whole is asked for with its own blob, into which the caller
 * reads the rest straight from the socket. Nothing is allocated on the word of a length that has
 * not been checked; the argument vector grows as arguments come. State: thread-owned (one parser a
 * client).
 *
 *   IDLE --'*n'--> HEADERS --'$len'--> BODY --bytes--> HEADERS ... --n-th--> DONE (IDLE)
 *   IDLE --line--> DONE          BODY --long and incomplete--> BIG --whole--> HEADERS */
#ifndef RESP_PARSER_H
#define RESP_PARSER_H

#include "base/arena.h"
#include "base/slice.h"
#include "value/blob.h"

#include <stdbool.h>
#include <stdint.h>

/* A bulk longer than this is read into its final buffer. */
#define PARSER_BIG_BYTES (32 * 1024)
/* Longest inline request and longest '*' or '$' line (Redis's PROTO_INLINE_MAX_SIZE). */
#define PARSER_INLINE_MAX_BYTES (64 * 1024)

/* What a stranger or a client may send; the caller chooses. */
struct parser_limits {
    int64_t max_args;
    int64_t max_bulk_bytes;
    bool authenticated; /* chooses between the two error texts */
};

struct request {
    int argc;
    struct slice *argv;  /* in the arena; bytes in the stream, in scratch or in blobs */
    struct blob **blobs; /* NULL, or argc blobs (NULL where the argument has none); borrowed until
                            parser_release */
};

struct parser_arg {
    size_t offset; /* from the request's first byte; unused with a blob */
    size_t len;
    struct blob *blob;
};

struct parser {
    int64_t args_expected; /* -1: at the start of a request */
    int64_t bulk_len;      /* -1: at a '$' line */
    size_t position;       /* bytes of the request that are parsed */
    struct parser_arg *args;
    uint32_t arg_count, arg_capacity;
    /* The bulk being read by the caller; big->len of bulk_len + 2 bytes are there. */
    struct blob *big;
    bool has_blobs;
    size_t blob_bytes; /* memory of the arguments' blobs */
};

enum parser_result {
    PARSER_DONE,  /* *request is whole; *consumed bytes belong to it */
    PARSER_EMPTY, /* an empty request (blank line, "*0"): *consumed bytes to skip, nothing to do */
    PARSER_MORE,  /* incomplete: call again with the same first byte and more bytes */
    PARSER_BIG,   /* parser->big wants bytes: the caller keeps the first parser->position bytes of
                     `data` (what is behind them was copied into big), fills big
                     (parser_big_reserve) until nothing is missing, then calls again with the kept
                     bytes and whatever came after the bulk (called sooner: PARSER_MORE) */
    PARSER_ERROR, /* protocol error: *error is the text after "-ERR "; the connection is to be
                     closed */
};

/* A parser at the start of a request; frees all that one holds in the middle of a request. */
void parser_init(struct parser *p);
void parser_deinit(struct parser *p);
/* Parses one request from `data`. `request` arguments live in `arena`. */
enum parser_result parser_next(struct parser *p, const struct parser_limits *limits,
                               struct slice data, struct arena *arena, struct request *request,
                               size_t *consumed, const char **error);
/* Bytes still missing of the big bulk (its CR LF included), 0 when there is none. */
size_t parser_big_missing(const struct parser *p);
/* Where the next bytes of the big bulk go (the caller then raises big->len), and how many fit there
 * for now; its room grows as bytes come. Something is missing. NULL when memory is not to be had:
 * the connection is to be closed. */
char *parser_big_reserve(struct parser *p, size_t *room) MUST_CHECK;
/* Bytes that the parser itself holds (client memory accounting). */
size_t parser_memory_bytes(const struct parser *p);
/* A request that is to outlive its bytes: how much memory a deep copy takes, and the copy, put into
 * such a block (aligned as mem_alloc's are). Blobs are shared, with references of the copy's own:
 * parser_release it before the block is freed. */
size_t request_copy_bytes(const struct request *request);
struct request request_copy(const struct request *request, void *block);
/* Releases the blobs of an executed request. */
void parser_release(struct request *request);

#endif
