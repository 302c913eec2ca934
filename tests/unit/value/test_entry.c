/* Entries: value/entry.h. Every shape (key length, value length, expiry) is built, changed and
 * freed; AddressSanitizer tells when a block is smaller than its fields. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/mem.h"
#include "value/entry.h"
#include "value/string.h"

#include <string.h>

#define LONGEST_KEY 70000

static const size_t key_lengths[] = {0, 1, 7, 16, 254, 255, 256, 257, 1024, LONGEST_KEY};
static const size_t value_lengths[] = {0,   1,   2,    8,    9,    24,   63,  64,
                                       100, 500, 1000, 1023, 1024, 1025, 1100};
static const int64_t expiries[] = {ENTRY_NO_EXPIRY, 0,        1, -1, INT64_MIN + 1,
                                   1700000000000,   INT64_MAX};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Bytes that differ at every place and from one start to another. */
static char key_bytes[LONGEST_KEY], value_bytes[4096];

static int fill_bytes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(key_bytes); i++) {
        key_bytes[i] = (char)(i * 31 + i / 251);
    }
    for (size_t i = 0; i < sizeof(value_bytes); i++) {
        value_bytes[i] = (char)(i * 17 + i / 241 + 3);
    }
    return 0;
}

static struct slice key_of_len(size_t len)
{
    return slice_of(key_bytes, len);
}

static struct slice value_of_len(size_t len)
{
    return slice_of(value_bytes, len);
}

static void assert_slice(struct slice got, struct slice expected)
{
    assert_int_equal(got.len, expected.len);
    assert_memory_equal(got.ptr, expected.ptr, expected.len);
}

static void assert_string_entry(const struct entry *e, struct slice key, struct slice value,
                                int64_t expiry_ms)
{
    char scratch[STRING_VIEW_BYTES];
    assert_int_equal(entry_type(e), VALUE_STRING);
    assert_slice(entry_key(e), key);
    assert_slice(string_view(e, scratch), value);
    assert_true(entry_expiry_ms(e) == expiry_ms);
    assert_int_equal(!!(e->flags & ENTRY_EXPIRES), expiry_ms != ENTRY_NO_EXPIRY);
    assert_int_equal(!!(e->flags & ENTRY_LONG_KEY), key.len > 255);
    assert_true((uintptr_t)e % 16 == 0);
    assert_true(entry_block_bytes(e) >= sizeof(*e) + key.len + e->embedded_len);
}

typedef void (*shape_fn)(struct slice key, struct slice value, int64_t expiry_ms);

static void for_all_shapes(shape_fn run)
{
    for (size_t k = 0; k < COUNT(key_lengths); k++) {
        for (size_t v = 0; v < COUNT(value_lengths); v++) {
            for (size_t x = 0; x < COUNT(expiries); x++) {
                run(key_of_len(key_lengths[k]), value_of_len(value_lengths[v]), expiries[x]);
            }
        }
    }
}

static void build_string(struct slice key, struct slice value, int64_t expiry_ms)
{
    struct entry *e = entry_create_string(key, value, expiry_ms);
    assert_string_entry(e, key, value, expiry_ms);
    assert_int_equal(entry_encoding(e),
                     value.len > ENTRY_EMBEDDED_MAX ? ENCODING_BLOB : ENCODING_EMBEDDED);
    assert_int_equal(entry_clock(e), 0);
    assert_int_equal(e->flags & ENTRY_RAW, 0);
    entry_destroy(&e);
    assert_null(e);
}

static void test_strings_of_every_shape(void **state)
{
    (void)state;
    for_all_shapes(build_string);
    for (size_t v = 0; v <= 1100; v++) {
        build_string(key_of_len(v % 300), value_of_len(v), v & 1 ? 5 : ENTRY_NO_EXPIRY);
    }
}

static void build_integer(struct slice key, struct slice value, int64_t expiry_ms)
{
    int64_t number = INT64_MIN + (int64_t)value.len * 12345;
    struct entry *e = entry_create_integer(key, number, expiry_ms);
    assert_int_equal(entry_encoding(e), ENCODING_INTEGER);
    assert_slice(entry_key(e), key);
    assert_true(entry_integer(e) == number && entry_expiry_ms(e) == expiry_ms);
    entry_set_integer(e, INT64_MAX);
    assert_true(entry_integer(e) == INT64_MAX && entry_expiry_ms(e) == expiry_ms);
    assert_slice(entry_key(e), key);
    entry_destroy(&e);
}

