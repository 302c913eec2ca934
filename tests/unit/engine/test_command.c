/* The command registry and the key extractor: engine/command.h. */
#include "engine/helpers.h"

#include "engine/command.h"

#include <stdio.h>

static void run(struct call *c)
{
    (void)c;
}

#define ROW(command, argument_count, command_flags, ...)                                           \
    {                                                                                              \
        .name = (command), .run = run, .arity = (argument_count), .flags = (command_flags),        \
        .group = "test", .since = "1.0.0", .summary = "Tests.", __VA_ARGS__                        \
    }
#define PLAIN_KEY .keys = "i1/r0,1,0/RO+ACCESS"

static const struct command_row config_rows[] = {
    ROW("get", -3, CMD_ADMIN | CMD_LOADING, .tips = NULL),
    ROW("set", -4, CMD_ADMIN, .tips = NULL),
    ROW("rewrite", 2, CMD_ADMIN, .tips = NULL),
    {0},
};
static const struct command_row object_rows[] = {
    ROW("encoding", 3, CMD_READONLY, .keys = "i2/r0,1,0/RO"),
    {0},
};

static const struct command_row rows[] = {
    ROW("get", 2, CMD_READONLY | CMD_FAST, PLAIN_KEY, .categories = CATEGORY_STRING),
    ROW("set", -3, CMD_WRITE, .keys = "i1/r0,1,0/RW+ACCESS+UPDATE+VARIABLE_FLAGS"),
    ROW("mset", -3, CMD_WRITE, .keys = "i1/r-1,2,0/OW+UPDATE"),
    ROW("mget", -2, CMD_READONLY, .keys = "i1/r-1,1,0/RO+ACCESS"),
    ROW("ping", -1, CMD_FAST, .categories = CATEGORY_CONNECTION),
    ROW("config", -2, 0, .subcommands = config_rows),
    ROW("object", -2, 0, .subcommands = object_rows),
    ROW("blpop", -3, CMD_WRITE | CMD_BLOCKING, .keys = "i1/r-2,1,0/RW+ACCESS+DELETE"),
    ROW("rename", 3, CMD_WRITE, .keys = "i1/r0,1,0/RW+ACCESS+DELETE; i2/r0,1,0/OW+UPDATE"),
    ROW("pfmerge", -2, CMD_WRITE, .keys = "i1/r0,1,0/RW+ACCESS+INSERT; i2/r-1,1,0/RO+ACCESS"),
    ROW("bitop", -4, CMD_WRITE, .keys = "i2/r0,1,0/OW+UPDATE; i3/r-1,1,0/RO+ACCESS"),
    ROW("bitfield", -2, CMD_WRITE, .keys = "i1/r0,1,0/RW+UPDATE+ACCESS+VARIABLE_FLAGS"),
    ROW("lcs", -3, CMD_READONLY, .keys = "i1/r1,1,0/RO+ACCESS"),
    ROW("zunion", -3, CMD_READONLY, .keys = "i1/n0,1,1/RO+ACCESS"),
    ROW("zunionstore", -4, CMD_WRITE, .keys = "i1/r0,1,0/OW+UPDATE; i2/n0,1,1/RO+ACCESS"),
    ROW("eval", -3, CMD_NOSCRIPT, .keys = "i2/n0,1,1/RW+ACCESS+UPDATE",
        .categories = CATEGORY_SCRIPTING),
    ROW("eval_ro", -3, CMD_READONLY, .keys = "i2/n0,1,1/RO+ACCESS",
        .categories = CATEGORY_SCRIPTING),
    ROW("xread", -4, CMD_READONLY | CMD_BLOCKING, .keys = "kw:STREAMS@1/r-1,1,2/RO+ACCESS"),
    ROW("georadius", -6, CMD_WRITE,
        .keys =
            "i1/r0,1,0/RO+ACCESS; kw:STORE@6/r0,1,0/OW+UPDATE; kw:STOREDIST@6/r0,1,0/OW+UPDATE"),
    ROW("georadiusbymember_ro", -5, CMD_READONLY, PLAIN_KEY),
    ROW("sort", -2, CMD_WRITE, .keys = "i1/r0,1,0/RO+ACCESS; ?/?/RO+ACCESS; ?/?/OW+UPDATE"),
    ROW("sort_ro", -2, CMD_READONLY, .keys = "i1/r0,1,0/RO+ACCESS; ?/?/RO+ACCESS"),
    ROW("migrate", -6, CMD_WRITE,
        .keys = "i3/r0,1,0/RW+ACCESS+DELETE; kw:KEYS@-2/r-1,1,0/RW+ACCESS+DELETE+INCOMPLETE"),
    ROW("keydb.nhset", -3, CMD_WRITE, .keys = "i1/r0,1,0/RW+UPDATE"),
    ROW("keydb.nhget", -2, CMD_READONLY, .keys = "?/?/RO+ACCESS"),
    ROW("spublish", 3, CMD_PUBSUB, .keys = "i1/r0,1,0/NOT_KEY"),
    ROW("keydb.mexists", -2, CMD_READONLY, .keys = "i1/r-1,1,0/RO"),
    ROW("keydb.mvccrestore", 5, CMD_WRITE, .keys = "i1/r0,1,0/OW+INSERT"),
    {0},
};

