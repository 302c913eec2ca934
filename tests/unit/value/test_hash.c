/* The hash type: value/hash.h, against a naive model (an array that says of each field of a fixed
 * universe whether it is there, and with which value), in both encodings and over the change from
 * one to the other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/thread.h"
#include "value/hash.h"
#include "value/hash_element.h"
#include "long.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNIVERSE 1500
#define TEXT_MAX 40000

/* splitmix64: a fixed sequence for each seed. */
static uint64_t rng_state;

static uint64_t next_random(void)
{
    uint64_t z = rng_state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static uint64_t below(uint64_t bound)
{
    return next_random() % bound;
}

static void set_option(const char *name, const char *text)
{
    const char *error = NULL;
    for (const struct option *o = hash_options; o->name; o++) {
        if (strcmp(o->name, name) == 0) {
            struct slice word = slice_cstr(text);
            assert_true(option_store(o, &word, 1, &error));
            return;
        }
    }
    fail_msg("no option %s", name);
}

static void set_limits(const char *entries, const char *value)
{
    set_option("hash-max-listpack-entries", entries);
    set_option("hash-max-listpack-value", value);
}

static int default_limits(void **state)
{
    (void)state;
    set_limits("512", "64");
    rng_state = 1;
    return 0;
}

/* ---- the model ---- */

/* A value is a kind with a number; its text follows from them. */
struct model_value {
    bool present;
    uint32_t kind, number;
    uint32_t visits;
};

struct model {
    struct model_value values[UNIVERSE];
    uint64_t len;
};

static char value_bytes[TEXT_MAX + 8], field_bytes[1024];

static struct slice field_text(uint32_t id)
{
    int len = snprintf(field_bytes, sizeof(field_bytes), "%s%u", id % 3 ? "field:" : "", id);
    if (id % 50 == 7) {
        /* Around the length that one byte can tell. */
        memset(field_bytes + len, 'x', 250);
        len += 240 + (int)(id / 50 % 10);
    }
    return id == 0 ? SLICE("") : slice_of(field_bytes, (size_t)len);
}

static struct slice value_text(uint32_t kind, uint32_t number)
{
    static const size_t sizes[] = {0,
                                   1,
                                   15,
                                   63,
                                   64,
                                   65,
                                   200,
                                   4095,
                                   HASH_ELEMENT_EMBEDDED_MAX,
                                   HASH_ELEMENT_EMBEDDED_MAX + 1,
                                   TEXT_MAX};
    size_t size = sizes[kind % (sizeof(sizes) / sizeof(sizes[0]))];
    if (kind >= 100) {
        /* Integers, which a listpack keeps as such. */
        int64_t integer = (int64_t)((uint64_t)number << (kind % 64));
        return slice_of(value_bytes, (size_t)snprintf(value_bytes, 32, "%lld", (long long)integer));
    }
    memset(value_bytes, 'a' + (int)(number % 26), size + 1);
    snprintf(value_bytes, size + 1, "%u", number);
    value_bytes[size > 10 ? 10 : size] = 'z';
    return slice_of(value_bytes, size);
}

static void assert_text(struct slice got, struct slice expected)
{
    assert_int_equal(got.len, expected.len);
    if (expected.len > 0) {
        assert_memory_equal(got.ptr, expected.ptr, expected.len);
    }
}

static void assert_value(const struct hash_text *got, const struct model_value *expected)
{
    assert_text(got->bytes, value_text(expected->kind, expected->number));
    assert_true(!got->blob || got->bytes.len > HASH_ELEMENT_EMBEDDED_MAX);
}

static uint32_t id_of(struct slice field)
{
    char text[64] = {0};
    size_t skipped = field.len > 6 && memcmp(field.ptr, "field:", 6) == 0 ? 6 : 0;
    if (field.len == 0) {
        return 0;
    }
    size_t len = field.len - skipped < 10 ? field.len - skipped : 10;
    memcpy(text, field.ptr + skipped, len);
    uint32_t id = (uint32_t)strtoul(text, NULL, 10);
    assert_true(id < UNIVERSE);
    assert_text(field, field_text(id));
    return id;
}

static void visit(const struct hash_item *item, void *context)
{
    struct model *m = context;
    struct model_value *v = &m->values[id_of(item->field)];
    assert_true(v->present);
    assert_value(&item->value, v);
    v->visits++;
}

static void assert_same(const struct entry *e, struct model *m)
{
    hash_check(e);
    assert_int_equal(hash_len(e), m->len);
    for (uint32_t id = 0; id < UNIVERSE; id++) {
        struct hash_text value;
        m->values[id].visits = 0;
        assert_int_equal(hash_has(e, field_text(id)), m->values[id].present);
        assert_int_equal(hash_get(e, field_text(id), &value), m->values[id].present);
        if (m->values[id].present) {
            assert_value(&value, &m->values[id]);
        }
    }
    hash_each(e, visit, m);
    for (uint32_t id = 0; id < UNIVERSE; id++) {
        assert_int_equal(m->values[id].visits, m->values[id].present);
    }
}

static void model_set(struct entry **e, struct model *m, uint32_t id, uint32_t kind,
                      uint32_t number)
{
    struct model_value *v = &m->values[id];
    struct slice value = value_text(kind, number);
    struct blob *blob = number % 2 && value.len > 1000 ? blob_create_copy(value) : NULL;
    assert_int_equal(hash_set(e, field_text(id), value, blob), !v->present);
    blob_release(&blob);
    m->len += !v->present;
    *v = (struct model_value){true, kind, number, 0};
}

static void model_delete(struct entry *e, struct model *m, uint32_t id)
{
    assert_int_equal(hash_delete(e, field_text(id)), m->values[id].present);
    m->len -= m->values[id].present;
    m->values[id].present = false;
}

/* Random changes among the first `ids` fields; values of kinds below `kinds` or integers. */
static void change(struct entry **e, struct model *m, uint32_t ids, uint32_t kinds, unsigned steps)
{
    /* Growing and shrinking by turns, so that the table splits and merges. */
    unsigned sets_of_ten = 3 + (unsigned)below(6);
    for (unsigned i = 0; i < UNIT_LONG(steps); i++) {
        uint32_t id = (uint32_t)below(ids);
        if (below(10) < sets_of_ten) {
            uint32_t kind = below(2) ? 100 + (uint32_t)below(64) : (uint32_t)below(kinds);
            model_set(e, m, id, kind, (uint32_t)below(1000000));
        } else {
            model_delete(*e, m, id);
        }
    }
}

static struct entry *create(void)
{
    return hash_create(SLICE("key"), NULL, 0);
}

/* What other commands do to an entry: none of it may lose a field. */
static void move(struct entry **e)
{
    static const char keys[] = "a key that becomes longer and shorter again, beyond any size class";
    struct entry *copy;
    switch (below(6)) {
    case 0:
        *e = entry_with_expiry(*e, below(2) ? 12345 : ENTRY_NO_EXPIRY);
        break;
    case 1:
        *e = entry_with_key(*e, slice_of(keys, below(sizeof(keys))));
        break;
    case 2:
        copy = entry_copy(*e, SLICE("copy"), ENTRY_NO_EXPIRY);
        entry_destroy(e);
        *e = copy;
        break;
    case 3:
        hash_fit(e);
        break;
    default:
        break;
    }
}

static void run_model(uint32_t ids, uint32_t kinds, unsigned rounds, unsigned steps)
{
    struct model *m = mem_calloc(1, sizeof(*m));
    struct entry *e = create();
    for (unsigned i = 0; i < rounds; i++) {
        change(&e, m, ids, kinds, steps);
        assert_same(e, m);
        move(&e);
        assert_same(e, m);
    }
    entry_destroy(&e);
    mem_free(m);
}

static void test_small_hash_as_model(void **state)
{
    (void)state;
    run_model(40, 3, 200, 20);
}

static void test_large_hash_as_model(void **state)
{
    (void)state;
    run_model(UNIVERSE, 11, 30, 3000);
}

static void test_tiny_limits_as_model(void **state)
{
    (void)state;
    for (unsigned i = 0; i < UNIT_LONG(200); i++) {
        char entries[8], value[8];
        snprintf(entries, sizeof(entries), "%u", i % 4);
        snprintf(value, sizeof(value), "%u", i % 5 * 16);
        set_limits(entries, value);
        run_model(6, 6, 5, 8);
    }
}

/* ---- encodings ---- */

static const char *encoding_of(const struct entry *e)
{
    return hash_ops.encoding(e);
}

static void fill(struct entry **e, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++) {
        char text[16];
        int len = snprintf(text, sizeof(text), "f%u", i);
        hash_set(e, slice_of(text, (size_t)len), slice_of(text, (size_t)len), NULL);
    }
}

