/* The parts of active replication, each on its own: clock, origins and positions, units, frames,
 * logs, the window, conflicts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/hash.h"
#include "base/mem.h"
#include "active/hlc.h"
#include "active/conflicts.h"
#include "active/frame.h"
#include "active/origin_log.h"
#include "active/window.h"

#include <stdio.h>
#include <string.h>

#define DAY_MS (24 * 3600 * 1000LL)

static int64_t test_now_ms;

static int64_t test_wall_ms(void *context)
{
    (void)context;
    return test_now_ms;
}

static void test_clock(void **state)
{
    (void)state;
    struct hlc c = {.wall_ms = test_wall_ms};
    test_now_ms = 1000;
    assert_true(hlc_next(&c) == 1000 << 16);
    assert_true(hlc_next(&c) == (1000 << 16) + 2);
    assert_true(hlc_next_state(&c) == (1000 << 16) + 3 && hlc_is_state(c.last));
    assert_true(hlc_next_state(&c) == (1000 << 16) + 5);
    test_now_ms = 900; /* the wall clock goes back, this one does not */
    assert_true(hlc_next(&c) == (1000 << 16) + 6 && !hlc_is_state(c.last));
    assert_int_equal(hlc_ms(&c), 1000);
    assert_true(hlc_see(&c, (5000 << 16) + 7));
    assert_true(hlc_next(&c) == (5000 << 16) + 8);
    assert_true(hlc_see(&c, 1));
    assert_true(hlc_tell(&c) == (5000 << 16) + 8);
    test_now_ms = 1900; /* the group's time goes on: a second, but for a hundredth */
    assert_int_equal(hlc_ms(&c), 5990);
    assert_true(hlc_tell(&c) == 5990 << 16);
    test_now_ms = 100000;
    assert_int_equal(hlc_ms(&c), 5000 + 99100 - 991);
    test_now_ms = 1000000; /* our own clock has come so far */
    assert_true(hlc_tell(&c) == UINT64_C(1000000) << 16);
    assert_true(hlc_next(&c) == (UINT64_C(1000000) << 16) + 2);
    uint64_t day = (uint64_t)(1000000 + DAY_MS) << 16;
    assert_false(hlc_see(&c, day + (1 << 16)));
    assert_true(c.last == (UINT64_C(1000000) << 16) + 2);
    assert_true(hlc_see(&c, day));
    assert_true(c.last == day);
}

static void test_clock_of_a_hold(void **state)
{
    (void)state;
    struct hlc c = {.wall_ms = test_wall_ms};
    test_now_ms = 1000;
    hlc_begin_hold(&c);
    test_now_ms = 2000;
    hlc_begin_hold(&c); /* has begun */
    assert_true(hlc_next(&c) == 1000 << 16);
    assert_int_equal(hlc_hold_ms(&c), 1000);
    assert_int_equal(hlc_ms(&c), 2000);
    /* What others tell is compared with the time that it is: this is not ahead. */
    assert_true(hlc_see(&c, 1800 << 16));
    assert_int_equal(c.ahead_ms, 0);
    assert_true(hlc_next(&c) == (1800 << 16) + 2);
    assert_int_equal(hlc_hold_ms(&c), 1800);
    assert_false(hlc_see(&c, (uint64_t)(2001 + DAY_MS) << 16));
    assert_true(hlc_see(&c, 3000 << 16));
    assert_int_equal(c.ahead_ms, 3000);
    /* A promise is of the time that it is. */
    test_now_ms = 4000;
    uint64_t promised = hlc_tell(&c);
    assert_true(promised == 4980 << 16); /* what was ahead went on, but for a hundredth */
    assert_true(hlc_next(&c) > promised && hlc_next_state(&c) > promised);
    test_now_ms = 1000000;
    hlc_end_hold(&c);
    assert_true(hlc_next(&c) == UINT64_C(1000000) << 16);
    assert_int_equal(hlc_hold_ms(&c), 1000000);
}

static struct origin_id origin_of(char node, uint64_t epoch)
{
    struct origin_id id = {.epoch = epoch};
    memset(id.node, node, sizeof(id.node));
    return id;
}

static void test_origins(void **state)
{
    (void)state;
    struct origins o;
    struct origin_id a = origin_of('a', 5), b = origin_of('b', 1), later = origin_of('a', 9);
    origins_init(&o);
    assert_int_equal(origins_find(&o, &a), 0);
    uint16_t ia = origins_enter(&o, &a), ib = origins_enter(&o, &b);
    assert_int_equal(origins_enter(&o, &a), ia);
    assert_int_equal(origins_arrival(&o, ia, 1), ORIGIN_NEXT);
    assert_int_equal(origins_arrival(&o, ia, 2), ORIGIN_GAP);
    origins_advance(&o, ia, 4);
    assert_int_equal(origins_arrival(&o, ia, 4), ORIGIN_DUPLICATE);
    origins_advance(&o, ia, 3);
    assert_int_equal(origins_at(&o, ia)->position, 4);
    origins_hear(&o, ia, 70, 60);
    assert_int_equal(origins_seen(&o), 0); /* of b nothing is known */
    origins_hear(&o, ib, 50, 40);
    origins_hear(&o, ib, 30, 20);
    assert_int_equal(origins_seen(&o), 50);
    assert_int_equal(origins_stable(&o), 40);
    uint16_t il = origins_enter(&o, &later);
    assert_int_equal(origins_stable(&o), 0);
    origins_hear(&o, il, 90, 45);
    origins_hear(&o, ib, 80, 80);
    assert_int_equal(origins_stable(&o), 45); /* a's first life counts no more */
    assert_int_equal(origins_seen(&o), 80);
    origins_at(&o, ia)->told = 5; /* unless there is more of it */
    assert_int_equal(origins_seen(&o), 70);
    origins_advance(&o, ia, 5);
    assert_int_equal(origins_seen(&o), 80);
    assert_true(origins_compare(&o, dot_of(7, ib, 1), dot_of(8, ia, 1)) < 0);
    assert_true(origins_compare(&o, dot_of(7, ib, 1), dot_of(7, ia, 1)) > 0);
    assert_true(origins_compare(&o, dot_of(7, ia, 1), dot_of(7, il, 1)) < 0);
    assert_true(origins_compare(&o, dot_of(7, ia, 1), dot_of(7, ia, 1)) == 0);
    origins_deinit(&o);
}