static int setup(void **state)
{
    (void)state;
    command_register(rows);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    command_teardown();
    return 0;
}

static const struct command *find(const char *name)
{
    return command_find(slice_cstr(name));
}

/* ---- Names */

static void test_names_in_any_case(void **state)
{
    (void)state;
    unsigned count = 0;
    for (; rows[count].name != NULL; count++) {
        char name[64];
        size_t len = strlen(rows[count].name);
        /* All mixtures of case that 5 bits choose, in memory that ends with the name (for
         * sanitizers). */
        for (unsigned mix = 0; mix < 32; mix++) {
            for (size_t i = 0; i < len; i++) {
                char c = rows[count].name[i];
                name[i] = (mix >> (i % 5) & 1) && c >= 'a' && c <= 'z' ? (char)(c - 32) : c;
            }
            char *exact = test_malloc(len);
            memcpy(exact, name, len);
            const struct command *c = command_find(slice_of(exact, len));
            test_free(exact);
            assert_non_null(c);
            assert_ptr_equal(c->row, &rows[count]);
        }
    }
    assert_int_equal(command_count(), count);
    assert_string_equal(command_at(0)->full_name, "get");
}

/* Every other byte in every place of every name is another name. */
static void test_near_misses(void **state)
{
    (void)state;
    for (unsigned k = 0; rows[k].name != NULL; k++) {
        char name[64];
        size_t len = strlen(rows[k].name);
        memcpy(name, rows[k].name, len);
        for (size_t i = 0; i < len; i++) {
            char original = name[i];
            for (int byte = 0; byte < 256; byte++) {
                char other = (char)byte;
                bool same = other == original ||
                            (original >= 'a' && original <= 'z' && other == original - 32);
                name[i] = other;
                const struct command *c = command_find(slice_of(name, len));
                if (same) {
                    assert_ptr_equal(c->row, &rows[k]);
                } else if (c != NULL) {
                    /* "mget" is one byte from "mset" */
                    assert_ptr_not_equal(c->row, &rows[k]);
                    assert_int_equal(strncasecmp(c->row->name, name, len), 0);
                }
            }
            name[i] = original;
        }
        assert_ptr_not_equal(command_find(slice_of(name, len - 1)), find(rows[k].name));
        name[len] = 'x';
        assert_ptr_not_equal(command_find(slice_of(name, len + 1)), find(rows[k].name));
    }
    assert_null(command_find(slice_of(NULL, 0)));
    assert_null(find("geeet"));
    assert_null(find("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"));
    assert_null(find("config|get"));
}

