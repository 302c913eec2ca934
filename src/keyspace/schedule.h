/* The jobs (value/job.h) of all databases in the order in which they are to run. db.c puts them in
 * and takes them out where it does so with their keys, so that whatever moves, replaces or deletes
 * a key does the same to its job. Who runs them sleeps until the first one's time (schedule_sleep):
 * without jobs nothing ticks.
 *
 * State: keyspace; the time of the first one, and what wakes its runner, are atomic. */
#ifndef KEYSPACE_SCHEDULE_H
#define KEYSPACE_SCHEDULE_H

#include "keyspace/db.h"
#include "value/job.h"

struct scheduled {
    int64_t due_ms;
    struct db *db;
    struct job *job;
    size_t at; /* in the heap */
    uint32_t key_len;
    char key[];
};

/* ---- for db.c ---- */

/* The entry, which holds a job, is in that database now; nothing when the job was there already. */
void schedule_add(struct db *db, struct entry *e) REQUIRES(keyspace_lock);
/* It is not any more. */
void schedule_remove(struct entry *e) REQUIRES(keyspace_lock);
/* A database loses all keys; two databases exchange theirs. */
void schedule_flush(struct db *db) REQUIRES(keyspace_lock);
void schedule_swap(struct db *a, struct db *b) REQUIRES(keyspace_lock);
/* All databases are gone. */
void schedule_teardown(void);

/* ---- for who runs them ---- */

/* The job whose turn is next, NULL when there is none. */
const struct scheduled *schedule_first(void) REQUIRES(keyspace_lock);
/* The first one, which repeats, is to run at its next time after `now_ms`. */
void schedule_advance(int64_t now_ms) REQUIRES(keyspace_lock);
/* The same of all that repeat and whose time has passed: somebody else has run them. */
void schedule_skip(int64_t now_ms) REQUIRES(keyspace_lock);
/* The first one is to be looked at again at its next time, or in a while: somebody else runs it. */
void schedule_leave(int64_t now_ms) REQUIRES(keyspace_lock);
/* Whether this server is to run the job: always, but on an active replica, where the node that made
 * it does. */
typedef bool (*schedule_judge)(struct db *db, struct slice key);
void schedule_set_judge(schedule_judge judge) REQUIRES(keyspace_lock);
bool schedule_is_ours(const struct scheduled *s) REQUIRES(keyspace_lock);
/* Number of jobs. Any thread. */
uint64_t schedule_count(void);
/* Sleeps until the first job's time has come (the wall clock's, looked at once a second while there
 * are jobs), at least `least_ms`, or until schedule_wake. True when a job is due. */
bool schedule_sleep(int64_t least_ms);
void schedule_wake(void);

#endif
