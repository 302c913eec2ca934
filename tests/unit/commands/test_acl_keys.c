/* The keys that a command touches are among those that access control has checked: random requests
 * of all commands of this layer, by a user that may touch a:* only. What is touched is what the
 * keyspace is asked for (db_observer), not what somebody says of the request: each name must be one
 * that the extractor finds in the request, and one that the user may touch; a request that is
 * denied touches nothing. Besides, whatever gets through shows nothing of what b:* hold, and leaves
 * them as they are. KEYDB_TEST_COMMANDS says how many requests: 100,000 in `make test`, a million
 * in `make test-long`. */
#include "commands/caller.h"
#include "long.h"

#include "base/rand.h"
#include "engine/acl.h"
#include "keyspace/db.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUESTS UNIT_LONG(100000)
#define WORDS_MAX 14
/* Requests between two looks at b:*, and between two new beginnings for a:*. */
#define LOOK_EVERY 25
#define RENEW_EVERY 400

static const char *const words[] = {
    "a:1",     "a:2",      "a:3",    "a:4",    "a:5",       "a:6",       "b:1",        "b:2",
    "b:3",     "b:4",      "b:5",    "b:6",    "0",         "1",         "2",          "3",
    "-1",      "STORE",    "store",  "GET",    "BY",        "streams",   "GROUP",      "g",
    "LEFT",    "RIGHT",    "MATCH",  "*",      "b:*",       "LIMIT",     "WITHSCORES", "KEYS",
    "COUNT",   "SET",      "INCRBY", "u8",     "#0",        "$",         ">",          "MIN",
    "MAX",     "BYLEX",    "EX",     "NX",     "XX",        "STOREDIST", "FROMLONLAT", "BYRADIUS",
    "m",       "ASC",      "AND",    "OR",     "NOT",       "LSHIFT",    "RSHIFT",     "AGGREGATE",
    "WEIGHTS", "SUM",      "IDS",    "FIELDS", "REPLACE",   "DB",        "nosort",     "0-1",
    "1-1",     "+",        "-",      "(1",     "[a",        "MAXLEN",    "=",          "~",
    "CREATE",  "MKSTREAM", "BEFORE", "c",      "CONSUMERS", "ENCODING",  "IDX",        "LEN",
    "ALPHA",   "DESC",     "NOACK",  "JUSTID", "PERSIST",   "DEL",       "GETKEYS",    "b:1.x",
};
#define WORD_COUNT (sizeof(words) / sizeof(words[0]))

/* Commands that are about no key in particular; access control lets them be. */
static const char *const keyless[] = {"keys", "scan", "randomkey", "dbsize", "wait", NULL};

static const char *const looks[] = {
    "GET b:1",         "LRANGE b:2 0 -1", "HGETALL b:3", "ZRANGE b:4 0 -1 WITHSCORES",
    "SMEMBERS b:5",    "XRANGE b:6 - +",  "EXISTS b:7",  "PTTL b:1",
    "XINFO GROUPS b:6"};
#define LOOK_COUNT (sizeof(looks) / sizeof(looks[0]))
static char *before[LOOK_COUNT];

static struct {
    struct acl_user *joe;
    uint64_t denied, ran, failed;
    uint64_t touched; /* keys, by requests that were let through */
} test;

/* ---- what a request touches, as the keyspace sees it ---- */

#define PLACES_MAX 32

/* The request that runs: what the extractor says of it, and what was seen. */
static struct {
    const struct slice *argv;
    struct key_place places[PLACES_MAX];
    int place_count;
    uint64_t touched;
    char fault[256]; /* the first key that was touched and should not have been */
} watched;

#if KEYDB_DEBUG
static bool is_checked(struct slice name)
{
    for (int i = 0; i < watched.place_count; i++) {
        const struct key_place *place = &watched.places[i];
        if (!(place->flags & KEY_NOT_KEY) &&
            slice_equal(key_place_name(place, watched.argv), name)) {
            return true;
        }
    }
    return false;
}

static void on_key(const struct db *db, struct slice name)
{
    (void)db;
    watched.touched++;
    bool allowed = name.len >= 2 && memcmp(name.ptr, "a:", 2) == 0;
    if ((!allowed || !is_checked(name)) && !watched.fault[0]) {
        snprintf(watched.fault, sizeof(watched.fault), "touched %.*s", (int)name.len, name.ptr);
    }
}
#endif

static const char *run_watched(int argc, const struct slice *argv)
{
    const struct command *cmd = command_find(argv[0]);
    const struct command *sub =
        cmd && cmd->subcommands && argc > 1 ? command_find_sub(cmd, argv[1]) : cmd;
    memset(&watched, 0, sizeof(watched));
    watched.argv = argv;
    watched.place_count = sub ? command_find_keys(sub, argv, argc, watched.places, PLACES_MAX) : 0;
    assert_true(watched.place_count <= PLACES_MAX);
#if KEYDB_DEBUG
    db_observer = on_key;
#endif
    const char *reply = caller_run_args(argc, argv);
#if KEYDB_DEBUG
    db_observer = NULL;
#endif
    if (watched.fault[0]) {
        for (int i = 0; i < argc; i++) {
            print_error("%.*s ", (int)argv[i].len, argv[i].ptr);
        }
        fail_msg("%s", watched.fault);
    }
    return reply;
}

