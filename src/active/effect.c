/* See effect.h. A command that may come in more than one shape has rows whose `shape` says
 * whether this call is of it; if it is of none, it is of class order. */
#include "active/effect.h"

#include "base/num.h"

#include <stddef.h>

#define REST (-1)
#define ONE_KEY EFFECT_OF_ONE_KEY

typedef bool (*shape_fn)(int argc, const struct slice *argv);

struct row {
    const char *name;
    uint8_t name_len;
    struct effect effect; /* on its first key; count REST: to the end */
    shape_fn shape;       /* NULL: always */
};

static bool is_number(struct slice text)
{
    double value;
    return num_parse_double(text, &value);
}

/* SET key value [PXAT ms]: conditions were tested by who told it; KEEPTTL looks at what was there.
 */
static bool plain_set(int argc, const struct slice *argv)
{
    return argc == 3 || (argc == 5 && slice_equal_nocase(argv[3], "pxat"));
}

static bool plain_zadd(int argc, const struct slice *argv)
{
    return argc >= 4 && argc % 2 == 0 && is_number(argv[2]);
}

/* ZINCRBY key increment member. */
static bool by_integer(int argc, const struct slice *argv)
{
    double by;
    return argc == 4 && num_parse_double(argv[2], &by) && effect_is_exact(by);
}

static bool with_one_more(int argc, const struct slice *argv)
{
    (void)argv;
    return argc == 3;
}

/* HPEXPIREAT key ms FIELDS 1 field, HPERSIST key FIELDS 1 field: a node tells no other. */
static bool date_of_one(int argc, const struct slice *argv)
{
    (void)argv;
    return argc == 6;
}

static bool undate_of_one(int argc, const struct slice *argv)
{
    (void)argv;
    return argc == 5;
}

static bool without_options(int argc, const struct slice *argv)
{
    (void)argv;
    return argc == 3;
}

static bool of_key(int argc, const struct slice *argv)
{
    (void)argv;
    return argc == 2;
}

static bool with_members(int argc, const struct slice *argv)
{
    (void)argv;
    return argc >= 3;
}

static bool of_member(int argc, const struct slice *argv)
{
    (void)argv;
    return argc == 4;
}

/* LREM key 1|-1 element, as pops are told: the one nearest to the head, or to the tail. */
static bool from_head(int argc, const struct slice *argv)
{
    return argc == 4 && slice_equal(argv[2], SLICE("1"));
}

static bool from_tail(int argc, const struct slice *argv)
{
    return argc == 4 && slice_equal(argv[2], SLICE("-1"));
}

/* LREM key 0 element: all that are the same. */
static bool all_alike(int argc, const struct slice *argv)
{
    return argc == 4 && slice_equal(argv[2], SLICE("0"));
}

#define GIVES_ALL (EFFECT_GIVES | EFFECT_UNDATES)
#define N(name) name, sizeof(name) - 1

/* clang-format off */
#define SETS {EFFECT_WHOLE, EFFECT_STRING, 0, ONE_KEY, 1, 0, 0, 0, 0}
const struct effect effect_of_set = SETS;

