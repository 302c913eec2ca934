/* See window_index.h. */
#include "active/window_index.h"

#include "base/mem.h"

#include <assert.h>
#include <string.h>

/* Effects of a segment: as many as there are when it is begun, within these. The heads, of which
 * each write touches another one, are to stay in a core's cache: 64 KiB at most. */
#define SEGMENT_MIN ((uint32_t)512)
#define SEGMENT_MAX ((uint32_t)1 << 15)
_Static_assert(SEGMENT_MAX <= UINT16_MAX, "a head is the place of an effect");

/* In one block, which comes and goes with bursts of writes. */
static struct window_segment *segment_create(uint64_t base, uint32_t capacity)
{
    size_t effects = capacity * sizeof(struct window_effect), heads = capacity * sizeof(uint16_t);
    struct window_segment *s = mem_alloc_reused(sizeof(*s) + effects + heads);
    *s = (struct window_segment){.base = base, .capacity = capacity};
    s->heads = (uint16_t *)(s->effects + capacity);
    memset(s->heads, 0, heads);
    return s;
}

static void let_go(struct window_effect *effect)
{
    effect->unit = NULL;
    if (unlikely(effect->cover)) {
        mem_free(effect->cover);
        effect->cover = NULL;
    }
}

void window_index_deinit(struct window_index *x)
{
    for (uint32_t i = 0; i < x->count; i++) {
        struct window_segment *s = x->segments[i];
        for (uint32_t at = 0; at < s->used; at++) {
            if (s->effects[at].unit) {
                let_go(&s->effects[at]);
            }
        }
        mem_free_reused(s);
    }
    mem_free(x->segments);
    *x = (struct window_index){0};
}

void window_index_make_room(struct window_index *x)
{
    uint32_t capacity = SEGMENT_MIN;
    while (capacity < x->here && capacity < SEGMENT_MAX) {
        capacity *= 2;
    }
    if (x->count == x->capacity) {
        x->capacity = x->capacity ? 2 * x->capacity : 8;
        x->segments = mem_realloc(x->segments, x->capacity * sizeof(*x->segments));
    }
    x->segments[x->count++] = segment_create(x->next, capacity);
}

/* The segment that has the number, or the first behind it; x->count: none. */
static uint32_t segment_of(const struct window_index *x, uint64_t number)
{
    uint32_t i = 0;
    while (i < x->count && number >= x->segments[i]->base + x->segments[i]->used) {
        i++;
    }
    return i;
}

static struct window_effect *effect_at(const struct window_index *x, uint32_t segment,
                                       uint64_t number)
{
    struct window_segment *s = x->segments[segment];
    return &s->effects[number - s->base];
}

const struct window_effect *window_index_at(const struct window_index *x, uint64_t number)
{
    uint32_t i = segment_of(x, number);
    if (i == x->count || number < x->segments[i]->base || !effect_at(x, i, number)->unit) {
        return NULL;
    }
    return effect_at(x, i, number);
}

struct window_effect *window_index_open(struct window_index *x, uint64_t number)
{
    uint32_t i = segment_of(x, number);
    assert(i < x->count);
    return effect_at(x, i, number);
}

const struct window_effect *window_index_remove(struct window_index *x, uint64_t number)
{
    uint32_t i = segment_of(x, number);
    assert(i < x->count);
    struct window_segment *s = x->segments[i];
    struct window_effect *removed = &s->effects[number - s->base];
    x->gone += --s->here == 0;
    x->here--;
    let_go(removed);
    return removed;
}

/* True when it can be filled anew, which a segment of the smallest kind is, instead of freed. */
static bool begin_again(const struct window_index *x, struct window_segment *s)
{
    if (s->capacity > SEGMENT_MIN || s != x->segments[x->count - 1]) {
        return false;
    }
    s->base = x->next;
    s->used = 0;
    memset(s->heads, 0, s->capacity * sizeof(*s->heads));
    return true;
}

void window_index_trim(struct window_index *x)
{
    uint32_t kept = 0;
    if (x->gone == 0) {
        return; /* as after nearly every write where the window is full */
    }
    x->gone = 0;
    for (uint32_t i = 0; i < x->count; i++) {
        struct window_segment *s = x->segments[i];
        if (s->here > 0 || begin_again(x, s)) {
            x->segments[kept++] = s;
        } else {
            mem_free_reused(s);
        }
    }
    x->count = kept;
}

const struct window_effect *window_index_from(const struct window_index *x, uint64_t *number)
{
    for (uint32_t i = segment_of(x, *number); i < x->count; i++) {
        const struct window_segment *s = x->segments[i];
        *number = *number > s->base ? *number : s->base;
        for (; *number < s->base + s->used; ++*number) {
            const struct window_effect *found = effect_at(x, i, *number);
            if (found->unit) {
                return found;
            }
        }
    }
    return NULL;
}

struct window_walk window_walk_begin(const struct window_index *x, uint64_t hash)
{
    return (struct window_walk){x, hash, x->count + 1, 0};
}

const struct window_effect *window_walk_next(struct window_walk *walk)
{
    for (;;) {
        while (walk->at == 0) {
            if (walk->segment <= 1) {
                return NULL;
            }
            const struct window_segment *s = walk->index->segments[--walk->segment - 1];
            walk->at = s->heads[walk->hash & (s->capacity - 1)];
        }
        const struct window_effect *found =
            &walk->index->segments[walk->segment - 1]->effects[walk->at - 1];
        walk->at = found->before;
        if (found->unit && found->hash == walk->hash) {
            return found;
        }
    }
}
