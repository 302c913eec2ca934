/* The line being edited: its bytes, the cursor in it, and how both look on one terminal row.
 *
 * Owns: its text. State: plain value. The cursor is a byte offset that never stands inside of a
 * character. Characters are UTF-8 where the bytes are; any other byte is a character by itself. */
#ifndef TOOLS_CLI_LINE_H
#define TOOLS_CLI_LINE_H

#include <stdbool.h>
#include <stddef.h>

#include "tools/common/text.h"

/* More is not taken: what a terminal sends is not to eat the memory. */
#define LINE_BYTES_MAX (16 * 1024 * 1024)

struct line {
    struct text text;
    size_t cursor;      /* bytes before it */
    struct text killed; /* what was cut last, for line_yank() */
};

/* An empty line. */
void line_init(struct line *l);
/* Frees what it holds. */
void line_deinit(struct line *l);

/* Replaces all of it; the cursor goes to the end. */
void line_set(struct line *l, const char *data, size_t len);

/* Inserts at the cursor, which moves behind. Does nothing once the line is too long. */
void line_insert(struct line *l, const char *data, size_t len);

/* Moves by one character or word; stays where there is none. */
void line_left(struct line *l);
void line_right(struct line *l);
void line_word_left(struct line *l);
void line_word_right(struct line *l);

/* Deletes: the character before, or at, the cursor; from the cursor to the line's start or end;
 * the word before, or behind. All but the first two remember what they cut. */
void line_backspace(struct line *l);
void line_delete(struct line *l);
void line_kill_left(struct line *l);
void line_kill_right(struct line *l);
void line_kill_word_left(struct line *l);
void line_kill_word_right(struct line *l);

/* Inserts what was cut last. */
void line_yank(struct line *l);

/* Swaps the two characters around the cursor, which moves right. */
void line_transpose(struct line *l);

/* Appends the bytes that draw one row of `columns` (>= 2) columns anew: the prompt, the part of
 * the line around the cursor that fits, the hint in grey if there is room, and the cursor's place.
 * Control characters show as ^X, bytes that are not UTF-8 as ?. */
void line_draw(struct text *out, const struct line *l, const char *prompt, const char *hint,
               size_t columns);

#endif
