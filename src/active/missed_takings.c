/* See missed_takings.h. Rows in the order in which they came, chained by what is taken: each taking
 * that is run asks, and mostly there is none. */
#include "active/missed_takings.h"

#include "base/mem.h"

void missed_takings_deinit(struct missed_takings *s)
{
    mem_free(s->rows);
    mem_free(s->chains);
    *s = (struct missed_takings){0};
}

static uint16_t *chain_of(const struct missed_takings *s, uint64_t element)
{
    return &s->chains[(element >> 1) % MISSED_TAKINGS_MAX];
}

/* Where the number of the taking's row stands, or the end of its chain. */
static uint16_t *find(const struct missed_takings *s, const struct missed_taking *taking)
{
    uint16_t *at = chain_of(s, taking->element);
    for (; *at != 0; at = &s->rows[*at - 1].next) {
        const struct missed_taking *row = &s->rows[*at - 1];
        if (row->element == taking->element && row->dot.place == taking->dot.place &&
            row->number == taking->number) {
            break;
        }
    }
    return at;
}

/* Takes the row out of its chain, whose number stands at `at`. */
static void let_go(struct missed_takings *s, uint16_t *at)
{
    struct missed_taking *row = &s->rows[*at - 1];
    *at = row->next;
    row->element = 0;
    s->count--;
}

static void add(struct missed_takings *s, const struct missed_taking *taking)
{
    struct missed_taking *row = &s->rows[s->next];
    if (row->element != 0) {
        let_go(s, find(s, row));
    }
    uint16_t *first = chain_of(s, taking->element);
    *row = *taking;
    row->next = *first;
    *first = (uint16_t)(s->next + 1);
    s->next = (s->next + 1) % MISSED_TAKINGS_MAX;
    s->count++;
}

void missed_takings_note(struct missed_takings *s, const struct missed_taking *taking, bool missed)
{
    if (s->count == 0 && !missed) {
        return;
    }
    if (!s->rows) {
        s->rows = mem_calloc(MISSED_TAKINGS_MAX, sizeof(*s->rows));
        s->chains = mem_calloc(MISSED_TAKINGS_MAX, sizeof(*s->chains));
    }
    uint16_t *at = find(s, taking);
    if (*at != 0 && !missed) {
        let_go(s, at);
    } else if (*at == 0 && missed) {
        add(s, taking);
    }
}

const struct missed_taking *missed_takings_of(const struct missed_takings *s,
                                              const struct origins *o, uint64_t element,
                                              struct dot push)
{
    const struct missed_taking *first = NULL;
    for (uint16_t i = s->count > 0 ? *chain_of(s, element) : 0; i != 0; i = s->rows[i - 1].next) {
        const struct missed_taking *row = &s->rows[i - 1];
        if (row->element == element && origins_compare(o, row->dot, push) > 0 &&
            (!first || origins_compare(o, row->dot, first->dot) < 0)) {
            first = row;
        }
    }
    return first;
}