static void test_more_fields_than_allowed_make_a_table(void **state)
{
    (void)state;
    struct entry *e = create();
    fill(&e, 0, 512);
    assert_string_equal(encoding_of(e), "listpack");
    fill(&e, 0, 512);
    assert_string_equal(encoding_of(e), "listpack");
    fill(&e, 512, 513);
    assert_string_equal(encoding_of(e), "hashtable");
    hash_delete(e, SLICE("f1"));
    assert_string_equal(encoding_of(e), "hashtable");
    entry_destroy(&e);
}

static void test_long_texts_make_a_table(void **state)
{
    (void)state;
    char longest[65];
    memset(longest, 'x', sizeof(longest));
    for (int as_field = 0; as_field < 2; as_field++) {
        for (size_t len = 64; len <= 65; len++) {
            struct entry *e = create();
            struct slice text = slice_of(longest, len);
            hash_set(&e, SLICE("a"), SLICE("b"), NULL);
            hash_set(&e, as_field ? text : SLICE("a"), as_field ? SLICE("b") : text, NULL);
            assert_string_equal(encoding_of(e), len == 64 ? "listpack" : "hashtable");
            assert_int_equal(hash_len(e), as_field ? 2 : 1);
            hash_check(e);
            entry_destroy(&e);
        }
    }
}

