/* The reply reader: every shape of reply, whole and split at every byte, and hostile streams. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "tools/common/reader.h"
#include "tools/common/text.h"

/* A reply as text that tells everything about it. */
static void describe(struct text *out, const struct reply *r)
{
    static const char letters[] = "n+-:$=,(#*~%>|";
    text_append_char(out, letters[r->type]);
    if (reply_is_aggregate(r->type)) {
        text_append_format(out, "%zu[", r->count);
        for (size_t i = 0; i < r->count; i++) {
            describe(out, &r->items[i]);
        }
        text_append_char(out, ']');
        assert_null(r->text);
        return;
    }
    assert_int_equal(r->count, 0);
    if (r->type == REPLY_INTEGER) {
        text_append_format(out, "%lld", r->integer);
    } else if (r->type == REPLY_BOOL) {
        text_append_string(out, r->boolean ? "t" : "f");
    } else if (r->type != REPLY_NIL) {
        if (r->type == REPLY_VERBATIM) {
            text_append_format(out, "%s:", r->verbatim);
        }
        text_append_quoted(out, r->text, r->len);
        assert_int_equal(r->text[r->len], 0);
    }
}

/* Everything that the reader makes of the pieces: descriptions, then the error if any. */
static void read_all(struct reader *r, struct text *out)
{
    for (;;) {
        struct reply *reply;
        enum reader_result result = reader_next(r, &reply);
        if (result == READER_MORE) {
            assert_null(reply);
            return;
        }
        if (result == READER_ERROR) {
            assert_null(reply);
            text_append_format(out, "!%s", reader_error(r));
            return;
        }
        describe(out, reply);
        text_append_char(out, ' ');
        reply_destroy(&reply);
    }
}

static void check_stream(const char *stream, size_t len, const char *expected)
{
    for (size_t cut = 0; cut <= len; cut++) {
        struct reader *r = reader_create();
        struct text out;
        text_init(&out);
        reader_feed(r, stream, cut);
        read_all(r, &out);
        bool failed = strchr(out.data, '!') != NULL;
        if (!failed) {
            reader_feed(r, stream + cut, len - cut);
            read_all(r, &out);
        }
        assert_string_equal(out.data, expected);
        text_deinit(&out);
        reader_destroy(&r);
    }
    /* byte by byte */
    struct reader *r = reader_create();
    struct text out;
    text_init(&out);
    for (size_t i = 0; i < len && strchr(out.data, '!') == NULL; i++) {
        reader_feed(r, stream + i, 1);
        read_all(r, &out);
    }
    assert_string_equal(out.data, expected);
    text_deinit(&out);
    reader_destroy(&r);
}

#define CHECK(stream, expected) check_stream(stream, sizeof(stream) - 1, expected)

static void scalars(void **state)
{
    (void)state;
    CHECK("+OK\r\n", "+\"OK\" ");
    CHECK("+\r\n", "+\"\" ");
    CHECK("+a\rb\n\r\n", "+\"a\\rb\\n\" ");
    CHECK("+a\r\r\n", "+\"a\\r\" ");
    CHECK("-ERR x\r\n", "-\"ERR x\" ");
    CHECK("!5\r\nERR y\r\n", "-\"ERR y\" ");
    CHECK(":0\r\n:-12\r\n:+7\r\n", ":0 :-12 :7 ");
    CHECK(":9223372036854775807\r\n", ":9223372036854775807 ");
    CHECK("$0\r\n\r\n$3\r\n\r\n\r\r\n", "$\"\" $\"\\r\\n\\r\" ");
    CHECK("$-1\r\n*-1\r\n_\r\n", "n n n ");
    CHECK("=8\r\ntxt:a\0b\n\r\n=4\r\nmkd:\r\n", "=txt:\"a\\x00b\\n\" =mkd:\"\" ");
    CHECK(",1.5\r\n,inf\r\n,-inf\r\n,nan\r\n,1e-5\r\n",
          ",\"1.5\" ,\"inf\" ,\"-inf\" ,\"nan\" ,\"1e-5\" ");
    CHECK("(-123456789012345678901234567890\r\n", "(\"-123456789012345678901234567890\" ");
    CHECK("#t\r\n#f\r\n", "#t #f ");
}

