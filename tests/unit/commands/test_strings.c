/* How strings are stored by the commands: in place where that is possible, in the encoding that the
 * text asks for. */
#include "commands/caller.h"

#include "base/mem.h"
#include "value/string.h"

#include <string.h>

static void assert_encoding(const char *key, enum encoding encoding)
{
    const struct entry *e = caller_entry(key);
    assert_non_null(e);
    assert_int_equal(entry_encoding(e), encoding);
}

static void test_set_overwrites_in_place(void **state)
{
    (void)state;
    caller_run("set k aaaaaaaa");
    const struct entry *before = caller_entry("k");
    caller_run("set k bbbbbbbb");
    assert_ptr_equal(caller_entry("k"), before);
    assert_string_equal(caller_run("get k"), "$8\r\nbbbbbbbb\r\n");
    caller_run("set k ccccccccccccccccccccccccccccccccccccccccccccccccccccccc");
    assert_ptr_not_equal(caller_entry("k"), before);
    assert_string_equal(caller_run("strlen k"), ":55\r\n");
}

static void test_set_of_an_integer_is_one(void **state)
{
    (void)state;
    caller_run("set k abcd");
    caller_run("set k 1234");
    assert_encoding("k", ENCODING_INTEGER);
    const struct entry *before = caller_entry("k");
    caller_run("set k -9223372036854775808");
    assert_ptr_equal(caller_entry("k"), before);
    assert_string_equal(caller_run("get k"), "$20\r\n-9223372036854775808\r\n");
    caller_run("set k 01");
    assert_encoding("k", ENCODING_EMBEDDED);
    caller_run("set k 12345678901234567890");
    assert_encoding("k", ENCODING_EMBEDDED);
    caller_run("append k 1");
    assert_string_equal(caller_run("object encoding k"), "$3\r\nraw\r\n");
    caller_run("set k 123456789012345678901");
    assert_string_equal(caller_run("object encoding k"), "$6\r\nembstr\r\n");
}

static void test_set_and_expiry(void **state)
{
    (void)state;
    caller_run("set k aaaa pxat 99999999999999");
    const struct entry *before = caller_entry("k");
    caller_run("set k bbbb pxat 99999999999998");
    assert_ptr_equal(caller_entry("k"), before);
    assert_string_equal(caller_run("pexpiretime k"), ":99999999999998\r\n");
    caller_run("set k cccc keepttl");
    assert_ptr_equal(caller_entry("k"), before);
    assert_string_equal(caller_run("pexpiretime k"), ":99999999999998\r\n");
    caller_run("set k dddd");
    assert_string_equal(caller_run("pexpiretime k"), ":-1\r\n");
    caller_run("set k eeee pxat 99999999999997");
    assert_string_equal(caller_run("pexpiretime k"), ":99999999999997\r\n");
    caller_run("incrbyfloat k 1");
    caller_run("mset k 7");
    assert_string_equal(caller_run("pexpiretime k"), ":-1\r\n");
    /* The last millisecond of all is not "never". */
    assert_string_equal(caller_run("pexpireat k 9223372036854775807"), ":1\r\n");
    assert_string_equal(caller_run("pexpiretime k"), ":9223372036854775807\r\n");
}

static void test_a_copy_is_independent(void **state)
{
    (void)state;
    const size_t len = 5000;
    char *text = mem_alloc(len);
    memset(text, 't', len);
    struct slice argv[] = {SLICE("set"), SLICE("a"), slice_of(text, len)};
    caller_run_args(3, argv);
    assert_string_equal(caller_run("copy a b"), ":1\r\n");
    caller_run("setrange a 0 XY");
    assert_string_equal(caller_run("getrange b 0 2"), "$3\r\nttt\r\n");
    assert_string_equal(caller_run("getrange a 0 2"), "$3\r\nXYt\r\n");
    caller_run("del a");
    assert_string_equal(caller_run("strlen b"), ":5000\r\n");
    mem_free(text);
}

/* Source and destination equal, the same key twice. */
static void test_aliases(void **state)
{
    (void)state;
    caller_run("del a b");
    assert_string_equal(caller_run("rename a a"), "-ERR no such key\r\n");
    caller_run("set a 1");
    assert_string_equal(caller_run("rename a a"), "+OK\r\n");
    assert_string_equal(caller_run("renamenx a a"), ":0\r\n");
    assert_string_equal(caller_run("copy a a replace"),
                        "-ERR source and destination objects are the same\r\n");
    assert_string_equal(caller_run("msetnx b 1 b 2"), ":1\r\n");
    assert_string_equal(caller_run("mset b 3 b 4"), "+OK\r\n");
    assert_string_equal(caller_run("mget b b"), "*2\r\n$1\r\n4\r\n$1\r\n4\r\n");
    assert_string_equal(caller_run("del b b"), ":1\r\n");
    assert_string_equal(caller_run("exists a a b"), ":2\r\n");
    assert_string_equal(caller_run("move a 0"),
                        "-ERR source and destination objects are the same\r\n");
}

static void test_refused_lengths(void **state)
{
    (void)state;
    caller_run("set k abc");
    const char *const lines[] = {
        "setrange k 536870912 x",
        "setrange k 9223372036854775807 x",
        "setrange k 9223372036854775807 xxxxxxxx",
    };
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        assert_string_equal(caller_run(lines[i]), "-ERR string exceeds maximum allowed size "
                                                  "(proto-max-bulk-len)\r\n");
    }
    assert_string_equal(caller_run("setrange k -9223372036854775808 x"),
                        "-ERR offset is out of range\r\n");
    assert_string_equal(caller_run("getrange k -9223372036854775808 9223372036854775807"),
                        "$3\r\nabc\r\n");
    assert_string_equal(caller_run("getrange k 9223372036854775807 -9223372036854775808"),
                        "$0\r\n\r\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set_overwrites_in_place),
        cmocka_unit_test(test_set_of_an_integer_is_one),
        cmocka_unit_test(test_set_and_expiry),
        cmocka_unit_test(test_a_copy_is_independent),
        cmocka_unit_test(test_aliases),
        cmocka_unit_test(test_refused_lengths),
    };
    return cmocka_run_group_tests(tests, caller_setup, caller_teardown);
}
