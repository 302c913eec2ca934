/* Options joined, loaded and set: engine/config.h. test_config_rewrite.c has CONFIG REWRITE. */
#include "engine/helpers.h"

#include "engine/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static int64_t port, memory, threads;
static bool flag;
static char *name;
static char points[512]; /* what the repeatable option holds */

static bool parse_points(const struct option *option, const struct slice *words, int count,
                         const char **error)
{
    (void)option;
    struct buf text = {0};
    for (int i = 0; i < count; i++) {
        if (slice_equal(words[i], SLICE("bad"))) {
            buf_deinit(&text);
            *error = "Invalid points";
            return false;
        }
        if (words[i].len == 0) {
            buf_clear(&text);
            continue;
        }
        buf_append_cstr(&text, text.len > 0 ? " " : "");
        buf_append_slice(&text, words[i]);
    }
    assert_true(text.len < sizeof(points));
    snprintf(points, sizeof(points), "%s", buf_cstr(&text));
    buf_deinit(&text);
    return true;
}

static void format_points(const struct option *option, struct buf *out)
{
    (void)option;
    buf_append_cstr(out, points);
}

/* What apply functions saw, in order: "port=1 memory=5 ". */
static char applied[512];
static int64_t refuse_port, refuse_memory;

static bool apply_port(const struct option *option, const char **error)
{
    (void)option;
    size_t len = strlen(applied);
    snprintf(applied + len, sizeof(applied) - len, "port=%d ", (int)port);
    *error = "Unable to listen on this port. Check server logs.";
    return port != refuse_port;
}

static bool apply_memory(const struct option *option, const char **error)
{
    (void)option;
    size_t len = strlen(applied);
    snprintf(applied + len, sizeof(applied) - len, "memory=%d ", (int)memory);
    *error = "no";
    return memory != refuse_memory;
}

static const struct option options[] = {
    {.name = "port",
     .type = OPTION_INT,
     .target = &port,
     .initial = "6379",
     .max = 65535,
     .apply = apply_port},
    {.name = "maxmemory",
     .type = OPTION_MEMORY,
     .target = &memory,
     .initial = "0",
     .max = INT64_MAX,
     .apply = apply_memory},
    {.name = "server-threads",
     .alias = "io-threads",
     .type = OPTION_INT,
     .target = &threads,
     .flags = OPTION_IMMUTABLE,
     .initial = "2",
     .min = 1,
     .max = 64},
    {.name = "flag", .type = OPTION_BOOL, .target = &flag, .initial = "yes", .apply = apply_port},
    {.name = "name",
     .type = OPTION_STRING,
     .target = &name,
     .initial = "",
     .flags = OPTION_PROTECTED},
    {.name = "secret",
     .type = OPTION_ENUM,
     .target = &(int){0},
     .initial = "a",
     .flags = OPTION_SENSITIVE,
     .enum_names = (const struct option_enum[]){{"a", 0}, {NULL, 0}}},
    {.name = "points",
     .type = OPTION_CUSTOM,
     .flags = OPTION_MULTI | OPTION_REPEAT,
     .initial = "3600 1",
     .parse = parse_points,
     .format = format_points},
    {.name = NULL},
};

static char *directory;

static int setup(void **state)
{
    (void)state;
    config_register(options);
    config_register(config_protect_options);
    directory = helper_make_directory();
    applied[0] = '\0';
    refuse_port = refuse_memory = -1;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    config_teardown();
    helper_remove_directory(directory);
    free(name);
    name = NULL;
    return 0;
}

static const char *path_of(const char *file)
{
    static char paths[4][256];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof(paths[0]), "%s/%s", directory, file);
    return path;
}

/* ---- Loading */

static bool loaded;

static void load_file(void *path)
{
    loaded = config_load_file(path);
}

static void load_text(void *text)
{
    loaded = config_load_text(slice_cstr(text), "the arguments");
}

/* Loads a text that is faulty and returns what is said about it. */
static const char *fault_of(const char *text)
{
    static struct buf said;
    helper_capture_stderr(&said, load_text, (char *)text);
    assert_false(loaded);
    return buf_cstr(&said);
}

static void test_defaults_and_find(void **state)
{
    (void)state;
    assert_int_equal(port, 6379);
    assert_string_equal(points, "3600 1");
    assert_ptr_equal(config_find(SLICE("PORT")), &options[0]);
    assert_ptr_equal(config_find(SLICE("io-threads")), &options[2]);
    assert_null(config_find(SLICE("io-thread")));
    assert_null(config_find(SLICE("")));
    assert_string_equal(config_file_path(), "");
}

