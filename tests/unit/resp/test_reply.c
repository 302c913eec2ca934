/* The reply builder: resp/reply.h. Every verb in both protocols, byte for byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/mem.h"
#include "resp/reply.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of the allocation; the room in it is a little less. */
#define CHUNK_BYTES 65536

static struct reply reply;

static int enter(void **state)
{
    (void)state;
    reply_init(&reply);
    return 0;
}

static int leave(void **state)
{
    (void)state;
    reply_deinit(&reply);
    return 0;
}

/* All that was written from piece `mark` on. */
static struct buf written(uint32_t mark)
{
    struct buf all = {0};
    uint32_t end = reply_end(&reply);
    for (uint32_t i = mark; i < end; i++) {
        buf_append(&all, reply.pieces[i].ptr, reply.pieces[i].len);
    }
    return all;
}

static void assert_written(uint32_t mark, const char *expected, size_t len)
{
    struct buf all = written(mark);
    if (all.len != len || memcmp(buf_slice(&all).ptr, expected, len) != 0) {
        print_error("got: %.200s\nexpected: %.200s\n", buf_cstr(&all), expected);
    }
    assert_int_equal(all.len, len);
    assert_memory_equal(buf_slice(&all).ptr, expected, len);
    buf_deinit(&all);
}

/* ---- every verb ---- */

static void verb_ok(struct reply *r)
{
    reply_ok(r);
}
static void verb_status(struct reply *r)
{
    reply_status(r, "PONG");
}
static void verb_error(struct reply *r)
{
    reply_error(r, "ERR no");
}
static void verb_error_slice(struct reply *r)
{
    reply_error_slice(r, SLICE("ERR slice"));
}
static void verb_errorf(struct reply *r)
{
    reply_errorf(r, "ERR %d %s", 5, "x");
}
static void verb_i64_0(struct reply *r)
{
    reply_i64(r, 0);
}
static void verb_i64_9(struct reply *r)
{
    reply_i64(r, 9);
}
static void verb_i64_10(struct reply *r)
{
    reply_i64(r, 10);
}
static void verb_i64_minus(struct reply *r)
{
    reply_i64(r, -1);
}
static void verb_i64_min(struct reply *r)
{
    reply_i64(r, INT64_MIN);
}
static void verb_i64_max(struct reply *r)
{
    reply_i64(r, INT64_MAX);
}
static void verb_bulk(struct reply *r)
{
    reply_bulk(r, SLICE("a\r\nb"));
}
static void verb_bulk_empty(struct reply *r)
{
    reply_bulk(r, slice_of(NULL, 0));
}
static void verb_bulk_cstr(struct reply *r)
{
    reply_bulk_cstr(r, "0123456789");
}
static void verb_bulkf(struct reply *r)
{
    reply_bulkf(r, "%s-%d", "id", 7);
}
static void verb_bulk_i64(struct reply *r)
{
    reply_bulk_i64(r, INT64_MIN);
}
static void verb_null(struct reply *r)
{
    reply_null(r);
}
static void verb_null_array(struct reply *r)
{
    reply_null_array(r);
}
static void verb_array(struct reply *r)
{
    reply_array(r, 3);
}
static void verb_array_max(struct reply *r)
{
    reply_array(r, UINT64_MAX);
}
static void verb_map(struct reply *r)
{
    reply_map(r, 12);
}
static void verb_set(struct reply *r)
{
    reply_set(r, 0);
}
static void verb_push(struct reply *r)
{
    reply_push(r, 2);
}
static void verb_double(struct reply *r)
{
    reply_double(r, 3.25);
}
static void verb_double_integer(struct reply *r)
{
    reply_double(r, 10);
}
static void verb_double_inf(struct reply *r)
{
    reply_double(r, INFINITY);
}
static void verb_double_minus_inf(struct reply *r)
{
    reply_double(r, -INFINITY);
}
static void verb_double_nan(struct reply *r)
{
    reply_double(r, NAN);
}
static void verb_true(struct reply *r)
{
    reply_bool(r, true);
}
static void verb_false(struct reply *r)
{
    reply_bool(r, false);
}
static void verb_big_number(struct reply *r)
{
    reply_big_number(r, SLICE("123456789012345678901234567890"));
}
static void verb_verbatim(struct reply *r)
{
    reply_verbatim(r, "txt", SLICE("two\nlines"));
}
static void verb_verbatim_empty(struct reply *r)
{
    reply_verbatim(r, "mkd", slice_of(NULL, 0));
}
static void verb_raw(struct reply *r)
{
    reply_raw(r, SLICE(":1\r\n"));
}
static void verb_raw_empty(struct reply *r)
{
    reply_raw(r, slice_of(NULL, 0));
}
static void verb_wrong_type(struct reply *r)
{
    reply_wrong_type(r);
}
static void verb_syntax_error(struct reply *r)
{
    reply_syntax_error(r);
}
static void verb_not_integer(struct reply *r)
{
    reply_not_integer(r);
}
static void verb_out_of_range(struct reply *r)
{
    reply_out_of_range(r);
}
static void verb_no_such_key(struct reply *r)
{
    reply_no_such_key(r);
}

