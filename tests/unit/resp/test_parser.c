/* The request parser: resp/parser.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "resp/feed.h"
#include "resp/limits.h"

static const struct parser_limits usual = {INT32_MAX, 512 << 20, true};
static const struct parser_limits stranger = {10, 16384, false};

static void assert_log(struct buf *log, const char *expected, size_t len)
{
    if (log->len != len || memcmp(buf_slice(log).ptr, expected, len) != 0) {
        print_error("got:      %.*s\nexpected: %.*s\n", (int)(log->len < 300 ? log->len : 300),
                    buf_cstr(log), (int)(len < 300 ? len : 300), expected);
    }
    assert_int_equal(log->len, len);
    assert_memory_equal(buf_slice(log).ptr, expected, len);
    buf_deinit(log);
}

/* Whole, byte by byte, and cut in two at every place. */
static void check_with(struct slice stream, struct parser_limits limits, const char *expected,
                       size_t len)
{
    struct buf log = feed_log_of(stream, limits, stream.len, 1);
    assert_log(&log, expected, len);
    log = feed_log_of(stream, limits, 0, 1);
    assert_log(&log, expected, len);
    for (size_t cut = 1; cut < stream.len; cut++) {
        log = feed_log_of(stream, limits, cut, stream.len);
        assert_log(&log, expected, len);
    }
}

static void check(struct slice stream, const char *expected)
{
    check_with(stream, usual, expected, strlen(expected));
}

/* ---- what is well formed ---- */

static void test_multibulk(void **state)
{
    (void)state;
    check(SLICE("*1\r\n$4\r\nPING\r\n"), "1:4:PING, ");
    check(SLICE("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$0\r\n\r\n"), "3:3:SET,1:k,0:, ");
    check(SLICE("*2\r\n$3\r\nGET\r\n$2\r\n\r\n\r\n*1\r\n$1\r\n*\r\n"), "2:3:GET,2:\r\n, 1:1:*, ");
    check(SLICE("*1\r\n$10\r\n0123456789\r\n*1\r\n$1\r\nx"), "1:10:0123456789, ");
    check(SLICE("*1\r\n$4\r\nPI"), "");
    check(SLICE("*"), "");
    check(SLICE(""), "");
}

static void test_binary_arguments(void **state)
{
    (void)state;
    static const char stream[] = "*2\r\n$4\r\n\0\r\n\xff\r\n$2\r\n$9\r\nPING\r\n";
    static const char expected[] = "2:4:\0\r\n\xff,2:$9, 1:4:PING, ";
    check_with(slice_of(stream, sizeof(stream) - 1), usual, expected, sizeof(expected) - 1);
}

static void test_empty_requests(void **state)
{
    (void)state;
    check(SLICE("*0\r\n*-1\r\n*-9223372036854775808\r\n\r\n\n  \r\n*1\r\n$1\r\na\r\n"),
          "- - - - - - 1:1:a, ");
}

static void test_inline(void **state)
{
    (void)state;
    check(SLICE("PING\r\n"), "1:4:PING, ");
    check(SLICE("  set  k\t v \n"), "3:3:set,1:k,1:v, ");
    check(SLICE("set k \"a b\\n\\x41\\\"\"\r\n"), "3:3:set,1:k,6:a b\nA\", ");
    check(SLICE("set '' 'it\\'s \\n'\r\nPING\r\n"), "3:3:set,0:,7:it's \\n, 1:4:PING, ");
    check(SLICE("get \"\"\r\n*1\r\n$4\r\nPING\r\nPING\r\n"), "2:3:get,0:, 1:4:PING, 1:4:PING, ");
    check(SLICE("a\r\r\n"), "1:1:a, ");
}

