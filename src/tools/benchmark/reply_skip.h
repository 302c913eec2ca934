/*
 * Counts whole replies in a stream of RESP2 or RESP3 bytes without keeping them.
 *
 * A benchmark needs to know when a reply has ended and whether it was an error, nothing else. The
 * skipper is a state machine that can stop at any byte, so all connections of a thread share one
 * receive buffer. Nothing is allocated, whatever lengths the server announces.
 *
 * State: thread-owned; one `struct bench_reply_skip` a connection.
 *
 * Format: a reply opens with a type byte and a line that ends in CRLF.
 *   + - : , # _ (      the line is all
 *   $ ! =              the line is a length; that many bytes and CRLF follow (-1: nothing follows)
 *   * ~ >              the line is a count of replies that follow inside (-1: none)
 *   % |                the line is a count of pairs that follow inside
 * A push (>) is not an answer to a request and an attribute (|) only announces one: neither counts.
 * Lengths of unknown size (`$?`) are refused: no Redis server sends them.
 */
#ifndef TOOLS_BENCHMARK_REPLY_SKIP_H
#define TOOLS_BENCHMARK_REPLY_SKIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How much of an error's text is kept for the user. */
#define BENCH_ERROR_TEXT_MAX 160

enum bench_skip_state {
    BENCH_SKIP_TYPE,
    BENCH_SKIP_LINE,
    BENCH_SKIP_LENGTH,
    BENCH_SKIP_LENGTH_LF,
    BENCH_SKIP_BODY,
    BENCH_SKIP_BODY_CR,
    BENCH_SKIP_BODY_LF,
    BENCH_SKIP_BROKEN,
};

/* Plain value; start it with bench_reply_skip_init. */
struct bench_reply_skip {
    enum bench_skip_state state;
    char type;                             /* type byte of the element being read */
    bool negative;                         /* the length being read began with '-' */
    bool in_push;                          /* the outermost reply is a push */
    bool outer_error;                      /* the outermost reply is an error */
    bool keep_text;                        /* the bytes being read belong in error_text */
    uint8_t digits;                        /* digits of the length read so far */
    uint64_t length;                       /* length being read; bytes left of a body */
    uint64_t open;                         /* elements still to come of the outermost reply */
    uint64_t error_count;                  /* outermost error replies so far */
    uint32_t error_len;                    /* bytes in error_text */
    char error_text[BENCH_ERROR_TEXT_MAX]; /* of the first error; no terminator */
};

/* Makes `skip` ready for the first byte of a connection. */
void bench_reply_skip_init(struct bench_reply_skip *skip);

/*
 * Takes in `len` bytes and returns how many replies ended in them, or -1 when the bytes are not
 * RESP; after that every call returns -1. Errors are counted in skip->error_count, the text of the
 * first one (without its type byte) is in skip->error_text once it was counted.
 */
int64_t bench_reply_skip_feed(struct bench_reply_skip *skip, const char *bytes, size_t len);

#endif
