/* The first line of a script, "#!lua name=... flags=...". State: none. */
#ifndef SCRIPT_SHEBANG_H
#define SCRIPT_SHEBANG_H

#include "base/buf.h"

#include <stdbool.h>

/* Most words of the line. */
#define SHEBANG_WORDS_MAX 16

struct shebang {
    struct slice engine; /* "lua"; ptr NULL: there is no such line */
    struct slice words[SHEBANG_WORDS_MAX];
    int count;
    struct slice code;  /* what follows, from the line's end on, so that lines keep their numbers */
    struct buf scratch; /* the words' bytes */
};

/* Takes the line apart. False when it has no end, or too many words, or unbalanced quotes. */
bool shebang_parse(struct slice script, struct shebang *shebang) MUST_CHECK;
/* Frees what it holds. */
void shebang_deinit(struct shebang *shebang);
/* True when the word begins with `key` ("flags="); *value is the rest. */
bool shebang_word_is(struct slice word, const char *key, struct slice *value);

#endif