static void aggregates(void **state)
{
    (void)state;
    CHECK("*0\r\n~0\r\n%0\r\n>0\r\n", "*0[] ~0[] %0[] >0[] ");
    CHECK("*2\r\n:1\r\n*2\r\n+a\r\n*0\r\n", "*2[:1*2[+\"a\"*0[]]] ");
    CHECK("%2\r\n+a\r\n:1\r\n+b\r\n%1\r\n:2\r\n_\r\n", "%4[+\"a\":1+\"b\"%2[:2n]] ");
    CHECK("~1\r\n~1\r\n~1\r\n$1\r\nx\r\n", "~1[~1[~1[$\"x\"]]] ");
    CHECK(">2\r\n+a\r\n+b\r\n:5\r\n", ">2[+\"a\"+\"b\"] :5 ");
    CHECK("*3\r\n*-1\r\n$-1\r\n*1\r\n_\r\n", "*3[nn*1[n]] ");
    CHECK("*9\r\n:1\r\n:2\r\n:3\r\n:4\r\n:5\r\n:6\r\n:7\r\n:8\r\n:9\r\n",
          "*9[:1:2:3:4:5:6:7:8:9] ");
}

static void attributes_are_dropped(void **state)
{
    (void)state;
    CHECK("|1\r\n+ttl\r\n:3\r\n+OK\r\n", "+\"OK\" ");
    CHECK("|0\r\n+OK\r\n", "+\"OK\" ");
    CHECK("*2\r\n:1\r\n|1\r\n+a\r\n*1\r\n|1\r\n:1\r\n:2\r\n:3\r\n:2\r\n", "*2[:1:2] ");
    CHECK("*1\r\n|0\r\n|0\r\n:2\r\n", "*1[:2] ");
    CHECK("%1\r\n|1\r\n:1\r\n:2\r\n+k\r\n|1\r\n:1\r\n:2\r\n+v\r\n", "%2[+\"k\"+\"v\"] ");
}

static void malformed(void **state)
{
    (void)state;
    CHECK("x\r\n", "!Protocol error, got \"x\" as reply type byte");
    CHECK("\0", "!Protocol error, got \"\\x00\" as reply type byte");
    CHECK(":1\r\n\r\n", ":1 !Protocol error, got \"\\r\" as reply type byte");
    CHECK(":\r\n", "!Bad integer value");
    CHECK(":1x\r\n", "!Bad integer value");
    CHECK(": 1\r\n", "!Bad integer value");
    CHECK(":--1\r\n", "!Bad integer value");
    CHECK(":1\0\r\n", "!Bad integer value");
    CHECK(":9223372036854775808\r\n", "!Bad integer value");
    CHECK("#\r\n", "!Bad bool value");
    CHECK("#tf\r\n", "!Bad bool value");
    CHECK("#\0\r\n", "!Bad bool value");
    CHECK("_x\r\n", "!Bad nil value");
    CHECK(",\r\n", "!Bad double value");
    CHECK(",1.5x\r\n", "!Bad double value");
    CHECK(",infinity\r\n", "!Bad double value");
    CHECK("(\r\n", "!Bad bignum value");
    CHECK("(-\r\n", "!Bad bignum value");
    CHECK("(1a\r\n", "!Bad bignum value");
    CHECK("$\r\n", "!Bad bulk string length");
    CHECK("$?\r\n", "!Bad bulk string length");
    CHECK("$-2\r\n", "!Bulk string length out of range");
    CHECK("=-1\r\n", "!Bulk string length out of range");
    CHECK("$99999999999999999\r\n", "!Bulk string length out of range");
    CHECK("$1\r\nabc", "!Bulk string is not followed by CR LF");
    CHECK("=3\r\ntxt\r\n",
          "!Verbatim string 4 bytes of content type are missing or incorrectly encoded.");
    CHECK("*?\r\n", "!Bad multi-bulk length");
    CHECK("*-2\r\n", "!Multi-bulk length out of range");
    CHECK("%-1\r\n", "!Multi-bulk length out of range");
    CHECK("*9223372036854775807\r\n", "!Multi-bulk length out of range");
    CHECK("%9223372036854775807\r\n", "!Multi-bulk length out of range");
    CHECK("*1\r\n%1\r\n:1\r\n:x\r\n", "!Bad integer value");
}

static void failure_is_final(void **state)
{
    (void)state;
    struct reader *r = reader_create();
    struct reply *reply;
    reader_feed(r, "x", 1);
    assert_int_equal(reader_next(r, &reply), READER_ERROR);
    reader_feed(r, "+OK\r\n", 5);
    assert_int_equal(reader_next(r, &reply), READER_ERROR);
    assert_null(reply);
    reader_destroy(&r);
    assert_null(r);
}