/*   name, {class, type, flags, values, key, scope, first, step, count}, shape */
static const struct row rows[] = {
    /* whole */
    {N("set"), SETS, plain_set},
    {N("restore"), {EFFECT_WHOLE, EFFECT_ANY, 0, ONE_KEY, 1, 0, 0, 0, 0}, NULL},
    {N("del"), {EFFECT_WHOLE, EFFECT_ANY, 0, 0, 1, 0, 0, 0, 0}, NULL},
    {N("unlink"), {EFFECT_WHOLE, EFFECT_ANY, 0, 0, 1, 0, 0, 0, 0}, NULL},
    {N("expdel"), {EFFECT_WHOLE, EFFECT_ANY, 0, 0, 1, 0, 0, 0, 0}, NULL},
    {N("restore-asking"), {EFFECT_UNTOLD, EFFECT_ANY, 0, ONE_KEY, 0, 0, 0, 0, 0}, NULL},
    {N("getdel"), {EFFECT_WHOLE, EFFECT_ANY, 0, ONE_KEY, 1, 0, 0, 0, 0}, NULL},
    {N("getset"), {EFFECT_WHOLE, EFFECT_STRING, 0, ONE_KEY, 1, 0, 0, 0, 0}, NULL},
    {N("setex"), {EFFECT_UNTOLD, EFFECT_ANY, 0, ONE_KEY, 0, 0, 0, 0, 0}, NULL},
    {N("psetex"), {EFFECT_UNTOLD, EFFECT_ANY, 0, ONE_KEY, 0, 0, 0, 0, 0}, NULL},
    {N("mset"), {EFFECT_WHOLE, EFFECT_STRING, 0, 1, 1, 0, 0, 0, 0}, NULL},
    {N("flushdb"), {EFFECT_FLUSH, EFFECT_ANY, 0, ONE_KEY, 0, 0, 0, 0, 0}, NULL},
    {N("flushall"), {EFFECT_FLUSH, EFFECT_ANY, 0, ONE_KEY, 0, 0, 0, 0, 0}, NULL},
    {N("keydb.state"), {EFFECT_STATE, EFFECT_ANY, 0, ONE_KEY, 1, 0, 0, 0, 0}, NULL},
    {N("keydb.digests"), {EFFECT_STATE, EFFECT_ANY, 0, 2, 2, 0, 0, 0, 0}, NULL},
    /* assign */
    {N("hset"), {EFFECT_ASSIGN, EFFECT_HASH, GIVES_ALL, ONE_KEY, 1, 0, 2, 2, REST}, NULL},
    {N("hmset"), {EFFECT_ASSIGN, EFFECT_HASH, GIVES_ALL, ONE_KEY, 1, 0, 2, 2, REST}, NULL},
    {N("hdel"), {EFFECT_ASSIGN, EFFECT_HASH, EFFECT_TAKES, ONE_KEY, 1, 0, 2, 1, REST}, NULL},
    {N("hpexpireat"), {EFFECT_ASSIGN, EFFECT_HASH, EFFECT_DATES, ONE_KEY, 1, 0, 5, 1, 1}, date_of_one},
    {N("hpersist"), {EFFECT_ASSIGN, EFFECT_HASH, EFFECT_UNDATES, ONE_KEY, 1, 0, 4, 1, 1}, undate_of_one},
    {N("sadd"), {EFFECT_ASSIGN, EFFECT_SET, EFFECT_GIVES, ONE_KEY, 1, 0, 2, 1, REST}, NULL},
    {N("srem"), {EFFECT_ASSIGN, EFFECT_SET, EFFECT_TAKES, ONE_KEY, 1, 0, 2, 1, REST}, NULL},
    {N("zadd"), {EFFECT_ASSIGN, EFFECT_ZSET, EFFECT_GIVES, ONE_KEY, 1, 0, 3, 2, REST}, plain_zadd},
    {N("zrem"), {EFFECT_ASSIGN, EFFECT_ZSET, EFFECT_TAKES, ONE_KEY, 1, 0, 2, 1, REST}, NULL},
    {N("pfadd"), {EFFECT_ASSIGN, EFFECT_HYPERLOGLOG, EFFECT_GIVES, ONE_KEY, 1, 0, 2, 1, REST}, NULL},
    {N("keydb.xinsert"), {EFFECT_ASSIGN, EFFECT_STREAM, EFFECT_GIVES, ONE_KEY, 1, 0, 2, 1, 1}, NULL},
    {N("xdel"), {EFFECT_ASSIGN, EFFECT_STREAM, EFFECT_TAKES, ONE_KEY, 1, 0, 2, 1, REST}, NULL},
    /* what groups have pending: of each group a register for an id */
    {N("keydb.xpend"), {EFFECT_ASSIGN, EFFECT_STREAM, EFFECT_GIVES, ONE_KEY, 1, 2, 6, 1, REST}, NULL},
    {N("xack"), {EFFECT_ASSIGN, EFFECT_STREAM, EFFECT_TAKES, ONE_KEY, 1, 2, 3, 1, REST}, NULL},
    {N("pexpirememberat"), {EFFECT_ASSIGN, EFFECT_ANY, EFFECT_DATES, ONE_KEY, 1, 0, 2, 1, 1}, NULL},
    {N("pexpireat"), {EFFECT_ASSIGN, EFFECT_ANY, EFFECT_DATES, ONE_KEY, 1, 0, 0, 0, 0}, with_one_more},
    {N("persist"), {EFFECT_ASSIGN, EFFECT_ANY, EFFECT_UNDATES, ONE_KEY, 1, 0, 0, 0, 0}, of_key},
    {N("persist"), {EFFECT_ASSIGN, EFFECT_ANY, EFFECT_UNDATES, ONE_KEY, 1, 0, 2, 1, 1}, with_one_more},
    /* add */
    {N("incr"), {EFFECT_ADD, EFFECT_STRING, EFFECT_GIVES, ONE_KEY, 1, 0, 0, 0, 0}, NULL},
    {N("decr"), {EFFECT_ADD, EFFECT_STRING, EFFECT_GIVES, ONE_KEY, 1, 0, 0, 0, 0}, NULL},
    {N("incrby"), {EFFECT_ADD, EFFECT_STRING, EFFECT_GIVES, ONE_KEY, 1, 0, 0, 0, 0}, without_options},
    {N("decrby"), {EFFECT_ADD, EFFECT_STRING, EFFECT_GIVES, ONE_KEY, 1, 0, 0, 0, 0}, without_options},
    {N("hincrby"), {EFFECT_ADD, EFFECT_HASH, EFFECT_GIVES, ONE_KEY, 1, 0, 2, 1, 1}, NULL},
    {N("zincrby"), {EFFECT_ADD, EFFECT_ZSET, EFFECT_GIVES, ONE_KEY, 1, 0, 3, 1, 1}, by_integer},
    {N("zincrby"), {EFFECT_ADD, EFFECT_ZSET, EFFECT_GIVES | EFFECT_INEXACT, ONE_KEY, 1, 0, 3, 1, 1}, NULL},
    /* stands in for a write that no frame has room for, on the node that made it */
    {N("keydb.large"), {EFFECT_UNTOLD, EFFECT_ANY, 0, ONE_KEY, 1, 0, 0, 0, 0}, NULL},
    /* what its time has taken: a member, by itself; a key */
    {N("keydb.expired"), {EFFECT_ASSIGN, EFFECT_ANY, EFFECT_TAKES | EFFECT_EXPIRES, ONE_KEY, 1, 0, 3, 1, 1}, of_member},
    {N("keydb.expired"), {EFFECT_ORDER, EFFECT_ANY, EFFECT_EXPIRES, ONE_KEY, 1, 0, 0, 0, 0}, with_one_more},
    {N("keydb.expired"), {EFFECT_UNTOLD, EFFECT_ANY, 0, ONE_KEY, 0, 0, 0, 0, 0}, NULL},
    /* no key */
    {N("publish"), {EFFECT_KEYLESS, EFFECT_ANY, 0, ONE_KEY, 0, 0, 0, 0, 0}, NULL},
    {N("spublish"), {EFFECT_KEYLESS, EFFECT_ANY, 0, ONE_KEY, 0, 0, 0, 0, 0}, NULL},
    {N("script"), {EFFECT_KEYLESS, EFFECT_ANY, 0, ONE_KEY, 0, 0, 0, 0, 0}, NULL},
    {N("function"), {EFFECT_LIBRARY, EFFECT_ANY, 0, ONE_KEY, 0, 0, 0, 0, 0}, NULL},
    {N("keydb.view"), {EFFECT_KEYLESS, EFFECT_ANY, 0, ONE_KEY, 0, 0, 0, 0, 0}, NULL},
    {N("keydb.wait"), {EFFECT_KEYLESS, EFFECT_ANY, 0, ONE_KEY, 0, 0, 0, 0, 0}, NULL},
    {N("keydb.unwait"), {EFFECT_KEYLESS, EFFECT_ANY, 0, ONE_KEY, 0, 0, 0, 0, 0}, NULL},
    {N("keydb.give"), {EFFECT_KEYLESS, EFFECT_ANY, 0, ONE_KEY, 0, 0, 0, 0, 0}, NULL},
    /* of order, with elements that they name */
    {N("rpush"), {EFFECT_ORDER, EFFECT_LIST, EFFECT_GIVES, ONE_KEY, 1, 0, 2, 1, REST}, with_members},
    {N("lpush"), {EFFECT_ORDER, EFFECT_LIST, EFFECT_GIVES | EFFECT_LEFT, ONE_KEY, 1, 0, 2, 1, REST}, with_members},
    {N("lrem"), {EFFECT_ORDER, EFFECT_LIST, EFFECT_TAKES | EFFECT_LEFT, ONE_KEY, 1, 0, 3, 1, 1}, from_head},
    {N("lrem"), {EFFECT_ORDER, EFFECT_LIST, EFFECT_TAKES, ONE_KEY, 1, 0, 3, 1, 1}, from_tail},
    {N("lrem"), {EFFECT_ORDER, EFFECT_LIST, EFFECT_TAKES, ONE_KEY, 1, 0, 3, 1, 1}, all_alike},
    /* of order, with their key elsewhere */
    {N("xgroup"), {EFFECT_ORDER, EFFECT_STREAM, 0, ONE_KEY, 2, 0, 0, 0, 0}, NULL},
    /* told as deletions and wholes of their keys, or as what they took and gave */
    {N("xadd"), {EFFECT_UNTOLD, EFFECT_ANY, 0, ONE_KEY, 0, 0, 0, 0, 0}, NULL},
    {N("xtrim"), {EFFECT_UNTOLD, EFFECT_ANY, 0, ONE_KEY, 0, 0, 0, 0, 0}, NULL},
    {N("xclaim"), {EFFECT_UNTOLD, EFFECT_ANY, 0, ONE_KEY, 0, 0, 0, 0, 0}, NULL},
    {N("xautoclaim"), {EFFECT_UNTOLD, EFFECT_ANY, 0, ONE_KEY, 0, 0, 0, 0, 0}, NULL},
    {N("xreadgroup"), {EFFECT_UNTOLD, EFFECT_ANY, 0, ONE_KEY, 0, 0, 0, 0, 0}, NULL},
    {N("rename"), {EFFECT_UNTOLD, EFFECT_ANY, 0, ONE_KEY, 0, 0, 0, 0, 0}, NULL},
    {N("renamenx"), {EFFECT_UNTOLD, EFFECT_ANY, 0, ONE_KEY, 0, 0, 0, 0, 0}, NULL},
    {N("copy"), {EFFECT_UNTOLD, EFFECT_ANY, 0, ONE_KEY, 0, 0, 0, 0, 0}, NULL},
    {N("move"), {EFFECT_UNTOLD, EFFECT_ANY, 0, ONE_KEY, 0, 0, 0, 0, 0}, NULL},
    {N("migrate"), {EFFECT_UNTOLD, EFFECT_ANY, 0, ONE_KEY, 0, 0, 0, 0, 0}, NULL},
    {N("swapdb"), {EFFECT_UNTOLD, EFFECT_ANY, 0, ONE_KEY, 0, 0, 0, 0, 0}, NULL},
    {N("msetnx"), {EFFECT_UNTOLD, EFFECT_ANY, 0, ONE_KEY, 0, 0, 0, 0, 0}, NULL},
    {N("sort"), {EFFECT_UNTOLD, EFFECT_ANY, 0, ONE_KEY, 0, 0, 0, 0, 0}, NULL},
    {N("bitop"), {EFFECT_UNTOLD, EFFECT_ANY, 0, ONE_KEY, 0, 0, 0, 0, 0}, NULL},
    {N("pfmerge"), {EFFECT_UNTOLD, EFFECT_ANY, 0, ONE_KEY, 0, 0, 0, 0, 0}, NULL},
    {N("smove"), {EFFECT_UNTOLD, EFFECT_ANY, 0, ONE_KEY, 0, 0, 0, 0, 0}, NULL},
    {N("sinterstore"), {EFFECT_UNTOLD, EFFECT_ANY, 0, ONE_KEY, 0, 0, 0, 0, 0}, NULL},
    {N("sunionstore"), {EFFECT_UNTOLD, EFFECT_ANY, 0, ONE_KEY, 0, 0, 0, 0, 0}, NULL},
    {N("sdiffstore"), {EFFECT_UNTOLD, EFFECT_ANY, 0, ONE_KEY, 0, 0, 0, 0, 0}, NULL},
    {N("zinterstore"), {EFFECT_UNTOLD, EFFECT_ANY, 0, ONE_KEY, 0, 0, 0, 0, 0}, NULL},
    {N("zunionstore"), {EFFECT_UNTOLD, EFFECT_ANY, 0, ONE_KEY, 0, 0, 0, 0, 0}, NULL},
    {N("zdiffstore"), {EFFECT_UNTOLD, EFFECT_ANY, 0, ONE_KEY, 0, 0, 0, 0, 0}, NULL},
    {N("zrangestore"), {EFFECT_UNTOLD, EFFECT_ANY, 0, ONE_KEY, 0, 0, 0, 0, 0}, NULL},
    {N("georadius"), {EFFECT_UNTOLD, EFFECT_ANY, 0, ONE_KEY, 0, 0, 0, 0, 0}, NULL},
    {N("georadiusbymember"), {EFFECT_UNTOLD, EFFECT_ANY, 0, ONE_KEY, 0, 0, 0, 0, 0}, NULL},
    {N("geosearchstore"), {EFFECT_UNTOLD, EFFECT_ANY, 0, ONE_KEY, 0, 0, 0, 0, 0}, NULL},
    {N("geoadd"), {EFFECT_UNTOLD, EFFECT_ANY, 0, ONE_KEY, 0, 0, 0, 0, 0}, NULL},
    {N("rpoplpush"), {EFFECT_UNTOLD, EFFECT_ANY, 0, ONE_KEY, 0, 0, 0, 0, 0}, NULL},
    {N("brpoplpush"), {EFFECT_UNTOLD, EFFECT_ANY, 0, ONE_KEY, 0, 0, 0, 0, 0}, NULL},
    {N("lmove"), {EFFECT_UNTOLD, EFFECT_ANY, 0, ONE_KEY, 0, 0, 0, 0, 0}, NULL},
    {N("blmove"), {EFFECT_UNTOLD, EFFECT_ANY, 0, ONE_KEY, 0, 0, 0, 0, 0}, NULL},
    {N("lmpop"), {EFFECT_UNTOLD, EFFECT_ANY, 0, ONE_KEY, 0, 0, 0, 0, 0}, NULL},
    {N("blmpop"), {EFFECT_UNTOLD, EFFECT_ANY, 0, ONE_KEY, 0, 0, 0, 0, 0}, NULL},
    {N("lpop"), {EFFECT_UNTOLD, EFFECT_ANY, 0, ONE_KEY, 0, 0, 0, 0, 0}, NULL},
    {N("rpop"), {EFFECT_UNTOLD, EFFECT_ANY, 0, ONE_KEY, 0, 0, 0, 0, 0}, NULL},
    {N("blpop"), {EFFECT_UNTOLD, EFFECT_ANY, 0, ONE_KEY, 0, 0, 0, 0, 0}, NULL},
    {N("brpop"), {EFFECT_UNTOLD, EFFECT_ANY, 0, ONE_KEY, 0, 0, 0, 0, 0}, NULL},
    {N("spop"), {EFFECT_UNTOLD, EFFECT_ANY, 0, ONE_KEY, 0, 0, 0, 0, 0}, NULL},
    {N("zpopmin"), {EFFECT_UNTOLD, EFFECT_ANY, 0, ONE_KEY, 0, 0, 0, 0, 0}, NULL},
    {N("zpopmax"), {EFFECT_UNTOLD, EFFECT_ANY, 0, ONE_KEY, 0, 0, 0, 0, 0}, NULL},
    {N("bzpopmin"), {EFFECT_UNTOLD, EFFECT_ANY, 0, ONE_KEY, 0, 0, 0, 0, 0}, NULL},
    {N("bzpopmax"), {EFFECT_UNTOLD, EFFECT_ANY, 0, ONE_KEY, 0, 0, 0, 0, 0}, NULL},
    {N("zmpop"), {EFFECT_UNTOLD, EFFECT_ANY, 0, ONE_KEY, 0, 0, 0, 0, 0}, NULL},
    {N("bzmpop"), {EFFECT_UNTOLD, EFFECT_ANY, 0, ONE_KEY, 0, 0, 0, 0, 0}, NULL},
    {N("zremrangebyscore"), {EFFECT_UNTOLD, EFFECT_ANY, 0, ONE_KEY, 0, 0, 0, 0, 0}, NULL},
    {N("zremrangebyrank"), {EFFECT_UNTOLD, EFFECT_ANY, 0, ONE_KEY, 0, 0, 0, 0, 0}, NULL},
    {N("zremrangebylex"), {EFFECT_UNTOLD, EFFECT_ANY, 0, ONE_KEY, 0, 0, 0, 0, 0}, NULL},
};
/* clang-format on */

