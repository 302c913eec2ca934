/* See packed.h. */
#include "persist/packed.h"

#include "base/mem.h"
#include "base/num.h"
#include "base/stats.h"
#include "ds/intset.h"
#include "ds/listpack.h"

#include <stdint.h>

#define ZIPLIST_HEADER_BYTES 10
#define ZIPLIST_UNKNOWN_COUNT 65535
#define PACKED_END 255
#define PACKED_LONG 254
#define ZIPMAP_UNKNOWN_COUNT 254

static uint64_t load_little(const unsigned char *at, unsigned bytes)
{
    uint64_t value = 0;
    for (unsigned i = bytes; i-- > 0;) {
        value = value << 8 | at[i];
    }
    return value;
}

/* ---- ziplists ---- */

/* An element's data, taken apart. */
struct ziplist_data {
    size_t head;  /* bytes of the encoding */
    size_t len;   /* bytes behind it */
    bool integer; /* `value` is meant */
    int64_t value;
};

static int64_t sign_extend(uint64_t bits, unsigned bytes)
{
    unsigned shift = 64 - 8 * bytes;
    return (int64_t)(bits << shift) >> shift;
}

static bool read_ziplist_integer(const unsigned char *at, size_t left, struct ziplist_data *d)
{
    unsigned bytes = 0;
    d->integer = true;
    d->head = 1;
    switch (*at) {
    case 0xc0:
        bytes = 2;
        break;
    case 0xd0:
        bytes = 4;
        break;
    case 0xe0:
        bytes = 8;
        break;
    case 0xf0:
        bytes = 3;
        break;
    case 0xfe:
        bytes = 1;
        break;
    default:
        d->len = 0;
        d->value = (*at & 15) - 1;
        return *at >= 0xf1 && *at <= 0xfd;
    }
    if (left < 1 + bytes) {
        return false;
    }
    d->len = bytes;
    d->value = sign_extend(load_little(at + 1, bytes), bytes);
    return true;
}

static bool read_ziplist_data(const unsigned char *at, size_t left, struct ziplist_data *d)
{
    if (left == 0) {
        return false;
    }
    d->integer = false;
    switch (*at >> 6) {
    case 0:
        d->head = 1;
        d->len = *at & 63;
        break;
    case 1:
        d->head = 2;
        d->len = left < 2 ? 0 : (size_t)(*at & 63) << 8 | at[1];
        break;
    case 2:
        d->head = 5;
        d->len =
            left < 5 ? 0 : (size_t)at[1] << 24 | (size_t)at[2] << 16 | (size_t)at[3] << 8 | at[4];
        break;
    default:
        return read_ziplist_integer(at, left, d);
    }
    return d->head <= left && d->len <= left - d->head;
}

/* The length of the element before, as the one at `at` tells it; 0 bytes when it is cut. */
static size_t read_ziplist_back(const unsigned char *at, size_t left, size_t *back)
{
    if (left == 0 || (*at == PACKED_LONG && left < 5)) {
        return 0;
    }
    *back = *at == PACKED_LONG ? (size_t)load_little(at + 1, 4) : *at;
    return *at == PACKED_LONG ? 5 : 1;
}

bool packed_each_ziplist(struct slice bytes, packed_visit_fn visit, void *context)
{
    stats_add(STAT_SANITIZATIONS, 1);
    const unsigned char *start = (const unsigned char *)bytes.ptr;
    if (bytes.len < ZIPLIST_HEADER_BYTES + 1 || load_little(start, 4) != bytes.len ||
        start[bytes.len - 1] != PACKED_END) {
        return false;
    }
    const unsigned char *end = start + bytes.len - 1, *at = start + ZIPLIST_HEADER_BYTES;
    const unsigned char *last = at;
    uint64_t count = 0, said = load_little(start + 8, 2);
    size_t before = 0, back = 0;
    while (at < end) {
        struct ziplist_data d;
        char text[NUM_I64_MAX_CHARS];
        size_t back_bytes = read_ziplist_back(at, (size_t)(end - at), &back);
        if (back_bytes == 0 || back != before ||
            !read_ziplist_data(at + back_bytes, (size_t)(end - at) - back_bytes, &d)) {
            return false;
        }
        last = at;
        at += back_bytes + d.head;
        struct slice element = d.integer ? slice_of(text, num_format_i64(text, d.value))
                                         : slice_of((const char *)at, d.len);
        if (!visit(element, context)) {
            return false;
        }
        at += d.len;
        before = (size_t)(at - last);
        count++;
    }
    return (said == ZIPLIST_UNKNOWN_COUNT || said == count) &&
           load_little(start + 4, 4) == (uint64_t)(last - start);
}

/* ---- zipmaps ---- */

/* A length at *at, which moves behind it. */
static bool read_zipmap_len(const unsigned char **at, const unsigned char *end, size_t *len)
{
    size_t left = (size_t)(end - *at);
    if (left == 0 || **at == PACKED_END || (**at == PACKED_LONG && left < 5)) {
        return false;
    }
    if (**at == PACKED_LONG) {
        *len = (size_t)load_little(*at + 1, 4);
        *at += 5;
        /* The short form is the only one for short strings. */
        return *len >= PACKED_LONG;
    }
    *len = **at;
    *at += 1;
    return true;
}

bool packed_each_zipmap(struct slice bytes, packed_visit_fn visit, void *context)
{
    stats_add(STAT_SANITIZATIONS, 1);
    const unsigned char *at = (const unsigned char *)bytes.ptr;
    if (bytes.len < 2 || at[bytes.len - 1] != PACKED_END) {
        return false;
    }
    const unsigned char *end = at + bytes.len - 1;
    uint64_t said = *at++, pairs = 0;
    while (at < end) {
        size_t len, unused;
        if (!read_zipmap_len(&at, end, &len) || len > (size_t)(end - at) ||
            !visit(slice_of((const char *)at, len), context)) {
            return false;
        }
        at += len;
        if (!read_zipmap_len(&at, end, &len) || at == end) {
            return false;
        }
        unused = *at++;
        if (len > (size_t)(end - at) || unused > (size_t)(end - at) - len ||
            !visit(slice_of((const char *)at, len), context)) {
            return false;
        }
        at += len + unused;
        pairs++;
    }
    return said >= ZIPMAP_UNKNOWN_COUNT || said == pairs;
}

/* ---- listpacks and intsets ---- */

bool packed_each_listpack(struct slice bytes, packed_visit_fn visit, void *context)
{
    stats_add(STAT_SANITIZATIONS, 1);
    const unsigned char *lp = (const unsigned char *)bytes.ptr;
    if (!listpack_validate(lp, bytes.len, NULL, NULL)) {
        return false;
    }
    char text[LISTPACK_TEXT_BYTES];
    for (const unsigned char *at = listpack_first(lp); at; at = listpack_next(lp, at)) {
        if (!visit(listpack_get(at, text), context)) {
            return false;
        }
    }
    return true;
}

bool packed_each_intset(struct slice bytes, packed_visit_fn visit, void *context)
{
    stats_add(STAT_SANITIZATIONS, 1);
    if (!intset_validate(bytes.ptr, bytes.len)) {
        return false;
    }
    const struct intset *s = (const struct intset *)(const void *)bytes.ptr;
    for (uint32_t i = 0; i < s->count; i++) {
        char text[NUM_I64_MAX_CHARS];
        if (!visit(slice_of(text, num_format_i64(text, intset_at(s, i))), context)) {
            return false;
        }
    }
    return true;
}
