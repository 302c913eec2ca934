/* The big-reader lock: base/brlock.h. ThreadSanitizer watches the plain counters that it guards. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/brlock.h"
#include "base/clock.h"
#include "base/lock.h"
#include "base/thread.h"

#include <assert.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct brlock lock;

/* Guarded by the lock: equal outside of an exclusive hold. */
static uint64_t one, two;

static int enter(void **state)
{
    (void)state;
    brlock_init(&lock, LOCK_RANK_TEST, "test");
    brlock_set_spinning(true);
    one = two = 0;
    return 0;
}

static int enter_without_spinning(void **state)
{
    enter(state);
    brlock_set_spinning(false);
    return 0;
}

static uint64_t next_random(uint64_t *random)
{
    return *random = *random * 6364136223846793005u + 1442695040888963407u;
}

/* ---- exclusion ---- */

#define MIXERS 6
#define MIXER_STEPS 15000

struct mixer {
    uint64_t seed;
    uint64_t writes, reads;
    unsigned writes_in_16;
    pthread_t thread;
};

static void write_once(unsigned slot, uint64_t random)
{
    brlock_acquire_exclusive(&lock, slot);
    assert(one == two);
    one++;
    for (volatile int i = 0; i < (int)(random >> 55); i++) {
    }
    two++;
    brlock_release_exclusive(&lock, slot);
}

/* Goes on reading, and nobody writes in between. */
static void write_and_read_once(unsigned slot, uint64_t random)
{
    brlock_acquire_exclusive(&lock, slot);
    uint64_t mine = ++one;
    two++;
    brlock_downgrade(&lock, slot);
    for (volatile int i = 0; i < (int)(random >> 55); i++) {
    }
    assert(one == mine && two == mine);
    brlock_release_shared(&lock, slot);
}

static void read_once(unsigned slot, uint64_t random)
{
    brlock_acquire_shared(&lock, slot);
    uint64_t before = one;
    for (volatile int i = 0; i < (int)(random >> 55); i++) {
    }
    assert(one == two && one == before);
    brlock_release_shared(&lock, slot);
}

static void *mix(void *arg)
{
    struct mixer *m = arg;
    unsigned slot = thread_enter("mixer");
    for (int i = 0; i < MIXER_STEPS; i++) {
        uint64_t random = next_random(&m->seed);
        if ((random >> 40) % 16 < m->writes_in_16) {
            bool reads_on = (random >> 32) % 4 == 0;
            (reads_on ? write_and_read_once : write_once)(slot, random);
            m->writes++;
            m->reads += reads_on;
        } else {
            read_once(slot, random);
            m->reads++;
        }
    }
    thread_leave();
    return NULL;
}

static uint64_t stat_sum(size_t offset)
{
    uint64_t sum = 0;
    for (int i = 0; i < BRLOCK_MAX_THREADS; i++) {
        sum += atomic_load((_Atomic uint64_t *)((char *)&lock.stats[i] + offset));
    }
    return sum;
}

static void test_exclusion(void **state)
{
    (void)state;
    static const unsigned shares[] = {1, 8, 15, 0, 16};
    for (size_t s = 0; s < sizeof(shares) / sizeof(shares[0]); s++) {
        struct mixer mixers[MIXERS];
        uint64_t writes = 0, reads = 0;
        brlock_init(&lock, LOCK_RANK_TEST, "test");
        one = two = 0;
        for (unsigned i = 0; i < MIXERS; i++) {
            mixers[i] = (struct mixer){.seed = s * 100 + i, .writes_in_16 = shares[s]};
            assert_int_equal(thread_start(&mixers[i].thread, mix, &mixers[i]), 0);
        }
        for (int i = 0; i < MIXERS; i++) {
            pthread_join(mixers[i].thread, NULL);
            writes += mixers[i].writes;
            reads += mixers[i].reads;
        }
        assert_int_equal(one, writes);
        assert_int_equal(two, writes);
        assert_int_equal(stat_sum(offsetof(struct brlock_stats, exclusive_count)), writes);
        assert_int_equal(stat_sum(offsetof(struct brlock_stats, shared_count)), reads);
        assert_false(brlock_writer_waits(&lock));
        for (int i = 0; i < BRLOCK_MAX_THREADS; i++) {
            assert_int_equal(lock.lines[i].state, 0);
        }
        assert_int_equal(lock.writer.word, 0);
        assert_int_equal(lock.patience.starving, 0);
    }
}

