/* The walk over the keys of a database: SCAN, and questions about each key.
 *
 * What is asked stands in a pipeline of three pages: with one message go the last questions about a
 * page (its lengths depend on the types), the first about the next one, and the SCAN for the one
 * after it. So a page costs one round trip, and a million keys seconds.
 *
 * Owns: the pages under way. State: the session's. Failures are told on standard error; a key that
 * goes meanwhile is left out, and an answer that is missing is told and counted as failed. Ctrl-C
 * ends the walk at once. Bounds: three pages; a page is what the server makes of one SCAN. */
#ifndef TOOLS_CLI_WALK_H
#define TOOLS_CLI_WALK_H

#include "tools/cli/kinds.h"
#include "tools/cli/session.h"

/* Digits of a cursor, which is a number of 64 bits. */
#define WALK_CURSOR_MAX 20

/* What is asked about each key. */
struct walk_plan {
    bool types;
    bool lengths; /* by the type's command; needs `types` */
    bool memory;
    bool frequency;      /* a server that refuses ends the walk */
    struct kinds *kinds; /* where `types` are looked up; else NULL */
    const char *cursor;  /* where to begin */
};

/* A figure about a key. */
struct walk_figure {
    bool known;
    unsigned long long number; /* 0 where it is not known */
};

struct walk_key {
    const char *name; /* a zero byte follows */
    size_t len;
    struct kind *kind; /* NULL where types are not asked for */
    struct walk_figure length;
    struct walk_figure memory;
    struct walk_figure frequency;
};

enum walk_end { WALK_DONE, WALK_INTERRUPTED, WALK_FAILED };

struct walk {
    unsigned long long total;   /* keys in the database when the walk began */
    unsigned long long sampled; /* keys visited, this one included */
    double percent;             /* of the keys, before the present page; at most 100 */
    char cursor[24];            /* of the present page; behind the last one "0" */
    /* Called for each key, and behind each page (may be NULL); `context` is theirs. What they print
     * appears a page at a time. */
    void (*visit)(struct walk *w, const struct walk_key *key);
    void (*page_done)(struct walk *w);
    void *context;
};

/* Walks. `w` has its callbacks and context, the rest is filled here. */
enum walk_end walk_run(struct session *s, const struct walk_plan *plan, struct walk *w);

/* Whether `r` is what SCAN answers: [cursor, [key ...]]. The cursor is a number, so that nothing
 * else is sent back or shown. */
bool walk_is_page(const struct reply *r);

/* sampled / total, at most 100 */
double walk_percent(const struct walk *w);

#endif
