/* What peers of an active group are told of writes: for each write command there is, over random
 * programs, one node's told commands make another node the same, write by write, deadlines
 * included; each of them is of a class that can be put in an order, names the keys that the class
 * table says, and is a write of its own or within its unit. Node 1 is databases 0 and 1 here, node
 * 2 databases 8 and 9. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/rand.h"
#include "base/thread.h"
#include "commands/commands.h"
#include "engine/cmdstats.h"
#include "engine/execute.h"
#include "engine/propagate.h"
#include "keyspace/access.h"
#include "keyspace/changes.h"
#include "keyspace/expire.h"
#include "keyspace/reclaim.h"
#include "persist/payload.h"
#include "active/effect.h"
#include "active/all_commands.h"
#include "resp/limits.h"
#include "value/hash.h"
#include "value/list.h"
#include "value/member_ttl.h"
#include "value/set.h"
#include "value/stream.h"
#include "value/zset.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS_MAX 64
#define WORD_BYTES 40
#define NODE_DBS 2
#define OTHER 8           /* the other node's databases begin here */
#define FAR 4102444800000 /* milliseconds: the year 2100 */
/* At least so many, until each template has told something, and at most so many. */
#define CALLS_MIN 3000
#define CALLS_MAX 30000
#define MEMBERS 5 /* members of everything are a, b ... */

/* ---- programs ---- */

/* Words: S L H T Z X P N keys of a type (N a path), A any key, & another key of the same type as
 * the last; V a value, D a member, I an integer, F a number, C a count, B a bit, E a deadline in
 * milliseconds, R a long time, Q a stream id that grows, J one that may be there, G a
 * group, U a consumer, $ a payload. */