static void be(const struct acl_user *user)
{
    caller_session()->acl = user;
}

/* In a line, % stands for the prefix and @ for the text. */
static void make_keys(const char *prefix, const char *text)
{
    static const char *const lines[] = {
        "SET %:1 @",    "RPUSH %:2 @ 3 1",  "HSET %:3 f @ g 1",      "ZADD %:4 1 @ 2 x",
        "SADD %:5 @ 2", "XADD %:6 1-1 f @", "XGROUP CREATE %:6 g 0",
    };
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        struct buf line = {0};
        for (const char *p = lines[i]; *p; p++) {
            if (*p == '%' || *p == '@') {
                buf_append_cstr(&line, *p == '%' ? prefix : text);
            } else {
                buf_append_char(&line, *p);
            }
        }
        caller_run(buf_cstr(&line));
        buf_deinit(&line);
    }
}

static void renew(void)
{
    be(acl_default_user());
    caller_run("DEL a:1 a:2 a:3 a:4 a:5 a:6");
    make_keys("a", "open");
}

static void look(char **into)
{
    be(acl_default_user());
    for (size_t i = 0; i < LOOK_COUNT; i++) {
        into[i] = strdup(caller_run(looks[i]));
    }
}

static void assert_unchanged(void)
{
    char *now[LOOK_COUNT];
    look(now);
    for (size_t i = 0; i < LOOK_COUNT; i++) {
        assert_string_equal(now[i], before[i]);
        free(now[i]);
    }
}

