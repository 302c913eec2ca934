/* Sets: value/set.h, against a naive model (a flag for each member of a small universe), in builds
 * of every limit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/mem.h"
#include "base/num.h"
#include "value/set.h"
#include "long.h"

#include <stdio.h>
#include <string.h>

#define UNIVERSE 600

static char *names[UNIVERSE];
static size_t name_lens[UNIVERSE];

static uint64_t rng_state;

static uint64_t below(uint64_t bound)
{
    uint64_t z = rng_state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (z ^ (z >> 31)) % bound;
}

static void set_limits(const char *intset, const char *listpack, const char *value)
{
    const char *texts[] = {intset, listpack, value};
    for (int i = 0; i < 3; i++) {
        const char *error;
        struct slice word = slice_cstr(texts[i]);
        assert_true(option_store(&set_options[i], &word, 1, &error));
    }
}

/* The first 400 are integers of all widths, the rest texts of many lengths, empty and long ones
 * among them. */
static int make_universe(void **state)
{
    (void)state;
    hash_set_secret(7);
    for (int i = 0; i < UNIVERSE; i++) {
        char text[400];
        size_t len;
        if (i < 400) {
            int64_t value = i % 4 == 0   ? i
                            : i % 4 == 1 ? -40000 - i
                            : i % 4 == 2 ? 3000000000 + i
                                         : INT64_MIN + i;
            len = num_format_i64(text, value);
        } else {
            len = i == 400 ? 0 : i % 50 == 0 ? (size_t)(240 + i % 400 / 10) : (size_t)(3 + i % 90);
            memset(text, 'a', len);
            if (len >= 3) {
                text[0] = (char)(i & 255);
                text[1] = (char)(i >> 8);
            }
        }
        names[i] = mem_dup(text, len);
        name_lens[i] = len;
    }
    return 0;
}

static int free_universe(void **state)
{
    (void)state;
    for (int i = 0; i < UNIVERSE; i++) {
        mem_free(names[i]);
    }
    set_limits("512", "128", "64");
    return 0;
}

static struct slice name_of(int i)
{
    return slice_of(names[i], name_lens[i]);
}

static int index_of(struct slice name)
{
    for (int i = 0; i < UNIVERSE; i++) {
        if (slice_equal(name, name_of(i))) {
            return i;
        }
    }
    fail_msg("a member that was never added");
    return -1;
}

static void count_visit(struct set_member *m, void *context)
{
    ((unsigned *)context)[index_of(set_member_bytes(m))]++;
}

/* The walk, the scan and every lookup say what the model says. */
static void check_same(const struct entry *e, const bool *there)
{
    unsigned walked[UNIVERSE] = {0}, scanned[UNIVERSE] = {0};
    struct set_walk w;
    struct set_member m;
    uint64_t count = 0, cursor = 0;
    set_walk_begin(&w, e);
    while (set_walk_next(&w, &m)) {
        count_visit(&m, walked);
    }
    do {
        cursor = set_scan(e, cursor, 7, count_visit, scanned);
    } while (cursor != 0);
    for (int i = 0; i < UNIVERSE; i++) {
        assert_int_equal(walked[i], there[i]);
        assert_int_equal(scanned[i], there[i]);
        set_member_init(&m, name_of(i));
        assert_int_equal(set_contains(e, &m), there[i]);
        count += there[i];
    }
    assert_int_equal(set_count(e), count);
    if (entry_encoding(e) == ENCODING_TABLE) {
        table_check(entry_pointer(e));
    }
}

static void check_random(const struct entry *e, const bool *there)
{
    uint64_t size = set_count(e);
    uint64_t counts[] = {0, 1, size / 4, size / 2, size};
    for (size_t i = 0; i < 5 && size > 0; i++) {
        unsigned seen[UNIVERSE] = {0};
        uint64_t sum = 0;
        set_sample(e, counts[i], count_visit, seen);
        for (int k = 0; k < UNIVERSE; k++) {
            assert_true(seen[k] <= (unsigned)there[k]);
            sum += seen[k];
        }
        assert_int_equal(sum, counts[i]);
        set_draw(e, 20, count_visit, seen);
        for (int k = 0; k < UNIVERSE; k++) {
            assert_true(seen[k] == 0 || there[k]);
        }
    }
}