static const char *const templates[] = {
    "append S V",
    "setrange S C V",
    "setbit S C B",
    "bitfield S set u8 #1 C incrby i5 0 I",
    "bitop and S & S",
    "bitop not S S",
    "bitop xor S S S S",
    "decr S",
    "decrby S I",
    "incr S",
    "incrby S I",
    "incrbyfloat S F",
    "getdel S",
    "getex S pxat E",
    "getex S persist",
    "getex S pxat 1",
    "getset S V",
    "mset S V S V",
    "msetnx S V S V",
    "msetnx S V",
    "psetex S R V",
    "set S V",
    "set S V nx",
    "set S V xx keepttl",
    "set S V keepttl",
    "set S V get pxat E",
    "set S V ex R",
    "setex S R V",
    "setnx S V",
    "copy A &",
    "copy A & replace",
    "copy A A db 1",
    "del A A",
    "expdel A",
    "unlink A",
    "unlink A A",
    "expire A R",
    "expire A R nx",
    "pexpire A R xx",
    "pexpire A R gt",
    "expireat A 4102444800 lt",
    "pexpireat A E",
    "pexpireat A E",
    "pexpireat A E",
    "pexpire A -1",
    "persist A",
    "persist H D",
    "persist T D",
    "persist Z D",
    "move A 1",
    "rename A &",
    "renamenx A &",
    "restore & 0 $",
    "restore A E $ absttl",
    "restore A 0 $ replace",
    "restore A 1 $ replace absttl",
    "restore-asking A R $ replace idletime 5",
    "sort L alpha store L",
    "sort T alpha limit 0 2 store L",
    "flushdb",
    "flushall async",
    "swapdb 0 1",
    "lpush L V V",
    "lpush L V",
    "rpush L V",
    "rpush L V V V",
    "lpushx L V",
    "rpushx L V V",
    "lpop L",
    "lpop L C",
    "rpop L",
    "rpop L C",
    "lmpop 2 L L left count C",
    "lmpop 1 L right",
    "blmpop 1 2 L L right count C",
    "blpop L L 1",
    "brpop L 1",
    "lmove L L left right",
    "lmove L L right right",
    "lmove L L left left",
    "lmove L L right left",
    "blmove L L right left 1",
    "rpoplpush L L",
    "brpoplpush L L 1",
    "linsert L before V V",
    "linsert L after V V",
    "lset L 0 V",
    "lset L -1 V",
    "lrem L I V",
    "ltrim L 0 C",
    "ltrim L 1 -2",
    "hset H D V D V",
    "hmset H D V",
    "hsetnx H D V",
    "hdel H D",
    "hdel H D D D",
    "hincrby H D I",
    "hincrbyfloat H D F",
    "hexpire H R fields 2 D D",
    "hpexpire H R fields 1 D",
    "hexpireat H 1 fields 2 D D",
    "hexpireat H 4102444800 fields 1 D",
    "hpexpireat H E nx fields 2 D D",
    "hpexpireat H 1 fields 1 D",
    "hpersist H fields 2 D D",
    "keydb.hrename H D D",
    "keydb.nhset N V",
    "keydb.nhset N V V",
    "expiremember H D R",
    "expiremember T D R ms",
    "expirememberat Z D 4102444800",
    "pexpirememberat H D E",
    "pexpirememberat T D E",
    "pexpirememberat Z D E",
    "pexpirememberat T D 1",
    "pexpirememberat Z D 1",
    "expirememberat H D 1",
    "sadd T D D D",
    "sadd T D",
    "sadd T I I I",
    "srem T D D",
    "smove T & D",
    "smove T & D",
    "spop T",
    "spop T C",
    "spop T 99",
    "sinterstore T T T",
    "sunionstore T T T",
    "sdiffstore T T T",
    "zadd Z F D F D",
    "zadd Z F D",
    "zadd Z nx F D F D",
    "zadd Z xx gt ch F D F D",
    "zadd Z lt F D F D",
    "zadd Z ch F D F D",
    "zadd Z incr F D",
    "zadd Z nx incr F D",
    "zadd Z xx gt incr F D",
    "zadd Z ch inf D -inf D",
    "zincrby Z F D",
    "zrem Z D D",
    "zpopmin Z",
    "zpopmax Z C",
    "zmpop 2 Z Z min count C",
    "bzpopmin Z Z 1",
    "bzpopmax Z 1",
    "bzmpop 1 1 Z max count C",
    "zremrangebyrank Z 0 C",
    "zremrangebyrank Z -2 -1",
    "zremrangebyscore Z -inf F",
    "zremrangebylex Z [a [c",
    "zunionstore Z 2 Z Z",
    "zinterstore Z 2 Z Z",
    "zdiffstore Z 2 Z Z",
    "zrangestore Z Z 0 C",
    "geoadd Z F F D",
    "geoadd Z nx F F D F F D",
    "geoadd Z xx ch F F D F F D",
    "georadius Z 0 0 300 km store Z",
    "georadiusbymember Z D 300 km storedist Z",
    "geosearchstore Z Z fromlonlat 0 0 byradius 300 km asc",
    "xadd X Q D V",
    "xadd X * D V D V",
    "xadd X maxlen C Q D V",
    "xadd X maxlen ~ C Q D V",
    "xadd X minid J Q D V",
    "xadd X nomkstream Q D V",
    "xadd X maxlen 0 Q D V",
    "xdel X J J",
    "xtrim X maxlen C",
    "xtrim X minid J",
    "xtrim X maxlen ~ C",
    "xsetid X Q",
    "xsetid X Q entriesadded 99999 maxdeletedid J",
    "xgroup create X G 0 mkstream",
    "xgroup create X G J",
    "xgroup setid X G J",
    "xgroup destroy X G",
    "xgroup createconsumer X G U",
    "xgroup delconsumer X G U",
    "xack X G J J J J J J",
    "xclaim X G U 0 J J",
    "xclaim X G U 0 J force justid",
    "xautoclaim X G U 0 0 count C",
    "xreadgroup group G U count C streams X >",
    "xreadgroup group G U noack streams X >",
    "keydb.xinsert X Q D V",
    "keydb.xinsert X J D V D V",
    "keydb.xpend X G J 5 1",
    "keydb.xpend X G J 5 1 U J",
    "pfadd P V V",
    "pfadd P D",
    "pfmerge P P P",
    "pfdebug todense P",
    "pfdebug getreg P",
};
#define TEMPLATES (sizeof(templates) / sizeof(templates[0]))

/* Write commands that no program here has, and why. */
static const char *const left_out[] = {
    "eval",     "evalsha",    "fcall", /* their effects are those of the commands that they run */
    "function", "keydb.cron", /* of no key, and as they came; they would need an interpreter */
    "migrate",                /* another server; deletes by propagate_delete */
};

struct program {
    char text[WORDS_MAX][WORD_BYTES];
    struct buf payload;
    struct slice words[WORDS_MAX];
    int count;
    char type;
    uint64_t last_id;
};
static struct program now;