/* More words than a line of keydb.conf may have. */
static void test_inline_of_many_words(void **state)
{
    (void)state;
    static const int counts[] = {255, 256, 257, 258, 5000, 32767};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        struct buf line = {0}, expected = {0};
        buf_printf(&expected, "%d:", counts[i]);
        for (int k = 0; k < counts[i]; k++) {
            buf_append_cstr(&line, k ? " w" : "w");
            buf_append_cstr(&expected, "1:w,");
        }
        buf_append_cstr(&line, "\r\n");
        buf_append_cstr(&expected, " ");
        struct buf log = feed_log_of(buf_slice(&line), usual, line.len, 1);
        assert_log(&log, expected.data, expected.len);
        buf_deinit(&line);
        buf_deinit(&expected);
    }
}

/* A deterministic mixture of everything, cut at every place. */
static void test_a_mixture_cut_anywhere(void **state)
{
    (void)state;
    struct buf stream = {0}, expected = {0};
    for (int i = 0; i < 40; i++) {
        switch (i % 4) {
        case 0:
            buf_printf(&stream, "*2\r\n$%d\r\n%0*d\r\n$1\r\n\n\r\n", i + 1, i + 1, i);
            buf_printf(&expected, "2:%d:%0*d,1:\n, ", i + 1, i + 1, i);
            break;
        case 1:
            buf_printf(&stream, "echo \"%d\\x00\"\r\n", i);
            buf_printf(&expected, "2:4:echo,%d:%d%c, ", i < 10 ? 2 : 3, i, 0);
            break;
        case 2:
            buf_append_cstr(&stream, "*0\r\n\r\n");
            buf_append_cstr(&expected, "- - ");
            break;
        default:
            buf_append_cstr(&stream, "*1\r\n$0\r\n\r\n");
            buf_append_cstr(&expected, "1:0:, ");
        }
    }
    check_with(buf_slice(&stream), usual, expected.data, expected.len);
    for (size_t step = 2; step < 50; step++) {
        struct buf log = feed_log_of(buf_slice(&stream), usual, 0, step);
        assert_log(&log, expected.data, expected.len);
    }
    buf_deinit(&stream);
    buf_deinit(&expected);
}

/* ---- protocol errors, word for word ---- */

