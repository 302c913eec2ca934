/* Growable byte buffers. Invariant: len <= capacity; data is NULL exactly while capacity is 0. */
#include "base/buf.h"

#include "base/mem.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* First allocation, and where doubling ends (see buf.h). */
#define BUF_FIRST_BYTES 64
#define BUF_DOUBLING_BYTES ((size_t)1 << 20)

static void buf_grow(struct buf *b, size_t needed)
{
    size_t capacity;
    if (needed <= BUF_DOUBLING_BYTES / 2) {
        capacity = b->capacity != 0 ? b->capacity * 2 : BUF_FIRST_BYTES;
        while (capacity < needed) {
            capacity *= 2;
        }
    } else {
        capacity = needed + BUF_DOUBLING_BYTES + needed / 8;
        if (needed < BUF_DOUBLING_BYTES) {
            capacity = 2 * BUF_DOUBLING_BYTES;
        }
    }
    assert(capacity >= needed);
    b->data = mem_realloc(b->data, capacity);
    b->capacity = capacity;
}

char *buf_reserve(struct buf *b, size_t extra)
{
    assert(b->len <= b->capacity);
    if (unlikely(extra > b->capacity - b->len || b->data == NULL)) {
        assert(extra < PTRDIFF_MAX / 2 && b->len < PTRDIFF_MAX / 2);
        buf_grow(b, b->len + extra);
    }
    return b->data + b->len;
}

void buf_append(struct buf *b, const char *bytes, size_t len)
{
    if (len > 0) {
        memcpy(buf_reserve(b, len), bytes, len);
        b->len += len;
    }
}

void buf_append_slice(struct buf *b, struct slice s)
{
    buf_append(b, s.ptr, s.len);
}

void buf_append_cstr(struct buf *b, const char *text)
{
    buf_append(b, text, strlen(text));
}

void buf_append_char(struct buf *b, char c)
{
    *buf_reserve(b, 1) = c;
    b->len++;
}

void buf_printf(struct buf *b, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *where = buf_reserve(b, 64);
    size_t room = b->capacity - b->len;
    va_list again;
    va_copy(again, args);
    int len = vsnprintf(where, room, format, args);
    assert(len >= 0);
    if ((size_t)len >= room) {
        where = buf_reserve(b, (size_t)len + 1);
        int second = vsnprintf(where, (size_t)len + 1, format, again);
        assert(second == len);
    }
    va_end(again);
    va_end(args);
    b->len += (size_t)len;
}

/* The letter that stands for `c` after a backslash, or 0. */
static char buf_escape_letter(unsigned char c)
{
    switch (c) {
    case '\\':
        return '\\';
    case '"':
        return '"';
    case '\n':
        return 'n';
    case '\r':
        return 'r';
    case '\t':
        return 't';
    case '\a':
        return 'a';
    case '\b':
        return 'b';
    default:
        return 0;
    }
}

void buf_append_quoted(struct buf *b, struct slice s)
{
    static const char hex[] = "0123456789abcdef";
    assert(s.len < PTRDIFF_MAX / 8);
    buf_append_char(b, '"');
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        char letter = buf_escape_letter(c);
        if (letter != 0) {
            buf_append(b, (char[]){'\\', letter}, 2);
        } else if (c >= 0x20 && c < 0x7f) {
            buf_append_char(b, (char)c);
        } else {
            buf_append(b, (char[]){'\\', 'x', hex[c >> 4], hex[c & 15]}, 4);
        }
    }
    buf_append_char(b, '"');
}

void buf_consume(struct buf *b, size_t count)
{
    assert(count <= b->len);
    if (count > 0) {
        b->len -= count;
        memmove(b->data, b->data + count, b->len);
    }
}

void buf_clear(struct buf *b)
{
    b->len = 0;
}

void buf_deinit(struct buf *b)
{
    mem_free(b->data);
    *b = (struct buf){NULL, 0, 0};
}

struct slice buf_slice(const struct buf *b)
{
    /* Never a NULL pointer, so that memcmp and memcpy may be called on an empty one. */
    return slice_of(b->data != NULL ? b->data : "", b->len);
}

struct slice buf_from(const struct buf *b, size_t at)
{
    assert(at <= b->len);
    return slice_of(at ? b->data + at : b->data, b->len - at);
}

const char *buf_cstr(struct buf *b)
{
    *buf_reserve(b, 1) = '\0';
    return b->data;
}