static const char types[] = "SLHTZXPN";

static void put_key(char *text, char type)
{
    now.type = type;
    snprintf(text, WORD_BYTES, "%c%d", type, (int)rand_below(3));
}

static void put_word(char *text, const char *word, size_t len)
{
    static const char *const values[] = {"1", "2", "10", "-3", "x", "yy", "z z", ""};
    char kind = len == 1 ? *word : '\0';
    if (kind && strchr("SLHTZXP", kind)) {
        put_key(text, kind);
    } else if (kind == 'N') {
        snprintf(text, WORD_BYTES, "N%d.%c.%c", (int)rand_below(3), 'a' + (char)rand_below(2),
                 'a' + (char)rand_below(2));
    } else if (kind == 'A') {
        put_key(text, types[rand_below(sizeof(types) - 1)]);
    } else if (kind == '&') {
        put_key(text, now.type);
    } else if (kind == 'V') {
        snprintf(text, WORD_BYTES, "%s", values[rand_below(8)]);
    } else if (kind == 'D') {
        snprintf(text, WORD_BYTES, "%c", 'a' + (char)rand_below(MEMBERS));
    } else if (kind == 'I') {
        snprintf(text, WORD_BYTES, "%d", (int)rand_below(9) - 4);
    } else if (kind == 'F') {
        snprintf(text, WORD_BYTES, "%d.%d", (int)rand_below(5) - 2, (int)rand_below(4) * 25);
    } else if (kind == 'C') {
        snprintf(text, WORD_BYTES, "%d", (int)rand_below(3) + (rand_below(4) ? 1 : 1000000));
    } else if (kind == 'B') {
        snprintf(text, WORD_BYTES, "%d", (int)rand_below(2));
    } else if (kind == 'E') {
        snprintf(text, WORD_BYTES, "%lld", (long long)(FAR + (int64_t)rand_below(1000)));
    } else if (kind == 'R') {
        snprintf(text, WORD_BYTES, "%lld", (long long)(100000000 + rand_below(1000)));
    } else if (kind == 'Q') {
        snprintf(text, WORD_BYTES, "4102444800000-%llu", (unsigned long long)++now.last_id);
    } else if (kind == 'J') {
        uint64_t back = rand_below(12);
        snprintf(text, WORD_BYTES, "4102444800000-%llu",
                 (unsigned long long)(now.last_id > back ? now.last_id - back : 1));
    } else if (kind == 'G' || kind == 'U') {
        snprintf(text, WORD_BYTES, "%c%d", kind, (int)rand_below(2));
    } else {
        assert_true(len < WORD_BYTES);
        snprintf(text, WORD_BYTES, "%.*s", (int)len, word);
    }
}

/* The payload of some key, "" when there is none. */
static struct slice some_payload(void) NO_THREAD_SAFETY_ANALYSIS;
static struct slice some_payload(void)
{
    buf_clear(&now.payload);
    keyspace_lock_exclusive();
    struct entry *e = db_random(db_at(0), clock_wall_ms());
    if (e) {
        payload_write(&now.payload, e);
    }
    keyspace_unlock_exclusive();
    return buf_slice(&now.payload);
}

static void make_program(const char *template)
{
    now.count = 0;
    for (const char *at = template; *at;) {
        size_t len = strcspn(at, " ");
        assert_true(now.count < WORDS_MAX);
        char *text = now.text[now.count];
        if (len == 1 && *at == '$') {
            now.words[now.count] = some_payload();
        } else {
            put_word(text, at, len);
            now.words[now.count] = slice_cstr(text);
        }
        now.count++;
        at += len + (at[len] == ' ');
    }
}

/* ---- running ---- */

struct runner {
    struct session session;
    struct arena arena;
    struct reply reply;
};
static struct runner mine, theirs;

static void runner_init(struct runner *r, uint64_t id)
{
    memset(r, 0, sizeof(*r));
    session_init(&r->session, id);
    arena_init(&r->arena, 4096);
    reply_init(&r->reply);
}

static void runner_deinit(struct runner *r)
{
    session_deinit(&r->session);
    arena_deinit(&r->arena);
    reply_deinit(&r->reply);
}