static void test_errors(void **state)
{
    (void)state;
    static const struct {
        const char *stream, *error;
    } cases[] = {
        {"*a\r\n", "invalid multibulk length"},
        {"*\r\n", "invalid multibulk length"},
        {"*1x\r\n", "invalid multibulk length"},
        {"*01\r\n", "invalid multibulk length"},
        {"*+1\r\n", "invalid multibulk length"},
        {"* 1\r\n", "invalid multibulk length"},
        {"*2147483648\r\n", "invalid multibulk length"},
        {"*99999999999999999999\r\n", "invalid multibulk length"},
        {"*1\rx", "invalid multibulk length"},
        {"*1\r\n:3\r\n", "expected '$', got ':'"},
        {"*1\r\nPING\r\n", "expected '$', got 'P'"},
        {"*2\r\n$1\r\na\r\n*1\r\n", "expected '$', got '*'"},
        {"*1\r\n$\r\n", "invalid bulk length"},
        {"*1\r\n$-1\r\n", "invalid bulk length"},
        {"*1\r\n$1a\r\n", "invalid bulk length"},
        {"*1\r\n$00\r\n", "invalid bulk length"},
        {"*1\r\n$536870913\r\n", "invalid bulk length"},
        {"*1\r\n$9223372036854775808\r\n", "invalid bulk length"},
        {"*1\r\n$1\r\nabc", "expected CRLF after bulk"},
        {"*1\r\n$1\r\na\n\r", "expected CRLF after bulk"},
        {"*2\r\n$1\r\na\r\n$0\r\nxx", "expected CRLF after bulk"},
        {"get \"a\r\n", "unbalanced quotes in request"},
        {"get 'a\r\n", "unbalanced quotes in request"},
        {"get \"a\"b\r\n", "unbalanced quotes in request"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char expected[100];
        snprintf(expected, sizeof(expected), "!Protocol error: %s ", cases[i].error);
        check(slice_cstr(cases[i].stream), expected);
        /* What came before is still answered. */
        char stream[100];
        snprintf(stream, sizeof(stream), "*1\r\n$4\r\nPING\r\n%s", cases[i].stream);
        snprintf(expected, sizeof(expected), "1:4:PING, !Protocol error: %s ", cases[i].error);
        check(slice_cstr(stream), expected);
    }
}

/* Every byte that may stand where '$' must. */
static void test_expected_dollar(void **state)
{
    (void)state;
    for (int c = 1; c < 256; c++) {
        char stream[] = {'*', '1', '\r', '\n', (char)c};
        char expected[100];
        snprintf(expected, sizeof(expected), "!Protocol error: expected '$', got '%c' ", c);
        struct buf log = feed_log_of(slice_of(stream, 5), usual, 5, 1);
        if (c == '$') {
            assert_log(&log, "", 0);
        } else {
            assert_log(&log, expected, strlen(expected));
        }
    }
}

static void check_stranger(const char *stream, const char *expected)
{
    check_with(slice_cstr(stream), stranger, expected, strlen(expected));
}

static void test_limits_of_strangers(void **state)
{
    (void)state;
    check_stranger("*1\r\n$4\r\nPING\r\n", "1:4:PING, ");
    check_stranger("*11\r\n", "!Protocol error: unauthenticated multibulk length ");
    check_stranger("*2147483648\r\n", "!Protocol error: invalid multibulk length ");
    check_stranger("*x\r\n", "!Protocol error: invalid multibulk length ");
    check_stranger("*1\r\n$16385\r\n", "!Protocol error: unauthenticated bulk length ");
    check_stranger("*1\r\n$-5\r\n", "!Protocol error: invalid bulk length ");
    /* Longer than anybody may send. */
    check_stranger("*1\r\n$536870913\r\n", "!Protocol error: invalid bulk length ");
    check_stranger("*10\r\n$16384\r\n", "");
    assert_int_equal(resp_max_bulk_bytes, 536870912);
}

/* ---- lines without end ---- */

static void check_long_line(const char *prefix, char filler, size_t len, const char *end,
                            const char *expected)
{
    struct buf stream = {0};
    buf_append_cstr(&stream, prefix);
    memset(buf_reserve(&stream, len), filler, len);
    stream.len += len;
    buf_append_cstr(&stream, end);
    static const size_t steps[] = {1000000, 4096, 65535, 65536, 65537, 777};
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        struct buf log = feed_log_of(buf_slice(&stream), usual, steps[i], steps[i]);
        if (!expected) {
            assert_true(log.len > len && log.data[0] == '1');
            buf_deinit(&log);
        } else {
            assert_log(&log, expected, strlen(expected));
        }
    }
    buf_deinit(&stream);
}

static void test_lines_are_bounded(void **state)
{
    (void)state;
    static const char too_big[] = "!Protocol error: too big inline request ";
    static const char too_many[] = "!Protocol error: too big mbulk count string ";
    static const char too_long[] = "!Protocol error: too big bulk count string ";
    check_long_line("", 'a', 65536, "", "");
    check_long_line("", 'a', 65537, "", too_big);
    check_long_line("", 'a', 65536, "\n", NULL);
    check_long_line("", 'a', 65535, "\r\n", NULL);
    check_long_line("", 'a', 65537, "\n", too_big);
    check_long_line("", 'a', 200000, "\r\n", too_big);
    check_long_line("*", '1', 65535, "", "");
    check_long_line("*", '1', 65536, "", too_many);
    check_long_line("*", '1', 65534, "\r\n", "!Protocol error: invalid multibulk length ");
    check_long_line("*", '1', 65535, "\r\n", too_many);
    check_long_line("*", '1', 200000, "\r\n", too_many);
    check_long_line("*1\r\n$", '1', 65535, "", "");
    check_long_line("*1\r\n$", '1', 65536, "", too_long);
    check_long_line("*1\r\n$", '1', 65534, "\r\n", "!Protocol error: invalid bulk length ");
    check_long_line("*1\r\n$", '1', 65535, "\r\n", too_long);
    check_long_line("*1\r\n$", '1', 200000, "\r\n", too_long);
}

/* ---- big bulks ---- */

