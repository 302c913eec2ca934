/* The logs' part on disk: a peer that lacks more than memory keeps is sent each write of what it
 * requests once, in order, whole; or it is said that this cannot be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "active/frame.h"
#include "active/origin_log.h"
#include "active/sender.h"
#include "active/sender_disk.h"
#include "base/mem.h"
#include "base/rand.h"
#include "long.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ORIGINS 4
#define KIB ((size_t)1024)

struct bench {
    struct origins origins;
    struct origin_log *log;
    struct reserve *reserve;
    uint64_t stamp;
};

static void set_up(struct bench *b, size_t memory, uint64_t disk)
{
    *b = (struct bench){.log = origin_log_create(memory), .stamp = 1000};
    origins_init(&b->origins);
    for (int i = 1; i <= ORIGINS; i++) {
        struct origin_id id = {.epoch = 1};
        memset(id.node, i, sizeof(id.node));
        assert_int_equal(origins_enter(&b->origins, &id), i);
    }
    b->reserve = reserve_create("test-log.reserve", disk);
    assert_non_null(b->reserve);
    origin_log_keep_on_disk(b->log, b->reserve);
}

static void tear_down(struct bench *b)
{
    origin_log_destroy(&b->log);
    reserve_destroy(&b->reserve);
    origins_deinit(&b->origins);
    assert_int_equal(chain_memory_bytes(), 0);
}

/* What write number `sequence` of the origin says: its own name, and bytes that hang on it. */
static void text_of(uint16_t origin, uint64_t sequence, size_t len, struct buf *out)
{
    char name[64], byte = (char)('a' + (origin + sequence) % 26);
    int digits = snprintf(name, sizeof(name), "%d:%llu", (int)origin, (unsigned long long)sequence);
    buf_clear(out);
    buf_printf(out, "*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%zu\r\n", digits, name, len);
    memset(buf_reserve(out, len), byte, len);
    out->len += len;
    buf_append_cstr(out, "\r\n");
}

static void write_one(struct bench *b, uint16_t origin, size_t len)
{
    struct buf text = {0};
    uint64_t sequence = origins_at(&b->origins, origin)->position + 1;
    b->stamp += 1 + rand_below(100);
    text_of(origin, sequence, len, &text);
    struct unit *u =
        unit_create(dot_of(b->stamp, origin, sequence), (int)(sequence % 3), buf_slice(&text));
    assert_non_null(u);
    origin_log_append(b->log, u);
    origins_advance(&b->origins, origin, sequence);
    unit_release(u);
    buf_deinit(&text);
}

static void write_some(struct bench *b, int count, size_t len_max)
{
    for (int i = 0; i < count; i++) {
        write_one(b, (uint16_t)(1 + rand_below(ORIGINS)), rand_below(len_max));
    }
}

/* ---- a peer ---- */

struct peer {
    struct sender send;
    struct sender_disk disk;
    struct buf out, expected;
    uint64_t has[ORIGINS + 1];
    uint64_t writes, from_disk;
};

static void come(struct peer *p, struct bench *b, const uint64_t has[ORIGINS + 1])
{
    *p = (struct peer){0};
    sender_init(&p->send, &b->origins);
    for (int i = 1; i <= ORIGINS; i++) {
        p->has[i] = has[i];
        p->send.rows[i].sent = p->send.rows[i].has = has[i];
    }
}

static void go(struct peer *p)
{
    sender_deinit(&p->send);
    sender_disk_deinit(&p->disk);
    buf_deinit(&p->out);
    buf_deinit(&p->expected);
}

/* It says what it said. The value's length is what is left of the third word's head. */
static void check_text(struct peer *p, const struct frame *f)
{
    struct unit_command words = {0};
    struct slice rest = f->commands;
    assert_true(unit_take_words(&rest, &words));
    assert_true(rest.len == 0 && words.argc == 3);
    text_of(f->handle, f->sequence, words.argv[2].len, &p->expected);
    unit_command_end(&words);
    assert_int_equal(p->expected.len, f->commands.len);
    assert_memory_equal(p->expected.data, f->commands.ptr, f->commands.len);
}