static void verb_small_blob(struct reply *r)
{
    struct blob *b = blob_create_copy(SLICE("blob"));
    reply_blob(r, b);
    blob_release(&b);
}

static void verb_deferred_array(struct reply *r)
{
    uint32_t handle = reply_deferred(r);
    reply_i64(r, 1);
    reply_set_deferred_array(r, handle, 1);
}

static void verb_deferred_map(struct reply *r)
{
    uint32_t handle = reply_deferred(r);
    reply_set_deferred_map(r, handle, 21);
}

static void verb_deferred_set(struct reply *r)
{
    uint32_t handle = reply_deferred(r);
    reply_set_deferred_set(r, handle, UINT64_MAX);
}

static void verb_deferred_push(struct reply *r)
{
    uint32_t handle = reply_deferred(r);
    reply_set_deferred_push(r, handle, 0);
}

static const struct verb {
    void (*write)(struct reply *r);
    const char *resp2, *resp3; /* NULL: as in RESP2 */
} verbs[] = {
    {verb_ok, "+OK\r\n", NULL},
    {verb_status, "+PONG\r\n", NULL},
    {verb_error, "-ERR no\r\n", NULL},
    {verb_error_slice, "-ERR slice\r\n", NULL},
    {verb_errorf, "-ERR 5 x\r\n", NULL},
    {verb_i64_0, ":0\r\n", NULL},
    {verb_i64_9, ":9\r\n", NULL},
    {verb_i64_10, ":10\r\n", NULL},
    {verb_i64_minus, ":-1\r\n", NULL},
    {verb_i64_min, ":-9223372036854775808\r\n", NULL},
    {verb_i64_max, ":9223372036854775807\r\n", NULL},
    {verb_bulk, "$4\r\na\r\nb\r\n", NULL},
    {verb_bulk_empty, "$0\r\n\r\n", NULL},
    {verb_bulk_cstr, "$10\r\n0123456789\r\n", NULL},
    {verb_bulkf, "$4\r\nid-7\r\n", NULL},
    {verb_bulk_i64, "$20\r\n-9223372036854775808\r\n", NULL},
    {verb_small_blob, "$4\r\nblob\r\n", NULL},
    {verb_null, "$-1\r\n", "_\r\n"},
    {verb_null_array, "*-1\r\n", "_\r\n"},
    {verb_array, "*3\r\n", NULL},
    {verb_array_max, "*18446744073709551615\r\n", NULL},
    {verb_map, "*24\r\n", "%12\r\n"},
    {verb_set, "*0\r\n", "~0\r\n"},
    {verb_push, "*2\r\n", ">2\r\n"},
    {verb_double, "$4\r\n3.25\r\n", ",3.25\r\n"},
    {verb_double_integer, "$2\r\n10\r\n", ",10\r\n"},
    {verb_double_inf, "$3\r\ninf\r\n", ",inf\r\n"},
    {verb_double_minus_inf, "$4\r\n-inf\r\n", ",-inf\r\n"},
    {verb_double_nan, "$3\r\nnan\r\n", ",nan\r\n"},
    {verb_true, ":1\r\n", "#t\r\n"},
    {verb_false, ":0\r\n", "#f\r\n"},
    {verb_big_number, "$30\r\n123456789012345678901234567890\r\n",
     "(123456789012345678901234567890\r\n"},
    {verb_verbatim, "$9\r\ntwo\nlines\r\n", "=13\r\ntxt:two\nlines\r\n"},
    {verb_verbatim_empty, "$0\r\n\r\n", "=4\r\nmkd:\r\n"},
    {verb_raw, ":1\r\n", NULL},
    {verb_raw_empty, "", NULL},
    {verb_wrong_type, "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n",
     NULL},
    {verb_syntax_error, "-ERR syntax error\r\n", NULL},
    {verb_not_integer, "-ERR value is not an integer or out of range\r\n", NULL},
    {verb_out_of_range, "-ERR index out of range\r\n", NULL},
    {verb_no_such_key, "-ERR no such key\r\n", NULL},
    {verb_deferred_array, "*1\r\n:1\r\n", NULL},
    {verb_deferred_map, "*42\r\n", "%21\r\n"},
    {verb_deferred_set, "*18446744073709551615\r\n", "~18446744073709551615\r\n"},
    {verb_deferred_push, "*0\r\n", ">0\r\n"},
};

