/* Splitting a typed line into words, with quotes.
 *
 * Words are separated by blanks (space, \n, \r, \t). Inside "double quotes" a backslash escapes:
 * \xHH is the byte HH, \n \r \t \b \a are the control characters, any other character stands for
 * itself. Inside 'single quotes' only \' is special. A closing quote must be followed by a blank
 * or the end of the line. A quote in the middle of a word opens a quoted part of it.
 *
 * State: none. */
#ifndef TOOLS_COMMON_WORDS_H
#define TOOLS_COMMON_WORDS_H

#include <stdbool.h>
#include <stddef.h>

struct word {
    char *data; /* followed by a zero byte that is not counted */
    size_t len;
};

struct words {
    struct word *list; /* NULL when count is 0 */
    size_t count;
};

/* Splits `len` bytes of `line`. Returns true and fills `out`, to be released with words_deinit();
 * returns false, with nothing to release, when quotes are unbalanced. */
bool words_split(const char *line, size_t len, struct words *out);

/* As words_split(), for a line that is still being typed: an unbalanced quote is taken to end at
 * the end of the line. `open_word` says whether the last word may still grow: false when the line
 * is empty or ends in a blank outside quotes. */
void words_split_partial(const char *line, size_t len, struct words *out, bool *open_word);

/* Adds a copy of `len` bytes as the last word. */
void words_add(struct words *w, const char *data, size_t len);

/* Adds copies of C strings; the list ends with NULL. */
void words_add_strings(struct words *w, const char *first, ...) __attribute__((sentinel));

/* Removes the first `count` words (at most all of them). */
void words_drop_first(struct words *w, size_t count);

/* Frees the words and leaves an empty list. */
void words_deinit(struct words *w);

/* Whether word `index` exists and equals `name` regardless of ASCII case. */
bool words_is(const struct words *w, size_t index, const char *name);

#endif
