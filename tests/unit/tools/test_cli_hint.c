/* COMMAND DOCS as a table, hints and completions out of it, and the history of lines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "temporary.h"
#include "tools/cli/docs.h"
#include "tools/cli/hint.h"
#include "tools/cli/history.h"
#include "tools/common/reader.h"

/* A line of a tiny language becomes RESP: words are strings, ( ) enclose an array, { } a map. */
static size_t count_items(const char *text)
{
    size_t count = 0;
    int depth = 0;
    for (const char *c = text; *c != '\0' && depth >= 0; c++) {
        if (*c == ')' || *c == '}') {
            depth--;
        } else if (*c != ' ') {
            count += depth == 0 ? 1 : 0;
            if (*c == '(' || *c == '{') {
                depth++;
            } else {
                c += strcspn(c, " (){}") - 1;
            }
        }
    }
    return count;
}

static void to_resp(struct text *out, const char *text)
{
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '(') {
            text_append_format(out, "*%zu\r\n", count_items(c + 1));
        } else if (*c == '{') {
            text_append_format(out, "%%%zu\r\n", count_items(c + 1) / 2);
        } else if (*c != ' ' && *c != ')' && *c != '}') {
            size_t len = strcspn(c, " (){}");
            text_append_format(out, "$%zu\r\n%.*s\r\n", len, (int)len, c);
            c += len - 1;
        }
    }
}

#define VALUE(name) "{name " name " type string}"
#define OPTIONAL "flags (optional)"

static const char docs_source[] =
    "{set {summary Sets since 1.0.0 group string arguments ("
    "  {name key type key} {name value type string}"
    "  {name condition type oneof " OPTIONAL " arguments ({name nx type pure-token token NX}"
    "    {name xx type pure-token token XX})}"
    "  {name get type pure-token token GET " OPTIONAL "}"
    "  {name expiry type oneof " OPTIONAL " arguments ({name seconds type integer token EX}"
    "    {name ms type integer token PX} {name keep type pure-token token KEEPTTL})})}"
    " blpop {group list arguments ({name key type key flags (multiple)} {name timeout type "
    "double})}"
    " ping {arguments ({name message type string " OPTIONAL "})}"
    " mset {arguments ({name data type block flags (multiple) arguments (" VALUE("key")
        VALUE("value") ")})}"
                       " sort {arguments (" VALUE(
                           "key") "{name by type pattern token BY " OPTIONAL "}"
                                  "  {name limit type block token LIMIT " OPTIONAL
                                  " arguments (" VALUE("offset") VALUE(
                                      "count") ")}"
                                               "  {name pattern type pattern token GET flags "
                                               "(optional multiple multiple_token)}"
                                               "  {name alpha type pure-token token ALPHA " OPTIONAL
                                               "})}"
                                               " client {group connection subcommands {client|kill "
                                               "{arguments ("
                                               "  {name ip:port type string})} client|id {}}}"
                                               " copy {arguments ({name k display_text source type "
                                               "key} {name db token DB type integer " OPTIONAL "})}"
                                               "}";

static struct docs docs;

static int build(void **state)
{
    (void)state;
    struct text resp;
    text_init(&resp);
    to_resp(&resp, docs_source);
    struct reader *r = reader_create();
    reader_feed(r, resp.data, resp.len);
    struct reply *reply;
    if (reader_next(r, &reply) != READER_REPLY) {
        return -1;
    }
    docs_build(&docs, reply);
    reply_destroy(&reply);
    reader_destroy(&r);
    text_deinit(&resp);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    docs_deinit(&docs);
    return 0;
}

static void check_syntax(const char *name, const char *expected)
{
    struct words words;
    struct text out;
    assert_true(words_split(name, strlen(name), &words));
    const struct doc_command *c = docs_find(&docs, &words);
    assert_non_null(c);
    text_init(&out);
    docs_append_args(&out, c->args, c->arg_count);
    assert_string_equal(out.data, expected);
    text_deinit(&out);
    words_deinit(&words);
}