static void prepare(struct runner *r, struct call *c, int db, int argc, const struct slice *argv)
{
    arena_reset(&r->arena);
    reply_reset(&r->reply);
    r->session.db_index = db;
    *c = (struct call){.argc = argc, .session = &r->session, .reply = &r->reply, .nested = true};
    c->argv = arena_alloc(&r->arena, (size_t)argc * sizeof(*argv));
    memcpy(c->argv, argv, (size_t)argc * sizeof(*argv));
    c->now_ms = clock_wall_ms();
    reply_begin(&r->reply, 2);
    call_prepare(c, &r->arena);
}

/* True when it ran without an error. */
static bool run(struct runner *r, int db, int argc,
                const struct slice *argv) NO_THREAD_SAFETY_ANALYSIS;
static bool run(struct runner *r, int db, int argc, const struct slice *argv)
{
    struct call c;
    prepare(r, &c, db, argc, argv);
    assert_non_null(c.cmd);
    c.held = ACCESS_EXCLUSIVE;
    keyspace_lock_exclusive();
    call_run(&c);
    keyspace_unlock_exclusive();
    reply_end(&r->reply);
    reclaim_run();
    return !c.refusal.ptr && !c.failed;
}

static char *shown(int argc, const struct slice *argv)
{
    static char text[1000];
    size_t at = 0;
    for (int i = 0; i < argc && at < sizeof(text) - 50; i++) {
        at += (size_t)snprintf(text + at, sizeof(text) - at, " %.*s",
                               argv[i].len < 40 ? (int)argv[i].len : 40, argv[i].ptr);
    }
    return text;
}

/* ---- what is told ---- */

static struct buf told; /* of a unit: i32 database, i32 words, then u32 length and bytes of each */
static int told_count;
static int log_number;

static long take_number(const char **at)
{
    long number = strtol(*at, NULL, 10);
    *at = strchr(*at, '\n') + 1;
    return number;
}

static void record(int db, struct slice commands)
{
    struct buf copy = {0};
    buf_append_slice(&copy, commands);
    const char *at = buf_cstr(&copy), *end = at + commands.len;
    while (at < end) {
        assert_int_equal(*at++, '*');
        int32_t head[2] = {db, (int32_t)take_number(&at)};
        buf_append(&told, (const char *)head, sizeof(head));
        for (int i = 0; i < head[1]; i++) {
            assert_int_equal(*at++, '$');
            uint32_t len = (uint32_t)take_number(&at);
            buf_append(&told, (const char *)&len, sizeof(len));
            buf_append(&told, at, len);
            at += len + 2;
        }
        told_count++;
    }
    assert_true(at == end);
    buf_deinit(&copy);
}

struct command_told {
    int32_t db, argc;
    struct slice *argv;
};

/* The next one; false at the end. Its words stand in memory of the caller's. */
static bool next_told(size_t *at, struct slice **words, struct command_told *command)
{
    int32_t head[2];
    if (*at == told.len) {
        return false;
    }
    memcpy(head, told.data + *at, sizeof(head));
    *at += sizeof(head);
    *words = realloc(*words, (size_t)head[1] * sizeof(**words));
    for (int i = 0; i < head[1]; i++) {
        uint32_t len;
        memcpy(&len, told.data + *at, sizeof(len));
        (*words)[i] = slice_of(told.data + *at + sizeof(len), len);
        *at += sizeof(len) + len;
    }
    *command = (struct command_told){head[0], head[1], *words};
    return true;
}

static bool frames_unit(const struct command_told *t)
{
    return t->argc == 1 &&
           (slice_equal_nocase(t->argv[0], "multi") || slice_equal_nocase(t->argv[0], "exec"));
}

/* Its class is known, and its effects are of the keys that the command has. */
static void check_class(const struct command_told *t)
{
    struct call c;
    struct effect p;
    int count = 0;
    prepare(&theirs, &c, 0, t->argc, t->argv);
    assert_null(c.refusal.ptr);
    for (; effect_of(t->argc, t->argv, count, &p); count++) {
        if (p.class == EFFECT_UNTOLD || p.class == EFFECT_STATE) {
            fail_msg("told, though it should not be:%s", shown(t->argc, t->argv));
        }
        if (p.class == EFFECT_FLUSH || p.class == EFFECT_KEYLESS) {
            reply_end(&theirs.reply);
            return;
        }
        if (count >= c.key_count || !slice_equal(t->argv[p.key], call_key(&c, count)->name)) {
            fail_msg("not its key:%s", shown(t->argc, t->argv));
        }
    }
    if (count != c.key_count) {
        fail_msg("not of each of its keys:%s", shown(t->argc, t->argv));
    }
    reply_end(&theirs.reply);
}