static void test_origins_are_bounded(void **state)
{
    (void)state;
    struct origins o;
    struct origin_id id = origin_of('a', 0);
    origins_init(&o);
    /* The search goes from the end, so that filling the table is not quadratic here: the last rows
     * are looked at only for what is there. */
    o.rows = mem_realloc(o.rows, (ORIGINS_MAX + 1) * sizeof(*o.rows));
    memset(o.rows, 0, (ORIGINS_MAX + 1) * sizeof(*o.rows));
    o.capacity = o.count = ORIGINS_MAX;
    assert_int_equal(origins_enter(&o, &id), ORIGINS_MAX);
    id.epoch = 1;
    assert_int_equal(origins_enter(&o, &id), 0);
    origins_deinit(&o);
}

/* A peer without end: so many at once, and more as time goes on, but never all of the table. */
static void test_what_peers_bring_is_bounded(void **state)
{
    (void)state;
    struct origins o;
    struct origin_id id = origin_of('a', 0);
    origins_init(&o);
    assert_int_equal(origins_enter(&o, &id), 1);
    origins_bound(&o);
    for (id.epoch = 1; id.epoch <= ORIGINS_BURST; id.epoch++) {
        assert_int_equal(origins_enter(&o, &id), id.epoch + 1);
    }
    assert_int_equal(origins_enter(&o, &id), 0);
    origins_allow(&o);
    assert_int_equal(origins_enter(&o, &id), ORIGINS_BURST + 2);
    id.epoch = 1;
    assert_int_equal(origins_enter(&o, &id), 2);
    o.rows = mem_realloc(o.rows, (ORIGINS_MAX + 1) * sizeof(*o.rows));
    memset(o.rows, 0, (ORIGINS_MAX + 1) * sizeof(*o.rows));
    o.capacity = ORIGINS_MAX + 1;
    o.count = ORIGINS_MAX - ORIGINS_OWN;
    origins_allow(&o);
    origins_allow(&o);
    id.epoch = 99;
    assert_int_equal(origins_enter(&o, &id), ORIGINS_MAX - ORIGINS_OWN);
    id.epoch++;
    assert_int_equal(origins_enter(&o, &id), 0);
    origins_deinit(&o);
}

static void test_positions_as_bytes(void **state)
{
    (void)state;
    struct origins o, other;
    struct buf bytes = {0};
    struct origin_id a = origin_of('a', 5), b = origin_of('b', UINT64_MAX);
    origins_init(&o);
    origins_init(&other);
    origins_advance(&o, origins_enter(&o, &a), 300);
    origins_advance(&o, origins_enter(&o, &b), ORIGIN_SEQUENCE_MAX);
    struct version_vector *c = version_vector_create(&o);
    version_vector_encode(&o, c, &bytes);
    assert_int_equal(bytes.len, 4 + 2 * VERSION_VECTOR_ROW_BYTES);
    origins_enter(&other, &b); /* indexes differ there */
    struct version_vector *d = version_vector_decode(&other, buf_slice(&bytes));
    assert_non_null(d);
    assert_true(version_vector_at(d, origins_find(&other, &a)) == 300);
    assert_true(version_vector_has(d, dot_of(1, origins_find(&other, &b), 77)));
    assert_false(version_vector_has(d, dot_of(1, origins_find(&other, &a), 301)));
    assert_false(version_vector_has(d, dot_of(1, 40, 1)));
    for (size_t len = 0; len < bytes.len; len++) {
        assert_null(version_vector_decode(&other, slice_of(bytes.data, len)));
    }
    bytes.data[3] = (char)0xff; /* four thousand millions of them */
    assert_null(version_vector_decode(&other, buf_slice(&bytes)));
    mem_free(c);
    mem_free(d);
    buf_deinit(&bytes);
    origins_deinit(&o);
    origins_deinit(&other);
}

static void test_origin_as_text(void **state)
{
    (void)state;
    struct origin_id id = origin_of('\xab', 0x1234), read;
    char text[ORIGIN_CHARS];
    origin_format(&id, text);
    assert_memory_equal(text, "abababababababababababababababab0000000000001234", sizeof(text));
    assert_true(origin_parse(slice_of(text, sizeof(text)), &read));
    assert_memory_equal(&read, &id, sizeof(id));
    assert_false(origin_parse(slice_of(text, sizeof(text) - 1), &read));
    text[5] = 'A';
    assert_false(origin_parse(slice_of(text, sizeof(text)), &read));
    text[5] = '\0';
    assert_false(origin_parse(slice_of(text, sizeof(text)), &read));
}

/* A request out of words with blanks between. */
static struct buf request(const char *line)
{
    struct buf words = {0}, out = {0};
    int count = 0;
    while (*line) {
        size_t len = strcspn(line, " ");
        buf_printf(&words, "$%zu\r\n%.*s\r\n", len, (int)len, line);
        line += len + (line[len] == ' ');
        count++;
    }
    buf_printf(&out, "*%d\r\n", count);
    buf_append_slice(&out, buf_slice(&words));
    buf_deinit(&words);
    return out;
}

