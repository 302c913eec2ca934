/* Units that no honest node tells: any words behind the names of commands, states and digests with
 * any positions, stamps that go back. A node takes them or refuses them, and goes on: nothing is
 * read beyond a unit's words, no assertion fails, and our own clients' writes come through.
 *
 * KEYDB_TEST_PROGRAM: the units of this seed only; KEYDB_TEST_PROGRAMS: how many seeds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "real.h"

#include "base/mem.h"
#include "base/rand.h"
#include "engine/command.h"
#include "keyspace/reclaim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROGRAMS 40
#define UNITS 600
#define ORIGINS 6
#define LOG_BYTES ((size_t)64 << 10)

static struct real_group group;

static struct peer {
    struct origin_id id;
    uint64_t position, stamp;
} peers[ORIGINS];

/* Words of units that are no commands of clients, and such as the table of effects looks into. */
static const char *const names[] = {
    "KEYDB.STATE",   "KEYDB.DIGESTS", "KEYDB.EXPIRED", "KEYDB.XPEND",
    "KEYDB.XINSERT", "KEYDB.LARGE",   "KEYDB.VIEW",    "KEYDB.WAIT",
    "KEYDB.UNWAIT",  "KEYDB.GIVE",    "FUNCTION",      "PUBLISH",
    "HPEXPIREAT",    "HPERSIST",      "HSET",          "HDEL",
    "ZADD",          "XACK",          "XDEL",          "SADD",
    "SREM",          "DEL",           "SET",           "MSET",
    "PEXPIREAT",     "PERSIST",       "INCRBY",        "HINCRBY",
    "ZINCRBY",       "FLUSHDB",       "FLUSHALL",      "RESTORE",
    "RPUSH",         "LREM",          "APPEND",        "PEXPIREMEMBERAT",
    "XGROUP",        "SELECT",        "MULTI",         "EXEC",
    "KEYDB.PULL",    "PFADD",
};

static const char *const words[] = {
    "",
    "0",
    "1",
    "-1",
    "2",
    "7",
    "9223372036854775807",
    "18446744073709551615",
    "-9223372036854775808",
    "1800000000500",
    "4102444800000",
    "k0",
    "k1",
    "k2",
    "s0",
    "g0",
    "m0",
    "m1",
    "5-0",
    "*",
    "PXAT",
    "FIELDS",
    "CREATE",
    "DESTROY",
    "flush",
    "delete",
    "load",
    "replace",
    "#!lua name=x\n",
    "REPLACE",
    "ABSTTL",
    "NX",
    "GT",
    "KEEPTTL",
    "3",
    "before",
    "nan",
    "inf",
    "1e400",
    "$-1\r\n",
    "\r\n",
};

static void put_positions(struct buf *out)
{
    struct buf bytes = {0};
    uint64_t count = rand_below(4);
    le_put(&bytes, rand_below(20) ? count : UINT32_MAX, 4);
    for (uint64_t i = 0; i < count; i++) {
        const struct peer *p = &peers[rand_below(ORIGINS)];
        buf_append(&bytes, (const char *)p->id.node, sizeof(p->id.node));
        le_put(&bytes, p->id.epoch + rand_below(3), 8);
        le_put(&bytes, rand_below(8) ? rand_below(1000) : UINT64_MAX >> rand_below(20), 8);
    }
    if (rand_below(10) == 0) {
        buf_append_char(&bytes, 'x');
    }
    unit_put_word(out, buf_slice(&bytes));
    buf_deinit(&bytes);
}

static void put_any_word(struct buf *out)
{
    if (rand_below(12) == 0) {
        put_positions(out);
    } else {
        unit_put_word(out, slice_cstr(words[rand_below(sizeof(words) / sizeof(words[0]))]));
    }
}