static void switch_log(bool on) NO_THREAD_SAFETY_ANALYSIS;
static void switch_log(bool on)
{
    keyspace_lock_exclusive();
    propagate_switch(log_number, on);
    keyspace_unlock_exclusive();
}

/* FLUSHALL, of which node 1 must have nothing. */
static void flush_other(void)
{
    for (int i = 0; i < NODE_DBS; i++) {
        assert_true(run(&theirs, OTHER + i, 1, &SLICE("FLUSHDB")));
    }
}

static const char *all_told(void);

/* Does on node 2 what was told of node 1. */
static void replay(void)
{
    struct slice *words = NULL;
    struct command_told t;
    int inside = 0, commands = 0;
    switch_log(false);
    expire_frozen = true;
    for (size_t at = 0; next_told(&at, &words, &t);) {
        if (frames_unit(&t)) {
            assert_int_equal(t.db, PROPAGATE_ANY_DB);
            inside++;
            continue;
        }
        commands++;
        check_class(&t);
        if (slice_equal_nocase(t.argv[0], "flushall")) {
            flush_other();
        } else if (!run(&theirs, t.db + OTHER, t.argc, t.argv)) {
            fail_msg("refused there:%s of%s", shown(t.argc, t.argv), all_told());
        }
    }
    assert_int_equal(inside, commands > 1 ? 2 : 0); /* one unit */
    expire_frozen = false;
    switch_log(true);
    free(words);
}

/* ---- comparing ---- */

static const char *difference_of_streams(const struct entry *a, const struct entry *b)
{
    const struct stream_facts *f = stream_facts(a), *g = stream_facts(b);
    return stream_id_compare(f->last_id, g->last_id) != 0                 ? "last id"
           : stream_id_compare(f->max_deleted_id, g->max_deleted_id) != 0 ? "greatest deleted id"
           : f->entries_added != g->entries_added                         ? "entries added"
                                                                          : NULL;
}

static const char *difference_of(const struct entry *a, const struct entry *b)
{
    uint8_t digests[2][20];
    enum value_type type = entry_type(a);
    if (type != entry_type(b)) {
        return "type";
    }
    if (entry_expiry_ms(a) != entry_expiry_ms(b)) {
        return "deadline";
    }
    value_ops_of[type]->digest(a, digests[0]);
    value_ops_of[type]->digest(b, digests[1]);
    if (memcmp(digests[0], digests[1], sizeof(digests[0])) != 0) {
        return "content";
    }
    for (int m = 0; member_ttl_supported(a) && m < MEMBERS; m++) {
        struct slice member = slice_of(&"abcde"[m], 1);
        if (member_ttl_get(a, member) != member_ttl_get(b, member)) {
            return "a member's deadline";
        }
    }
    return type == VALUE_STREAM ? difference_of_streams(a, b) : NULL;
}

static struct entry *find(int db, struct slice name) NO_THREAD_SAFETY_ANALYSIS;
static struct entry *find(int db, struct slice name)
{
    struct key key = key_of(name);
    return db_read(db_at(db), &key, clock_wall_ms(), DB_NO_TOUCH | DB_NO_STATS);
}

/* What was told, for a failure's message. */
static const char *all_told(void)
{
    static char text[4000];
    struct slice *words = NULL;
    struct command_told t;
    size_t len = 0;
    text[0] = '\0';
    for (size_t at = 0; next_told(&at, &words, &t) && len < sizeof(text) - 1100;) {
        len += (size_t)snprintf(text + len, sizeof(text) - len, " |%s", shown(t.argc, t.argv));
    }
    free(words);
    return text;
}

/* Ends the test: what is wrong, after which command, told how. */
static void fail_with(const char *what, struct slice key) NO_THREAD_SAFETY_ANALYSIS;
static void fail_with(const char *what, struct slice key)
{
    keyspace_unlock_exclusive();
    print_error("%.*s: %s after%s\n", (int)key.len, key.ptr, what, shown(now.count, now.words));
    fail_msg("told:%s", all_told());
}

