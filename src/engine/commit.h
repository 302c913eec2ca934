/* The seam between the append-only file (persist/) and those who reply: how far the log of writes
 * has come, and how much of it is safe. Positions count bytes from the start of the process.
 *
 * Two answers to "how much is safe": commit_synced is what replies to writes wait for; while syncs
 * are left out on the user's wish (no-appendfsync-on-rewrite) it follows what is written.
 * commit_is_on_disk is what WAITAOF promises: a sync that is believed covers it, and together with
 * the files before it the data set comes back (COMMIT_LOGS).
 *
 * While commit_gated (appendfsync always), a reply to a write leaves when commit_synced has reached
 * the position that commit_appended had after the write. Whoever waits for that has himself told by
 * the listener. Otherwise it leaves when commit_written has: who replies sees to it by
 * commit_write, and who tells a primary or peer what has come from there by commit_put.
 *
 * While the log fails (a full disk, a sync that failed) what stands behind commit_doomed becomes
 * safe later or never: who waits for it is told that, and not that it is done. What is sent
 * meanwhile is refused (GATE_AOF_FAILED). State: positions are atomic, changed by the holder of the
 * keyspace lock in exclusive mode (appended) and by the log (written, synced, on_disk, doomed); the
 * kind of log changes while the world stands or the data set is loaded; listener and writer are set
 * at boot. */
#ifndef ENGINE_COMMIT_H
#define ENGINE_COMMIT_H

#include "base/compiler.h"
#include "base/futex.h"
#include "base/slice.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum commit_log {
    COMMIT_NO_LOG, /* appendonly no */
    COMMIT_WAITS,  /* there is no base yet that holds what is in memory: nothing is safe */
    COMMIT_LOGS,
};

/* What calls wait for that wait for commit_is_on_disk (block.h). */
extern const struct slice commit_event;

struct commit_state {
    ALIGNED(CACHE_LINE_BYTES) _Atomic uint64_t appended;
    ALIGNED(CACHE_LINE_BYTES) _Atomic uint64_t synced;
    _Atomic uint32_t asleep; /* the log's thread waits for work: futex */
    _Atomic uint64_t written, on_disk;
    _Atomic bool watched;                         /* somebody waits for commit_event */
    ALIGNED(CACHE_LINE_BYTES) _Atomic bool gated; /* this line changes rarely */
    _Atomic int log;                              /* enum commit_log */
    _Atomic uint32_t log_changes;                 /* how often it has changed */
    _Atomic uint64_t doomed;                      /* UINT64_MAX: nothing is */
    _Atomic uint32_t faults;                      /* odd while the log fails */
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
/* Replies to writes before this position may leave. */
static inline uint64_t commit_synced(void)
{
    return atomic_load_explicit(&commit.synced, memory_order_acquire);
}
/* Replies to writes behind this position need not be waited for; UINT64_MAX while the log works. */
static inline uint64_t commit_doomed(void)
{
    return atomic_load(&commit.doomed);
}
/* How often the log has begun or ceased to fail: odd while it does. As long as it is odd and the
 * same, no client's write was let in: the gate is shut before it becomes odd, and opened after. */
static inline uint32_t commit_faults(void)
{
    return atomic_load_explicit(&commit.faults, memory_order_acquire);
}
/* True when what is before this position is on the disk for good. */
bool commit_is_on_disk(uint64_t position);
/* commit_event is to be called when more is. Before the caller looks whether it has to wait. */
void commit_watch(void);
/* What is before this position the kernel has: the end of the process does not lose it. */
static inline uint64_t commit_written(void)
{
    return atomic_load_explicit(&commit.written, memory_order_acquire);
}
/* After a hold in which the log has grown, without lock: its thread is to look. */
void commit_kick(void);
/* commit_write where something is left to write. */
void commit_write_more(uint64_t position);
/* Before a reply that does not wait for a sync, without lock: what stands before the position is
 * handed to the kernel, unless that fails, which the log tells. May wait for the disk. */
static inline void commit_write(uint64_t position)
{
    if (commit_written() < position) {
        commit_write_more(position);
    }
}
/* Behind what a link has brought, and before the other side hears that it is here, without lock:
 * what was appended so far is handed to the kernel; with appendfsync always the log's thread begins
 * to sync it. Waits for no sync: whoever asks for those has WAITAOF. */
void commit_put(void);
/* Waits, without lock, while the disk is far behind: for a bounded time. */
void commit_yield(void);
/* True when commit_yield would wait. */
static inline bool commit_is_crowded(void)
{
    return unlikely(atomic_load_explicit(&commit.crowded, memory_order_relaxed));
}

/* Called by the log whenever commit_synced has grown, or commit_doomed has become less; holds no
 * lock that ranks after the listener's own, must not wait. Boot. */
void commit_set_listener(void (*listener)(void));
/* Called when commit_event is due, on any thread; holds no lock that ranks after the listener's
 * own, must not wait. Boot. */
void commit_set_watcher(void (*watcher)(void));
/* What commit_write_more (`waits`) and commit_put call. Boot. */
void commit_set_writer(void (*writer)(uint64_t position, bool waits));
/* For the log: raises commit_synced to `position`, and tells. */
void commit_advance(uint64_t position);
/* For the log: it fails from now on, and what stands behind the position is doomed; or
 * (UINT64_MAX) it works. One caller at a time, who has shut the gate before and opens it after;
 * then commit_tell. */
void commit_set_doomed(uint64_t position);
void commit_tell(void);
/* For the log: raises what is on the disk to `position`, or says what kind of log there is; and
 * tells.
 */
void commit_advance_on_disk(uint64_t position);
void commit_set_log(enum commit_log log);

#endif
