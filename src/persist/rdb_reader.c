/* See rdb_reader.h. */
#include "persist/rdb_reader.h"

#include "base/crc.h"
#include "base/mem.h"
#include "base/num.h"
#include "persist/rdb_format.h"

#include <assert.h>
#include <errno.h>
#include <lzf.h>
#include <unistd.h>

#define WINDOW_BYTES ((size_t)256 * 1024)
/* Room for a string of a feed before any of it has come. */
#define FEED_ROOM_BYTES ((size_t)1024 * 1024)

void rdb_reader_init(struct rdb_reader *r, struct slice bytes)
{
    const unsigned char *start = (const unsigned char *)bytes.ptr;
    *r = (struct rdb_reader){
        .at = start, .end = start + bytes.len, .summed = start, .offset = bytes.len, .fd = -1};
}

void rdb_reader_init_file(struct rdb_reader *r, int fd, uint64_t size)
{
    unsigned char *window = mem_alloc(WINDOW_BYTES);
    *r = (struct rdb_reader){
        .at = window, .end = window, .summed = window, .window = window, .behind = size, .fd = fd};
}

void rdb_reader_init_feed(struct rdb_reader *r, const struct rdb_feed *feed)
{
    static const unsigned char nothing;
    uint64_t length = feed->length < RDB_FEED_OPEN ? feed->length : RDB_FEED_OPEN;
    *r = (struct rdb_reader){.at = &nothing,
                             .end = &nothing,
                             .summed = &nothing,
                             .feed = feed,
                             .behind = length,
                             .fd = -1};
}

void rdb_reader_deinit(struct rdb_reader *r)
{
    mem_free(r->window);
    r->window = NULL;
}

bool rdb_fail(struct rdb_reader *r, const char *error)
{
    if (!r->error) {
        r->error = error;
        r->error_offset = rdb_offset(r);
    }
    return false;
}

uint64_t rdb_left(const struct rdb_reader *r)
{
    return (uint64_t)(r->end - r->at) + r->behind;
}

uint64_t rdb_offset(const struct rdb_reader *r)
{
    return r->offset - (uint64_t)(r->end - r->at);
}

static void sum(struct rdb_reader *r)
{
    r->crc = crc64(r->crc, r->summed, (size_t)(r->at - r->summed));
    r->summed = r->at;
}

uint64_t rdb_checksum(struct rdb_reader *r)
{
    sum(r);
    return r->crc;
}

static bool refill_from_feed(struct rdb_reader *r)
{
    struct slice bytes;
    const char *error = r->feed->next(r->feed->context, r->behind, &bytes);
    if (error) {
        return rdb_fail(r, error);
    }
    assert(bytes.len > 0 && bytes.len <= r->behind);
    r->at = r->summed = (const unsigned char *)bytes.ptr;
    r->end = r->at + bytes.len;
    r->behind -= bytes.len;
    r->offset += bytes.len;
    return true;
}

/* Brings the file's next bytes to hand; there are none at hand, and some behind. */
static bool refill(struct rdb_reader *r)
{
    assert(r->at == r->end && r->behind > 0 && (r->window || r->feed));
    sum(r);
    if (r->step && !r->step(r->step_context, r->offset)) {
        return rdb_fail(r, "reading was called off");
    }
    if (r->feed) {
        return refill_from_feed(r);
    }
    size_t want = r->behind < WINDOW_BYTES ? (size_t)r->behind : WINDOW_BYTES;
    ssize_t got;
    do {
        got = read(r->fd, r->window, want);
    } while (got < 0 && errno == EINTR);
    if (got <= 0) {
        return rdb_fail(r, got < 0 ? "the file cannot be read" : "the file ends too early");
    }
    r->at = r->summed = r->window;
    r->end = r->window + got;
    r->behind -= (uint64_t)got;
    r->offset += (uint64_t)got;
    return true;
}

bool rdb_read(struct rdb_reader *r, void *out, size_t len)
{
    if (r->error) {
        return false;
    }
    if (len > rdb_left(r)) {
        return rdb_fail(r, "ends too early");
    }
    char *to = out;
    while (len > 0) {
        size_t here = (size_t)(r->end - r->at);
        if (here == 0) {
            if (!refill(r)) {
                return false;
            }
            continue;
        }
        here = here < len ? here : len;
        memcpy(to, r->at, here);
        r->at += here;
        to += here;
        len -= here;
    }
    return true;
}

bool rdb_read_byte(struct rdb_reader *r, unsigned *byte)
{
    unsigned char b;
    if (!rdb_read(r, &b, 1)) {
        return false;
    }
    *byte = b;
    return true;
}

bool rdb_read_u64(struct rdb_reader *r, uint64_t *value)
{
    unsigned char b[8];
    if (!rdb_read(r, b, sizeof(b))) {
        return false;
    }
    *value = 0;
    for (int i = 7; i >= 0; i--) {
        *value = *value << 8 | b[i];
    }
    return true;
}

bool rdb_read_double(struct rdb_reader *r, double *value)
{
    uint64_t bits;
    if (!rdb_read_u64(r, &bits)) {
        return false;
    }
    memcpy(value, &bits, sizeof(bits));
    return true;
}

/* `bytes` big-endian ones. */
static bool read_big_endian(struct rdb_reader *r, size_t bytes, uint64_t *value)
{
    unsigned char b[8];
    assert(bytes <= sizeof(b));
    if (!rdb_read(r, b, bytes)) {
        return false;
    }
    *value = 0;
    for (size_t i = 0; i < bytes; i++) {
        *value = *value << 8 | b[i];
    }
    return true;
}

