/* The slow log and what it hides: engine/slowlog.h, engine/redact.h. Trimming and redaction are as
 * Debian's redis-server 7.0.15 shows them. */
#include "engine/helpers.h"

#include "base/mem.h"
#include "base/thread.h"
#include "engine/config.h"
#include "engine/redact.h"
#include "engine/slowlog.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static void run(struct call *c)
{
    (void)c;
}

#define ROW(command, ...)                                                                          \
    {                                                                                              \
        .name = (command), .run = run, .arity = -1, .group = "t", .since = "1", .summary = "S.",   \
        __VA_ARGS__                                                                                \
    }
static const struct command_row config_rows[] = {
    ROW("set", .tips = NULL), ROW("get", .tips = NULL), {0}};
static const struct command_row acl_rows[] = {
    ROW("setuser", .tips = NULL), ROW("whoami", .tips = NULL), {0}};
static const struct command_row rows[] = {
    ROW("get", .tips = NULL),
    ROW("auth", .tips = NULL),
    ROW("hello", .tips = NULL),
    ROW("migrate", .tips = NULL),
    ROW("exec", .flags = CMD_SKIP_SLOWLOG),
    ROW("config", .subcommands = config_rows),
    ROW("acl", .subcommands = acl_rows),
    {0},
};

static char *secret;
static const struct option options[] = {
    {.name = "masterauth",
     .type = OPTION_STRING,
     .target = &secret,
     .initial = "",
     .flags = OPTION_SENSITIVE},
    {.name = NULL},
};

static struct session session;

static int setup(void **state)
{
    (void)state;
    command_register(rows);
    config_register(slowlog_options);
    config_register(options);
    session_init(&session, 1);
    snprintf(session.peer, sizeof(session.peer), "127.0.0.1:5000");
    assert_true(session_set_name(&session, SLICE("joe")));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    slowlog_reset();
    session_deinit(&session);
    config_teardown();
    command_teardown();
    free(secret);
    secret = NULL;
    return 0;
}

static void set_option(const char *name, const char *value)
{
    struct slice pair[] = {slice_cstr(name), slice_cstr(value)}, failed;
    const char *error;
    assert_true(config_set(pair, 1, &failed, &error));
}

static struct call call_of(struct slice *argv, int argc)
{
    const struct command *cmd = command_find(argv[0]);
    assert_non_null(cmd);
    if (cmd->subcommand_count > 0 && argc > 1) {
        cmd = command_find_sub(cmd, argv[1]);
    }
    return (struct call){.cmd = cmd, .argc = argc, .argv = argv, .session = &session};
}

static void note(const char *line, uint64_t duration_us)
{
    struct slice argv[64];
    struct call c = call_of(argv, helper_words(line, argv, 64));
    slowlog_note(&c, duration_us, 1700000000);
}

static void assert_log(int64_t count, const char *expected)
{
    struct reply r;
    struct buf text = {0};
    reply_init(&r);
    reply_begin(&r, 2);
    slowlog_reply(&r, count);
    assert_string_equal(helper_reply_text(&r, &text), expected);
    buf_deinit(&text);
    reply_deinit(&r);
}

static void test_threshold(void **state)
{
    (void)state;
    assert_false(slowlog_wants(9999));
    assert_true(slowlog_wants(10000));
    set_option("slowlog-log-slower-than", "0");
    assert_true(slowlog_wants(0));
    set_option("slowlog-log-slower-than", "-1");
    assert_false(slowlog_wants(UINT64_MAX));
    note("get a", 100000);
    assert_int_equal(slowlog_len(), 0);
}