static char *big_bytes(size_t len)
{
    char *bytes = mem_alloc(len);
    for (size_t i = 0; i < len; i++) {
        bytes[i] = (char)(i * 7 + i / 255);
    }
    return bytes;
}

/* "*3 first <big> last" and a PING behind it; where the big bytes begin and end in the stream is
 * given back. */
static void make_big_stream(size_t len, struct buf *stream, struct buf *expected, size_t *begin)
{
    char *bytes = big_bytes(len);
    *stream = *expected = (struct buf){0};
    buf_printf(stream, "*3\r\n$5\r\nfirst\r\n$%zu\r\n", len);
    *begin = stream->len;
    buf_append(stream, bytes, len);
    buf_append_cstr(stream, "\r\n$4\r\nlast\r\n*1\r\n$4\r\nPING\r\n");
    buf_printf(expected, "3:5:first,%zu:", len);
    buf_append(expected, bytes, len);
    buf_append_cstr(expected, ",4:last, 1:4:PING, ");
    mem_free(bytes);
}

static void check_big_cut(const struct buf *stream, const struct buf *expected, size_t first,
                          size_t step)
{
    struct buf log = feed_log_of(buf_slice(stream), usual, first, step);
    assert_log(&log, expected->data, expected->len);
}

static void test_big_bulks_cut_anywhere(void **state)
{
    (void)state;
    for (size_t len = PARSER_BIG_BYTES - 1; len <= PARSER_BIG_BYTES + 1; len++) {
        struct buf stream, expected;
        size_t begin;
        make_big_stream(len, &stream, &expected, &begin);
        /* At each byte near the ends, and at some in the middle. */
        for (size_t cut = 1;
             cut<stream.len; cut += cut> begin + 30 && cut + 60 < stream.len ? 1999 : 1) {
            check_big_cut(&stream, &expected, cut, stream.len);
            check_big_cut(&stream, &expected, cut, 4000);
        }
        static const size_t steps[] = {1000, 16384, 16383, 32768, 32770, 65536};
        for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
            check_big_cut(&stream, &expected, steps[i], steps[i]);
        }
        buf_deinit(&stream);
        buf_deinit(&expected);
    }
}

static void test_big_bulks_come_in_blobs(void **state)
{
    (void)state;
    for (size_t len = PARSER_BIG_BYTES; len <= PARSER_BIG_BYTES + 1; len++) {
        struct buf stream, expected;
        size_t begin;
        struct feed f;
        make_big_stream(len, &stream, &expected, &begin);
        feed_init(&f, usual);
        feed_bytes(&f, stream.data, begin + 10);
        assert_int_equal(parser_big_missing(&f.parser) > 0, len > PARSER_BIG_BYTES);
        if (len > PARSER_BIG_BYTES) {
            assert_int_equal(parser_big_missing(&f.parser), len + 2 - 10);
            assert_false(feed_step(&f)); /* asked too soon: there is nothing yet */
            assert_int_equal(parser_big_missing(&f.parser), len + 2 - 10);
            assert_true(parser_memory_bytes(&f.parser) >= len);
        }
        feed_bytes(&f, stream.data + begin + 10, stream.len - begin - 10);
        assert_int_equal(f.blob_args, len > PARSER_BIG_BYTES);
        assert_int_equal(f.requests, 2);
        assert_int_equal(parser_memory_bytes(&f.parser), 0);
        feed_deinit(&f);
        /* All there at once: no blob, whatever the length. */
        feed_init(&f, usual);
        feed_bytes(&f, stream.data, stream.len);
        assert_int_equal(f.blob_args, 0);
        feed_deinit(&f);
        buf_deinit(&stream);
        buf_deinit(&expected);
    }
}

