/* The data set behind SYNC: its head, and both forms in pieces of every size. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "tools/cli/payload.h"

#define MARK "0123456789012345678901234567890123456789"

static bool begin(struct payload *p, const char *line)
{
    return payload_init(p, line, strlen(line));
}

static void heads(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "$",
        "$-1",
        "$+1",
        "$0",
        "$x",
        "$1x",
        "$ 1",
        "$9223372036854775808",
        "$99999999999999999999999999999999",
        "+OK",
        "-ERR no",
        "10",
        "$EOF:",
        "$EOF:abc",
        ("$EOF:" MARK "0"),
        "$EOX:" MARK,
        "*3",
    };
    struct payload p;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_false(begin(&p, bad[i]));
    }
    assert_true(begin(&p, "$9223372036854775807"));
    assert_true(p.announced == INT64_MAX && !p.marked);
    payload_deinit(&p);
    assert_true(begin(&p, "$EOF:" MARK));
    assert_true(p.marked && memcmp(p.mark, MARK, PAYLOAD_MARK_BYTES) == 0);
    payload_deinit(&p);
}

static bool keep(void *context, const char *data, size_t len)
{
    text_append(context, data, len);
    return true;
}

static bool refuse(void *context, const char *data, size_t len)
{
    (void)context;
    (void)data;
    (void)len;
    return false;
}

/* Feeds `stream` in pieces; what is left of it when the payload is done has to be `behind`. */
static void feed(const char *head, const char *stream, size_t piece, const char *wanted,
                 const char *behind)
{
    struct payload p;
    struct text body;
    bool failed = false;
    size_t len = strlen(stream);
    size_t at = 0;
    text_init(&body);
    assert_true(begin(&p, head));
    while (!p.done) {
        assert_true(at < len);
        size_t n = len - at < piece ? len - at : piece;
        size_t used = payload_take(&p, stream + at, n, keep, &body, &failed);
        assert_false(failed);
        assert_true(used == n || p.done);
        at += used;
    }
    assert_string_equal(body.data, wanted);
    assert_string_equal(stream + at, behind);
    assert_int_equal(p.taken_bytes, strlen(wanted));
    text_deinit(&body);
    payload_deinit(&p);
}

static void both_forms_in_pieces(void **state)
{
    (void)state;
    static const char *const head = "$EOF:" MARK;
    for (size_t piece = 1; piece < 200; piece++) {
        feed("$5", "REDIS", piece, "REDIS", "");
        feed("$5", "REDISand more", piece, "REDIS", "and more");
        feed(head, "REDIS" MARK, piece, "REDIS", "");
        feed(head, "REDIS" MARK "*1\r\n", piece, "REDIS", "*1\r\n");
        feed(head, MARK, piece, "", "");
        /* beginnings of the mark that are none */
        feed(head, "0123456789012345678901234567890123456780" MARK "x", piece,
             "0123456789012345678901234567890123456780", "x");
        feed(head, "01234567890123456789" MARK, piece, "", "01234567890123456789");
        feed(head, "x0123" MARK MARK, piece, "x0123", MARK);
    }
}

static void a_sink_that_fails(void **state)
{
    (void)state;
    struct payload p;
    bool failed = false;
    assert_true(begin(&p, "$5"));
    (void)payload_take(&p, "RED", 3, refuse, NULL, &failed);
    assert_true(failed);
    payload_deinit(&p);
    assert_true(begin(&p, "$EOF:" MARK));
    failed = false;
    (void)payload_take(&p, "R" MARK, 1 + PAYLOAD_MARK_BYTES, refuse, NULL, &failed);
    assert_true(failed);
    payload_deinit(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heads),
        cmocka_unit_test(both_forms_in_pieces),
        cmocka_unit_test(a_sink_that_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
