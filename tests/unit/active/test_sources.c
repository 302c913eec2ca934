/* From which link an origin's writes are requested (active/sources.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "active/sources.h"

#include "base/mem.h"

#include <string.h>

/* Two links, 0 to the node whose origin it is, 1 to another one. */
struct chooser {
    struct origins origins;
    struct sources wants;
    struct source_link links[2];
    struct receiver takes[2];
    uint16_t self, peer;
    int64_t now_ms;
};

static void chooser_begin(struct chooser *c)
{
    struct origin_id id = {.epoch = 1};
    *c = (struct chooser){.now_ms = 50000};
    origins_init(&c->origins);
    sources_init(&c->wants);
    for (int i = 0; i < 3; i++) {
        memset(id.node, 'a' + i, sizeof(id.node));
        uint16_t index = origins_enter(&c->origins, &id);
        if (i > 0) {
            memcpy(c->links[i - 1].node, id.node, sizeof(id.node));
            c->links[i - 1].up = true;
            c->links[i - 1].take = &c->takes[i - 1];
        }
        c->self = i == 0 ? index : c->self;
        c->peer = i == 1 ? index : c->peer;
    }
}

static void chooser_end(struct chooser *c)
{
    receiver_deinit(&c->takes[0]);
    receiver_deinit(&c->takes[1]);
    sources_deinit(&c->wants);
    origins_deinit(&c->origins);
}

/* The link tells that it has so much of the peer's writes. */
static void chooser_tell(struct chooser *c, int link, uint64_t position)
{
    struct receiver *t = &c->takes[link];
    if (!t->positions) {
        t->count = c->origins.count;
        t->positions = mem_calloc(t->count, sizeof(*t->positions));
    }
    t->positions[c->peer] = position;
    c->links[link].heard_ms = c->now_ms;
}

static void chooser_expect(struct chooser *c, int link)
{
    (void)sources_choose(&c->wants, &c->origins, c->self, c->links, 2, c->now_ms);
    assert_int_equal(c->wants.rows[c->peer].link, link);
    assert_int_equal(c->wants.rows[c->self].link, -1);
}

static void test_how_a_link_is_chosen(void **state)
{
    struct chooser c;
    (void)state;
    chooser_begin(&c);
    chooser_tell(&c, 0, 5);
    chooser_tell(&c, 1, 5);
    chooser_expect(&c, 0); /* equal: the node itself */
    chooser_tell(&c, 1, 9);
    chooser_expect(&c, 0); /* a moment's lead is nothing */
    c.now_ms += SOURCE_SILENT_MS;
    chooser_tell(&c, 1, 9);
    chooser_expect(&c, 1); /* silent, with something it had to bring */
    chooser_tell(&c, 0, 4);
    origins_advance(&c.origins, c.peer, 5);
    chooser_expect(&c, 1); /* it is back, and has less than we have */
    chooser_tell(&c, 0, 5);
    chooser_expect(&c, 0);
    c.now_ms += SOURCE_STALLED_MS;
    chooser_tell(&c, 0, 5);
    chooser_expect(&c, 1); /* lively, but has nothing for us where the other has */
    c.links[1].up = false;
    chooser_expect(&c, 0);
    c.links[0].up = false;
    chooser_expect(&c, -1);
    chooser_end(&c);
}

/* A chain: the peer writes by link 1, whose node is in between, and link 0 is to one behind us,
 * that has it all from us. While link 1 was away, the other one was all there was; it is left as
 * soon as there is something. */
