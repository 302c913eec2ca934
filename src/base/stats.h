/* Counters of the whole server, kept for each thread in lines of its own and summed when somebody
 * asks. State: atomic; a thread only writes its own line, relaxed, without a locked instruction. */
#ifndef BASE_STATS_H
#define BASE_STATS_H

#include "base/compiler.h"
#include "base/thread.h"

#include <stdatomic.h>
#include <stdint.h>

enum counter {
    STAT_COMMANDS,         /* total_commands_processed */
    STAT_CONNECTIONS,      /* total_connections_received */
    STAT_REJECTED,         /* rejected_connections */
    STAT_NET_INPUT_BYTES,  /* total_net_input_bytes */
    STAT_NET_OUTPUT_BYTES, /* total_net_output_bytes */
    STAT_READS,
    STAT_WRITES, /* total_reads_processed, total_writes_processed: system calls */
    STAT_KEYSPACE_HITS,
    STAT_KEYSPACE_MISSES,
    STAT_EXPIRED_KEYS,
    STAT_EXPIRED_MEMBERS, /* expired_subkeys: fields of hashes, members of sets */
    STAT_EXPIRED_STALE,   /* by access or sweep; keys the sweep found */
    STAT_EXPIRE_CYCLE_US, /* time in the expiry sweep */
    STAT_EVICTED_KEYS,
    STAT_EVICTED_CLIENTS,
    STAT_QUERY_LIMIT_CLOSED,
    STAT_OUTPUT_LIMIT_CLOSED,
    STAT_LAZYFREED, /* entries freed in the background */
    STAT_TURNS,
    STAT_BATCHES,
    STAT_BATCH_COMMANDS,
    STAT_BATCH_MAX,
    STAT_SHARED_CALLS, /* calls of batches that ran under the lock in that mode */
    STAT_EXCLUSIVE_CALLS,
    STAT_ACCEPT_ERRORS,
    STAT_CLIENTS_MOVED,
    STAT_DIRTY, /* changes of data since boot; rdb_changes_since_last_save later */
    STAT_SYNC_FULL,
    STAT_SYNC_PARTIAL_OK,
    STAT_SYNC_PARTIAL_REFUSED,
    STAT_REPL_OUTPUT_BYTES, /* to replicas: transfers and the stream */
    STAT_REPL_INPUT_BYTES,  /* from the primary */
    STAT_FORKS,             /* total_forks: children of every kind */
    STAT_RDB_SAVES,         /* SAVE and BGSAVE, as they begin */
    STAT_AOF_REWRITES,      /* children that rewrite the AOF, as they begin */
    STAT_UNEXPECTED_ERRORS, /* of commands that the primary or the AOF has told */
    STAT_SANITIZATIONS,     /* packed values of files and payloads, each looked through */
    STAT_COUNT
};

struct stats_line {
    _Atomic uint64_t value[STAT_COUNT];
} ALIGNED(CACHE_LINE_BYTES);

extern struct stats_line stats_lines[THREAD_MAX];

/* Adds `n` to the calling thread's counter. */
static inline void stats_add(enum counter which, uint64_t n)
{
    _Atomic uint64_t *v = &stats_lines[thread_slot()].value[which];
    atomic_store_explicit(v, atomic_load_explicit(v, memory_order_relaxed) + n,
                          memory_order_relaxed);
}
/* Raises the calling thread's counter to `n` when it is below. */
static inline void stats_max(enum counter which, uint64_t n)
{
    _Atomic uint64_t *v = &stats_lines[thread_slot()].value[which];
    if (atomic_load_explicit(v, memory_order_relaxed) < n) {
        atomic_store_explicit(v, n, memory_order_relaxed);
    }
}
/* Sum over all threads; one thread's value. Any thread. */
uint64_t stats_sum(enum counter which);
/* All sums in one pass. Any thread. */
struct stats_totals {
    uint64_t value[STAT_COUNT];
};
void stats_sum_all(struct stats_totals *totals);
uint64_t stats_of_thread(unsigned slot, enum counter which);
/* CONFIG RESETSTAT: sets all but STAT_DIRTY to 0. World: the GIL is held. */
void stats_reset(void);

#endif