static void test_integers_of_every_shape(void **state)
{
    (void)state;
    for_all_shapes(build_integer);
}

/* A collection's body, as far as value/ knows it here: a pointer that some type owns. */
static void build_pointer(struct slice key, struct slice value, int64_t expiry_ms)
{
    struct blob *body = blob_create_copy(value), *other = blob_create_copy(SLICE("other"));
    struct entry *e = entry_create_pointer(key, VALUE_STRING, ENCODING_BLOB, body, expiry_ms);
    assert_ptr_equal(entry_pointer(e), body);
    assert_string_entry(e, key, value, expiry_ms);
    entry_set_pointer(e, other);
    assert_string_entry(e, key, SLICE("other"), expiry_ms);
    blob_release(&body);
    entry_destroy(&e);
}

static void test_pointers_of_every_shape(void **state)
{
    (void)state;
    for_all_shapes(build_pointer);
}

/* Type, encoding and clock share a word: none disturbs another. */
static void test_type_encoding_and_clock(void **state)
{
    (void)state;
    static const uint32_t clocks[] = {ENTRY_CLOCK_ALL, ENTRY_CLOCK_MASK, ENTRY_CLOCK_KIND,
                                      0x123456};
    for (int type = 0; type < VALUE_TYPE_COUNT; type++) {
        int first = type >= ENTRY_LONE_TYPE ? ENTRY_LONE_ENCODING : 0, last = first + 7;
        for (int encoding = first; encoding <= last; encoding++) {
            int body = 0;
            struct entry *e = entry_create_pointer(SLICE("key"), (enum value_type)type,
                                                   (enum encoding)encoding, &body, 77);
            int other = first + last - encoding;
            for (size_t i = 0; i < sizeof(clocks) / sizeof(clocks[0]); i++) {
                assert_int_equal(entry_type(e), type);
                assert_int_equal(entry_encoding(e), encoding);
                entry_set_clock(e, clocks[i]);
                entry_set_encoding(e, (enum encoding)other);
                assert_int_equal(entry_type(e), type);
                assert_int_equal(entry_encoding(e), other);
                assert_int_equal(entry_clock(e), clocks[i]);
                entry_set_encoding(e, (enum encoding)encoding);
            }
            mem_free(e);
        }
    }
}

/* ---- overwriting in place ---- */

static void test_overwrite_stays_within_the_block(void **state)
{
    (void)state;
    for (size_t old = 0; old <= 200; old++) {
        for (size_t new = 0; new <= 220; new += 1 + new / 40) {
            struct slice key = key_of_len(old % 40);
            struct entry *e = entry_create_string(key, value_of_len(old), 9);
            size_t block = entry_block_bytes(e);
            entry_set_clock(e, 5);
            e->flags |= ENTRY_RAW;
            bool done = entry_overwrite_embedded(e, slice_of(value_bytes + 50, new));
            /* A block's size follows from its fields, whatever was written. */
            assert_int_equal(entry_block_bytes(e), block);
            assert_string_entry(e, key, done ? slice_of(value_bytes + 50, new) : value_of_len(old),
                                9);
            assert_int_equal(!!(e->flags & ENTRY_RAW), !done);
            assert_int_equal(entry_clock(e), 5);
            assert_true(done || new != old);
            entry_destroy(&e);
        }
    }
}

/* The same class: done in place; another one: not. */
static void test_overwrite_uses_the_whole_class(void **state)
{
    (void)state;
    struct entry *e =
        entry_create_string(SLICE("k"), value_of_len(8), ENTRY_NO_EXPIRY); /* 17 of 32 */
    assert_true(entry_overwrite_embedded(e, value_of_len(23)));
    assert_true(entry_overwrite_embedded(e, value_of_len(8)));
    assert_false(entry_overwrite_embedded(e, value_of_len(24)));
    assert_false(entry_overwrite_embedded(e, value_of_len(7)));
    assert_string_entry(e, SLICE("k"), value_of_len(8), ENTRY_NO_EXPIRY);
    entry_destroy(&e);
}