#define VERB_COUNT (sizeof(verbs) / sizeof(verbs[0]))

static const char *expected_of(const struct verb *verb, int proto)
{
    return proto == 3 && verb->resp3 ? verb->resp3 : verb->resp2;
}

static void test_every_verb(void **state)
{
    (void)state;
    for (int proto = 2; proto <= 3; proto++) {
        for (size_t i = 0; i < VERB_COUNT; i++) {
            const char *expected = expected_of(&verbs[i], proto);
            uint32_t mark = reply_begin(&reply, proto);
            size_t before = reply_bytes(&reply);
            verbs[i].write(&reply);
            assert_int_equal(reply_bytes(&reply) - before, strlen(expected));
            assert_written(mark, expected, strlen(expected));
            assert_int_equal(reply_bytes(&reply) - before, strlen(expected));
            assert_int_equal(reply.errors, expected[0] == '-');
        }
    }
    uint32_t mark = reply_begin(&reply, 3);
    reply_attribute(&reply, 2);
    assert_written(mark, "|2\r\n", 4);
}

static void test_every_verb_on_a_builder_without_memory(void **state)
{
    (void)state;
    for (size_t i = 0; i < VERB_COUNT; i++) {
        struct reply fresh;
        reply_init(&fresh);
        uint32_t mark = reply_begin(&fresh, 2);
        verbs[i].write(&fresh);
        assert_int_equal(mark, 0);
        reply_end(&fresh);
        assert_int_equal(reply_bytes(&fresh), strlen(verbs[i].resp2));
        reply_deinit(&fresh);
    }
}

/* A verb begun anywhere about the end of a chunk. */
static void test_chunk_boundaries(void **state)
{
    (void)state;
    static char filler[CHUNK_BYTES];
    memset(filler, 'f', sizeof(filler));
    for (size_t i = 0; i < VERB_COUNT; i++) {
        const char *expected = expected_of(&verbs[i], 3);
        for (size_t before = 0; before < 90; before++) {
            size_t filled = CHUNK_BYTES - before;
            uint32_t mark = reply_begin(&reply, 3);
            reply_raw(&reply, slice_of(filler, filled));
            verbs[i].write(&reply);
            verbs[i].write(&reply);
            struct buf all = written(mark);
            assert_int_equal(all.len, filled + 2 * strlen(expected));
            assert_memory_equal(all.data, filler, filled);
            assert_memory_equal(all.data + filled, expected, strlen(expected));
            assert_memory_equal(all.data + filled + strlen(expected), expected, strlen(expected));
            buf_deinit(&all);
            reply_reset(&reply);
        }
    }
}