static void count_name(const struct option *o, const char *option_name, void *context)
{
    (void)o;
    buf_printf(context, "%s ", option_name);
}

static void test_each_names_aliases(void **state)
{
    (void)state;
    struct buf names = {0};
    config_each(count_name, &names);
    assert_string_equal(buf_cstr(&names),
                        "port maxmemory server-threads io-threads flag name secret points "
                        "enable-protected-configs enable-debug-command enable-module-command ");
    buf_deinit(&names);
}

static void test_load_text(void **state)
{
    (void)state;
    assert_true(config_load_text(SLICE("# comment\n"
                                       "\n"
                                       "  PORT 1  \r\n"
                                       "port 2\n"
                                       "\t# another \"\n"
                                       "maxmemory 100mb\n"
                                       "io-threads 4\n"
                                       "name \"a b\\n\"\n"
                                       "flag no"),
                                 "text"));
    assert_int_equal(port, 2);
    assert_int_equal(memory, 100 * 1024 * 1024);
    assert_int_equal(threads, 4);
    assert_string_equal(name, "a b\n");
    assert_false(flag);
}

static void test_repeated_lines_add_up(void **state)
{
    (void)state;
    assert_true(config_load_text(SLICE("points 1 2\n"), "text"));
    assert_string_equal(points, "1 2"); /* the default is gone */
    assert_true(config_load_text(SLICE("points 3 4\npoints 5\n"), "text"));
    assert_string_equal(points, "1 2 3 4 5");
    assert_true(config_load_text(SLICE("points \"\"\n"), "text"));
    assert_string_equal(points, "");
    assert_true(config_load_text(SLICE("points 6\n"), "text"));
    assert_string_equal(points, "6");
}

static void test_repeated_lines_are_bounded(void **state)
{
    (void)state;
    struct buf text = {0}, said = {0};
    for (int i = 0; i < OPTION_MAX_WORDS; i++) {
        buf_append_cstr(&text, "points 1\n");
    }
    helper_capture_stderr(&said, load_text, (char *)buf_cstr(&text));
    assert_true(loaded);
    buf_append_cstr(&text, "points 1\n");
    helper_capture_stderr(&said, load_text, (char *)buf_cstr(&text));
    assert_false(loaded);
    assert_non_null(strstr(buf_cstr(&said), "too many words"));
    buf_deinit(&text);
    buf_deinit(&said);
}

static void test_faults_of_lines(void **state)
{
    (void)state;
    assert_string_equal(fault_of("\nfoo bar\n"),
                        "\n*** FATAL CONFIG FILE ERROR (KeyDB 7.2.0) ***\n"
                        "Reading the configuration file, at line 2 of the arguments\n"
                        ">>> 'foo bar'\n"
                        "Bad directive or wrong number of arguments\n");
    assert_non_null(strstr(fault_of("port x"), "argument couldn't be parsed into an integer\n"));
    assert_non_null(strstr(fault_of("port 65536"), "between 0 and 65535 inclusive\n"));
    assert_non_null(strstr(fault_of("port"), "wrong number of arguments\n"));
    assert_non_null(strstr(fault_of("port 1 2"), "wrong number of arguments\n"));
    assert_non_null(strstr(fault_of("port \"1"), "Unbalanced quotes in configuration line\n"));
    assert_non_null(strstr(fault_of("include"), "Bad directive or wrong number of arguments\n"));
    assert_non_null(strstr(fault_of("points 1\npoints bad"), "Invalid points\n"));
    assert_string_equal(points, "1");
    /* A secret is not written to the log. */
    const char *said = fault_of("secret hunter2\n");
    assert_non_null(strstr(said, ">>> 'secret (redacted)'\n"));
    assert_null(strstr(said, "hunter2"));
}

static void test_load_file(void **state)
{
    (void)state;
    helper_write_file(path_of("main.conf"), "port 7\n");
    assert_true(config_load_file(path_of("main.conf")));
    assert_int_equal(port, 7);
    assert_string_equal(config_file_path(), path_of("main.conf"));
    struct buf said = {0};
    helper_capture_stderr(&said, load_file, (char *)path_of("nope.conf"));
    assert_false(loaded);
    assert_non_null(strstr(buf_cstr(&said), "Fatal error, can't open config file '"));
    assert_non_null(strstr(buf_cstr(&said), "nope.conf': No such file or directory\n"));
    helper_capture_stderr(&said, load_file, directory);
    assert_false(loaded);
    assert_non_null(strstr(buf_cstr(&said), "Is a directory"));
    buf_deinit(&said);
}

