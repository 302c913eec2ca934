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

const struct origin **earlier_lives_order(const struct origins *o)
{
    const struct origin **lives = mem_alloc(o->count * sizeof(*lives));
    for (uint32_t i = 1; i < o->count; i++) {
        lives[i - 1] = origins_at(o, (uint16_t)i);
    }
    qsort(lives, o->count - 1, sizeof(*lives), compare_lives);
    return lives;
}

bool earlier_lives_is_first(const struct origin *const *lives, uint32_t i)
{
    return i == 0 || memcmp(lives[i]->id.node, lives[i - 1]->id.node, ORIGIN_NODE_BYTES) != 0;
}

void earlier_lives_forget(const struct origins *o, struct version_vector *known,
                          const struct version_vector *other)
{
    assert(known->count == o->count);
    const struct origin **lives = earlier_lives_order(o);
    bool lacks = false;
    for (uint32_t i = 0; i < o->count - 1; i++) {
        uint32_t index = (uint32_t)(lives[i] - o->rows);
        if (lacks && !earlier_lives_is_first(lives, i)) {
            known->sequence[index] = 0;
        } else {
            lacks = version_vector_at(other, index) > known->sequence[index];
        }
    }
    mem_free(lives);
}