static struct unit *unit_of(uint64_t stamp, uint16_t origin, uint64_t sequence, const char *line)
{
    struct buf bytes = request(line);
    struct unit *u = unit_create(dot_of(stamp, origin, sequence), 0, buf_slice(&bytes));
    buf_deinit(&bytes);
    assert_non_null(u);
    return u;
}

static void test_units(void **state)
{
    (void)state;
    static const char *const broken[] = {
        "",
        "*1\r\n",
        "*0\r\n",
        "*1\r\n$3\r\nDEL",
        "PING\r\n",
        "*-1\r\n",
        "*1\r\n$-1\r\n",
        "*1\r\n$3\r\nDELxx",
        "*1 \r\n",
        "*1\r\n$03\r\n",
        "*99999999999\r\n",
        "*2\r\n$6\r\nSELECT\r\n$1\r\nx\r\n",
        "*2\r\n$6\r\nSELECT\r\n$1\r\n1\r\n", /* nothing is done */
        "*1\r\n$18446744073709551615\r\nx\r\n",
    };
    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
        assert_null(unit_create(dot_of(1, 1, 1), 0, slice_cstr(broken[i])));
    }
    struct unit *u =
        unit_create(dot_of(1, 1, 1), 3,
                    slice_cstr("*2\r\n$3\r\nDEL\r\n$1\r\nk\r\n*2\r\n$6\r\nselect\r\n$1\r\n7\r\n"
                               "*1\r\n$8\r\nFLUSHALL\r\n"));
    struct unit_command c = unit_command_before(u), again;
    assert_true(unit_command_next(u, &c));
    assert_true(c.db == 3 && c.number == 0 && c.argc == 2 && slice_equal(c.argv[1], SLICE("k")));
    assert_true(unit_command_next(u, &c));
    assert_true(c.db == 7 && c.number == 1 && c.argc == 1);
    unit_command_at(u, c.offset, &again);
    assert_true(slice_equal(again.argv[0], SLICE("FLUSHALL")));
    unit_command_end(&again);
    assert_false(unit_command_next(u, &c));
    assert_null(c.argv);
    unit_release(u);
}

/* The short way reads a unit as the long one does, and takes no other for a SET alone. */
static void test_a_set_alone(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        bool is_set;
    } units[] = {
        {"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$2\r\nvv\r\n", true},
        {"*3\r\n$3\r\nsEt\r\n$12\r\nabcdefghijkl\r\n$0\r\n\r\n", true},
        {"*3\r\n$3\r\nset\r\n$0\r\n\r\n$0\r\n\r\n", true},
        {"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n*2\r\n$3\r\nDEL\r\n$1\r\nk\r\n", false},
        {"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nw\r\n",
         false},
        {"*5\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n$4\r\nPXAT\r\n$1\r\n9\r\n", false},
        {"*3\r\n$3\r\nDEL\r\n$1\r\nk\r\n$1\r\nl\r\n", false},
        {"*3\r\n$4\r\nSADD\r\n$1\r\nk\r\n$1\r\nl\r\n", false},
        {"*2\r\n$3\r\nDEL\r\n$1\r\nk\r\n", false},
    };
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        struct unit *u =
            unit_create(dot_of(9, 1, 1), 5, slice_of(units[i].bytes, strlen(units[i].bytes)));
        struct unit_command set, c = unit_command_before(u);
        struct effect effect;
        assert_int_equal(unit_is_set(u, &set), units[i].is_set);
        assert_true(unit_command_next(u, &c));
        if (units[i].is_set) {
            assert_int_equal(set.db, 5);
            assert_int_equal(set.number, c.number);
            assert_int_equal(set.offset, c.offset);
            assert_int_equal(set.argc, c.argc);
            for (int w = 0; w < c.argc; w++) {
                assert_ptr_equal(set.argv[w].ptr, c.argv[w].ptr);
                assert_int_equal(set.argv[w].len, c.argv[w].len);
            }
            assert_true(effect_of(c.argc, c.argv, 0, &effect));
            assert_memory_equal(&effect, &effect_of_set, sizeof(effect));
        }
        unit_command_end(&c);
        unit_release(u);
    }
}

