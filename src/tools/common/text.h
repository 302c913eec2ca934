/* A growing byte string, for the programs under tools/.
 *
 * Owns: its buffer. State: plain value, used by one thread. There is no lock.
 * Failure: running out of memory ends the program with a message and status 1; a tool has
 * nothing to save then, and every caller would only do the same.
 *
 * The bytes may hold zeros; `data` is always followed by one zero byte that is not counted, so
 * text without zeros can be handed to functions that want a C string. */
#ifndef TOOLS_COMMON_TEXT_H
#define TOOLS_COMMON_TEXT_H

#include <stddef.h>

struct text {
    char *data;      /* never NULL after text_init() */
    size_t len;      /* bytes in use, without the final zero */
    size_t capacity; /* bytes allocated, 0 while `data` is the shared empty string */
};

/* malloc(), realloc(), strdup() and a counted strdup() that end the program instead of failing.
 * The caller frees with free(). tool_copy() adds a zero byte behind the copied ones. */
void *tool_malloc(size_t size_bytes);
void *tool_calloc(size_t count, size_t size_bytes);
void *tool_realloc(void *old, size_t size_bytes);
char *tool_strdup(const char *source);
char *tool_copy(const void *source, size_t len);

/* Makes `t` an empty string. Nothing is allocated. */
void text_init(struct text *t);

/* Frees the buffer and leaves an empty string. */
void text_deinit(struct text *t);

/* Forgets the contents and keeps the buffer. */
void text_clear(struct text *t);

/* Shortens to `len` bytes; `len` must not be larger than the present length. */
void text_truncate(struct text *t, size_t len);

/* Removes `count` bytes that start at `at`; the range must lie inside. */
void text_remove(struct text *t, size_t at, size_t count);

/* Inserts `len` bytes before offset `at` (0 <= at <= t->len). `source` must not point into `t`. */
void text_insert(struct text *t, size_t at, const void *source, size_t len);

/* Makes room for `extra` more bytes and returns where they go; text_advance() then counts them. */
char *text_reserve(struct text *t, size_t extra);
void text_advance(struct text *t, size_t count);

/* Append: bytes, a C string, one byte, one byte many times, printf-style. Sources must not
 * point into `t`. */
void text_append(struct text *t, const void *source, size_t len);
void text_append_string(struct text *t, const char *source);
void text_append_char(struct text *t, char c);
void text_append_fill(struct text *t, char c, size_t count);
void text_append_format(struct text *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Appends the bytes as a double-quoted literal that text_split_words() reads back: \" \\ \n \r
 * \t \a \b, printable ASCII as it is, everything else as \xHH. */
void text_append_quoted(struct text *t, const char *source, size_t len);

/* Appends the bytes as they are where each is printable ASCII that needs no escape, else as
 * text_append_quoted() does: for names in the middle of a sentence, which are to do nothing to a
 * terminal. */
void text_append_readable(struct text *t, const char *source, size_t len);

/* Appends the bytes as a JSON string (RFC 8259): quotes, backslash and control characters
 * escaped, bytes from 0x80 up passed through, since most values are UTF-8 already. */
void text_append_json(struct text *t, const char *source, size_t len);

#endif
