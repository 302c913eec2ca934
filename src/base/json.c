/* See json.h. */
#include "base/json.h"

#include <stdbool.h>

/* Bytes of the UTF-8 character of more than one byte that `s` begins with, 0 when it begins with
 * none: lead byte, least second byte (no overlong forms) and greatest one (no surrogates, nothing
 * beyond U+10FFFF) as in RFC 3629's table. */
static size_t utf8_bytes(struct slice s)
{
    static const struct {
        unsigned char first, last, second_min, second_max, bytes;
    } rows[] = {
        {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3}, {0xe1, 0xec, 0x80, 0xbf, 3},
        {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3}, {0xf0, 0xf0, 0x90, 0xbf, 4},
        {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
    };
    const unsigned char *b = (const unsigned char *)s.ptr;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (b[0] < rows[i].first || b[0] > rows[i].last) {
            continue;
        }
        bool valid =
            s.len >= rows[i].bytes && b[1] >= rows[i].second_min && b[1] <= rows[i].second_max;
        for (size_t k = 2; valid && k < rows[i].bytes; k++) {
            valid = b[k] >= 0x80 && b[k] <= 0xbf;
        }
        return valid ? rows[i].bytes : 0;
    }
    return 0;
}

/* The letter behind the backslash of a byte that has a short escape, else 0. */
static char short_escape(unsigned char byte)
{
    switch (byte) {
    case '"':
    case '\\':
        return (char)byte;
    case '\b':
        return 'b';
    case '\f':
        return 'f';
    case '\n':
        return 'n';
    case '\r':
        return 'r';
    case '\t':
        return 't';
    default:
        return 0;
    }
}

/* Writes the first character of `rest`; returns its bytes. */
static size_t append_character(struct buf *out, struct slice rest)
{
    unsigned char byte = (unsigned char)rest.ptr[0];
    char letter = short_escape(byte);
    size_t bytes = byte < 0x80 ? byte >= 0x20 : utf8_bytes(rest);
    if (letter) {
        buf_append_char(out, '\\');
        buf_append_char(out, letter);
    } else if (bytes > 0) {
        buf_append(out, rest.ptr, bytes);
    } else {
        buf_printf(out, "\\u%04x", byte);
    }
    return bytes > 0 ? bytes : 1;
}

void json_append_string(struct buf *out, struct slice text)
{
    buf_append_char(out, '"');
    for (size_t at = 0; at < text.len;) {
        at += append_character(out, slice_of(text.ptr + at, text.len - at));
    }
    buf_append_char(out, '"');
}