/* A length, or (*encoded) the encoding of a string. */
static bool read_len_or_encoding(struct rdb_reader *r, uint64_t *len, bool *encoded)
{
    unsigned first, second;
    *encoded = false;
    if (!rdb_read_byte(r, &first)) {
        return false;
    }
    switch (first >> 6) {
    case RDB_LEN_6:
        *len = first & 0x3f;
        return true;
    case RDB_LEN_14:
        if (!rdb_read_byte(r, &second)) {
            return false;
        }
        *len = (uint64_t)(first & 0x3f) << 8 | second;
        return true;
    case RDB_LEN_ENCODED:
        *encoded = true;
        *len = first & 0x3f;
        return true;
    default:
        break;
    }
    if (first == RDB_LEN_32) {
        return read_big_endian(r, 4, len);
    }
    if (first == RDB_LEN_64) {
        return read_big_endian(r, 8, len);
    }
    return rdb_fail(r, "a length of unknown form");
}

bool rdb_read_len(struct rdb_reader *r, uint64_t *len)
{
    bool encoded;
    if (!read_len_or_encoding(r, len, &encoded)) {
        return false;
    }
    return !encoded || rdb_fail(r, "an encoded string where a length belongs");
}

bool rdb_read_count(struct rdb_reader *r, size_t each, uint64_t *count)
{
    assert(each > 0);
    if (!rdb_read_len(r, count)) {
        return false;
    }
    return *count <= rdb_left(r) / each || rdb_fail(r, "a count of more than can follow");
}

/* Room for this many bytes in a buffer, and memory even for none: callers do arithmetic with its
 * address. */
static bool make_room(struct rdb_reader *r, struct buf *out, size_t bytes)
{
    if (bytes >= out->capacity) {
        char *data = mem_try_realloc(out->data, bytes + 1);
        if (!data) {
            return rdb_fail(r, "too little memory for a string");
        }
        out->data = data;
        out->capacity = bytes + 1;
    }
    return true;
}

static bool read_plain(struct rdb_reader *r, uint64_t len, struct buf *out)
{
    size_t whole = (size_t)len, done = 0;
    buf_clear(out);
    if (len > rdb_left(r)) {
        return rdb_fail(r, "a string longer than what is left");
    }
    do {
        size_t more = whole - done, believed = done > FEED_ROOM_BYTES ? done : FEED_ROOM_BYTES;
        if (r->feed && more > believed) {
            more = believed;
        }
        if (!make_room(r, out, done + more) || !rdb_read(r, out->data + done, more)) {
            return false;
        }
        done += more;
    } while (done < whole);
    out->len = whole;
    return true;
}

static bool read_integer(struct rdb_reader *r, size_t bytes, struct buf *out)
{
    unsigned char b[4] = {0};
    if (!rdb_read(r, b, bytes)) {
        return false;
    }
    uint32_t bits =
        (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
    int64_t value = bytes == 1 ? (int8_t)bits : bytes == 2 ? (int16_t)bits : (int32_t)bits;
    buf_clear(out);
    out->len = num_format_i64(buf_reserve(out, NUM_I64_MAX_CHARS), value);
    return true;
}

/* The length that LZF bytes expand to, by a walk over their control bytes; UINT64_MAX when they are
 * cut. */
static uint64_t lzf_expanded_bytes(const unsigned char *at, size_t len)
{
    const unsigned char *end = at + len;
    uint64_t bytes = 0;
    while (at < end) {
        size_t control = *at++;
        size_t take = control + 1, gives = control + 1;
        if (control >= 32) {
            bool far = control >> 5 == 7;
            gives = (control >> 5) + 2;
            if (far) {
                gives += at < end ? *at : 0;
            }
            take = far ? 2 : 1;
        }
        if (take > (size_t)(end - at)) {
            return UINT64_MAX;
        }
        at += take;
        bytes += gives;
    }
    return bytes;
}

static bool read_compressed(struct rdb_reader *r, struct buf *out)
{
    uint64_t packed_len, len;
    struct buf packed = {0};
    if (!rdb_read_len(r, &packed_len) || !rdb_read_len(r, &len)) {
        return false;
    }
    bool ok = read_plain(r, packed_len, &packed);
    /* The library counts in unsigned int. */
    if (ok && (packed_len > UINT32_MAX || len > UINT32_MAX ||
               lzf_expanded_bytes((unsigned char *)packed.data, packed.len) != len)) {
        ok = rdb_fail(r, "a compressed string that is damaged");
    }
    buf_clear(out);
    ok = ok && make_room(r, out, (size_t)len);
    if (ok && (len == 0 || lzf_decompress(packed.data, (unsigned)packed_len, out->data,
                                          (unsigned)len) != len)) {
        ok = rdb_fail(r, "a compressed string that is damaged");
    }
    out->len = ok ? (size_t)len : 0;
    buf_deinit(&packed);
    return ok;
}

bool rdb_read_string(struct rdb_reader *r, struct buf *out)
{
    uint64_t len;
    bool encoded;
    buf_clear(out);
    if (!read_len_or_encoding(r, &len, &encoded)) {
        return false;
    }
    if (!encoded) {
        return read_plain(r, len, out);
    }
    switch (len) {
    case RDB_INT8:
    case RDB_INT16:
    case RDB_INT32:
        return read_integer(r, (size_t)1 << len, out);
    case RDB_LZF:
        return read_compressed(r, out);
    default:
        return rdb_fail(r, "a string of unknown encoding");
    }
}

bool rdb_skip_string(struct rdb_reader *r)
{
    struct buf skipped = {0};
    bool ok = rdb_read_string(r, &skipped);
    buf_deinit(&skipped);
    return ok;
}