static void test_several_big_bulks_in_a_request(void **state)
{
    (void)state;
    struct buf stream = {0}, expected = {0};
    char *bytes = big_bytes(100000);
    buf_append_cstr(&stream, "*5\r\n");
    buf_append_cstr(&expected, "5:");
    for (size_t i = 0; i < 5; i++) {
        size_t len = i == 2 ? 3 : 33000 + 15000 * i;
        buf_printf(&stream, "$%zu\r\n", len);
        buf_append(&stream, bytes + i, len);
        buf_append_cstr(&stream, "\r\n");
        buf_printf(&expected, "%zu:", len);
        buf_append(&expected, bytes + i, len);
        buf_append_cstr(&expected, ",");
    }
    buf_append_cstr(&expected, " ");
    static const size_t steps[] = {997, 4096, 16384, 65536, 100000};
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        check_big_cut(&stream, &expected, steps[i], steps[i]);
    }
    mem_free(bytes);
    buf_deinit(&stream);
    buf_deinit(&expected);
}

/* Room comes with the bytes: a length alone costs half a mebibyte at most, and every piece lands
 * where it belongs. */
static void test_very_big_bulks_grow_as_they_come(void **state)
{
    (void)state;
    static const size_t lengths[] = {512 * 1024 - 3, 512 * 1024 - 2, 512 * 1024 - 1, 600000,
                                     9000000};
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        struct buf stream, expected;
        struct feed f;
        size_t begin;
        make_big_stream(lengths[i], &stream, &expected, &begin);
        feed_init(&f, usual);
        for (size_t at = 0; at < stream.len; at += 50000) {
            feed_bytes(&f, stream.data + at, stream.len - at < 50000 ? stream.len - at : 50000);
            size_t come = at + 50000;
            assert_true(parser_memory_bytes(&f.parser) <= 600000 + 17 * come);
        }
        assert_int_equal(f.blob_args, 1);
        assert_log(&f.log, expected.data, expected.len);
        feed_deinit(&f);
        buf_deinit(&stream);
        buf_deinit(&expected);
    }
    struct feed f;
    feed_init(&f, usual);
    feed_bytes(&f, "*1\r\n$536870912\r\nabc", 19);
    assert_int_equal(parser_big_missing(&f.parser), 536870912 + 2 - 3);
    assert_true(parser_memory_bytes(&f.parser) < 600000);
    feed_deinit(&f);
}

static void test_a_big_bulk_without_its_end(void **state)
{
    (void)state;
    struct buf stream, expected;
    size_t begin;
    make_big_stream(40000, &stream, &expected, &begin);
    static const char error[] = "!Protocol error: expected CRLF after bulk ";
    for (size_t i = 0; i < 2; i++) {
        stream.data[begin + 40000 + i] = 'x';
        struct buf log = feed_log_of(buf_slice(&stream), usual, 1000, 10000);
        assert_log(&log, error, sizeof(error) - 1);
        stream.data[begin + 40000 + i] = "\r\n"[i];
    }
    buf_deinit(&stream);
    buf_deinit(&expected);
}

/* Clients go away in mid-request: nothing is left (LeakSanitizer). */
static void test_deinit_in_the_middle(void **state)
{
    (void)state;
    struct buf stream, expected;
    size_t begin;
    make_big_stream(50000, &stream, &expected, &begin);
    for (size_t cut = 1; cut < stream.len;
         cut += cut < begin + 20 || cut + 60 > stream.len ? 1 : 5000) {
        struct feed f;
        feed_init(&f, usual);
        for (size_t at = 0; at < cut; at += 900) {
            feed_bytes(&f, stream.data + at, cut - at < 900 ? cut - at : 900);
        }
        feed_deinit(&f);
        assert_int_equal(parser_memory_bytes(&f.parser), 0);
    }
    buf_deinit(&stream);
    buf_deinit(&expected);
}

static void test_no_memory_for_a_big_bulk(void **state)
{
    (void)state;
    struct feed f;
    size_t room;
    feed_init(&f, usual);
    feed_bytes(&f, "*1\r\n$1000000\r\n", 14);
    assert_non_null(parser_big_reserve(&f.parser, &room));
    f.parser.big->len += room; /* as if so much had come */
    mem_fail_after(1);
    assert_null(parser_big_reserve(&f.parser, &room));
    mem_fail_after(0);
    feed_deinit(&f);
    feed_init(&f, usual);
    mem_fail_after(1);
    feed_bytes(&f, "*1\r\n$100000\r\nabc", 17);
    mem_fail_after(0);
    assert_true(f.failed);
    assert_string_equal(buf_cstr(&f.log), "!Protocol error: no memory for this bulk length ");
    feed_deinit(&f);
}