static void test_overwrite_refuses_other_shapes(void **state)
{
    (void)state;
    struct entry *integer = entry_create_integer(SLICE("k"), 12, ENTRY_NO_EXPIRY);
    assert_false(entry_overwrite_embedded(integer, SLICE("12345678")));
    assert_true(entry_integer(integer) == 12);
    entry_destroy(&integer);

    struct entry *blob = entry_create_string(SLICE("k"), value_of_len(2000), ENTRY_NO_EXPIRY);
    assert_false(entry_overwrite_embedded(blob, SLICE("12345678")));
    assert_false(entry_overwrite_embedded(blob, value_of_len(2000)));
    entry_destroy(&blob);

    struct entry *embedded = entry_create_string(SLICE("k"), value_of_len(1024), ENTRY_NO_EXPIRY);
    assert_false(entry_overwrite_embedded(embedded, value_of_len(1025)));
    entry_destroy(&embedded);

    int body = 0;
    struct entry *list = entry_create_pointer(SLICE("k"), VALUE_LIST, ENCODING_LISTPACK, &body, 1);
    assert_false(entry_overwrite_embedded(list, SLICE("12345678")));
    assert_ptr_equal(entry_pointer(list), &body);
    mem_free(list);
}

/* ---- other key, other expiry, copies ---- */

static void change_expiry(struct slice key, struct slice value, int64_t expiry_ms)
{
    static const int64_t next[] = {12,        ENTRY_NO_EXPIRY, -5,
                                   INT64_MAX, ENTRY_NO_EXPIRY, ENTRY_NO_EXPIRY};
    struct entry *e = entry_create_string(key, value, expiry_ms);
    entry_set_clock(e, 0xabcdef);
    e->flags |= ENTRY_RAW;
    for (size_t i = 0; i < COUNT(next); i++) {
        bool same_shape = (entry_expiry_ms(e) == ENTRY_NO_EXPIRY) == (next[i] == ENTRY_NO_EXPIRY);
        struct entry *moved = entry_with_expiry(e, next[i]);
        assert_true(!same_shape || moved == e);
        e = moved;
        assert_string_entry(e, key, value, next[i]);
        assert_int_equal(entry_clock(e), 0xabcdef);
        assert_true(e->flags & ENTRY_RAW);
    }
    entry_destroy(&e);
}

static void change_key(struct slice key, struct slice value, int64_t expiry_ms)
{
    for (size_t k = 0; k < COUNT(key_lengths); k++) {
        struct slice other = slice_of(key_bytes + (LONGEST_KEY - key_lengths[k]), key_lengths[k]);
        struct entry *e = entry_create_string(key, value, expiry_ms);
        entry_set_clock(e, 0x13579);
        e = entry_with_key(e, other);
        assert_string_entry(e, other, value, expiry_ms);
        assert_int_equal(entry_clock(e), 0x13579);
        /* A part of its own key. */
        struct slice part = slice_of(entry_key(e).ptr + other.len / 3, other.len / 2);
        e = entry_with_key(e, part);
        assert_string_entry(e, slice_of(other.ptr + other.len / 3, other.len / 2), value,
                            expiry_ms);
        entry_destroy(&e);
    }
}

static void copy_entry(struct slice key, struct slice value, int64_t expiry_ms)
{
    struct entry *e = entry_create_string(key, value, expiry_ms);
    struct entry *copy = entry_copy(e, SLICE("copy"), 1234);
    struct entry *again = entry_copy(copy, key, expiry_ms);
    assert_string_entry(e, key, value, expiry_ms);
    entry_destroy(&e);
    assert_string_entry(copy, SLICE("copy"), value, 1234);
    entry_destroy(&copy);
    assert_string_entry(again, key, value, expiry_ms);
    entry_destroy(&again);
}

static void reshape_integer(struct slice key, struct slice value, int64_t expiry_ms)
{
    int64_t number = (int64_t)value.len - 500;
    struct entry *e = entry_create_integer(key, number, expiry_ms);
    struct entry *copy = entry_copy(e, SLICE("copy"), ENTRY_NO_EXPIRY);
    e = entry_with_expiry(e, 99);
    e = entry_with_key(e, SLICE("a key"));
    assert_true(entry_integer(e) == number && entry_expiry_ms(e) == 99);
    assert_true(entry_integer(copy) == number && entry_encoding(copy) == ENCODING_INTEGER);
    assert_slice(entry_key(e), SLICE("a key"));
    entry_destroy(&e);
    entry_destroy(&copy);
}

