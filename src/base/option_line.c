/* Splitting a line of keydb.conf, or an inline request, into words. */
#include "base/option.h"

#include <assert.h>

/* What is left of the line. Words only get shorter, so the bytes written always fit. */
struct line_reader {
    const char *p, *end;
    char *out;
};

static bool line_is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* As in Redis, vertical tab and form feed stand between words but do not end one. */
static bool line_ends_word(char c)
{
    return line_is_blank(c) && c != '\v' && c != '\f';
}

/* The value of a hexadecimal digit, or -1. */
static int line_hex_value(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Takes one escape inside double quotes; r->p stands behind the backslash, at a byte. */
static void line_take_escape(struct line_reader *r)
{
    static const char letters[] = "nrtba", meanings[] = "\n\r\t\b\a";
    if (*r->p == 'x' && r->end - r->p >= 3) {
        int high = line_hex_value(r->p[1]), low = line_hex_value(r->p[2]);
        if (high >= 0 && low >= 0) {
            *r->out++ = (char)(high * 16 + low);
            r->p += 3;
            return;
        }
    }
    const char *letter = memchr(letters, *r->p, sizeof(letters) - 1);
    *r->out++ = letter != NULL ? meanings[letter - letters] : *r->p;
    r->p++;
}

/* Takes a quoted run; r->p stands behind the opening quote. False when the closing one is missing
 * or is followed by anything but a blank. */
static bool line_take_quoted(struct line_reader *r, char quote)
{
    while (r->p < r->end) {
        char c = *r->p++;
        if (c == quote) {
            return r->p == r->end || line_is_blank(*r->p);
        }
        if (c == '\\' && r->p < r->end && quote == '"') {
            line_take_escape(r);
        } else if (c == '\\' && r->p < r->end && *r->p == '\'') {
            *r->out++ = *r->p++;
        } else {
            *r->out++ = c;
        }
    }
    return false;
}

/* Takes a word, whose first byte is no blank. A quote may also open in the middle of one. */
static bool line_take_word(struct line_reader *r)
{
    while (r->p < r->end && !line_ends_word(*r->p)) {
        char c = *r->p++;
        if (c == '"' || c == '\'') {
            return line_take_quoted(r, c);
        }
        *r->out++ = c;
    }
    return true;
}

int option_split_line(struct slice line, struct slice *words, int max, struct buf *scratch)
{
    buf_clear(scratch);
    if (line.len == 0) {
        return 0; /* its pointer may be NULL */
    }
    /* As with Redis's C strings, a NUL ends the line. */
    const char *nul = memchr(line.ptr, '\0', line.len);
    size_t len = nul != NULL ? (size_t)(nul - line.ptr) : line.len;
    struct line_reader r = {line.ptr, line.ptr + len, buf_reserve(scratch, len)};
    int count = 0;
    for (;;) {
        while (r.p < r.end && line_is_blank(*r.p)) {
            r.p++;
        }
        if (r.p == r.end) {
            break;
        }
        char *start = r.out;
        if (count == max || !line_take_word(&r)) {
            return -1;
        }
        words[count++] = slice_of(start, (size_t)(r.out - start));
    }
    scratch->len = (size_t)(r.out - scratch->data);
    assert(scratch->len <= len);
    return count;
}
