/* Freeing outside the lock. What a writer unlinks goes on a list of its thread, which frees it
 * after releasing the lock; big values, and whole tables that are flushed asynchronously, go to one
 * background thread. State: the list is thread-owned, the queue is behind a leaf lock. */
#ifndef KEYSPACE_RECLAIM_H
#define KEYSPACE_RECLAIM_H

#include "base/option.h"
#include "ds/table.h"
#include "keyspace/lock.h"
#include "value/entry.h"

/* Starts and ends the background thread (the queue is emptied first). */
void reclaim_setup(void);
void reclaim_teardown(void);
/* Frees `entry_take` after the lock: by this thread, or in the background when `lazily` and freeing
 * is much work. What a module must free goes at once where it does not go in the background: its
 * code runs alone. Exclusive mode. */
void reclaim_entry(struct entry *entry_take, bool lazily);
/* The same; where freeing it takes long (reclaim_is_long), what the thread frees together with it
 * is a step of that name (base/spike.h). */
void reclaim_entry_as(struct entry *entry_take, bool lazily, const char *spike);
/* True in the background thread. */
bool reclaim_is_background(void);
/* True when freeing it would keep the thread's other clients waiting: less is freed sooner than the
 * background thread is woken. */
bool reclaim_is_long(const struct entry *entry);
/* The same with a whole table of entries (moved out of its owner). */
void reclaim_table(struct table *table_take, bool lazily);
/* Has `release` called with `state_take`, which it frees: by the background thread while there is
 * one, else at once. Any thread, any lock. */
void reclaim_call(void (*release)(void *state), void *state_take);
/* Frees what this thread has collected. No lock held. Called after each hold. */
void reclaim_run(void);
/* True when reclaim_run has something to do. */
bool reclaim_has_work(void);
/* Frees a block (mem_free) when nobody peeks any more who may have found it: tables' buckets and
 * maps. The caller has unpublished it, or holds the keyspace lock exclusively until it has. Any
 * thread. */
void reclaim_retire(void *block_take);
/* Peekers hold this lock in shared mode (the GIL: a server thread that is awake). Boot. */
void reclaim_set_peekers(const struct brlock *lock);
/* Cron: frees what was retired before everybody who peeked then has let go of that lock. */
void reclaim_retired(int64_t wall_ms) EXCLUDES(keyspace_lock);
/* Entries waiting for the background thread, and the bytes of those of them that were handed over
 * one by one (estimated; of whole tables nobody knows). */
uint64_t reclaim_pending(void);
size_t reclaim_pending_bytes(void);

/* lazyfree-lazy-eviction, -expire, -server-del, -user-del, -user-flush. */
extern const struct option reclaim_options[];
/* What they say. */
bool reclaim_lazy_eviction(void);
bool reclaim_lazy_expire(void);
bool reclaim_lazy_server_del(void);
bool reclaim_lazy_user_del(void);
bool reclaim_lazy_user_flush(void);

#endif
