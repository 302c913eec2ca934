/* Reading a reply that a command has made for a script. A plain value over borrowed pieces; the
 * reply has ended and does not change meanwhile. */
#ifndef SCRIPT_REPLY_CURSOR_H
#define SCRIPT_REPLY_CURSOR_H

#include "base/num.h"
#include "resp/reply.h"

#include <assert.h>
#include <string.h>

/* A place in a reply of ours, which is well formed: header lines and bodies of strings lie whole in
 * one piece each. */
struct reply_cursor {
    const struct reply_piece *piece;
    size_t offset;
};

static inline struct slice reply_take(struct reply_cursor *at, size_t len)
{
    while (at->offset == at->piece->len && len > 0) {
        at->piece++;
        at->offset = 0;
    }
    assert(at->piece->len - at->offset >= len);
    struct slice taken = slice_of(at->piece->ptr + at->offset, len);
    at->offset += len;
    return taken;
}

/* The rest of a line, without its CR LF. */
static inline struct slice reply_take_line(struct reply_cursor *at)
{
    const char *begin = at->piece->ptr + at->offset;
    const char *end = memchr(begin, '\r', at->piece->len - at->offset);
    assert(end);
    at->offset += (size_t)(end - begin) + 2;
    return slice_of(begin, (size_t)(end - begin));
}

static inline int64_t reply_take_number(struct reply_cursor *at)
{
    int64_t number = 0;
    bool valid = num_parse_i64(reply_take_line(at), &number);
    assert(valid);
    (void)valid;
    return number;
}

static inline struct slice reply_take_body(struct reply_cursor *at, int64_t len)
{
    struct slice body = reply_take(at, (size_t)len);
    reply_take(at, 2);
    return body;
}

#endif