static void test_another_expiry(void **state)
{
    (void)state;
    for_all_shapes(change_expiry);
}

static void test_another_key(void **state)
{
    (void)state;
    for_all_shapes(change_key);
}

static void test_copies(void **state)
{
    (void)state;
    for_all_shapes(copy_entry);
}

/* The stamp stands where it was through every change of the block, and costs its bytes only. */
static void stamp_and_reshape(struct slice key, struct slice value, int64_t expiry_ms)
{
    static const char stamp[] = "0123456789abcdef", other[] = "fedcba9876543210";
    struct entry *e = entry_create_string(key, value, expiry_ms);
    size_t plain = entry_block_bytes(e);
    assert_null(entry_stamp(e));
    entry_set_clock(e, 77);
    e->flags |= ENTRY_RAW;
    e = entry_with_stamp(e, stamp);
    assert_memory_equal(entry_stamp(e), stamp, ENTRY_STAMP_BYTES);
    assert_string_entry(e, key, value, expiry_ms);
    assert_int_equal(entry_clock(e), 77);
    assert_true(e->flags & ENTRY_RAW);
    assert_in_range(entry_block_bytes(e), plain, plain + plain / 4 + 32);
    assert_true(mem_usable_size(e) >= entry_block_bytes(e));
    e = entry_with_expiry(e, expiry_ms == ENTRY_NO_EXPIRY ? 5 : ENTRY_NO_EXPIRY);
    assert_memory_equal(entry_stamp(e), stamp, ENTRY_STAMP_BYTES);
    e = entry_with_expiry(e, expiry_ms);
    e = entry_with_key(e, SLICE("renamed"));
    assert_memory_equal(entry_stamp(e), stamp, ENTRY_STAMP_BYTES);
    e = entry_with_key(e, key);
    struct entry *before = e;
    e = entry_with_stamp(e, other);
    assert_ptr_equal(e, before);
    assert_memory_equal(entry_stamp(e), other, ENTRY_STAMP_BYTES);
    assert_string_entry(e, key, value, expiry_ms);
    struct entry *copy = entry_copy(e, key, expiry_ms);
    assert_null(entry_stamp(copy));
    assert_string_entry(copy, key, value, expiry_ms);
    e = entry_with_stamp(e, NULL);
    assert_null(entry_stamp(e));
    assert_string_entry(e, key, value, expiry_ms);
    assert_int_equal(entry_block_bytes(e), plain);
    entry_destroy(&copy);
    entry_destroy(&e);
}

static void test_stamps_of_every_shape(void **state)
{
    (void)state;
    for_all_shapes(stamp_and_reshape);
}

/* Payloads of collections that grow, move out and back in. */
static void test_stamps_stay_with_payloads(void **state)
{
    static const char stamp[] = "0123456789abcdef";
    (void)state;
    struct entry *e = entry_create_payload(SLICE("key"), VALUE_HASH, ENCODING_LISTPACK, 20, 5);
    memset(entry_payload(e), 'p', 20);
    e = entry_with_stamp(e, stamp);
    for (size_t bytes = 20; bytes <= ENTRY_EMBEDDED_MAX; bytes += 41) {
        e = entry_with_room(e, bytes);
        assert_memory_equal(entry_stamp(e), stamp, ENTRY_STAMP_BYTES);
        assert_true(entry_payload_room(e) >= bytes && entry_expiry_ms(e) == 5);
        assert_memory_equal(entry_payload(e), "pppppppppppppppppppp", 20);
        assert_true(mem_usable_size(e) >= entry_block_bytes(e));
    }
    e = entry_with_block(e);
    assert_memory_equal(entry_stamp(e), stamp, ENTRY_STAMP_BYTES);
    assert_memory_equal(entry_pointer(e), "pppppppppppppppppppp", 20);
    char *block = entry_pointer(e);
    e = entry_with_room(e, 30);
    assert_memory_equal(entry_stamp(e), stamp, ENTRY_STAMP_BYTES);
    assert_slice(entry_key(e), SLICE("key"));
    mem_free(block);
    e = entry_with_block(e);
    mem_free(entry_pointer(e));
    entry_set_pointer(e, blob_create_copy(SLICE("done")));
    atomic_store(&e->word, (uint32_t)VALUE_STRING << 24);
    entry_set_encoding(e, ENCODING_BLOB);
    entry_destroy(&e);
}

