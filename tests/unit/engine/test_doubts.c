/* Calls that may need the world: engine/doubts.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/hash.h"
#include "base/thread.h"
#include "engine/acl.h"
#include "engine/cmdstats.h"
#include "engine/doubts.h"

#include <string.h>

static void run(struct call *c)
{
    (void)c;
}

#define ROW(text, more)                                                                            \
    {                                                                                              \
        .name = (text), .run = run, .arity = -1, .flags = CMD_EXCLUSIVE | (more), .group = "g",    \
        .since = "1", .summary = "s", .complexity = "O(1)", .args = ""                             \
    }

static const struct command_row rows[] = {ROW("get", 0),
                                          {.name = "eval",
                                           .run = run,
                                           .arity = -3,
                                           .flags = CMD_NOSCRIPT | CMD_EXCLUSIVE,
                                           .categories = CATEGORY_SCRIPTING,
                                           .group = "scripting",
                                           .since = "1",
                                           .summary = "s",
                                           .complexity = "O(1)",
                                           .args = ""},
                                          {.name = NULL}};

static const struct command_row mod_rows[] = {ROW("mod.new", CMD_MODULE),
                                              ROW("mod.fine", CMD_MODULE),
                                              ROW("mod.world", CMD_MODULE | CMD_WORLD)};
static const struct command_extra extra = {.module = "mod"};

static bool is_new(const struct command *c)
{
    return c->flags & CMD_MODULE && strcmp(c->full_name, "mod.new") == 0;
}

static int setup(void **state)
{
    (void)state;
    thread_enter("test");
    hash_setup();
    command_register(rows);
    cmdstats_setup();
    for (int i = 0; i < 3; i++) {
        assert_non_null(command_add(&mod_rows[i], &extra));
    }
    command_settle();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    doubts_set(NULL);
    acl_teardown();
    cmdstats_teardown();
    command_teardown();
    thread_leave();
    return 0;
}

static const struct command *find(const char *name)
{
    return command_find(slice_cstr(name));
}

static struct slice words[4];

static struct call script(const char *text, const char *argument)
{
    words[0] = SLICE("eval");
    words[1] = slice_cstr(text);
    words[2] = SLICE("0");
    words[3] = slice_cstr(argument ? argument : "");
    return (struct call){.cmd = find("eval"), .argc = argument ? 4 : 3, .argv = words};
}

static bool doubts(const char *text, const char *argument)
{
    struct call c = script(text, argument);
    return doubts_call(&c);
}

static void test_commands(void **state)
{
    (void)state;
    doubts_set(NULL);
    assert_false(doubts_command(find("mod.new")));
    assert_true(doubts_command(find("mod.world")));
    doubts_set(is_new);
    assert_true(doubts_command(find("mod.new")) && doubts_command(find("mod.world")));
    assert_false(doubts_command(find("mod.fine")) || doubts_command(find("get")));
}

static void test_scripts_that_name_some(void **state)
{
    (void)state;
    doubts_set(NULL);
    assert_false(doubts("return redis.call('mod.new')", NULL));
    doubts_set(is_new);
    assert_true(doubts("return redis.call('mod.new')", NULL));
    assert_true(doubts("return redis.call(\"MOD.World\", 'x')", NULL));
    assert_false(doubts("return redis.call('mod.fine', 'get')", NULL));
    assert_false(doubts("return redis.call(mod.new) -- 'a mod.new b'", NULL));
    assert_true(doubts("return redis.call(ARGV[1])", "mod.new"));
    assert_false(doubts("''", NULL) || doubts("'", NULL) || doubts("", NULL));
}

static void test_notes(void **state)
{
    (void)state;
    doubts_set(is_new);
    struct call named = script("return redis.call('mod.new')", NULL);
    doubts_note_script(&named, false);
    assert_false(doubts_call(&named));
    assert_false(doubts("return 1", NULL));
    struct call plain = script("return 1", NULL);
    doubts_note_script(&plain, true);
    assert_true(doubts_call(&plain));
    /* Other modules: all is asked anew. */
    doubts_set(is_new);
    assert_false(doubts("return 1", NULL));
    assert_true(doubts("return redis.call('mod.new')", NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_commands),
        cmocka_unit_test(test_scripts_that_name_some),
        cmocka_unit_test(test_notes),
    };
    return cmocka_run_group_tests_name("doubts", tests, setup, teardown);
}
