/* A growing byte string: see text.h. */
#include "tools/common/text.h"

#include <assert.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What `data` points to while nothing is allocated; never written, because capacity is 0. */
static char text_empty[1];

static void tool_die_no_memory(void)
{
    fputs("out of memory\n", stderr);
    exit(1);
}

void *tool_malloc(size_t size_bytes)
{
    void *fresh = malloc(size_bytes > 0 ? size_bytes : 1);
    if (fresh == NULL) {
        tool_die_no_memory();
    }
    return fresh;
}

void *tool_calloc(size_t count, size_t size_bytes)
{
    void *fresh = calloc(count > 0 ? count : 1, size_bytes > 0 ? size_bytes : 1);
    if (fresh == NULL) {
        tool_die_no_memory();
    }
    return fresh;
}

void *tool_realloc(void *old, size_t size_bytes)
{
    void *fresh = realloc(old, size_bytes > 0 ? size_bytes : 1);
    if (fresh == NULL) {
        tool_die_no_memory();
    }
    return fresh;
}

char *tool_strdup(const char *source)
{
    return tool_copy(source, strlen(source));
}

char *tool_copy(const void *source, size_t len)
{
    assert(len < SIZE_MAX);
    char *fresh = tool_malloc(len + 1);
    if (len > 0) {
        memcpy(fresh, source, len);
    }
    fresh[len] = '\0';
    return fresh;
}

void text_init(struct text *t)
{
    t->data = text_empty;
    t->len = 0;
    t->capacity = 0;
}

void text_deinit(struct text *t)
{
    if (t->capacity > 0) {
        free(t->data);
    }
    text_init(t);
}

void text_clear(struct text *t)
{
    text_truncate(t, 0);
}

void text_truncate(struct text *t, size_t len)
{
    assert(len <= t->len);
    t->len = len;
    if (t->capacity > 0) {
        t->data[len] = '\0';
    }
}

char *text_reserve(struct text *t, size_t extra)
{
    assert(extra < SIZE_MAX / 4 && t->len < SIZE_MAX / 4);
    size_t needed = t->len + extra + 1;
    if (needed > t->capacity) {
        size_t capacity = t->capacity < 32 ? 32 : t->capacity;
        while (capacity < needed) {
            capacity += capacity / 2;
        }
        bool was_empty = t->capacity == 0;
        t->data = tool_realloc(was_empty ? NULL : t->data, capacity);
        t->capacity = capacity;
        t->data[t->len] = '\0';
    }
    return t->data + t->len;
}

void text_advance(struct text *t, size_t count)
{
    assert(t->capacity - t->len > count);
    t->len += count;
    t->data[t->len] = '\0';
}

void text_remove(struct text *t, size_t at, size_t count)
{
    assert(at <= t->len && count <= t->len - at);
    if (count == 0) {
        return;
    }
    memmove(t->data + at, t->data + at + count, t->len - at - count);
    text_truncate(t, t->len - count);
}

void text_insert(struct text *t, size_t at, const void *source, size_t len)
{
    assert(at <= t->len);
    if (len == 0) {
        return;
    }
    text_reserve(t, len);
    memmove(t->data + at + len, t->data + at, t->len - at);
    memcpy(t->data + at, source, len);
    text_advance(t, len);
}

void text_append(struct text *t, const void *source, size_t len)
{
    if (len > 0) {
        memcpy(text_reserve(t, len), source, len);
        text_advance(t, len);
    }
}

void text_append_string(struct text *t, const char *source)
{
    text_append(t, source, strlen(source));
}

void text_append_char(struct text *t, char c)
{
    text_append(t, &c, 1);
}

void text_append_fill(struct text *t, char c, size_t count)
{
    if (count > 0) {
        memset(text_reserve(t, count), c, count);
        text_advance(t, count);
    }
}

void text_append_format(struct text *t, const char *format, ...)
{
    assert(format != NULL);
    va_list args;
    va_start(args, format);
    va_list again;
    va_copy(again, args);
    int wanted = vsnprintf(NULL, 0, format, args);
    va_end(args);
    assert(wanted >= 0);
    char *where = text_reserve(t, (size_t)wanted);
    int written = vsnprintf(where, (size_t)wanted + 1, format, again);
    va_end(again);
    assert(written == wanted);
    text_advance(t, (size_t)written);
}

/* The letter behind a backslash for the control characters that have one, else 0. */
static char text_escape_letter(char c)
{
    switch (c) {
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
    case '"':
    case '\\':
        return c;
    default:
        return 0;
    }
}

void text_append_quoted(struct text *t, const char *source, size_t len)
{
    text_append_char(t, '"');
    for (size_t i = 0; i < len; i++) {
        char letter = text_escape_letter(source[i]);
        unsigned char byte = (unsigned char)source[i];
        if (letter != 0) {
            text_append_char(t, '\\');
            text_append_char(t, letter);
        } else if (byte >= 0x20 && byte < 0x7f) {
            text_append_char(t, source[i]);
        } else {
            text_append_format(t, "\\x%02x", byte);
        }
    }
    text_append_char(t, '"');
}

void text_append_readable(struct text *t, const char *source, size_t len)
{
    size_t before = t->len;
    text_append_quoted(t, source, len);
    if (t->len - before == len + 2) { /* but the quotes nothing was added */
        text_remove(t, t->len - 1, 1);
        text_remove(t, before, 1);
    }
}

void text_append_json(struct text *t, const char *source, size_t len)
{
    text_append_char(t, '"');
    for (size_t i = 0; i < len; i++) {
        char letter = text_escape_letter(source[i]);
        unsigned char byte = (unsigned char)source[i];
        if (byte == '\f') {
            letter = 'f';
        } else if (byte == '\a') {
            letter = 0; /* JSON has no \a */
        }
        if (letter != 0) {
            text_append_char(t, '\\');
            text_append_char(t, letter);
        } else if (byte < 0x20) {
            text_append_format(t, "\\u%04x", byte);
        } else {
            text_append_char(t, source[i]);
        }
    }
    text_append_char(t, '"');
}
