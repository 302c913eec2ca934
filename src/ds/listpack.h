/* A listpack: small elements, strings and integers, packed into one block that can be walked both
 * ways. The encoding of small lists, hashes, sets and sorted sets, and of the nodes of large lists
 * and streams. The bytes are those of Redis's listpack, so that RDB files and DUMP payloads hold
 * them as they are:
 *
 *   u32 total bytes | u16 element count (65535: unknown, count by walking) | elements | 0xff
 *
 *   element: encoding and data | its own length backwards, 1 to 5 bytes of 7 bits each, the
 *            continuation bit on all but the first one that is read
 *
 *   0xxxxxxx                    7-bit unsigned integer
 *   10llllll bytes              string up to 63 bytes
 *   110xxxxx xxxxxxxx           13-bit signed integer
 *   1110llll llllllll bytes     string up to 4,095 bytes
 *   11110000 u32 bytes          longer string
 *   11110001 i16, 11110010 i24, 11110011 i32, 11110100 i64
 *
 * (Format: Redis's listpack specification, https://github.com/antirez/listpack.) Numbers are
 * little-endian. A listpack is at most 1 GiB. State: that of its owner. A listpack is one
 * allocation of mem.h; verbs that change it may move it and return the new address. */
#ifndef DS_LISTPACK_H
#define DS_LISTPACK_H

#include "base/buf.h"
#include "base/compiler.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

#define LISTPACK_HEADER_BYTES 6
#define LISTPACK_MAX_BYTES ((size_t)1 << 30)
/* Room that an integer's text needs in listpack_get. */
#define LISTPACK_TEXT_BYTES 24

/* A new empty listpack with room for `capacity` bytes (0: as small as it gets). */
unsigned char *listpack_create(size_t capacity);
void listpack_destroy(unsigned char *lp);
/* A copy in a block of its own. */
unsigned char *listpack_copy(const unsigned char *lp);
/* Gives back what the block has beyond its bytes. */
unsigned char *listpack_shrink(unsigned char *lp);

/* Bytes in use, and number of elements (walks when there are 65535 or more). */
size_t listpack_bytes(const unsigned char *lp);
uint32_t listpack_count(const unsigned char *lp);
/* True when an element of `len` bytes can be added without passing LISTPACK_MAX_BYTES. */
bool listpack_fits(const unsigned char *lp, size_t len);

/* Positions: pointers to elements, NULL at the ends. Void after any change. Negative indexes count
 * from the end. */
unsigned char *listpack_first(const unsigned char *lp);
unsigned char *listpack_last(const unsigned char *lp);
unsigned char *listpack_next(const unsigned char *lp, const unsigned char *at);
/* `count` elements further, all of them there; NULL when that is the end. */
unsigned char *listpack_skip(const unsigned char *at, uint64_t count);
unsigned char *listpack_prev(const unsigned char *lp, const unsigned char *at);
unsigned char *listpack_seek(const unsigned char *lp, int64_t index);

/* The element at `at`: a view into the listpack, or of an integer's text in `text`
 * (LISTPACK_TEXT_BYTES). */
struct slice listpack_get(const unsigned char *at, char *text);
/* True and the value when the element is kept as an integer. */
bool listpack_get_integer(const unsigned char *at, int64_t *value);
/* The integer at `*at`, where nothing else can be; *at is behind it then (maybe at the end). */
int64_t listpack_take_wide_integer(const unsigned char **at);
static inline int64_t listpack_take_integer(const unsigned char **at)
{
    unsigned char first = **at;
    if (unlikely(first > 127)) {
        return listpack_take_wide_integer(at);
    }
    *at += 2;
    return first;
}
/* Where the element is a string shorter than 64 bytes, as most are: gives it, and goes on to the
 * next element (NULL at the end). */
static inline bool listpack_take_short(const unsigned char **at, struct slice *text)
{
    unsigned char first = **at;
    if (unlikely((first & 0xc0) != 0x80)) {
        return false;
    }
    *text = slice_of((const char *)*at + 1, first & 63);
    *at += 2 + text->len; /* the length behind it is one byte, too */
    if (**at == 0xff) {
        *at = NULL;
    }
    return true;
}
/* True when the element equals `bytes` (an integer equals its canonical text). */
bool listpack_equals(const unsigned char *at, struct slice bytes);
/* The first element equal to `bytes` from `at` on, looking at one and skipping `skip` each time
 * (skip 1: keys of key-value pairs); NULL when there is none. */
unsigned char *listpack_find(const unsigned char *lp, unsigned char *at, struct slice bytes,
                             uint32_t skip);

/* Changes. Elements whose bytes are a canonical int64 are kept as integers. `bytes` must not lie in
 * the listpack. */
unsigned char *listpack_append(unsigned char *lp, struct slice bytes);
unsigned char *listpack_prepend(unsigned char *lp, struct slice bytes);
unsigned char *listpack_append_integer(unsigned char *lp, int64_t value);
/* Inserts before or after `*at`; *at is the new element afterwards. */
unsigned char *listpack_insert(unsigned char *lp, unsigned char **at, struct slice bytes,
                               bool after);
/* Replaces the element at `*at`; *at is the new one afterwards. */
unsigned char *listpack_replace(unsigned char *lp, unsigned char **at, struct slice bytes);
/* Removes the element at `*at`; *at is the one behind it afterwards (NULL at the end). */
unsigned char *listpack_remove(unsigned char *lp, unsigned char **at);
/* Removes `count` elements from index `start` (negative from the end). */
unsigned char *listpack_remove_range(unsigned char *lp, int64_t start, uint32_t count);
/* Replaces the element at `*at` by an integer; *at is the new one afterwards. */
unsigned char *listpack_replace_integer(unsigned char *lp, unsigned char **at, int64_t value);
/* Joins: the elements of `b` behind those of `a`; `b` is destroyed. */
unsigned char *listpack_join(unsigned char *a, unsigned char *b_take);

/* Appending many elements at once: room for all of them first, then each is written at the place
 * that the one before returned (the first one at listpack_end), then the header is made right. */
#define LISTPACK_SLACK_BYTES 10   /* more than an element's bytes that it takes at most */
#define LISTPACK_INTEGER_BYTES 10 /* that an integer takes at most */
/* A block with room for `more` bytes behind the end; grows by a half at least. */
unsigned char *listpack_reserve(unsigned char *lp, size_t more);
static inline unsigned char *listpack_end(unsigned char *lp)
{
    uint32_t bytes;
    memcpy(&bytes, lp, sizeof(bytes));
    return lp + bytes - 1;
}
unsigned char *listpack_write(unsigned char *at, struct slice bytes);
unsigned char *listpack_write_integer(unsigned char *at, int64_t value);
/* `count` elements were written, `end` is behind the last. */
void listpack_extend(unsigned char *lp, unsigned char *end, uint32_t count);
/* Appends lines that tell where each element stands, and in which form (DEBUG). */
void listpack_describe(const unsigned char *lp, struct buf *out);

/* Checks foreign bytes before anything else touches them: every length, both directions, the count,
 * the end. With `visit` (may be NULL) each element is shown; false from it refuses. O(bytes). */
bool listpack_validate(const unsigned char *bytes, size_t size,
                       bool (*visit)(const unsigned char *at, uint32_t index, void *context),
                       void *context) MUST_CHECK;

#endif
