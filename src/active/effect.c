/* See effect.h. A command that may come in more than one shape has rows whose `shape` says
 * whether this call is of it; if it is of none, it is of class order. */
#include "active/effect.h"

#include "base/num.h"

#include <stddef.h>

#define REST (-1)
/* Of the effects of a command with several keys. */
#define ONE_KEY (-1)

typedef bool (*shape_fn)(int argc, const struct slice *argv);

struct row {
    const char *name;
    enum effect_class class;
    enum effect_type type;
    unsigned flags;
    int key, values;
    int first, step, count; /* REST: to the end */
    shape_fn shape;         /* NULL: always */
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

static bool with_one_more(int argc, const struct slice *argv)
{
    (void)argv;
    return argc == 3;
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

/* Of the members of a group, which is the word behind the key. */
#define OF_GROUP (1U << 8)
#define GIVES_ALL (EFFECT_GIVES | EFFECT_UNDATES)

/* clang-format off */
static const struct row rows[] = {
    /* whole */
    {"set",       EFFECT_WHOLE, EFFECT_STRING, 0, 1, ONE_KEY, 0, 0, 0, plain_set},
    {"restore",   EFFECT_WHOLE, EFFECT_ANY,    0, 1, ONE_KEY, 0, 0, 0, NULL},
    {"del",       EFFECT_WHOLE, EFFECT_ANY,    0, 1, 0, 0, 0, 0, NULL},
    {"unlink",    EFFECT_WHOLE, EFFECT_ANY,    0, 1, 0, 0, 0, 0, NULL},
    {"expdel",    EFFECT_WHOLE, EFFECT_ANY,    0, 1, 0, 0, 0, 0, NULL},
    {"restore-asking", EFFECT_UNTOLD, EFFECT_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"getdel",    EFFECT_WHOLE, EFFECT_ANY,    0, 1, ONE_KEY, 0, 0, 0, NULL},
    {"getset",    EFFECT_WHOLE, EFFECT_STRING, 0, 1, ONE_KEY, 0, 0, 0, NULL},
    {"setex",     EFFECT_UNTOLD, EFFECT_ANY,   0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"psetex",    EFFECT_UNTOLD, EFFECT_ANY,   0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"mset",      EFFECT_WHOLE, EFFECT_STRING, 0, 1, 1, 0, 0, 0, NULL},
    {"flushdb",   EFFECT_FLUSH, EFFECT_ANY,    0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"flushall",  EFFECT_FLUSH, EFFECT_ANY,    0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"keydb.state", EFFECT_STATE, EFFECT_ANY,  0, 1, ONE_KEY, 0, 0, 0, NULL},
    {"keydb.digests", EFFECT_STATE, EFFECT_ANY, 0, 2, 2, 0, 0, 0, NULL},
    /* assign */
    {"hset",      EFFECT_ASSIGN, EFFECT_HASH, GIVES_ALL,    1, ONE_KEY, 2, 2, REST, NULL},
    {"hmset",     EFFECT_ASSIGN, EFFECT_HASH, GIVES_ALL,    1, ONE_KEY, 2, 2, REST, NULL},
    {"hdel",      EFFECT_ASSIGN, EFFECT_HASH, EFFECT_TAKES, 1, ONE_KEY, 2, 1, REST, NULL},
    {"hpexpireat", EFFECT_ASSIGN, EFFECT_HASH, EFFECT_DATES, 1, ONE_KEY, 5, 1, REST, NULL},
    {"hpersist",  EFFECT_ASSIGN, EFFECT_HASH, EFFECT_UNDATES, 1, ONE_KEY, 4, 1, REST, NULL},
    {"sadd",      EFFECT_ASSIGN, EFFECT_SET,  EFFECT_GIVES, 1, ONE_KEY, 2, 1, REST, NULL},
    {"srem",      EFFECT_ASSIGN, EFFECT_SET,  EFFECT_TAKES, 1, ONE_KEY, 2, 1, REST, NULL},
    {"zadd",      EFFECT_ASSIGN, EFFECT_ZSET, EFFECT_GIVES, 1, ONE_KEY, 3, 2, REST, plain_zadd},
    {"zrem",      EFFECT_ASSIGN, EFFECT_ZSET, EFFECT_TAKES, 1, ONE_KEY, 2, 1, REST, NULL},
    {"pfadd",     EFFECT_ASSIGN, EFFECT_HYPERLOGLOG, EFFECT_GIVES, 1, ONE_KEY, 2, 1, REST, NULL},
    {"keydb.xinsert", EFFECT_ASSIGN, EFFECT_STREAM, EFFECT_GIVES, 1, ONE_KEY, 2, 1, 1, NULL},
    {"xdel",      EFFECT_ASSIGN, EFFECT_STREAM, EFFECT_TAKES, 1, ONE_KEY, 2, 1, REST, NULL},
    /* what groups have pending: of each group a register for an id */
    {"keydb.xpend", EFFECT_ASSIGN, EFFECT_STREAM, EFFECT_GIVES | OF_GROUP, 1, ONE_KEY, 6, 1, REST, NULL},
    {"xack",      EFFECT_ASSIGN, EFFECT_STREAM, EFFECT_TAKES | OF_GROUP, 1, ONE_KEY, 3, 1, REST, NULL},
    {"pexpirememberat", EFFECT_ASSIGN, EFFECT_ANY, EFFECT_DATES, 1, ONE_KEY, 2, 1, 1, NULL},
    {"pexpireat", EFFECT_ASSIGN, EFFECT_ANY, EFFECT_DATES,   1, ONE_KEY, 0, 0, 0, with_one_more},
    {"persist",   EFFECT_ASSIGN, EFFECT_ANY, EFFECT_UNDATES, 1, ONE_KEY, 0, 0, 0, of_key},
    {"persist",   EFFECT_ASSIGN, EFFECT_ANY, EFFECT_UNDATES, 1, ONE_KEY, 2, 1, 1, with_one_more},
    /* add */
    {"incr",      EFFECT_ADD, EFFECT_STRING, EFFECT_GIVES, 1, ONE_KEY, 0, 0, 0, NULL},
    {"decr",      EFFECT_ADD, EFFECT_STRING, EFFECT_GIVES, 1, ONE_KEY, 0, 0, 0, NULL},
    {"incrby",    EFFECT_ADD, EFFECT_STRING, EFFECT_GIVES, 1, ONE_KEY, 0, 0, 0, without_options},
    {"decrby",    EFFECT_ADD, EFFECT_STRING, EFFECT_GIVES, 1, ONE_KEY, 0, 0, 0, without_options},
    {"hincrby",   EFFECT_ADD, EFFECT_HASH,   EFFECT_GIVES, 1, ONE_KEY, 2, 1, 1, NULL},
    {"zincrby",   EFFECT_ADD, EFFECT_ZSET,   EFFECT_GIVES, 1, ONE_KEY, 3, 1, 1, NULL},
    /* stands in for a write that no frame has room for, on the node that made it */
    {"keydb.large", EFFECT_UNTOLD, EFFECT_ANY, 0, 1, ONE_KEY, 0, 0, 0, NULL},
    /* what its time has taken: a member, by itself; a key */
    {"keydb.expired", EFFECT_ASSIGN, EFFECT_ANY, EFFECT_TAKES | EFFECT_EXPIRES, 1, ONE_KEY, 3, 1, 1, of_member},
    {"keydb.expired", EFFECT_ORDER, EFFECT_ANY, EFFECT_EXPIRES, 1, ONE_KEY, 0, 0, 0, with_one_more},
    {"keydb.expired", EFFECT_UNTOLD, EFFECT_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    /* no key */
    {"publish",   EFFECT_KEYLESS, EFFECT_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"spublish",  EFFECT_KEYLESS, EFFECT_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"script",    EFFECT_KEYLESS, EFFECT_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"function",  EFFECT_LIBRARY, EFFECT_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"keydb.view", EFFECT_KEYLESS, EFFECT_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"keydb.wait", EFFECT_KEYLESS, EFFECT_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"keydb.unwait", EFFECT_KEYLESS, EFFECT_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"keydb.give", EFFECT_KEYLESS, EFFECT_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    /* of order, with elements that they name */
    {"rpush",     EFFECT_ORDER, EFFECT_LIST, EFFECT_GIVES, 1, ONE_KEY, 2, 1, REST, with_members},
    {"lpush",     EFFECT_ORDER, EFFECT_LIST, EFFECT_GIVES | EFFECT_LEFT, 1, ONE_KEY, 2, 1, REST, with_members},
    {"lrem",      EFFECT_ORDER, EFFECT_LIST, EFFECT_TAKES | EFFECT_LEFT, 1, ONE_KEY, 3, 1, 1, from_head},
    {"lrem",      EFFECT_ORDER, EFFECT_LIST, EFFECT_TAKES, 1, ONE_KEY, 3, 1, 1, from_tail},
    {"lrem",      EFFECT_ORDER, EFFECT_LIST, EFFECT_TAKES, 1, ONE_KEY, 3, 1, 1, all_alike},
    /* of order, with their key elsewhere */
    {"xgroup",    EFFECT_ORDER, EFFECT_STREAM, 0, 2, ONE_KEY, 0, 0, 0, NULL},
    /* told as deletions and wholes of their keys, or as what they took and gave */
    {"xadd",      EFFECT_UNTOLD, EFFECT_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"xtrim",     EFFECT_UNTOLD, EFFECT_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"xclaim",    EFFECT_UNTOLD, EFFECT_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"xautoclaim", EFFECT_UNTOLD, EFFECT_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"xreadgroup", EFFECT_UNTOLD, EFFECT_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"rename",    EFFECT_UNTOLD, EFFECT_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"renamenx",  EFFECT_UNTOLD, EFFECT_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"copy",      EFFECT_UNTOLD, EFFECT_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"move",      EFFECT_UNTOLD, EFFECT_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"migrate",   EFFECT_UNTOLD, EFFECT_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"swapdb",    EFFECT_UNTOLD, EFFECT_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"msetnx",    EFFECT_UNTOLD, EFFECT_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"sort",      EFFECT_UNTOLD, EFFECT_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"bitop",     EFFECT_UNTOLD, EFFECT_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"pfmerge",   EFFECT_UNTOLD, EFFECT_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"smove",     EFFECT_UNTOLD, EFFECT_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"sinterstore", EFFECT_UNTOLD, EFFECT_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"sunionstore", EFFECT_UNTOLD, EFFECT_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"sdiffstore", EFFECT_UNTOLD, EFFECT_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"zinterstore", EFFECT_UNTOLD, EFFECT_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"zunionstore", EFFECT_UNTOLD, EFFECT_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"zdiffstore", EFFECT_UNTOLD, EFFECT_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"zrangestore", EFFECT_UNTOLD, EFFECT_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"georadius", EFFECT_UNTOLD, EFFECT_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"georadiusbymember", EFFECT_UNTOLD, EFFECT_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"geosearchstore", EFFECT_UNTOLD, EFFECT_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"geoadd",    EFFECT_UNTOLD, EFFECT_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"rpoplpush", EFFECT_UNTOLD, EFFECT_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"brpoplpush", EFFECT_UNTOLD, EFFECT_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"lmove",     EFFECT_UNTOLD, EFFECT_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"blmove",    EFFECT_UNTOLD, EFFECT_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"lmpop",     EFFECT_UNTOLD, EFFECT_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"blmpop",    EFFECT_UNTOLD, EFFECT_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"lpop",      EFFECT_UNTOLD, EFFECT_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"rpop",      EFFECT_UNTOLD, EFFECT_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"blpop",     EFFECT_UNTOLD, EFFECT_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"brpop",     EFFECT_UNTOLD, EFFECT_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"spop",      EFFECT_UNTOLD, EFFECT_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"zpopmin",   EFFECT_UNTOLD, EFFECT_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"zpopmax",   EFFECT_UNTOLD, EFFECT_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"bzpopmin",  EFFECT_UNTOLD, EFFECT_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"bzpopmax",  EFFECT_UNTOLD, EFFECT_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"zmpop",     EFFECT_UNTOLD, EFFECT_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"bzmpop",    EFFECT_UNTOLD, EFFECT_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"zremrangebyscore", EFFECT_UNTOLD, EFFECT_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"zremrangebyrank", EFFECT_UNTOLD, EFFECT_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"zremrangebylex", EFFECT_UNTOLD, EFFECT_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
};
/* clang-format on */

#define ROWS (sizeof(rows) / sizeof(rows[0]))

/* The row for this call, NULL when there is none. */
static const struct row *find_row(int argc, const struct slice *argv)
{
    for (size_t i = 0; i < ROWS; i++) {
        if (slice_equal_nocase(argv[0], rows[i].name) &&
            (!rows[i].shape || rows[i].shape(argc, argv))) {
            return &rows[i];
        }
    }
    return NULL;
}

bool effect_is_listed(struct slice name)
{
    for (size_t i = 0; i < ROWS; i++) {
        if (slice_equal_nocase(name, rows[i].name)) {
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

bool effect_of(int argc, const struct slice *argv, int number, struct effect *effect)
{
    const struct row *row = find_row(argc, argv);
    if (!row) {
        return classify_order(argc, number, effect);
    }
    *effect = (struct effect){.class = row->class,
                              .type = row->type,
                              .flags = row->flags & ~OF_GROUP,
                              .key = row->key,
                              .values = row->values,
                              .scope = row->flags & OF_GROUP ? row->key + 1 : 0,
                              .first = row->first,
                              .step = row->step,
                              .count = row->count};
    if (effect->scope >= argc) {
        return classify_order(argc, number, effect);
    }
    if (row->count == REST) {
        effect->count = argc > row->first ? (argc - row->first + row->step - 1) / row->step : 0;
    } else if (row->count > 0 && row->first >= argc) {
        return classify_order(argc, number, effect);
    }
    if (row->values == ONE_KEY) {
        return number == 0 && effect->key < argc;
    }
    effect->key = row->key + number * (1 + row->values);
    return effect->key + row->values < argc;
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
