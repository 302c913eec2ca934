/* Ranked leaf locks: short critical sections of a few lines, out of which nothing is called. Spin
 * briefly, then park on a futex; not recursive, not first come first served. In debug builds each
 * lock knows its owner, and taking one whose rank is not above all that the thread holds aborts:
 * the order of ranks is the lock order. State: the lock itself is atomic. */
#ifndef BASE_LOCK_H
#define BASE_LOCK_H

#include "base/compiler.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Lock order, outermost first (DESIGN, 3). The GIL and the keyspace lock are big-reader locks
 * (brlock.h) and take part in the check with their ranks. */
enum lock_rank {
    LOCK_RANK_GIL = 1,
    LOCK_RANK_KEYSPACE,
    LOCK_RANK_REPLICAS,
    LOCK_RANK_CLIENTS,
    LOCK_RANK_AOF_FILE,
    LOCK_RANK_AOF,
    LOCK_RANK_DURABLE,
    LOCK_RANK_RESERVE,
    LOCK_RANK_PUBSUB,
    LOCK_RANK_TRACKING,
    LOCK_RANK_MODULES,
    LOCK_RANK_BUSY,
    LOCK_RANK_STATS,
    LOCK_RANK_SLOWLOG,
    LOCK_RANK_LATENCY,
    LOCK_RANK_ACL_LOG,
    LOCK_RANK_MONITOR,
    LOCK_RANK_FREE_QUEUE,
    LOCK_RANK_CONFIG,
    LOCK_RANK_LOG,
    LOCK_RANK_TEST,
};

/* Locks live forever: once taken, they are known to lock_take_all. */
struct CAPABILITY("lock") lock {
    _Atomic uint32_t word; /* 0 free, 1 held, 2 held and somebody parked */
    uint16_t rank;
    uint16_t owner_slot; /* debug: 1 + slot of the owner thread; 0 free */
    const char *name;
    _Atomic bool known; /* is on the list of all */
    bool taken;         /* by lock_take_all; its holder's */
    struct lock *next_known;
};

/* A static initialiser. */
#define LOCK_INIT(lock_rank, lock_name)                                                            \
    {                                                                                              \
        .word = 0, .rank = (lock_rank), .name = (lock_name)                                        \
    }

/* Waits for the lock. */
void lock_acquire(struct lock *l) ACQUIRE(l);
/* Releases it; only its holder may. */
void lock_release(struct lock *l) RELEASE(l);

/* Around a fork whose child goes on to take locks: takes every lock that was ever taken, in the
 * order of ranks, so that nothing behind them is half changed in the child; and lets go of them, to
 * be called in the parent and in the child. Meanwhile nobody takes any lock, this thread included.
 * The caller holds none. */
void lock_take_all(void);
void lock_let_go_of_all(void);

/* From now on the calling thread, the only one of a forked child, takes no lock: another thread of
 * the parent may have held it. Debug builds abort when it does; in release builds nothing checks.
 */
void lock_forbid(void);

/* Debug bookkeeping for all ranked locks, also big-reader ones; no-ops in release builds. */
void lock_rank_push(uint16_t rank, const char *name);
void lock_rank_pop(uint16_t rank);
/* Debug: aborts unless the calling thread holds a lock of that rank. */
void lock_rank_assert_held(uint16_t rank);

#endif