#define ROWS (sizeof(rows) / sizeof(rows[0]))

/* In whatever case; each write asks. */
static inline bool is_named(const struct row *row, struct slice name)
{
    if (row->name_len != name.len) {
        return false;
    }
    for (size_t i = 0; i < name.len; i++) {
        char its = row->name[i];
        if (name.ptr[i] != its && (its < 'a' || name.ptr[i] != its - 'a' + 'A')) {
            return false;
        }
    }
    return true;
}

/* The row for this call, NULL when there is none. */
static __attribute__((noinline)) const struct row *find_row(int argc, const struct slice *argv)
{
    for (size_t i = 0; i < ROWS; i++) {
        if (is_named(&rows[i], argv[0]) && (!rows[i].shape || rows[i].shape(argc, argv))) {
            return &rows[i];
        }
    }
    return NULL;
}

bool effect_is_listed(struct slice name)
{
    for (size_t i = 0; i < ROWS; i++) {
        if (is_named(&rows[i], name)) {
            return true;
        }
    }
    return false;
}

/* Not in the table, or not of the shape that it speaks of. */
static bool classify_order(int argc, int number, struct effect *effect)
{
    *effect = (struct effect){.class = EFFECT_ORDER, .key = 1, .values = ONE_KEY};
    return number == 0 && argc > 1;
}