static void test_prepare_looks_at_all_texts(void **state)
{
    (void)state;
    static char longest[65];
    struct slice texts[4] = {SLICE("a"), SLICE("b"), SLICE("c"), slice_of(longest, 64)};
    struct entry *e = create();
    hash_prepare(&e, texts, 4);
    assert_string_equal(encoding_of(e), "listpack");
    texts[3].len = 65;
    hash_prepare(&e, texts, 4);
    assert_string_equal(encoding_of(e), "hashtable");
    hash_prepare(&e, texts, 4);
    assert_int_equal(hash_len(e), 0);
    entry_destroy(&e);

    set_limits("1", "64");
    e = create();
    hash_prepare(&e, texts, 2);
    assert_string_equal(encoding_of(e), "listpack");
    hash_prepare(&e, texts, 4);
    assert_string_equal(encoding_of(e), "hashtable");
    entry_destroy(&e);
}

static void test_caps_hold_whatever_is_set(void **state)
{
    (void)state;
    set_limits("9223372036854775807", "9223372036854775807");
    struct entry *e = create();
    fill(&e, 0, HASH_PACKED_MAX_FIELDS);
    assert_string_equal(encoding_of(e), "listpack");
    fill(&e, HASH_PACKED_MAX_FIELDS, HASH_PACKED_MAX_FIELDS + 1);
    assert_string_equal(encoding_of(e), "hashtable");
    hash_check(e);
    entry_destroy(&e);

    char *large = mem_calloc(1, HASH_PACKED_MAX_BYTES + 1);
    e = create();
    hash_set(&e, SLICE("a"), slice_of(large, HASH_PACKED_MAX_BYTES / 2), NULL);
    assert_string_equal(encoding_of(e), "listpack");
    hash_set(&e, SLICE("b"), slice_of(large, HASH_PACKED_MAX_BYTES / 2), NULL);
    assert_string_equal(encoding_of(e), "hashtable");
    hash_check(e);
    assert_int_equal(hash_len(e), 2);
    entry_destroy(&e);
    mem_free(large);
}

/* ---- where the pairs are ---- */

