/* See brlock.h.
 *
 * The store-then-look on both sides: a reader exchanges its line (seq_cst) and then loads the
 * writer word; a writer exchanges the word (seq_cst) and then loads the lines. In the single total
 * order of these four operations one store comes first, and the other side's load, which follows
 * its own store, sees it. Releases are exchanges as well, so that the releaser learns whether
 * somebody has parked. */
#include "base/brlock.h"

#include "base/clock.h"
#include "base/futex.h"
#include "base/lock.h"
#include "base/thread.h"

#include <assert.h>
#include <limits.h>

#define WRITER 1u
#define PARKED 2u

#define LINE_IDLE 0u
#define LINE_READING 1u
#define LINE_AWAITED 2u /* reading, and a writer sleeps on this line */

/* A waiter that has lost this often raises the starvation mark; latecomers then hold back. */
#define PATIENCE_ROUNDS 16

static _Atomic unsigned thread_count = 1;
static _Atomic bool spinning = true;

void brlock_init(struct brlock *l, uint16_t rank, const char *name)
{
    *l = (struct brlock){.rank = rank, .name = name};
}

void brlock_set_thread_count(unsigned count)
{
    assert(count <= BRLOCK_MAX_THREADS);
    unsigned before = atomic_load(&thread_count);
    while (before < count && !atomic_compare_exchange_weak(&thread_count, &before, count)) {
    }
}

void brlock_set_spinning(bool enabled)
{
    atomic_store(&spinning, enabled);
}

static void add_relaxed(_Atomic uint64_t *counter, uint64_t n)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

/* Who may give up looks up now and then. */
static uint64_t park_ns(const _Atomic bool *give_up)
{
    return give_up ? BRLOCK_GIVE_UP_NS : 0;
}

static bool gives_up(const _Atomic bool *give_up)
{
    return give_up && atomic_load(give_up);
}

/* Waits until the writer word looks free: spins, then parks. */
static void wait_for_word(struct brlock *l, unsigned slot, const _Atomic bool *give_up)
{
    uint32_t seed = slot * 2654435761u + 1;
    int rounds = atomic_load_explicit(&spinning, memory_order_relaxed) ? SPIN_ROUNDS : 0;
    for (int i = 0; i < rounds; i++) {
        if (!(atomic_load_explicit(&l->writer.word, memory_order_relaxed) & WRITER)) {
            return;
        }
        spin_pause(&seed);
    }
    uint32_t word = atomic_load_explicit(&l->writer.word, memory_order_relaxed);
    while (word & WRITER) {
        if (word & PARKED || atomic_compare_exchange_weak(&l->writer.word, &word, word | PARKED)) {
            add_relaxed(&l->stats[slot].long_waits, 1);
            futex_wait(&l->writer.word, WRITER | PARKED, park_ns(give_up));
            return;
        }
    }
}

/* Counts the lost rounds of one waiter; from PATIENCE_ROUNDS on it is starving. */
static void lose_round(struct brlock *l, int *lost)
{
    if (++*lost == PATIENCE_ROUNDS) {
        atomic_fetch_add(&l->patience.starving, 1);
    }
}

static void end_waiting(struct brlock *l, int lost)
{
    if (lost >= PATIENCE_ROUNDS && atomic_fetch_sub(&l->patience.starving, 1) == 1) {
        futex_wake(&l->patience.starving, INT_MAX);
    }
}

/* A latecomer lets starving waiters go first, for a bounded time: they were waiting when it came.
 */
static void respect_starving(struct brlock *l)
{
    uint32_t starving = atomic_load_explicit(&l->patience.starving, memory_order_relaxed);
    if (unlikely(starving)) {
        futex_wait(&l->patience.starving, starving, 200 * 1000);
    }
}

static void leave_line(struct brlock *l, unsigned slot)
{
    if (unlikely(atomic_exchange(&l->lines[slot].state, LINE_IDLE) == LINE_AWAITED)) {
        futex_wake(&l->lines[slot].state, 1);
    }
}

static bool shared_slow(struct brlock *l, unsigned slot, const _Atomic bool *give_up)
{
    uint64_t begin = clock_ticks();
    int lost = 0;
    for (;;) {
        leave_line(l, slot);
        wait_for_word(l, slot, give_up);
        atomic_exchange(&l->lines[slot].state, LINE_READING);
        if (!(atomic_load(&l->writer.word) & WRITER)) {
            break;
        }
        if (gives_up(give_up)) {
            leave_line(l, slot);
            end_waiting(l, lost);
            return false;
        }
        lose_round(l, &lost);
    }
    end_waiting(l, lost);
    add_relaxed(&l->stats[slot].wait_ticks, clock_ticks() - begin);
    return true;
}