static void compare_one(struct entry *e, void *context)
{
    int db = *(int *)context;
    struct entry *there = find(db, entry_key(e));
    const char *difference = !there       ? "missing on one node"
                             : db < OTHER ? NULL /* compared the other way round */
                                          : difference_of(e, there);
    if (difference) {
        fail_with(difference, entry_key(e));
    }
}

static void compare_nodes(void) NO_THREAD_SAFETY_ANALYSIS;
static void compare_nodes(void)
{
    keyspace_lock_exclusive();
    expire_frozen = true; /* what is due does not hide */
    for (int i = 0; i < 2 * NODE_DBS; i++) {
        int here = i % NODE_DBS + (i < NODE_DBS ? 0 : OTHER);
        int there = OTHER - here + 2 * (i % NODE_DBS);
        uint64_t cursor = 0;
        do {
            cursor = db_scan(db_at(here), cursor, 1000, clock_wall_ms(), compare_one, &there);
        } while (cursor);
    }
    expire_frozen = false;
    keyspace_unlock_exclusive();
}

/* ---- who empties a key with a deadline says so ---- */

#define KEYS (3 * (sizeof(types) - 1))
static bool had_deadline[KEYS];

static struct slice key_name(size_t i, char text[4])
{
    return slice_of(text, (size_t)snprintf(text, 4, "%c%d", types[i / 3], (int)(i % 3)));
}

static void note_deadlines(void) NO_THREAD_SAFETY_ANALYSIS;
static void note_deadlines(void)
{
    char text[4];
    keyspace_lock_exclusive();
    for (size_t i = 0; i < KEYS; i++) {
        struct entry *e = find(0, key_name(i, text));
        had_deadline[i] = e && entry_expiry_ms(e) != ENTRY_NO_EXPIRY;
    }
    keyspace_unlock_exclusive();
}

static bool is_told_gone(struct slice key)
{
    struct slice *words = NULL;
    struct command_told t;
    struct effect p;
    bool found = false;
    for (size_t at = 0; !found && next_told(&at, &words, &t);) {
        for (int i = 0; !found && effect_of(t.argc, t.argv, i, &p); i++) {
            found = p.class == EFFECT_FLUSH ||
                    (p.class != EFFECT_KEYLESS && slice_equal(t.argv[p.key], key) &&
                     (p.class == EFFECT_WHOLE || slice_equal_nocase(t.argv[0], "persist")));
        }
    }
    free(words);
    return found;
}

static void check_emptied(void) NO_THREAD_SAFETY_ANALYSIS;
static void check_emptied(void)
{
    char text[4];
    keyspace_lock_exclusive();
    for (size_t i = 0; i < KEYS; i++) {
        struct slice key = key_name(i, text);
        if (had_deadline[i] && !find(0, key) && !is_told_gone(key)) {
            fail_with("no word of the deadline that went with it", key);
        }
    }
    keyspace_unlock_exclusive();
}

/* ---- the programs ---- */

static unsigned effects[TEMPLATES]; /* how often each told something */

static void run_one(size_t template)
{
    make_program(templates[template]);
    note_deadlines();
    (void)run(&mine, 0, now.count, now.words);
    assert_false(propagate_in_unit());
    effects[template] += told_count > 0;
    check_emptied();
    replay();
    compare_nodes();
    buf_clear(&told);
    told_count = 0;
}

/* Several commands that are one unit. */
static void run_unit(void) NO_THREAD_SAFETY_ANALYSIS;
static void run_unit(void)
{
    propagate_begin_unit();
    for (uint64_t i = rand_below(5); i > 0; i--) {
        size_t template = rand_below(TEMPLATES);
        if (strncmp(templates[template], "flushall", 8) == 0) {
            continue; /* here it empties both nodes at once, before the unit is told */
        }
        make_program(templates[template]);
        (void)run(&mine, 0, now.count, now.words);
    }
    keyspace_lock_exclusive();
    propagate_end_unit();
    keyspace_unlock_exclusive();
    replay();
    compare_nodes();
    buf_clear(&told);
    told_count = 0;
}

static bool is_rare(const char *template)
{
    return strncmp(template, "flush", 5) == 0 || strncmp(template, "swapdb", 6) == 0;
}

static bool all_have_told(void)
{
    for (size_t i = 0; i < TEMPLATES; i++) {
        if (effects[i] == 0) {
            return false;
        }
    }
    return true;
}

