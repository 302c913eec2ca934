/* Streams against an array of entries: value/stream.h, and IDs: value/stream_id.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/rand.h"
#include "ds/radix.h"
#include "value/stream.h"
#include "long.h"

#include <stdio.h>
#include <string.h>

#define MODEL_MAX 600
#define KEY SLICE("key")
#define WORDS_MAX 8

/* Entry i has the words that word_of makes of its seed. */
struct model_entry {
    struct stream_id id;
    uint64_t seed;
};
struct model {
    struct model_entry entries[MODEL_MAX];
    int count;
    uint64_t added;
    struct stream_id last, max_deleted;
};

static void set_limits(const char *bytes, const char *entries)
{
    const char *texts[] = {bytes, entries}, *error;
    for (int i = 0; i < 2; i++) {
        struct slice word = slice_cstr(texts[i]);
        assert_true(option_store(&stream_options[i], &word, 1, &error));
    }
}

static int setup(void **state)
{
    (void)state;
    hash_set_secret(1);
    return 0;
}

static int word_count(uint64_t seed)
{
    return seed % 4 == 0 ? 4 : (int)(seed % 4) * 2;
}

/* Word i: fields from a small set (so that they are often the master's), values of all kinds. */
static struct slice word_of(uint64_t seed, int i, char *text)
{
    int len;
    if (i % 2 == 0) {
        len = snprintf(text, 128, seed % 7 == 0 ? "%d" : "field%d", i);
    } else if (seed % 3 == 0) {
        len = snprintf(text, 128, "%lld", (long long)(seed * 7919 >> (seed % 60)) - 500);
    } else {
        len = snprintf(text, 128, "%0*d", (int)(seed % 90), i);
    }
    return slice_of(text, (size_t)len);
}

static void expect_entry(const struct model_entry *m, struct stream_cursor *c)
{
    char wanted[128], field_text[STREAM_TEXT_BYTES], value_text[STREAM_TEXT_BYTES];
    assert_int_equal(stream_id_compare(m->id, c->id), 0);
    assert_int_equal(c->field_count * 2, word_count(m->seed));
    /* Readers may stop anywhere. */
    uint64_t pairs = rand_below(4) ? c->field_count : rand_below(c->field_count + 1);
    for (uint64_t i = 0; i < pairs; i++) {
        struct slice field, value;
        stream_walk_pair(c, &field, &value, field_text, value_text);
        assert_true(slice_equal(field, word_of(m->seed, (int)i * 2, wanted)));
        assert_true(slice_equal(value, word_of(m->seed, (int)i * 2 + 1, wanted)));
    }
}

/* An ID of the model, near one, or far from all. */
static struct stream_id random_id(const struct model *m)
{
    struct stream_id id = {rand_below(40), rand_below(6)};
    if (m->count > 0 && rand_below(8)) {
        id = m->entries[rand_below((uint64_t)m->count)].id;
        if (rand_below(3) == 0 && rand_below(2) && !stream_id_increment(&id)) {
            return id;
        } else if (rand_below(3) == 0 && !stream_id_decrement(&id)) {
            return id;
        }
    }
    return rand_below(20) ? id : rand_below(2) ? STREAM_ID_MAX : STREAM_ID_MIN;
}

static void check_range(const struct entry *e, const struct model *m)
{
    struct stream_id first = random_id(m), last = random_id(m);
    bool down = rand_below(2);
    struct stream_cursor c;
    stream_walk(&c, e, first, last, down);
    for (int i = down ? m->count - 1 : 0; down ? i >= 0 : i < m->count; i += down ? -1 : 1) {
        struct stream_id id = m->entries[i].id;
        if (stream_id_compare(id, first) >= 0 && stream_id_compare(id, last) <= 0) {
            assert_true(stream_walk_next(&c));
            expect_entry(&m->entries[i], &c);
        }
    }
    assert_false(stream_walk_next(&c));
    assert_false(stream_walk_next(&c));
}

static void check_all(const struct entry *e, const struct model *m)
{
    const struct stream_facts *facts = stream_facts(e);
    stream_check(e);
    assert_int_equal(facts->length, m->count);
    assert_int_equal(facts->entries_added, m->added);
    assert_int_equal(stream_id_compare(facts->last_id, m->last), 0);
    assert_int_equal(stream_id_compare(facts->max_deleted_id, m->max_deleted), 0);
    struct stream_id first = m->count ? m->entries[0].id : STREAM_ID_MIN;
    assert_int_equal(stream_id_compare(facts->first_id, first), 0);
    check_range(e, m);
}