static void test_small_hashes_are_one_block(void **state)
{
    (void)state;
    struct slice texts[] = {SLICE("name"), SLICE("a value of some bytes"), SLICE("n"), SLICE("1")};
    struct entry *e = hash_create(SLICE("key"), texts, 4), *before = e;
    hash_set(&e, texts[0], texts[1], NULL);
    hash_set(&e, texts[2], texts[3], NULL);
    assert_ptr_equal(e, before);
    assert_false(e->flags & ENTRY_EXTERNAL);
    assert_int_equal(entry_memory_bytes(e, 0), entry_block_bytes(e));
    entry_destroy(&e);
}

static void test_a_hash_that_grows_stays_where_it_is_cheaper(void **state)
{
    (void)state;
    struct entry *e = create();
    size_t inside = 0, outside = 0;
    for (uint32_t i = 0; i < 400; i++) {
        fill(&e, i, i + 1);
        hash_check(e);
        bool external = e->flags & ENTRY_EXTERNAL;
        inside += !external;
        outside += external;
    }
    assert_true(inside > 20 && outside > 200);
    assert_string_equal(encoding_of(e), "listpack");
    for (uint32_t i = 2; i < 400; i++) {
        char text[16];
        int len = snprintf(text, sizeof(text), "f%u", i);
        assert_true(hash_delete(e, slice_of(text, (size_t)len)));
        hash_fit(&e);
    }
    hash_check(e);
    assert_int_equal(hash_len(e), 2);
    assert_true(entry_memory_bytes(e, 0) <= 64);
    entry_destroy(&e);
}

/* ---- values in blobs ---- */

static void test_long_values_are_references(void **state)
{
    (void)state;
    size_t len = HASH_ELEMENT_EMBEDDED_MAX + 1;
    struct blob *blob = blob_try_create(len);
    assert_non_null(blob);
    blob->len = len;
    memset(blob->bytes, 'v', len);
    struct entry *e = create();
    struct hash_text value;
    hash_set(&e, SLICE("f"), blob_slice(blob), blob);
    assert_false(blob_is_exclusive(blob));
    assert_true(hash_get(e, SLICE("f"), &value));
    assert_ptr_equal(value.blob, blob);

    struct entry *copy = entry_copy(e, SLICE("copy"), ENTRY_NO_EXPIRY);
    hash_set(&e, SLICE("f"), SLICE("short"), NULL);
    assert_false(blob_is_exclusive(blob));
    assert_true(hash_get(copy, SLICE("f"), &value));
    assert_ptr_equal(value.blob, blob);
    hash_delete(copy, SLICE("f"));
    assert_true(blob_is_exclusive(blob));
    entry_destroy(&copy);
    entry_destroy(&e);
    blob_release(&blob);
}

static void test_overwriting_in_place(void **state)
{
    (void)state;
    struct hash_element *el = hash_element_create(SLICE("field"), SLICE("123456789"), NULL);
    struct hash_element *same = hash_element_store(el, SLICE("12345678"), NULL);
    assert_ptr_equal(same, el);
    assert_text(hash_element_value(same), SLICE("12345678"));
    assert_text(hash_element_field(same), SLICE("field"));
    same = hash_element_store(same, SLICE("1234567890123456789012345"), NULL);
    assert_text(hash_element_value(same), SLICE("1234567890123456789012345"));
    assert_text(hash_element_field(same), SLICE("field"));
    hash_element_destroy(&same);
    assert_null(same);
}

/* ---- copies, digests, sizes ---- */

static void digest_of(const struct entry *e, uint8_t sum[20])
{
    hash_ops.digest(e, sum);
}

static void test_digest_ignores_order_and_encoding(void **state)
{
    (void)state;
    uint8_t one[20], two[20];
    struct entry *a = create(), *b = create();
    fill(&a, 0, 100);
    fill(&b, 50, 100);
    fill(&b, 0, 50);
    digest_of(a, one);
    digest_of(b, two);
    assert_memory_equal(one, two, 20);
    set_limits("10", "64");
    struct entry *t = create();
    fill(&t, 0, 100);
    assert_string_equal(encoding_of(t), "hashtable");
    digest_of(t, two);
    assert_memory_equal(one, two, 20);
    hash_set(&t, SLICE("f1"), SLICE("other"), NULL);
    digest_of(t, two);
    assert_memory_not_equal(one, two, 20);
    entry_destroy(&a);
    entry_destroy(&b);
    entry_destroy(&t);
}

