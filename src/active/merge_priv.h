/* What the files of the merge share. */
#ifndef ACTIVE_MERGE_PRIV_H
#define ACTIVE_MERGE_PRIV_H

#include "active/merge.h"

/* A key's view with what its content begins from. Indexes into the view; -1: none. */
struct merge_fold {
    struct window_view view;
    int whole; /* W, where there is no B */
    int base;  /* B */
};

/* True when the state covers the write. */
bool merge_fold_covers(const struct merge *m, const struct window_write *state, struct dot dot);
/* True when the write is on top of the state, whose words are open (DESIGN.md). */
bool merge_fold_is_on_top(const struct merge *m, const struct window_write *state,
                          const struct window_write *w);
/* The place in the view of a command's effect, which is in it. */
int merge_fold_place(const struct merge_fold *f, struct dot dot, uint32_t number);
/* Finds W and B; the write at `without` (-1: none) is passed over. */
void merge_fold_find(const struct merge *m, struct merge_fold *f, int without);
/* True for a client's write that the content has on top of what it begins from. */
bool merge_fold_is_live(const struct merge *m, const struct merge_fold *f, int i);
/* Stamp of the last whole write that the view knows of, itself or by a state; 0: none. */
uint64_t merge_fold_void_upto(const struct window_view *view);
/* True when there is something to begin from, and all above it is in the window. */
bool merge_fold_is_possible(const struct merge *m, const struct merge_fold *f, int db,
                            struct slice key);
/* True when a state, which is not in the window, would be begun from, and more is on top of it than
 * one refold may run. */
bool merge_fold_is_too_much(const struct merge *m, int db, struct slice key,
                            const struct window_write *state);
/* False: a whole write that has left the window may have taken B out of force, and B is behind
 * view.writes[x], so it may say of that one what is not so. */
bool merge_fold_is_sure(const struct merge *m, const struct merge_fold *f, int x, int db,
                        struct slice key);
/* Begins anew. */
void merge_fold_run(struct merge *m, const struct merge_fold *f, int db, struct slice key,
                    int64_t now_ms);

/* The write, whose words are open, has been run: where it takes an element of a list, it is noted
 * whether it has found one. */
void merge_note_taking(const struct merge *m, int db, struct slice key,
                       const struct window_write *write);
/* A late write was put in, whose words are open: what it has pushed, and what has been taken before
 * it came, is taken; the key is in conflict then. */
void merge_take_missed(struct merge *m, int db, struct slice key, const struct window_write *push,
                       int64_t now_ms);

/* True when X, which is view.writes[x], can be put in below the live writes behind it member by
 * member (rules 3 and 4). */
bool merge_rules_commute(const struct merge *m, const struct merge_fold *f, int x, int db,
                         struct slice key);
/* Does so; where that is not possible, or not all of them are known, runs X at least. */
void merge_rules_guess(struct merge *m, const struct merge_fold *f, int x, int db, struct slice key,
                       int64_t now_ms);
/* Does so. */
void merge_rules_repeat(struct merge *m, const struct merge_fold *f, int x, int db,
                        struct slice key, int64_t now_ms);

/* A client's write of a hot key that has writes of it behind it: true when it was put in without a
 * look at all of them (merge_hot.c). It is in the window. */
bool merge_hot_put_in(struct merge *m, struct unit *unit, const struct unit_command *c,
                      const struct effect *effect, int64_t now_ms) MUST_CHECK;
/* So many writes of a key were looked at for one that was late; `all`: all that the window has. */
void merge_hot_looked(struct merge *m, int db, struct slice key, uint32_t writes, bool all,
                      int64_t now_ms);

/* What a state's command says that it covers, for the caller to free; NULL: it is none. */
struct version_vector *merge_cover_of(const struct merge *m, const struct unit_command *c);
/* A state of one key has come. */
void merge_apply_state(struct merge *m, struct unit *unit, const struct unit_command *c,
                       const struct effect *effect, int64_t now_ms);
/* States that have waited for what is here, or covered by `also`, which is to be, are taken. */
void merge_take_waiting_also(struct merge *m, const struct version_vector *also, int64_t now_ms);

/* Words of a digest that may be one. */
bool merge_digest_is_sound(const struct slice *argv, const struct effect *effect);
/* What such a state, which is not in the window, is here. */
enum merge_digest_fit {
    MERGE_DIGEST_BELOW, /* nothing yet, or any more */
    MERGE_DIGEST_SAME,  /* what the content begins from, and all that there is */
    MERGE_DIGEST_OTHER, /* what the content should begin from, and is not known here */
};
enum merge_digest_fit merge_digest_fits(const struct merge *m, int db,
                                        const struct window_write *state);

/* Runs one effect of a command; a failure, or a key that goes with a deadline of which nothing is
 * said, conflicts the key. */
void merge_run(struct merge *m, struct window_write *write, int db, struct slice key,
               int64_t now_ms);
/* The same for those of its members alone (more than one) of which keeps[] says so. */
void merge_run_members(struct merge *m, struct window_write *write, const bool *keeps, int db,
                       struct slice key, int64_t now_ms);
void merge_conflict(struct merge *m, int db, struct slice key, int64_t now_ms);
/* The same; `same`: with somebody who has the same content. */
void merge_conflict_same(struct merge *m, int db, struct slice key, bool same, int64_t now_ms);
/* The key's dot becomes this one, where it is greater. */
void merge_touch(const struct merge *m, int db, struct slice key, struct dot dot);

#endif