static void check_bulk_of(size_t filled, size_t len)
{
    static char bytes[3 * CHUNK_BYTES];
    char header[32];
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (char)(i * 13 + i / 255);
    }
    uint32_t mark = reply_begin(&reply, 2);
    reply_raw(&reply, slice_of(bytes, filled));
    reply_bulk(&reply, slice_of(bytes, len));
    reply_ok(&reply);
    size_t header_len = (size_t)snprintf(header, sizeof(header), "$%zu\r\n", len);
    struct buf all = written(mark);
    assert_int_equal(all.len, filled + header_len + len + 2 + 5);
    assert_memory_equal(all.data + filled, header, header_len);
    assert_memory_equal(all.data + filled + header_len, bytes, len);
    assert_memory_equal(all.data + filled + header_len + len, "\r\n+OK\r\n", 7);
    buf_deinit(&all);
    reply_reset(&reply);
}

static void test_bulks_about_the_size_of_a_chunk(void **state)
{
    (void)state;
    for (size_t len = CHUNK_BYTES - 40; len <= CHUNK_BYTES + 2; len++) {
        check_bulk_of(0, len);
        check_bulk_of(1, len);
    }
    check_bulk_of(CHUNK_BYTES, CHUNK_BYTES);
    check_bulk_of(CHUNK_BYTES - 1, 3 * CHUNK_BYTES);
    check_bulk_of(10, 2 * CHUNK_BYTES + 1);
}

/* ---- injection ---- */

static void assert_one_line(uint32_t mark, char type, size_t len)
{
    struct buf all = written(mark);
    assert_int_equal(all.len, len + 3);
    assert_int_equal(all.data[0], type);
    for (size_t i = 0; i < len + 1; i++) {
        assert_true(all.data[i] != '\r' && all.data[i] != '\n');
    }
    assert_memory_equal(all.data + len + 1, "\r\n", 2);
    buf_deinit(&all);
}

/* No byte of a text ends a line, in any verb that writes one. */
static void test_no_byte_ends_a_line(void **state)
{
    (void)state;
    for (int c = 0; c < 256; c++) {
        char text[] = {'E', (char)c, '\r', (char)c, '\n', 'x', 0};
        size_t cstr_len = c ? 6 : 1;
        uint32_t mark = reply_begin(&reply, 3);
        reply_error_slice(&reply, slice_of(text, 6));
        assert_int_equal(reply.last_error.len, 6);
        assert_memory_equal(reply.last_error.ptr,
                            ((char[]){'E', c == '\r' || c == '\n' ? ' ' : (char)c, ' '}), 3);
        assert_one_line(mark, '-', 6);
        mark = reply_begin(&reply, 3);
        reply_error(&reply, text);
        assert_one_line(mark, '-', cstr_len);
        mark = reply_begin(&reply, 3);
        reply_errorf(&reply, "%s", text);
        assert_one_line(mark, '-', cstr_len);
        mark = reply_begin(&reply, 3);
        reply_status(&reply, text);
        assert_one_line(mark, '+', cstr_len);
        mark = reply_begin(&reply, 3);
        reply_big_number(&reply, slice_of(text, 6));
        assert_one_line(mark, '(', 6);
    }
}

static void test_errors_are_counted_and_kept(void **state)
{
    (void)state;
    static char text[3000];
    memset(text, 'e', sizeof(text) - 1);
    for (size_t len = 500; len < 530; len++) {
        uint32_t mark = reply_begin(&reply, 2);
        assert_int_equal(reply.errors, 0);
        reply_errorf(&reply, "%.*s", (int)len, text);
        reply_errorf(&reply, "ERR %.*s", (int)len, text);
        reply_ok(&reply);
        assert_int_equal(reply.errors, 2);
        assert_int_equal(reply.last_error.len, len + 4);
        assert_memory_equal(reply.last_error.ptr, "ERR e", 5);
        struct buf all = written(mark);
        assert_int_equal(all.len, 2 * len + 4 + 6 + 5);
        buf_deinit(&all);
    }
    reply_reset(&reply);
    assert_int_equal(reply.last_error.len, 0);
}

/* ---- deferred lengths ---- */