static ALWAYS_INLINE bool acquire_shared(struct brlock *l, unsigned slot,
                                         const _Atomic bool *give_up)
{
    assert(slot < BRLOCK_MAX_THREADS);
    lock_rank_push(l->rank, l->name);
    uint32_t before = atomic_exchange(&l->lines[slot].state, LINE_READING);
    assert(before == LINE_IDLE);
    (void)before;
    if (unlikely(atomic_load(&l->writer.word) & WRITER) && !shared_slow(l, slot, give_up)) {
        lock_rank_pop(l->rank);
        return false;
    }
    add_relaxed(&l->stats[slot].shared_count, 1);
    add_relaxed(&l->stats[slot].shared_held_ticks, 0 - clock_ticks());
    return true;
}

void brlock_acquire_shared(struct brlock *l, unsigned slot) NO_THREAD_SAFETY_ANALYSIS
{
    bool held = acquire_shared(l, slot, NULL);
    assert(held);
    (void)held;
}

bool brlock_try_shared(struct brlock *l, unsigned slot,
                       const _Atomic bool *give_up) NO_THREAD_SAFETY_ANALYSIS
{
    return acquire_shared(l, slot, give_up);
}

void brlock_release_shared(struct brlock *l, unsigned slot) NO_THREAD_SAFETY_ANALYSIS
{
    add_relaxed(&l->stats[slot].shared_held_ticks, clock_ticks());
    add_relaxed(&l->stats[slot].departures, 1);
    leave_line(l, slot);
    lock_rank_pop(l->rank);
}

static bool try_take_word(struct brlock *l)
{
    uint32_t free_word = 0;
    return atomic_compare_exchange_strong(&l->writer.word, &free_word, WRITER);
}

static bool take_word_slow(struct brlock *l, unsigned slot, const _Atomic bool *give_up)
{
    uint64_t begin = clock_ticks();
    int lost = 0;
    for (;;) {
        if (lost < PATIENCE_ROUNDS) {
            respect_starving(l);
        }
        wait_for_word(l, slot, give_up);
        if (try_take_word(l)) {
            break;
        }
        if (gives_up(give_up)) {
            end_waiting(l, lost);
            return false;
        }
        lose_round(l, &lost);
    }
    end_waiting(l, lost);
    add_relaxed(&l->stats[slot].wait_ticks, clock_ticks() - begin);
    return true;
}

/* Waits until one reader's line is idle. */
static bool await_line(struct brlock *l, unsigned slot, unsigned reader,
                       const _Atomic bool *give_up)
{
    _Atomic uint32_t *state = &l->lines[reader].state;
    uint32_t seed = slot * 2654435761u + reader + 1;
    int rounds = atomic_load_explicit(&spinning, memory_order_relaxed) ? SPIN_ROUNDS : 0;
    for (int i = 0; i < rounds; i++) {
        if (atomic_load(state) == LINE_IDLE) {
            return true;
        }
        spin_pause(&seed);
    }
    while (!gives_up(give_up)) {
        uint32_t seen = LINE_READING;
        if (atomic_compare_exchange_strong(state, &seen, LINE_AWAITED) || seen == LINE_AWAITED) {
            add_relaxed(&l->stats[slot].long_waits, 1);
            futex_wait(state, LINE_AWAITED, park_ns(give_up));
        } else {
            assert(seen == LINE_IDLE);
            return true;
        }
    }
    return false;
}

static bool await_readers(struct brlock *l, unsigned slot, const _Atomic bool *give_up)
{
    /* After our exchange of the word: a thread whose slot this load misses raised the count, and
     * entered its line, after our exchange, so that it sees the word. */
    unsigned count = atomic_load(&thread_count);
    uint64_t begin = 0;
    for (unsigned i = 0; i < count; i++) {
        if (i != slot && atomic_load(&l->lines[i].state) != LINE_IDLE) {
            begin = begin ? begin : clock_ticks();
            if (!await_line(l, slot, i, give_up)) {
                return false;
            }
        }
    }
    if (begin) {
        add_relaxed(&l->stats[slot].wait_ticks, clock_ticks() - begin);
    }
    return true;
}

