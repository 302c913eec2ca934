/* See missed_takings.h. Looked through as a whole, which only the late and the overtaken cause. */
#include "active/missed_takings.h"

#include "base/mem.h"

void missed_takings_deinit(struct missed_takings *s)
{
    mem_free(s->rows);
    *s = (struct missed_takings){0};
}

static struct missed_taking *row_of(const struct missed_takings *s,
                                    const struct missed_taking *taking)
{
    for (uint32_t i = 0; i < MISSED_TAKINGS_MAX && s->count > 0; i++) {
        struct missed_taking *row = &s->rows[i];
        if (row->element == taking->element && row->dot.place == taking->dot.place &&
            row->number == taking->number) {
            return row;
        }
    }
    return NULL;
}

void missed_takings_note(struct missed_takings *s, const struct missed_taking *taking, bool missed)
{
    struct missed_taking *row = s->count > 0 || missed ? row_of(s, taking) : NULL;
    if (row && !missed) {
        row->element = 0;
        s->count--;
    } else if (!row && missed) {
        if (!s->rows) {
            s->rows = mem_calloc(MISSED_TAKINGS_MAX, sizeof(*s->rows));
        }
        row = &s->rows[s->next];
        s->next = (s->next + 1) % MISSED_TAKINGS_MAX;
        s->count += row->element == 0;
        *row = *taking;
    }
}

const struct missed_taking *missed_takings_of(const struct missed_takings *s,
                                              const struct origins *o, uint64_t element,
                                              struct dot push)
{
    const struct missed_taking *first = NULL;
    for (uint32_t i = 0; i < MISSED_TAKINGS_MAX && s->count > 0; i++) {
        const struct missed_taking *row = &s->rows[i];
        if (row->element == element && origins_compare(o, row->dot, push) > 0 &&
            (!first || origins_compare(o, row->dot, first->dot) < 0)) {
            first = row;
        }
    }
    return first;
}
