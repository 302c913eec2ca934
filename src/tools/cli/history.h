/* The lines typed at the prompt, in memory and in a file.
 *
 * Owns: the lines. State: one, of the prompt. The file is readable by its owner only (0600), since
 * commands hold data; each line is appended as it is entered, so several prompts can share it. A
 * file that cannot be read or written is done without, silently: the prompt works all the same. */
#ifndef TOOLS_CLI_HISTORY_H
#define TOOLS_CLI_HISTORY_H

#include <stddef.h>

/* Older lines are forgotten, in memory and, at the next start, in the file. */
#define HISTORY_LINES_MAX 1000

struct history;

/* An empty history; `path` NULL keeps it in memory only, else the lines in the file are taken. */
struct history *history_create(const char *path);

/* Frees it, and nulls the pointer. The file stays. */
void history_destroy(struct history **h);

/* Adds line[0, len) unless it is empty, holds a line feed, or equals the line before. */
void history_add(struct history *h, const char *line, size_t len);

/* The number of lines. */
size_t history_count(const struct history *h);

/* Line `index`, 0 the oldest, < history_count(). It lives until the next history_add(). */
const char *history_line(const struct history *h, size_t index);

/* The newest line before index `before` (<= count) that contains `text`, or history_count() when
 * there is none. */
size_t history_search(const struct history *h, const char *text, size_t before);

#endif