/* ---- starvation ---- */

static _Atomic bool hammering;

static void *hammer_exclusive(void *arg)
{
    (void)arg;
    unsigned slot = thread_enter("writer");
    while (atomic_load_explicit(&hammering, memory_order_relaxed)) {
        write_once(slot, 0);
    }
    thread_leave();
    return NULL;
}

/* Several of them overlap: at no moment is there no reader. */
static void *hammer_shared(void *arg)
{
    (void)arg;
    unsigned slot = thread_enter("reader");
    while (atomic_load_explicit(&hammering, memory_order_relaxed)) {
        read_once(slot, UINT64_MAX);
    }
    thread_leave();
    return NULL;
}

/* `turns` acquisitions of this thread against three that do nothing else. It ends, that is the
 * test; and not after all too many acquisitions of the others. */
static void against_hammering(void *(*hammer)(void *), bool exclusive)
{
    pthread_t threads[3];
    const uint64_t turns = 300;
    unsigned slot = thread_slot();
    atomic_store(&hammering, true);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(thread_start(&threads[i], hammer, NULL), 0);
    }
    for (uint64_t i = 0; i < turns; i++) {
        if (exclusive) {
            write_once(slot, 0);
        } else {
            read_once(slot, 0);
        }
    }
    uint64_t all = stat_sum(offsetof(struct brlock_stats, exclusive_count)) +
                   stat_sum(offsetof(struct brlock_stats, shared_count));
    atomic_store(&hammering, false);
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_true(all / turns < 1000000);
}

static void test_writers_do_not_starve_a_reader(void **state)
{
    (void)state;
    against_hammering(hammer_exclusive, false);
}

static void test_readers_do_not_starve_a_writer(void **state)
{
    (void)state;
    against_hammering(hammer_shared, true);
}

static void test_writers_do_not_starve_a_writer(void **state)
{
    (void)state;
    against_hammering(hammer_exclusive, true);
}

/* ---- waiting and parking ---- */

struct waiter {
    unsigned slot;
    _Atomic bool asked, held;
    bool exclusive;
    pthread_t thread;
};

static void *wait_for_lock(void *arg)
{
    struct waiter *w = arg;
    w->slot = thread_enter("waiter");
    atomic_store(&w->asked, true);
    if (w->exclusive) {
        write_once(w->slot, 0);
    } else {
        read_once(w->slot, 0);
    }
    atomic_store(&w->held, true);
    thread_leave();
    return NULL;
}

static void start_waiter(struct waiter *w, bool exclusive)
{
    *w = (struct waiter){.exclusive = exclusive};
    assert_int_equal(thread_start(&w->thread, wait_for_lock, w), 0);
    while (!atomic_load(&w->asked)) {
        sched_yield();
    }
}

/* Until the waiter sleeps on the futex (or is about to). */
static void await_parked(const struct waiter *w)
{
    while (atomic_load(&lock.stats[w->slot].long_waits) == 0) {
        sched_yield();
    }
}

static void test_a_writer_parks_behind_a_reader(void **state)
{
    (void)state;
    struct waiter w;
    unsigned slot = thread_slot();
    brlock_acquire_shared(&lock, slot);
    assert_false(brlock_writer_waits(&lock));
    start_waiter(&w, true);
    await_parked(&w);
    assert_true(brlock_writer_waits(&lock));
    assert_false(atomic_load(&w.held));
    brlock_release_shared(&lock, slot);
    pthread_join(w.thread, NULL);
    assert_true(atomic_load(&w.held));
    assert_true(lock.stats[w.slot].wait_ticks > 0);
}

static void test_all_park_behind_a_writer(void **state)
{
    (void)state;
    struct waiter waiters[5];
    unsigned slot = thread_slot();
    brlock_acquire_exclusive(&lock, slot);
    assert_true(brlock_writer_waits(&lock));
    for (int i = 0; i < 5; i++) {
        start_waiter(&waiters[i], i % 2);
    }
    for (int i = 0; i < 5; i++) {
        await_parked(&waiters[i]);
        assert_false(atomic_load(&waiters[i].held));
    }
    brlock_release_exclusive(&lock, slot);
    for (int i = 0; i < 5; i++) {
        pthread_join(waiters[i].thread, NULL);
    }
    assert_int_equal(one, 2);
}

