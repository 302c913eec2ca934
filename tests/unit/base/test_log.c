/* The log: base/log.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/log.h"
#include "temporary.h"

#include <errno.h>
#include <pthread.h>
#include <regex.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char *path;
static char content[1 << 20];

static const char *read_log(void)
{
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t len = fread(content, 1, sizeof(content) - 1, file);
    content[len] = '\0';
    fclose(file);
    return content;
}

static void empty_log(void)
{
    assert_int_equal(truncate(path, 0), 0);
}

static void assert_line(const char *text, const char *pattern)
{
    regex_t regex;
    assert_int_equal(regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB), 0);
    if (regexec(&regex, text, 0, NULL, 0) != 0) {
        print_error("'%s' does not match %s\n", text, pattern);
        regfree(&regex);
        fail();
    }
    regfree(&regex);
}

static int setup(void **state)
{
    (void)state;
    path = temporary_template("test_log");
    int fd = mkstemp(path);
    if (fd < 0) {
        return -1;
    }
    close(fd);
    return log_set_file(path) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    int status = unlink(path);
    free(path);
    return status;
}

static void test_lines_look_like_redis(void **state)
{
    (void)state;
    empty_log();
    log_set_role('S');
    errno = 77;
    log_notice("Hello %d", 42);
    assert_int_equal(errno, 77);
    log_set_role('M');
    char pattern[256];
    snprintf(pattern, sizeof(pattern),
             "^%d:S [0-3][0-9] [JFMASOND][a-z][a-z] 20[0-9][0-9] "
             "[0-2][0-9]:[0-5][0-9]:[0-6][0-9]\\.[0-9]{3} \\* Hello 42\n$",
             (int)getpid());
    assert_line(read_log(), pattern);
}

static void test_levels(void **state)
{
    (void)state;
    empty_log();
    log_set_level(LOG_DEBUG_LEVEL);
    assert_int_equal(log_level(), LOG_DEBUG_LEVEL);
    log_debug("one");
    log_verbose("two");
    log_notice("three");
    log_warning("four");
    assert_line(read_log(), "^[^\n]* \\. one\n[^\n]* - two\n[^\n]* \\* three\n[^\n]* # four\n$");
    empty_log();
    log_set_level(LOG_WARNING);
    log_debug("one");
    log_verbose("two");
    log_notice("three");
    log_warning("four");
    assert_line(read_log(), "^[^\n]* # four\n$");
    log_set_level(LOG_NOTICE);
}

static bool is_date_of(const char *stamp, time_t second)
{
    char text[64];
    struct tm local;
    localtime_r(&second, &local);
    strftime(text, sizeof(text), "%d %b %Y %H:%M:%S", &local);
    return strcmp(stamp, text) == 0;
}

/* Whatever the time zone, the date is the one that libc computes, of a second that passed
 * meanwhile. */
static void test_dates(void **state)
{
    (void)state;
    static const char *const zones[] = {"UTC", "AAA-13:45", "BBB+11", "CCC-5:30"};
    for (size_t i = 0; i < sizeof(zones) / sizeof(zones[0]); i++) {
        setenv("TZ", zones[i], 1);
        log_setup();
        char stamp[64];
        bool found = false;
        empty_log();
        time_t before = time(NULL);
        log_notice("x");
        time_t after = time(NULL) + 1; /* time() may lag by a tick of the coarse clock */
        const char *line = strchr(read_log(), ' ');
        assert_non_null(line);
        snprintf(stamp, sizeof(stamp), "%.20s", line + 1);
        for (time_t second = before; second <= after && !found; second++) {
            found = is_date_of(stamp, second);
        }
        assert_true(found);
    }
    setenv("TZ", "UTC", 1);
    log_setup();
}

static void test_hostile_messages(void **state)
{
    (void)state;
    empty_log();
    log_notice("a\nb\r\x1b[31m\xff~ %s", "%s%n");
    assert_line(read_log(), "^[^\n]* \\* a\\\\x0ab\\\\x0d\\\\x1b\\[31m\\\\xff~ %s%n\n$");
    empty_log();
    static char longest[5000];
    memset(longest, 1, sizeof(longest) - 1);
    log_notice("%s", longest);
    const char *text = strchr(read_log(), '*');
    assert_non_null(text);
    assert_int_equal(strlen(text), 2 + 1024 * 4 + 1);
    assert_int_equal(text[strlen(text) - 1], '\n');
}

static void test_files_that_cannot_be_opened(void **state)
{
    (void)state;
    errno = 0;
    assert_false(log_set_file("/nonexistent/directory/file"));
    assert_int_equal(errno, ENOENT);
    static char huge[10000];
    memset(huge, 'x', sizeof(huge) - 1);
    assert_false(log_set_file(huge));
    assert_int_equal(errno, ENAMETOOLONG);
    empty_log();
    log_notice("still there");
    assert_line(read_log(), "still there");
}

/* logrotate moves the file away; the next line makes a new one. */
static void test_rotation(void **state)
{
    (void)state;
    char moved[64];
    snprintf(moved, sizeof(moved), "%s.1", path);
    assert_int_equal(rename(path, moved), 0);
    log_notice("anew");
    assert_line(read_log(), "anew");
    unlink(moved);
}

static void *write_lines(void *name)
{
    for (int i = 0; i < 300; i++) {
        log_notice("%s line %d ends", (const char *)name, i);
    }
    return NULL;
}

static void test_threads_do_not_mix_lines(void **state)
{
    (void)state;
    empty_log();
    pthread_t threads[3];
    static char names[3][2] = {"A", "B", "C"};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, write_lines, names[i]), 0);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
    }
    char *save = NULL;
    int next[3] = {0};
    read_log();
    for (char *line = strtok_r(content, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char name, expected[64];
        char *message = strchr(line, '*');
        assert_non_null(message);
        name = message[2];
        assert_in_range(name, 'A', 'C');
        snprintf(expected, sizeof(expected), "* %c line %d ends", name, next[name - 'A']++);
        assert_string_equal(message, expected);
    }
    for (int i = 0; i < 3; i++) {
        assert_int_equal(next[i], 300);
    }
}

static _Atomic bool stop;

static void *chatter(void *arg)
{
    (void)arg;
    while (!stop) {
        log_warning("talking");
    }
    return NULL;
}

/* A child that was forked while other threads were logging can log: a hang is the failure. */
static void test_children_can_log(void **state)
{
    (void)state;
    log_set_syslog(true, "test_log", 16);
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, chatter, NULL), 0);
    }
    int failures = 0;
    for (int i = 0; i < 50; i++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            log_set_role('C');
            log_notice("child %d", i);
            _exit(0);
        }
        int status;
        failures += waitpid(child, &status, 0) != child || status != 0;
    }
    stop = true;
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    log_set_syslog(false, NULL, 0);
    assert_int_equal(failures, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines_look_like_redis),
        cmocka_unit_test(test_levels),
        cmocka_unit_test(test_dates),
        cmocka_unit_test(test_hostile_messages),
        cmocka_unit_test(test_files_that_cannot_be_opened),
        cmocka_unit_test(test_rotation),
        cmocka_unit_test(test_threads_do_not_mix_lines),
        cmocka_unit_test(test_children_can_log),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
