/* A borrowed run of bytes: pointer and length, no ownership, not NUL-terminated. A slice does not
 * outlive the call it is passed to unless a contract says so. State: a plain value. */
#ifndef BASE_SLICE_H
#define BASE_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

struct slice {
    const char *ptr;
    size_t len;
};

/* A slice of a string literal or array known at compile time (without its final NUL). */
#define SLICE(literal) ((struct slice){(literal), sizeof(literal) - 1})

/* A slice of `len` bytes at `ptr`. */
static inline struct slice slice_of(const char *ptr, size_t len)
{
    return (struct slice){ptr, len};
}

/* A slice of a NUL-terminated string. */
static inline struct slice slice_cstr(const char *text)
{
    return (struct slice){text, strlen(text)};
}

/* True when both hold the same bytes. */
static inline bool slice_equal(struct slice a, struct slice b)
{
    return a.len == b.len && memcmp(a.ptr, b.ptr, a.len) == 0;
}

/* The same for what is mostly 8 to 16 bytes long, as keys are: two loads of each instead of a call.
 */
static inline bool slice_equal_short(struct slice a, struct slice b)
{
    uint64_t head[2], tail[2];
    if (a.len != b.len) {
        return false;
    }
    if (a.len - 8 > 8) {
        return memcmp(a.ptr, b.ptr, a.len) == 0;
    }
    memcpy(&head[0], a.ptr, 8);
    memcpy(&head[1], b.ptr, 8);
    memcpy(&tail[0], a.ptr + a.len - 8, 8);
    memcpy(&tail[1], b.ptr + a.len - 8, 8);
    return ((head[0] ^ head[1]) | (tail[0] ^ tail[1])) == 0;
}

/* True when `a` equals the NUL-terminated `text`, ASCII letters compared without case. */
static inline bool slice_equal_nocase(struct slice a, const char *text)
{
    return a.len == strlen(text) && strncasecmp(a.ptr, text, a.len) == 0;
}

/* memcmp order; a proper prefix comes first. Returns <0, 0, >0. */
static inline int slice_compare(struct slice a, struct slice b)
{
    size_t shorter = a.len < b.len ? a.len : b.len;
    int order = shorter ? memcmp(a.ptr, b.ptr, shorter) : 0;
    return order ? order : (a.len > b.len) - (a.len < b.len);
}

#endif