static void syntax(void **state)
{
    (void)state;
    assert_int_equal(docs.command_count, 9);
    assert_string_equal(docs.commands[0].name, "BLPOP");
    assert_int_equal(docs.group_count, 3);
    assert_string_equal(docs.groups[0], "connection");
    check_syntax("set", "key value [NX|XX] [GET] [EX seconds|PX ms|KEEPTTL]");
    check_syntax("blpop", "key [key ...] timeout");
    check_syntax("mset", "key value [key value ...]");
    check_syntax("sort",
                 "key [BY by] [LIMIT offset count] [GET pattern [GET pattern ...]] [ALPHA]");
    check_syntax("client kill x", "ip:port");
    check_syntax("client foo", "");
    check_syntax("copy", "source [DB db]");
}

static void check_hint(const char *line, const char *expected)
{
    struct text out;
    text_init(&out);
    hint_append(&out, &docs, line, strlen(line));
    assert_string_equal(out.data, expected);
    text_deinit(&out);
}

static void hints(void **state)
{
    (void)state;
    check_hint("", "");
    check_hint("se", "");
    check_hint("set", " key value [NX|XX] [GET] [EX seconds|PX ms|KEEPTTL]");
    check_hint("SET ", "key value [NX|XX] [GET] [EX seconds|PX ms|KEEPTTL]");
    check_hint("5 set k", " value [NX|XX] [GET] [EX seconds|PX ms|KEEPTTL]");
    check_hint("set \"k x", " value [NX|XX] [GET] [EX seconds|PX ms|KEEPTTL]");
    check_hint("set k v get", " [NX|XX] [EX seconds|PX ms|KEEPTTL]");
    check_hint("set k v ex", " seconds [NX|XX] [GET]");
    check_hint("set k v ex 10 ", "[NX|XX] [GET]");
    check_hint("set k v keepttl nx get", "");
    check_hint("set k v bogus", " [NX|XX] [GET] [EX seconds|PX ms|KEEPTTL]");
    check_hint("blpop a", " [key ...] timeout");
    check_hint("blpop a b", " [key ...] timeout");
    check_hint("ping", " [message]");
    check_hint("ping x", "");
    check_hint("ping x y z", "");
    check_hint("mset k", " value");
    check_hint("mset k v", " [key value ...]");
    check_hint("mset k v k2", " value");
    check_hint("sort k limit", " offset count [BY by] [GET pattern [GET pattern ...]] [ALPHA]");
    check_hint("sort k limit 1", " count [BY by] [GET pattern [GET pattern ...]] [ALPHA]");
    check_hint("sort k get x", " [GET pattern ...] [BY by] [LIMIT offset count] [ALPHA]");
    check_hint("sort k get x get y alpha", " [BY by] [LIMIT offset count]");
    check_hint("client kill", " ip:port");
    check_hint("client", "");
    check_hint("nosuch a", "");
}

/* Arguments nested as deep as a reply can be, each "multiple": neither text nor time explode. */
static void hostile_docs(void **state)
{
    (void)state;
    struct text source;
    struct text resp;
    struct text out;
    text_init(&source);
    text_init(&resp);
    text_init(&out);
    text_append_string(&source, "{bomb {arguments (");
    for (int i = 0; i < 28; i++) {
        text_append_string(&source, "{name a type string flags (multiple)} "
                                    "{name b type block flags (multiple) arguments (");
    }
    for (int i = 0; i < 28; i++) {
        text_append_string(&source, ")}");
    }
    text_append_string(&source, ")}}");
    to_resp(&resp, source.data);
    struct reader *r = reader_create();
    reader_feed(r, resp.data, resp.len);
    struct reply *reply;
    assert_int_equal(reader_next(r, &reply), READER_REPLY);
    struct docs bomb;
    docs_build(&bomb, reply);
    assert_int_equal(bomb.command_count, 1);
    docs_append_args(&out, bomb.commands[0].args, bomb.commands[0].arg_count);
    assert_true(out.len > 0 && out.len < 64 * 1024);
    text_clear(&out);
    text_clear(&source);
    text_append_string(&source, "bomb");
    for (int i = 0; i < 1000; i++) {
        text_append_string(&source, " x");
        text_clear(&out);
        hint_append(&out, &bomb, source.data, source.len);
    }
    docs_deinit(&bomb);
    reply_destroy(&reply);
    reader_destroy(&r);
    text_deinit(&out);
    text_deinit(&resp);
    text_deinit(&source);
}

