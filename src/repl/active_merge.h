/* The merge: puts each write where it belongs in the one order of all writes, however late it comes
 * (README, "A write that is late"). It decides and has others run: the data are behind an executor,
 * which the server and the simulation each give their own.
 *
 * The content of a key is a function of the set of its writes that are known here:
 *   B   the last state on top of which there is no *whole* write of a client; on top of a state are
 *       the clients' writes that it does not cover, unless they are older than the last whole write
 *       that its maker knew;
 *   W   the last whole write of a client, where there is no B;
 *   the content is B with, in order, what is on top of it; or W with what is after it.
 * While nothing comes late that is what running each write as it comes gives. What comes late is
 * put in by the cheapest exact way (enum active_plan); where there is none the key is disputed.
 *
 * State: keyspace (exclusive mode); one unit is one hold. */
#ifndef REPL_ACTIVE_MERGE_H
#define REPL_ACTIVE_MERGE_H

#include "base/buf.h"
#include "repl/active_disputes.h"
#include "repl/active_origins.h"
#include "repl/active_unit.h"
#include "repl/active_window.h"

/* Gets keys; see active_executor.flush. */
typedef void (*active_key_fn)(int db, struct slice key, void *argument);

/* The data. No deadline: 0. */
struct active_executor {
    /* Runs a command; false when it fails (an error reply). Nothing is told to anybody. */
    bool (*run)(void *context, int db, int argc, const struct slice *argv);
    /* Deletes the keys of a database (-1: of all) whose dot is below `before`, and names the
     * others.
     */
    void (*flush)(void *context, int db, struct active_dot before, active_key_fn kept,
                  void *argument);
    bool (*exists)(void *context, int db, struct slice key);
    bool (*has_deadline)(void *context, int db, struct slice key);
    /* True when the member's score is an integer below 2^53: sums of such do not depend on order.
     */
    bool (*is_integer)(void *context, int db, struct slice key, struct slice member);
    /* The dot of the key's last write; {0, 0} when the key is missing or has none. */
    struct active_dot (*dot)(void *context, int db, struct slice key);
    void (*set_dot)(void *context, int db, struct slice key, struct active_dot dot);
    /* The key's content as bytes, the same for the same content; false when it is missing. */
    bool (*dump)(void *context, int db, struct slice key, int64_t *deadline_ms,
                 struct buf *payload);
    /* The reverse; an empty payload: the key is missing. False when the payload is bad: then the
     * key is as it was. */
    bool (*load)(void *context, int db, struct slice key, int64_t deadline_ms,
                 struct slice payload);
    /* True when the key, which is there, holds what the payload does in other bytes; NULL: bytes
     * are always the same. */
    bool (*same)(void *context, int db, struct slice key, struct slice payload);
};

/* How a write is put in. */
enum active_plan {
    ACTIVE_RUN,     /* it is the last: run it */
    ACTIVE_OVER,    /* something behind it makes it void */
    ACTIVE_REPEAT,  /* run it, then what it changes below later writes of its members */
    ACTIVE_REFOLD,  /* begin from the base, and run all that is above it */
    ACTIVE_GUESS,   /* no exact way: run it, disputed */
    ACTIVE_NEITHER, /* no exact way, and what is here is later: leave it, disputed */
    ACTIVE_PLANS,
};

/* Test seams: each breaks one rule, and the simulation has to find it. */
enum active_break {
    ACTIVE_BREAK_REPEAT = 1 << 0, /* later writes of a member are not run again */
    ACTIVE_BREAK_STAMP = 1 << 1,  /* of equal members the one that came last wins */
    ACTIVE_BREAK_COVER = 1 << 2,  /* a state is thought to cover one write less of each origin */
    ACTIVE_BREAK_FLOOR = 1 << 3,  /* what has left the window is thought never to have been */
    ACTIVE_BREAK_WHOLE = 1 << 4,  /* a late whole write is run without those behind it */
    ACTIVE_BREAK_DISPUTE = 1 << 5 /* disputes are not noted */
};

struct active_merge {
    struct active_origins *origins;
    struct active_window *window;
    struct active_disputes *disputes;
    const struct active_executor *executor;
    void *context;                /* the executor's */
    unsigned broken;              /* enum active_break */
    uint64_t plans[ACTIVE_PLANS]; /* how often each was chosen, INFO */
    uint64_t disputed;            /* disputes seen */
};

/* Writes that one refold may run; a key with more above its base is disputed. */
#define ACTIVE_REFOLD_MAX 4096

/* True when all commands are such that a node may tell them: else the link is to be closed. Enters
 * origins that states name. */
bool active_merge_acceptable(const struct active_merge *m,
                             const struct active_unit *unit) MUST_CHECK;
/* Applies a peer's unit that is the next of its origin; the position is advanced. The unit was
 * found acceptable. */
void active_merge_apply(struct active_merge *m, struct active_unit *unit, int64_t now_ms);
/* A unit of our own, whose commands have been run already. */
void active_merge_own(struct active_merge *m, struct active_unit *unit);
/* The command by which this node tells its content of a key, to be the next unit of its own. */
void active_merge_state(const struct active_merge *m, int db, struct slice key, struct buf *out);

/* ---- MERGE: somebody's whole data set, key by key ---- */

/* What the other side had when it told the data set. */
struct active_meeting {
    const struct active_cover *positions;
    uint64_t clock;
};
/* Before the first key. From now on the window counts what their positions cover as gone, for some
 * keys have it already: what comes late is met with care. Between this and active_merge_met our own
 * writes go on, and peers' units that those positions do not cover; the others wait, and so do
 * states of ours, which could not say what they cover. */
void active_merge_meet_begin(struct active_merge *m, const struct active_meeting *meeting);
/* A key as the other side has it (empty payload: it has none), decided against ours. Call it for
 * every key there, and for every other one that was here or in the window at the beginning, before
 * active_merge_met. False when a payload is bad. */
bool active_merge_meet(struct active_merge *m, const struct active_meeting *meeting, int db,
                       struct slice key, struct active_dot dot, int64_t deadline_ms,
                       struct slice payload, int64_t now_ms) MUST_CHECK;
/* All keys were met: positions are the greater of both now. */
void active_merge_met(struct active_merge *m, const struct active_meeting *meeting);

#endif
