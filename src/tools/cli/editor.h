/* Reads a line from the terminal, with editing, history, completion and hints.
 *
 * Owns: terminal settings, while a line is being read; bytes typed ahead, between lines.
 * State: one, of the prompt. Where standard input or output is no terminal, or TERM is one that
 * cannot move the cursor, lines are read as they come, without editing.
 *
 * Keys: arrows, Home, End, Delete, Backspace, ^A ^E ^B ^F ^P ^N ^D ^H, ^U ^K ^W (cut) ^Y (put
 * back), ^T (swap), Ctrl or Alt with left, right; ^L clears the screen; TAB and Shift-TAB go round
 * the completions (Escape: back to what was typed); ^R searches the history; ^C drops the line,
 * on an empty line it is the end, as ^D is; ^Z suspends. */
#ifndef TOOLS_CLI_EDITOR_H
#define TOOLS_CLI_EDITOR_H

#include <stddef.h>

#include "tools/cli/history.h"
#include "tools/common/text.h"
#include "tools/common/words.h"

enum editor_result {
    EDITOR_LINE, /* a line was entered */
    EDITOR_END,  /* the input ended, or the user wants to leave */
};

/* Where hints and completions come from; `context` is handed through. */
struct editor_source {
    void *context;
    void (*hint)(void *context, const char *line, size_t len, struct text *out);
    void (*complete)(void *context, const char *line, size_t len, struct words *out);
};

struct editor;

/* `history` and `source` must outlive it; `source` NULL: neither hints nor completions. */
struct editor *editor_create(struct history *history, const struct editor_source *source);
void editor_destroy(struct editor **e);

/* Reads one line into `out` (replacing it), without its line end. `prompt` is ASCII; without a
 * terminal it is not shown. Adds nothing to the history. */
enum editor_result editor_read(struct editor *e, const char *prompt, struct text *out);

/* Clears the screen, if there is a terminal. */
void editor_clear_screen(void);

/* Asks for a secret on the terminal, showing a star for each byte; reads a plain line where there
 * is none. The caller frees the result; NULL at the end of the input or after ^C. */
char *editor_read_secret(const char *prompt);

#endif
