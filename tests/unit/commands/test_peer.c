/* Who counts as local: DEBUG and protected options may be kept to them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "commands/peer.h"

static bool local(const char *peer)
{
    struct session s = {0};
    snprintf(s.peer, sizeof(s.peer), "%s", peer);
    return peer_is_local(&s);
}

static void test_local(void **state)
{
    (void)state;
    assert_true(local("127.0.0.1:50000"));
    assert_true(local("127.8.9.1:1"));
    assert_true(local("[::1]:50000"));
    assert_true(local("::1:50000"));
    assert_true(local("::ffff:127.0.0.1:50000"));
    assert_true(local("[::ffff:127.0.0.1]:50000"));
    assert_true(local("/run/keydb/keydb.sock:0"));
    assert_true(local("s.sock:0"));
    assert_true(local("/a/path/so/long/that/its/end/did/not/fit/into/the/text"));
}

static void test_remote(void **state)
{
    (void)state;
    assert_false(local(""));
    assert_false(local("10.0.0.1:127"));
    assert_false(local("10.0.0.1:50000"));
    assert_false(local("128.0.0.1:50000"));
    assert_false(local("12.7.0.1:50000"));
    assert_false(local("[fe80::1]:50000"));
    assert_false(local("::1:2:3:50000"));
    assert_false(local("[::1:2]:50000"));
    assert_false(local("[::12]:50000"));
    assert_false(local("::ffff:10.0.0.1:50000"));
}

/* Scripts and logs run commands for nobody outside. */
static void test_internal(void **state)
{
    (void)state;
    struct session s = {.internal = true};
    assert_true(peer_is_local(&s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_local),
        cmocka_unit_test(test_remote),
        cmocka_unit_test(test_internal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
