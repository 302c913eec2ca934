/* See functions_payload.h. The forms of lengths and strings are those of RDB files. */
#include "script/functions_payload.h"

#include "base/crc.h"
#include "script/vm.h"

#include <lzf.h>

#define OP_FUNCTION 245
/* What is written, for Redis 7.0 to read; and the newest that is read. */
#define VERSION_WRITTEN 10
#define VERSION_READ 12
#define FOOTER_BYTES 10
/* The special string form 3: compressed. */
#define STRING_LZF 0xc3

/* ---- writing ---- */

static void add_length(struct buf *out, uint64_t len)
{
    if (len < 64) {
        buf_append_char(out, (char)len);
    } else if (len < 16384) {
        buf_append_char(out, (char)(0x40 | len >> 8));
        buf_append_char(out, (char)(len & 0xff));
    } else {
        buf_append_char(out, (char)0x80);
        for (int shift = 24; shift >= 0; shift -= 8) {
            buf_append_char(out, (char)(len >> shift & 0xff));
        }
    }
}

void functions_payload_add(struct buf *out, struct slice code)
{
    buf_append_char(out, (char)OP_FUNCTION);
    add_length(out, code.len);
    buf_append_slice(out, code);
}

void functions_payload_end(struct buf *out)
{
    buf_append_char(out, VERSION_WRITTEN);
    buf_append_char(out, 0);
    uint64_t crc = crc64(0, out->data, out->len);
    for (int shift = 0; shift < 64; shift += 8) {
        buf_append_char(out, (char)(crc >> shift & 0xff));
    }
}

/* ---- reading ---- */

bool functions_payload_open(struct slice payload, struct slice *body)
{
    if (payload.len < FOOTER_BYTES) {
        return false;
    }
    const unsigned char *footer = (const unsigned char *)payload.ptr + payload.len - FOOTER_BYTES;
    unsigned version = footer[0] | (unsigned)footer[1] << 8;
    uint64_t said = 0;
    for (int i = 0; i < 8; i++) {
        said |= (uint64_t)footer[2 + i] << (8 * i);
    }
    *body = slice_of(payload.ptr, payload.len - FOOTER_BYTES);
    return version <= VERSION_READ && said == crc64(0, payload.ptr, payload.len - 8);
}

static bool take_bytes(struct slice *body, size_t count, const unsigned char **bytes)
{
    if (body->len < count) {
        return false;
    }
    *bytes = (const unsigned char *)body->ptr;
    *body = slice_of(body->ptr + count, body->len - count);
    return true;
}

/* A length whose first byte is `first`. */
static bool take_length(struct slice *body, unsigned char first, uint64_t *len)
{
    const unsigned char *more;
    size_t count = first >> 6 == 0 ? 0 : first >> 6 == 1 ? 1 : first == 0x80 ? 4 : 8;
    if (first > 0x81 || !take_bytes(body, count, &more)) {
        return false;
    }
    *len = count < 2 ? first & 0x3f : 0;
    for (size_t i = 0; i < count; i++) {
        *len = *len << 8 | more[i];
    }
    return true;
}

static bool take_compressed(struct slice *body, struct buf *code)
{
    uint64_t packed, whole;
    const unsigned char *first, *bytes;
    if (!take_bytes(body, 1, &first) || !take_length(body, *first, &packed) ||
        !take_bytes(body, 1, &first) || !take_length(body, *first, &whole) ||
        whole > VM_SOURCE_MAX_BYTES || packed > body->len || !take_bytes(body, packed, &bytes)) {
        return false;
    }
    char *to = buf_reserve(code, whole);
    if (packed == 0 || lzf_decompress(bytes, (unsigned)packed, to, (unsigned)whole) != whole) {
        return false;
    }
    code->len += whole;
    return true;
}

bool functions_payload_next(struct slice *body, struct buf *code)
{
    const unsigned char *first, *bytes;
    uint64_t len;
    if (!take_bytes(body, 1, &first) || *first != OP_FUNCTION || !take_bytes(body, 1, &first)) {
        return false;
    }
    if (*first == STRING_LZF) {
        return take_compressed(body, code);
    }
    if (!take_length(body, *first, &len) || len > VM_SOURCE_MAX_BYTES ||
        !take_bytes(body, len, &bytes)) {
        return false;
    }
    buf_append(code, (const char *)bytes, len);
    return true;
}
