/* See earlier_lives.h. */
#include "active/earlier_lives.h"

#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static int compare_lives(const void *a, const void *b)
{
    const struct origin *x = *(const struct origin *const *)a;
    const struct origin *y = *(const struct origin *const *)b;
    int order = memcmp(x->id.node, y->id.node, ORIGIN_NODE_BYTES);
    return order ? order : (x->id.epoch > y->id.epoch) - (x->id.epoch < y->id.epoch);
}

void earlier_lives_forget(const struct origins *o, struct version_vector *known,
                          const struct version_vector *other)
{
    assert(known->count == o->count);
    const struct origin **lives = mem_alloc(o->count * sizeof(*lives));
    uint32_t count = o->count - 1;
    for (uint32_t i = 0; i < count; i++) {
        lives[i] = origins_at(o, (uint16_t)(i + 1));
    }
    qsort(lives, count, sizeof(*lives), compare_lives);
    bool lacks = false;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t index = (uint32_t)(lives[i] - o->rows);
        bool begins =
            i == 0 || memcmp(lives[i]->id.node, lives[i - 1]->id.node, ORIGIN_NODE_BYTES) != 0;
        lacks = lacks && !begins;
        if (lacks) {
            known->sequence[index] = 0;
        } else {
            lacks = version_vector_at(other, index) > known->sequence[index];
        }
    }
    mem_free(lives);
}