static void model_remove(struct model *m, int from, int count)
{
    m->count -= count;
    memmove(&m->entries[from], &m->entries[from + count],
            (size_t)(m->count - from) * sizeof(m->entries[0]));
}

static int place_of(const struct model *m, struct stream_id id)
{
    int i = 0;
    while (i < m->count && stream_id_compare(m->entries[i].id, id) < 0) {
        i++;
    }
    return i;
}

/* Anywhere, also where an entry is. */
static void insert(struct entry *e, struct model *m)
{
    char texts[WORDS_MAX][128];
    struct slice words[WORDS_MAX];
    struct model_entry added = {random_id(m), rand_u64() % 10000};
    if (stream_id_is_zero(added.id) || stream_id_compare(added.id, STREAM_ID_MAX) == 0) {
        return;
    }
    int count = word_count(added.seed), at = place_of(m, added.id);
    for (int i = 0; i < count; i++) {
        words[i] = word_of(added.seed, i, texts[i]);
    }
    stream_insert(e, added.id, words, count);
    if (at < m->count && stream_id_compare(m->entries[at].id, added.id) == 0) {
        model_remove(m, at, 1);
    }
    memmove(&m->entries[at + 1], &m->entries[at], (size_t)(m->count - at) * sizeof(m->entries[0]));
    m->entries[at] = added;
    m->count++;
    m->last = stream_id_compare(added.id, m->last) > 0 ? added.id : m->last;
    m->added++;
}

static void append(struct entry *e, struct model *m)
{
    char texts[WORDS_MAX][128];
    struct slice words[WORDS_MAX];
    struct model_entry added = {m->last, rand_u64() % 10000};
    uint64_t kind = rand_below(10);
    if (kind < 5) {
        assert_true(stream_id_increment(&added.id));
    } else {
        added.id.ms += 1 + rand_below(kind == 9 ? (uint64_t)1 << 50 : 3);
        added.id.seq = rand_below(3) ? rand_below(4) : rand_u64() % ((uint64_t)1 << rand_below(63));
    }
    int count = word_count(added.seed);
    for (int i = 0; i < count; i++) {
        words[i] = word_of(added.seed, i, texts[i]);
    }
    stream_append(e, added.id, words, count);
    m->entries[m->count++] = added;
    m->last = added.id;
    m->added++;
}

static void delete_one(struct entry *e, struct model *m)
{
    struct stream_id id = random_id(m);
    int i = 0;
    while (i < m->count && stream_id_compare(m->entries[i].id, id) != 0) {
        i++;
    }
    bool there = i < m->count;
    struct stream_cursor c;
    assert_int_equal(stream_find(e, id, &c), there);
    assert_int_equal(stream_delete(e, id), there);
    if (there) {
        model_remove(m, i, 1);
        if (stream_id_compare(id, m->max_deleted) > 0) {
            m->max_deleted = id;
        }
    }
}

static void trim(struct entry *e, struct model *m)
{
    struct stream_trim t = {
        .kind = rand_below(2) ? STREAM_TRIM_LENGTH : STREAM_TRIM_ID,
        .approximate = rand_below(3) == 0,
        .length = (uint64_t)m->count > 12 && rand_below(30) ? (uint64_t)m->count - rand_below(12)
                                                            : rand_below(20),
        .id = m->count > 0 && rand_below(30) ? m->entries[rand_below((uint64_t)m->count) / 8].id
                                             : random_id(m),
    };
    uint64_t wanted = 0;
    if (t.kind == STREAM_TRIM_LENGTH) {
        wanted = (uint64_t)m->count > t.length ? (uint64_t)m->count - t.length : 0;
    } else {
        while (wanted < (uint64_t)m->count && stream_id_compare(m->entries[wanted].id, t.id) < 0) {
            wanted++;
        }
    }
    if (t.approximate && rand_below(2)) {
        t.limit = 1 + rand_below(20);
    }
    uint64_t removed = stream_trim(e, &t);
    if (t.approximate) {
        assert_true(removed <= wanted && (t.limit == 0 || removed <= t.limit));
    } else {
        assert_int_equal(removed, wanted);
    }
    model_remove(m, 0, (int)removed);
}

