/* SORT: the events that STORE fires, and that selecting a part of many elements is sorting them. */
#include "commands/caller.h"
#include "commands/commands.h"
#include "commands/sort_priv.h"

#include "base/rand.h"
#include "keyspace/event.h"

#include <string.h>

static struct buf events;

static void note_event(const char *event, int db, struct slice key, unsigned mask)
{
    (void)db;
    (void)mask;
    buf_printf(&events, "%s(%.*s) ", event, (int)key.len, key.ptr);
}

static void assert_events(const char *line, const char *expected)
{
    buf_clear(&events);
    caller_run(line);
    assert_string_equal(buf_cstr(&events), expected);
}

static void test_events(void **state)
{
    (void)state;
    caller_run("del l d e");
    caller_run("rpush l 3 1 2");
    assert_events("sort l", "");
    assert_events("sort_ro l desc", "");
    assert_events("sort l store d", "new(d) sortstore(d) ");
    assert_events("sort l store d limit 1 1", "sortstore(d) ");
    assert_events("sort l store l desc", "sortstore(l) ");
    assert_events("sort l by nosort limit 0 0 store d", "del(d) ");
    assert_events("sort nothing store d", "");
    caller_run("rpush e x");
    assert_events("sort e store l", "");
    assert_events("sort nothing store l", "del(l) ");
}

static void test_patterns(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum sort_pattern_kind kind;
        const char *prefix, *suffix, *field;
    } cases[] = {
        {"#", SORT_PATTERN_ELEMENT, "", "", ""},
        {"", SORT_PATTERN_NOTHING, "", "", ""},
        {"##", SORT_PATTERN_NOTHING, "", "", ""},
        {"a->b", SORT_PATTERN_NOTHING, "", "", ""},
        {"*", SORT_PATTERN_STRING, "", "", ""},
        {"a*b*", SORT_PATTERN_STRING, "a", "b*", ""},
        {"a*b->", SORT_PATTERN_STRING, "a", "b->", ""},
        {"*-", SORT_PATTERN_STRING, "", "-", ""},
        {"a*b->f", SORT_PATTERN_FIELD, "a", "b", "f"},
        {"a->*->b->c", SORT_PATTERN_FIELD, "a->", "", "b->c"},
        {"*->->", SORT_PATTERN_FIELD, "", "", "->"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sort_pattern p = sort_pattern_parse(slice_cstr(cases[i].text));
        assert_int_equal(p.kind, cases[i].kind);
        assert_true(p.prefix.len == strlen(cases[i].prefix));
        assert_memory_equal(p.prefix.ptr ? p.prefix.ptr : "", cases[i].prefix, p.prefix.len);
        assert_true(p.suffix.len == strlen(cases[i].suffix));
        assert_memory_equal(p.suffix.ptr ? p.suffix.ptr : "", cases[i].suffix, p.suffix.len);
        assert_true(p.field.len == strlen(cases[i].field));
        assert_memory_equal(p.field.ptr ? p.field.ptr : "", cases[i].field, p.field.len);
    }
}

static void fill(struct sort_item *items, uint64_t count, unsigned kinds)
{
    for (uint64_t i = 0; i < count; i++) {
        items[i] = (struct sort_item){
            .bytes = SLICE("same"), .score = (double)((i * 7919) % kinds), .place = i};
    }
}

/* Every part of every size, of many equal scores and of few: what belongs there stands there. */
static void test_parts(void **state)
{
    (void)state;
    enum { MOST = 150 };
    struct sort_item part[MOST], whole[MOST];
    for (unsigned round = 0; round < 400; round++) {
        uint64_t count = rand_below(MOST) + 1;
        uint64_t start = rand_below(count + 1);
        uint64_t wanted = rand_below(count - start + 1);
        struct sort_order order = {.descending = round % 2};
        unsigned kinds = round % 3 ? 3 : 1009;
        fill(whole, count, kinds);
        sort_items(&order, whole, count, 0, count);
        fill(part, count, kinds);
        sort_items(&order, part, count, start, wanted);
        for (uint64_t i = start; i < start + wanted; i++) {
            assert_int_equal(part[i].place, whole[i].place);
        }
        for (uint64_t i = 1; i < count; i++) {
            bool ordered = order.descending ? whole[i - 1].score >= whole[i].score
                                            : whole[i - 1].score <= whole[i].score;
            assert_true(ordered);
            assert_true(whole[i - 1].score != whole[i].score ||
                        whole[i - 1].place < whole[i].place);
        }
    }
}

static int setup(void **state)
{
    int result = caller_setup(state);
    const char *error;
    struct slice all = SLICE("KEAn");
    for (const struct option *o = event_options; o->name; o++) {
        option_store_initial(o);
        if (strcmp(o->name, "notify-keyspace-events") == 0 && !option_store(o, &all, 1, &error)) {
            return -1;
        }
    }
    event_add_listener(note_event);
    return result;
}

static int teardown(void **state)
{
    buf_deinit(&events);
    return caller_teardown(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_events),
        cmocka_unit_test(test_patterns),
        cmocka_unit_test(test_parts),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