static void test_frames(void **state)
{
    (void)state;
    struct buf out = {0};
    struct frame f;
    struct origin_id id = origin_of('a', 77);
    const struct frame_clock clocks[2] = {{1, 7, 2, 3}, {4, 8, UINT64_MAX, 6}};
    const char *error;
    size_t consumed;
    frame_put_origin(&out, 9, &id);
    frame_put_write(&out, 9, ORIGIN_SEQUENCE_MAX, 1u << 31, 65535, SLICE("abc"));
    frame_put_clocks(&out, clocks, 2);
    frame_put_causes(&out, clocks, 2);
    assert_int_equal(out.len, 5 + 26 + 5 + FRAME_WRITE_HEAD_BYTES + 3 + 5 + 48 + 5 + 16);
    struct slice data = buf_slice(&out);
    for (size_t len = 0; len < 31; len++) {
        assert_int_equal(frame_next(slice_of(data.ptr, len), 100, &f, &consumed, &error),
                         FRAME_MORE);
    }
    assert_int_equal(frame_next(data, 100, &f, &consumed, &error), FRAME_WHOLE);
    assert_true(f.kind == 'O' && f.handle == 9 && memcmp(&f.id, &id, sizeof(id)) == 0);
    data = slice_of(data.ptr + consumed, data.len - consumed);
    assert_int_equal(frame_next(data, 21, &f, &consumed, &error), FRAME_BROKEN);
    assert_int_equal(frame_next(data, 22, &f, &consumed, &error), FRAME_WHOLE);
    assert_true(f.kind == 'W' && f.sequence == ORIGIN_SEQUENCE_MAX && f.stamp == 1u << 31 &&
                f.db == 65535 && slice_equal(f.commands, SLICE("abc")));
    data = slice_of(data.ptr + consumed, data.len - consumed);
    assert_int_equal(frame_next(data, 100, &f, &consumed, &error), FRAME_WHOLE);
    assert_true(f.kind == 'C' && f.count == 2 && consumed == data.len - 21);
    assert_true(frame_clock_at(&f, 1).clock == UINT64_MAX && frame_clock_at(&f, 0).seen == 3 &&
                frame_clock_at(&f, 1).position == 8);
    data = slice_of(data.ptr + consumed, data.len - consumed);
    assert_int_equal(frame_next(data, 100, &f, &consumed, &error), FRAME_WHOLE);
    assert_true(f.kind == 'A' && f.count == 2 && consumed == data.len);
    assert_true(frame_cause_at(&f, 0).handle == 1 && frame_cause_at(&f, 0).position == 7 &&
                frame_cause_at(&f, 1).handle == 4 && frame_cause_at(&f, 1).position == 8);
    static const char *const broken[] = {"\0\0\0\0X", "\1\0\0\0X", "\2\0\0\0Cx", "\2\0\0\0Ax",
                                         "\1\0\0\0O", "\1\0\0\0W", "\2\0\0\0Sx"};
    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
        size_t len = broken[i][0] == 2 ? 6 : 5;
        assert_int_equal(frame_next(slice_of(broken[i], len), 100, &f, &consumed, &error),
                         FRAME_BROKEN);
    }
    buf_deinit(&out);
}

/* An origin's last write is kept though it is more than the bound, and for a while. */
static void test_the_last_write_outlives_the_bound(void **state)
{
    (void)state;
    struct origin_log *log = origin_log_create(1);
    const uint64_t ms = (uint64_t)1 << HLC_COUNTER_BITS;
    for (uint64_t s = 1; s <= 3; s++) {
        struct unit *u = unit_create(dot_of(1000 * ms + s, (uint16_t)(1 + s / 3), s < 3 ? s : 1), 0,
                                     SLICE("*1\r\n$8\r\nFLUSHALL\r\n"));
        origin_log_append(log, u);
        unit_release(u);
    }
    assert_null(origin_log_find(log, 1, 1));
    assert_non_null(origin_log_find(log, 1, 2));
    assert_non_null(origin_log_find(log, 2, 1));
    struct unit *later = unit_create(dot_of((1000 + ORIGIN_LOG_LAST_MS + 1) * ms, 2, 2), 0,
                                     SLICE("*1\r\n$8\r\nFLUSHALL\r\n"));
    origin_log_append(log, later);
    unit_release(later);
    assert_null(origin_log_find(log, 1, 2));
    assert_null(origin_log_find(log, 2, 1));
    assert_non_null(origin_log_find(log, 2, 2));
    origin_log_destroy(&log);
}

/* While somebody is sent everything the log is longer, and not without end. */
static void test_what_is_held_is_kept(void **state)
{
    (void)state;
    struct origin_log *log = origin_log_create(1);
    const uint64_t ms = (uint64_t)1 << HLC_COUNTER_BITS;
    const struct slice command = SLICE("*1\r\n$8\r\nFLUSHALL\r\n");
    const size_t each = sizeof(struct unit) + command.len;
    origin_log_hold(log, 10 * each);
    origin_log_hold(log, 10 * each);
    for (uint64_t s = 1; s <= 20; s++) {
        struct unit *u = unit_create(dot_of(1000 * ms + s, 1, s), 0, command);
        if (s == 16) {
            origin_log_let_go(log); /* another one still holds */
        }
        origin_log_append(log, u);
        unit_release(u);
        assert_int_equal(origin_log_bytes(log), (s < 10 ? s : 10) * each);
    }
    assert_true(origin_log_keeps_after(log, 1, 10, 20));
    assert_false(origin_log_keeps_after(log, 1, 9, 20));
    origin_log_let_go(log);
    struct unit *last = unit_create(dot_of(1000 * ms + 21, 1, 21), 0, command);
    origin_log_append(log, last);
    unit_release(last);
    assert_int_equal(origin_log_bytes(log), each);
    origin_log_destroy(&log);
}

static void append_flushes(struct origin_log *log, uint64_t first, uint64_t end)
{
    for (uint64_t s = first; s < end; s++) {
        struct unit *u = unit_create(dot_of(((uint64_t)1000 << HLC_COUNTER_BITS) + s, 1, s), 0,
                                     SLICE("*1\r\n$8\r\nFLUSHALL\r\n"));
        origin_log_append(log, u);
        unit_release(u);
    }
}

/* What a reader has let grow goes when he has read it, though nobody writes any more: a bounded
 * part at a time, and the room of the pointers with it. So does what is beyond a bound that is less
 * now, with the next writes as well. */