static void test_subcommands(void **state)
{
    (void)state;
    const struct command *config = find("config");
    const struct command *get = command_find_sub(config, SLICE("GeT"));
    assert_string_equal(get->full_name, "config|get");
    assert_ptr_equal(get->parent, config);
    assert_ptr_equal(command_find_full(SLICE("CONFIG|get")), get);
    assert_ptr_equal(command_find_full(SLICE("get")), find("get"));
    assert_null(command_find_full(SLICE("config|nope")));
    assert_null(command_find_full(SLICE("nope|get")));
    assert_null(command_find_full(SLICE("config|")));
    assert_null(command_find_full(SLICE("|get")));
    assert_null(command_find_full(SLICE("")));
    assert_null(command_find_sub(config, SLICE("ge")));
    assert_null(command_find_sub(find("get"), SLICE("get")));
    assert_int_equal(config->subcommand_count, 3);
}

static void test_ids_are_dense(void **state)
{
    (void)state;
    assert_int_equal(command_id_count(), command_count() + 4);
    for (unsigned i = 0; i < command_id_count(); i++) {
        assert_int_equal(command_by_id(i)->id, i);
    }
}

static void test_implied_categories(void **state)
{
    (void)state;
    assert_int_equal(find("get")->categories, CATEGORY_READ | CATEGORY_STRING | CATEGORY_FAST);
    assert_int_equal(find("mset")->categories, CATEGORY_WRITE | CATEGORY_SLOW);
    assert_int_equal(find("eval_ro")->categories, CATEGORY_SCRIPTING | CATEGORY_SLOW);
    assert_int_equal(find("blpop")->categories, CATEGORY_WRITE | CATEGORY_BLOCKING | CATEGORY_SLOW);
    assert_int_equal(find("spublish")->categories, CATEGORY_PUBSUB | CATEGORY_SLOW);
    assert_int_equal(command_find_full(SLICE("config|get"))->categories,
                     CATEGORY_ADMIN | CATEGORY_DANGEROUS | CATEGORY_SLOW);
    for (unsigned i = 0; command_category_names[i] != NULL; i++) {
        assert_int_equal(command_category_of(slice_cstr(command_category_names[i])), 1u << i);
    }
    assert_int_equal(command_category_of(SLICE("SortedSet")), CATEGORY_SORTEDSET);
    assert_int_equal(command_category_of(SLICE("nope")), 0);
    assert_int_equal(command_category_of(SLICE("scripting")), CATEGORY_SCRIPTING);
}

static void test_flag_names(void **state)
{
    (void)state;
    static const struct {
        uint32_t flag;
        const char *name;
    } expected[] = {
        {CMD_WRITE, "write"},
        {CMD_ASKING, "asking"},
        {CMD_NO_AUTH, "no_auth"},
        {CMD_MAY_REPLICATE, ""},
        {CMD_PROTECTED, ""},
        {CMD_NO_ASYNC_LOADING, "no_async_loading"},
        {CMD_NO_MULTI, "no_multi"},
        {CMD_MOVABLE_KEYS, "movablekeys"},
        {CMD_ALLOW_BUSY, "allow_busy"},
        {CMD_NO_MANDATORY_KEYS, "no_mandatory_keys"},
    };
    unsigned count = 0;
    while (command_flag_names[count] != NULL) {
        count++;
    }
    assert_int_equal(count, 22);
    for (size_t i = 0; i < COUNT(expected); i++) {
        unsigned bit = (unsigned)__builtin_ctz(expected[i].flag);
        assert_string_equal(command_flag_names[bit], expected[i].name);
    }
}

/* ---- Keys. The expectations are what Debian's redis-server 7.0.15 replies to COMMAND INFO and
 * GETKEYSANDFLAGS. */