static void put_any_command(struct buf *out)
{
    uint64_t argc = 1 + rand_below(rand_below(4) ? 6 : 30);
    const char *name = names[rand_below(sizeof(names) / sizeof(names[0]))];
    if (rand_below(3) == 0) {
        name = command_at((unsigned)rand_below(command_count()))->row->name;
    }
    buf_printf(out, "*%d\r\n", (int)argc);
    unit_put_word(out, slice_cstr(name));
    for (uint64_t i = 1; i < argc; i++) {
        put_any_word(out);
    }
}

/* One that is nearly what a node tells. */
static void put_state(struct buf *out)
{
    bool digest = rand_below(2);
    buf_append_cstr(out, digest ? "*5\r\n" : "*6\r\n");
    unit_put_word(out, digest ? SLICE("KEYDB.DIGESTS") : SLICE("KEYDB.STATE"));
    if (digest) {
        put_positions(out);
    }
    unit_put_word(out, rand_below(2) ? SLICE("k0") : SLICE("k1"));
    put_any_word(out);
    put_any_word(out);
    if (!digest) {
        put_positions(out);
        put_any_word(out);
    }
}

static uint64_t any_stamp(const struct peer *p)
{
    switch (rand_below(12)) {
    case 0:
        return p->stamp;
    case 1:
        return p->stamp - rand_below(5);
    case 2:
        return (uint64_t)(group.now_ms + (int64_t)rand_below(20) * 3600000) << 16;
    case 3:
        return UINT64_MAX >> rand_below(8);
    default:
        return p->stamp + 1 + rand_below(1 << 18);
    }
}

static void tell_one(void)
{
    struct peer *p = &peers[rand_below(ORIGINS)];
    uint64_t stamp = any_stamp(p), sequence = p->position + (rand_below(20) ? 1 : rand_below(3));
    struct buf unit = {0};
    for (uint64_t i = 0; i <= rand_below(3); i++) {
        rand_below(4) ? put_any_command(&unit) : put_state(&unit);
    }
    if (rand_below(30) == 0) {
        unit.len -= rand_below(unit.len);
    }
    keyspace_lock_exclusive();
    local_writes_attach(node_own(group.node[0]));
    enum receiver_result taken =
        node_take(group.node[0], &p->id, sequence, stamp, (int)rand_below(REAL_DBS + 1),
                  buf_slice(&unit), group.now_ms);
    local_writes_attach(NULL);
    keyspace_unlock_exclusive();
    reclaim_run();
    if (taken == RECEIVED) {
        p->position = sequence;
        p->stamp = stamp;
    }
    buf_deinit(&unit);
}

static void run_program(uint64_t seed)
{
    rand_set_seed(seed);
    real_group_init(&group, 2, LOG_BYTES, 0);
    for (int i = 0; i < ORIGINS; i++) {
        peers[i] = (struct peer){.id = {.epoch = 7 + (uint64_t)(i % 2)},
                                 .stamp = (uint64_t)group.now_ms << 16};
        memset(peers[i].id.node, 'p' + i / 2, sizeof(peers[i].id.node));
    }
    for (int i = 0; i < UNITS; i++) {
        tell_one();
        if (rand_below(4) == 0) {
            real_write_something(&group, 0);
        }
        if (rand_below(10) == 0) {
            group.now_ms += (int64_t)rand_below(300);
            real_tick(&group, 0);
        }
    }
    real_run_one(&group, 0, 0, "set last word");
    assert_string_equal(real_run_one(&group, 0, 0, "get last"), "$4\r\nword\r\n");
    real_group_deinit(&group);
}

static void test_units_that_no_node_tells(void **state)
{
    (void)state;
    const char *one = getenv("KEYDB_TEST_PROGRAM"), *many = getenv("KEYDB_TEST_PROGRAMS");
    uint64_t first = one ? strtoull(one, NULL, 10) : 1;
    uint64_t count = one ? 1 : many ? strtoull(many, NULL, 10) : PROGRAMS;
    for (uint64_t i = first; i < first + count; i++) {
        run_program(i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_units_that_no_node_tells),
    };
    return cmocka_run_group_tests(tests, real_setup, real_teardown);
}