static void test_relative_path_becomes_absolute(void **state)
{
    (void)state;
    char *before = getcwd(NULL, 0);
    helper_write_file(path_of("main.conf"), "port 7\n");
    assert_int_equal(chdir(directory), 0);
    assert_true(config_load_file("./main.conf"));
    assert_int_equal(chdir(before), 0);
    free(before);
    assert_string_equal(config_file_path(), path_of("main.conf"));
}

static void test_include(void **state)
{
    (void)state;
    struct buf text = {0};
    helper_write_file(path_of("b.inc"), "port 20\nmaxmemory 5\n");
    helper_write_file(path_of("a.inc"), "port 10\nmaxmemory 4\nflag no\n");
    buf_printf(&text, "port 1\ninclude %s/*.inc\nmaxmemory 6\ninclude %s/*.none\n", directory,
               directory);
    helper_write_file(path_of("main.conf"), buf_cstr(&text));
    assert_true(config_load_file(path_of("main.conf")));
    assert_int_equal(port, 20);
    assert_int_equal(memory, 6);
    assert_false(flag);
    assert_string_equal(config_file_path(), path_of("main.conf"));
    buf_deinit(&text);
}

static void test_include_faults(void **state)
{
    (void)state;
    struct buf text = {0}, said = {0};
    buf_printf(&text, "include %s/none.inc\n", directory);
    helper_write_file(path_of("main.conf"), buf_cstr(&text));
    helper_capture_stderr(&said, load_file, (char *)path_of("main.conf"));
    assert_false(loaded);
    assert_non_null(strstr(buf_cstr(&said), "none.inc': No such file or directory\n"));
    /* The report names the included file and its line. */
    helper_write_file(path_of("none.inc"), "\n\nfoo\n");
    helper_capture_stderr(&said, load_file, (char *)path_of("main.conf"));
    assert_false(loaded);
    assert_non_null(strstr(buf_cstr(&said), "at line 3 of "));
    assert_non_null(strstr(buf_cstr(&said), "none.inc\n>>> 'foo'\n"));
    /* A circle ends. */
    helper_write_file(path_of("none.inc"), buf_cstr(&text));
    helper_capture_stderr(&said, load_file, (char *)path_of("main.conf"));
    assert_false(loaded);
    assert_non_null(strstr(buf_cstr(&said), "include is nested too deeply\n"));
    buf_deinit(&text);
    buf_deinit(&said);
}

static void test_hostile_files(void **state)
{
    (void)state;
    /* Nothing of this may crash or hang; all of it is refused. */
    static const char *const texts[] = {
        "\"",           "'",        "port '1", "\x01\x02\xff 1", "\"\" 1", "port \"\\x00\"",
        "include \"\"", " \" \" x",
    };
    for (size_t i = 0; i < COUNT(texts); i++) {
        fault_of(texts[i]);
    }
    struct buf text = {0}, said = {0};
    for (int i = 0; i < 100000; i++) {
        buf_append_cstr(&text, "a ");
    }
    helper_capture_stderr(&said, load_text, (char *)buf_cstr(&text));
    assert_false(loaded);
    assert_true(said.len < 2048);
    buf_deinit(&text);
    buf_deinit(&said);
}

/* ---- CONFIG SET */

/* Sets the words of `line` (name value ...) as CONFIG SET of a remote or local client. */
static bool set_as(const char *line, bool local, struct slice *failed, const char **error)
{
    static struct slice words[64];
    int count = helper_words(line, words, 64);
    assert_int_equal(count % 2, 0);
    applied[0] = '\0';
    return config_set_from(words, count / 2, local, failed, error);
}

static void assert_refused(const char *line, const char *who, const char *why)
{
    struct slice failed = {0};
    const char *error = "untouched";
    assert_false(set_as(line, false, &failed, &error));
    assert_true(slice_equal(failed, slice_cstr(who)));
    if (why == NULL) {
        assert_null(error);
    } else {
        assert_string_equal(error, why);
    }
}

static void assert_set(const char *line)
{
    struct slice failed;
    const char *error;
    assert_true(set_as(line, false, &failed, &error));
}

static void test_set(void **state)
{
    (void)state;
    assert_set("port 1 MAXMEMORY 1kb");
    assert_int_equal(port, 1);
    assert_int_equal(memory, 1024);
    assert_string_equal(applied, "port=1 memory=1024 ");
    /* Equal values are not applied. */
    assert_set("maxmemory 1024 port 2");
    assert_string_equal(applied, "port=2 ");
    /* One apply function serves both options. */
    assert_set("flag no port 3");
    assert_string_equal(applied, "port=3 ");
    struct slice pair[] = {SLICE("points"), SLICE("7 \"8\" 9")}, failed;
    const char *error;
    assert_true(config_set(pair, 1, &failed, &error));
    assert_string_equal(points, "7 8 9");
    pair[1] = SLICE("");
    assert_true(config_set(pair, 1, &failed, &error));
    assert_string_equal(points, "");
}

