/* Requests that wait to be looked at: the first of them first, each a copy of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/mem.h"
#include "net/held.h"
#include "resp/parser.h"

#include <stdio.h>
#include <string.h>

static void put_first(struct client *c, const char *name, int number)
{
    char text[16];
    snprintf(text, sizeof(text), "%d", number);
    struct slice argv[] = {slice_cstr(name), slice_cstr(text)};
    struct request request = {.argc = 2, .argv = argv};
    held_put_first(c, &request);
    memset(text, 'x', sizeof(text));
}

static void take(struct client *c, const char *name, const char *number)
{
    struct held_request *held = held_take(c);
    assert_int_equal(held->request.argc, 2);
    assert_true(slice_equal(held->request.argv[0], slice_cstr(name)));
    assert_true(slice_equal(held->request.argv[1], slice_cstr(number)));
    parser_release(&held->request);
    mem_free(held);
}

static void test_the_first_one_first(void **state)
{
    struct client c = {0};
    (void)state;
    put_first(&c, "third", 3);
    put_first(&c, "second", 2);
    put_first(&c, "first", 1);
    assert_int_equal(held_argument_bytes(&c), strlen("firstsecondthird") + 3);
    assert_true(held_memory_bytes(&c) >= 3 * sizeof(struct held_request));
    take(&c, "first", "1");
    put_first(&c, "again", 7);
    take(&c, "again", "7");
    take(&c, "second", "2");
    take(&c, "third", "3");
    assert_null(c.held);
    assert_int_equal(held_memory_bytes(&c), 0);
}

static void test_all_are_freed(void **state)
{
    struct client c = {0};
    (void)state;
    for (int i = 0; i < 10; i++) {
        put_first(&c, "some", i);
    }
    held_forget(&c);
    assert_null(c.held);
    held_forget(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_first_one_first),
        cmocka_unit_test(test_all_are_freed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
