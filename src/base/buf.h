/* A growable byte buffer. State: owned by whoever holds it. Grows by doubling up to 1 MiB, then by
 * 1 MiB plus an eighth. Never fails (see mem.h). An all-zero struct is an empty buffer. */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include "base/compiler.h"
#include "base/slice.h"

#include <stdint.h>

struct buf {
    char *data;      /* NULL while capacity is 0 */
    size_t len;      /* bytes in use */
    size_t capacity; /* bytes allocated */
};

/* Makes room for at least `extra` more bytes and returns where they go (data + len). */
char *buf_reserve(struct buf *b, size_t extra);
/* Appends bytes. */
void buf_append(struct buf *b, const char *bytes, size_t len);
void buf_append_slice(struct buf *b, struct slice s);
void buf_append_cstr(struct buf *b, const char *text);
void buf_append_char(struct buf *b, char c);
/* Appends formatted text (printf rules). */
void buf_printf(struct buf *b, const char *format, ...) PRINTF_LIKE(2, 3);
/* Appends `s` as redis-cli, MONITOR and CONFIG REWRITE quote it: in double quotes, \n \r \t \a \b
 * \" \\ escaped, other unprintable bytes as \xHH. */
void buf_append_quoted(struct buf *b, struct slice s);
/* Drops the first `count` bytes (count <= len), moving the rest down. */
void buf_consume(struct buf *b, size_t count);
/* Empties the buffer and keeps its memory. */
void buf_clear(struct buf *b);
/* Frees the memory; the buffer is empty and usable afterwards. */
void buf_deinit(struct buf *b);
/* A borrowed view of the content, valid until the next change. */
struct slice buf_slice(const struct buf *b);
/* The same of what is behind the first `at` bytes (at <= len). */
struct slice buf_from(const struct buf *b, size_t at);
/* NUL-terminates (the NUL is not counted) and returns the content, valid until the next change. */
const char *buf_cstr(struct buf *b);

#endif
