/* Commands that come and go while the server runs: engine/command.h, command_add and its kin. */
#include "engine/helpers.h"

#include "base/thread.h"
#include "engine/acl_priv.h"
#include "engine/cmdstats.h"
#include "engine/command.h"
#include "engine/execute.h"

#include <stdio.h>

static void run(struct call *c)
{
    (void)c;
}

static const struct command_row rows[] = {
    {.name = "get",
     .run = run,
     .arity = 2,
     .flags = CMD_READONLY,
     .keys = "i1/r0,1,0/RO",
     .group = "test",
     .since = "1",
     .summary = "Tests."},
    {0},
};

static const struct command_extra extra = {.module = "m"};

static struct command_row a_row(const char *name, uint32_t flags, const char *keys)
{
    return (struct command_row){.name = name,
                                .run = run,
                                .arity = -1,
                                .flags = flags | CMD_MODULE,
                                .keys = keys,
                                .group = "module"};
}

static int setup(void **state)
{
    (void)state;
    thread_enter("test");
    command_register(rows);
    cmdstats_setup();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    acl_teardown();
    cmdstats_teardown();
    command_teardown();
    thread_leave();
    return 0;
}

static const struct command *find(const char *name)
{
    return command_find_full(slice_cstr(name));
}

static void test_come_and_go(void **state)
{
    (void)state;
    struct command_row row = a_row("Mod.Set", CMD_WRITE, "i1/r0,1,0/OW+UPDATE");
    unsigned count = command_count(), ids = command_id_count();
    struct command *c = command_add(&row, &extra);
    command_settle();
    assert_non_null(c);
    assert_int_equal(command_count(), count + 1);
    assert_ptr_equal(find("MOD.SET"), c);
    assert_string_equal(c->full_name, "Mod.Set");
    assert_int_equal(c->first_key, 1);
    assert_int_equal(c->categories, 0); /* modules say all of theirs */
    assert_null(command_add(&row, &extra));
    struct command_row taken = a_row("GET", 0, NULL);
    assert_null(command_add(&taken, &extra));
    cmdstats_record(c, 2, 100);
    command_retire(c);
    command_settle();
    assert_int_equal(command_count(), count);
    assert_null(find("mod.set"));
    assert_true(c->retired && c->run == call_reply_unknown && c->spec_count == 0);
    /* The same name has the same place and id again, and its figures. */
    assert_ptr_equal(command_add(&row, &extra), c);
    command_settle();
    assert_int_equal(command_id_count(), ids + 1);
    assert_int_equal(cmdstats_sum(c).calls, 2);
    assert_false(c->retired);
    command_retire(c);
    command_settle();
}

static void test_malformed_keys(void **state)
{
    (void)state;
    struct command_row row = a_row("mod.bad", 0, "i0/r0,1,0/RW");
    assert_null(command_add(&row, &extra));
    assert_null(find("mod.bad"));
    row.keys = "i1/r0,1,0/RW";
    struct command *c = command_add(&row, &extra);
    assert_non_null(c);
    row.keys = "kw:@1/?/";
    assert_false(command_follow_row(c));
    assert_int_equal(c->spec_count, 1);
    row.keys = NULL;
    row.arity = 3;
    assert_true(command_follow_row(c));
    assert_true(c->arity == 3 && c->spec_count == 0);
    command_retire(c);
}

static void test_many(void **state)
{
    (void)state;
    static struct command_row many[200];
    static char names[200][24];
    struct command *made[200];
    for (int i = 0; i < 200; i++) {
        snprintf(names[i], sizeof(names[i]), "many.%d", i);
        many[i] = a_row(names[i], 0, NULL);
        made[i] = command_add(&many[i], &extra);
        assert_non_null(made[i]);
    }
    command_settle();
    for (int i = 0; i < 200; i++) {
        assert_ptr_equal(find(names[i]), made[i]);
        cmdstats_record(made[i], 1, 1);
    }
    for (int i = 0; i < 200; i += 2) {
        command_retire(made[i]);
    }
    for (int i = 0; i < 200; i++) {
        assert_ptr_equal(find(names[i]), i % 2 ? made[i] : NULL);
    }
    assert_non_null(find("get"));
    for (int i = 1; i < 200; i += 2) {
        command_retire(made[i]);
    }
}

static void test_subcommands(void **state)
{
    (void)state;
    struct command_row box = a_row("Box", 0, NULL);
    static struct command_row subs[20];
    static char names[20][24];
    uint16_t ids[20];
    box.arity = -2;
    struct command *container = command_add(&box, &extra);
    for (int i = 0; i < 20; i++) {
        snprintf(names[i], sizeof(names[i]), "Sub%d", i);
        subs[i] = a_row(names[i], 0, NULL);
        struct command *c = command_add_sub(container, &subs[i], &extra);
        assert_non_null(c);
        ids[i] = c->id;
        assert_null(command_add_sub(container, &subs[i], &extra));
    }
    command_settle();
    for (int i = 0; i < 20; i++) {
        char full[32];
        snprintf(full, sizeof(full), "box|sub%d", i);
        const struct command *c = find(full);
        assert_ptr_equal(c, command_by_id(ids[i]));
        assert_ptr_equal(c->parent, container);
        assert_true(c->row == &subs[i]);
    }
    command_retire(container);
    assert_null(find("box"));
    assert_true(command_by_id(ids[7])->retired);
    struct command *again = command_add(&box, &extra);
    assert_ptr_not_equal(again, container); /* its old subcommands have the old place */
    assert_null(find("box|sub7"));
    command_retire(again);
}

static bool allows(const char *user, const struct command *c)
{
    int at;
    struct slice argv = slice_cstr(c->full_name);
    return acl_check(acl_user_find(slice_cstr(user)), c, &argv, 1, &at) == ACL_ALLOWED;
}

/* Rules speak of what is there: categories of later commands, names of what has gone. */
static void test_rules(void **state)
{
    (void)state;
    struct buf error = {0};
    struct command_row row = a_row("mod.read", CMD_READONLY, NULL);
    row.categories = CATEGORY_READ;
    struct slice some[] = {SLICE("-@all"), SLICE("+@read")},
                 but[] = {SLICE("+@all"), SLICE("-mod.read")};
    struct command *c = command_add(&row, &extra);
    command_settle();
    assert_true(acl_set_user(SLICE("some"), some, 2, NULL, &error));
    assert_true(acl_set_user(SLICE("but"), but, 2, NULL, &error));
    assert_true(allows("some", c) && !allows("but", c));
    command_retire(c);
    command_settle();
    assert_ptr_equal(command_add(&row, &extra), c);
    command_settle();
    assert_true(allows("some", c) && !allows("but", c));
    struct command_row other = a_row("mod.other", CMD_READONLY, NULL);
    struct command *d = command_add(&other, &extra);
    command_settle();
    assert_true(!allows("some", d) && allows("but", d));
    command_retire(c);
    command_retire(d);
    command_settle();
    buf_deinit(&error);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_come_and_go, setup, teardown),
        cmocka_unit_test_setup_teardown(test_malformed_keys, setup, teardown),
        cmocka_unit_test_setup_teardown(test_many, setup, teardown),
        cmocka_unit_test_setup_teardown(test_subcommands, setup, teardown),
        cmocka_unit_test_setup_teardown(test_rules, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
