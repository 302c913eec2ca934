/* The keys with the largest figures: see top.h. */
#include "tools/cli/top.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/text.h"

void top_init(struct top *t, size_t max)
{
    memset(t, 0, sizeof(*t));
    t->max = max;
}

void top_deinit(struct top *t)
{
    for (size_t i = 0; i < t->count; i++) {
        free(t->list[i].name);
    }
    free(t->list);
    top_init(t, t->max);
}

/* How many entries are at least as large. */
static size_t place_of(const struct top *t, unsigned long long figure)
{
    size_t low = 0;
    size_t high = t->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (t->list[middle].figure >= figure) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

bool top_offer(struct top *t, unsigned long long figure, const char *name, size_t len,
               const void *tag)
{
    assert(t->count <= t->max && t->count <= t->capacity);
    size_t place = place_of(t, figure);
    if (place == t->max) {
        return false;
    }
    if (t->count == t->max) {
        t->count--;
        free(t->list[t->count].name);
    } else if (t->count == t->capacity) {
        t->capacity = t->capacity == 0 ? 16 : t->capacity * 2;
        t->list = tool_realloc(t->list, t->capacity * sizeof(*t->list));
    }
    memmove(&t->list[place + 1], &t->list[place], (t->count - place) * sizeof(*t->list));
    t->list[place] = (struct top_entry){figure, tool_copy(name, len), len, tag};
    t->count++;
    return true;
}