static void test_what_nobody_lacks_goes_by_itself(void **state)
{
    (void)state;
    enum { COUNT = 40000, PART = 1000 };
    struct origin_log *log = origin_log_create(0);
    append_flushes(log, 1, 2);
    const size_t each = origin_log_bytes(log), used = mem_used_bytes();
    origin_log_set_bound(log, 100 * each);
    origin_log_read_upto(log, 0, SIZE_MAX);
    append_flushes(log, 2, COUNT + 1);
    assert_int_equal(origin_log_bytes(log), COUNT * each);
    assert_false(origin_log_trim(log, PART)); /* he has not */
    assert_int_equal(origin_log_bytes(log), COUNT * each);
    origin_log_read_upto(log, origin_log_appended(log), SIZE_MAX);
    for (int i = 1; i * PART < COUNT; i++) {
        assert_true(origin_log_trim(log, PART));
        assert_int_equal(origin_log_bytes(log), (size_t)(COUNT - i * PART) * each);
    }
    assert_false(origin_log_trim(log, PART));
    assert_int_equal(origin_log_bytes(log), 100 * each);
    assert_true(origin_log_keeps_after(log, 1, COUNT - 100, COUNT));
    assert_true(mem_used_bytes() < used + (size_t)64 * 1024);

    origin_log_set_bound(log, COUNT * each);
    origin_log_read_upto(log, UINT64_MAX, SIZE_MAX);
    append_flushes(log, COUNT + 1, 2 * COUNT);
    origin_log_set_bound(log, each);
    for (uint64_t next = 2 * COUNT; origin_log_bytes(log) > each; next++) {
        size_t before = origin_log_bytes(log);
        append_flushes(log, next, next + 1);
        assert_true(origin_log_bytes(log) < before);
        assert_true(before - origin_log_bytes(log) < 5000 * each);
    }
    origin_log_destroy(&log);
}

/* What somebody who is there has not read is kept beyond the bound, and not without end. */
static void test_what_is_unread_is_kept(void **state)
{
    (void)state;
    const struct slice command = SLICE("*1\r\n$8\r\nFLUSHALL\r\n");
    const size_t each = sizeof(struct unit) + command.len;
    struct origin_log *log = origin_log_create(2 * each);
    const uint64_t ms = (uint64_t)1 << HLC_COUNTER_BITS;
    assert_true(origin_log_unread(log) == UINT64_MAX);
    for (uint64_t s = 1; s <= 40; s++) {
        struct unit *u = unit_create(dot_of(1000 * ms + s, 1, s), 0, command);
        if (s == 5) { /* four are here by then */
            origin_log_read_upto(log, origin_log_appended(log), 20 * each);
        } else if (s == 36) {
            origin_log_read_upto(log, origin_log_appended(log) - each, 20 * each);
        }
        origin_log_append(log, u);
        unit_release(u);
        if (s == 10) {
            assert_int_equal(origin_log_bytes(log), 8 * each); /* two, and six since */
            assert_int_equal(origin_log_beyond(log), 6 * each);
            assert_int_equal(origin_log_unread(log), 6 * each);
        } else if (s == 35) {
            assert_int_equal(origin_log_bytes(log), 20 * each);
        } else if (s == 36) {
            assert_int_equal(origin_log_bytes(log), 4 * each);
        }
    }
    origin_log_read_upto(log, UINT64_MAX, 20 * each);
    struct unit *u = unit_create(dot_of(1000 * ms + 41, 1, 41), 0, command);
    origin_log_append(log, u);
    unit_release(u);
    assert_int_equal(origin_log_bytes(log), 2 * each);
    assert_int_equal(origin_log_beyond(log), 0);
    origin_log_destroy(&log);
}

/* Of a large bound a part goes at a time, and no more. */
static void test_a_full_log_drops_a_part(void **state)
{
    (void)state;
    const size_t bound = 512 * 1024;
    struct origin_log *log = origin_log_create(bound);
    for (uint64_t s = 1; s <= 8000; s++) {
        for (uint16_t origin = 1; origin <= 2; origin++) {
            struct unit *u = unit_of(2 * s + origin, origin, s, "RPUSH list element");
            size_t before = origin_log_bytes(log), each = sizeof(*u) + u->len;
            origin_log_append(log, u);
            unit_release(u);
            size_t now = origin_log_bytes(log);
            assert_true(now <= bound);
            if (now < before + each) {
                assert_true(now > bound - bound / 64 - each);
            }
        }
    }
    /* The lowest stamps went: both begin at the same place, or next to it. */
    uint64_t gone = 8000;
    while (gone > 0 && origin_log_has_after(log, 1, gone - 1, 8000)) {
        gone--;
    }
    assert_true(gone > 2 && origin_log_has_after(log, 2, gone + 1, 8000));
    assert_false(origin_log_has_after(log, 2, gone - 2, 8000));
    origin_log_destroy(&log);
}

static void test_log(void **state)
{
    (void)state;
    struct origin_log *log = origin_log_create(40 * (sizeof(struct unit) + 20));
    assert_true(origin_log_keeps_after(log, 1, 0, 0));
    assert_false(origin_log_keeps_after(log, 1, 0, 5));
    for (uint64_t s = 1; s <= 30; s++) {
        struct unit *a = unit_of(10 * s, 1, s, "DEL k");
        struct unit *b = unit_of(10 * s + 5000, 2, s, "DEL k");
        origin_log_append(log, a);
        origin_log_append(log, b);
        unit_release(a);
        unit_release(b);
    }
    /* The lower stamps went first: all that is kept of origin 1 is its end. */
    assert_true(origin_log_keeps_after(log, 2, 0, 30));
    assert_false(origin_log_keeps_after(log, 1, 0, 30));
    assert_true(origin_log_keeps_after(log, 1, 30, 30));
    uint64_t kept = 0;
    for (uint64_t s = 1; s <= 30; s++) {
        struct unit *u = origin_log_find(log, 1, s);
        assert_true(!u || dot_sequence(u->dot) == s);
        kept += u != NULL;
        assert_true(origin_log_keeps_after(log, 1, s - 1, 30) == (u != NULL));
    }
    assert_true(kept > 0 && kept < 15);
    assert_true(origin_log_bytes(log) <= 40 * (sizeof(struct unit) + 20));
    origin_log_skip(log, 2, 25); /* nothing is skipped */
    assert_non_null(origin_log_find(log, 2, 25));
    origin_log_skip(log, 2, 100);
    assert_null(origin_log_find(log, 2, 30));
    assert_false(origin_log_keeps_after(log, 2, 99, 100));
    struct unit *next = unit_of(9000, 2, 101, "DEL k");
    origin_log_append(log, next);
    assert_true(origin_log_keeps_after(log, 2, 100, 101));
    unit_release(next);
    origin_log_destroy(&log);
    assert_null(log);
}

