/* What libraries.c and libraries_rows.c share. */
#ifndef ACTIVE_LIBRARIES_PRIV_H
#define ACTIVE_LIBRARIES_PRIV_H

#include "active/libraries.h"

enum library_kind {
    LIBRARY_GONE,
    LIBRARY_LOADED,
    LIBRARY_HIDDEN, /* it does not go with a later one */
};

struct library_said {
    char *name;
    char *source; /* hidden, or to be loaded; else NULL */
    size_t name_len, source_len;
    struct library_word at;
    enum library_kind kind;
    bool unsettled; /* what is loaded, and what files say, is not this */
};

struct libraries {
    struct origins *origins;
    struct library_said **all;
    size_t count, capacity;
    struct library_word flushed; /* the last word about all; stamp 0: none */
    bool unsettled, flush_changed;
    libraries_changed_fn changed;
    void *context;
};

/* The one order of words. */
int library_word_compare(const struct origins *o, const struct library_word *a,
                         const struct library_word *b);
/* NULL: nothing is said of it. */
struct library_said *libraries_find(const struct libraries *l, struct slice name);
/* One of which nothing is said yet: zero. */
struct library_said *libraries_add(struct libraries *l, struct slice name);
void library_set_source(struct library_said *s, struct slice source);
/* A word: an empty name is all, an empty source gone. */
void libraries_note(struct libraries *l, const struct library_word *at, struct slice name,
                    struct slice source, bool is_run) REQUIRES(keyspace_lock);
/* A told form's name, appended, and source (borrowed). */
void library_word_read(int argc, const struct slice *argv, struct buf *name, struct slice *source);

/* Appends a row. */
void library_put_row(const struct origins *o, const struct library_word *at, char kind,
                     struct slice name, struct slice source, struct buf *out);
/* The row of what is said; `source` of a loaded one, empty: without. */
void library_put_said(const struct libraries *l, const struct library_said *s, struct slice source,
                      struct buf *out);

#endif
