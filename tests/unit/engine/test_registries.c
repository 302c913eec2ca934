/* What folders contribute and the server runs: engine/info.h, engine/cron.h, engine/shutdown.h. */
#include "engine/helpers.h"

#include "engine/cron.h"
#include "engine/info.h"
#include "engine/shutdown.h"

#include <poll.h>
#include <signal.h>

/* ---- INFO */

static void write_version(struct buf *out)
{
    buf_append_cstr(out, "version:1\r\n");
}

static void write_uptime(struct buf *out)
{
    buf_append_cstr(out, "uptime:2\r\n");
}

static void write_clients(struct buf *out)
{
    buf_append_cstr(out, "clients:3\r\n");
}

static void write_nothing(struct buf *out)
{
    (void)out;
}

static void write_stats(struct buf *out)
{
    buf_append_cstr(out, "cmdstat_get:4\r\n");
}

static int setup_info(void **state)
{
    (void)state;
    static const struct info_section sections[] = {
        {"server", "Server", true, write_version},
        {"clients", "Clients", true, write_clients},
        {"commandstats", "Commandstats", false, write_stats},
        {"server", "Server", true, write_uptime},
        {"errorstats", "Errorstats", true, write_nothing},
    };
    for (size_t i = 0; i < COUNT(sections); i++) {
        info_register(&sections[i]);
    }
    return 0;
}

static int teardown_info(void **state)
{
    (void)state;
    info_teardown();
    return 0;
}

#define SERVER "# Server\r\nversion:1\r\nuptime:2\r\n"
#define CLIENTS "# Clients\r\nclients:3\r\n"
#define COMMANDSTATS "# Commandstats\r\ncmdstat_get:4\r\n"
#define ERRORSTATS "# Errorstats\r\n"

static void assert_info(const char *line, const char *expected)
{
    struct slice words[8];
    struct buf text = {0};
    info_write(&text, words, helper_words(line, words, 8));
    assert_string_equal(buf_cstr(&text), expected);
    buf_deinit(&text);
}

static void test_info(void **state)
{
    (void)state;
    assert_info("", SERVER "\r\n" CLIENTS "\r\n" ERRORSTATS);
    assert_info("default", SERVER "\r\n" CLIENTS "\r\n" ERRORSTATS);
    assert_info("all", SERVER "\r\n" CLIENTS "\r\n" COMMANDSTATS "\r\n" ERRORSTATS);
    assert_info("EveryThing", SERVER "\r\n" CLIENTS "\r\n" COMMANDSTATS "\r\n" ERRORSTATS);
    assert_info("nope", "");
    assert_info("SERVER", SERVER);
    /* Sections keep their order and come once, whatever is asked. */
    assert_info("clients server nope clients", SERVER "\r\n" CLIENTS);
    assert_info("commandstats default",
                SERVER "\r\n" CLIENTS "\r\n" COMMANDSTATS "\r\n" ERRORSTATS);
    assert_info("commandstats", COMMANDSTATS);
}

static bool guests_are_there;
static bool guests_exist(void)
{
    return guests_are_there;
}

static void write_guests(struct buf *out, const struct slice *words, int count, bool first)
{
    (void)words;
    buf_printf(out, "guests:%d %d", count, first);
}

static void test_guests(void **state)
{
    (void)state;
    static const struct info_guests guests = {.exist = guests_exist, .write = write_guests};
    info_set_guests(&guests);
    assert_info("nope", "");
    guests_are_there = true;
    assert_info("nope", "guests:1 1");
    assert_info("server nope", SERVER "guests:2 0");
    assert_info("modules", "guests:1 1");
    assert_info("server clients", SERVER "\r\n" CLIENTS);
    assert_info("", SERVER "\r\n" CLIENTS "\r\n" ERRORSTATS);
    const struct slice words[] = {SLICE("default"), SLICE("ALL"), SLICE("Server"),
                                  SLICE("Everything")};
    assert_false(info_asks_guests(words, 3));
    assert_true(info_asks_guests(words, 4));
    assert_false(info_asks_guests(words, 0));
    guests_are_there = false;
}

/* ---- cron */

static int fast_runs, slow_runs;
static int64_t last_ms;

static void run_fast(int64_t wall_ms)
{
    fast_runs++;
    last_ms = wall_ms;
}

static void run_slow(int64_t wall_ms)
{
    (void)wall_ms;
    slow_runs++;
}

static void test_cron(void **state)
{
    (void)state;
    static const struct cron_job fast = {"fast", 100, run_fast}, slow = {"slow", 1000, run_slow};
    cron_register(&fast);
    cron_register(&slow);
    cron_run(50000);
    assert_int_equal(fast_runs, 1);
    assert_int_equal(slow_runs, 1);
    cron_run(50099);
    assert_int_equal(fast_runs, 1);
    for (int64_t now = 50100; now <= 52000; now += 100) {
        cron_run(now);
    }
    assert_int_equal(fast_runs, 21);
    assert_int_equal(slow_runs, 3);
    assert_int_equal(last_ms, 52000);
    /* A clock that was set back by a day. */
    cron_run(52000 - 86400000);
    assert_int_equal(fast_runs, 22);
    assert_int_equal(slow_runs, 4);
    cron_run(52050 - 86400000);
    assert_int_equal(fast_runs, 22);
    cron_teardown();
    cron_run(1 << 30);
    assert_int_equal(fast_runs, 22);
}

/* ---- shutdown */

static bool event_is_readable(void)
{
    struct pollfd event = {.fd = shutdown_event_fd(), .events = POLLIN};
    return poll(&event, 1, 0) == 1;
}

static void on_signal(int number)
{
    (void)number;
    shutdown_request(SHUTDOWN_NOW);
}

static void test_shutdown(void **state)
{
    (void)state;
    unsigned flags = 77;
    shutdown_setup();
    assert_false(shutdown_requested(&flags));
    assert_int_equal(flags, 0);
    assert_false(event_is_readable());
    shutdown_request(0);
    assert_true(shutdown_requested(&flags));
    assert_int_equal(flags, 0);
    assert_true(event_is_readable());
    shutdown_request(SHUTDOWN_NOSAVE);
    signal(SIGUSR1, on_signal);
    assert_int_equal(raise(SIGUSR1), 0);
    assert_true(shutdown_requested(&flags));
    assert_int_equal(flags, SHUTDOWN_NOSAVE | SHUTDOWN_NOW);
    /* It stays asked, and readable. */
    assert_true(event_is_readable());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_info, setup_info, teardown_info),
        cmocka_unit_test_setup_teardown(test_guests, setup_info, teardown_info),
        cmocka_unit_test(test_cron),
        cmocka_unit_test(test_shutdown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
