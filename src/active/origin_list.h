/* A few of many origins, by index, in no order: those that have something here, so that nobody
 * looks through all that there ever were (each start of a node makes one). State: its owner's. */
#ifndef ACTIVE_ORIGIN_LIST_H
#define ACTIVE_ORIGIN_LIST_H

#include "base/mem.h"

#include <assert.h>
#include <stdint.h>

/* Zero: empty. */
struct origin_list {
    uint16_t *rows; /* `count` of them; owned */
    uint32_t count, capacity;
};

/* It is not in it yet. */
static inline void origin_list_add(struct origin_list *l, uint16_t origin)
{
    if (l->count == l->capacity) {
        l->capacity = l->capacity ? 2 * l->capacity : 8;
        l->rows = mem_realloc(l->rows, l->capacity * sizeof(*l->rows));
    }
    l->rows[l->count++] = origin;
}

/* It is in it. */
static inline void origin_list_remove(struct origin_list *l, uint16_t origin)
{
    uint32_t at = 0;
    while (l->rows[at] != origin) {
        at++;
        assert(at < l->count);
    }
    l->rows[at] = l->rows[--l->count];
}

static inline void origin_list_deinit(struct origin_list *l)
{
    mem_free(l->rows);
    *l = (struct origin_list){0};
}

#endif
