/* The merge: puts each write where it belongs in the one order of all writes, however late it comes
 * (DESIGN.md, "Late writes"). It decides and has others run: the data are behind an executor,
 * which the server and the simulation each give their own.
 *
 * The content of a key is a function of the set of its writes that are known here:
 *   B   the last state on top of which there is no *whole* write of a client; on top of a state are
 *       the clients' writes that it does not cover, unless they are older than the last whole write
 *       that its maker knew;
 *   W   the last whole write of a client, where there is no B;
 *   the content is B with, in order, what is on top of it; or W with what is after it.
 * While nothing comes late that is what running each write as it comes gives. What comes late is
 * put in by the cheapest exact way (enum merge_plan); where there is none the key is in conflict.
 *
 * State: keyspace (exclusive mode); one unit is one hold. */
#ifndef ACTIVE_MERGE_H
#define ACTIVE_MERGE_H

#include "base/buf.h"
#include "keyspace/key.h"
#include "active/conflicts.h"
#include "active/libraries.h"
#include "active/origins.h"
#include "active/unit.h"
#include "active/window.h"

/* Gets keys; see merge_executor.flush. */
typedef void (*merge_key_fn)(int db, struct slice key, void *argument);
/* Gets elements of a list, which changes nothing; false: no more. See merge_executor.elements. */
typedef bool (*merge_element_fn)(struct slice element, void *argument);

/* The data. No deadline: 0. */
struct merge_executor {
    /* Runs a command; false when it fails (an error reply). Nothing is told to anybody. */
    bool (*run)(void *context, int db, int argc, const struct slice *argv);
    /* True when what was run last has changed anything. */
    bool (*changed)(void *context);
    /* Deletes the keys of a database (-1: of all) whose dot is below `before`, and names the
     * others.
     */
    void (*flush)(void *context, int db, struct dot before, merge_key_fn kept, void *argument);
    bool (*exists)(void *context, int db, struct slice key);
    bool (*has_deadline)(void *context, int db, struct slice key);
    /* True when the member has a deadline of its own. */
    bool (*has_member_deadline)(void *context, int db, struct slice key, struct slice member);
    /* True when what a KEYDB.EXPIRED names, a key or a member, is there, with whatever deadline. */
    bool (*survives)(void *context, int db, int argc, const struct slice *argv);
    /* True when the member's score is an integer below 2^53: sums of such do not depend on order.
     */
    bool (*is_integer)(void *context, int db, struct slice key, struct slice member);
    /* The dot of the key's last write; {0, 0} when the key is missing or has none. */
    struct dot (*dot)(void *context, int db, struct slice key);
    /* The key, where it is there, has this dot from now on, unless its own is later. */
    void (*touch)(void *context, const struct origins *o, int db, const struct key *key,
                  struct dot dot);
    /* Shows a list's elements from its head (`left`) or its tail on, as long as `visit` wants more;
     * none where the key is no list. NULL: what is late in lists has no rule of its own. */
    void (*elements)(void *context, int db, struct slice key, bool left, merge_element_fn visit,
                     void *argument);
    /* The key's content as bytes, the same for the same content; false when it is missing. */
    bool (*dump)(void *context, int db, struct slice key, int64_t *deadline_ms,
                 struct buf *payload);
    /* The reverse; an empty payload: the key is missing. False when the payload is bad: then the
     * key is as it was. */
    bool (*load)(void *context, int db, struct slice key, int64_t deadline_ms,
                 struct slice payload);
    /* Appends what tells the key's content, deadlines included, from any other (at most 64 bytes,
     * the same on each node); false when it is missing, or of a type that has none. NULL: none has.
     */
    bool (*digest)(void *context, int db, struct slice key, struct buf *out);
    /* True when the key, which is there, holds what the payload does in other bytes; NULL: bytes
     * are always the same. */
    bool (*same)(void *context, int db, struct slice key, struct slice payload);
};

/* How a write is put in. */
enum merge_plan {
    MERGE_RUN,     /* it is the last: run it */
    MERGE_OVER,    /* something behind it makes it void */
    MERGE_REPEAT,  /* run it, then what it changes below later writes of its members */
    MERGE_REFOLD,  /* begin from the base, and run all that is above it */
    MERGE_GUESS,   /* no exact way: run it, with what is behind it if it is whole, in conflict */
    MERGE_NEITHER, /* no exact way, and what is here is later: leave it, in conflict */
    MERGE_PLANS,
};

