/* See hot_keys.h. */
#include "active/hot_keys.h"

#include "base/hash.h"
#include "base/mem.h"

#include <assert.h>
#include <string.h>

/* Keys at most, a power of two; and in how many of these places a key may stand. */
#define SLOTS 1024
#define WAYS 8
/* Writes and members that a key has room for at first; powers of two. */
#define WRITES_MIN 64
#define HEADS_MIN 64
/* So many writes that nobody asked about make a key cold: more than the work of making it hot. */
#define COLD_AFTER ((uint32_t)64 * 1024)

bool hot_is_plain(const struct effect *effect)
{
    if (effect->type == EFFECT_LIST) {
        return true; /* those with members; all others are of no type */
    }
    return (effect->class == EFFECT_ASSIGN || effect->class == EFFECT_ADD) &&
           effect->flags & (EFFECT_GIVES | EFFECT_TAKES) &&
           !(effect->flags & (EFFECT_DATES | EFFECT_EXPIRES));
}

uint64_t hot_member(struct slice member)
{
    return hash_slice(member);
}

/* ---- keys ---- */

static void destroy(struct hot_key *k)
{
    buf_deinit(&k->name);
    mem_free(k->writes);
    mem_free(k->heads);
    mem_free(k);
}

void hot_keys_deinit(struct hot_keys *h)
{
    for (uint32_t i = 0; h->slots && i < SLOTS; i++) {
        if (h->slots[i]) {
            destroy(h->slots[i]);
        }
    }
    mem_free(h->slots);
    *h = (struct hot_keys){0};
}

/* The i-th slot where a key with that hash may stand. */
static struct hot_key **slot_of(const struct hot_keys *h, uint64_t hash, uint32_t i)
{
    return &h->slots[(hash + i) & (SLOTS - 1)];
}

struct hot_key *hot_keys_find(const struct hot_keys *h, uint64_t hash, uint32_t db,
                              struct slice name)
{
    for (uint32_t i = 0; h->count > 0 && i < WAYS; i++) {
        struct hot_key *k = *slot_of(h, hash, i);
        if (k && k->hash == hash && k->db == db && slice_equal(buf_slice(&k->name), name)) {
            return k;
        }
    }
    return NULL;
}

void hot_keys_want(struct hot_keys *h, struct hot_key *k)
{
    k->wanted = ++h->wants;
    k->idle = 0;
}

static void empty(struct hot_keys *h, struct hot_key **slot)
{
    h->writes -= (*slot)->capacity;
    destroy(*slot);
    *slot = NULL;
    h->count--;
}

void hot_keys_drop(struct hot_keys *h, struct hot_key *k)
{
    uint32_t i = 0;
    while (*slot_of(h, k->hash, i) != k) {
        i++;
        assert(i < WAYS);
    }
    empty(h, slot_of(h, k->hash, i));
}

/* A free one, if need be that of the key that nobody has wanted for longest. */
static struct hot_key **free_slot(struct hot_keys *h, uint64_t hash)
{
    struct hot_key **oldest = slot_of(h, hash, 0);
    for (uint32_t i = 0; i < WAYS; i++) {
        struct hot_key **slot = slot_of(h, hash, i);
        if (!*slot) {
            return slot;
        }
        oldest = (*slot)->wanted < (*oldest)->wanted ? slot : oldest;
    }
    empty(h, oldest);
    return oldest;
}

struct hot_key *hot_keys_make(struct hot_keys *h, uint64_t hash, uint32_t db, struct slice name)
{
    if (!h->slots) {
        h->slots = mem_calloc(SLOTS, sizeof(*h->slots));
    }
    struct hot_key **slot = free_slot(h, hash);
    struct hot_key *k = *slot = mem_calloc(1, sizeof(*k));
    h->count++;
    k->hash = hash;
    k->db = db;
    buf_append_slice(&k->name, name);
    hot_keys_want(h, k);
    k->capacity = WRITES_MIN;
    h->writes += k->capacity;
    k->writes = mem_alloc(k->capacity * sizeof(*k->writes));
    k->heads_capacity = HEADS_MIN;
    k->heads = mem_calloc(k->heads_capacity, sizeof(*k->heads));
    return k;
}

void hot_keys_forget(struct hot_keys *h, uint64_t floor)
{
    for (uint32_t i = 0; h->count > 0 && i < SLOTS; i++) {
        if (h->slots[i] && h->slots[i]->last.stamp <= floor) {
            empty(h, &h->slots[i]);
        }
    }
}

bool hot_key_is_cold(const struct hot_key *k)
{
    return k->idle > COLD_AFTER;
}

/* ---- writes ---- */

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* The member's head; one that is 0 stands where it is to be put. */
static uint32_t *head_of(const struct hot_key *k, uint64_t member)
{
    uint32_t at = (uint32_t)member;
    for (;; at++) {
        uint32_t *head = &k->heads[at & (k->heads_capacity - 1)];
        if (*head == 0 || k->writes[*head - 1].member == member) {
            return head;
        }
    }
}

static void grow_heads(struct hot_key *k)
{
    mem_free(k->heads);
    k->heads_capacity *= 2;
    k->heads = mem_calloc(k->heads_capacity, sizeof(*k->heads));
    for (uint32_t i = 0; i < k->count; i++) { /* so the newest of each is there in the end */
        *head_of(k, k->writes[i].member) = i + 1;
    }
}

