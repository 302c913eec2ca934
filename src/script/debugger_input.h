/* Requests of a debugger's client: "*2\r\n$5\r\nbreak\r\n$1\r\n3\r\n", out of bytes that come in
 * any portions. A parser of its own: what it takes is far less than a request to the server may be.
 *
 *   words     1 to DEBUGGER_WORDS_MAX
 *   a word    1 to DEBUGGER_WORD_BYTES
 *   bytes     up to DEBUGGER_INPUT_BYTES that are not taken yet
 *
 * State: owned by whoever holds it. */
#ifndef SCRIPT_DEBUGGER_INPUT_H
#define SCRIPT_DEBUGGER_INPUT_H

#include "base/buf.h"

#include <stdbool.h>

/* Redis's numbers. */
#define DEBUGGER_WORDS_MAX 1024
#define DEBUGGER_WORD_BYTES 1024
#define DEBUGGER_INPUT_BYTES ((size_t)1024 * 1024)

/* All zero: empty. */
struct debugger_input {
    struct buf bytes;
    size_t taken; /* of them, by the request that was given last */
    struct slice words[DEBUGGER_WORDS_MAX];
    int count;
};

enum debugger_input_result {
    DEBUGGER_INPUT_MORE, /* a request has begun, or nothing has */
    DEBUGGER_INPUT_DONE,
    DEBUGGER_INPUT_BROKEN, /* no request, and nothing behind it is one */
    DEBUGGER_INPUT_FULL,   /* more bytes than may wait */
};

/* Adds bytes that have come. */
void debugger_input_add(struct debugger_input *in, struct slice bytes);
/* Takes the next request: its words are in `words` until the next call. */
enum debugger_input_result debugger_input_next(struct debugger_input *in) MUST_CHECK;
void debugger_input_deinit(struct debugger_input *in);

#endif
