/* Expiry. Logically a key, or a member with a deadline, is gone the moment its time has come
 * (db.h); here is who removes it: the thread that met it, in its next exclusive hold, and a sweep
 * in bounded slices that reads only buckets' tags. State: the notes are thread-owned, the sweep's
 * position is keyspace.
 *
 * Keys with members that have deadlines are found by the same walk as keys with an expiry, by a tag
 * of their own in the slot. An index by deadline would find them sooner (the walk takes half a
 * minute over 10 M keys at effort 1), but costs memory for each such key and work for each change
 * of a member; since reads are exact without it, only memory and events wait, as they do for keys.
 *
 * Removing members is bounded: the sweep and the notes take out EXPIRE_MEMBERS_A_HOLD in one hold.
 * A reader leaves a note before it comes again, and the turn notes the keys of writes before it
 * runs them, so that nothing is left for the command's own hold. A key whose members are all due
 * goes in one step, however many they are. What remains is a command whose keys are not known
 * beforehand (inside a script, say), or are too long to be noted: it takes out what is due of a key
 * in one hold, a third of a microsecond for each member. */
#ifndef KEYSPACE_EXPIRE_H
#define KEYSPACE_EXPIRE_H

#include "base/option.h"
#include "keyspace/db.h"

/* Members that are taken out in one hold: about 100 microseconds. */
#define EXPIRE_MEMBERS_A_HOLD 128

/* Notes an expired key, or one with due members, met under shared mode (bounded list of the calling
 * thread; what does not fit is left to the sweep), or a miss when events want it. */
void expire_note(struct db *db, const struct key *key);
/* True when the calling thread has notes. */
bool expire_has_notes(void);
/* Deletes the noted keys that are still expired, and due members: some of it, bounded; to be called
 * again in another hold while there are notes. */
void expire_run_notes(int64_t now_ms) REQUIRES(keyspace_lock);
/* Deletes one expired key: event "expired", change, propagation, counters. */
void expire_delete(struct keyref *ref) REQUIRES(keyspace_lock);

/* While set, nothing expires for the calling thread, whatever the time is: for who replays commands
 * that were run already, where what had expired is deleted by commands of its own. */
extern _Thread_local bool expire_frozen;
/* The server follows another one, which tells what is gone: here it is only hidden from who reads,
 * and neither swept nor removed by readers. Any thread. */
void expire_set_elsewhere(bool elsewhere);
/* That server does not tell what is gone, but that it is so late there (Unix milliseconds): what
 * was due by then may be swept, for whatever it says from now on it has said without. 0: it tells.
 * Looked at while another server is followed. Any thread. */
void expire_set_told_clock(int64_t ms);
bool expire_has_told_clock(void);
/* True when the time `at_ms`, which can be ENTRY_NO_EXPIRY, has come. */
static inline bool expire_is_over(int64_t at_ms, int64_t now_ms)
{
    return entry_is_over(at_ms, now_ms) && likely(!expire_frozen);
}

/* Asked before something due is removed that nobody writes to (the sweep, a reader's note), while
 * it is set: true when it has seen to that, by removing it or by leaving it where it is, hidden. On
 * active replicas one node decides for all. Boot, or world. */
typedef bool (*expire_judge)(struct keyref *ref, int64_t now_ms);
void expire_set_judge(expire_judge judge);
/* True when there is nothing more to do for what is due of the key, which is there. */
bool expire_is_judged(struct keyref *ref, int64_t now_ms) REQUIRES(keyspace_lock);

/* What is gone: a key (count 0), or members of it. All of it is the teller's. */
struct expired {
    const struct db *db;
    struct slice key;
    const struct entry *entry; /* of a key: as it was, whole */
    int64_t at_ms;        /* of a key: its deadline; ENTRY_NO_EXPIRY: those of all its members */
    enum value_type type; /* of members: what they were in */
    const struct slice *members;
    const int64_t *members_at_ms;
    int count;
    bool due; /* false: eviction has taken it */
};

/* Gets to know, under the keyspace lock in exclusive mode, what is gone because of its time, at the
 * latest when somebody who writes finds it so. A key that is only found to be gone may be told more
 * than once. Eviction tells here as well what it takes, which was not due. */
typedef void (*expire_listener)(const struct expired *x);
/* Boot: the listener (NULL: none), which is called while *wanted. */
void expire_set_listener(expire_listener listener, const bool *wanted);
/* Tells that a key is gone which this entry was; since its own time had come (`at_ms`), that of all
 * its members (ENTRY_NO_EXPIRY), or for another reason (not `due`). */
void expire_tell(const struct db *db, const struct entry *e, int64_t at_ms, bool due)
    REQUIRES(keyspace_lock);

/* The calling thread's db_read has given NULL for a key with due members under shared mode: what it
 * runs must be run again in exclusive mode. Asked after each call, hence a variable. */
extern _Thread_local bool expire_rerun;
/* True when that is so, which is forgotten then. */
static inline bool expire_must_rerun(void)
{
    bool must = expire_rerun;
    if (unlikely(must)) {
        expire_rerun = false;
    }
    return must;
}
/* Takes up to `max` due members out of the entry, which is there; events "hexpired" (hashes),
 * "srem" (sets) and "zrem" (sorted sets), once for all of them. All at once where all are due: the
 * key goes with the last one (event "del"), and ref->entry is NULL then. Returns how many went.
 * Corrects the slot's tag. */
uint64_t expire_members(struct keyref *ref, int64_t now_ms, uint64_t max) REQUIRES(keyspace_lock);
/* Deletes everything that is due, in all databases and at once (DEBUG). */
void expire_run_all(int64_t now_ms) REQUIRES(keyspace_lock);

/* One slice of the sweep over all databases, at most `budget_us` long, in holds of about 100
 * microseconds each. Returns true when it has more to do at once (much was expired). Takes the
 * keyspace lock itself. Nothing is done, and no lock taken, when no database has keys with an
 * expiry or members with deadlines. */
bool expire_sweep(int64_t now_ms, int64_t budget_us) EXCLUDES(keyspace_lock);
/* While suspended (CLIENT PAUSE) neither the sweep nor notes delete anything. Any thread. */
void expire_suspend(bool suspended);
/* True while suspended, or while another server decides (expire_set_elsewhere). Any thread. */
bool expire_is_suspended(void);
bool expire_is_elsewhere(void);
/* DEBUG SET-ACTIVE-EXPIRE. World. */
void expire_set_active(bool active);
/* Percent of keys that were found expired lately (INFO's expired_stale_perc), times the cycle ended
 * at its time limit. */
double expire_stale_percent(void);
uint64_t expire_time_cap_reached(void);

/* active-expire-effort. */
extern const struct option expire_options[];

#endif