static void digests_equal(const struct entry *a, const struct entry *b, bool equal)
{
    uint8_t x[20], y[20];
    stream_ops.digest(a, x);
    stream_ops.digest(b, y);
    assert_int_equal(memcmp(x, y, sizeof(x)) == 0, equal);
}

static void check_copy(struct entry *e, const struct model *m)
{
    struct entry *copy = entry_copy(e, SLICE("other"), ENTRY_NO_EXPIRY);
    struct model changed = *m;
    check_all(copy, m);
    digests_equal(e, copy, true);
    changed.count = changed.count < MODEL_MAX ? changed.count : MODEL_MAX - 1;
    if (changed.count == m->count) {
        append(copy, &changed);
        check_all(copy, &changed);
        check_all(e, m);
        digests_equal(e, copy, false);
    }
    assert_true(entry_memory_bytes(copy, 0) > 0);
    entry_destroy(&copy);
}

static void run_with(const char *bytes, const char *entries, bool between)
{
    static struct model m;
    memset(&m, 0, sizeof(m));
    set_limits(bytes, entries);
    struct entry *e = stream_create(KEY);
    assert_int_equal(entry_type(e), VALUE_STREAM);
    check_all(e, &m);
    for (int step = 0; step < UNIT_LONG(6000); step++) {
        bool growing = step % 2000 < 1200;
        uint64_t kind = rand_below(20);
        if (kind < (growing ? 16 : 6)) {
            if (m.count < MODEL_MAX && between && rand_below(2)) {
                insert(e, &m);
            } else if (m.count < MODEL_MAX) {
                append(e, &m);
            }
        } else if (kind < 19) {
            delete_one(e, &m);
        } else {
            trim(e, &m);
        }
        check_range(e, &m);
        if (step % 16 == 0) {
            check_all(e, &m);
        }
        if (step % 400 == 0) {
            check_copy(e, &m);
        }
    }
    entry_destroy(&e);
    set_limits("4096", "100");
}

static void run(const char *bytes, const char *entries)
{
    run_with(bytes, entries, false);
    run_with(bytes, entries, true);
}

static void test_one_entry_nodes(void **state)
{
    (void)state;
    run("4096", "1");
}
static void test_two_entry_nodes(void **state)
{
    (void)state;
    run("4096", "2");
}
static void test_small_nodes(void **state)
{
    (void)state;
    run("200", "0");
}
static void test_usual_nodes(void **state)
{
    (void)state;
    run("4096", "100");
}
static void test_unlimited_nodes(void **state)
{
    (void)state;
    run("0", "0");
}

/* Approximate trimming takes out whole nodes, as many as it may. */
static void test_trim_by_nodes(void **state)
{
    (void)state;
    struct slice words[] = {SLICE("f"), SLICE("v")};
    struct stream_trim t = {.kind = STREAM_TRIM_LENGTH, .approximate = true, .length = 13};
    set_limits("4096", "10");
    struct entry *e = stream_create(KEY);
    for (uint64_t i = 1; i <= 45; i++) {
        stream_append(e, (struct stream_id){i, 0}, words, 2);
    }
    assert_int_equal(stream_nodes(e)->count, 5);
    t.limit = 19;
    assert_int_equal(stream_trim(e, &t), 10);
    t.limit = 0;
    assert_int_equal(stream_trim(e, &t), 20);
    assert_int_equal(stream_trim(e, &t), 0);
    assert_int_equal(stream_facts(e)->length, 15);
    t.kind = STREAM_TRIM_ID;
    t.id = (struct stream_id){40, 0};
    assert_int_equal(stream_trim(e, &t), 0);
    t.id = (struct stream_id){40, 1};
    assert_int_equal(stream_trim(e, &t), 10);
    stream_check(e);
    assert_int_equal(stream_trim_usual_limit(), 1000);
    set_limits("4096", "0");
    assert_int_equal(stream_trim_usual_limit(), 10000);
    set_limits("4096", "9223372036854775807");
    assert_int_equal(stream_trim_usual_limit(), 1000000);
    set_limits("4096", "100");
    entry_destroy(&e);
}

