/* Entries that groups have passed by (value/stream_undelivered.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/hash.h"
#include "value/stream_undelivered.h"

#include <stdio.h>
#include <string.h>

static struct entry *stream;
static struct radix *groups;

static struct stream_id id_of(uint64_t ms)
{
    return (struct stream_id){ms, 0};
}

static void insert(uint64_t ms)
{
    const struct slice words[] = {SLICE("f"), SLICE("v")};
    stream_insert(stream, id_of(ms), words, 2);
}

/* What the group has undelivered: "ms ms ...", "none" when there is no consumer for it. */
static const char *undelivered(const struct stream_group *g)
{
    static char text[100];
    const struct stream_consumer *c = stream_undelivered(g);
    size_t used = 0;
    if (!c) {
        return "none";
    }
    text[0] = '\0';
    struct stream_pending_cursor at = stream_pending_seek(g, c, STREAM_ID_MIN);
    for (; stream_pending_valid(&at); stream_pending_next(&at)) {
        const struct stream_pending *p = stream_pending_at(&at);
        assert_int_equal(p->deliveries, 0);
        assert_int_equal(p->delivered_ms, p->id.ms);
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%llu", used ? " " : "",
                                 (unsigned long long)p->id.ms);
    }
    return text;
}

static int begin(void **state)
{
    (void)state;
    hash_set_secret(1);
    stream = stream_create(SLICE("s"));
    groups = stream_groups(stream);
    return 0;
}

static int end(void **state)
{
    (void)state;
    stream_check(stream);
    entry_destroy(&stream);
    return 0;
}

static void test_what_comes_in_below(void **state)
{
    (void)state;
    struct stream_group *g = stream_group_add(groups, SLICE("g"), id_of(10), 0);
    struct stream_group *h = stream_group_add(groups, SLICE("h"), id_of(3), 0);
    struct stream_consumer *c = stream_consumer_add(g, SLICE("c"), 0);
    stream_pending_give(g, c, id_of(7), 1, 1);
    for (uint64_t ms = 2; ms <= 12; ms += 5) { /* 2, 7, 12 */
        insert(ms);
        stream_undelivered_note(groups, id_of(ms));
    }
    assert_string_equal(undelivered(g), "2"); /* 7 was given, 12 is to come */
    assert_string_equal(undelivered(h), "2");
    stream_pending_give(h, stream_consumer_add(h, SLICE("c"), 0), id_of(2), 5, 1);
    stream_undelivered_tidy(h);
    assert_string_equal(undelivered(h), "none");
    stream_undelivered_gone(groups, id_of(7)); /* that one has somebody */
    assert_int_equal(g->pending.count, 2);
    stream_undelivered_gone(groups, id_of(2));
    assert_string_equal(undelivered(g), "none");
    assert_int_equal(g->pending.count, 1);
}

static void test_what_is_passed_by(void **state)
{
    (void)state;
    struct stream_group *g = stream_group_add(groups, SLICE("g"), id_of(2), 0);
    struct stream_consumer *c = stream_consumer_add(g, SLICE("c"), 0);
    for (uint64_t ms = 1; ms <= 9; ms++) {
        insert(ms);
    }
    g->last_id = id_of(6);
    stream_pending_give(g, c, id_of(4), 1, 1);
    stream_undelivered_pass(stream, g, id_of(2));
    assert_string_equal(undelivered(g), "3 5 6");
    stream_undelivered_pass(stream, g, id_of(6)); /* it has not moved */
    stream_undelivered_pass(stream, g, id_of(8));
    assert_string_equal(undelivered(g), "3 5 6");
    stream_undelivered_trimmed(groups, id_of(6));
    assert_string_equal(undelivered(g), "6");
    assert_int_equal(g->pending.count, 2);
    stream_undelivered_trimmed(groups, STREAM_ID_MIN); /* all are gone */
    assert_string_equal(undelivered(g), "none");
    assert_int_equal(g->pending.count, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_comes_in_below, begin, end),
        cmocka_unit_test_setup_teardown(test_what_is_passed_by, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