/* One that has told nothing yet, if that is long ago. */
static size_t next_template(int call)
{
    size_t template = rand_below(TEMPLATES);
    bool prefer = call >= CALLS_MIN && rand_below(3) == 0;
    for (size_t i = 0; prefer && i < TEMPLATES; i++) {
        size_t at = (template + i) % TEMPLATES;
        if (effects[at] == 0) {
            return at;
        }
    }
    return template;
}

static void test_programs(void **state)
{
    (void)state;
    for (int i = 0; i < CALLS_MIN || (i < CALLS_MAX && !all_have_told()); i++) {
        size_t template = next_template(i);
        if (is_rare(templates[template]) && rand_below(10) > 0) {
            continue;
        }
        if (rand_below(20) == 0) {
            run_unit();
        } else {
            run_one(template);
        }
    }
    for (size_t i = 0; i < TEMPLATES; i++) {
        if (effects[i] == 0) {
            fail_msg("%s: told %u times", templates[i], effects[i]);
        }
    }
}

/* ---- each write command is known here ---- */

static bool begins_with(const char *template, const char *name)
{
    size_t len = strlen(name);
    return strncmp(template, name, len) == 0 && (template[len] == ' ' || template[len] == '\0');
}

static bool is_known(const char *name)
{
    for (size_t i = 0; i < TEMPLATES; i++) {
        if (begins_with(templates[i], name)) {
            return true;
        }
    }
    return false;
}

static bool is_left_out(const char *name)
{
    for (size_t i = 0; i < sizeof(left_out) / sizeof(left_out[0]); i++) {
        if (strcmp(left_out[i], name) == 0) {
            return true;
        }
    }
    return false;
}

static void test_each_command_is_known(void **state)
{
    (void)state;
    int missing = 0, writes = 0;
    for (unsigned i = 0; i < command_count(); i++) {
        const struct command *c = command_at(i);
        const char *name = c->row->name;
        if (c->flags & CMD_WRITE && !c->subcommand_count) {
            writes++;
            missing += is_known(name) == is_left_out(name);
            if (is_known(name) == is_left_out(name)) {
                print_error("%s\n", name);
            }
        }
        for (unsigned s = 0; s < c->subcommand_count; s++) {
            char whole[64];
            snprintf(whole, sizeof(whole), "%s %s", name, c->subcommands[s].row->name);
            if (c->subcommands[s].flags & CMD_WRITE && !is_left_out(name)) {
                writes++;
                missing += !is_known(whole);
                if (!is_known(whole)) {
                    print_error("%s\n", whole);
                }
            }
        }
    }
    assert_true(writes > 100);
    assert_int_equal(missing, 0);
}

/* ---- fixtures ---- */

static void store_initial(const struct option *options)
{
    for (; options->name; options++) {
        option_store_initial(options);
    }
}

/* Few entries a node, so that approximate trimming has nodes to take. */
static void make_small_nodes(void)
{
    const struct slice three = SLICE("3");
    for (const struct option *o = stream_options; o->name; o++) {
        const char *error;
        if (strcmp(o->name, "stream-node-max-entries") == 0) {
            assert_true(option_store(o, &three, 1, &error));
        }
    }
}

static int setup(void **state)
{
    static const struct option *const options[] = {
        access_options,      expire_options, reclaim_options, resp_options, hash_options,
        hyperloglog_options, set_options,    list_options,    zset_options, stream_options};
    (void)state;
    clock_setup();
    thread_enter("test");
    hash_set_secret(1);
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        store_initial(options[i]);
    }
    make_small_nodes();
    stream_set_id_tag(7); /* as on every active node */
    db_setup(16);
    changes_setup();
    all_commands_register();
    cmdstats_setup();
    runner_init(&mine, 1);
    runner_init(&theirs, 2);
    propagate_setup();
    propagate_set_payload_writer(payload_write);
    log_number = propagate_register(PROPAGATE_TO_PEERS, record);
    switch_log(true);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    switch_log(false);
    propagate_teardown();
    runner_deinit(&mine);
    runner_deinit(&theirs);
    buf_deinit(&told);
    buf_deinit(&now.payload);
    reclaim_run();
    db_teardown();
    cmdstats_teardown();
    command_teardown();
    thread_leave();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_command_is_known),
        cmocka_unit_test(test_programs),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