static void test_integers_reshaped_and_copied(void **state)
{
    (void)state;
    for_all_shapes(reshape_integer);
}

static void test_copies_keep_the_raw_mark(void **state)
{
    (void)state;
    struct entry *e = entry_create_string(SLICE("k"), SLICE("v"), ENTRY_NO_EXPIRY);
    e->flags |= ENTRY_RAW;
    struct entry *copy = entry_copy(e, SLICE("c"), 1);
    assert_true(copy->flags & ENTRY_RAW);
    entry_destroy(&e);
    entry_destroy(&copy);
}

static void test_memory_counts_what_hangs_off(void **state)
{
    (void)state;
    struct entry *e = entry_create_string(SLICE("k"), value_of_len(100), ENTRY_NO_EXPIRY);
    assert_int_equal(entry_memory_bytes(e, 0), entry_block_bytes(e));
    entry_destroy(&e);
    e = entry_create_string(SLICE("k"), value_of_len(4000), ENTRY_NO_EXPIRY);
    assert_true(entry_memory_bytes(e, 0) >= entry_block_bytes(e) + 4000);
    entry_destroy(&e);
    entry_destroy(&e); /* NULL is fine */
}

/* An empty slice need not have an address. */
static void test_nothing_as_key_and_value(void **state)
{
    (void)state;
    struct slice nothing = slice_of(NULL, 0);
    struct entry *e = entry_create_string(nothing, nothing, ENTRY_NO_EXPIRY);
    assert_int_equal(entry_key(e).len, 0);
    assert_true(entry_overwrite_embedded(e, SLICE("12345678")));
    assert_true(entry_overwrite_embedded(e, nothing));
    e = entry_with_key(e, SLICE("k"));
    e = entry_with_key(e, nothing);
    struct entry *copy = entry_copy(e, nothing, 5);
    assert_int_equal(copy->embedded_len, 0);
    entry_destroy(&e);
    entry_destroy(&copy);
    struct blob *b = blob_create_copy(nothing);
    assert_int_equal(b->len, 0);
    blob_release(&b);
}

/* What `block_bytes` says is what the allocator gave: a sized free depends on it. */
static void test_blocks_are_as_large_as_they_say(void **state)
{
    (void)state;
    for (size_t key = 0; key < 3000; key += 1 + key / 100) {
        for (size_t value = 0; value <= 1024; value += 1 + value / 30) {
            struct entry *e = entry_create_string(key_of_len(key), value_of_len(value), 1);
            assert_true(mem_usable_size(e) >= entry_block_bytes(e));
#if KEYDB_JEMALLOC
            assert_int_equal(mem_usable_size(e), entry_block_bytes(e));
#endif
            entry_destroy(&e);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_strings_of_every_shape),
        cmocka_unit_test(test_integers_of_every_shape),
        cmocka_unit_test(test_pointers_of_every_shape),
        cmocka_unit_test(test_type_encoding_and_clock),
        cmocka_unit_test(test_overwrite_stays_within_the_block),
        cmocka_unit_test(test_overwrite_uses_the_whole_class),
        cmocka_unit_test(test_overwrite_refuses_other_shapes),
        cmocka_unit_test(test_another_expiry),
        cmocka_unit_test(test_another_key),
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_stamps_of_every_shape),
        cmocka_unit_test(test_stamps_stay_with_payloads),
        cmocka_unit_test(test_integers_reshaped_and_copied),
        cmocka_unit_test(test_copies_keep_the_raw_mark),
        cmocka_unit_test(test_memory_counts_what_hangs_off),
        cmocka_unit_test(test_nothing_as_key_and_value),
        cmocka_unit_test(test_blocks_are_as_large_as_they_say),
    };
    return cmocka_run_group_tests(tests, fill_bytes, NULL);
}
