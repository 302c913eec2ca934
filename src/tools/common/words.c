/* Splitting a typed line into words: see words.h. */
#include "tools/common/words.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tools/common/text.h"

/* One pass over a line; `pos` never passes `len`. */
struct cursor {
    const char *line;
    size_t len;
    size_t pos;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == '\v' || c == '\f';
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    if (c >= 'A' && c <= 'F') {
        return c - 'A' + 10;
    }
    return -1;
}

static char unescape_letter(char c)
{
    switch (c) {
    case 'n':
        return '\n';
    case 'r':
        return '\r';
    case 't':
        return '\t';
    case 'b':
        return '\b';
    case 'a':
        return '\a';
    default:
        return c;
    }
}

/* Reads an escape whose backslash is at the cursor and has a character behind it. */
static void read_escape(struct cursor *c, struct text *word)
{
    const char *rest = c->line + c->pos;
    size_t left = c->len - c->pos;
    assert(left >= 2 && rest[0] == '\\');
    if (left >= 4 && rest[1] == 'x' && hex_value(rest[2]) >= 0 && hex_value(rest[3]) >= 0) {
        text_append_char(word, (char)(hex_value(rest[2]) * 16 + hex_value(rest[3])));
        c->pos += 4;
        return;
    }
    text_append_char(word, unescape_letter(rest[1]));
    c->pos += 2;
}

/* Reads a quoted part whose opening quote is at the cursor. Returns whether it is closed, and
 * followed by a blank or the end. */
static bool read_quoted(struct cursor *c, struct text *word)
{
    char quote = c->line[c->pos++];
    while (c->pos < c->len) {
        char here = c->line[c->pos];
        bool more = c->pos + 1 < c->len;
        if (here == quote) {
            c->pos++;
            return c->pos == c->len || is_blank(c->line[c->pos]);
        }
        if (here == '\\' && more && quote == '"') {
            read_escape(c, word);
        } else if (here == '\\' && more && c->line[c->pos + 1] == '\'' && quote == '\'') {
            text_append_char(word, '\'');
            c->pos += 2;
        } else {
            text_append_char(word, here);
            c->pos++;
        }
    }
    return false;
}

/* Reads one word that starts at the cursor. Returns false on unbalanced quotes. */
static bool read_word(struct cursor *c, struct text *word)
{
    bool balanced = true;
    while (c->pos < c->len && !is_blank(c->line[c->pos])) {
        char here = c->line[c->pos];
        if (here == '"' || here == '\'') {
            balanced = read_quoted(c, word) && balanced;
        } else {
            text_append_char(word, here);
            c->pos++;
        }
    }
    return balanced;
}

/* Splits as far as it goes; returns whether all quotes were balanced. */
static bool split(const char *line, size_t len, struct words *out, bool *open_word)
{
    struct cursor c = {line, len, 0};
    bool balanced = true;
    *open_word = false;
    out->list = NULL;
    out->count = 0;
    struct text word;
    text_init(&word);
    for (;;) {
        while (c.pos < c.len && is_blank(c.line[c.pos])) {
            c.pos++;
            *open_word = false;
        }
        if (c.pos == c.len) {
            break;
        }
        text_clear(&word);
        balanced = read_word(&c, &word) && balanced;
        words_add(out, word.data, word.len);
        *open_word = true;
    }
    text_deinit(&word);
    return balanced;
}

bool words_split(const char *line, size_t len, struct words *out)
{
    bool open_word;
    if (!split(line, len, out, &open_word)) {
        words_deinit(out);
        return false;
    }
    return true;
}

void words_split_partial(const char *line, size_t len, struct words *out, bool *open_word)
{
    (void)split(line, len, out, open_word);
}

void words_add(struct words *w, const char *data, size_t len)
{
    w->list = tool_realloc(w->list, (w->count + 1) * sizeof(*w->list));
    w->list[w->count].data = tool_copy(data, len);
    w->list[w->count].len = len;
    w->count++;
}

void words_add_strings(struct words *w, const char *first, ...)
{
    va_list args;
    va_start(args, first);
    for (const char *text = first; text != NULL; text = va_arg(args, const char *)) {
        words_add(w, text, strlen(text));
    }
    va_end(args);
}

void words_drop_first(struct words *w, size_t count)
{
    assert(count <= w->count);
    for (size_t i = 0; i < count; i++) {
        free(w->list[i].data);
    }
    if (count > 0) {
        memmove(w->list, w->list + count, (w->count - count) * sizeof(*w->list));
        w->count -= count;
    }
}

void words_deinit(struct words *w)
{
    for (size_t i = 0; i < w->count; i++) {
        free(w->list[i].data);
    }
    free(w->list);
    w->list = NULL;
    w->count = 0;
}

bool words_is(const struct words *w, size_t index, const char *name)
{
    return index < w->count && strlen(w->list[index].data) == w->list[index].len &&
           strcasecmp(w->list[index].data, name) == 0;
}
