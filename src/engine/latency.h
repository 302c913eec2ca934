/* The latency monitor: for each named event the last 160 spikes over `latency-monitor-threshold`.
 * Calls are noted here (command, fast-command: also calls that waited for keys, when they are run
 * again), all other steps by base/spike.h:
 *
 *   fork                      the call of fork, also for replicas
 *   expire-cycle              the cron's search for keys that are due
 *   expire-del                freeing a large key that was due, after the hold
 *   eviction-cycle            making up for memory that is too much
 *   eviction-del              freeing a large key that was evicted, after the hold
 *   aof-write                 handing records to the kernel, by whoever does; and the same as one
 * of aof-write-pending-fsync     while the log's thread syncs, aof-write-active-child      while a
 * child saves or rewrites, aof-write-alone             otherwise aof-fsync-always          a sync
 * with appendfsync always aof-fstat                 looking how long a file of the log is
 *   aof-rename                giving the new base its name
 *   rdb-unlink-temp-file      removing what a child that has ended leaves
 *
 * Events of Redis that cannot happen here: aof-rewrite-diff-write (the log goes on in a new
 * increment during a rewrite: nothing is written behind; nor does Redis since 7.0),
 * eviction-lazyfree (evicting does not wait for the background thread: what is on its way counts as
 * freed), active-defrag-cycle (no defragmentation), while-blocked-cron (the cron has a thread of
 * its own, which a script that takes long or a load does not stop), module-acquire-GIL (no
 * modules), command-unblocking (who is served is run again, which is a command).
 *
 * State: behind a leaf lock. */
#ifndef ENGINE_LATENCY_H
#define ENGINE_LATENCY_H

#include "base/option.h"
#include "base/slice.h"
#include "resp/reply.h"

/* An event's name and a NUL. */
#define LATENCY_NAME_BYTES 40
/* Notes a spike of `event` ("command", "fast-command", "expire-cycle" ...) if it reaches the
 * threshold. */
void latency_note(const char *event, uint64_t duration_ms, int64_t wall_s);
/* Boot, when the configuration is there: steps are noted from now on. */
void latency_setup(void);
/* True when the monitor is on and the duration reaches its threshold. */
bool latency_wants(uint64_t duration_ms);
/* The last spike of an event. */
struct latency_spike {
    char event[40];
    int64_t wall_s;
    uint64_t duration_ms;
};
/* Of the event at `index`, in order of their appearance; false when there are not that many. Any
 * thread. */
bool latency_spike_at(unsigned index, struct latency_spike *spike) MUST_CHECK;
/* LATENCY LATEST, HISTORY, RESET (names; none: all; returns how many), GRAPH, DOCTOR. */
void latency_reply_latest(struct reply *r);
void latency_reply_history(struct reply *r, struct slice event);
int64_t latency_reset(const struct slice *events, int count);
/* Appends an ASCII graph; false when there are no samples. */
bool latency_graph(struct slice event, int64_t now_s, struct buf *out);
void latency_doctor(int64_t now_s, struct buf *out);
/* latency-monitor-threshold. */
extern const struct option latency_options[];

#endif
