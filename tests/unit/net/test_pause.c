/* Tests of net/pause.h: what waits, until when, and that a waiting request keeps everything it
 * needs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/thread.h"
#include "net/held.h"
#include "net/pause.h"

static const struct command_row plain;
static const struct command reads = {.flags = CMD_READONLY, .row = &plain};
static const struct command writes = {.flags = CMD_WRITE, .row = &plain};
static const struct command may_replicate = {.flags = CMD_MAY_REPLICATE, .row = &plain};

static bool waits(const struct command *cmd, int64_t now_ms)
{
    struct session session = {0};
    struct call call = {.cmd = cmd, .session = &session};
    return pause_applies(&call, now_ms);
}

static void test_nothing_waits_without_a_pause(void **state)
{
    bool all;
    (void)state;
    assert_false(waits(&reads, 0));
    assert_false(waits(&writes, INT64_MAX));
    assert_int_equal(pause_until_ms(&all), 0);
}

static void test_writes_wait_until_the_end(void **state)
{
    bool all;
    (void)state;
    pause_start(PAUSE_COMMAND, false, 1000);
    assert_true(waits(&writes, 999));
    assert_true(waits(&may_replicate, 999));
    assert_false(waits(&reads, 999));
    assert_false(waits(&writes, 1000));
    assert_int_equal(pause_until_ms(&all), 1000);
    assert_false(all);
    pause_cron(999);
    assert_true(waits(&writes, 999));
    pause_cron(1000);
    assert_false(waits(&writes, 999));
}

static void test_the_stronger_and_the_longer_stay(void **state)
{
    bool all;
    (void)state;
    pause_start(PAUSE_COMMAND, false, 2000);
    pause_start(PAUSE_COMMAND, true, 1000);
    assert_int_equal(pause_until_ms(&all), 2000);
    assert_true(all);
    assert_true(waits(&reads, 1999));
    pause_start(PAUSE_COMMAND, false, 3000);
    assert_true(waits(&reads, 2999));
    pause_end(PAUSE_COMMAND);
    assert_false(waits(&reads, 0));
    assert_int_equal(pause_until_ms(&all), 0);
    pause_start(PAUSE_COMMAND, true, INT64_MAX);
    assert_true(waits(&reads, INT64_MAX / 2 - 1));
    pause_end(PAUSE_COMMAND);
}

static void test_reasons_do_not_end_one_another(void **state)
{
    bool all;
    (void)state;
    pause_start(PAUSE_FAILOVER, false, PAUSE_NO_END_MS);
    pause_start(PAUSE_COMMAND, true, 1000);
    assert_true(waits(&reads, 999));
    pause_cron(1000);
    assert_false(waits(&reads, 999));
    assert_true(waits(&writes, 1000000));
    pause_until_ms(&all);
    assert_false(all);
    pause_start(PAUSE_COMMAND, true, 2000);
    pause_end(PAUSE_COMMAND);
    assert_false(waits(&reads, 0));
    assert_true(waits(&writes, 0));
    pause_end(PAUSE_FAILOVER);
    assert_false(waits(&writes, 0));
    assert_int_equal(pause_until_ms(&all), 0);
}

static void test_errors_and_internal_sessions_do_not_wait(void **state)
{
    struct session session = {.internal = true};
    struct call call = {.cmd = &writes, .session = &session};
    (void)state;
    pause_start(PAUSE_COMMAND, true, 1000);
    assert_false(pause_applies(&call, 0));
    session.internal = false;
    assert_true(pause_applies(&call, 0));
    call.refusal = SLICE("ERR unknown command");
    call.cmd = NULL;
    assert_false(pause_applies(&call, 0));
    pause_end(PAUSE_COMMAND);
}

static void assert_slice(struct slice s, const char *text)
{
    assert_int_equal(s.len, strlen(text));
    assert_memory_equal(s.ptr, text, s.len);
}

static void test_a_held_request_is_a_copy(void **state)
{
    struct client c = {0};
    char first[] = "set", second[] = "", third[] = "value";
    struct slice argv[] = {{first, 3}, {second, 0}, {third, 5}};
    struct request request = {.argc = 3, .argv = argv};
    (void)state;
    pause_hold(&c, &request);
    memset(first, 'x', 3);
    memset(third, 'x', 5);
    memset(argv, 0, sizeof(argv));
    assert_true(c.flags & CLIENT_PAUSED);
    assert_int_equal(pause_waiting(), 1);
    assert_int_equal(c.held->request.argc, 3);
    assert_null(c.held->request.blobs);
    assert_slice(c.held->request.argv[0], "set");
    assert_slice(c.held->request.argv[1], "");
    assert_slice(c.held->request.argv[2], "value");
    pause_forget(&c);
    pause_forget(&c);
    assert_int_equal(pause_waiting(), 0);
    assert_false(c.flags & CLIENT_PAUSED);
    mem_free(c.held);
}

static void test_a_held_request_keeps_its_blobs(void **state)
{
    struct client c = {0};
    static char content[40000];
    memset(content, 'b', sizeof(content));
    struct blob *blob = blob_create_copy(slice_of(content, sizeof(content)));
    struct slice argv[] = {SLICE("set"), SLICE("key"), {blob->bytes, 40000}};
    struct blob *blobs[] = {NULL, NULL, blob};
    struct request request = {.argc = 3, .argv = argv, .blobs = blobs};
    (void)state;
    pause_hold(&c, &request);
    parser_release(&request);
    assert_null(c.held->request.blobs[0]);
    struct slice big = c.held->request.argv[2];
    assert_ptr_equal(c.held->request.blobs[2]->bytes, big.ptr);
    assert_int_equal(big.len, 40000);
    assert_int_equal(big.ptr[39999], 'b');
    pause_forget(&c);
    parser_release(&c.held->request);
    mem_free(c.held);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_waits_without_a_pause),
        cmocka_unit_test(test_writes_wait_until_the_end),
        cmocka_unit_test(test_the_stronger_and_the_longer_stay),
        cmocka_unit_test(test_reasons_do_not_end_one_another),
        cmocka_unit_test(test_errors_and_internal_sessions_do_not_wait),
        cmocka_unit_test(test_a_held_request_is_a_copy),
        cmocka_unit_test(test_a_held_request_keeps_its_blobs),
    };
    thread_enter("test");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