static void free_word(struct brlock *l)
{
    if (unlikely(atomic_exchange(&l->writer.word, 0) & PARKED)) {
        futex_wake(&l->writer.word, INT_MAX);
    }
}

static ALWAYS_INLINE bool acquire_exclusive(struct brlock *l, unsigned slot,
                                            const _Atomic bool *give_up)
{
    assert(slot < BRLOCK_MAX_THREADS);
    lock_rank_push(l->rank, l->name);
    assert(atomic_load_explicit(&l->lines[slot].state, memory_order_relaxed) == LINE_IDLE);
    if ((unlikely(atomic_load_explicit(&l->patience.starving, memory_order_relaxed) != 0) ||
         unlikely(!try_take_word(l))) &&
        !take_word_slow(l, slot, give_up)) {
        lock_rank_pop(l->rank);
        return false;
    }
    if (!await_readers(l, slot, give_up)) {
        /* A line stays marked as awaited: its reader wakes nobody, or a later writer. */
        free_word(l);
        lock_rank_pop(l->rank);
        return false;
    }
    add_relaxed(&l->stats[slot].exclusive_count, 1);
    add_relaxed(&l->stats[slot].exclusive_held_ticks, 0 - clock_ticks());
    return true;
}

void brlock_acquire_exclusive(struct brlock *l, unsigned slot) NO_THREAD_SAFETY_ANALYSIS
{
    bool held = acquire_exclusive(l, slot, NULL);
    assert(held);
    (void)held;
}

bool brlock_try_exclusive(struct brlock *l, unsigned slot,
                          const _Atomic bool *give_up) NO_THREAD_SAFETY_ANALYSIS
{
    return acquire_exclusive(l, slot, give_up);
}

void brlock_release_exclusive(struct brlock *l, unsigned slot) NO_THREAD_SAFETY_ANALYSIS
{
    add_relaxed(&l->stats[slot].exclusive_held_ticks, clock_ticks());
    free_word(l);
    lock_rank_pop(l->rank);
}

/* Writers that come when the word is free see the line: it was set before, in the one order. */
void brlock_downgrade(struct brlock *l, unsigned slot) NO_THREAD_SAFETY_ANALYSIS
{
    uint64_t now = clock_ticks();
    uint32_t before = atomic_exchange(&l->lines[slot].state, LINE_READING);
    assert(before == LINE_IDLE);
    (void)before;
    add_relaxed(&l->stats[slot].exclusive_held_ticks, now);
    add_relaxed(&l->stats[slot].shared_count, 1);
    add_relaxed(&l->stats[slot].shared_held_ticks, 0 - now);
    free_word(l);
}

bool brlock_writer_waits(const struct brlock *l)
{
    return atomic_load_explicit(&((struct brlock *)l)->writer.word, memory_order_relaxed) != 0;
}

#define MARK_IDLE UINT64_MAX

static bool line_is_idle(const struct brlock *l, unsigned reader)
{
    return atomic_load(&((struct brlock *)l)->lines[reader].state) == LINE_IDLE;
}

static uint64_t departures_of(const struct brlock *l, unsigned reader)
{
    return atomic_load(&((struct brlock *)l)->stats[reader].departures);
}

void brlock_note_readers(const struct brlock *l, uint64_t *marks)
{
    for (unsigned i = 0; i < BRLOCK_MAX_THREADS; i++) {
        /* The count first: a reader that counts its departure in between goes idle soon, or departs
         * once more. */
        uint64_t departures = departures_of(l, i);
        marks[i] = line_is_idle(l, i) ? MARK_IDLE : departures;
    }
}

bool brlock_readers_have_left(const struct brlock *l, const uint64_t *marks)
{
    for (unsigned i = 0; i < BRLOCK_MAX_THREADS; i++) {
        if (marks[i] == MARK_IDLE || line_is_idle(l, i)) {
            continue;
        }
        /* Two departures: the first may have been counted before the note and its line not been
         * idle yet. */
        if (departures_of(l, i) - marks[i] < 2) {
            return false;
        }
    }
    return true;
}

uint64_t brlock_held_ticks(const _Atomic uint64_t *ticks)
{
    uint64_t held = atomic_load_explicit(ticks, memory_order_relaxed);
    return held > INT64_MAX ? held + clock_ticks() : held;
}