static void put_in(struct window *w, uint64_t stamp, uint16_t origin, uint64_t sequence,
                   const char *line)
{
    struct unit *u = unit_of(stamp, origin, sequence, line);
    struct unit_command c = unit_command_before(u);
    struct effect effect;
    while (unit_command_next(u, &c)) {
        for (int i = 0; effect_of(c.argc, c.argv, i, &effect); i++) {
            window_add(w, u, &c, &effect, hash_slice(effect_key(&effect, c.argv)));
        }
    }
    window_close(w, u);
    unit_release(u);
}

static void assert_stamps(const struct window *w, const char *key, const char *stamps)
{
    struct window_view view;
    struct buf got = {0};
    window_view(w, 0, slice_cstr(key), &view);
    for (uint32_t i = 0; i < view.count; i++) {
        buf_printf(&got, "%s%llu", i ? " " : "", (unsigned long long)view.writes[i].dot.stamp);
    }
    assert_string_equal(buf_cstr(&got), stamps);
    window_view_deinit(&view);
    buf_deinit(&got);
}

/* The stamps from that write on; "all": the whole view is to be taken. */
static void assert_behind(const struct window *w, struct dot dot, const char *stamps)
{
    struct window_view view;
    struct buf got = {0};
    if (!window_view_behind(w, 0, SLICE("k"), dot, 0, &view)) {
        assert_string_equal(stamps, "all");
        return;
    }
    for (uint32_t i = 0; i < view.count; i++) {
        buf_printf(&got, "%s%llu", i ? " " : "", (unsigned long long)view.writes[i].dot.stamp);
        assert_null(view.writes[i].argv);
        window_write_open(&view.writes[i]);
        assert_true(view.writes[i].argc >= 2 && slice_equal(view.writes[i].argv[1], SLICE("k")));
    }
    assert_string_equal(buf_cstr(&got), stamps);
    window_view_deinit(&view);
    buf_deinit(&got);
}

static void count_key(int db, struct slice key, void *context)
{
    assert_true(db == 0 && key.len == 1);
    ++*(int *)context;
}

/* A window where writes of two origins come. */
static struct window *window_of_two(struct origins *o, size_t bytes_max)
{
    struct origin_id a = origin_of('a', 1), b = origin_of('b', 1);
    origins_init(o);
    origins_enter(o, &a);
    origins_enter(o, &b);
    return window_create(o, bytes_max);
}

static void test_window(void **state)
{
    (void)state;
    struct origins o;
    struct window *w = window_of_two(&o, 10000);
    put_in(w, 10, 1, 1, "DEL k l");
    put_in(w, 30, 1, 2, "HSET k f v");
    put_in(w, 20, 2, 1, "HSET k g v");
    assert_stamps(w, "k", "10 20 30");
    assert_stamps(w, "l", "10");
    assert_behind(w, dot_of(10, 1, 1), "10 20 30");
    assert_behind(w, dot_of(20, 2, 1), "20 30");
    assert_behind(w, dot_of(30, 1, 2), "30");
    put_in(w, 25, 2, 2, "FLUSHDB");
    assert_behind(w, dot_of(20, 2, 1), "all");
    assert_behind(w, dot_of(30, 1, 2), "30");
    put_in(w, 40, 2, 3, "FLUSHALL");
    assert_stamps(w, "k", "10 20 25 30 40");
    assert_stamps(w, "l", "10 25 40");
    assert_true(window_last(w, 0, SLICE("k")) == 40);
    assert_true(window_last(w, 1, SLICE("k")) == 40);
    assert_true(window_floor(w) == 0);
    int keys = 0;
    window_each(w, 0, count_key, &keys);
    assert_int_equal(keys, 2);

    struct version_vector *none = version_vector_create(&o);
    assert_true(window_holds_beyond(w, none));
    (void)window_sweep(w, 24, UINT64_MAX);
    assert_stamps(w, "k", "25 30 40");
    assert_true(window_floor(w) == 20);
    assert_false(window_holds_beyond(w, none));
    none->sequence[1] = 1;
    none->sequence[2] = 1;
    assert_true(window_holds_beyond(w, none));
    none->sequence[1] = 7;
    window_skip(w, none, 35); /* origin 1's writes came in another way */
    assert_stamps(w, "k", "25 40");
    assert_true(window_floor(w) == 35);
    mem_free(none);
    for (uint64_t s = 4; s < 1000; s++) {
        put_in(w, 100 + s, 2, s, "SET k v");
    }
    assert_true(window_bytes(w) <= 10000);
    assert_true(window_floor(w) > 500);
    (void)window_sweep(w, UINT64_MAX, UINT64_MAX);
    assert_true(window_bytes(w) == 0);
    assert_stamps(w, "k", "");
    window_destroy(&w);
    origins_deinit(&o);
}

/* A part at a time: what is oldest, of whatever origin, so that nothing is here from below the
 * floor. */