static void test_entries(void **state)
{
    (void)state;
    assert_log(10, "*0\r\n");
    note("get a", 5);
    note("get a", 10000);
    note("exec", 20000);
    note("get b", 10001);
    assert_int_equal(slowlog_len(), 2);
    struct reply r;
    struct buf text = {0};
    reply_init(&r);
    reply_begin(&r, 2);
    slowlog_reply(&r, 1);
    const char *shown = helper_reply_text(&r, &text);
    assert_true(strncmp(shown, "*1\r\n*6\r\n:", 9) == 0);
    assert_non_null(strstr(shown, "\r\n:1700000000\r\n:10001\r\n*2\r\n$3\r\nget\r\n$1\r\nb\r\n"
                                  "$14\r\n127.0.0.1:5000\r\n$3\r\njoe\r\n"));
    buf_deinit(&text);
    reply_deinit(&r);
    slowlog_reset();
    assert_int_equal(slowlog_len(), 0);
    assert_log(-1, "*0\r\n");
}

static void test_ids_go_on_and_newest_first(void **state)
{
    (void)state;
    set_option("slowlog-max-len", "3");
    for (int i = 0; i < 10; i++) {
        note("get a", 10000 + (uint64_t)i);
    }
    assert_int_equal(slowlog_len(), 3);
    struct reply r;
    struct buf text = {0};
    reply_init(&r);
    reply_begin(&r, 2);
    slowlog_reply(&r, -1);
    const char *shown = helper_reply_text(&r, &text);
    const char *nine = strstr(shown, ":10009\r\n"), *eight = strstr(shown, ":10008\r\n"),
               *seven = strstr(shown, ":10007\r\n");
    assert_true(nine && eight && seven && nine < eight && eight < seven);
    assert_null(strstr(shown, ":10006\r\n"));
    buf_deinit(&text);
    reply_deinit(&r);
    /* A lower bound takes hold with the next entry; 0 keeps none. */
    set_option("slowlog-max-len", "1");
    note("get a", 10000);
    assert_int_equal(slowlog_len(), 1);
    set_option("slowlog-max-len", "0");
    note("get a", 10000);
    assert_int_equal(slowlog_len(), 0);
    set_option("slowlog-max-len", "2");
    note("get a", 10000);
    assert_int_equal(slowlog_len(), 1);
}

/* The arguments that the newest entry shows, in brackets. */
static const char *shown_arguments(struct slice *argv, int argc)
{
    static struct buf shown;
    struct call c = call_of(argv, argc);
    slowlog_note(&c, 10000, 1);
    struct reply r;
    struct buf text = {0};
    reply_init(&r);
    reply_begin(&r, 2);
    slowlog_reply(&r, 1);
    const char *p = strstr(helper_reply_text(&r, &text), ":10000\r\n*");
    assert_non_null(p);
    long count = strtol(p + 9, (char **)&p, 10);
    buf_clear(&shown);
    for (long i = 0; i < count; i++) {
        long len = strtol(strchr(p, '$') + 1, (char **)&p, 10);
        buf_append_char(&shown, '[');
        buf_append(&shown, p + 2, (size_t)len);
        buf_append_char(&shown, ']');
        p += 2 + len;
    }
    buf_deinit(&text);
    reply_deinit(&r);
    return buf_cstr(&shown);
}

static void test_trimming(void **state)
{
    (void)state;
    struct slice argv[40];
    char big[1000];
    memset(big, 'k', sizeof(big));
    argv[0] = SLICE("get");
    argv[1] = slice_of(big, 128);
    argv[2] = slice_of(big, 129);
    argv[3] = slice_of(big, 1000);
    struct buf expected = {0};
    buf_printf(&expected, "[get][%.128s][%.128s... (1 more bytes)][%.128s... (872 more bytes)]",
               big, big, big);
    assert_string_equal(shown_arguments(argv, 4), buf_cstr(&expected));
    for (int i = 1; i < 40; i++) {
        argv[i] = SLICE("x");
    }
    const char *full = shown_arguments(argv, 32);
    assert_null(strstr(full, "more"));
    assert_int_equal(strlen(full), 5 + 31 * 3);
    const char *cut = shown_arguments(argv, 33);
    assert_int_equal(strlen(cut), 5 + 30 * 3 + strlen("[... (2 more arguments)]"));
    assert_non_null(strstr(cut, "[x][... (2 more arguments)]"));
    assert_non_null(strstr(shown_arguments(argv, 40), "[... (9 more arguments)]"));
    buf_deinit(&expected);
}