/* A tree of depth `depth`, two children a node, all lengths set after their elements. */
static uint64_t write_tree(int depth)
{
    if (depth == 0) {
        reply_bulk_cstr(&reply, "leaf");
        return 1;
    }
    uint32_t handle = reply_deferred(&reply);
    uint64_t leaves = write_tree(depth - 1) + write_tree(depth - 1);
    reply_set_deferred_array(&reply, handle, 2);
    return leaves;
}

static void expect_tree(struct buf *expected, int depth)
{
    if (depth == 0) {
        buf_append_cstr(expected, "$4\r\nleaf\r\n");
        return;
    }
    buf_append_cstr(expected, "*2\r\n");
    expect_tree(expected, depth - 1);
    expect_tree(expected, depth - 1);
}

static void test_deferred_lengths_nest(void **state)
{
    (void)state;
    for (int depth = 0; depth <= 13; depth++) {
        struct buf expected = {0};
        uint32_t mark = reply_begin(&reply, 2);
        assert_int_equal(write_tree(depth), 1u << depth);
        expect_tree(&expected, depth);
        assert_int_equal(reply_bytes(&reply), expected.len);
        assert_written(mark, expected.data, expected.len);
        buf_deinit(&expected);
        reply_reset(&reply);
    }
}

static void test_deferred_maps_double_only_in_resp2(void **state)
{
    (void)state;
    uint32_t mark = reply_begin(&reply, 3);
    uint32_t outer = reply_deferred(&reply);
    reply_bulk_cstr(&reply, "key");
    uint32_t inner = reply_deferred(&reply);
    reply_set_deferred_set(&reply, inner, 0);
    reply_set_deferred_map(&reply, outer, 1);
    assert_written(mark, "%1\r\n$3\r\nkey\r\n~0\r\n", 17);
}

/* ---- references ---- */

static struct blob *blob_of(size_t len, char byte)
{
    struct blob *b = blob_try_create(len);
    assert_non_null(b);
    memset(b->bytes, byte, len);
    b->len = len;
    return b;
}

static void test_large_values_are_referenced(void **state)
{
    (void)state;
    struct blob *small = blob_of(REPLY_REFERENCE_BYTES - 1, 's');
    struct blob *large = blob_of(REPLY_REFERENCE_BYTES, 'l');
    uint32_t mark = reply_begin(&reply, 2);
    reply_array(&reply, 3);
    reply_blob(&reply, small);
    reply_blob(&reply, large);
    reply_blob(&reply, large);
    assert_int_equal(reply_bytes(&reply), 4 + (8 + 2) * 3 + small->len + 2 * large->len);
    assert_true(blob_is_exclusive(small));
    assert_false(blob_is_exclusive(large));
    int references = 0;
    uint32_t end = reply_end(&reply);
    for (uint32_t i = mark; i < end; i++) {
        references += reply.pieces[i].blob == large;
        assert_true(!reply.pieces[i].blob || reply.pieces[i].ptr == large->bytes);
    }
    assert_int_equal(references, 2);
    struct buf all = written(mark);
    assert_memory_equal(all.data, "*3\r\n$16383\r\nsss", 15);
    assert_memory_equal(all.data + all.len - 5, "lll\r\n", 5);
    buf_deinit(&all);
    reply_reset(&reply);
    assert_true(blob_is_exclusive(large));
    assert_int_equal(reply_bytes(&reply), 0);
    blob_release(&small);
    blob_release(&large);
}

static void check_blob_part(struct blob *blob, size_t offset, size_t len)
{
    char header[32];
    size_t header_len = (size_t)snprintf(header, sizeof(header), "$%zu\r\n", len);
    uint32_t mark = reply_begin(&reply, 2);
    reply_blob_part(&reply, blob, offset, len);
    assert_int_equal(blob_is_exclusive(blob), len < REPLY_REFERENCE_BYTES);
    struct buf all = written(mark);
    assert_int_equal(all.len, header_len + len + 2);
    assert_memory_equal(all.data, header, header_len);
    assert_memory_equal(all.data + header_len, blob->bytes + offset, len);
    assert_memory_equal(all.data + header_len + len, "\r\n", 2);
    buf_deinit(&all);
    reply_reset(&reply);
}