static void test_classic_ranges(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int first, last, step;
        bool simple, movable;
    } expected[] = {
        {"get", 1, 1, 1, true, false},       {"ping", 0, 0, 0, true, false},
        {"mset", 1, -1, 2, true, false},     {"blpop", 1, -2, 1, true, false},
        {"rename", 1, 2, 1, true, false},    {"pfmerge", 1, -1, 1, true, false},
        {"bitop", 2, -1, 1, false, false},   {"lcs", 1, 2, 1, true, false},
        {"zunion", 0, 0, 0, false, true},    {"zunionstore", 1, 1, 1, false, true},
        {"eval", 0, 0, 0, false, true},      {"xread", 0, 0, 0, false, true},
        {"georadius", 1, 1, 1, false, true}, {"sort", 1, 1, 1, false, true},
        {"sort_ro", 1, 1, 1, false, true},   {"migrate", 3, 3, 1, false, true},
        {"set", 1, 1, 1, true, false},       {"bitfield", 1, 1, 1, true, false},
    };
    for (size_t i = 0; i < COUNT(expected); i++) {
        const struct command *c = find(expected[i].name);
        assert_int_equal(c->first_key, expected[i].first);
        assert_int_equal(c->last_key, expected[i].last);
        assert_int_equal(c->key_step, expected[i].step);
        assert_int_equal(c->simple_keys, expected[i].simple);
        assert_int_equal((c->flags & CMD_MOVABLE_KEYS) != 0, expected[i].movable);
    }
}

/* Finds the keys of `line` and writes them as "index:flags ..."; "invalid" for -1. */
static const char *keys_of(const char *line)
{
    static char text[512];
    struct slice argv[32];
    struct key_place places[32];
    int argc = helper_words(line, argv, 32);
    for (int i = 0; i < argc; i++) { /* '' stands for an empty argument */
        argv[i].len = slice_equal(argv[i], SLICE("''")) ? 0 : argv[i].len;
    }
    const struct command *c = command_find(argv[0]);
    assert_non_null(c);
    if (c->subcommand_count > 0) {
        c = command_find_sub(c, argv[1]);
        assert_non_null(c);
    }
    int count = command_find_keys(c, argv, argc, places, 32);
    if (count < 0) {
        return "invalid";
    }
    size_t len = 0;
    text[0] = '\0';
    for (int i = 0; i < count; i++) {
        assert_true(places[i].index > 0 && places[i].index < argc);
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%d:%x", i ? " " : "",
                                places[i].index, places[i].flags);
    }
    /* With too little room the count is the same, and what is stored too. */
    struct key_place one;
    assert_int_equal(command_find_keys(c, argv, argc, &one, 1), count);
    assert_int_equal(command_find_keys(c, argv, argc, NULL, 0), count);
    assert_true(count == 0 || one.index == places[0].index);
    return text;
}

#define RO_ACCESS 0x11
#define assert_keys(line, expected) assert_string_equal(keys_of(line), expected)

static void test_keys_of_ranges(void **state)
{
    (void)state;
    assert_int_equal(RO_ACCESS, KEY_RO | KEY_ACCESS);
    assert_keys("get k", "1:11");
    assert_keys("get", "invalid");
    assert_keys("ping", "");
    assert_keys("mset a 1 b 2", "1:24 3:24");
    assert_keys("mset a 1 b", "1:24 3:24");
    assert_keys("rename a b", "1:92 2:24");
    assert_keys("rename a", "invalid");
    assert_keys("pfmerge d", "1:52");
    assert_keys("pfmerge d a b", "1:52 2:11 3:11");
    assert_keys("bitop and d a b", "2:24 3:11 4:11");
    assert_keys("bitop LShift d k 3", "2:24 3:11");
    assert_keys("bitop rshift d k 3", "2:24 3:11");
    assert_keys("bitop lshift d k", "invalid");
    assert_keys("bitop rshift d k 3 4", "invalid");
    assert_keys("blpop a b 0", "1:92 2:92");
    assert_keys("blpop 0", "invalid");
    assert_keys("lcs a", "invalid");
    assert_keys("lcs a b len", "1:11 2:11");
    assert_keys("object encoding k", "2:1");
    assert_keys("spublish ch m", "1:100");
}

