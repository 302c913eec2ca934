/* Threads and their slots: base/thread.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/thread.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int enter_process(void **state)
{
    (void)state;
    assert_int_equal(thread_enter("main"), 0); /* the first one has slot 0 */
    return 0;
}

struct member {
    pthread_t thread;
    _Atomic int slot; /* -1: not there yet */
    bool signals_blocked;
    char name[16];
};

static _Atomic bool may_leave;

static void *stay(void *arg)
{
    struct member *m = arg;
    sigset_t mask;
    unsigned slot = thread_enter("a name that is too long");
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    m->signals_blocked = sigismember(&mask, SIGTERM) && sigismember(&mask, SIGUSR1);
    pthread_getname_np(pthread_self(), m->name, sizeof(m->name));
    atomic_store(&m->slot, slot == thread_slot() ? (int)slot : -2);
    while (!atomic_load(&may_leave)) {
        sched_yield();
    }
    thread_leave();
    return NULL;
}

static void start_member(struct member *m)
{
    atomic_store(&m->slot, -1);
    assert_int_equal(thread_start(&m->thread, stay, m), 0);
    while (atomic_load(&m->slot) == -1) {
        sched_yield();
    }
}

static void test_slots_are_the_lowest_free_ones(void **state)
{
    (void)state;
    static struct member members[20];
    for (int round = 0; round < 3; round++) {
        atomic_store(&may_leave, false);
        for (int i = 0; i < 20; i++) {
            start_member(&members[i]);
            assert_int_equal(members[i].slot, i + 1);
            assert_true(members[i].signals_blocked);
            assert_string_equal(members[i].name, "a name that is ");
        }
        atomic_store(&may_leave, true);
        for (int i = 0; i < 20; i++) {
            pthread_join(members[i].thread, NULL);
        }
    }
}

static void test_slots_are_different(void **state)
{
    (void)state;
    static struct member members[THREAD_MAX - 1];
    bool taken[THREAD_MAX] = {true};
    atomic_store(&may_leave, false);
    /* All at once, and all there are. */
    for (int i = 0; i < THREAD_MAX - 1; i++) {
        atomic_store(&members[i].slot, -1);
        assert_int_equal(thread_start(&members[i].thread, stay, &members[i]), 0);
    }
    for (int i = 0; i < THREAD_MAX - 1; i++) {
        while (atomic_load(&members[i].slot) == -1) {
            sched_yield();
        }
        assert_in_range(members[i].slot, 1, THREAD_MAX - 1);
        assert_false(taken[members[i].slot]);
        taken[members[i].slot] = true;
    }
    atomic_store(&may_leave, true);
    for (int i = 0; i < THREAD_MAX - 1; i++) {
        pthread_join(members[i].thread, NULL);
    }
}

static void test_one_thread_too_many_aborts(void **state)
{
    (void)state;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        if (!freopen("/dev/null", "w", stderr)) {
            _exit(3);
        }
        for (int i = 0; i < THREAD_MAX; i++) {
            thread_enter("many"); /* each call takes a slot */
        }
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

static void test_signals_of_the_starter_are_kept(void **state)
{
    (void)state;
    struct member m;
    sigset_t mask;
    atomic_store(&may_leave, true);
    start_member(&m);
    pthread_join(m.thread, NULL);
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    assert_false(sigismember(&mask, SIGTERM));
}

static void *pin_to_first(void *arg)
{
    cpu_set_t allowed;
    (void)arg;
    thread_enter("pinned");
    sched_getaffinity(0, sizeof(allowed), &allowed);
    unsigned core = 0;
    while (!CPU_ISSET(core, &allowed)) {
        core++;
    }
    int error = thread_pin(core);
    unsigned count = thread_core_count();
    thread_leave();
    int beyond = thread_pin(CPU_SETSIZE + core); /* not the core that it would be modulo that */
    return error == 0 && count == 1 && beyond == EINVAL ? (void *)1 : NULL;
}

static void test_pinning(void **state)
{
    (void)state;
    pthread_t thread;
    void *pinned;
    assert_true(thread_core_count() >= 1);
    assert_int_equal(thread_start(&thread, pin_to_first, NULL), 0);
    pthread_join(thread, &pinned);
    assert_non_null(pinned);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slots_are_the_lowest_free_ones),
        cmocka_unit_test(test_slots_are_different),
        cmocka_unit_test(test_one_thread_too_many_aborts),
        cmocka_unit_test(test_signals_of_the_starter_are_kept),
        cmocka_unit_test(test_pinning),
    };
    return cmocka_run_group_tests(tests, enter_process, NULL);
}