/* Puts it behind the others; there is room. */
static void link_write(struct hot_key *k, struct hot_write write)
{
    uint32_t *head = head_of(k, write.member);
    write.before = *head;
    for (int kind = 0; kind < HOT_KINDS; kind++) {
        uint64_t before = *head ? k->writes[*head - 1].latest[kind] : 0;
        bool is_of_kind = (write.does & (1U << kind)) != 0;
        write.latest[kind] = is_of_kind && write.stamp > before ? write.stamp : before;
    }
    k->members += *head == 0;
    k->writes[k->count++] = write;
    *head = k->count;
    if (2 * k->members > k->heads_capacity) {
        grow_heads(k);
    }
}

/* What is not above the floor has no say any more. */
static void drop_below(struct hot_key *k, uint64_t floor)
{
    uint32_t count = k->count;
    k->count = k->members = 0;
    memset(k->heads, 0, k->heads_capacity * sizeof(*k->heads));
    for (uint32_t i = 0; i < count; i++) {
        if (k->writes[i].stamp > floor) {
            link_write(k, k->writes[i]); /* at i or before it */
        }
    }
}

/* All that it had, with what came last, is as if it were not plain. */
static void begin_anew(struct hot_keys *h, struct hot_key *k, uint64_t stamp)
{
    k->other = later(k->other, later(k->last.stamp, stamp));
    h->writes -= k->capacity - WRITES_MIN;
    k->count = k->members = 0;
    k->capacity = WRITES_MIN;
    k->heads_capacity = HEADS_MIN;
    k->writes = mem_realloc(k->writes, k->capacity * sizeof(*k->writes));
    mem_free(k->heads);
    k->heads = mem_calloc(k->heads_capacity, sizeof(*k->heads));
}

/* For one more of a write with that stamp. */
static void make_room(struct hot_keys *h, struct hot_key *k, uint64_t stamp, struct hot_room room)
{
    if (k->count < k->capacity) {
        return;
    }
    drop_below(k, room.floor);
    if (k->count <= k->capacity / 2) {
        return;
    }
    if (h->writes + k->capacity > room.writes_max || k->capacity > UINT32_MAX / 4) {
        begin_anew(h, k, stamp);
        return;
    }
    h->writes += k->capacity;
    k->capacity *= 2;
    k->writes = mem_realloc(k->writes, k->capacity * sizeof(*k->writes));
}

static unsigned does_of(const struct effect *effect)
{
    return effect->class == EFFECT_ADD ? HOT_ADDS
                                       : (effect->flags & EFFECT_GIVES ? HOT_GIVES : 0) |
                                             (effect->flags & EFFECT_TAKES ? HOT_TAKES : 0) |
                                             (effect->flags & EFFECT_LEFT ? HOT_LEFT : 0);
}

static void add_plain(struct hot_keys *h, struct hot_key *k, const struct window_effect *e,
                      const struct slice *argv, struct hot_room room)
{
    struct hot_write write = {
        .effect = e, .stamp = e->unit->dot.stamp, .does = does_of(&e->effect)};
    if (k->type != EFFECT_ANY && k->type != e->effect.type) {
        k->other = later(k->other, later(k->last.stamp, write.stamp));
    }
    k->type = e->effect.type;
    for (int i = 0; i < e->effect.count || i == 0; i++) {
        write.member =
            hot_member(e->effect.count > 0 ? effect_member(&e->effect, argv, i) : slice_of("", 0));
        make_room(h, k, write.stamp, room);
        link_write(k, write);
    }
}

static bool is_later(const struct origins *o, struct dot dot, struct dot other)
{
    return other.stamp == 0 || origins_compare(o, dot, other) > 0;
}

static void add_other(struct hot_key *k, const struct origins *o, const struct window_effect *e)
{
    uint64_t stamp = e->unit->dot.stamp;
    k->other = later(k->other, stamp);
    if (e->effect.class == EFFECT_WHOLE) {
        k->whole = later(k->whole, stamp);
    }
    if (e->effect.flags & EFFECT_EXPIRES) {
        k->expires = later(k->expires, stamp);
    }
    if (e->effect.class == EFFECT_STATE && is_later(o, e->unit->dot, k->state_dot)) {
        k->state = e;
        k->state_dot = e->unit->dot;
    }
}

void hot_key_add(struct hot_keys *h, struct hot_key *k, const struct origins *o,
                 const struct window_effect *effect, const struct slice *argv, struct hot_room room)
{
    if (hot_is_plain(&effect->effect)) {
        add_plain(h, k, effect, argv, room);
    } else {
        add_other(k, o, effect);
    }
    if (effect->effect.flags & EFFECT_INEXACT) {
        k->inexact = later(k->inexact, effect->unit->dot.stamp);
    }
    if (is_later(o, effect->unit->dot, k->last)) {
        k->last = effect->unit->dot;
    }
    k->idle++;
}

struct hot_write *hot_key_named(const struct hot_key *k, uint64_t member)
{
    uint32_t head = *head_of(k, member);
    return head ? &k->writes[head - 1] : NULL;
}

struct hot_write *hot_key_before(const struct hot_key *k, const struct hot_write *write)
{
    return write->before ? &k->writes[write->before - 1] : NULL;
}