/* Nodes stop at the caps whatever the options say. */
static void test_caps(void **state)
{
    (void)state;
    char big[4000];
    struct slice words[] = {SLICE("f"), slice_of(big, sizeof(big))};
    memset(big, 'x', sizeof(big));
    set_limits("0", "0");
    struct entry *e = stream_create(KEY);
    for (uint64_t i = 1; i <= 1000; i++) {
        stream_append(e, (struct stream_id){i, 0}, words, 2);
    }
    struct radix_cursor c = radix_first(stream_nodes(e));
    for (; radix_cursor_valid(&c); radix_cursor_next(&c)) {
        assert_true(listpack_bytes(radix_cursor_value(&c)) <= STREAM_NODE_BYTES_CAP + 100);
    }
    assert_int_equal(stream_nodes(e)->count, 4);
    stream_check(e);
    entry_destroy(&e);
    set_limits("4096", "100");
    struct slice huge = {big, STREAM_ENTRY_MAX_BYTES}, two[] = {huge, SLICE("x")};
    size_t need = 0;
    assert_true(stream_entry_fits(NULL, &huge, 1, &need) && need > STREAM_ENTRY_MAX_BYTES);
    assert_false(stream_entry_fits(NULL, two, 2, &need));
}

static void expect_next(struct stream_facts facts, int64_t now_ms, bool is, struct stream_id wanted)
{
    struct stream_id id = {7, 7};
    assert_int_equal(stream_next_id(&facts, now_ms, &id), is);
    assert_true(!is || stream_id_compare(id, wanted) == 0);
}

static void test_next_ids(void **state)
{
    (void)state;
    struct stream_facts f = {.last_id = {5, 3}};
    expect_next(f, 6, true, (struct stream_id){6, 0});
    expect_next(f, 5, true, (struct stream_id){5, 4});
    expect_next(f, 1, true, (struct stream_id){5, 4});
    struct stream_id id = {4, 0};
    assert_false(stream_next_seq(&f, &id));
    id.ms = 5;
    assert_true(stream_next_seq(&f, &id));
    assert_int_equal(id.seq, 4);
    id.ms = 6;
    assert_true(stream_next_seq(&f, &id));
    assert_int_equal(id.seq, 0);
    f.last_id.seq = UINT64_MAX;
    id.ms = 5;
    assert_false(stream_next_seq(&f, &id));
    expect_next(f, 1, true, (struct stream_id){6, 0});
    f.last_id = STREAM_ID_MAX;
    expect_next(f, 1, false, STREAM_ID_MIN);
    f.last_id = STREAM_ID_MIN;
    id.ms = 0;
    assert_true(stream_next_seq(&f, &id));
    assert_int_equal(id.seq, 1);
}

/* Of a node with a tag: no other node's, greater than the last one, and close to it. */
static void test_tagged_ids(void **state)
{
    (void)state;
    const uint64_t tag = 0x80000001, one = (uint64_t)1 << 32;
    struct stream_facts f = {.last_id = {5, 3}};
    struct stream_id id = {5, 0};
    stream_set_id_tag((uint32_t)tag);
    expect_next(f, 6, true, (struct stream_id){6, tag});
    expect_next(f, 5, true, (struct stream_id){5, tag});
    f.last_id.seq = tag;
    expect_next(f, 5, true, (struct stream_id){5, one + tag});
    assert_true(stream_next_seq(&f, &id));
    assert_true(id.seq == one + tag);
    f.last_id.seq = one + tag + 1;
    expect_next(f, 5, true, (struct stream_id){5, 2 * one + tag});
    f.last_id.seq = UINT64_MAX;
    expect_next(f, 5, true, (struct stream_id){6, tag});
    assert_false(stream_next_seq(&f, &id));
    f.last_id = STREAM_ID_MAX;
    expect_next(f, 5, false, STREAM_ID_MIN);
    f.last_id = STREAM_ID_MIN;
    id.ms = 0;
    assert_true(stream_next_seq(&f, &id));
    assert_true(id.seq == tag);
    stream_set_id_tag(0);
}

/* ---- IDs ---- */

