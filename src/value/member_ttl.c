/* See member_ttl.h. The heap is an array of pointers in which nobody is later than its two children
 * (of place i: 2i+1, 2i+2); each deadline knows its place, so that one found by its member can be
 * taken out of the middle. */
#include "value/member_ttl.h"

#include "base/hash.h"
#include "base/mem.h"
#include "ds/table.h"

#include <stddef.h>
#include <string.h>

/* A deadline is an entry of the table, 16-byte aligned for its tags. */
struct deadline {
    int64_t at_ms;
    uint32_t place; /* in the heap */
    uint32_t len;
    char bytes[];
};

struct member_ttl {
    void *value; /* what the entry points to without this struct; first, entry.h relies on it */
    struct table members;
    struct deadline **heap;
    uint32_t count, capacity;
};

static_assert(offsetof(struct member_ttl, value) == 0, "entry_pointer looks here");

/* Places of the heap at first. */
#define FIRST_CAPACITY 4

static struct slice deadline_member(const struct deadline *d)
{
    return slice_of(d->bytes, d->len);
}

static size_t deadline_block_bytes(const struct deadline *d)
{
    return sizeof(*d) + d->len;
}

static uint64_t deadline_hash(const void *entry)
{
    return hash_slice(deadline_member(entry));
}

static bool deadline_matches(const void *entry, const void *key)
{
    return slice_equal(deadline_member(entry), *(const struct slice *)key);
}

/* ---- the struct in between ---- */

/* The word of an external entry as it is, without the step through our struct. */
static inline struct member_ttl *ttl_of(const struct entry *e)
{
    assert(e->flags & ENTRY_MEMBER_TTL);
    return (struct member_ttl *)(uintptr_t)entry_integer(e);
}

static struct member_ttl *ttl_insert(struct entry *e)
{
    struct member_ttl *t = mem_calloc(1, sizeof(*t));
    assert(!member_ttl_any(e));
    t->value = entry_pointer(e);
    table_init(&t->members, deadline_hash);
    entry_set_integer(e, (int64_t)(uintptr_t)t);
    e->flags |= ENTRY_MEMBER_TTL;
    return t;
}

static void free_deadline(void *entry, void *context)
{
    struct deadline *d = entry;
    (void)context;
    mem_free_sized(d, deadline_block_bytes(d));
}

void member_ttl_drop_all(struct entry *e)
{
    struct member_ttl *t = ttl_of(e);
    entry_set_integer(e, (int64_t)(uintptr_t)t->value);
    e->flags &= (uint8_t)~ENTRY_MEMBER_TTL;
    table_deinit(&t->members, free_deadline, NULL);
    mem_free(t->heap);
    mem_free(t);
}

/* ---- the heap ---- */

static inline void heap_put(struct member_ttl *t, uint32_t place, struct deadline *d)
{
    t->heap[place] = d;
    d->place = place;
}

static void heap_rise(struct member_ttl *t, struct deadline *d)
{
    uint32_t place = d->place;
    while (place > 0 && t->heap[(place - 1) / 2]->at_ms > d->at_ms) {
        heap_put(t, place, t->heap[(place - 1) / 2]);
        place = (place - 1) / 2;
    }
    heap_put(t, place, d);
}

static void heap_sink(struct member_ttl *t, struct deadline *d)
{
    uint64_t place = d->place;
    for (;;) {
        uint64_t child = 2 * place + 1;
        if (child + 1 < t->count && t->heap[child + 1]->at_ms < t->heap[child]->at_ms) {
            child++;
        }
        if (child >= t->count || t->heap[child]->at_ms >= d->at_ms) {
            break;
        }
        heap_put(t, (uint32_t)place, t->heap[child]);
        place = child;
    }
    heap_put(t, (uint32_t)place, d);
}

static void heap_resize(struct member_ttl *t, uint32_t capacity)
{
    t->heap = mem_realloc(t->heap, (size_t)capacity * sizeof(struct deadline *));
    t->capacity = capacity;
}

static void heap_add(struct member_ttl *t, struct deadline *d)
{
    assert(t->count < MEMBER_TTL_MAX_COUNT);
    if (t->count == t->capacity) {
        uint64_t wanted = t->capacity ? 2 * (uint64_t)t->capacity : FIRST_CAPACITY;
        heap_resize(t, (uint32_t)(wanted < MEMBER_TTL_MAX_COUNT ? wanted : MEMBER_TTL_MAX_COUNT));
    }
    heap_put(t, t->count++, d);
    heap_rise(t, d);
}

static void heap_remove(struct member_ttl *t, const struct deadline *d)
{
    struct deadline *last = t->heap[--t->count];
    assert(t->heap[d->place] == d);
    if (last != d) {
        heap_put(t, d->place, last);
        heap_rise(t, last);
        heap_sink(t, last);
    }
    if (t->capacity > FIRST_CAPACITY && t->count < t->capacity / 4) {
        heap_resize(t, t->capacity / 2);
    }
}

/* ---- asking ---- */

static struct deadline *find(const struct entry *e, struct slice member)
{
    if (!member_ttl_any(e)) {
        return NULL;
    }
    uintptr_t *slot =
        table_find(&ttl_of(e)->members, hash_slice(member), deadline_matches, &member);
    return slot ? table_entry(*slot) : NULL;
}

bool member_ttl_supported(const struct entry *e)
{
    return value_ops_of[entry_type(e)]->remove != NULL;
}

uint64_t member_ttl_count(const struct entry *e)
{
    return member_ttl_any(e) ? ttl_of(e)->count : 0;
}

