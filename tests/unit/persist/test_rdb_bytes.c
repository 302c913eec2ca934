/* Lengths, strings and packed collections of the RDB format: what is written can be read, what is
 * cut or lies is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/crc.h"
#include "persist/packed.h"
#include "persist/rdb_reader.h"
#include "persist/rdb_writer.h"

#include <string.h>

static const uint64_t lengths[] = {0, 1, 63, 64, 16383, 16384, UINT32_MAX, 1ull << 32, UINT64_MAX};
#define LENGTH_COUNT (sizeof(lengths) / sizeof(lengths[0]))

static void test_lengths(void **state)
{
    (void)state;
    static const size_t bytes[LENGTH_COUNT] = {1, 1, 1, 2, 2, 5, 5, 9, 9};
    for (size_t i = 0; i < LENGTH_COUNT; i++) {
        struct rdb_writer w;
        struct rdb_reader r;
        uint64_t len = 0;
        rdb_writer_init(&w, -1, false, false);
        rdb_write_len(&w, lengths[i]);
        assert_int_equal(w.out.len, bytes[i]);
        rdb_reader_init(&r, buf_slice(&w.out));
        assert_true(rdb_read_len(&r, &len));
        assert_true(len == lengths[i] && rdb_left(&r) == 0);
        rdb_reader_init(&r, slice_of(w.out.data, w.out.len - 1));
        assert_false(rdb_read_len(&r, &len));
        assert_non_null(r.error);
        rdb_writer_deinit(&w);
    }
}

/* Writes and reads a string, also cut at each byte; returns the bytes it took. */
static size_t check_string(struct slice s, bool compress)
{
    struct rdb_writer w;
    struct rdb_reader r;
    struct buf read = {0};
    rdb_writer_init(&w, -1, compress, false);
    rdb_write_string(&w, s);
    rdb_reader_init(&r, buf_slice(&w.out));
    assert_true(rdb_read_string(&r, &read));
    assert_true(slice_equal(buf_slice(&read), s) && rdb_left(&r) == 0);
    size_t bytes = w.out.len;
    for (size_t cut = 0; cut < bytes && bytes < 200; cut++) {
        rdb_reader_init(&r, slice_of(w.out.data, cut));
        assert_false(rdb_read_string(&r, &read));
    }
    buf_deinit(&read);
    rdb_writer_deinit(&w);
    return bytes;
}

static void test_strings(void **state)
{
    (void)state;
    static char same[5000];
    memset(same, 'a', sizeof(same));
    assert_int_equal(check_string(SLICE(""), true), 1);
    assert_int_equal(check_string(SLICE("-128"), true), 2);
    assert_int_equal(check_string(SLICE("128"), true), 3);
    assert_int_equal(check_string(SLICE("-32769"), true), 5);
    assert_int_equal(check_string(SLICE("2147483647"), true), 5);
    assert_int_equal(check_string(SLICE("2147483648"), true), 11);
    assert_int_equal(check_string(SLICE("01"), true), 3);
    assert_int_equal(check_string(slice_of(same, sizeof(same)), false), sizeof(same) + 2);
    assert_true(check_string(slice_of(same, sizeof(same)), true) < 100);
    for (size_t len = 0; len < 70; len++) {
        check_string(slice_of(same, len), true);
    }
}

static void test_counts_are_not_believed(void **state)
{
    (void)state;
    struct rdb_reader r;
    uint64_t count;
    rdb_reader_init(&r, SLICE("\x05"
                              "123456789"));
    assert_false(rdb_read_count(&r, 2, &count));
    rdb_reader_init(&r, SLICE("\x05"
                              "1234567890"));
    assert_true(rdb_read_count(&r, 2, &count) && count == 5);
}

/* Bytes that come in pieces of `piece`. */
struct pieces {
    struct slice left;
    size_t piece;
};

static const char *next_piece(void *context, uint64_t most, struct slice *bytes)
{
    struct pieces *p = context;
    size_t len = p->left.len < p->piece ? p->left.len : p->piece;
    len = len < most ? len : (size_t)most;
    *bytes = slice_of(p->left.ptr, len);
    p->left = slice_of(p->left.ptr + len, p->left.len - len);
    return len > 0 ? NULL : "nothing comes";
}