static void check_complete(const char *line, const char *expected)
{
    struct words list = {NULL, 0};
    struct text out;
    text_init(&out);
    hint_complete(&list, &docs, line, strlen(line));
    for (size_t i = 0; i < list.count; i++) {
        text_append_format(&out, "%s%s", i > 0 ? "," : "", list.list[i].data);
    }
    assert_string_equal(out.data, expected);
    text_deinit(&out);
    words_deinit(&list);
}

static void completions(void **state)
{
    (void)state;
    check_complete("", "");
    check_complete("s", "SET,SORT");
    check_complete("client ", "CLIENT ID,CLIENT KILL");
    check_complete("CLIENT k", "CLIENT KILL");
    check_complete("help @", "help @connection,help @list,help @string");
    check_complete("help se", "help SET");
    check_complete("help  client k", "help  CLIENT KILL");
    check_complete("set k v g", "set k v GET");
    check_complete("sort k l", "sort k LIMIT");
    check_complete("set k \"v g", "");
    check_complete("set k v ", "");
    check_complete("zzz", "");
}

/* Lines of every kind, against every prefix: nothing crashes; sanitizers watch. */
static void odd_lines(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "set \"\\x",         "  set   k  'v w' EX  10 px 5 nx", "sort k get get get limit limit",
        "mset \"\" '' \"",   "9999999999999999999 set k",       "help @string extra",
        "client kill a b c",
    };
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        for (size_t len = 0; len <= strlen(lines[i]); len++) {
            struct text out;
            struct words list = {NULL, 0};
            text_init(&out);
            hint_append(&out, &docs, lines[i], len);
            hint_complete(&list, &docs, lines[i], len);
            text_deinit(&out);
            words_deinit(&list);
        }
    }
}

static void history_in_memory(void **state)
{
    (void)state;
    struct history *h = history_create(NULL);
    history_add(h, "a", 1);
    history_add(h, "a", 1);
    history_add(h, "", 0);
    history_add(h, "x\ny", 3);
    history_add(h, "bc", 2);
    history_add(h, "a", 1);
    assert_int_equal(history_count(h), 3);
    assert_string_equal(history_line(h, 1), "bc");
    assert_int_equal(history_search(h, "b", 3), 1);
    assert_int_equal(history_search(h, "a", 3), 2);
    assert_int_equal(history_search(h, "a", 2), 0);
    assert_int_equal(history_search(h, "a", 0), 3);
    assert_int_equal(history_search(h, "zz", 3), 3);
    for (int i = 0; i < HISTORY_LINES_MAX + 10; i++) {
        char line[32];
        snprintf(line, sizeof(line), "line %d", i);
        history_add(h, line, strlen(line));
    }
    assert_int_equal(history_count(h), HISTORY_LINES_MAX);
    assert_string_equal(history_line(h, 0), "line 10");
    history_destroy(&h);
    assert_null(h);
}

static void history_in_a_file(void **state)
{
    (void)state;
    char *path = temporary_template("cli_hint");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(unlink(path), 0);
    struct history *h = history_create(path);
    history_add(h, "first", 5);
    history_add(h, "second", 6);
    history_destroy(&h);
    struct stat about;
    assert_int_equal(stat(path, &about), 0);
    assert_int_equal(about.st_mode & 07777, 0600);
    /* The file grows past the limit and is cut at the next start. */
    h = history_create(path);
    assert_int_equal(history_count(h), 2);
    for (int i = 0; i < 2 * HISTORY_LINES_MAX; i++) {
        char line[32];
        snprintf(line, sizeof(line), "line %d", i);
        history_add(h, line, strlen(line));
    }
    history_destroy(&h);
    h = history_create(path);
    assert_int_equal(history_count(h), HISTORY_LINES_MAX);
    history_destroy(&h);
    assert_int_equal(stat(path, &about), 0);
    assert_true(about.st_size < 12 * HISTORY_LINES_MAX);
    assert_int_equal(unlink(path), 0);
    free(path);
    /* A path that cannot be written is done without. */
    h = history_create("/nonexistent/history");
    history_add(h, "x", 1);
    assert_int_equal(history_count(h), 1);
    history_destroy(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(syntax),
        cmocka_unit_test(hints),
        cmocka_unit_test(hostile_docs),
        cmocka_unit_test(completions),
        cmocka_unit_test(odd_lines),
        cmocka_unit_test(history_in_memory),
        cmocka_unit_test(history_in_a_file),
    };
    return cmocka_run_group_tests(tests, build, teardown);
}