/* Test seams: each breaks one rule, and the simulation has to find it. */
enum merge_break {
    MERGE_BREAK_REPEAT = 1 << 0,   /* later writes of a member are not run again */
    MERGE_BREAK_STAMP = 1 << 1,    /* of equal members the one that came last wins */
    MERGE_BREAK_COVER = 1 << 2,    /* a state is thought to cover one write less of each origin */
    MERGE_BREAK_FLOOR = 1 << 3,    /* what has left the window is thought never to have been */
    MERGE_BREAK_WHOLE = 1 << 4,    /* a late whole write is run without those behind it */
    MERGE_BREAK_CONFLICT = 1 << 5, /* conflicts are not noted */
    MERGE_BREAK_CAUSES = 1 << 8,   /* a state does not wait for what it covers */
    /* Breaks nothing: each late write is looked at together with all of its key. */
    MERGE_BREAK_SHORT = 1 << 6,
    /* Nor does this: no key is hot. */
    MERGE_BREAK_HOT = 1 << 7,
};

struct merge {
    struct origins *origins;
    uint16_t self; /* the index of our origin; 0: not known */
    struct window *window;
    struct conflicts *conflicts;
    const struct version_vector *met; /* what data sets that were merged had; NULL: none was */
    /* While a data set is merged: whose last writes of keys say that all before them is known. */
    struct version_vector *known_to_us, *known_to_them;
    struct libraries *libraries; /* who uses the merge settles them; NULL: there are none */
    const struct merge_executor *executor;
    void *context;   /* the executor's */
    unsigned broken; /* enum merge_break */
    /* We do not forward, as nobody in our mesh will (multi-master-no-forward): a state does not
     * wait for long, for what it covers may never come. */
    bool directly;
    uint64_t plans[MERGE_PLANS]; /* how often each was chosen, INFO */
    uint64_t conflicts_seen;     /* conflicts seen */
};

/* Writes that one refold may run; a key with more above its base is in conflict. */
#define MERGE_REFOLD_MAX 4096

/* True when all commands are such that a node may tell them: else the link is to be closed. Enters
 * origins that states name. */
bool merge_acceptable(const struct merge *m, const struct unit *unit) MUST_CHECK;
/* Applies a peer's unit that is the next of its origin; the position is advanced. The unit was
 * found acceptable. */
void merge_apply(struct merge *m, struct unit *unit, int64_t now_ms);
/* The positions have moved otherwise: states that have waited for that are taken. */
void merge_take_waiting(struct merge *m, int64_t now_ms);
/* Our data set is told to somebody, whole, as it is now. States that wait are none of it, and he
 * will not get them: ours is told, though they may be taken before. */
void merge_data_told(const struct merge *m, int64_t now_ms);
/* A unit of our own, whose commands have been run already. True when it may tell of keys that are
 * gone. */
bool merge_own(struct merge *m, struct unit *unit);
/* The same if it is a SET and nothing else; false, and nothing done, if not. */
bool merge_own_set(struct merge *m, struct unit *unit) MUST_CHECK;
/* The command by which this node tells its content of a key, to be the next unit of its own. */
void merge_state(const struct merge *m, int db, struct slice key, struct buf *out);

/* The same by digests: one key's words are appended, false where only a state will do; and the
 * command of so many, of one database, in the hold in which their words were made. */
bool merge_put_digest(const struct merge *m, int db, struct slice key,
                      struct buf *words) MUST_CHECK;
void merge_digests(const struct merge *m, int count, struct slice words, struct buf *out);
/* Keys of one such command. */
#define MERGE_DIGESTS_MAX 64

/* ---- MERGE: somebody's whole data set, key by key ---- */

/* What the other side had when it told the data set. */
struct merge_snapshot {
    const struct version_vector *positions;
    uint64_t clock;
    /* Ours when it was asked for. What came since then (the frames before it) was run on what
     * lacked the data set, so having it says nothing about a key's content; unless another data
     * set had it (merge.met). NULL: as they are at the beginning. */
    const struct version_vector *had;
};
/* Before the first key. States that waited for what the data set has are taken; from now on the
 * window counts what their positions cover as gone, for some keys have it already: what comes late
 * is handled with care. Between this and merge_snapshot_end our own writes go on, and peers' units
 * that those positions do not cover; the others wait, and so do states of ours, which could not say
 * what they cover. */
void merge_snapshot_begin(struct merge *m, const struct merge_snapshot *snapshot, int64_t now_ms);
/* A key as the other side has it (empty payload: it has none), decided against ours. Call it for
 * every key there, and for every other one that was here or in the window at the beginning, before
 * merge_snapshot_end. False when a payload is bad. */
bool merge_snapshot_key(struct merge *m, const struct merge_snapshot *snapshot, int db,
                        struct slice key, struct dot dot, int64_t deadline_ms, struct slice payload,
                        int64_t now_ms) MUST_CHECK;
/* All keys were merged: positions are the greater of both now (merge_take_waiting). */
void merge_snapshot_end(struct merge *m, const struct merge_snapshot *snapshot);
/* It does not end, for the node does: what it held is freed. */
void merge_snapshot_forget(struct merge *m);

#endif
