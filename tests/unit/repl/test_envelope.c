/* Envelopes of KeyDB's active replicas: what is within them, what none is, and what has come
 * before.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/buf.h"
#include "repl/envelope.h"

#include <stdio.h>
#include <string.h>

#define A "aaaaaaaa-0000-1111-2222-333333333333"
#define B "BBBBBBBB-0000-1111-2222-333333333333"
#define DBS 16

static struct arena arena;
static struct parser parser;
static struct envelope opened;

static int setup(void **state)
{
    (void)state;
    arena_init(&arena, 4096);
    parser_init(&parser);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    parser_deinit(&parser);
    arena_deinit(&arena);
    return 0;
}

/* A request of words that are NUL-terminated, the last one NULL. */
static void put(struct buf *out, const char *const *words)
{
    int count = 0;
    while (words[count]) {
        count++;
    }
    buf_printf(out, "*%d\r\n", count);
    for (int i = 0; i < count; i++) {
        buf_printf(out, "$%zu\r\n%s\r\n", strlen(words[i]), words[i]);
    }
}

/* Opens a request of these words; what is wrong, or NULL. */
static const char *open_words(int argc, const char *const *words)
{
    static struct slice argv[8];
    struct request request = {.argc = argc, .argv = argv};
    for (int i = 0; i < argc; i++) {
        argv[i] = slice_cstr(words[i]);
    }
    assert_true(envelope_is(&request));
    return envelope_open(&request, DBS, &parser, &arena, &opened);
}

#define OPEN(...)                                                                                  \
    open_words((int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)),                      \
               (const char *[]){__VA_ARGS__})

static void assert_command(const char *name, const char *author, int db, uint64_t number,
                           int64_t sent_ms)
{
    assert_true(envelope_has(&opened, name));
    assert_true(slice_equal(opened.author, slice_cstr(author)));
    assert_int_equal(opened.db, db);
    assert_true(opened.number == number && opened.sent_ms == sent_ms);
}

static void test_one(void **state)
{
    (void)state;
    assert_null(OPEN("rreplay", A, "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"));
    assert_command("get", A, 0, 0, 0);
    assert_int_equal(opened.request.argc, 2);
    assert_null(OPEN("RREPLAY", A, "*1\r\n$4\r\nPING\r\n", "15"));
    assert_command("ping", A, 15, 0, 0);
    assert_null(OPEN("RREPLAY", A, "*1\r\n$4\r\nPING\r\n", "3", "18446744073709551615"));
    assert_command("ping", A, 3, UINT64_MAX, 17592186044415);
}

static void test_nested(void **state)
{
    (void)state;
    struct buf inner = {0};
    put(&inner, (const char *[]){"RREPLAY", B, "*1\r\n$4\r\nEXEC\r\n", "7", "3145728", NULL});
    assert_null(OPEN("RREPLAY", A, buf_cstr(&inner), "2", "5242880"));
    assert_command("exec", B, 7, 3145728, 5); /* the author's number, the sender's time */
    buf_clear(&inner);
    put(&inner, (const char *[]){"RREPLAY", B, "*1\r\n$4\r\nEXEC\r\n", NULL});
    assert_null(OPEN("RREPLAY", A, buf_cstr(&inner), "2", "5242880"));
    assert_command("exec", B, 2, 0, 5); /* the database of the one around it */
    buf_deinit(&inner);
}

static const char *open_depth(int depth)
{
    struct buf now = {0}, next = {0};
    put(&now, (const char *[]){"PING", NULL});
    for (int i = 1; i < depth; i++) {
        put(&next, (const char *[]){"RREPLAY", A, buf_cstr(&now), "0", "1", NULL});
        struct buf old = now;
        now = next;
        next = old;
        buf_clear(&next);
    }
    const char *error = OPEN("RREPLAY", A, buf_cstr(&now), "0", "1");
    buf_deinit(&now);
    buf_deinit(&next);
    return error;
}

static void test_depth(void **state)
{
    (void)state;
    assert_null(open_depth(ENVELOPE_DEPTH_MAX));
    assert_string_equal(open_depth(ENVELOPE_DEPTH_MAX + 1), "too many envelopes in one another");
}

static void test_what_is_none(void **state)
{
    (void)state;
    static const char ping[] = "*1\r\n$4\r\nPING\r\n";
    assert_non_null(OPEN("RREPLAY", A));
    assert_non_null(OPEN("RREPLAY", A, ping, "0", "1", "2"));
    assert_non_null(OPEN("RREPLAY", "aaaaaaaa-0000-1111-2222-33333333333", ping));
    assert_non_null(OPEN("RREPLAY", "aaaaaaaa-0000-1111-2222-33333333333g", ping));
    assert_non_null(OPEN("RREPLAY", "aaaaaaaa00000-1111-2222-333333333333", ping));
    assert_non_null(OPEN("RREPLAY", A, ping, "16"));
    assert_non_null(OPEN("RREPLAY", A, ping, "-1"));
    assert_non_null(OPEN("RREPLAY", A, ping, "0", "-1"));
    assert_non_null(OPEN("RREPLAY", A, ""));
    assert_non_null(OPEN("RREPLAY", A, "PING\r\n"));
    assert_non_null(OPEN("RREPLAY", A, "*0\r\n"));
    assert_non_null(OPEN("RREPLAY", A, "*1\r\n$4\r\nPIN"));
    assert_non_null(OPEN("RREPLAY", A, "*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nPING\r\n"));
    assert_non_null(OPEN("RREPLAY", A, "*1\r\n$99999\r\nPING\r\n"));
    assert_non_null(OPEN("RREPLAY", A, "*x\r\n"));
    assert_null(OPEN("RREPLAY", A, ping)); /* the parser is at a start again */
}

static void test_authors(void **state)
{
    (void)state;
    static struct envelope_authors authors;
    char uuid[ENVELOPE_UUID_CHARS + 1];
    struct envelope e = {.author = slice_of(uuid, ENVELOPE_UUID_CHARS)};
    authors.count = 0;
    for (int i = 0; i < 2 * ENVELOPE_AUTHORS_MAX; i++) {
        snprintf(uuid, sizeof(uuid), "%08x-0000-1111-2222-333333333333", i);
        e.number = 100 + (uint64_t)i;
        assert_true(envelope_is_news(&authors, &e));
        envelope_note(&authors, &e);
        assert_false(envelope_is_news(&authors, &e));
        e.number--;
        assert_false(envelope_is_news(&authors, &e));
        e.number = 0; /* not told: nobody knows */
        assert_true(envelope_is_news(&authors, &e));
    }
    assert_int_equal(authors.count, ENVELOPE_AUTHORS_MAX);
    e.number = 1; /* of one that was silent for long nothing is known any more */
    snprintf(uuid, sizeof(uuid), "%08x-0000-1111-2222-333333333333", 0);
    assert_true(envelope_is_news(&authors, &e));
    snprintf(uuid, sizeof(uuid), "%08x-0000-1111-2222-333333333333", ENVELOPE_AUTHORS_MAX);
    assert_false(envelope_is_news(&authors, &e));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one),     cmocka_unit_test(test_nested),
        cmocka_unit_test(test_depth),   cmocka_unit_test(test_what_is_none),
        cmocka_unit_test(test_authors),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