/* Each write is the next one of its origin, and says what it said. */
static void take(struct peer *p)
{
    struct slice data = buf_slice(&p->out);
    struct frame f;
    size_t consumed;
    const char *error;
    while (data.len > 0) {
        assert_int_equal(frame_next(data, FRAME_MAX_BYTES, &f, &consumed, &error), FRAME_WHOLE);
        data = slice_of(data.ptr + consumed, data.len - consumed);
        if (f.kind != 'W') {
            continue;
        }
        assert_true(f.handle >= 1 && f.handle <= ORIGINS);
        assert_true(f.sequence == p->has[f.handle] + 1);
        assert_int_equal(f.db, f.sequence % 3);
        p->has[f.handle]++;
        p->writes++;
        p->from_disk += p->disk.on;
        check_text(p, &f);
    }
    buf_clear(&p->out);
}

/* As peer_feed.c does it. False: what comes next is nowhere. */
static bool feed(struct peer *p, struct bench *b)
{
    bool kept;
    if (!p->disk.on) {
        kept = sender_some(&p->send, &b->origins, b->log, 64 * KIB, &p->out) || p->out.len > 0 ||
               sender_disk_begin(&p->disk, &p->send, &b->origins, b->log);
    } else {
        kept = sender_disk_read(&p->disk, origin_log_reserve(b->log)) &&
               sender_disk_some(&p->disk, &p->send, &b->origins, b->log, &p->out);
    }
    take(p);
    return kept;
}

static bool has_all(const struct peer *p, const struct bench *b)
{
    for (uint16_t i = 1; i <= ORIGINS; i++) {
        if (p->send.rows[i].asked && p->has[i] < origins_at(&b->origins, i)->position) {
            return false;
        }
    }
    return true;
}

/* Until it has all; false when it was told that it cannot. */
static bool feed_all(struct peer *p, struct bench *b)
{
    while (!has_all(p, b)) {
        if (!feed(p, b)) {
            return false;
        }
    }
    return true;
}

/* ---- tests ---- */

static void test_away_longer_than_memory(void **state)
{
    (void)state;
    struct bench b;
    struct peer p;
    set_up(&b, 20 * KIB, 8 * 1024 * KIB);
    const uint64_t nothing[ORIGINS + 1] = {0};
    write_some(&b, 10000, 200);
    come(&p, &b, nothing);
    assert_false(origin_log_has_after(b.log, 1, 0, origins_at(&b.origins, 1)->position));
    assert_true(sender_possible(&p.send, &b.origins, b.log));
    assert_false(sender_has_all(&p.send, &b.origins, b.log));
    assert_true(feed_all(&p, &b));
    assert_int_equal(p.writes, 10000);
    assert_true(p.from_disk > 9000);
    assert_true(origin_log_bytes(b.log) <= 20 * KIB);
    /* It goes on from memory, and back to the disk where it falls behind. */
    write_some(&b, 10, 200);
    assert_true(feed_all(&p, &b));
    assert_false(p.disk.on);
    write_some(&b, 5000, 200);
    assert_true(feed_all(&p, &b));
    assert_int_equal(p.writes, 15010);
    go(&p);
    tear_down(&b);
}

static void test_not_kept(void **state)
{
    (void)state;
    struct bench b;
    struct peer p;
    set_up(&b, 20 * KIB, 1024 * KIB);
    const uint64_t nothing[ORIGINS + 1] = {0};
    write_some(&b, 40000, 200);
    struct reserve_facts facts;
    for (;;) { /* its thread is behind by less than the file's length */
        reserve_look(b.reserve, &facts);
        if (facts.begin > 0) {
            break;
        }
        write_some(&b, 100, 200);
        usleep(1000);
    }
    come(&p, &b, nothing);
    assert_false(sender_possible(&p.send, &b.origins, b.log));
    assert_false(feed_all(&p, &b));
    go(&p);
    /* What an origin's position passed without the writes is not there either. */
    uint64_t position = origins_at(&b.origins, 2)->position + 10;
    origin_log_skip(b.log, 2, position);
    origins_advance(&b.origins, 2, position);
    write_some(&b, 20, 200);
    assert_false(
        origin_log_keeps_after(b.log, 2, position - 1, origins_at(&b.origins, 2)->position));
    assert_true(origin_log_keeps_after(b.log, 2, position, origins_at(&b.origins, 2)->position));
    tear_down(&b);
}