static void test_id_text(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool valid, open;
        struct stream_id id; /* with 9 for a missing sequence number */
    } rows[] = {
        {"0-0", true, false, {0, 0}},
        {"5", true, false, {5, 9}},
        {"5-7", true, false, {5, 7}},
        {"18446744073709551615-18446744073709551615", true, false, {UINT64_MAX, UINT64_MAX}},
        {"007-08", true, false, {7, 8}},
        {"5-*", true, true, {5, 0}},
        {"18446744073709551616-1", false, false, {0, 0}},
        {"1-18446744073709551616", false, false, {0, 0}},
        {"", false, false, {0, 0}},
        {"-", false, false, {0, 0}},
        {"+", false, false, {0, 0}},
        {"*", false, false, {0, 0}},
        {"-5", false, false, {0, 0}},
        {"5-", false, false, {0, 0}},
        {"5--1", false, false, {0, 0}},
        {"5-1-1", false, false, {0, 0}},
        {"5-**", false, false, {0, 0}},
        {"5x", false, false, {0, 0}},
        {"x", false, false, {0, 0}},
        {"1.5", false, false, {0, 0}},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct stream_id id = {77, 77};
        bool any;
        struct slice text = slice_cstr(rows[i].text);
        assert_int_equal(stream_id_parse_open(text, 9, &id, &any), rows[i].valid);
        assert_int_equal(any, rows[i].open);
        assert_int_equal(
            stream_id_compare(id, rows[i].valid ? rows[i].id : (struct stream_id){77, 77}), 0);
        assert_int_equal(stream_id_parse(text, 9, &id), rows[i].valid && !rows[i].open);
    }
    struct stream_id id;
    char zeros[140];
    memset(zeros, '0', sizeof(zeros));
    assert_true(stream_id_parse(slice_of(zeros, 127), 0, &id));
    assert_false(stream_id_parse(slice_of(zeros, 128), 0, &id));
    assert_false(stream_id_parse(slice_of("1\0"
                                          "2",
                                          3),
                                 0, &id));
    assert_true(stream_id_parse_bound(SLICE("-"), 0, &id) && stream_id_is_zero(id));
    assert_true(stream_id_parse_bound(SLICE("+"), 0, &id) && id.seq == UINT64_MAX);
    assert_false(stream_id_parse_bound(SLICE("5-*"), 0, &id));
}

static void test_id_order(void **state)
{
    (void)state;
    struct stream_id ids[] = {{0, 0},     {0, 1},        {0, UINT64_MAX}, {1, 0},
                              {255, 3},   {256, 0},      {1ull << 32, 5}, {1ull << 63, 0},
                              {~0ull, 0}, {~0ull, ~0ull}};
    size_t count = sizeof(ids) / sizeof(ids[0]);
    for (size_t i = 0; i < count; i++) {
        char a[STREAM_ID_KEY_BYTES], b[STREAM_ID_KEY_BYTES], text[STREAM_ID_TEXT_BYTES];
        struct slice key = stream_id_key(ids[i], a);
        assert_int_equal(stream_id_compare(stream_id_of_key(a), ids[i]), 0);
        struct stream_id id = ids[i];
        assert_true(stream_id_parse(stream_id_format(ids[i], text), 0, &id));
        assert_int_equal(stream_id_compare(id, ids[i]), 0);
        assert_int_equal(stream_id_increment(&id), i + 1 < count);
        assert_true(i + 1 == count ||
                    (stream_id_compare(id, ids[i]) > 0 && stream_id_compare(id, ids[i + 1]) <= 0));
        assert_true(i + 1 == count || stream_id_decrement(&id));
        assert_int_equal(stream_id_compare(id, ids[i]), 0);
        assert_int_equal(stream_id_decrement(&id), i > 0);
        for (size_t j = 0; j < count; j++) {
            int order = slice_compare(key, stream_id_key(ids[j], b));
            assert_int_equal((order > 0) - (order < 0), (i > j) - (i < j));
            assert_int_equal(stream_id_compare(ids[i], ids[j]), (i > j) - (i < j));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_id_text),
        cmocka_unit_test(test_id_order),
        cmocka_unit_test(test_next_ids),
        cmocka_unit_test(test_tagged_ids),
        cmocka_unit_test(test_one_entry_nodes),
        cmocka_unit_test(test_two_entry_nodes),
        cmocka_unit_test(test_small_nodes),
        cmocka_unit_test(test_usual_nodes),
        cmocka_unit_test(test_unlimited_nodes),
        cmocka_unit_test(test_trim_by_nodes),
        cmocka_unit_test(test_caps),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
