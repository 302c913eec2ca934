/* Tests of net/assign.h: which thread gets a connection, and that a client comes to life on the one
 * it was given to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/thread.h"
#include "net/assign.h"

#include <stdatomic.h>

#define THREADS 3

static void set_clients(const uint32_t counts[THREADS])
{
    for (int i = 0; i < THREADS; i++) {
        atomic_store(&server_thread_at(i)->client_count, counts[i]);
    }
}

static int start(void **state)
{
    (void)state;
    net_settings.affinity_first = -1;
    net_settings.min_clients_per_thread = 2;
    net_settings.active_client_balancing = true;
    server_threads_start(THREADS);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    server_threads_stop();
    return 0;
}

static void test_fills_a_thread_before_the_next(void **state)
{
    (void)state;
    set_clients((uint32_t[]){0, 0, 0});
    assert_int_equal(assign_thread()->index, 0);
    set_clients((uint32_t[]){1, 0, 0});
    assert_int_equal(assign_thread()->index, 0);
    set_clients((uint32_t[]){2, 0, 0});
    assert_int_equal(assign_thread()->index, 1);
    set_clients((uint32_t[]){2, 2, 1});
    assert_int_equal(assign_thread()->index, 2);
    set_clients((uint32_t[]){9, 1, 1});
    assert_int_equal(assign_thread()->index, 1);
    set_clients((uint32_t[]){0, 0, 0});
}

static void test_then_takes_the_one_with_the_fewest(void **state)
{
    (void)state;
    set_clients((uint32_t[]){5, 4, 6});
    assert_int_equal(assign_thread()->index, 1);
    set_clients((uint32_t[]){3, 3, 2});
    assert_int_equal(assign_thread()->index, 2);
    set_clients((uint32_t[]){2, 2, 2});
    assert_int_equal(assign_thread()->index, 0);
    set_clients((uint32_t[]){0, 0, 0});
}

static void test_without_balancing_takes_turns(void **state)
{
    int seen[THREADS] = {0};
    (void)state;
    net_settings.active_client_balancing = false;
    for (int i = 0; i < 2 * THREADS; i++) {
        seen[assign_thread()->index]++;
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(seen[i], 2);
    }
}

static void wait_for_clients(uint64_t count)
{
    for (int i = 0; i < 10000 && client_count() != count; i++) {
        usleep(1000);
    }
    assert_int_equal(client_count(), count);
}

static void test_an_assigned_client_lives_on_its_thread(void **state)
{
    int pair[2];
    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    struct server_thread *t = server_thread_at(1);
    assign_client(client_create(pair[0], "127.0.0.1:1", 0), t);
    assert_int_equal(atomic_load(&t->client_count), 1); /* counted while on its way */
    assert_int_equal(client_count(), 1);
    /* The thread hears the end of the connection: so it had taken it over. */
    close(pair[1]);
    wait_for_clients(0);
    for (int i = 0; i < 10000 && atomic_load(&t->client_count) != 0; i++) {
        usleep(1000);
    }
    assert_int_equal(atomic_load(&t->client_count), 0);
}

/* Threads that do nothing are left alone: the look is only at counters. */
static void test_an_idle_server_is_not_woken(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++) {
        assign_balance(i * 1000);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_false(inbox_waiting(&server_thread_at(i)->inbox));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_fills_a_thread_before_the_next, start, stop),
        cmocka_unit_test_setup_teardown(test_then_takes_the_one_with_the_fewest, start, stop),
        cmocka_unit_test_setup_teardown(test_without_balancing_takes_turns, start, stop),
        cmocka_unit_test_setup_teardown(test_an_assigned_client_lives_on_its_thread, start, stop),
        cmocka_unit_test_setup_teardown(test_an_idle_server_is_not_woken, start, stop),
    };
    thread_enter("test");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