/* A string that comes in pieces is read as it is; a feed that ends too early is a fault. */
static void test_feeds(void **state)
{
    (void)state;
    static char text[3000000];
    struct rdb_writer w;
    struct buf read = {0};
    for (size_t i = 0; i < sizeof(text); i++) {
        text[i] = (char)(i * i >> 8);
    }
    rdb_writer_init(&w, -1, false, false);
    rdb_write_string(&w, slice_of(text, sizeof(text)));
    rdb_write_string(&w, SLICE("end"));
    for (size_t piece = 1000; piece < 2 * sizeof(text); piece *= 7) {
        struct pieces p = {slice_of(w.out.data, w.out.len), piece};
        struct rdb_feed feed = {next_piece, &p, piece % 2 ? w.out.len : RDB_FEED_OPEN};
        struct rdb_reader r;
        rdb_reader_init_feed(&r, &feed);
        assert_true(rdb_read_string(&r, &read));
        assert_true(slice_equal(buf_slice(&read), slice_of(text, sizeof(text))));
        assert_true(rdb_read_string(&r, &read) && slice_equal(buf_slice(&read), SLICE("end")));
        assert_true(rdb_offset(&r) == w.out.len);
        assert_true(rdb_checksum(&r) == crc64(0, w.out.data, w.out.len));
        assert_false(rdb_read_string(&r, &read));
        p.left = slice_of(w.out.data, w.out.len - 1);
        rdb_reader_init_feed(&r, &feed);
        assert_true(rdb_read_string(&r, &read));
        assert_false(rdb_read_string(&r, &read));
        assert_string_equal(r.error, "nothing comes");
        rdb_reader_deinit(&r);
    }
    rdb_writer_deinit(&w);
    buf_deinit(&read);
}

/* Of a string that lies about its length no more room is taken than has come, about. */
static void test_a_feeds_lengths_are_not_believed(void **state)
{
    (void)state;
    struct pieces p = {SLICE("\x81\x10\0\0\0\0\0\0\0abc"), 5};
    struct rdb_feed feed = {next_piece, &p, RDB_FEED_OPEN};
    struct rdb_reader r;
    struct buf read = {0};
    rdb_reader_init_feed(&r, &feed);
    assert_false(rdb_read_string(&r, &read));
    assert_string_equal(r.error, "nothing comes");
    assert_true(read.capacity < 2 << 20);
    buf_deinit(&read);
}

static bool append(struct slice element, void *context)
{
    struct buf *out = context;
    buf_append_slice(out, element);
    buf_append_char(out, ',');
    return true;
}

static void test_ziplist(void **state)
{
    (void)state;
    /* "ab", 5 (immediate), -2 (8 bits), 1000 (16 bits) */
    static const char good[] = "\x1a\0\0\0\x14\0\0\0\x04\0"
                               "\0\x02"
                               "ab"
                               "\x04\xf6"
                               "\x02\xfe\xfe"
                               "\x03\xc0\xe8\x03"
                               "\xff\xff";
    char bytes[sizeof(good)];
    struct buf seen = {0};
    size_t size = 10 + 4 + 2 + 3 + 4 + 1;
    memcpy(bytes, good, sizeof(good));
    bytes[0] = (char)size;
    bytes[4] = 10 + 4 + 2 + 3;
    bytes[size - 1] = (char)0xff;
    assert_true(packed_each_ziplist(slice_of(bytes, size), append, &seen));
    assert_string_equal(buf_cstr(&seen), "ab,5,-2,1000,");
    for (size_t cut = 0; cut < size; cut++) {
        assert_false(packed_each_ziplist(slice_of(bytes, cut), append, &seen));
    }
    bytes[8] = 3; /* its count */
    assert_false(packed_each_ziplist(slice_of(bytes, size), append, &seen));
    bytes[8] = 4;
    bytes[14] = 5; /* the length of the element before */
    assert_false(packed_each_ziplist(slice_of(bytes, size), append, &seen));
    buf_deinit(&seen);
}

static void test_zipmap(void **state)
{
    (void)state;
    static const char good[] = "\x02\x01"
                               "a"
                               "\x02\x01"
                               "bcX"
                               "\x00\x00\x00\xff";
    struct buf seen = {0};
    size_t size = sizeof(good) - 1;
    assert_true(packed_each_zipmap(slice_of(good, size), append, &seen));
    assert_string_equal(buf_cstr(&seen), "a,bc,,,");
    for (size_t cut = 0; cut < size; cut++) {
        assert_false(packed_each_zipmap(slice_of(good, cut), append, &seen));
    }
    /* A longer form of a length than needed. */
    assert_false(packed_each_zipmap(SLICE("\x01\xfe\x01\0\0\0a\x01\0b\xff"), append, &seen));
    buf_deinit(&seen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_strings),
        cmocka_unit_test(test_counts_are_not_believed),
        cmocka_unit_test(test_feeds),
        cmocka_unit_test(test_a_feeds_lengths_are_not_believed),
        cmocka_unit_test(test_ziplist),
        cmocka_unit_test(test_zipmap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
