/* Drawing random fields of a hash; see hash.h. */
#include "value/hash_priv.h"

#include "base/mem.h"
#include "base/rand.h"

/* With fewer than every third field wanted, drawing until enough are different takes less than half
 * as many draws again. */
#define SPARSE_FACTOR 3

/* Fields of a table drawn at once. */
#define DRAWN_TOGETHER 64

static void collect(const struct hash_item *item, void *context)
{
    const void ***next = context;
    *(*next)++ = item->at;
}

static void draw_from_table(const struct table *t, const void **places, size_t count)
{
    for (size_t drawn = 0; drawn < count;) {
        uintptr_t *slots[DRAWN_TOGETHER];
        size_t some = count - drawn < DRAWN_TOGETHER ? count - drawn : DRAWN_TOGETHER;
        table_draw(t, slots, (unsigned)some);
        for (size_t i = 0; i < some; i++) {
            places[drawn++] = table_entry(*slots[i]);
        }
    }
}

void hash_draw(const struct entry *e, const void **places, size_t count)
{
    uint64_t len = hash_len(e);
    assert(len > 0);
    if (!hash_is_packed(e)) {
        draw_from_table(hash_table(e), places, count);
        return;
    }
    if (count == 1) {
        places[0] = pairs_seek(hash_packed(e), (uint32_t)rand_below(len));
        return;
    }
    const void **all = mem_alloc(len * sizeof(*all));
    const void **next = all;
    hash_each(e, collect, &next);
    assert(next == all + len);
    for (size_t i = 0; i < count; i++) {
        places[i] = all[rand_below(len)];
    }
    mem_free(all);
}

/* ---- different ones ---- */

struct selection {
    const void **places;
    uint64_t wanted, left;
};

/* Takes the next of the `left` fields with the odds that leave every set of `wanted` equally
 * likely. */
static void select_or_skip(const struct hash_item *item, void *context)
{
    struct selection *s = context;
    if (rand_below(s->left) < s->wanted) {
        *s->places++ = item->at;
        s->wanted--;
    }
    s->left--;
}

/* A set of addresses: open addressing, `mask` + 1 places of which at most half are taken. */
static bool add_address(const void **set, uint64_t mask, const void *address)
{
    uint64_t i = ((uint64_t)(uintptr_t)address * 0x9e3779b97f4a7c15u) >> 20;
    for (;; i++) {
        const void **place = &set[i & mask];
        if (*place == address) {
            return false;
        }
        if (!*place) {
            *place = address;
            return true;
        }
    }
}

static void draw_sparse(const struct table *t, const void **places, size_t count)
{
    uint64_t capacity = 4;
    while (capacity < 2 * count) {
        capacity *= 2;
    }
    const void **set = mem_calloc(capacity, sizeof(*set));
    for (size_t found = 0; found < count;) {
        const void *place = table_entry(*table_random(t));
        if (add_address(set, capacity - 1, place)) {
            places[found++] = place;
        }
    }
    mem_free(set);
}

void hash_draw_distinct(const struct entry *e, const void **places, size_t count)
{
    uint64_t len = hash_len(e);
    assert(count <= len);
    if (!hash_is_packed(e) && count < len / SPARSE_FACTOR) {
        draw_sparse(hash_table(e), places, count);
        return;
    }
    struct selection s = {places, count, len};
    hash_each(e, select_or_skip, &s);
    assert(s.wanted == 0 && s.left == 0);
}
