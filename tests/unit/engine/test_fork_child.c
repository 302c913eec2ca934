/* What the parent learns of a child's end (engine/fork_child.h). */
#include "base/lock.h"
#include "base/thread.h"
#include "engine/fork_child.h"
#include "keyspace/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include <sys/socket.h>
#include <sys/wait.h>

/* A child that ends with that error; one that runs on where it is negative. */
static int fork_one(int error)
{
    keyspace_lock_exclusive();
    int pid = fork_child(CHILD_SAVE, -1);
    if (pid == 0) {
        while (error < 0) {
            pause();
        }
        fork_child_exit(error);
    }
    keyspace_unlock_exclusive();
    assert_true(pid > 0);
    return pid;
}

static struct child_end end_of_one(int error)
{
    int pid = fork_one(error);
    struct child_end end = fork_child_wait(&pid);
    assert_int_equal(pid, 0);
    assert_int_equal(end.signal, 0);
    return end;
}

static void test_error(void **state)
{
    (void)state;
    assert_int_equal(end_of_one(0).error, 0);
    assert_int_equal(end_of_one(ENOSPC).error, ENOSPC);
    assert_int_equal(end_of_one(1000).error, EIO); /* no status has room for it */
    assert_string_equal(fork_child_why(end_of_one(ENOSPC)), "No space left on device");
}

static void test_runs_and_is_killed(void **state)
{
    (void)state;
    struct child_end end = {-1, -1};
    int pid = fork_one(-1), was = pid, none = 0;
    assert_false(fork_child_has_ended(&pid, &end));
    assert_int_equal(pid, was);
    fork_child_kill(&pid);
    assert_int_equal(pid, 0);
    assert_int_equal(kill(was, 0), -1); /* nor is it one that nobody has waited for */
    fork_child_kill(&pid);
    assert_false(fork_child_has_ended(&none, &end));
    assert_int_equal(end.error, -1);
}

static void test_ended_by_a_signal(void **state)
{
    (void)state;
    int pid = fork_one(-1);
    kill(pid, SIGTERM);
    struct child_end end = fork_child_wait(&pid);
    assert_int_equal(end.error, EINTR);
    assert_int_equal(end.signal, SIGTERM);
    assert_string_equal(fork_child_why(end), "it was killed");
}

/* Nobody will ever tell: it must not count as running for good. */
static void test_taken_by_somebody_else(void **state)
{
    (void)state;
    struct child_end end = {0, 0};
    int pid = fork_one(0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_true(fork_child_has_ended(&pid, &end));
    assert_int_equal(pid, 0);
    assert_int_equal(end.error, ECHILD);
    pid = fork_one(0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(fork_child_wait(&pid).error, ECHILD);
}

/* One that runs a module's code: it may take locks and has what is no socket. */
static void test_of_a_module(void **state)
{
    (void)state;
    static struct lock lock = LOCK_INIT(LOCK_RANK_TEST, "test");
    struct child_end end = {0, 0};
    int ends[2], pair[2];
    char told[8] = "";
    lock_acquire(&lock);
    lock_release(&lock);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    keyspace_lock_exclusive();
    int pid = fork_child(CHILD_MODULE, FORK_CHILD_KEEP_FILES);
    if (pid == 0) {
        lock_acquire(&lock);
        bool wrote = write(ends[1], "told", 4) == 4, open = fcntl(pair[0], F_GETFD) >= 0;
        lock_release(&lock);
        fork_child_exit(wrote && !open ? 7 : 1);
    }
    keyspace_unlock_exclusive();
    assert_int_equal(read(ends[0], told, sizeof(told)), 4);
    assert_string_equal(told, "told");
    end = fork_child_wait(&pid);
    assert_int_equal(end.error, 7);
    lock_acquire(&lock); /* nobody has kept it */
    lock_release(&lock);
    for (int i = 0; i < 2; i++) {
        close(ends[i]);
        close(pair[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_error),
        cmocka_unit_test(test_runs_and_is_killed),
        cmocka_unit_test(test_ended_by_a_signal),
        cmocka_unit_test(test_taken_by_somebody_else),
        cmocka_unit_test(test_of_a_module),
    };
    thread_enter("test");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
