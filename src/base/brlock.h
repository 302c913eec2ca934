/* A big-reader lock: the keyspace lock and the GIL are its two instances.
 *
 * Invariant: a reader holds the lock while its own line says READING and it has seen the writer
 * word free after saying so; a writer holds it while the writer word is its own and every reader's
 * line has been seen idle after it took the word. Both sides store first and look second, in one
 * total order (seq_cst), so that at least one sees the other.
 *
 * A reader writes only its own cache line: readers scale with the threads. A writer pays one look
 * at each registered line. Waiters spin for at most about 2 microseconds with a randomised
 * back-off, then park on a futex; with more threads than cores they park at once
 * (brlock_set_spinning). The lock is not first come first served. Whoever (reader or writer) has
 * been passed over by writers for long raises a starvation mark, which writers that come later
 * respect for a bounded time; readers cannot starve a writer, since a raised writer word keeps new
 * readers out.
 *
 * State: atomic. */
#ifndef BASE_BRLOCK_H
#define BASE_BRLOCK_H

#include "base/compiler.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Threads that may take part: 64 server threads and a few background ones. */
#define BRLOCK_MAX_THREADS 80

struct brlock_line {
    _Atomic uint32_t state; /* 0 idle, 1 reading, 2 reading and a writer is parked on this word */
} ALIGNED(CACHE_LINE_BYTES);

/* Figures of one thread for one lock; written by that thread only, read by anyone (relaxed). */
struct brlock_stats {
    _Atomic uint64_t shared_count, exclusive_count;           /* acquisitions */
    _Atomic uint64_t shared_held_ticks, exclusive_held_ticks; /* clock_ticks() */
    _Atomic uint64_t wait_ticks;                              /* time between asking and holding */
    _Atomic uint64_t long_waits;                              /* times it parked */
    _Atomic uint64_t departures; /* releases of shared mode, counted before the line goes idle */
} ALIGNED(CACHE_LINE_BYTES);

/* The ticks that a *_held_ticks stands for. The time of taking is subtracted there and that of
 * releasing added: in between the sum is "negative", and what has passed so far belongs to it. */
uint64_t brlock_held_ticks(const _Atomic uint64_t *ticks);

struct CAPABILITY("brlock") brlock {
    struct brlock_line lines[BRLOCK_MAX_THREADS];
    struct {
        _Atomic uint32_t word; /* 0 free, else WRITER bit, PARKED bit */
    } ALIGNED(CACHE_LINE_BYTES) writer;
    struct {
        _Atomic uint32_t starving; /* writers that have waited too long */
    } ALIGNED(CACHE_LINE_BYTES) patience;
    struct brlock_stats stats[BRLOCK_MAX_THREADS];
    uint16_t rank;
    const char *name;
};

/* Initialises a free lock. */
void brlock_init(struct brlock *l, uint16_t rank, const char *name);
/* How many thread slots are in use at least (never falls); a writer looks at lines [0, count). A
 * thread raises it before its first acquisition. */
void brlock_set_thread_count(unsigned count);
/* False: waiters park at once (threads outnumber cores). For all locks of the process. */
void brlock_set_spinning(bool enabled);

/* Takes the lock in shared mode. `slot` is the calling thread's (see thread.h). */
void brlock_acquire_shared(struct brlock *l, unsigned slot) ACQUIRE_SHARED(l);
void brlock_release_shared(struct brlock *l, unsigned slot) RELEASE_SHARED(l);
/* Takes the lock in exclusive mode. The caller does not hold it in any mode. */
void brlock_acquire_exclusive(struct brlock *l, unsigned slot) ACQUIRE(l);
void brlock_release_exclusive(struct brlock *l, unsigned slot) RELEASE(l);
/* From exclusive to shared mode without letting go in between; it does not wait. */
void brlock_downgrade(struct brlock *l, unsigned slot) RELEASE(l) ACQUIRE_SHARED(l);
#define BRLOCK_GIVE_UP_NS (10 * 1000 * 1000)
/* The same for callers that can do without: false, and nothing is held, once *give_up is true,
 * which is looked at while waiting, every BRLOCK_GIVE_UP_NS. */
bool brlock_try_shared(struct brlock *l, unsigned slot, const _Atomic bool *give_up) MUST_CHECK
    TRY_ACQUIRE_SHARED(true, l);
/* See brlock_try_shared. */
bool brlock_try_exclusive(struct brlock *l, unsigned slot, const _Atomic bool *give_up) MUST_CHECK
    TRY_ACQUIRE(true, l);
/* True when some thread waits for or holds the writer word: a holder in shared mode that can pause
 * does so. */
bool brlock_writer_waits(const struct brlock *l);

/* Grace: notes who holds the lock in shared mode now; later tells whether all of those have let go
 * of it since (they may have come back). What was unlinked before the note is then seen by nobody
 * who found it before. `marks` holds BRLOCK_MAX_THREADS. Any thread. */
void brlock_note_readers(const struct brlock *l, uint64_t *marks);
bool brlock_readers_have_left(const struct brlock *l, const uint64_t *marks);

#endif