static void test_who_never_brought_anything_is_left(void **state)
{
    struct chooser c;
    struct origin_id far = {.epoch = 1};
    (void)state;
    chooser_begin(&c);
    memset(far.node, 'z', sizeof(far.node));
    c.peer = origins_enter(&c.origins, &far);
    c.links[1].up = false;
    origins_advance(&c.origins, c.peer, 5);
    chooser_tell(&c, 0, 5);
    chooser_expect(&c, 0);
    c.links[1].up = true;
    chooser_tell(&c, 1, 5);
    chooser_expect(&c, 0); /* it has no more than we have */
    chooser_tell(&c, 1, 6);
    chooser_expect(&c, 1);
    chooser_tell(&c, 0, 7);
    chooser_expect(&c, 1); /* this one has something, too */
    origins_advance(&c.origins, c.peer, 6);
    chooser_expect(&c, 0); /* or so it was said */
    bool brought[] = {false, false, false, false, true};
    assert_int_equal(c.peer, 4);
    c.takes[0].brought = brought;
    c.takes[0].brought_count = 5;
    origins_advance(&c.origins, c.peer, 7);
    chooser_tell(&c, 1, 8);
    chooser_expect(&c, 0); /* has brought some, and may have more any moment */
    c.now_ms += SOURCE_STALLED_MS;
    chooser_tell(&c, 0, 7);
    chooser_expect(&c, 1);
    c.takes[0].brought = NULL;
    c.takes[0].brought_count = 0;
    chooser_end(&c);
}

/* A data set that comes by link 1 is followed by what link 1 has then, unless others bring it. */
static void test_a_data_set_is_followed_by_its_links_writes(void **state)
{
    struct chooser c;
    (void)state;
    chooser_begin(&c);
    c.links[1].up = false;
    chooser_tell(&c, 0, 0);
    struct origin_id far = {.epoch = 1};
    memset(far.node, 'z', sizeof(far.node));
    uint16_t third = origins_enter(&c.origins, &far);
    chooser_expect(&c, 0);
    assert_true(sources_from(&c.wants, third, 0));
    c.links[1].up = true;
    c.links[1].heard_ms = c.now_ms;
    sources_prefer(&c.wants, &c.origins, c.links, 2, 1, c.now_ms);
    chooser_expect(&c, 0); /* the node itself */
    assert_true(sources_from(&c.wants, third, 1));
    chooser_end(&c);
}

/* What is requested by a link whose data set is merged stays so, however long that takes: what the
 * peer writes meanwhile waits there, and would be asked for again when he keeps it no more. */
static void test_a_link_that_is_merged_from_is_not_silent(void **state)
{
    struct chooser c;
    (void)state;
    chooser_begin(&c);
    c.links[0].busy = true;
    c.links[1].heard_ms = c.now_ms = c.links[0].heard_ms + 10 * SOURCE_SILENT_MS;
    chooser_expect(&c, 0); /* a new origin, too */
    c.now_ms += 10 * SOURCE_SILENT_MS;
    chooser_tell(&c, 1, 8);
    chooser_expect(&c, 0);
    c.links[0].busy = false;
    chooser_expect(&c, 1);
    chooser_end(&c);
}

/* Who says that he has more, and never brings it, is not waited for for ever. */
static void test_what_never_comes_is_given_up(void **state)
{
    struct chooser c;
    (void)state;
    chooser_begin(&c);
    c.links[1].up = false;
    chooser_tell(&c, 0, 5);
    chooser_expect(&c, 0);
    for (int i = 1; i < 60; i++) {
        c.now_ms += SOURCE_GIVEN_UP_MS / 60;
        chooser_tell(&c, 0, 5 + (uint64_t)i);
        chooser_expect(&c, 0);
        assert_int_equal(origins_at(&c.origins, c.peer)->told, 5 + i);
    }
    c.now_ms += SOURCE_GIVEN_UP_MS / 60;
    chooser_tell(&c, 0, 100);
    chooser_expect(&c, 0);
    assert_int_equal(origins_at(&c.origins, c.peer)->told, 0);
    origins_advance(&c.origins, c.peer, 1);
    chooser_expect(&c, 0);
    assert_int_equal(origins_at(&c.origins, c.peer)->told, 100);
    chooser_end(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_how_a_link_is_chosen),
        cmocka_unit_test(test_who_never_brought_anything_is_left),
        cmocka_unit_test(test_a_data_set_is_followed_by_its_links_writes),
        cmocka_unit_test(test_a_link_that_is_merged_from_is_not_silent),
        cmocka_unit_test(test_what_never_comes_is_given_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