static void test_a_window_is_swept_in_parts(void **state)
{
    (void)state;
    struct origins o;
    struct window *w = window_of_two(&o, SIZE_MAX);
    for (uint64_t s = 1; s <= 8000; s++) {
        put_in(w, s, 1 + (s / 7) % 2, s, "RPUSH list element");
    }
    for (uint64_t swept = 100; swept < 4000; swept += 100) {
        assert_true(window_sweep(w, 4000, 100));
        assert_true(window_floor(w) == swept);
        assert_true(window_oldest(w) == swept + 1);
    }
    assert_true(window_sweep(w, 4000, 100)); /* it has not looked whether that was all */
    assert_false(window_sweep(w, 4000, 100));
    assert_true(window_floor(w) == 4000);
    assert_true(window_oldest(w) == 4001);
    /* Where the bound has become less, so with each write. */
    size_t before = window_bytes(w);
    window_set_bound(w, 1000);
    put_in(w, 8001, 1, 8001, "RPUSH list element");
    assert_true(window_bytes(w) > 1000 && window_bytes(w) < before);
    for (uint64_t s = 8002; s <= 8010; s++) {
        put_in(w, s, 1, s, "RPUSH list element");
    }
    assert_true(window_bytes(w) <= 1000);
    assert_true(window_oldest(w) == window_floor(w) + 1);
    /* Who had nothing here any more, and writes again, is one of them again. */
    assert_false(window_sweep(w, 8010, UINT64_MAX));
    assert_true(window_oldest(w) == UINT64_MAX);
    window_set_bound(w, SIZE_MAX);
    put_in(w, 9002, 1, 8011, "RPUSH list element");
    put_in(w, 9001, 2, 9001, "RPUSH list element");
    put_in(w, 9003, 2, 9002, "RPUSH list element");
    for (uint64_t stamp = 9001; stamp <= 9003; stamp++) {
        assert_true(window_oldest(w) == stamp);
        (void)window_sweep(w, stamp, UINT64_MAX);
    }
    assert_true(window_bytes(w) == 0);
    window_destroy(&w);
    origins_deinit(&o);
}

/* Of a large one a part leaves at a time, from both origins alike; of a very large one no more than
 * takes some milliseconds. */
static void test_a_full_window_drops_a_part(void **state)
{
    (void)state;
    const size_t bound = 512 * 1024;
    struct origins o;
    struct window *w = window_of_two(&o, bound);
    size_t drops = 0;
    for (uint64_t s = 1; s <= 16000; s++) {
        size_t before = window_bytes(w);
        put_in(w, s, 1 + s % 2, (s + 1) / 2, "RPUSH list element");
        size_t now = window_bytes(w);
        assert_true(now <= bound);
        if (now < before) {
            drops++;
            assert_true(now > bound - bound / 64 - 200);
            /* What is gone is what was oldest. */
            assert_true(window_oldest(w) == window_floor(w) + 1);
        }
    }
    assert_true(drops > 10 && drops < 16000 / 50);
    window_destroy(&w);
    origins_deinit(&o);
    assert_int_equal(unit_spare((size_t)64 << 10), 0);
    assert_int_equal(unit_spare(bound), bound / 64);
    assert_int_equal(unit_spare((size_t)64 << 30), (size_t)4 << 20);
}

/* So many states of 400 bytes are told, where 100 bytes a tenth of a second are allowed. */
static int states_told(struct conflicts *d, int64_t from_ms, int64_t upto_ms)
{
    struct buf key = {0};
    int db, told = 0;
    bool same;
    for (int64_t now = from_ms; now < upto_ms; now += 10) {
        while (conflicts_take_due(d, now, &db, &key, &same)) {
            conflicts_told(d, 400, now);
            told++;
        }
    }
    buf_deinit(&key);
    return told;
}

static void test_states_have_a_pace(void **state)
{
    (void)state;
    struct conflicts *d = conflicts_create(100, 7);
    for (char name = 'a'; name <= 'z'; name++) {
        conflicts_note(d, 0, slice_of(&name, 1), 0, 1000);
    }
    assert_int_equal(states_told(d, 1000, 1100), 0);
    assert_int_equal(states_told(d, 1100, 1110), 1);
    int in_four_seconds = 1 + states_told(d, 1110, 5100);
    assert_in_range(in_four_seconds, 7, 15); /* 10, and a half by chance */
    assert_int_equal(conflicts_count(d), (size_t)(26 - in_four_seconds));
    conflicts_destroy(&d);
}

/* A large one that was told while readers were late holds up others as long as they are late. */
static void test_a_better_pace_holds_for_what_was_told(void **state)
{
    (void)state;
    struct conflicts *d = conflicts_create(100, 7);
    struct buf key = {0};
    int db;
    bool same;
    conflicts_note(d, 0, SLICE("large"), 0, 1000);
    assert_true(conflicts_take_due(d, 1100, &db, &key, &same));
    conflicts_told(d, 1 << 20, 1100); /* 1,049 seconds, or a half more or less by chance */
    conflicts_note(d, 0, SLICE("k"), 0, 1100);
    assert_false(conflicts_take_due(d, 100000, &db, &key, &same));
    conflicts_set_pace(d, 256 << 10, 100000);
    assert_false(conflicts_take_due(d, 100010, &db, &key, &same));
    assert_true(conflicts_take_due(d, 100700, &db, &key, &same));
    /* And one that they have had for a second. */
    conflicts_note(d, 0, SLICE("k"), 0, 101000);
    conflicts_told(d, (size_t)1 << 30, 101000);
    conflicts_was_read(d);
    assert_false(conflicts_take_due(d, 101800, &db, &key, &same));
    assert_true(conflicts_take_due(d, 101950, &db, &key, &same));
    /* A worse one takes no longer for it. */
    conflicts_told(d, 1 << 20,
                   101950); /* 400 ms, or a half more or less, till less than 100 are left */
    conflicts_note(d, 0, SLICE("k"), 0, 101950);
    conflicts_set_pace(d, 100, 101960);
    assert_false(conflicts_take_due(d, 102050, &db, &key, &same));
    assert_true(conflicts_take_due(d, 102700, &db, &key, &same));
    conflicts_set_pace(d, 0, 102700);
    conflicts_note(d, 0, SLICE("k"), 0, 102700);
    assert_true(conflicts_take_due(d, 103700, &db, &key, &same));
    buf_deinit(&key);
    conflicts_destroy(&d);
}