static void test_set_refusals(void **state)
{
    (void)state;
    assert_refused("port 1 nope 2", "nope", NULL);
    assert_refused("port 1 io-threads 4", "io-threads", "can't set immutable config");
    assert_refused("port 1 name x", "name", "can't set protected config");
    assert_refused("port 1 maxmemory 1 port 2", "port", "duplicate parameter");
    assert_refused("port 1 maxmemory x", "maxmemory", "argument must be a memory value");
    assert_refused("port 1 points bad", "points", "Invalid points");
    assert_refused("flag maybe port 1", "flag", "argument must be 'yes' or 'no'");
    assert_int_equal(port, 6379);
    assert_int_equal(memory, 0);
    assert_string_equal(points, "3600 1");
    assert_string_equal(applied, "");
    /* A refusal leaves no mark: the same names can be set afterwards. */
    assert_set("port 1 maxmemory 1");
}

static void test_set_more_pairs_than_options(void **state)
{
    (void)state;
    struct slice *pairs = calloc(2 * 1000, sizeof(*pairs));
    for (int i = 0; i < 1000; i++) {
        pairs[2 * i] = SLICE("port");
        pairs[2 * i + 1] = SLICE("1");
    }
    struct slice failed;
    const char *error;
    assert_false(config_set(pairs, 1000, &failed, &error));
    assert_string_equal(error, "duplicate parameter");
    free(pairs);
}

static void test_set_rolls_back_refused_apply(void **state)
{
    (void)state;
    assert_set("port 5 maxmemory 5");
    refuse_memory = 7;
    assert_refused("port 6 maxmemory 7 points 1", "maxmemory", "no");
    assert_int_equal(port, 5);
    assert_int_equal(memory, 5);
    assert_string_equal(points, "3600 1");
    assert_string_equal(applied, "port=6 memory=7 port=5 memory=5 ");
    refuse_port = 8;
    assert_refused("port 8 maxmemory 9", "port",
                   "Unable to listen on this port. Check server logs.");
    assert_int_equal(memory, 5);
    assert_string_equal(applied, "port=8 port=5 ");
}

static void test_protection(void **state)
{
    (void)state;
    struct slice failed;
    const char *error;
    assert_false(config_allows_debug(true));
    assert_false(set_as("name x", true, &failed, &error));
    assert_true(config_load_text(SLICE("enable-protected-configs local\n"
                                       "enable-debug-command yes\n"),
                                 "text"));
    assert_true(config_allows_debug(false));
    assert_false(config_allows_module(true));
    assert_false(set_as("name x", false, &failed, &error));
    assert_true(set_as("name x", true, &failed, &error));
    assert_string_equal(name, "x");
    assert_true(config_load_text(SLICE("enable-protected-configs yes\n"), "text"));
    assert_true(set_as("name y", false, &failed, &error));
    assert_refused("enable-protected-configs no", "enable-protected-configs",
                   "can't set immutable config");
}

/* ---- Tables */

static void register_twice(void)
{
    config_register(options);
}

static void register_alias_twice(void)
{
    static const struct option same[] = {
        {.name = "io-threads", .type = OPTION_BOOL, .target = &flag, .initial = "no"}, {0}};
    config_register(same);
}

static void register_homeless(void)
{
    static const struct option homeless[] = {
        {.name = "homeless", .type = OPTION_BOOL, .initial = "no"}, {0}};
    config_register(homeless);
}

static void test_faulty_tables_abort(void **state)
{
    (void)state;
    assert_true(helper_aborts(register_twice));
    assert_true(helper_aborts(register_alias_twice));
    assert_true(helper_aborts(register_homeless));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_defaults_and_find),
        TEST(test_each_names_aliases),
        TEST(test_load_text),
        TEST(test_repeated_lines_add_up),
        TEST(test_repeated_lines_are_bounded),
        TEST(test_faults_of_lines),
        TEST(test_load_file),
        TEST(test_relative_path_becomes_absolute),
        TEST(test_include),
        TEST(test_include_faults),
        TEST(test_hostile_files),
        TEST(test_set),
        TEST(test_set_refusals),
        TEST(test_set_more_pairs_than_options),
        TEST(test_set_rolls_back_refused_apply),
        TEST(test_protection),
        TEST(test_faulty_tables_abort),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