static void test_field_and_value_are_not_confused_in_the_digest(void **state)
{
    (void)state;
    uint8_t one[20], two[20];
    struct entry *a = create(), *b = create();
    hash_set(&a, SLICE("ab"), SLICE("c"), NULL);
    hash_set(&b, SLICE("a"), SLICE("bc"), NULL);
    digest_of(a, one);
    digest_of(b, two);
    assert_memory_not_equal(one, two, 20);
    entry_destroy(&a);
    entry_destroy(&b);
}

static void test_copy_is_equal_and_apart(void **state)
{
    (void)state;
    struct model *m = mem_calloc(1, sizeof(*m));
    for (uint32_t ids = 20; ids <= UNIVERSE; ids += UNIVERSE - 20) {
        memset(m, 0, sizeof(*m));
        struct entry *e = create();
        change(&e, m, ids, ids == 20 ? 3 : 11, 4 * ids);
        struct entry *copy = entry_copy(e, SLICE("other"), 12345);
        for (uint32_t id = 0; id < UNIVERSE; id++) {
            hash_delete(e, field_text(id));
        }
        assert_int_equal(hash_len(e), 0);
        assert_same(copy, m);
        assert_string_equal(encoding_of(copy), encoding_of(e));
        entry_destroy(&copy);
        entry_destroy(&e);
    }
    mem_free(m);
}

static void test_memory_follows_the_content(void **state)
{
    (void)state;
    struct entry *e = create();
    fill(&e, 0, 10);
    size_t packed = entry_memory_bytes(e, 0);
    assert_true(packed >= 10 * 4 && packed <= 256);
    assert_int_equal(hash_ops.free_effort(e), 1);
    fill(&e, 10, 1000);
    size_t all = hash_ops.memory(e, 0), sampled = hash_ops.memory(e, 5);
    assert_true(all > 1000 * 16 && all < 1000 * 100);
    assert_true(sampled > all / 2 && sampled < all * 2);
    assert_int_equal(hash_ops.free_effort(e), 1000);
    entry_destroy(&e);
}

/* ---- walking ---- */

struct seen {
    uint32_t times[UNIVERSE];
    uint64_t total;
};

static void note(const struct hash_item *item, void *context)
{
    struct seen *s = context;
    s->times[id_of(item->field)]++;
    s->total++;
}

static void test_scan_meets_what_stays_exactly_once(void **state)
{
    (void)state;
    set_limits("0", "64");
    struct model *m = mem_calloc(1, sizeof(*m));
    struct seen *s = mem_calloc(1, sizeof(*s));
    struct entry *e = create();
    for (uint32_t id = 0; id < UNIVERSE; id++) {
        model_set(&e, m, id, 1, id);
    }
    uint64_t cursor = 0;
    do {
        uint64_t before = s->total;
        cursor = hash_scan(e, cursor, 10, note, s);
        assert_true(s->total - before <= 10 + 60);
        /* The odd ones come and go. */
        for (unsigned i = 0; i < 40; i++) {
            uint32_t id = (uint32_t)below(UNIVERSE / 2) * 2 + 1;
            if (below(3) == 0) {
                model_set(&e, m, id, 1, id);
            } else {
                model_delete(e, m, id);
            }
        }
    } while (cursor != 0);
    for (uint32_t id = 0; id < UNIVERSE; id += 2) {
        assert_int_equal(s->times[id], 1);
    }
    uint64_t total = s->total;
    assert_int_equal(hash_scan(e, (uint64_t)1 << 48, 10, note, s), 0);
    assert_int_equal(hash_scan(e, UINT64_MAX, 10, note, s), 0);
    assert_int_equal(s->total, total);
    entry_destroy(&e);
    mem_free(m);
    mem_free(s);
}