static void assert_shown(const char *line, const char *expected)
{
    struct slice argv[64];
    int argc = helper_words(line, argv, 64);
    assert_string_equal(shown_arguments(argv, argc), expected);
}

#define HIDDEN "[" REDACTED_TEXT "]"

static void test_secrets(void **state)
{
    (void)state;
    assert_shown("auth pass", "[auth]" HIDDEN);
    assert_shown("AUTH joe pass", "[AUTH]" HIDDEN HIDDEN);
    assert_shown("hello 3", "[hello][3]");
    assert_shown("hello 3 AUTH joe pass setname x",
                 "[hello][3][AUTH]" HIDDEN HIDDEN "[setname][x]");
    assert_shown("hello 3 setname x auth joe pass", "[hello][3][setname][x][auth]" HIDDEN HIDDEN);
    assert_shown("config set masterauth pass slowlog-max-len 5 MASTERAUTH p",
                 "[config][set][masterauth]" HIDDEN "[slowlog-max-len][5][MASTERAUTH]" HIDDEN);
    assert_shown("config get masterauth x", "[config][get][masterauth][x]");
    assert_shown("acl setuser joe on >pass", "[acl][setuser]" HIDDEN HIDDEN HIDDEN);
    assert_shown("acl whoami", "[acl][whoami]");
    assert_shown("migrate h 1 k 0 5 auth pass copy",
                 "[migrate][h][1][k][0][5][auth]" HIDDEN "[copy]");
    assert_shown("migrate h 1 k 0 5 AUTH2 joe pass keys a",
                 "[migrate][h][1][k][0][5][AUTH2]" HIDDEN HIDDEN "[keys][a]");
    assert_shown("get auth pass", "[get][auth][pass]");
}

static void test_marked_secrets(void **state)
{
    (void)state;
    struct slice argv[64];
    int argc = helper_words(
        "get a b c d e f g h i j k l m n o p q r s t u v w x y z A B C D E F G H I", argv, 64);
    struct call c = call_of(argv, argc);
    call_mark_secret(&c, 2);
    for (int i = 0; i < argc; i++) {
        assert_int_equal(call_argument_is_sensitive(&c, i), i == 2);
    }
    call_mark_secret(&c, 33);
    for (int i = 0; i < argc; i++) {
        assert_int_equal(call_argument_is_sensitive(&c, i), i == 2 || i >= 31);
    }
}

static void test_without_a_session(void **state)
{
    (void)state;
    struct slice argv[] = {SLICE("get"), SLICE("a")};
    struct call c = call_of(argv, 2);
    c.session = NULL;
    slowlog_note(&c, 10000, 1);
    assert_int_equal(slowlog_len(), 1);
}

enum { THREADS = 3, ROUNDS = 3000 };

static void *note_much(void *arg)
{
    (void)arg;
    thread_enter("test");
    struct reply r;
    reply_init(&r);
    for (int i = 0; i < ROUNDS; i++) {
        note("get something", 10000);
        if (i % 16 == 0) {
            reply_begin(&r, 3);
            slowlog_reply(&r, 5);
            reply_end(&r);
            reply_reset(&r);
        }
        if (i % 100 == 0) {
            slowlog_reset();
        }
    }
    reply_deinit(&r);
    thread_leave();
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    set_option("slowlog-max-len", "20");
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(thread_start(&threads[i], note_much, NULL), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_true(slowlog_len() <= 20);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_threshold),         TEST(test_entries), TEST(test_ids_go_on_and_newest_first),
        TEST(test_trimming),          TEST(test_secrets), TEST(test_marked_secrets),
        TEST(test_without_a_session), TEST(test_threads),
    };
    thread_enter("test");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