static void test_keys_of_counts(void **state)
{
    (void)state;
    assert_keys("zunion 2 a b", "2:11 3:11");
    assert_keys("zunion 2 a b weights 1 2", "2:11 3:11");
    assert_keys("zunion 3 a b", "invalid");
    assert_keys("zunion 0 a", "");
    assert_keys("zunion x a", "invalid");
    assert_keys("zunion -1 a", "invalid");
    assert_keys("zunion", "invalid");
    assert_keys("zunion 9223372036854775807 a b", "invalid");
    assert_keys("zunion 4294967297 a b", "invalid");
    assert_keys("zunionstore d 2 a b", "1:24 3:11 4:11");
    assert_keys("zunionstore d 3 a b", "invalid");
    assert_keys("eval s 0", "");
    assert_keys("eval s 0 a", "");
    assert_keys("eval s 1 a b", "3:32");
    assert_keys("eval s 1", "invalid");
}

static void test_keys_after_words(void **state)
{
    (void)state;
    assert_keys("xread streams a b 0 0", "2:11 3:11");
    assert_keys("xread count 1 STREAMS a 0", "4:11");
    assert_keys("xread streams a b 0", "2:11");
    assert_keys("xread streams a", "invalid");
    assert_keys("xread count 1 streams", "");
    assert_keys("xread count streams streams a 0", "3:11");
    assert_keys("georadius k 1 1 1 m", "1:11");
    assert_keys("georadius k 1 1 1 m store a", "1:11 7:24");
    assert_keys("georadius k 1 1 1 m store a storedist b", "1:11 9:24");
    assert_keys("georadius k 1 1 1 m STOREDIST a count 1 STORE b any", "1:11 11:24");
    assert_keys("georadius k 1 1 1 m store", "1:11");
}

static void test_keys_of_options(void **state)
{
    (void)state;
    assert_keys("keydb.nhset k.a.b v w", "1:822");
    assert_keys("keydb.nhget json k.a", "2:811");
    assert_keys("keydb.nhget k", "1:811");
    assert_keys("keydb.nhset k", "invalid");
    assert_keys("sort k", "1:11");
    assert_keys("sort k store dst get x store d2", "1:11 7:24");
    assert_keys("sort k by store get store store d2", "1:11 7:24");
    assert_keys("sort k limit 0 store", "1:11");
    assert_keys("sort k store", "1:11");
    assert_keys("sort", "invalid");
    assert_keys("sort_ro k store d", "1:11");
    assert_keys("migrate h 1 k 0 1", "3:92");
    assert_keys("migrate h 1 '' 0 1 keys a b c", "7:92 8:92 9:92");
    assert_keys("migrate h 1 '' 0 1 auth keys copy KEYS a", "10:92");
    assert_keys("migrate h 1 '' 0 1 auth2 keys keys keys a", "10:92");
    assert_keys("migrate h 1 k 0 1 keys a b c", "invalid");
    assert_keys("migrate h 1 '' 0 1 keys", "invalid");
    assert_keys("migrate h 1", "invalid");
    assert_keys("set a b", "1:24");
    assert_keys("set a b nx get", "1:32");
    assert_keys("set a get", "1:24");
    assert_keys("set", "invalid");
    assert_keys("bitfield a", "1:11");
    assert_keys("bitfield a get u8 0", "1:11");
    assert_keys("bitfield a get u8 0 set u8 0 1", "1:32");
    assert_keys("bitfield a get u8", "1:32");
}

/* Whatever the arguments are, places lie within them. */
static void test_keys_of_random_arguments(void **state)
{
    (void)state;
    static const char *const words[] = {
        "streams", "store",      "storedist", "keys", "get", "by",
        "limit",   "auth2",      "0",         "1",    "2",   "-1",
        "5",       "2147483647", "a",         "",     "x",   "9223372036854775807",
        "count",
    };
    uint64_t seed = 12345;
    for (int round = 0; round < 200000; round++) {
        struct slice argv[10];
        struct key_place places[32];
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
        int argc = 1 + (int)(seed >> 33) % (int)COUNT(argv);
        const struct command *c = command_at((unsigned)(seed >> 40) % command_count());
        argv[0] = slice_cstr(c->row->name);
        for (int i = 1; i < argc; i++) {
            seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
            argv[i] = slice_cstr(words[(seed >> 33) % COUNT(words)]);
        }
        int count = command_find_keys(c, argv, argc, places, COUNT(places));
        assert_true(count >= -1 && count <= 2 * argc);
        for (int i = 0; i < count; i++) {
            assert_true(places[i].index >= 1 && places[i].index < argc);
        }
    }
}