static void check_copy(const struct entry *e, const bool *there)
{
    struct entry *copy = entry_copy(e, SLICE("other"), ENTRY_NO_EXPIRY);
    uint8_t one[20], two[20];
    check_same(copy, there);
    set_ops.digest(e, one);
    set_ops.digest(copy, two);
    assert_memory_equal(one, two, 20);
    assert_true(set_ops.memory(e, 0) > 0 && set_ops.free_effort(e) > 0);
    entry_destroy(&copy);
}

static void random_rounds(uint64_t seed, int first, int universe, int steps)
{
    bool there[UNIVERSE] = {false};
    struct set_member m;
    rng_state = seed;
    set_member_init(&m, name_of(first));
    struct entry *e = set_create(SLICE("key"), below(2) ? &m : NULL, 1 + below(3), ENTRY_NO_EXPIRY);
    for (int step = 0; step < UNIT_LONG(steps); step++) {
        int i = first + (int)below((uint64_t)universe);
        set_member_init(&m, name_of(i));
        if (below(step % 100 < 60 ? 4 : 2) != 0) {
            assert_int_equal(set_add(e, &m), !there[i]);
            there[i] = true;
        } else {
            assert_int_equal(set_remove(e, &m), there[i]);
            there[i] = false;
        }
        if (step % 20 == 0) {
            check_same(e, there);
            check_random(e, there);
        }
    }
    check_same(e, there);
    check_copy(e, there);
    entry_destroy(&e);
}

static void test_random_operations(void **state)
{
    (void)state;
    static const char *const all_limits[][3] = {
        {"512", "128", "64"}, {"2", "2", "4"}, {"0", "0", "0"}, {"1000000", "1000000", "1000000"},
        {"8", "0", "64"},     {"0", "8", "9"}};
    for (size_t i = 0; i < sizeof(all_limits) / sizeof(all_limits[0]); i++) {
        set_limits(all_limits[i][0], all_limits[i][1], all_limits[i][2]);
        for (uint64_t seed = 1; seed <= 4; seed++) {
            random_rounds(seed, 0, 400, 300);  /* integers alone */
            random_rounds(seed, 395, 60, 300); /* mostly texts */
            random_rounds(seed, 0, 600, 1000); /* all */
            random_rounds(seed, 396, 10, 100);
        }
    }
    set_limits("512", "128", "64");
}

static struct entry *create_of(int first, int count)
{
    struct set_member m;
    set_member_init(&m, name_of(first));
    struct entry *e = set_create(SLICE("key"), &m, 1, ENTRY_NO_EXPIRY);
    for (int i = first; i < first + count; i++) {
        set_member_init(&m, name_of(i));
        set_add(e, &m);
    }
    return e;
}

static void assert_encoding(struct entry *e, const char *name)
{
    assert_string_equal(set_ops.encoding(e), name);
    entry_destroy(&e);
}

static void test_encodings(void **state)
{
    (void)state;
    set_limits("10", "5", "20");
    assert_encoding(create_of(0, 10), "intset");
    assert_encoding(create_of(0, 11), "hashtable");
    assert_encoding(create_of(396, 5), "listpack");
    assert_encoding(create_of(396, 6), "hashtable");
    assert_encoding(create_of(449, 1), "hashtable");  /* 91 bytes */
    assert_encoding(create_of(391, 10), "hashtable"); /* nine integers, then a text */
    struct entry *e = create_of(0, 5);
    set_expect(e, 10);
    assert_string_equal(set_ops.encoding(e), "intset");
    set_expect(e, 11);
    assert_encoding(e, "hashtable");
    set_limits("512", "128", "64");
}

