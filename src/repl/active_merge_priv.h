/* What the files of the merge share. */
#ifndef REPL_ACTIVE_MERGE_PRIV_H
#define REPL_ACTIVE_MERGE_PRIV_H

#include "repl/active_merge.h"

/* A key's view with what its content begins from. Indexes into the view; -1: none. */
struct active_fold {
    struct active_view view;
    int whole; /* W, where there is no B */
    int base;  /* B */
};

/* True when the state covers the write. */
bool active_fold_covers(const struct active_merge *m, const struct active_write *state,
                        struct active_dot dot);
/* Finds W and B; the write at `without` (-1: none) is passed over. */
void active_fold_find(const struct active_merge *m, struct active_fold *f, int without);
/* True for a client's write that the content has on top of what it begins from. */
bool active_fold_is_live(const struct active_merge *m, const struct active_fold *f, int i);
/* Stamp of the last whole write that the view knows of, itself or by a state; 0: none. */
uint64_t active_fold_void_upto(const struct active_view *view);
/* True when there is something to begin from, and all above it is in the window. */
bool active_fold_is_possible(const struct active_merge *m, const struct active_fold *f);
/* Begins anew. */
void active_fold_run(struct active_merge *m, const struct active_fold *f, int db, struct slice key,
                     int64_t now_ms);

/* True when X, which is view.writes[x], can be put in below the live writes behind it member by
 * member (rules 3 and 4). */
bool active_rules_commute(const struct active_merge *m, const struct active_fold *f, int x, int db,
                          struct slice key);
/* Does so. */
void active_rules_repeat(struct active_merge *m, const struct active_fold *f, int x, int db,
                         struct slice key, int64_t now_ms);

/* Runs one piece of a command; a failure, or a key that goes with a deadline of which nothing is
 * said, disputes the key. */
void active_merge_run(struct active_merge *m, const struct active_write *write, int db,
                      struct slice key, int64_t now_ms);
void active_merge_dispute(struct active_merge *m, int db, struct slice key, int64_t now_ms);
/* The key's dot becomes this one, where it is greater. */
void active_merge_touch(const struct active_merge *m, int db, struct slice key,
                        struct active_dot dot);

#endif
