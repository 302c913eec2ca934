/* What modules add to the engine and take back: options, lines of the configuration kept for them
 * (engine/config.h), categories (engine/command.h), users on no list (engine/acl.h). */
#include "engine/helpers.h"

#include "engine/acl.h"
#include "engine/config.h"

static int64_t value;
static const struct option first[] = {
    {.name = "first", .type = OPTION_INT, .target = &value, .initial = "1", .min = 0, .max = 9},
    {0}};
static const struct option added = {
    .name = "m.added", .type = OPTION_INT, .target = &value, .initial = "3", .min = 0, .max = 9};

static int setup(void **state)
{
    (void)state;
    config_register(first);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    config_teardown();
    return 0;
}

static bool read_line(const char *line)
{
    return config_load_text(slice_cstr(line), "test");
}

static void test_options(void **state)
{
    (void)state;
    assert_true(config_add(&added));
    assert_int_equal(value, 3);
    assert_false(config_add(&added));
    assert_ptr_equal(config_find(SLICE("M.Added")), &added);
    assert_true(read_line("m.added 5\n"));
    assert_int_equal(value, 5);
    config_remove(&added);
    assert_null(config_find(SLICE("m.added")));
    assert_ptr_equal(config_find(SLICE("first")), &first[0]);
    assert_true(config_add(&added));
    assert_int_equal(value, 3);
    config_remove(&added);
}

static void test_kept_lines(void **state)
{
    (void)state;
    struct buf text = {0};
    assert_false(config_drop_kept(&text));
    assert_true(read_line("a.one 1\nb.two \"x y\" z\nA.ONE 2\nb.three ''\n"));
    assert_true(config_claim_line(SLICE("a.one"), &text));
    assert_string_equal(buf_cstr(&text), "2");
    assert_false(config_claim_line(SLICE("a.one"), &text));
    buf_clear(&text);
    assert_true(config_claim_line(SLICE("b.two"), &text));
    assert_string_equal(buf_cstr(&text), "\"x y\" z");
    buf_clear(&text);
    assert_true(config_drop_kept(&text));
    assert_string_equal(buf_cstr(&text), "b.three");
    buf_clear(&text);
    assert_false(config_drop_kept(&text));
    const struct slice words[] = {SLICE("c.d"), SLICE("")};
    config_keep_line(words, 2);
    assert_true(config_claim_line(SLICE("c.d"), &text));
    assert_string_equal(buf_cstr(&text), "\"\"");
    buf_deinit(&text);
}

static void test_categories(void **state)
{
    (void)state;
    bool taken;
    assert_int_equal(command_category_add("read", &taken), 0);
    assert_true(taken);
    uint32_t one = command_category_add("mine", &taken);
    assert_true(one != 0 && !taken);
    assert_int_equal(command_category_of(SLICE("MINE")), one);
    assert_int_equal(command_category_add("mine", &taken), 0);
    assert_true(taken);
    command_category_give_back(one);
    assert_int_equal(command_category_of(SLICE("mine")), one);
    assert_int_equal(command_category_add("mine", &taken), one);
    assert_false(taken);
    char name[] = "other-a";
    while (command_category_add(name, &taken)) {
        name[6]++;
    }
    assert_false(taken);
    command_category_teardown();
    assert_int_equal(command_category_of(SLICE("mine")), 0);
    assert_int_not_equal(command_category_of(SLICE("scripting")), 0);
}

static unsigned visited;
static void count_one(struct acl_user *user)
{
    (void)user;
    visited++;
}

static void test_users(void **state)
{
    (void)state;
    struct buf error = {0};
    struct acl_user *a = acl_unlisted_create(SLICE("a")), *b = acl_unlisted_create(SLICE("b"));
    acl_unlisted_each(count_one);
    assert_int_equal(visited, 2);
    assert_null(acl_user_find(SLICE("a")));
    assert_false(acl_may_touch(a, SLICE("key"), KEY_ACCESS));
    const struct slice rules[] = {SLICE("%R~k*"), SLICE("&ch*")};
    assert_true(acl_unlisted_set(a, rules, 2, &error));
    assert_true(acl_may_touch(a, SLICE("key"), KEY_ACCESS));
    assert_false(acl_may_touch(a, SLICE("key"), KEY_ACCESS | KEY_UPDATE));
    assert_false(acl_may_touch(a, SLICE("other"), KEY_ACCESS));
    assert_true(acl_may_listen(a, SLICE("channel"), false));
    assert_false(acl_may_listen(a, SLICE("other"), false));
    const struct slice bad[] = {SLICE("resetkeys"), SLICE("%R~"), SLICE("no rule")};
    assert_false(acl_unlisted_set(a, bad, 3, &error));
    assert_true(acl_may_touch(a, SLICE("key"), KEY_ACCESS));
    acl_unlisted_destroy(&a);
    acl_unlisted_destroy(&b);
    assert_null(a);
    acl_teardown();
    buf_deinit(&error);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_options, setup, teardown),
        cmocka_unit_test_setup_teardown(test_kept_lines, setup, teardown),
        cmocka_unit_test(test_categories),
        cmocka_unit_test(test_users),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