/* What OBJECT ENCODING says may differ; the digest of the same members does not. */
static void test_digest_knows_no_encoding(void **state)
{
    (void)state;
    uint8_t packed[20], table[20], other[20];
    struct entry *e = create_of(390, 30);
    set_ops.digest(e, packed);
    entry_destroy(&e);
    set_limits("1", "1", "1");
    e = create_of(390, 30);
    set_ops.digest(e, table);
    entry_destroy(&e);
    e = create_of(390, 29);
    set_ops.digest(e, other);
    entry_destroy(&e);
    assert_memory_equal(packed, table, 20);
    assert_memory_not_equal(packed, other, 20);
    set_limits("512", "128", "64");
}

/* The limits' caps hold whatever the options say: a listpack never gets more than 65,536 members.
 */
static void test_caps(void **state)
{
    (void)state;
    set_limits("9223372036854775807", "9223372036854775807", "9223372036854775807");
    struct set_member m;
    char *big = mem_calloc(1, 64 * 1024 + 1);
    set_member_init(&m, slice_of(big, 64 * 1024));
    struct entry *e = set_create(SLICE("key"), &m, 1, ENTRY_NO_EXPIRY);
    assert_true(set_add(e, &m));
    assert_string_equal(set_ops.encoding(e), "listpack");
    set_member_init(&m, slice_of(big, 64 * 1024 + 1));
    assert_true(set_add(e, &m));
    assert_encoding(e, "hashtable");
    mem_free(big);
    e = create_of(396, 10);
    set_expect(e, 65536);
    assert_string_equal(set_ops.encoding(e), "listpack");
    set_expect(e, 65537);
    assert_encoding(e, "hashtable");
    set_limits("512", "128", "64");
}

/* Elements of every length around the ends of the short form. */
static void test_lengths(void **state)
{
    (void)state;
    char bytes[600];
    set_limits("0", "0", "0");
    struct set_member m;
    set_member_init(&m, SLICE("x"));
    struct entry *e = set_create(SLICE("key"), &m, 1, ENTRY_NO_EXPIRY);
    memset(bytes, 'z', sizeof(bytes));
    for (size_t len = 0; len < sizeof(bytes); len++) {
        set_member_init(&m, slice_of(bytes, len));
        assert_true(set_add(e, &m));
        assert_false(set_add(e, &m));
    }
    assert_int_equal(set_count(e), sizeof(bytes));
    for (size_t len = 0; len < sizeof(bytes); len++) {
        set_member_init(&m, slice_of(bytes, len));
        assert_true(set_remove(e, &m));
        assert_false(set_contains(e, &m));
    }
    assert_int_equal(set_count(e), 0);
    entry_destroy(&e);
    set_limits("512", "128", "64");
}

/* Short members stand in the table's slots: they differ by length and by any byte, zero bytes among
 * them. */
static void test_short_members(void **state)
{
    (void)state;
    static const unsigned char values[] = {0, 1, 0x7f, 0x80, 0xff};
    set_limits("0", "0", "0");
    struct set_member m;
    struct entry *e = create_of(396, 1);
    uint64_t expected = 1;
    for (size_t len = 1; len <= 9; len++) {
        for (size_t place = 0; place < len; place++) {
            for (size_t v = 0; v < sizeof(values); v++) {
                char bytes[9] = {0};
                bytes[place] = (char)values[v];
                set_member_init(&m, slice_of(bytes, len));
                /* All zero is the same wherever the zero was put. */
                bool fresh = values[v] != 0 || place == 0;
                assert_int_equal(set_add(e, &m), fresh);
                expected += fresh;
                assert_true(set_contains(e, &m));
            }
        }
    }
    assert_int_equal(set_count(e), expected);
    table_check(entry_pointer(e));
    struct entry *copy = entry_copy(e, SLICE("copy"), ENTRY_NO_EXPIRY);
    struct set_walk w;
    set_walk_begin(&w, copy);
    while (set_walk_next(&w, &m)) {
        assert_true(set_remove(e, &m));
    }
    assert_int_equal(set_count(e), 0);
    entry_destroy(&copy);
    entry_destroy(&e);
    set_limits("512", "128", "64");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_operations),
        cmocka_unit_test(test_encodings),
        cmocka_unit_test(test_digest_knows_no_encoding),
        cmocka_unit_test(test_caps),
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_short_members),
    };
    return cmocka_run_group_tests(tests, make_universe, free_universe);
}
