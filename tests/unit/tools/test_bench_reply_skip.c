/* The benchmark's reply skipper: every kind of reply, whole, split at every byte, and broken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "tools/benchmark/reply_skip.h"

struct sample {
    const char *bytes;
    int64_t replies;
    uint64_t errors;
};

#define S(text, replies, errors)                                                                   \
    {                                                                                              \
        text, replies, errors                                                                      \
    }

static const struct sample samples[] = {
    S("+OK\r\n", 1, 0),
    S("+\r\n", 1, 0),
    S("-ERR no\r\n", 1, 1),
    S(":-12\r\n", 1, 0),
    S("$3\r\nabc\r\n", 1, 0),
    S("$0\r\n\r\n", 1, 0),
    S("$-1\r\n", 1, 0),
    S("$4\r\n\r\n-E\r\n", 1, 0),
    S("*0\r\n", 1, 0),
    S("*-1\r\n", 1, 0),
    S("*2\r\n$1\r\na\r\n:1\r\n", 1, 0),
    S("*2\r\n*2\r\n:1\r\n:2\r\n*0\r\n", 1, 0),
    S("*1\r\n-ERR inside\r\n", 1, 0),
    S("*3\r\n*1\r\n*1\r\n*1\r\n+x\r\n$-1\r\n*-1\r\n", 1, 0),
    S("%0\r\n", 1, 0),
    S("%2\r\n+a\r\n:1\r\n+b\r\n%1\r\n+c\r\n,1.5\r\n", 1, 0),
    S("~2\r\n+a\r\n+b\r\n", 1, 0),
    S("_\r\n", 1, 0),
    S("#t\r\n", 1, 0),
    S(",inf\r\n", 1, 0),
    S("(123456789012345678901234567890\r\n", 1, 0),
    S("=7\r\ntxt:abc\r\n", 1, 0),
    S("!7\r\nERR bad\r\n", 1, 1),
    S(">2\r\n+invalidate\r\n*1\r\n$3\r\nkey\r\n", 0, 0),
    S(">1\r\n+x\r\n+OK\r\n", 1, 0),
    S(">0\r\n:1\r\n", 1, 0),
    S("|1\r\n+ttl\r\n:3600\r\n$1\r\nv\r\n", 1, 0),
    S("*2\r\n:1\r\n|1\r\n+a\r\n+b\r\n:2\r\n+OK\r\n", 2, 0),
    S("+OK\r\n+OK\r\n-ERR a\r\n:1\r\n-ERR b\r\n", 5, 2),
    S("$5\r\nhello\r\n*1\r\n_\r\n$-1\r\n", 3, 0),
};

#define SAMPLE_COUNT (sizeof(samples) / sizeof(samples[0]))

static const char *const broken[] = {
    "OK\r\n",         "\r\n",
    "$a\r\n",         "$\r\n",
    "$-2\r\n",        "$--1\r\n",
    "$1-\r\n",        "$3\rabc",
    "$3\r\nabcd\r\n", "$3\r\nabc\rx",
    "*?\r\n",         "$?\r\n",
    "*1\r\nx",        "*99999999999999\r\n",
    "$1 \r\n",        "+OK\r\nHTTP",
    "%-2\r\n",
};

static void whole_replies_are_counted(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAMPLE_COUNT; i++) {
        struct bench_reply_skip skip;
        bench_reply_skip_init(&skip);
        const char *bytes = samples[i].bytes;
        assert_int_equal(bench_reply_skip_feed(&skip, bytes, strlen(bytes)), samples[i].replies);
        assert_int_equal(skip.error_count, samples[i].errors);
        assert_int_equal(skip.state, BENCH_SKIP_TYPE);
        assert_int_equal(skip.open, 0);
    }
}

/* Two pieces, cut at each place, and then one byte at a time. */
static void a_split_anywhere_changes_nothing(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAMPLE_COUNT; i++) {
        const char *bytes = samples[i].bytes;
        size_t len = strlen(bytes);
        for (size_t cut = 0; cut <= len; cut++) {
            struct bench_reply_skip skip;
            bench_reply_skip_init(&skip);
            int64_t first = bench_reply_skip_feed(&skip, bytes, cut);
            int64_t second = bench_reply_skip_feed(&skip, bytes + cut, len - cut);
            assert_true(first >= 0 && second >= 0);
            assert_int_equal(first + second, samples[i].replies);
            assert_int_equal(skip.error_count, samples[i].errors);
            assert_int_equal(skip.open, 0);
        }
        struct bench_reply_skip skip;
        bench_reply_skip_init(&skip);
        int64_t sum = 0;
        for (size_t at = 0; at < len; at++) {
            int64_t replies = bench_reply_skip_feed(&skip, bytes + at, 1);
            assert_true(replies >= 0);
            sum += replies;
        }
        assert_int_equal(sum, samples[i].replies);
        assert_int_equal(skip.error_count, samples[i].errors);
    }
}