static void test_parts_of_large_values(void **state)
{
    (void)state;
    struct blob *blob = blob_of(50000, 'a');
    for (size_t i = 0; i < blob->len; i++) {
        blob->bytes[i] = (char)(i * 3 + i / 256);
    }
    static const size_t lengths[] = {0, 1, REPLY_REFERENCE_BYTES - 1, REPLY_REFERENCE_BYTES, 49999};
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        check_blob_part(blob, 0, lengths[i]);
        check_blob_part(blob, 1, lengths[i]);
        check_blob_part(blob, blob->len - lengths[i], lengths[i]);
    }
    check_blob_part(blob, 0, blob->len);
    blob_release(&blob);
}

static void test_blobs_that_are_already_resp(void **state)
{
    (void)state;
    for (size_t len = REPLY_REFERENCE_BYTES - 1; len <= REPLY_REFERENCE_BYTES; len++) {
        struct blob *blob = blob_of(len, 'r');
        uint32_t mark = reply_begin(&reply, 2);
        reply_ok(&reply);
        reply_raw_blob(&reply, blob);
        reply_ok(&reply);
        assert_int_equal(blob_is_exclusive(blob), len < REPLY_REFERENCE_BYTES);
        struct buf all = written(mark);
        assert_int_equal(all.len, len + 10);
        assert_memory_equal(all.data, "+OK\r\nr", 6);
        assert_memory_equal(all.data + len + 4, "r+OK\r\n", 6);
        buf_deinit(&all);
        reply_reset(&reply);
        blob_release(&blob);
    }
}

static void test_deinit_releases_references(void **state)
{
    (void)state;
    struct blob *large = blob_of(100000, 'l');
    struct reply other;
    reply_init(&other);
    reply_begin(&other, 2);
    for (int i = 0; i < 1000; i++) {
        reply_blob(&other, large);
    }
    reply_deinit(&other);
    assert_true(blob_is_exclusive(large));
    blob_release(&large);
}

/* ---- dropping and starting anew ---- */

static void test_drop(void **state)
{
    (void)state;
    struct blob *large = blob_of(20000, 'l');
    uint32_t first = reply_begin(&reply, 2);
    reply_bulk_cstr(&reply, "kept");
    uint32_t mark = reply_end(&reply);
    size_t kept = reply_bytes(&reply);
    for (int round = 0; round < 5; round++) {
        assert_int_equal(reply_begin(&reply, 2), mark);
        for (int i = 0; i < 10 * round; i++) {
            reply_bulk_cstr(&reply, "dropped");
            reply_blob(&reply, large);
            uint32_t handle = reply_deferred(&reply);
            reply_set_deferred_array(&reply, handle, 3);
        }
        reply_drop(&reply, mark); /* also with an open run */
        assert_int_equal(reply_bytes(&reply), kept);
        assert_true(blob_is_exclusive(large));
    }
    reply_begin(&reply, 3);
    reply_null(&reply);
    assert_written(first, "$4\r\nkept\r\n_\r\n", 13);
    reply_end(&reply);
    reply_drop(&reply, first);
    assert_int_equal(reply_bytes(&reply), 0);
    assert_written(first, "", 0);
    blob_release(&large);
}

static void test_protocol_changes_in_between(void **state)
{
    (void)state;
    uint32_t mark = reply_begin(&reply, 2);
    reply_null(&reply);
    reply_set_proto(&reply, 3);
    reply_null(&reply);
    assert_written(mark, "$-1\r\n_\r\n", 8);
}

/* What a builder keeps over a reset is bounded. */
static void test_reset_keeps_little(void **state)
{
    (void)state;
    static char bytes[200000];
    for (int round = 0; round < 20; round++) {
        reply_begin(&reply, 2);
        for (int i = 0; i < 300; i++) {
            reply_bulk(&reply, slice_of(bytes, (size_t)(i % 3 == 0 ? 200000 : 1 + i * 100)));
        }
        reply_end(&reply);
        reply_reset(&reply);
        assert_int_equal(reply_bytes(&reply), 0);
        assert_int_equal(reply.piece_count, 0);
    }
#if KEYDB_JEMALLOC
    mem_thread_enter();
    size_t before = mem_used_bytes();
    reply_deinit(&reply);
    assert_true(before - mem_used_bytes() < 20 * (size_t)CHUNK_BYTES);
    mem_thread_leave();
#endif
}

