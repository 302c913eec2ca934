/* The window: the writes that may still be overtaken, found by the keys that they touch.
 *
 *   key (database, name) -> [ piece of a unit, in the order of writes ]
 *
 * Invariants: (1) a key's pieces are sorted by the one order of writes, within a unit by command;
 * (2) of each origin the window holds every applied write above `swept`, and none up to it; (3) no
 * write with a stamp above `floor` was ever left out. So what is in the window after a stamp above
 * the floor is all there is.
 *
 * State: keyspace (exclusive mode). */
#ifndef REPL_ACTIVE_WINDOW_H
#define REPL_ACTIVE_WINDOW_H

#include "repl/active_class.h"
#include "repl/active_origins.h"
#include "repl/active_unit.h"

#include <stddef.h>

struct active_window;

/* KEYDB.STATE key deadline payload positions whole: what a node has of a key, with the positions
 * that it had, and the stamp of the key's last whole write that it knew of (0: none). */
#define ACTIVE_STATE_WORDS 6
#define ACTIVE_STATE_WHOLE 5

/* A piece of a key, taken apart for looking at. */
struct active_write {
    struct active_dot dot;
    uint32_t number; /* of its command in the unit */
    struct active_piece piece;
    const struct active_cover *cover; /* of a state, else NULL */
    int argc;
    struct slice *argv;
    struct active_unit *unit;
    uint32_t offset;
};

/* What stands in the window for a key, in order. */
struct active_view {
    struct active_write *writes;
    uint32_t count, capacity;
};

/* A window over those origins; it takes at most so many bytes of units. */
struct active_window *active_window_create(const struct active_origins *o, size_t bytes_max);
void active_window_destroy(struct active_window **w);

/* Puts a piece of a unit in; units of an origin come in the order of their sequences. `cover_take`
 * for a state, else NULL. */
void active_window_add(struct active_window *w, struct active_unit *unit,
                       const struct active_command *command, const struct active_piece *piece,
                       struct active_cover *cover_take);
/* The unit is in: what is beyond the bound goes, oldest first. A unit without pieces counts too. */
void active_window_close(struct active_window *w, struct active_unit *unit);
/* Drops what has a stamp up to `stable`. */
void active_window_sweep(struct active_window *w, uint64_t stable);
/* Positions were taken over without the writes (a file, MERGE) of somebody whose clock was this. */
void active_window_skip(struct active_window *w, const struct active_cover *positions,
                        uint64_t clock);

/* The stamp of the last write of the key, 0 when it has none here. Cheap. */
uint64_t active_window_last(const struct active_window *w, int db, struct slice key);
/* All writes of the key, flushes of its database among them. The caller frees the view. */
void active_window_view(const struct active_window *w, int db, struct slice key,
                        struct active_view *view);
void active_view_deinit(struct active_view *view);
/* Takes a piece apart; the caller frees its argv. */
void active_write_open(struct active_write *write);

/* Stamp up to which writes may be missing. */
uint64_t active_window_floor(const struct active_window *w);
/* True when every applied write that `cover` does not cover is here. */
bool active_window_holds_beyond(const struct active_window *w, const struct active_cover *cover);
/* Calls `visit` for the keys of a database (-1: of all) that have something here; it changes
 * nothing here. */
typedef void (*active_window_visit_fn)(int db, struct slice key, void *context);
void active_window_each(const struct active_window *w, int db, active_window_visit_fn visit,
                        void *context);
/* The same for some keys of all databases, from `cursor` on (0 starts); returns the next cursor, 0
 * at the end. What has something here throughout is visited. */
uint64_t active_window_scan(const struct active_window *w, uint64_t cursor,
                            active_window_visit_fn visit, void *context);
size_t active_window_bytes(const struct active_window *w);

#endif
