/* CONFIG REWRITE: engine/config.h. Every case is a file, what CONFIG SET changed, and the file
 * after. */
#include "engine/helpers.h"

#include "engine/config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static int64_t port, memory;
static bool flag;
static char *name, *nothing;
static char points[512];

static bool parse_points(const struct option *option, const struct slice *words, int count,
                         const char **error)
{
    (void)option;
    struct buf text = {0};
    for (int i = 0; i < count; i++) {
        if (words[i].len == 0) {
            buf_clear(&text);
            continue;
        }
        buf_append_cstr(&text, text.len > 0 ? " " : "");
        buf_append_slice(&text, words[i]);
    }
    *error = "too long";
    bool fits = text.len < sizeof(points);
    if (fits) {
        snprintf(points, sizeof(points), "%s", buf_cstr(&text));
    }
    buf_deinit(&text);
    return fits;
}

static void format_points(const struct option *option, struct buf *out)
{
    (void)option;
    buf_append_cstr(out, points);
}

/* Its last word is its value. */
static char whole[32];

static bool parse_whole(const struct option *option, const struct slice *words, int count,
                        const char **error)
{
    (void)option;
    (void)error;
    snprintf(whole, sizeof(whole), "%.*s", (int)words[count - 1].len, words[count - 1].ptr);
    return true;
}

static void format_whole(const struct option *option, struct buf *out)
{
    (void)option;
    buf_append_cstr(out, whole);
}

static bool parse_declared(const struct option *option, const struct slice *words, int count,
                           const char **error)
{
    (void)option;
    (void)words;
    (void)error;
    return count > 0;
}

static void format_declared(const struct option *option, struct buf *out)
{
    (void)option;
    (void)out;
}

static const char *declared;
static bool declared_lost;

static bool put_declared(bool in_include, struct buf *out, bool *lost)
{
    buf_append_cstr(out, declared && in_include ? "declare behind\n" : "");
    buf_append_cstr(out, declared ? declared : "");
    *lost = declared_lost;
    return declared != NULL;
}

static const struct option options[] = {
    {.name = "port",
     .alias = "tcp-port",
     .type = OPTION_INT,
     .target = &port,
     .initial = "6379",
     .max = 65535},
    {.name = "maxmemory",
     .type = OPTION_MEMORY,
     .target = &memory,
     .initial = "0",
     .max = INT64_MAX},
    {.name = "flag", .type = OPTION_BOOL, .target = &flag, .initial = "yes"},
    {.name = "name", .type = OPTION_STRING, .target = &name, .initial = ""},
    {.name = "nothing",
     .type = OPTION_STRING,
     .target = &nothing,
     .initial = "x",
     .flags = OPTION_NULLABLE},
    {.name = "points",
     .type = OPTION_CUSTOM,
     .flags = OPTION_MULTI | OPTION_REPEAT,
     .initial = "3600 1",
     .parse = parse_points,
     .format = format_points},
    {.name = "whole",
     .type = OPTION_CUSTOM,
     .flags = OPTION_MULTI | OPTION_REPEAT | OPTION_WHOLE,
     .initial = "1",
     .parse = parse_whole,
     .format = format_whole},
    {.name = "declare",
     .type = OPTION_CUSTOM,
     .flags = OPTION_MULTI,
     .initial = "",
     .parse = parse_declared,
     .format = format_declared,
     .lines = put_declared},
    {.name = NULL},
};

static char *directory;
static char path[256];

static int setup(void **state)
{
    (void)state;
    config_register(options);
    directory = helper_make_directory();
    snprintf(path, sizeof(path), "%s/main.conf", directory);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    config_teardown();
    helper_remove_directory(directory);
    free(name);
    free(nothing);
    name = nothing = NULL;
    return 0;
}

static void load(const char *text)
{
    helper_write_file(path, text);
    assert_true(config_load_file(path));
}

static void set(const char *option, struct slice value)
{
    struct slice pair[] = {slice_cstr(option), value}, failed;
    const char *error;
    assert_true(config_set(pair, 1, &failed, &error));
}

static void assert_rewritten(const char *expected)
{
    const char *error = NULL;
    assert_true(config_rewrite(&error));
    struct buf text = {0};
    assert_string_equal(helper_read_file(path, &text), expected);
    buf_deinit(&text);
}