/* ---- Faulty tables */

static void register_double(void)
{
    command_register(rows);
}

static void register_two_of_a_kind(void)
{
    static const struct command_row twins[] = {
        ROW("twin", 1, 0, .tips = NULL), ROW("twin", 1, 0, .tips = NULL), {0}};
    command_register(twins);
}

#define FAULTY(function, ...)                                                                      \
    static void function(void)                                                                     \
    {                                                                                              \
        static const struct command_row faulty[] = {ROW("faulty", 2, 0, __VA_ARGS__), {0}};        \
        command_register(faulty);                                                                  \
    }
FAULTY(register_good, .keys = "i1/r0,1,0/RO")
FAULTY(register_no_flag, .keys = "i1/r0,1,0/")
FAULTY(register_bad_flag, .keys = "i1/r0,1,0/RX")
FAULTY(register_half_flag, .keys = "i1/r0,1,0/RO+")
FAULTY(register_bad_begin, .keys = "j1/r0,1,0/RO")
FAULTY(register_bad_range, .keys = "i1/r0,1/RO")
FAULTY(register_no_step, .keys = "i1/r0,0,0/RO")
FAULTY(register_huge, .keys = "i99999/r0,1,0/RO")
FAULTY(register_long_word, .keys = "kw:ABCDEFGHIJKLMNOPQRSTUVWXYZ@1/r0,1,0/RO")
FAULTY(register_tail, .keys = "i1/r0,1,0/RO x")
FAULTY(register_five, .keys = "i1/r0,1,0/RO;i2/r0,1,0/RO;i3/r0,1,0/RO;i4/r0,1,0/RO;i5/r0,1,0/RO")

static void register_capital(void)
{
    static const struct command_row faulty[] = {ROW("Faulty", 2, 0, .tips = NULL), {0}};
    command_register(faulty);
}

static void register_no_arity(void)
{
    static const struct command_row faulty[] = {ROW("faulty", 0, 0, .tips = NULL), {0}};
    command_register(faulty);
}

static void register_both(void)
{
    static const struct command_row faulty[] = {
        ROW("faulty", 1, CMD_WRITE | CMD_READONLY, .tips = NULL), {0}};
    command_register(faulty);
}

static void test_faulty_tables_abort(void **state)
{
    (void)state;
    assert_false(helper_aborts(register_good));
    static void (*const faulty[])(void) = {
        register_double,    register_two_of_a_kind, register_no_flag,   register_bad_flag,
        register_half_flag, register_bad_begin,     register_bad_range, register_no_step,
        register_huge,      register_long_word,     register_tail,      register_five,
        register_capital,   register_no_arity,      register_both,
    };
    for (size_t i = 0; i < COUNT(faulty); i++) {
        assert_true(helper_aborts(faulty[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_in_any_case),   cmocka_unit_test(test_near_misses),
        cmocka_unit_test(test_subcommands),         cmocka_unit_test(test_ids_are_dense),
        cmocka_unit_test(test_implied_categories),  cmocka_unit_test(test_flag_names),
        cmocka_unit_test(test_classic_ranges),      cmocka_unit_test(test_keys_of_ranges),
        cmocka_unit_test(test_keys_of_counts),      cmocka_unit_test(test_keys_after_words),
        cmocka_unit_test(test_keys_of_options),     cmocka_unit_test(test_keys_of_random_arguments),
        cmocka_unit_test(test_faulty_tables_abort),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