static void test_conflicts(void **state)
{
    (void)state;
    struct conflicts *d = conflicts_create(0, 0);
    struct buf key = {0};
    int db;
    bool same;
    conflicts_note(d, 3, SLICE("k"), 0, 1000);
    conflicts_note(d, 3, SLICE("l"), 50, 1050);
    assert_false(conflicts_take_due(d, 1099, &db, &key, &same));
    conflicts_note(d, 3, SLICE("k"), 0, 1090);
    assert_true(conflicts_take_due(d, 1150, &db, &key, &same));
    assert_string_equal(buf_cstr(&key), "l");
    assert_int_equal(db, 3);
    /* It goes on and on: told after a second. */
    for (int64_t now = 1150; now < 2000; now += 50) {
        conflicts_note(d, 3, SLICE("k"), 70, now);
        assert_false(conflicts_take_due(d, now, &db, &key, &same));
    }
    conflicts_resolve(d, 3, SLICE("k"), 70); /* not later than the state that was not taken */
    assert_true(conflicts_has(d, 3, SLICE("k")));
    assert_true(conflicts_take_due(d, 2000, &db, &key, &same));
    assert_false(conflicts_has(d, 3, SLICE("k")));
    conflicts_note(d, 0, SLICE(""), 70, 3000);
    conflicts_resolve(d, 0, SLICE(""), 71);
    assert_int_equal(conflicts_count(d), 0);
    /* A digest will do, until there is another conflict. */
    conflicts_note_same(d, 0, SLICE("s"), 3000);
    assert_true(conflicts_take_due(d, 4000, &db, &key, &same) && same);
    conflicts_note_same(d, 0, SLICE("s"), 4000);
    conflicts_note(d, 0, SLICE("s"), 0, 4000);
    conflicts_note_same(d, 0, SLICE("s"), 4000);
    assert_true(conflicts_take_due(d, 5000, &db, &key, &same) && !same);
    /* Who waits for others, though it goes on: until they have seen it and a while more, or for
     * long. */
    for (int round = 0; round < 2; round++) {
        conflicts_note(d, 0, SLICE("w"), 0, 5000);
        conflicts_wait(d, 0, SLICE("w"), 700, 5000);
        for (int64_t now = 5000; now < 5000 + CONFLICT_WAIT_MAX_MS; now += 500) {
            conflicts_all_seen(d, 699);
            assert_false(conflicts_take_due(d, now, &db, &key, &same));
        }
        conflicts_all_seen(d, round ? 700 : 699);
        int64_t end = 4500 + CONFLICT_WAIT_MAX_MS + CONFLICT_PATIENCE_MS;
        assert_false(conflicts_take_due(d, end, &db, &key, &same));
        assert_true(conflicts_take_due(d, end + CONFLICT_QUIET_MS, &db, &key, &same));
    }
    conflicts_note(d, 0, SLICE("left"), 0, 5000);
    buf_deinit(&key);
    conflicts_destroy(&d);
}

/* However many wait for others, one that does not is told in time. */
static void test_conflicts_that_wait_hold_up_no_other(void **state)
{
    (void)state;
    struct conflicts *d = conflicts_create(0, 0);
    struct buf key = {0};
    int db;
    bool same;
    conflicts_note(d, 0, SLICE("k"), 0, 1000);
    for (int i = 0; i < 100000; i++) {
        char name[16];
        snprintf(name, sizeof(name), "w%d", i);
        conflicts_note(d, 0, slice_cstr(name), 0, 1000);
        conflicts_wait(d, 0, slice_cstr(name), 700, 1000);
    }
    conflicts_note(d, 0, SLICE("k"), 0, 1050);
    assert_false(conflicts_take_due(d, 1100, &db, &key, &same));
    assert_true(conflicts_take_due(d, 1200, &db, &key, &same));
    assert_string_equal(buf_cstr(&key), "k");
    buf_deinit(&key);
    conflicts_destroy(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clock),
        cmocka_unit_test(test_clock_of_a_hold),
        cmocka_unit_test(test_origins),
        cmocka_unit_test(test_origins_are_bounded),
        cmocka_unit_test(test_what_peers_bring_is_bounded),
        cmocka_unit_test(test_positions_as_bytes),
        cmocka_unit_test(test_origin_as_text),
        cmocka_unit_test(test_units),
        cmocka_unit_test(test_a_set_alone),
        cmocka_unit_test(test_frames),
        cmocka_unit_test(test_what_is_unread_is_kept),
        cmocka_unit_test(test_a_full_log_drops_a_part),
        cmocka_unit_test(test_log),
        cmocka_unit_test(test_the_last_write_outlives_the_bound),
        cmocka_unit_test(test_what_is_held_is_kept),
        cmocka_unit_test(test_what_nobody_lacks_goes_by_itself),
        cmocka_unit_test(test_window),
        cmocka_unit_test(test_a_window_is_swept_in_parts),
        cmocka_unit_test(test_a_full_window_drops_a_part),
        cmocka_unit_test(test_conflicts),
        cmocka_unit_test(test_conflicts_that_wait_hold_up_no_other),
        cmocka_unit_test(test_states_have_a_pace),
        cmocka_unit_test(test_a_better_pace_holds_for_what_was_told),
    };
    hash_set_secret(1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
