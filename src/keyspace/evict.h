/* Eviction: keeps the process within maxmemory by deleting keys, as maxmemory-policy says.
 *
 * Each thread that makes memory grow looks after it: before a batch it asks evict_due(), which
 * costs one load without a limit, and with one compares what the thread has allocated since its
 * last look with a part of what was left then (the lease), so that all threads' leases together
 * stay within the limit. A look adds up the threads' counters; where too much is in use, it evicts
 * in rounds: sample under the lock in shared mode, delete a few keys in exclusive mode, free them
 * outside, look again, for as long as maxmemory-eviction-tenacity allows. Several threads may do so
 * at once.
 *
 * Whom: every thread walks each database's table from a random place on and looks at
 * maxmemory-samples entries for each key that it evicts; the best of all it has met wait in a pool
 * of its own. A table's order is that of the hashes, so a walk is a random sample, and neighbouring
 * buckets are cheap to read. The pool remembers entries by hash and address and never looks at an
 * address before it has found it in the table again; who was used meanwhile is dropped from it. The
 * random policies draw a new place each time. Where few keys have an expiry, the volatile policies
 * walk over many that have none, a bounded number in each hold.
 *
 * State: limit and settings are world; pool, walk and lease are thread-owned; what INFO shows is
 * atomic. */
#ifndef KEYSPACE_EVICT_H
#define KEYSPACE_EVICT_H

#include "base/compiler.h"
#include "base/option.h"
#include "keyspace/lock.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum evict_result {
    EVICT_WITHIN,  /* the memory in use is within the limit */
    EVICT_RUNNING, /* it is not yet, and there is more to evict: time was up */
    EVICT_FAILED, /* it is not, and nothing may be evicted: commands with CMD_DENYOOM are refused */
};

/* maxmemory in bytes, 0: no limit. World; hot, hence a variable. */
extern int64_t evict_limit_bytes;
/* The outcome of the latest look of any thread was EVICT_FAILED. */
extern _Atomic bool evict_failing;
/* Boot: who is called, by any thread and without the keyspace lock, after evict_failing has
 * changed. Calls may cross: what counts is the variable. */
void evict_set_listener(void (*changed)(void));

/* The slow part of evict_due. */
bool evict_look_is_due(void);
/* True when the calling thread has to call evict_run before it goes on. */
static inline bool evict_due(void)
{
    return unlikely(evict_limit_bytes != 0) && evict_look_is_due();
}
/* True when the calling thread has allocated so much since its last look that it must look again
 * even in the middle of a batch, between two calls. */
bool evict_has_outgrown(void);
/* Looks, and evicts as long as there is need and time. The calling thread frees what it has
 * collected (reclaim_run). Nothing is evicted while eviction is suspended: EVICT_WITHIN then. */
enum evict_result evict_run(int64_t now_ms) EXCLUDES(keyspace_lock);
/* Cron: the same for a server where nobody writes, for up to `budget_us`, if two looks in
 * succession find too much in use; and, for as long again,
 * what force-eviction-percent wants: while the machine as a whole uses more of its memory, keys go,
 * as the policy says, but nothing is refused. */
void evict_cron(int64_t now_ms, int64_t budget_us) EXCLUDES(keyspace_lock);
/* While suspended nothing is evicted and nothing refused (CLIENT PAUSE, loading). Any thread. */
void evict_suspend(bool suspended);
/* The same while the server follows another one, which tells what goes (unless
 * replica-ignore-maxmemory says otherwise). Any thread. */
void evict_set_elsewhere(bool elsewhere);

#define EVICT_EXEMPT_MAX 4
/* Boot: memory that is not counted against the limit: buffers that evicting makes longer, so that
 * counting them would never end. Who tells how much it is (any thread that is awake, no lock; must
 * be quick). At most EVICT_EXEMPT_MAX; once is enough. */
void evict_exempt(size_t (*bytes)(void));
/* Bytes in use that are counted against the limit: all but that, and what is on its way to be freed
 * by the background thread. Awake. */
size_t evict_counted_bytes(void);
/* How long memory has been over the limit, milliseconds: in all, the present time included, and the
 * present time alone (0: it is not). */
void evict_exceeded_ms(uint64_t *total_ms, uint64_t *current_ms);
/* CONFIG RESETSTAT. */
void evict_reset_stats(void);

/* maxmemory, maxmemory-samples, maxmemory-eviction-tenacity, force-eviction-percent,
 * replica-ignore-maxmemory. */
extern const struct option evict_options[];

#endif
