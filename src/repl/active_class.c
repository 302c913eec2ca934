/* See active_class.h. A command that may come in more than one shape has rows whose `shape` says
 * whether this call is of it; if it is of none, it is of class order. */
#include "repl/active_class.h"

#include "base/num.h"

#include <stddef.h>

#define REST (-1)
/* Of the pieces of a command with several keys. */
#define ONE_KEY (-1)

typedef bool (*shape_fn)(int argc, const struct slice *argv);

struct row {
    const char *name;
    enum active_class class;
    enum active_type type;
    unsigned effects;
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

/* XADD key id field value ...: an id, and nothing trimmed. */
static bool plain_xadd(int argc, const struct slice *argv)
{
    return argc >= 5 && argc % 2 == 1 && argv[2].len > 0 && argv[2].ptr[0] >= '0' &&
           argv[2].ptr[0] <= '9';
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

#define GIVES_ALL (ACTIVE_GIVES | ACTIVE_UNDATES)

/* clang-format off */
static const struct row rows[] = {
    /* whole */
    {"set",       ACTIVE_WHOLE, ACTIVE_STRING, 0, 1, ONE_KEY, 0, 0, 0, plain_set},
    {"restore",   ACTIVE_WHOLE, ACTIVE_ANY,    0, 1, ONE_KEY, 0, 0, 0, NULL},
    {"del",       ACTIVE_WHOLE, ACTIVE_ANY,    0, 1, 0, 0, 0, 0, NULL},
    {"unlink",    ACTIVE_WHOLE, ACTIVE_ANY,    0, 1, 0, 0, 0, 0, NULL},
    {"expdel",    ACTIVE_WHOLE, ACTIVE_ANY,    0, 1, 0, 0, 0, 0, NULL},
    {"restore-asking", ACTIVE_UNTOLD, ACTIVE_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"getdel",    ACTIVE_WHOLE, ACTIVE_ANY,    0, 1, ONE_KEY, 0, 0, 0, NULL},
    {"getset",    ACTIVE_WHOLE, ACTIVE_STRING, 0, 1, ONE_KEY, 0, 0, 0, NULL},
    {"setex",     ACTIVE_UNTOLD, ACTIVE_ANY,   0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"psetex",    ACTIVE_UNTOLD, ACTIVE_ANY,   0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"mset",      ACTIVE_WHOLE, ACTIVE_STRING, 0, 1, 1, 0, 0, 0, NULL},
    {"flushdb",   ACTIVE_FLUSH, ACTIVE_ANY,    0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"flushall",  ACTIVE_FLUSH, ACTIVE_ANY,    0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"keydb.state", ACTIVE_STATE, ACTIVE_ANY,  0, 1, ONE_KEY, 0, 0, 0, NULL},
    /* assign */
    {"hset",      ACTIVE_ASSIGN, ACTIVE_HASH, GIVES_ALL,    1, ONE_KEY, 2, 2, REST, NULL},
    {"hmset",     ACTIVE_ASSIGN, ACTIVE_HASH, GIVES_ALL,    1, ONE_KEY, 2, 2, REST, NULL},
    {"hdel",      ACTIVE_ASSIGN, ACTIVE_HASH, ACTIVE_TAKES, 1, ONE_KEY, 2, 1, REST, NULL},
    {"hpexpireat", ACTIVE_ASSIGN, ACTIVE_HASH, ACTIVE_DATES, 1, ONE_KEY, 5, 1, REST, NULL},
    {"hpersist",  ACTIVE_ASSIGN, ACTIVE_HASH, ACTIVE_UNDATES, 1, ONE_KEY, 4, 1, REST, NULL},
    {"sadd",      ACTIVE_ASSIGN, ACTIVE_SET,  ACTIVE_GIVES, 1, ONE_KEY, 2, 1, REST, NULL},
    {"srem",      ACTIVE_ASSIGN, ACTIVE_SET,  ACTIVE_TAKES, 1, ONE_KEY, 2, 1, REST, NULL},
    {"zadd",      ACTIVE_ASSIGN, ACTIVE_ZSET, ACTIVE_GIVES, 1, ONE_KEY, 3, 2, REST, plain_zadd},
    {"zrem",      ACTIVE_ASSIGN, ACTIVE_ZSET, ACTIVE_TAKES, 1, ONE_KEY, 2, 1, REST, NULL},
    {"pfadd",     ACTIVE_ASSIGN, ACTIVE_HYPERLOGLOG, ACTIVE_GIVES, 1, ONE_KEY, 2, 1, REST, NULL},
    {"xadd",      ACTIVE_ASSIGN, ACTIVE_STREAM, ACTIVE_GIVES, 1, ONE_KEY, 2, 1, 1, plain_xadd},
    {"xdel",      ACTIVE_ASSIGN, ACTIVE_STREAM, ACTIVE_TAKES, 1, ONE_KEY, 2, 1, REST, NULL},
    {"pexpirememberat", ACTIVE_ASSIGN, ACTIVE_ANY, ACTIVE_DATES, 1, ONE_KEY, 2, 1, 1, NULL},
    {"pexpireat", ACTIVE_ASSIGN, ACTIVE_ANY, ACTIVE_DATES,   1, ONE_KEY, 0, 0, 0, with_one_more},
    {"persist",   ACTIVE_ASSIGN, ACTIVE_ANY, ACTIVE_UNDATES, 1, ONE_KEY, 0, 0, 0, of_key},
    {"persist",   ACTIVE_ASSIGN, ACTIVE_ANY, ACTIVE_UNDATES, 1, ONE_KEY, 2, 1, 1, with_one_more},
    /* add */
    {"incr",      ACTIVE_ADD, ACTIVE_STRING, ACTIVE_GIVES, 1, ONE_KEY, 0, 0, 0, NULL},
    {"decr",      ACTIVE_ADD, ACTIVE_STRING, ACTIVE_GIVES, 1, ONE_KEY, 0, 0, 0, NULL},
    {"incrby",    ACTIVE_ADD, ACTIVE_STRING, ACTIVE_GIVES, 1, ONE_KEY, 0, 0, 0, without_options},
    {"decrby",    ACTIVE_ADD, ACTIVE_STRING, ACTIVE_GIVES, 1, ONE_KEY, 0, 0, 0, without_options},
    {"hincrby",   ACTIVE_ADD, ACTIVE_HASH,   ACTIVE_GIVES, 1, ONE_KEY, 2, 1, 1, NULL},
    {"zincrby",   ACTIVE_ADD, ACTIVE_ZSET,   ACTIVE_GIVES, 1, ONE_KEY, 3, 1, 1, NULL},
    /* no key */
    {"publish",   ACTIVE_KEYLESS, ACTIVE_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"spublish",  ACTIVE_KEYLESS, ACTIVE_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"script",    ACTIVE_KEYLESS, ACTIVE_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"function",  ACTIVE_KEYLESS, ACTIVE_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    /* of order, with their key elsewhere */
    {"xgroup",    ACTIVE_ORDER, ACTIVE_STREAM, 0, 2, ONE_KEY, 0, 0, 0, NULL},
    /* told as deletions and wholes of their keys, or as what they took and gave */
    {"rename",    ACTIVE_UNTOLD, ACTIVE_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"renamenx",  ACTIVE_UNTOLD, ACTIVE_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"copy",      ACTIVE_UNTOLD, ACTIVE_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"move",      ACTIVE_UNTOLD, ACTIVE_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"migrate",   ACTIVE_UNTOLD, ACTIVE_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"swapdb",    ACTIVE_UNTOLD, ACTIVE_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"msetnx",    ACTIVE_UNTOLD, ACTIVE_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"sort",      ACTIVE_UNTOLD, ACTIVE_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"bitop",     ACTIVE_UNTOLD, ACTIVE_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"pfmerge",   ACTIVE_UNTOLD, ACTIVE_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"smove",     ACTIVE_UNTOLD, ACTIVE_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"sinterstore", ACTIVE_UNTOLD, ACTIVE_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"sunionstore", ACTIVE_UNTOLD, ACTIVE_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"sdiffstore", ACTIVE_UNTOLD, ACTIVE_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"zinterstore", ACTIVE_UNTOLD, ACTIVE_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"zunionstore", ACTIVE_UNTOLD, ACTIVE_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"zdiffstore", ACTIVE_UNTOLD, ACTIVE_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"zrangestore", ACTIVE_UNTOLD, ACTIVE_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"georadius", ACTIVE_UNTOLD, ACTIVE_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"georadiusbymember", ACTIVE_UNTOLD, ACTIVE_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"geosearchstore", ACTIVE_UNTOLD, ACTIVE_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"geoadd",    ACTIVE_UNTOLD, ACTIVE_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"rpoplpush", ACTIVE_UNTOLD, ACTIVE_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"brpoplpush", ACTIVE_UNTOLD, ACTIVE_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"lmove",     ACTIVE_UNTOLD, ACTIVE_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"blmove",    ACTIVE_UNTOLD, ACTIVE_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"lmpop",     ACTIVE_UNTOLD, ACTIVE_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"blmpop",    ACTIVE_UNTOLD, ACTIVE_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"lpop",      ACTIVE_UNTOLD, ACTIVE_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"rpop",      ACTIVE_UNTOLD, ACTIVE_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"blpop",     ACTIVE_UNTOLD, ACTIVE_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"brpop",     ACTIVE_UNTOLD, ACTIVE_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"spop",      ACTIVE_UNTOLD, ACTIVE_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"zpopmin",   ACTIVE_UNTOLD, ACTIVE_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"zpopmax",   ACTIVE_UNTOLD, ACTIVE_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"bzpopmin",  ACTIVE_UNTOLD, ACTIVE_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"bzpopmax",  ACTIVE_UNTOLD, ACTIVE_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"zmpop",     ACTIVE_UNTOLD, ACTIVE_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"bzmpop",    ACTIVE_UNTOLD, ACTIVE_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"zremrangebyscore", ACTIVE_UNTOLD, ACTIVE_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"zremrangebyrank", ACTIVE_UNTOLD, ACTIVE_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
    {"zremrangebylex", ACTIVE_UNTOLD, ACTIVE_ANY, 0, 0, ONE_KEY, 0, 0, 0, NULL},
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

bool active_class_is_listed(struct slice name)
{
    for (size_t i = 0; i < ROWS; i++) {
        if (slice_equal_nocase(name, rows[i].name)) {
            return true;
        }
    }
    return false;
}

/* Not in the table, or not of the shape that it speaks of. */
static bool classify_order(int argc, int number, struct active_piece *piece)
{
    *piece = (struct active_piece){.class = ACTIVE_ORDER, .key = 1, .values = ONE_KEY};
    return number == 0 && argc > 1;
}

bool active_classify(int argc, const struct slice *argv, int number, struct active_piece *piece)
{
    const struct row *row = find_row(argc, argv);
    if (!row) {
        return classify_order(argc, number, piece);
    }
    *piece = (struct active_piece){.class = row->class,
                                   .type = row->type,
                                   .effects = row->effects,
                                   .key = row->key,
                                   .values = row->values,
                                   .first = row->first,
                                   .step = row->step,
                                   .count = row->count};
    if (row->count == REST) {
        piece->count = argc > row->first ? (argc - row->first + row->step - 1) / row->step : 0;
    } else if (row->count > 0 && row->first >= argc) {
        return classify_order(argc, number, piece);
    }
    if (row->values == ONE_KEY) {
        return number == 0 && piece->key < argc;
    }
    piece->key = row->key + number * (1 + row->values);
    return piece->key + row->values < argc;
}

int active_piece_command(const struct active_piece *piece, int argc, const struct slice *argv,
                         struct slice words[ACTIVE_PIECE_WORDS], const struct slice **command)
{
    if (piece->values == ONE_KEY) {
        *command = argv;
        return argc;
    }
    words[0] = piece->values ? SLICE("SET") : argv[0];
    for (int i = 0; i <= piece->values; i++) {
        words[1 + i] = argv[piece->key + i];
    }
    *command = words;
    return 2 + piece->values;
}
