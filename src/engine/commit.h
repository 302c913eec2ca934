/* The seam between the append-only file (persist/) and those who reply: how far the log of writes
 * has come, and how much of it is safe. Positions count bytes from the start of the process.
 *
 * While commit_gated (appendfsync always), a reply to a write leaves when commit_synced has reached
 * the position that commit_appended had after the write. Whoever waits for that has himself told by
 * the listener. State: positions are atomic, changed by the holder of the keyspace lock in
 * exclusive mode (appended) and by the log's thread (synced); the listener is set at boot. */
#ifndef ENGINE_COMMIT_H
#define ENGINE_COMMIT_H

#include "base/compiler.h"
#include "base/futex.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct commit_state {
    ALIGNED(CACHE_LINE_BYTES) _Atomic uint64_t appended;
    ALIGNED(CACHE_LINE_BYTES) _Atomic uint64_t synced;
    _Atomic uint32_t asleep;                      /* the log's thread waits for work: futex */
    ALIGNED(CACHE_LINE_BYTES) _Atomic bool gated; /* this line changes rarely */
    _Atomic bool crowded; /* more waits to be written than memory is good for */
};
extern struct commit_state commit;

/* True while replies to writes wait for the sync that covers them. */
static inline bool commit_is_gated(void)
{
    return unlikely(atomic_load_explicit(&commit.gated, memory_order_relaxed));
}
/* The position behind all that was written to the log so far, the caller's last hold included. */
static inline uint64_t commit_appended(void)
{
    return atomic_load_explicit(&commit.appended, memory_order_acquire);
}
/* What is before this position is on the disk. */
static inline uint64_t commit_synced(void)
{
    return atomic_load_explicit(&commit.synced, memory_order_acquire);
}
/* After a hold in which the log has grown, without lock: its thread is to look. */
void commit_kick(void);
/* Waits, without lock, while the disk is far behind: for a bounded time. */
void commit_yield(void);
/* True when commit_yield would wait. */
static inline bool commit_is_crowded(void)
{
    return unlikely(atomic_load_explicit(&commit.crowded, memory_order_relaxed));
}

/* Called by the log's thread whenever commit_synced has grown; holds no lock, must not wait. Boot.
 */
void commit_set_listener(void (*listener)(void));
/* For the log: raises commit_synced to `position`, and tells. */
void commit_advance(uint64_t position);

#endif