static bool is_keyless(const struct command *c)
{
    for (int i = 0; keyless[i]; i++) {
        if (strcmp(c->row->name, keyless[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* A request of a random command: its name, then words, the first more often a key. */
static int make_request(struct slice *argv)
{
    const struct command *c;
    do {
        c = command_by_id((unsigned)rand_below(command_id_count()));
    } while (is_keyless(c) || c->subcommands);
    int argc = 0;
    if (c->parent) {
        argv[argc++] = slice_cstr(c->parent->row->name);
    }
    argv[argc++] = slice_cstr(c->row->name);
    int arity = c->arity < 0 ? -c->arity + (int)rand_below(6) : c->arity;
    bool key_next = rand_below(4) > 0;
    while (argc < arity && argc < WORDS_MAX) {
        size_t range = key_next || rand_below(3) == 0 ? 12 : WORD_COUNT;
        argv[argc++] = slice_cstr(words[rand_below(range)]);
        key_next = false;
    }
    return argc;
}

/* Requests in which options name keys: a start and some of its options, in any order. K is a key, P
 * a pattern that names keys. */
static const struct {
    const char *start;
    const char *options[7];
} shapes[] = {
    {"SORT K", {"BY P", "GET P", "STORE K", "LIMIT 0 3", "ALPHA", "DESC"}},
    {"SORT_RO K", {"BY P", "GET P", "LIMIT 0 3", "ALPHA"}},
    {"GEORADIUS K 0 0 9000 km", {"STORE K", "STOREDIST K", "ASC", "COUNT 2", "WITHDIST"}},
    {"GEORADIUSBYMEMBER K x 9000 km", {"STORE K", "STOREDIST K", "ASC"}},
    {"GEOSEARCHSTORE K K FROMLONLAT 0 0 BYRADIUS 9000 km", {"STOREDIST", "ASC"}},
    {"XREADGROUP GROUP g STREAMS", {"COUNT 1", "NOACK", "STREAMS K >", "STREAMS K K > >"}},
    {"XREAD", {"COUNT 1", "STREAMS K 0", "STREAMS K K 0 0"}},
    {"ZUNIONSTORE K 2 K K", {"WEIGHTS 1 2", "AGGREGATE MAX"}},
    {"BITOP AND K K", {"K"}},
    {"BITOP LSHIFT K K 3", {"K"}},
    {"SET K v", {"GET", "EX 100", "KEEPTTL", "XX"}},
    {"COPY K K", {"REPLACE", "DB 0"}},
    {"BITFIELD K", {"GET u8 0", "SET u8 0 1", "INCRBY u8 0 1"}},
    {"LMPOP 2 K K LEFT", {"COUNT 2"}},
    {"KEYDB.NHSET K.x v", {"v"}},
    {"KEYDB.NHGET K.x", {NULL}},
    {"MSETNX K v", {"K v", "K w"}},
    {"PFMERGE K", {"K", "K"}},
};
#define SHAPE_COUNT (sizeof(shapes) / sizeof(shapes[0]))

static void append_shape(struct buf *line, const char *text)
{
    static const char *const patterns[] = {"b:*", "a:*", "nosort", "#", "b:*->f"};
    buf_append_cstr(line, line->len > 0 ? " " : "");
    for (const char *p = text; *p; p++) {
        bool alone = (p == text || p[-1] == ' ') && (!p[1] || p[1] == ' ' || p[1] == '.');
        if (alone && *p == 'K') {
            /* More often than not one that is allowed, or nothing would get through. */
            buf_append_cstr(line, words[rand_below(rand_below(4) > 0 ? 6 : 12)]);
        } else if (alone && *p == 'P') {
            buf_append_cstr(line, patterns[rand_below(sizeof(patterns) / sizeof(patterns[0]))]);
        } else {
            buf_append_char(line, *p);
        }
    }
}

static void make_shaped(struct buf *line)
{
    size_t shape = rand_below(SHAPE_COUNT);
    append_shape(line, shapes[shape].start);
    for (uint64_t more = rand_below(4); more > 0; more--) {
        const char *option = shapes[shape].options[rand_below(7)];
        if (option) {
            append_shape(line, option);
        }
    }
}

#define SHAPED_WORDS_MAX 64

static int split(struct slice line, struct slice *argv)
{
    int argc = 0;
    for (size_t i = 0, begin = 0; i <= line.len; i++) {
        if (i == line.len || line.ptr[i] == ' ') {
            assert_true(argc < SHAPED_WORDS_MAX);
            argv[argc++] = slice_of(line.ptr + begin, i - begin);
            begin = i + 1;
        }
    }
    return argc;
}

static void assert_keys_are_allowed(const struct call *c)
{
    for (int k = 0; k < c->key_count; k++) {
        struct slice name = c->keys[k].name;
        assert_true(name.len >= 2 && memcmp(name.ptr, "a:", 2) == 0);
    }
}

static void look_at_reply(const char *reply)
{
    assert_null(strstr(reply, "SECRET"));
    if (strncmp(reply, "-NOPERM", 7) == 0) {
        test.denied++;
        assert_true(watched.touched == 0);
    } else {
        assert_keys_are_allowed(caller_last());
        test.touched += watched.touched;
        *(reply[0] == '-' ? &test.failed : &test.ran) += 1;
    }
}

static void run_one(void)
{
    struct slice argv[SHAPED_WORDS_MAX];
    struct buf line = {0};
    int argc;
    be(test.joe);
    if (rand_below(3) == 0) {
        make_shaped(&line);
        argc = split(buf_slice(&line), argv);
    } else {
        argc = make_request(argv);
    }
    look_at_reply(run_watched(argc, argv));
    buf_deinit(&line);
}

/* That the watcher sees: a command that touches what the request does not name. */
static void test_the_watcher_sees(void **state) NO_THREAD_SAFETY_ANALYSIS;
static void test_the_watcher_sees(void **state)
{
    (void)state;
#if KEYDB_DEBUG
    const struct slice get[] = {SLICE("GET"), SLICE("a:1")}, other[] = {SLICE("GET"), SLICE("a:2")};
    be(acl_default_user());
    run_watched(2, get);
    assert_true(watched.touched == 1);
    assert_true(is_checked(SLICE("a:1")) && !is_checked(SLICE("a:2")));
    /* As if the extractor had found another key than the handler. */
    run_watched(2, other);
    db_observer = on_key;
    caller_run("GET a:1");
    db_observer = NULL;
    assert_string_equal(watched.fault, "touched a:1");
#else
    skip(); /* only debug builds have the hook */
#endif
}

static void test_only_checked_keys_are_touched(void **state) NO_THREAD_SAFETY_ANALYSIS;
static void test_only_checked_keys_are_touched(void **state)
{
    (void)state;
    static const struct slice rules[] = {{"on", 2}, {"~a:*", 4}, {"+@all", 5}};
    struct buf error = {0};
    const char *text = getenv("KEYDB_TEST_COMMANDS");
    uint64_t requests = text ? strtoull(text, NULL, 10) : REQUESTS;
    assert_true(acl_set_user(SLICE("joe"), rules, 3, NULL, &error));
    test.joe = (struct acl_user *)acl_user_find(SLICE("joe"));
    make_keys("b", "SECRET");
    look(before);
    for (uint64_t i = 0; i < requests; i++) {
        if (i % RENEW_EVERY == 0) {
            renew();
        }
        run_one();
        if (i % LOOK_EVERY == 0) {
            assert_unchanged();
        }
    }
    assert_unchanged();
    print_message("%lu denied, %lu failed, %lu ran; %lu keys touched\n", (unsigned long)test.denied,
                  (unsigned long)test.failed, (unsigned long)test.ran, (unsigned long)test.touched);
    /* It was no empty exercise: each kind is far more frequent than this. */
    assert_true(test.denied > requests / 10 && test.ran > requests / 50);
    assert_true(!KEYDB_DEBUG || test.touched > requests / 10);
    for (size_t i = 0; i < LOOK_COUNT; i++) {
        free(before[i]);
    }
    be(acl_default_user());
    acl_teardown();
    acl_start_session(caller_session());
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_the_watcher_sees),
                                       cmocka_unit_test(test_only_checked_keys_are_touched)};
    return cmocka_run_group_tests(tests, caller_setup, caller_teardown);
}