/* No reply is counted before its last byte. */
static void an_unfinished_reply_does_not_count(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAMPLE_COUNT; i++) {
        const char *bytes = samples[i].bytes;
        struct bench_reply_skip skip;
        bench_reply_skip_init(&skip);
        int64_t replies = bench_reply_skip_feed(&skip, bytes, strlen(bytes) - 1);
        int64_t last_ends_one = samples[i].replies > 0;
        assert_int_equal(replies, samples[i].replies - last_ends_one);
    }
}

static void all_samples_in_a_row_keep_their_sum(void **state)
{
    (void)state;
    struct bench_reply_skip skip;
    bench_reply_skip_init(&skip);
    int64_t expected = 0;
    int64_t replies = 0;
    for (size_t i = 0; i < SAMPLE_COUNT; i++) {
        expected += samples[i].replies;
        replies += bench_reply_skip_feed(&skip, samples[i].bytes, strlen(samples[i].bytes));
    }
    assert_int_equal(replies, expected);
}

static void broken_bytes_are_refused_for_good(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
        struct bench_reply_skip skip;
        bench_reply_skip_init(&skip);
        assert_int_equal(bench_reply_skip_feed(&skip, broken[i], strlen(broken[i])), -1);
        assert_int_equal(bench_reply_skip_feed(&skip, "+OK\r\n", 5), -1);
        bench_reply_skip_init(&skip);
        int64_t replies = 0;
        for (size_t at = 0; at < strlen(broken[i]) && replies >= 0; at++) {
            replies = bench_reply_skip_feed(&skip, broken[i] + at, 1);
        }
        assert_int_equal(replies, -1);
    }
}

static void nothing_is_no_reply(void **state)
{
    (void)state;
    struct bench_reply_skip skip;
    bench_reply_skip_init(&skip);
    assert_int_equal(bench_reply_skip_feed(&skip, NULL, 0), 0);
    assert_int_equal(bench_reply_skip_feed(&skip, "", 0), 0);
}

static void expect_text(const struct bench_reply_skip *skip, const char *text)
{
    assert_int_equal(skip->error_len, strlen(text));
    assert_memory_equal(skip->error_text, text, strlen(text));
}

static void the_first_error_is_kept(void **state)
{
    (void)state;
    static const char stream[] =
        "+OK\r\n*1\r\n-NESTED\r\n-ERR first\r\n-ERR second\r\n!3\r\nnew\r\n";
    for (size_t cut = 0; cut < sizeof(stream); cut++) {
        struct bench_reply_skip skip;
        bench_reply_skip_init(&skip);
        bench_reply_skip_feed(&skip, stream, cut);
        bench_reply_skip_feed(&skip, stream + cut, sizeof(stream) - 1 - cut);
        assert_int_equal(skip.error_count, 3);
        expect_text(&skip, "ERR first");
    }
}

static void a_blob_error_is_kept(void **state)
{
    (void)state;
    static const char stream[] = "!9\r\nERR first\r\n-ERR second\r\n";
    for (size_t cut = 0; cut < sizeof(stream); cut++) {
        struct bench_reply_skip skip;
        bench_reply_skip_init(&skip);
        bench_reply_skip_feed(&skip, stream, cut);
        bench_reply_skip_feed(&skip, stream + cut, sizeof(stream) - 1 - cut);
        assert_int_equal(skip.error_count, 2);
        expect_text(&skip, "ERR first");
    }
}

static void a_long_error_is_cut(void **state)
{
    (void)state;
    char stream[1000];
    memset(stream, 'x', sizeof(stream));
    stream[0] = '-';
    memcpy(stream + sizeof(stream) - 2, "\r\n", 2);
    struct bench_reply_skip skip;
    bench_reply_skip_init(&skip);
    assert_int_equal(bench_reply_skip_feed(&skip, stream, sizeof(stream)), 1);
    assert_int_equal(skip.error_len, BENCH_ERROR_TEXT_MAX);
}

/* A length near the limit must neither overflow nor need memory. */
static void huge_lengths_only_wait(void **state)
{
    (void)state;
    static const char *const huge[] = {"$1099511627776\r\n", "*1099511627776\r\n",
                                       "%1099511627776\r\n*1099511627776\r\n"};
    for (size_t i = 0; i < sizeof(huge) / sizeof(huge[0]); i++) {
        struct bench_reply_skip skip;
        bench_reply_skip_init(&skip);
        assert_int_equal(bench_reply_skip_feed(&skip, huge[i], strlen(huge[i])), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_replies_are_counted),
        cmocka_unit_test(a_split_anywhere_changes_nothing),
        cmocka_unit_test(an_unfinished_reply_does_not_count),
        cmocka_unit_test(all_samples_in_a_row_keep_their_sum),
        cmocka_unit_test(broken_bytes_are_refused_for_good),
        cmocka_unit_test(nothing_is_no_reply),
        cmocka_unit_test(the_first_error_is_kept),
        cmocka_unit_test(a_blob_error_is_kept),
        cmocka_unit_test(a_long_error_is_cut),
        cmocka_unit_test(huge_lengths_only_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