static void test_nothing_changed(void **state)
{
    (void)state;
    static const char text[] = "# a comment\n"
                               "\n"
                               "   port    7  \n"
                               "MAXMEMORY 100MB\n"
                               "flag YES\n"
                               "\t# \"unbalanced\n"
                               "points 1 2\n"
                               "points  3 4\n"
                               "name 'it is'\n"
                               "\n";
    load(text);
    assert_rewritten(text);
    assert_rewritten(text);
}

static void test_values_change_in_place(void **state)
{
    (void)state;
    load("# port\nport 7\n# memory\nmaxmemory 100mb\n\nTCP-PORT 8\nname a\n# end");
    set("port", SLICE("9"));
    set("maxmemory", SLICE("2147483648"));
    set("name", SLICE("a b"));
    /* Of two lines for a port the last one counted: it stays, with its spelling. */
    assert_rewritten("# port\n# memory\nmaxmemory 2gb\n\nTCP-PORT 9\nname \"a b\"\n# end\n");
    set("maxmemory", SLICE("1001"));
    set("name", SLICE(""));
    assert_rewritten("# port\n# memory\nmaxmemory 1001\n\nTCP-PORT 9\nname \"\"\n# end\n");
}

static void test_a_value_set_back_restores_nothing(void **state)
{
    (void)state;
    load("maxmemory 1000kb\n");
    set("maxmemory", SLICE("5"));
    set("maxmemory", SLICE("1024000"));
    assert_rewritten("maxmemory 1000kb\n");
}

static void test_new_lines_at_the_end(void **state)
{
    (void)state;
    load("port 7\n");
    set("flag", SLICE("no"));
    set("nothing", SLICE(""));
    assert_rewritten("port 7\n# Generated by CONFIG REWRITE\nflag no\nnothing \"\"\n");
    set("maxmemory", SLICE("3"));
    assert_rewritten("port 7\n# Generated by CONFIG REWRITE\nflag no\nnothing \"\"\nmaxmemory 3\n");
    /* Back at its default the line stays and says so. */
    set("flag", SLICE("yes"));
    assert_rewritten(
        "port 7\n# Generated by CONFIG REWRITE\nflag yes\nnothing \"\"\nmaxmemory 3\n");
}

static void test_repeated_options(void **state)
{
    (void)state;
    load("points 1 2\nport 7\npoints 3 4\n");
    set("points", SLICE("3 4 5 6"));
    assert_rewritten("points 3 4 5 6\nport 7\n");
    set("points", SLICE(""));
    assert_rewritten("points \"\"\nport 7\n");
}

static void test_control_characters_round_trip(void **state)
{
    (void)state;
    load("");
    char all[255];
    for (int i = 0; i < 255; i++) {
        all[i] = (char)(i + 1);
    }
    set("name", slice_of(all, sizeof(all)));
    const char *error;
    assert_true(config_rewrite(&error));
    config_teardown();
    config_register(options);
    assert_string_equal(name, "");
    assert_true(config_load_file(path));
    assert_int_equal(strlen(name), 255);
    assert_memory_equal(name, all, 255);
    set("name", SLICE("\n"));
    assert_rewritten("# Generated by CONFIG REWRITE\nname \"\\n\"\n");
}

static void test_arguments_are_written(void **state)
{
    (void)state;
    load("port 7\nmaxmemory 1\n");
    assert_true(config_load_text(SLICE("port 8\nflag no\n"), "arguments"));
    assert_rewritten("port 8\nmaxmemory 1\n# Generated by CONFIG REWRITE\nflag no\n");
}

static void test_edited_file(void **state)
{
    (void)state;
    load("port 7\n");
    /* Edited meanwhile: what is known gets the values of now, what is not stays. */
    helper_write_file(path, "port 8\nunknown thing\nflag\n\"broken\nmaxmemory 5\n");
    assert_rewritten("port 7\nunknown thing\nflag\n\"broken\nmaxmemory 0\n");
    assert_int_equal(unlink(path), 0);
    assert_rewritten("# Generated by CONFIG REWRITE\nport 7\n");
}

/* ---- include */

static char included[256];

