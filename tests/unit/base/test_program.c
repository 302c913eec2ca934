/* The name that a program was called by: base/program.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/program.h"
#include "base/version.h"

#include <string.h>

static void test_its_own_name(void **state)
{
    (void)state;
    static const char *const names[] = {"keydb-cli", "./src/keydb-cli",       NULL,
                                        "k",         "/usr/bin/redis-server", "redis-",
                                        "",          "redis-cli-7",           "/redis-cli/"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        program_setup("keydb-cli", names[i]);
        assert_false(program_is_redis());
        assert_string_equal(program_name(), "keydb-cli");
        assert_string_equal(program_version(), KEYDB_VERSION);
    }
}

static void test_called_as_of_redis(void **state)
{
    (void)state;
    static const char *const names[] = {"redis-cli", "/usr/bin/redis-cli", "../redis-cli"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        program_setup("keydb-cli", names[i]);
        assert_true(program_is_redis());
        assert_string_equal(program_name(), "redis-cli");
        assert_string_equal(program_version(), REDIS_COMPAT_VERSION);
    }
}

/* The server writes its title over argv[0]. */
static void test_what_it_was_called_stays(void **state)
{
    (void)state;
    char argument[] = "/usr/bin/redis-server";
    program_setup("keydb-server", argument);
    memset(argument, 'x', sizeof(argument) - 1);
    assert_string_equal(program_name(), "redis-server");
    program_setup("keydb-server", "/x/redis-sentinel");
    assert_string_equal(program_called(), "redis-sentinel");
    assert_string_equal(program_name(), "keydb-server");
    char path[300];
    memset(path, 'x', sizeof(path) - 1);
    path[sizeof(path) - 1] = '\0';
    program_setup("keydb-server", path);
    assert_int_equal(strlen(program_called()), 63);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_its_own_name),
        cmocka_unit_test(test_called_as_of_redis),
        cmocka_unit_test(test_what_it_was_called_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