/* What nearly all are, which the first row is of: SET key value. */
static inline bool is_set(int argc, const struct slice *argv)
{
    const char *name = argv[0].ptr;
    return argc == 3 && argv[0].len == 3 && (name[0] | 0x20) == 's' && (name[1] | 0x20) == 'e' &&
           (name[2] | 0x20) == 't';
}

bool effect_of(int argc, const struct slice *argv, int number, struct effect *effect)
{
    const struct row *row = is_set(argc, argv) ? &rows[0] : find_row(argc, argv);
    if (!row) {
        return classify_order(argc, number, effect);
    }
    const struct effect *its = &row->effect;
    *effect = *its;
    if (its->count != 0) {
        if (its->scope >= argc || (its->count > 0 && its->first >= argc)) {
            return classify_order(argc, number, effect);
        }
        if (its->count == REST) {
            effect->count = argc > its->first ? (argc - its->first + its->step - 1) / its->step : 0;
        }
    }
    if (likely(its->values == ONE_KEY)) {
        return number == 0 && its->key < argc;
    }
    effect->key = its->key + number * (1 + its->values);
    return effect->key + its->values < argc;
}

int effect_command(const struct effect *effect, int argc, const struct slice *argv,
                   struct slice words[EFFECT_WORDS], const struct slice **command)
{
    if (effect->values == ONE_KEY) {
        *command = argv;
        return argc;
    }
    words[0] = effect->values ? SLICE("SET") : argv[0];
    for (int i = 0; i <= effect->values; i++) {
        words[1 + i] = argv[effect->key + i];
    }
    *command = words;
    return 2 + effect->values;
}