static void load_with_include(const char *before, const char *inside, const char *after)
{
    struct buf text = {0};
    snprintf(included, sizeof(included), "%s/other.inc", directory);
    helper_write_file(included, inside);
    buf_printf(&text, "%sinclude %s/*.inc\n%s", before, directory, after);
    load(buf_cstr(&text));
    buf_deinit(&text);
}

static void assert_rewritten_around_include(const char *before, const char *after)
{
    struct buf text = {0};
    buf_printf(&text, "%sinclude %s/*.inc\n%s", before, directory, after);
    assert_rewritten(buf_cstr(&text));
    buf_deinit(&text);
}

static void start_again(void)
{
    config_teardown();
    config_register(options);
    assert_true(config_load_file(path));
}

static void test_include_stays(void **state)
{
    (void)state;
    load_with_include("port 7\n", "port 8\nmaxmemory 5\n", "flag no\n");
    assert_rewritten_around_include("port 7\n", "flag no\n");
    /* What the include says is overruled behind it. */
    set("maxmemory", SLICE("6"));
    set("port", SLICE("9"));
    assert_rewritten_around_include(
        "port 7\n", "flag no\n# Generated by CONFIG REWRITE\nport 9\nmaxmemory 6\n");
    config_teardown();
    config_register(options);
    assert_true(config_load_file(path));
    assert_int_equal(port, 9);
    assert_int_equal(memory, 6);
    /* The default too, since the include says otherwise. */
    set("maxmemory", SLICE("0"));
    assert_rewritten_around_include(
        "port 7\n", "flag no\n# Generated by CONFIG REWRITE\nport 9\nmaxmemory 0\n");
}

static void test_default_against_include(void **state)
{
    (void)state;
    load_with_include("", "maxmemory 5\n", "");
    set("maxmemory", SLICE("0"));
    assert_rewritten_around_include("", "# Generated by CONFIG REWRITE\nmaxmemory 0\n");
}

static void test_repeated_in_include(void **state)
{
    (void)state;
    load_with_include("points 1\n", "points 2\n", "points 3\n");
    assert_string_equal(points, "1 2 3");
    assert_rewritten_around_include("points 1\n", "points 3\n");
    /* An empty line takes back what the include says; ours before it are gone. */
    set("points", SLICE("9"));
    set("port", SLICE("5"));
    assert_rewritten_around_include(
        "", "points \"\"\npoints 9\n# Generated by CONFIG REWRITE\nport 5\n");
    assert_rewritten_around_include(
        "", "points \"\"\npoints 9\n# Generated by CONFIG REWRITE\nport 5\n");
    start_again();
    assert_string_equal(points, "9");
    assert_rewritten_around_include(
        "", "points \"\"\npoints 9\n# Generated by CONFIG REWRITE\nport 5\n");
    /* Back at what the files said at first: they do not any more. */
    set("points", SLICE("1 2 3"));
    assert_rewritten_around_include(
        "", "points \"\"\npoints 1 2 3\n# Generated by CONFIG REWRITE\nport 5\n");
    set("points", SLICE(""));
    assert_rewritten_around_include("", "points \"\"\n# Generated by CONFIG REWRITE\nport 5\n");
    start_again();
    assert_string_equal(points, "");
    assert_rewritten_around_include("", "points \"\"\n# Generated by CONFIG REWRITE\nport 5\n");
}

static void test_repeated_in_include_alone(void **state)
{
    (void)state;
    load_with_include("", "points 2\n", "");
    set("points", SLICE("9"));
    set("points", SLICE("2"));
    assert_rewritten_around_include("", "");
    set("points", SLICE("9"));
    assert_rewritten_around_include("", "# Generated by CONFIG REWRITE\npoints \"\"\npoints 9\n");
    set("points", SLICE("2"));
    assert_rewritten_around_include("", "# Generated by CONFIG REWRITE\npoints \"\"\npoints 2\n");
    start_again();
    assert_string_equal(points, "2");
}

/* The main file's later line wins: nothing is to be taken back. */
static void test_repeated_behind_include(void **state)
{
    (void)state;
    static const char behind[] = "points \"\"\npoints 3\n";
    load_with_include("", "points 2\n", behind);
    assert_string_equal(points, "3");
    assert_rewritten_around_include("", behind);
    set("flag", SLICE("no"));
    assert_rewritten_around_include(
        "", "points \"\"\npoints 3\n# Generated by CONFIG REWRITE\nflag no\n");
}