static void test_scan_of_a_listpack_is_whole(void **state)
{
    (void)state;
    struct seen *s = mem_calloc(1, sizeof(*s));
    struct entry *e = create();
    set_limits("512", "1000");
    for (uint32_t id = 0; id < 30; id++) {
        hash_set(&e, field_text(id), SLICE("v"), NULL);
    }
    assert_int_equal(hash_scan(e, 77, 1, note, s), 0);
    assert_int_equal(s->total, hash_len(e));
    entry_destroy(&e);
    mem_free(s);
}

/* ---- drawing ---- */

#define DRAWN_FIELDS 100

static uint32_t number_of(const struct entry *e, const void *place)
{
    struct hash_item item;
    char text[16] = {0};
    hash_item_at(e, place, &item);
    assert_text(item.value.bytes, item.field);
    assert_true(item.field.len < sizeof(text) && item.field.ptr[0] == 'f');
    memcpy(text, item.field.ptr + 1, item.field.len - 1);
    return (uint32_t)strtoul(text, NULL, 10);
}

static void assert_drawn_evenly(const struct entry *e, size_t at_once, bool distinct)
{
    uint32_t times[DRAWN_FIELDS] = {0};
    const void *places[DRAWN_FIELDS];
    size_t draws = 0;
    while (draws < DRAWN_FIELDS * 400) {
        uint32_t round[DRAWN_FIELDS] = {0};
        if (distinct) {
            hash_draw_distinct(e, places, at_once);
        } else {
            hash_draw(e, places, at_once);
        }
        for (size_t i = 0; i < at_once; i++) {
            uint32_t number = number_of(e, places[i]);
            assert_true(number < DRAWN_FIELDS);
            times[number]++;
            assert_true(++round[number] == 1 || !distinct);
        }
        draws += at_once;
    }
    /* 400 expected; a standard deviation of 20, and tables draw only about evenly. */
    for (uint32_t i = 0; i < DRAWN_FIELDS; i++) {
        assert_in_range(times[i], 250, 560);
    }
}

static void test_draws_are_even(void **state)
{
    (void)state;
    for (int packed = 0; packed < 2; packed++) {
        set_limits(packed ? "512" : "10", "64");
        struct entry *e = create();
        fill(&e, 0, DRAWN_FIELDS);
        assert_string_equal(encoding_of(e), packed ? "listpack" : "hashtable");
        assert_drawn_evenly(e, 1, false);
        assert_drawn_evenly(e, 50, false);
        assert_drawn_evenly(e, 1, true);
        assert_drawn_evenly(e, 10, true);
        assert_drawn_evenly(e, 80, true);
        assert_drawn_evenly(e, DRAWN_FIELDS, true);
        entry_destroy(&e);
    }
}

static int setup(void **state)
{
    (void)state;
    thread_enter("test");
    hash_set_secret(1);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_small_hash_as_model, default_limits),
        cmocka_unit_test_setup(test_large_hash_as_model, default_limits),
        cmocka_unit_test_setup(test_tiny_limits_as_model, default_limits),
        cmocka_unit_test_setup(test_more_fields_than_allowed_make_a_table, default_limits),
        cmocka_unit_test_setup(test_long_texts_make_a_table, default_limits),
        cmocka_unit_test_setup(test_prepare_looks_at_all_texts, default_limits),
        cmocka_unit_test_setup(test_caps_hold_whatever_is_set, default_limits),
        cmocka_unit_test_setup(test_small_hashes_are_one_block, default_limits),
        cmocka_unit_test_setup(test_a_hash_that_grows_stays_where_it_is_cheaper, default_limits),
        cmocka_unit_test_setup(test_long_values_are_references, default_limits),
        cmocka_unit_test_setup(test_overwriting_in_place, default_limits),
        cmocka_unit_test_setup(test_digest_ignores_order_and_encoding, default_limits),
        cmocka_unit_test_setup(test_field_and_value_are_not_confused_in_the_digest, default_limits),
        cmocka_unit_test_setup(test_copy_is_equal_and_apart, default_limits),
        cmocka_unit_test_setup(test_memory_follows_the_content, default_limits),
        cmocka_unit_test_setup(test_scan_meets_what_stays_exactly_once, default_limits),
        cmocka_unit_test_setup(test_scan_of_a_listpack_is_whole, default_limits),
        cmocka_unit_test_setup(test_draws_are_even, default_limits),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