/* ---- against a naive builder ---- */

static void random_verb(uint64_t random, int proto, struct buf *expected)
{
    static char bytes[40000];
    size_t len = random >> 20 & 15 ? (random >> 24) % 200 : (random >> 24) % sizeof(bytes);
    if (random % 8 == 0) {
        memset(bytes, 'a' + (int)(random >> 50) % 26, len);
        buf_printf(expected, "$%zu\r\n", len);
        buf_append(expected, bytes, len);
        buf_append_cstr(expected, "\r\n");
        if (random & 8) {
            reply_bulk(&reply, slice_of(bytes, len));
        } else {
            struct blob *b = blob_create_copy(slice_of(bytes, len));
            reply_blob(&reply, b);
            blob_release(&b);
        }
        return;
    }
    const struct verb *verb = &verbs[(random >> 8) % VERB_COUNT];
    verb->write(&reply);
    buf_append_cstr(expected, expected_of(verb, proto));
}

static void test_random_sequences(void **state)
{
    (void)state;
    uint64_t random = 99;
    for (int round = 0; round < 60; round++) {
        struct buf expected = {0};
        uint32_t first = 0;
        for (int reply_number = 0; reply_number < 5; reply_number++) {
            int proto = 2 + (round + reply_number) % 2;
            uint32_t mark = reply_begin(&reply, proto);
            size_t expected_before = expected.len;
            for (int i = 0; i < 300; i++) {
                random = random * 6364136223846793005u + 1442695040888963407u;
                struct reply_mark before = reply_mark(&reply);
                size_t len_before = expected.len;
                for (int verbs_left = (int)(random >> 56) % 4; verbs_left >= 0; verbs_left--) {
                    random_verb(random >> 3 >> verbs_left, proto, &expected);
                }
                if (random >> 53 & 1) {
                    reply_rewind(&reply, before);
                    expected.len = len_before;
                }
            }
            reply_end(&reply);
            if (random >> 61 == 0) {
                reply_drop(&reply, mark);
                expected.len = expected_before;
            }
            assert_int_equal(reply_bytes(&reply), expected.len);
        }
        assert_written(first, buf_slice(&expected).ptr, expected.len);
        struct reply copy;
        reply_init(&copy);
        reply_copy(&copy, &reply);
        reply_deinit(&reply);
        assert_int_equal(reply_bytes(&copy), expected.len);
        reply = copy; /* what is written of it from here on is the copy's, on its own memory */
        assert_written(first, buf_slice(&expected).ptr, expected.len);
        buf_deinit(&expected);
        reply_reset(&reply);
    }
}

int main(void)
{
#define REPLY_TEST(name) cmocka_unit_test_setup_teardown(name, enter, leave)
    const struct CMUnitTest tests[] = {
        REPLY_TEST(test_every_verb),
        REPLY_TEST(test_every_verb_on_a_builder_without_memory),
        REPLY_TEST(test_chunk_boundaries),
        REPLY_TEST(test_bulks_about_the_size_of_a_chunk),
        REPLY_TEST(test_no_byte_ends_a_line),
        REPLY_TEST(test_errors_are_counted_and_kept),
        REPLY_TEST(test_deferred_lengths_nest),
        REPLY_TEST(test_deferred_maps_double_only_in_resp2),
        REPLY_TEST(test_large_values_are_referenced),
        REPLY_TEST(test_parts_of_large_values),
        REPLY_TEST(test_blobs_that_are_already_resp),
        REPLY_TEST(test_deinit_releases_references),
        REPLY_TEST(test_drop),
        REPLY_TEST(test_protocol_changes_in_between),
        REPLY_TEST(test_reset_keeps_little),
        REPLY_TEST(test_random_sequences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
