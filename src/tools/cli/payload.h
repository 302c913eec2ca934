/* The data set behind SYNC, as bytes on the connection:
 *
 *   LF*                       empty lines: the primary is not ready yet
 *   "$" digits CR LF          so many bytes follow, or
 *   "$EOF:" mark CR LF        bytes follow, up to the mark of 40 bytes, which is no part of them
 *   bytes
 *
 * State: plain value of one thread. No input and output here. Bounds: what is kept between two
 * calls is less than a mark. */
#ifndef TOOLS_CLI_PAYLOAD_H
#define TOOLS_CLI_PAYLOAD_H

#include <stdbool.h>
#include <stddef.h>

#include "tools/common/text.h"

#define PAYLOAD_MARK_BYTES 40

struct payload {
    bool marked;                  /* ends with the mark; else after `announced` bytes */
    unsigned long long announced; /* at least 1 */
    char mark[PAYLOAD_MARK_BYTES];
    struct text window;             /* marked: may be the beginning of the mark, and new bytes */
    unsigned long long taken_bytes; /* of the data set, so far */
    bool done;
};

/* Takes the line (without CR LF) that stands before the data set. False when it is none; nothing to
 * deinit then. */
bool payload_init(struct payload *p, const char *line, size_t len);
void payload_deinit(struct payload *p);

/* Takes `len` received bytes (not done yet), and hands those of the data set to `sink`, which may
 * be called not at all. Returns how many bytes belonged to the payload: fewer than `len` when it
 * is done. False of `sink` ends the payload with *failed. */
typedef bool payload_sink(void *context, const char *data, size_t len);
size_t payload_take(struct payload *p, const char *data, size_t len, payload_sink *sink,
                    void *context, bool *failed);

#endif