int64_t member_ttl_next_ms(const struct entry *e)
{
    return member_ttl_any(e) ? ttl_of(e)->heap[0]->at_ms : ENTRY_NO_EXPIRY;
}

int64_t member_ttl_get(const struct entry *e, struct slice member)
{
    const struct deadline *d = find(e, member);
    return d ? d->at_ms : ENTRY_NO_EXPIRY;
}

bool member_ttl_all_due(const struct entry *e, int64_t now_ms)
{
    if (!entry_is_over(member_ttl_next_ms(e), now_ms)) {
        return false;
    }
    const struct member_ttl *t = ttl_of(e);
    if (t->count < value_ops_of[entry_type(e)]->count(e)) {
        return false;
    }
    /* The latest is among the leaves, the second half. */
    for (uint32_t i = t->count; i-- > t->count / 2;) {
        if (t->heap[i]->at_ms > now_ms) {
            return false;
        }
    }
    return true;
}

/* ---- changing ---- */

bool member_ttl_set(struct entry *e, struct slice member, int64_t at_ms)
{
    struct deadline *d = find(e, member);
    assert(at_ms != ENTRY_NO_EXPIRY && member_ttl_supported(e));
    assert(value_ops_of[entry_type(e)]->has(e, member));
    if (d) {
        d->at_ms = at_ms;
        heap_rise(ttl_of(e), d);
        heap_sink(ttl_of(e), d);
        return true;
    }
    if (member.len > MEMBER_TTL_MAX_BYTES || member_ttl_count(e) == MEMBER_TTL_MAX_COUNT) {
        return false;
    }
    struct member_ttl *t = member_ttl_any(e) ? ttl_of(e) : ttl_insert(e);
    d = mem_alloc(sizeof(*d) + member.len);
    d->at_ms = at_ms;
    d->len = (uint32_t)member.len;
    if (member.len > 0) {
        memcpy(d->bytes, member.ptr, member.len);
    }
    table_insert(&t->members, hash_slice(member), (uintptr_t)d);
    heap_add(t, d);
    return true;
}

/* Takes a deadline out, which is the caller's then; with the last one the struct goes. */
static void detach(struct entry *e, struct deadline *d)
{
    struct member_ttl *t = ttl_of(e);
    struct slice member = deadline_member(d);
    uint64_t hash = hash_slice(member);
    uintptr_t *slot = table_find(&t->members, hash, deadline_matches, &member);
    assert(slot && table_entry(*slot) == d);
    table_remove(&t->members, hash, slot);
    heap_remove(t, d);
    if (t->count == 0) {
        member_ttl_drop_all(e);
    }
}

bool member_ttl_drop(struct entry *e, struct slice member)
{
    struct deadline *d = find(e, member);
    if (d) {
        detach(e, d);
        free_deadline(d, NULL);
    }
    return d != NULL;
}

uint64_t member_ttl_remove_due(struct entry *e, int64_t now_ms, uint64_t max,
                               member_ttl_visit visit, void *context)
{
    uint64_t removed = 0;
    while (removed < max && entry_is_over(member_ttl_next_ms(e), now_ms)) {
        struct deadline *d = ttl_of(e)->heap[0];
        detach(e, d);
        bool was_there = value_ops_of[entry_type(e)]->remove(e, deadline_member(d));
        assert(was_there);
        (void)was_there;
        if (visit) {
            visit(deadline_member(d), d->at_ms, context);
        }
        free_deadline(d, NULL);
        removed++;
    }
    return removed;
}

/* ---- whole collections ---- */

void member_ttl_each(const struct entry *e, member_ttl_visit visit, void *context)
{
    for (uint32_t i = 0; member_ttl_any(e) && i < ttl_of(e)->count; i++) {
        visit(deadline_member(ttl_of(e)->heap[i]), ttl_of(e)->heap[i]->at_ms, context);
    }
}

void member_ttl_copy(struct entry *to, const struct entry *from)
{
    const struct member_ttl *t = ttl_of(from);
    for (uint32_t i = 0; i < t->count; i++) {
        bool done = member_ttl_set(to, deadline_member(t->heap[i]), t->heap[i]->at_ms);
        assert(done);
        (void)done;
    }
}

size_t member_ttl_memory_bytes(const struct entry *e, size_t samples)
{
    if (!member_ttl_any(e)) {
        return 0;
    }
    const struct member_ttl *t = ttl_of(e);
    size_t bytes = 0;
    uint32_t seen = 0;
    for (; seen < t->count && (samples == 0 || seen < samples); seen++) {
        bytes += mem_good_size(deadline_block_bytes(t->heap[seen]));
    }
    return mem_usable_size(t) + mem_usable_size(t->heap) + table_memory_bytes(&t->members) +
           (size_t)((double)bytes / seen * t->count);
}

void member_ttl_check(const struct entry *e)
{
    if (!member_ttl_any(e)) {
        return;
    }
    const struct member_ttl *t = ttl_of(e);
    const struct value_ops *ops = value_ops_of[entry_type(e)];
    table_check(&t->members);
    assert(t->count > 0 && t->count == t->members.count && t->count <= t->capacity);
    assert(t->count <= ops->count(e));
    for (uint32_t i = 0; i < t->count; i++) {
        const struct deadline *d = t->heap[i];
        assert(d->place == i && find(e, deadline_member(d)) == d);
        assert(i == 0 || t->heap[(i - 1) / 2]->at_ms <= d->at_ms);
        assert(ops->has(e, deadline_member(d)));
        (void)d;
    }
    (void)ops;
}
