/* The named tests of catalogue.h. */
#include "tools/benchmark/catalogue.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define R BENCH_SLOT_TEXT
#define D BENCH_DATA_TEXT
/* A score must be a number even when no -r makes __rand_int__ one. */
#define SCORE "__score__"

#define ARGS_MAX 32

static const struct bench_test tests[] = {
    {.name = "ping_inline", .group = "ping", .title = "PING_INLINE", .inline_text = "PING\r\n"},
    {.name = "ping_mbulk", .group = "ping", .title = "PING_MBULK", .argv = {"PING"}},
    {.name = "set", .title = "SET", .argv = {"SET", "key:" R, D}},
    {.name = "get", .title = "GET", .argv = {"GET", "key:" R}},
    {.name = "incr", .title = "INCR", .argv = {"INCR", "counter:" R}},
    {.name = "lpush", .title = "LPUSH", .argv = {"LPUSH", "mylist", D}},
    {.name = "rpush", .title = "RPUSH", .argv = {"RPUSH", "mylist", D}},
    {.name = "lpop", .title = "LPOP", .argv = {"LPOP", "mylist"}},
    {.name = "rpop", .title = "RPOP", .argv = {"RPOP", "mylist"}},
    {.name = "sadd", .title = "SADD", .argv = {"SADD", "myset", "element:" R}},
    {.name = "hset", .title = "HSET", .argv = {"HSET", "myhash", "element:" R, D}},
    {.name = "spop", .title = "SPOP", .argv = {"SPOP", "myset"}},
    {.name = "zadd", .title = "ZADD", .argv = {"ZADD", "myzset", SCORE, "element:" R}},
    {.name = "zpopmin", .title = "ZPOPMIN", .argv = {"ZPOPMIN", "myzset"}},
    {.name = "lrange_100,lrange_300,lrange_500,lrange_600",
     .group = "lrange",
     .title = "LPUSH (needed to benchmark LRANGE)",
     .argv = {"LPUSH", "mylist", D}},
    {.name = "lrange_100",
     .group = "lrange",
     .title = "LRANGE_100 (first 100 elements)",
     .argv = {"LRANGE", "mylist", "0", "99"}},
    {.name = "lrange_300",
     .group = "lrange",
     .title = "LRANGE_300 (first 300 elements)",
     .argv = {"LRANGE", "mylist", "0", "299"}},
    {.name = "lrange_500",
     .group = "lrange",
     .title = "LRANGE_500 (first 500 elements)",
     .argv = {"LRANGE", "mylist", "0", "499"}},
    {.name = "lrange_600",
     .group = "lrange",
     .title = "LRANGE_600 (first 600 elements)",
     .argv = {"LRANGE", "mylist", "0", "599"}},
    {.name = "mset",
     .title = "MSET (10 keys)",
     .argv = {"MSET"},
     .repeated = {"key:" R, D},
     .repeat = 10},
    {.name = "mget",
     .title = "MGET (10 keys)",
     .argv = {"MGET"},
     .repeated = {"key:" R},
     .repeat = 10},
    {.name = "hmset",
     .title = "HMSET (10 fields)",
     .argv = {"HMSET", "myhash"},
     .repeated = {"element:" R, D},
     .repeat = 10},
    {.name = "hmget",
     .title = "HMGET (10 fields)",
     .argv = {"HMGET", "myhash"},
     .repeated = {"element:" R},
     .repeat = 10},
    {.name = "xadd", .title = "XADD", .argv = {"XADD", "mystream", "*", "myfield", D}},
};

#define TEST_COUNT (sizeof(tests) / sizeof(tests[0]))

const struct bench_test *bench_catalogue_next(const struct bench_test *test)
{
    const struct bench_test *next = test == NULL ? tests : test + 1;
    assert(next >= tests && next <= tests + TEST_COUNT);
    return next < tests + TEST_COUNT ? next : NULL;
}

/* Whether the comma separated `list` holds the `len` bytes at `name`. */
static bool list_holds(const char *list, const char *name, size_t len)
{
    while (*list != '\0') {
        size_t item_len = strcspn(list, ",");
        if (item_len == len && strncasecmp(list, name, len) == 0) {
            return true;
        }
        list += item_len;
        list += *list == ',';
    }
    return false;
}

static bool row_answers(const struct bench_test *test, const char *name, size_t len)
{
    return list_holds(test->name, name, len) ||
           (test->group != NULL && list_holds(test->group, name, len));
}

const struct bench_test *bench_catalogue_find(const char *name)
{
    for (size_t i = 0; i < TEST_COUNT; i++) {
        if (strcasecmp(tests[i].name, name) == 0) {
            return &tests[i];
        }
    }
    return NULL;
}

bool bench_catalogue_selects(const char *selection, const struct bench_test *test)
{
    if (selection == NULL) {
        return true;
    }
    while (*selection != '\0') {
        size_t len = strcspn(selection, ",");
        if (row_answers(test, selection, len)) {
            return true;
        }
        selection += len;
        selection += *selection == ',';
    }
    return false;
}

const char *bench_catalogue_unknown(const char *selection, size_t *len)
{
    while (*selection != '\0') {
        *len = strcspn(selection, ",");
        bool known = false;
        for (size_t i = 0; i < TEST_COUNT && !known; i++) {
            known = row_answers(&tests[i], selection, *len);
        }
        if (!known) {
            return selection;
        }
        selection += *len;
        selection += *selection == ',';
    }
    return NULL;
}

int bench_catalogue_build_custom(int argc, const char *const *argv, const size_t *lens,
                                 const struct bench_fill *fill, struct bench_request *request)
{
    assert(argc > 0 && fill != NULL && request != NULL);
    *request = BENCH_REQUEST_EMPTY;
    int rc = -1;
    char **filled = calloc((size_t)argc, sizeof(filled[0]));
    size_t *filled_lens = calloc((size_t)argc, sizeof(filled_lens[0]));
    if (filled == NULL || filled_lens == NULL) {
        goto done;
    }
    for (int i = 0; i < argc; i++) {
        filled[i] =
            bench_request_expand(argv[i], lens[i], fill->data, fill->data_len, &filled_lens[i]);
        if (filled[i] == NULL) {
            goto done;
        }
    }
    rc = bench_request_build(request, argc, (const char *const *)filled, filled_lens,
                             fill->pipeline, fill->random);
done:
    for (int i = 0; filled != NULL && i < argc; i++) {
        free(filled[i]);
    }
    free(filled);
    free(filled_lens);
    return rc;
}

int bench_catalogue_build(const struct bench_test *test, const struct bench_fill *fill,
                          struct bench_request *request)
{
    assert(test != NULL && fill != NULL && request != NULL);
    if (test->inline_text != NULL) {
        return bench_request_build_raw(request, test->inline_text, strlen(test->inline_text),
                                       fill->pipeline, fill->random);
    }
    const char *argv[ARGS_MAX];
    size_t lens[ARGS_MAX];
    int argc = 0;
    for (size_t i = 0; i < 5 && test->argv[i] != NULL; i++) {
        bool is_score = strcmp(test->argv[i], SCORE) == 0;
        argv[argc++] = is_score ? (fill->random ? R : "0") : test->argv[i];
    }
    for (int turn = 0; turn < test->repeat; turn++) {
        for (size_t i = 0; i < 3 && test->repeated[i] != NULL; i++) {
            assert(argc < ARGS_MAX);
            argv[argc++] = test->repeated[i];
        }
    }
    for (int i = 0; i < argc; i++) {
        lens[i] = strlen(argv[i]);
    }
    return bench_catalogue_build_custom(argc, argv, lens, fill, request);
}
