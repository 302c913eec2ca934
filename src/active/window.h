/* The window: the writes that may still be overtaken, found by the keys that they touch.
 *
 *   key (database, name) -> [ effect of a unit, in the order of writes ]
 *
 * Invariants: (1) a key's effects are sorted by the one order of writes, within a unit by command;
 * (2) of each origin the window holds every applied write above `swept`, and none up to it; (3) no
 * write with a stamp above `floor` was ever left out. So what is in the window after a stamp above
 * the floor is all there is.
 *
 * State: keyspace (exclusive mode). */
#ifndef ACTIVE_WINDOW_H
#define ACTIVE_WINDOW_H

#include "active/effect.h"
#include "active/origins.h"
#include "active/unit.h"

#include <stddef.h>

struct window;
struct window_effect; /* window_index.h */
struct hot_key;       /* hot_keys.h */
struct missed_takings;

/* KEYDB.STATE key deadline payload positions whole: what a node has of a key, with the positions
 * that it had, and the stamp of the key's last whole write that it knew of (0: none). */
#define STATE_COMMAND_WORDS 6
#define STATE_COMMAND_WHOLE 5
/* KEYDB.DIGESTS positions [key digest whole] ...: the same of several keys, whose content whoever
 * has it knows by its digest. */
#define DIGESTS_COMMAND "KEYDB.DIGESTS"
#define DIGESTS_FIRST_KEY 2
#define DIGESTS_KEY_WORDS 3

/* An effect of a key, for looking at. Its command is taken apart only when somebody wants its words
 * (window_write_open), as of a hot key's many writes hardly any is looked at closer; a state's is.
 */
struct window_write {
    struct dot dot;
    uint32_t number; /* of its command in the unit */
    uint32_t offset;
    struct effect effect;
    uint64_t members;                   /* window_members of it */
    const struct version_vector *cover; /* of a state, else NULL */
    struct unit *unit;
    int argc;
    struct slice *argv; /* NULL: not open */
};

/* A set of members, as 64 bits: two that have none in common name no member both. */
uint64_t window_member(struct slice member);
uint64_t window_members(const struct effect *effect, const struct slice *argv);

/* What stands in the window for a key, in order. */
struct window_view {
    struct window_write *writes;
    uint32_t count, capacity;
    uint32_t walked; /* effects that were looked at for it */
};

/* A window over those origins; it takes at most so many bytes of units. */
struct window *window_create(const struct origins *o, size_t bytes_max);
/* Another bound; what is beyond it goes with the next write. */
void window_set_bound(struct window *w, size_t bytes_max);
void window_destroy(struct window **w);

/* Puts an effect of a unit in, which is no state; units of an origin come in the order of their
 * sequences. `hash` is its effect_key's (hash_slice). */
void window_add(struct window *w, struct unit *unit, const struct unit_command *command,
                const struct effect *effect, uint64_t hash);
/* Brings where such an effect will be put in towards the cache. */
void window_expect(const struct window *w, int db, uint64_t hash);
/* The same as window_add, of a state. `hidden`: nobody sees it before window_show (never, if it
 * cannot be begun from); but its key has had it when its unit leaves. Returns its number. */
uint64_t window_add_state(struct window *w, struct unit *unit, const struct unit_command *command,
                          const struct effect *effect, struct version_vector *cover_take,
                          bool hidden);
/* It, open, as views have it once it is seen, while its unit is here; the caller frees its argv. */
struct window_write window_hidden(const struct window *w, uint64_t number, int *db);
/* Everybody sees it from now on. */
void window_show(struct window *w, uint64_t number);
/* It waits for a write that it covers and that is not here yet, until that time; false: too many
 * do. */
bool window_wait(struct window *w, uint64_t number, struct dot cause, int64_t until_ms) MUST_CHECK;
/* One that waits no more: what it lacked is here or, unless `also` is NULL, covered by that; or its
 * time is over, *late. False: there is none. Cheap while none waits. */
bool window_waits_no_more(struct window *w, const struct version_vector *also, int64_t now_ms,
                          uint64_t *number, bool *late) MUST_CHECK;
bool window_has_waiting(const struct window *w);
/* Takings of lists' elements that found none; what has left the window may be among them. */
struct missed_takings *window_missed(struct window *w);
/* The unit is in: what is beyond the bound goes, oldest first, and some more (unit_spare). A unit
 * without effects counts too. */
void window_close(struct window *w, struct unit *unit);
/* Drops what has a stamp up to `stable`, so many units at most. True: there is more. */
bool window_sweep(struct window *w, uint64_t stable, uint64_t units);
/* Positions were taken over without the writes (a file, MERGE) of somebody whose clock was this. */
void window_skip(struct window *w, const struct version_vector *positions, uint64_t clock);

/* The stamp of the last write of the key, 0 when it has none here. Cheap. */
uint64_t window_last(const struct window *w, int db, struct slice key);
/* All writes of the key, flushes of its database among them. The caller frees the view. */
void window_view(const struct window *w, int db, struct slice key, struct window_view *view);
/* The same, without those before that effect, which is here: that one is the first of the view.
 * False, and no view, where states or flushes behind it need more to be understood. Takes as long
 * as there are writes behind it. */
bool window_view_behind(const struct window *w, int db, struct slice key, struct dot dot,
                        uint32_t number, struct window_view *view) MUST_CHECK;
void window_view_deinit(struct window_view *view);
/* An effect that is here, as views have it; the caller frees its argv. */
struct window_write window_write_of(const struct window_effect *effect);
/* Takes a view's effect apart, unless it is; its words live as long as the view. */
void window_write_open(struct window_write *write);

/* The key's writes by their members. NULL: it is not hot; with `makes` it is from now on. Valid
 * until the window changes. */
struct hot_key *window_hot(struct window *w, int db, struct slice key, bool makes);
/* The stamp of the last flush that the database has seen, 0 when none is here. Cheap. */
uint64_t window_last_flush(const struct window *w, int db);

/* Stamp up to which writes may be missing. */
uint64_t window_floor(const struct window *w);
/* The stamp of the oldest unit that is here; UINT64_MAX: there is none. */
uint64_t window_oldest(const struct window *w);
/* True when a unit with this dot may be put in: its stamp is above those of its origin that are
 * here. */
bool window_follows(const struct window *w, struct dot dot);
/* True when every applied write of keys that `cover` does not cover is here. */
bool window_holds_beyond(const struct window *w, const struct version_vector *cover);
/* True when a state of the key, with this stamp and cover, can be begun from: every client's write
 * that it does not cover is here, and no later state of the key has left. States of other keys that
 * have left do not matter: so a window that holds fewer states than there are nodes does as well.
 */
bool window_holds_for_state(const struct window *w, int db, struct slice key,
                            const struct version_vector *cover, uint64_t stamp);
/* Calls `visit` for the states that wait, open; it changes nothing here. */
typedef void (*window_visit_state_fn)(const struct window_write *state, int db, void *context);
void window_each_waiting(const struct window *w, window_visit_state_fn visit, void *context);
/* Calls `visit` for the keys of a database (-1: of all) that have something here; it changes
 * nothing here. */
typedef void (*window_visit_fn)(int db, struct slice key, void *context);
void window_each(const struct window *w, int db, window_visit_fn visit, void *context);
/* The same for some keys of all databases, from `cursor` on (0 starts); returns the next cursor, 0
 * at the end. What has something here throughout is visited, once or more often. */
uint64_t window_scan(const struct window *w, uint64_t cursor, window_visit_fn visit, void *context);
size_t window_bytes(const struct window *w);

#endif