/* Readers hold it together: the second gets it while the first does not let go. */
static void test_readers_share(void **state)
{
    (void)state;
    struct waiter w;
    brlock_acquire_shared(&lock, thread_slot());
    start_waiter(&w, false);
    pthread_join(w.thread, NULL);
    assert_true(atomic_load(&w.held));
    brlock_release_shared(&lock, thread_slot());
}

static void test_held_times_are_durations(void **state)
{
    (void)state;
    unsigned slot = thread_slot();
    uint64_t begin = clock_ticks();
    for (int i = 0; i < 100; i++) {
        read_once(slot, UINT64_MAX);
        write_once(slot, UINT64_MAX);
    }
    uint64_t passed = clock_ticks() - begin;
    const struct brlock_stats *s = &lock.stats[slot];
    assert_true(s->shared_held_ticks > 0 && s->exclusive_held_ticks > 0);
    assert_true(s->shared_held_ticks + s->exclusive_held_ticks <= passed);
    assert_int_equal(s->wait_ticks, 0);
    assert_int_equal(s->long_waits, 0);
}

/* ---- ranks ---- */

#if KEYDB_DEBUG
/* True when `run` aborts (in a child: this process goes on). */
static bool aborts(void (*run)(void))
{
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        if (!freopen("/dev/null", "w", stderr)) {
            _exit(3);
        }
        run();
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static struct brlock outer = {.rank = LOCK_RANK_GIL, .name = "outer"};
static struct brlock inner = {.rank = LOCK_RANK_KEYSPACE, .name = "inner"};

static void take_in_order(void)
{
    brlock_acquire_shared(&outer, thread_slot());
    brlock_acquire_exclusive(&inner, thread_slot());
    lock_rank_assert_held(LOCK_RANK_GIL);
    lock_rank_assert_held(LOCK_RANK_KEYSPACE);
    brlock_release_exclusive(&inner, thread_slot());
    brlock_release_shared(&outer, thread_slot());
}

static void take_out_of_order(void)
{
    brlock_acquire_shared(&inner, thread_slot());
    brlock_acquire_shared(&outer, thread_slot());
}

static void take_twice_shared(void)
{
    brlock_acquire_shared(&inner, thread_slot());
    brlock_acquire_shared(&inner, thread_slot());
}

static void take_exclusive_over_shared(void)
{
    brlock_acquire_shared(&inner, thread_slot());
    brlock_acquire_exclusive(&inner, thread_slot());
}

static void assert_what_is_not_held(void)
{
    brlock_acquire_shared(&outer, thread_slot());
    lock_rank_assert_held(LOCK_RANK_KEYSPACE);
}

static void release_what_is_not_held(void)
{
    brlock_release_exclusive(&inner, thread_slot());
}

static void test_ranks_are_checked(void **state)
{
    (void)state;
    assert_false(aborts(take_in_order));
    assert_true(aborts(take_out_of_order));
    assert_true(aborts(take_twice_shared));
    assert_true(aborts(take_exclusive_over_shared));
    assert_true(aborts(assert_what_is_not_held));
    assert_true(aborts(release_what_is_not_held));
}
#endif

static int enter_process(void **state)
{
    (void)state;
    clock_setup();
    thread_enter("test");
    return 0;
}

int main(void)
{
#define LOCK_TEST(name)                                                                            \
    cmocka_unit_test_setup(name, enter), cmocka_unit_test_setup(name, enter_without_spinning)
    const struct CMUnitTest tests[] = {
        LOCK_TEST(test_exclusion),
        LOCK_TEST(test_writers_do_not_starve_a_reader),
        LOCK_TEST(test_readers_do_not_starve_a_writer),
        LOCK_TEST(test_writers_do_not_starve_a_writer),
        LOCK_TEST(test_a_writer_parks_behind_a_reader),
        LOCK_TEST(test_all_park_behind_a_writer),
        LOCK_TEST(test_readers_share),
        LOCK_TEST(test_held_times_are_durations),
#if KEYDB_DEBUG
        LOCK_TEST(test_ranks_are_checked),
#endif
    };
    return cmocka_run_group_tests(tests, enter_process, NULL);
}