static void depth_is_bounded(void **state)
{
    (void)state;
    for (size_t depth = READER_DEPTH_MAX - 1; depth <= READER_DEPTH_MAX + 1; depth++) {
        struct reader *r = reader_create();
        for (size_t i = 0; i < depth; i++) {
            reader_feed(r, "*1\r\n", 4);
        }
        reader_feed(r, ":1\r\n", 4);
        struct reply *reply;
        enum reader_result expected = depth <= READER_DEPTH_MAX ? READER_REPLY : READER_ERROR;
        assert_int_equal(reader_next(r, &reply), expected);
        reply_destroy(&reply);
        reader_destroy(&r);
    }
}

static void a_line_is_bounded(void **state)
{
    (void)state;
    struct reader *r = reader_create();
    struct reply *reply;
    char chunk[4096];
    memset(chunk, 'a', sizeof(chunk));
    reader_feed(r, "+", 1);
    size_t fed = 1;
    while (reader_next(r, &reply) == READER_MORE) {
        assert_true(fed <= 2 * (size_t)READER_LINE_MAX);
        reader_feed(r, chunk, sizeof(chunk));
        fed += sizeof(chunk);
    }
    assert_string_equal(reader_error(r), "Line too long");
    reader_destroy(&r);
}

static void a_promise_allocates_nothing(void **state)
{
    (void)state;
    struct reader *r = reader_create();
    struct reply *reply;
    static const char stream[] = "*4294967296\r\n*4294967296\r\n$60000000000\r\nabc";
    reader_feed(r, stream, sizeof(stream) - 1);
    assert_int_equal(reader_next(r, &reply), READER_MORE);
    assert_int_equal(reader_pending(r), strlen("$60000000000\r\nabc"));
    reader_destroy(&r);
}

static void large_values_in_small_pieces(void **state)
{
    (void)state;
    struct reader *r = reader_create();
    struct reply *reply;
    size_t size = 3 * 1000 * 1000;
    char piece[1000];
    memset(piece, 'v', sizeof(piece));
    for (int round = 0; round < 3; round++) {
        reader_feed(r, "$3000000\r\n", 10);
        for (size_t i = 0; i < size / sizeof(piece); i++) {
            assert_int_equal(reader_next(r, &reply), READER_MORE);
            reader_feed(r, piece, sizeof(piece));
        }
        reader_feed(r, "\r\n", 2);
        assert_int_equal(reader_next(r, &reply), READER_REPLY);
        assert_int_equal(reply->len, size);
        reply_destroy(&reply);
    }
    reader_destroy(&r);
}

/* Streams made by flipping bytes of a good one: no crash, no hang; sanitizers watch. */
static void mutations(void **state)
{
    (void)state;
    static const char good[] =
        "*3\r\n%1\r\n+a\r\n$2\r\nbc\r\n~2\r\n:1\r\n,2.5\r\n|1\r\n=5\r\ntxt:x\r\n#t\r\n"
        ">1\r\n(123\r\n-ERR\r\n$-1\r\n_\r\n";
    for (size_t at = 0; at < sizeof(good) - 1; at++) {
        for (int byte = 0; byte < 256; byte++) {
            char copy[sizeof(good)];
            memcpy(copy, good, sizeof(good));
            copy[at] = (char)byte;
            struct reader *r = reader_create();
            struct text out;
            text_init(&out);
            reader_feed(r, copy, sizeof(good) - 1);
            read_all(r, &out);
            text_deinit(&out);
            reader_destroy(&r);
        }
    }
}

static void map_access(void **state)
{
    (void)state;
    static const char stream[] =
        "%2\r\n+a\r\n:1\r\n$1\r\nb\r\n:2\r\n*3\r\n+a\r\n:3\r\n+odd\r\n:5\r\n";
    struct reader *r = reader_create();
    reader_feed(r, stream, sizeof(stream) - 1);
    for (int i = 0; i < 2; i++) {
        struct reply *reply;
        assert_int_equal(reader_next(r, &reply), READER_REPLY);
        assert_int_equal(reply_map_get(reply, "A")->integer, i == 0 ? 1 : 3);
        assert_true((reply_map_get(reply, "b") != NULL) == (i == 0));
        assert_null(reply_map_get(reply, "odd"));
        assert_null(reply_map_get(reply, ""));
        assert_null(reply_map_get(&reply->items[0], "a"));
        reply_destroy(&reply);
    }
    reader_destroy(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scalars),
        cmocka_unit_test(aggregates),
        cmocka_unit_test(attributes_are_dropped),
        cmocka_unit_test(malformed),
        cmocka_unit_test(failure_is_final),
        cmocka_unit_test(depth_is_bounded),
        cmocka_unit_test(a_line_is_bounded),
        cmocka_unit_test(a_promise_allocates_nothing),
        cmocka_unit_test(large_values_in_small_pieces),
        cmocka_unit_test(mutations),
        cmocka_unit_test(map_access),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
