/* See set.h: random members. Nothing here allocates by a count that a client chose: what is set
 * aside follows the set's size. */
#include "base/mem.h"
#include "base/rand.h"
#include "ds/intset.h"
#include "ds/listpack.h"
#include "value/set_priv.h"

#include <string.h>

/* A sample of less than this part of a table is drawn member by member; a larger one by one walk.
 */
#define SAMPLE_BY_DRAWING_PART 3

/* Members of a table drawn at once: as many as stay in the first cache level until they are shown.
 */
#define DRAWN_TOGETHER 64

void set_random(const struct entry *e, struct set_member *m)
{
    enum encoding encoding = entry_encoding(e);
    assert(set_count(e) > 0);
    if (encoding == ENCODING_TABLE) {
        set_member_of_element(m, table_entry(*table_random(entry_pointer(e))));
    } else if (encoding == ENCODING_INTSET) {
        set_member_init_integer(m, intset_random(entry_pointer(e)));
    } else {
        const unsigned char *lp = entry_pointer(e);
        set_member_of_packed(m, listpack_seek(lp, (int64_t)rand_below(listpack_count(lp))));
    }
}

/* Walks once and takes each member with the chance that leaves exactly `count` taken. */
static void sample_by_walking(const struct entry *e, uint64_t count, set_visit_fn visit,
                              void *context)
{
    uint64_t left = set_count(e);
    struct set_walk w;
    struct set_member m;
    set_walk_begin(&w, e);
    while (count > 0 && set_walk_next(&w, &m)) {
        if (rand_below(left--) < count) {
            visit(&m, context);
            count--;
        }
    }
    assert(count == 0);
}

/* Draws until `count` different ones were met; what was met stands in an open table of slots'
 * contents. */
static void sample_by_drawing(const struct table *t, uint64_t count, set_visit_fn visit,
                              void *context)
{
    size_t places = 16;
    while (places < 2 * count) {
        places *= 2;
    }
    uintptr_t *met = mem_calloc(places, sizeof(*met));
    while (count > 0) {
        uintptr_t element = (uintptr_t)table_entry(*table_random(t));
        size_t i = (size_t)((element * 0x9e3779b97f4a7c15u) >> 32) & (places - 1);
        while (met[i] != 0 && met[i] != element) {
            i = (i + 1) & (places - 1);
        }
        if (met[i] == 0) {
            struct set_member m;
            met[i] = element;
            set_member_of_element(&m, (const void *)element);
            visit(&m, context);
            count--;
        }
    }
    mem_free(met);
}

void set_sample(const struct entry *e, uint64_t count, set_visit_fn visit, void *context)
{
    uint64_t size = set_count(e);
    assert(count <= size);
    if (!set_is_packed(e) && count < size / SAMPLE_BY_DRAWING_PART) {
        sample_by_drawing(entry_pointer(e), count, visit, context);
    } else {
        sample_by_walking(e, count, visit, context);
    }
}

/* Finding an element of a listpack by its index is a walk: the places are noted first. */
static void draw_packed(const unsigned char *lp, uint64_t count, set_visit_fn visit, void *context)
{
    uint32_t size = listpack_count(lp), i = 0;
    const unsigned char **places = mem_alloc(size * sizeof(*places));
    for (const unsigned char *at = listpack_first(lp); at; at = listpack_next(lp, at)) {
        places[i++] = at;
    }
    assert(i == size);
    for (; count > 0; count--) {
        struct set_member m;
        set_member_of_packed(&m, places[rand_below(size)]);
        visit(&m, context);
    }
    mem_free(places);
}

static void draw_from_table(const struct table *t, uint64_t count, set_visit_fn visit,
                            void *context)
{
    while (count > 0) {
        uintptr_t *slots[DRAWN_TOGETHER];
        unsigned some = count < DRAWN_TOGETHER ? (unsigned)count : DRAWN_TOGETHER;
        table_draw(t, slots, some);
        for (unsigned i = 0; i < some; i++) {
            struct set_member m;
            set_member_of_element(&m, table_entry(*slots[i]));
            visit(&m, context);
        }
        count -= some;
    }
}

void set_draw(const struct entry *e, uint64_t count, set_visit_fn visit, void *context)
{
    enum encoding encoding = entry_encoding(e);
    assert(set_count(e) > 0);
    if (encoding == ENCODING_TABLE) {
        draw_from_table(entry_pointer(e), count, visit, context);
        return;
    }
    if (encoding == ENCODING_LISTPACK && count > 1) {
        draw_packed(entry_pointer(e), count, visit, context);
        return;
    }
    for (; count > 0; count--) {
        struct set_member m;
        set_random(e, &m);
        visit(&m, context);
    }
}