/* Arguments said it last. */
static void test_repeated_in_include_and_arguments(void **state)
{
    (void)state;
    load_with_include("", "points 2\n", "");
    assert_true(config_load_text(SLICE("points \"\"\n"), "arguments"));
    assert_string_equal(points, "");
    assert_rewritten_around_include("", "# Generated by CONFIG REWRITE\npoints \"\"\n");
}

/* A line with the whole value overrules by itself. */
static void test_whole_value_in_include(void **state)
{
    (void)state;
    load_with_include("whole 7\n", "whole 1 2\n", "");
    set("whole", SLICE("4"));
    assert_rewritten_around_include("", "# Generated by CONFIG REWRITE\nwhole 4\n");
    assert_rewritten_around_include("", "# Generated by CONFIG REWRITE\nwhole 4\n");
}

/* Options whose lines are things of their own: what can't be said does not hold back the rest. */
static void test_lines_in_include(void **state)
{
    (void)state;
    load_with_include("declare a\n# mid\n", "declare b\n", "declare c\n# end\n");
    assert_rewritten_around_include("declare a\n# mid\n", "declare c\n# end\n");
    declared = "declare x\ndeclare y\n";
    assert_rewritten_around_include("# mid\n", "declare behind\ndeclare x\ndeclare y\n# end\n");
    declared_lost = true;
    set("port", SLICE("5"));
    const char *error = NULL;
    assert_false(config_rewrite(&error));
    assert_string_equal(
        error, "all was written but what lines of 'declare' in an included file contradict");
    struct buf text = {0};
    assert_non_null(strstr(helper_read_file(path, &text), "port 5\n"));
    buf_deinit(&text);
    declared = NULL;
    declared_lost = false;
}

/* ---- Files */

static void test_without_a_file(void **state)
{
    (void)state;
    const char *error = NULL;
    assert_false(config_rewrite(&error));
    assert_string_equal(error, "The server is running without a config file");
}

static void test_mode_and_links_are_kept(void **state)
{
    (void)state;
    char target[300];
    snprintf(target, sizeof(target), "%s/target.conf", directory);
    helper_write_file(target, "port 7\n");
    assert_int_equal(chmod(target, 0640), 0);
    assert_int_equal(symlink(target, path), 0);
    assert_true(config_load_file(path));
    set("port", SLICE("8"));
    assert_rewritten("port 8\n");
    struct stat st;
    assert_int_equal(lstat(path, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(lstat(target, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0640);
}

static void test_failure_leaves_the_file(void **state)
{
    (void)state;
    load("port 7\n");
    set("port", SLICE("8"));
    /* A directory in the temporary file's place cannot be opened for writing, whoever we are. */
    char temporary[300];
    snprintf(temporary, sizeof(temporary), "%s.rewrite-%ld", path, (long)getpid());
    assert_int_equal(mkdir(temporary, 0700), 0);
    const char *error = NULL;
    assert_false(config_rewrite(&error));
    assert_string_equal(error, "File exists");
    assert_int_equal(rmdir(temporary), 0);
    struct buf text = {0};
    assert_string_equal(helper_read_file(path, &text), "port 7\n");
    buf_deinit(&text);
    assert_rewritten("port 8\n");
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_nothing_changed),
        TEST(test_values_change_in_place),
        TEST(test_a_value_set_back_restores_nothing),
        TEST(test_new_lines_at_the_end),
        TEST(test_repeated_options),
        TEST(test_control_characters_round_trip),
        TEST(test_arguments_are_written),
        TEST(test_edited_file),
        TEST(test_include_stays),
        TEST(test_default_against_include),
        TEST(test_repeated_in_include),
        TEST(test_repeated_in_include_alone),
        TEST(test_repeated_behind_include),
        TEST(test_repeated_in_include_and_arguments),
        TEST(test_whole_value_in_include),
        TEST(test_lines_in_include),
        TEST(test_without_a_file),
        TEST(test_mode_and_links_are_kept),
        TEST(test_failure_leaves_the_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