/* A write that is too long for the disk: whoever lacks it cannot be served from there. */
static void test_long_writes(void **state)
{
    (void)state;
    struct bench b;
    struct peer p;
    uint64_t has[ORIGINS + 1] = {0};
    set_up(&b, 20 * KIB, 100 * 1024 * KIB);
    for (int i = 0; i < 2; i++) {
        write_one(&b, 1, 10);
        write_one(&b, 1, i == 1 ? LOG_RESERVE_UNIT_MAX : LOG_RESERVE_UNIT_MAX - 100);
    }
    write_some(&b, 1000, 100);
    come(&p, &b, has);
    assert_false(sender_possible(&p.send, &b.origins, b.log));
    go(&p);
    has[1] = 4;
    come(&p, &b, has);
    assert_true(sender_possible(&p.send, &b.origins, b.log));
    assert_true(feed_all(&p, &b));
    go(&p);
    tear_down(&b);

    has[1] = 0;
    set_up(&b, 20 * KIB, 100 * 1024 * KIB);
    write_one(&b, 1, LOG_RESERVE_UNIT_MAX - 100); /* longer than what is read at a time */
    write_some(&b, 1000, 100);
    come(&p, &b, has);
    assert_true(feed_all(&p, &b));
    assert_int_equal(p.writes, 1001);
    go(&p);
    tear_down(&b);
}

/* Peers that have something of each, request some origins only, come and go while others write. */
static void test_random(void **state)
{
    (void)state;
    for (int round = 0; round < UNIT_LONG(12); round++) {
        struct bench b;
        set_up(&b, 16 * KIB + rand_below(100 * KIB), 1024 * KIB + rand_below(4096 * KIB));
        for (int turn = 0; turn < 6; turn++) {
            struct peer p;
            uint64_t has[ORIGINS + 1];
            for (int i = 1; i <= ORIGINS; i++) {
                has[i] = rand_below(origins_at(&b.origins, (uint16_t)i)->position + 1);
            }
            write_some(&b, (int)rand_below(3000), 1 + rand_below(700));
            come(&p, &b, has);
            for (int i = 1; i <= ORIGINS; i++) {
                p.send.rows[i].asked = rand_below(4) > 0;
            }
            bool possible = sender_possible(&p.send, &b.origins, b.log);
            while (!has_all(&p, &b) && possible) {
                possible = feed(&p, &b);
                if (rand_below(3) == 0) {
                    write_some(&b, (int)rand_below(20), 300);
                }
                if (rand_below(50) == 0) { /* it wants one more, or less */
                    uint32_t i = (uint32_t)(1 + rand_below(ORIGINS));
                    p.send.rows[i].asked = !p.send.rows[i].asked;
                }
            }
            go(&p);
        }
        tear_down(&b);
    }
}

/* The disk fails: memory has what it has, and goes on. */
static void test_no_disk(void **state)
{
    (void)state;
    struct bench b;
    struct peer p;
    const uint64_t nothing[ORIGINS + 1] = {0};
    char here[500], directory[] = "/tmp/log-reserve.XXXXXX";
    assert_non_null(getcwd(here, sizeof(here)));
    assert_true(mkdtemp(directory) && chdir(directory) == 0 && rmdir(directory) == 0);
    set_up(&b, 20 * KIB, 8 * 1024 * KIB);
    struct reserve_facts facts;
    do {
        usleep(1000);
        reserve_look(b.reserve, &facts);
    } while (facts.state == RESERVE_MAKING);
    assert_int_equal(chdir(here), 0);
    assert_int_equal(facts.state, RESERVE_BROKEN);
    write_some(&b, 20, 200);
    come(&p, &b, nothing);
    assert_true(feed_all(&p, &b));
    write_some(&b, 10000, 200);
    assert_false(sender_possible(&p.send, &b.origins, b.log));
    assert_false(feed_all(&p, &b));
    go(&p);
    tear_down(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_away_longer_than_memory),
        cmocka_unit_test(test_not_kept),
        cmocka_unit_test(test_long_writes),
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_no_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
