/* The intset: binary search over an array whose width is that of its widest member. It widens when
 * a wider value comes and never narrows, as in Redis, whose bytes it shares. */
#include "ds/intset.h"

#include "base/mem.h"
#include "base/rand.h"

#include <assert.h>
#include <string.h>

static_assert(sizeof(struct intset) == 8, "values start at byte 8");

static inline uint32_t width_of(int64_t value)
{
    return value == (int16_t)value ? 2 : value == (int32_t)value ? 4 : 8;
}

static inline int64_t load(const char *values, uint32_t width, uint32_t index)
{
    if (width == 2) {
        int16_t v;
        memcpy(&v, values + (size_t)index * 2, sizeof(v));
        return v;
    }
    if (width == 4) {
        int32_t v;
        memcpy(&v, values + (size_t)index * 4, sizeof(v));
        return v;
    }
    int64_t v;
    memcpy(&v, values + (size_t)index * 8, sizeof(v));
    return v;
}

/* The low bytes are the value, whatever the width: the format is little-endian. */
static inline void store(char *values, uint32_t width, uint32_t index, int64_t value)
{
    memcpy(values + (size_t)index * width, &value, width);
}

static size_t bytes_for(uint32_t width, uint32_t count)
{
    return sizeof(struct intset) + (size_t)width * count;
}

/* Where `value` is (true) or belongs (false). */
static bool search(const struct intset *s, int64_t value, uint32_t *at)
{
    uint32_t low = 0, high = s->count;
    /* Ascending insertion is common. */
    if (high > 0 && value > load(s->values, s->width, high - 1)) {
        *at = high;
        return false;
    }
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (load(s->values, s->width, middle) < value) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    *at = low;
    return low < s->count && load(s->values, s->width, low) == value;
}

struct intset *intset_create(void)
{
    struct intset *s = mem_alloc(sizeof(*s));
    s->width = 2;
    s->count = 0;
    return s;
}

void intset_destroy(struct intset *s)
{
    mem_free(s);
}

struct intset *intset_copy(const struct intset *s)
{
    return memcpy(mem_alloc(intset_bytes(s)), s, intset_bytes(s));
}

/* Adds a value that is wider than all the others: it is the first or the last. */
static struct intset *add_wider(struct intset *s, int64_t value, uint32_t width)
{
    uint32_t old_width = s->width, count = s->count;
    uint32_t shift = value < 0 ? 1 : 0;
    s = mem_realloc(s, bytes_for(width, count + 1));
    /* From the back, since each value moves towards the end. */
    for (uint32_t i = count; i-- > 0;) {
        store(s->values, width, i + shift, load(s->values, old_width, i));
    }
    store(s->values, width, shift ? 0 : count, value);
    s->width = width;
    s->count = count + 1;
    return s;
}

struct intset *intset_add(struct intset *s, int64_t value, bool *added)
{
    uint32_t width = width_of(value);
    *added = true;
    assert(s->count < UINT32_MAX);
    if (width > s->width) {
        return add_wider(s, value, width);
    }
    uint32_t at;
    if (search(s, value, &at)) {
        *added = false;
        return s;
    }
    s = mem_realloc(s, bytes_for(s->width, s->count + 1));
    char *place = s->values + (size_t)at * s->width;
    memmove(place + s->width, place, (size_t)(s->count - at) * s->width);
    store(s->values, s->width, at, value);
    s->count++;
    return s;
}

struct intset *intset_remove(struct intset *s, int64_t value, bool *removed)
{
    uint32_t at;
    *removed = width_of(value) <= s->width && search(s, value, &at);
    if (!*removed) {
        return s;
    }
    char *place = s->values + (size_t)at * s->width;
    s->count--;
    memmove(place, place + s->width, (size_t)(s->count - at) * s->width);
    return mem_realloc(s, bytes_for(s->width, s->count));
}

bool intset_contains(const struct intset *s, int64_t value)
{
    uint32_t at;
    return width_of(value) <= s->width && search(s, value, &at);
}

int64_t intset_at(const struct intset *s, uint32_t index)
{
    assert(index < s->count);
    return load(s->values, s->width, index);
}

int64_t intset_random(const struct intset *s)
{
    assert(s->count > 0);
    return load(s->values, s->width, (uint32_t)rand_below(s->count));
}

size_t intset_bytes(const struct intset *s)
{
    return bytes_for(s->width, s->count);
}

bool intset_validate(const void *bytes, size_t size)
{
    struct intset head;
    if (size < sizeof(head)) {
        return false;
    }
    memcpy(&head, bytes, sizeof(head));
    if ((head.width != 2 && head.width != 4 && head.width != 8) ||
        size != bytes_for(head.width, head.count)) {
        return false;
    }
    const char *values = (const char *)bytes + sizeof(head);
    for (uint32_t i = 1; i < head.count; i++) {
        if (load(values, head.width, i - 1) >= load(values, head.width, i)) {
            return false;
        }
    }
    return true;
}
