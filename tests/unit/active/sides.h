/* One node's side of a test that gives the same writes to merges of several kinds: origins 1 to
 * SIDE_ORIGINS, data of the model, a window, conflicts. */
#ifndef TESTS_UNIT_ACTIVE_SIDES_H
#define TESTS_UNIT_ACTIVE_SIDES_H

#include "model.h"

#define SIDE_ORIGINS 8

struct side {
    struct origins origins;
    struct model model;
    struct merge merge;
};

/* An empty one, whose window takes so many bytes. */
void side_set_up(struct side *s, size_t bytes, unsigned broken);
void side_tear_down(struct side *s);

#define SIDE_WORD_MAX 40
/* Writes what a word of a line stands for; false: itself. */
typedef bool (*side_word_fn)(const char *word, char text[SIDE_WORD_MAX], void *context);
/* Appends the line as a command; `stands_for` NULL: each word is itself. */
void side_put_words(struct buf *out, const char *line, side_word_fn stands_for, void *context);

#endif