/* ---- many arguments ---- */

/* A count is only somebody's word: memory grows with what has come. */
static void test_a_count_alone_costs_nothing(void **state)
{
    (void)state;
    struct feed f;
    feed_init(&f, usual);
    feed_bytes(&f, "*2147483647\r\n", 13);
    assert_true(parser_memory_bytes(&f.parser) < 64 * 1024);
    for (int i = 0; i < 3000; i++) {
        feed_bytes(&f, "$1\r\na\r\n", 7);
    }
    assert_int_equal(f.parser.arg_count, 3000);
    assert_true(parser_memory_bytes(&f.parser) < 3 * 3000 * sizeof(struct parser_arg));
    feed_deinit(&f);
}

/* In linear time: a square of a million would not end here. */
static void test_a_million_arguments(void **state)
{
    (void)state;
    struct buf stream = {0};
    struct feed f;
    buf_append_cstr(&stream, "*1000000\r\n");
    for (int i = 0; i < 1000000; i++) {
        buf_append_cstr(&stream, "$1\r\na\r\n");
    }
    buf_append_cstr(&stream, "*1\r\n$4\r\nPING\r\n");
    feed_init(&f, usual);
    f.exact = false;
    for (size_t at = 0; at < stream.len; at += 4096) {
        feed_bytes(&f, stream.data + at, stream.len - at < 4096 ? stream.len - at : 4096);
        assert_true(parser_memory_bytes(&f.parser) <=
                    2 * sizeof(struct parser_arg) * (at / 7 + 1024));
    }
    assert_int_equal(f.requests, 2);
    static const char start[] = "1000000:1:a,1:a,";
    assert_memory_equal(f.log.data, start, sizeof(start) - 1);
    assert_int_equal(parser_memory_bytes(&f.parser), 0);
    feed_deinit(&f);
    buf_deinit(&stream);
}

/* About the count where the vector is no longer taken at once. */
static void test_counts_about_the_direct_way(void **state)
{
    (void)state;
    for (int count = 1022; count <= 1027; count++) {
        struct buf stream = {0}, expected = {0};
        buf_printf(&stream, "*%d\r\n", count);
        buf_printf(&expected, "%d:", count);
        for (int i = 0; i < count; i++) {
            buf_printf(&stream, "$4\r\n%04d\r\n", i);
            buf_printf(&expected, "4:%04d,", i);
        }
        buf_append_cstr(&expected, " ");
        check_big_cut(&stream, &expected, stream.len, 1);
        for (size_t cut = 1; cut < stream.len; cut += 511) {
            check_big_cut(&stream, &expected, cut, stream.len);
        }
        buf_deinit(&stream);
        buf_deinit(&expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_multibulk),
        cmocka_unit_test(test_binary_arguments),
        cmocka_unit_test(test_empty_requests),
        cmocka_unit_test(test_inline),
        cmocka_unit_test(test_inline_of_many_words),
        cmocka_unit_test(test_a_mixture_cut_anywhere),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_expected_dollar),
        cmocka_unit_test(test_limits_of_strangers),
        cmocka_unit_test(test_lines_are_bounded),
        cmocka_unit_test(test_big_bulks_cut_anywhere),
        cmocka_unit_test(test_big_bulks_come_in_blobs),
        cmocka_unit_test(test_several_big_bulks_in_a_request),
        cmocka_unit_test(test_very_big_bulks_grow_as_they_come),
        cmocka_unit_test(test_a_big_bulk_without_its_end),
        cmocka_unit_test(test_deinit_in_the_middle),
        cmocka_unit_test(test_no_memory_for_a_big_bulk),
        cmocka_unit_test(test_a_count_alone_costs_nothing),
        cmocka_unit_test(test_a_million_arguments),
        cmocka_unit_test(test_counts_about_the_direct_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
