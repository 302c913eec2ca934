/* See waiting_states.h. */
#include "active/waiting_states.h"

#include "base/mem.h"

#include <string.h>

void waiting_states_deinit(struct waiting_states *s)
{
    mem_free(s->rows);
    *s = (struct waiting_states){0};
}

bool waiting_states_add(struct waiting_states *s, uint64_t number, struct dot cause,
                        int64_t until_ms)
{
    struct waiting_state *last = s->count ? &s->rows[s->count - 1] : NULL;
    if (last && last->number + last->count == number && last->cause.place == cause.place &&
        last->until_ms == until_ms) {
        last->count++;
        return true;
    }
    if (s->count == WAITING_STATES_MAX) {
        return false;
    }
    if (s->count == s->capacity) {
        s->capacity = s->capacity ? 2 * s->capacity : 16;
        s->rows = mem_realloc(s->rows, s->capacity * sizeof(*s->rows));
    }
    s->rows[s->count++] = (struct waiting_state){number, 1, cause, until_ms};
    return true;
}

bool waiting_states_next(struct waiting_states *s, const struct origins *o,
                         const struct version_vector *also, int64_t now_ms,
                         struct waiting_state *row)
{
    for (uint32_t i = 0; i < s->count; i++) {
        struct waiting_state *at = &s->rows[i];
        bool comes = dot_sequence(at->cause) <= origins_at(o, dot_origin(at->cause))->position ||
                     (also && version_vector_has(also, at->cause));
        if (comes || at->until_ms <= now_ms) {
            *row = *at;
            row->cause.place = comes ? row->cause.place : 0;
            at->number++;
            if (--at->count == 0) {
                s->count--;
                memmove(at, at + 1, (s->count - i) * sizeof(*at));
            }
            return true;
        }
    }
    return false;
}
