/* See zsets_operation.h. */
#include "commands/zsets_operation.h"

#include "base/mem.h"

#include <math.h>
#include <stdlib.h>

bool zsets_operation_init(struct zsets_operation *o, const struct zsets_request *request,
                          struct entry *const *values, const double *weights, int count)
{
    assert(count >= 1);
    for (int i = 0; i < count; i++) {
        if (values[i] && entry_type(values[i]) != VALUE_ZSET &&
            entry_type(values[i]) != VALUE_SET) {
            return false;
        }
    }
    *o = (struct zsets_operation){.request = *request, .count = count};
    o->inputs = mem_alloc((size_t)count * sizeof(*o->inputs));
    for (int i = 0; i < count; i++) {
        const struct entry *e = values[i];
        bool is_set = e && entry_type(e) == VALUE_SET;
        uint64_t members = !e ? 0 : is_set ? set_count(e) : zset_count(e);
        o->inputs[i] = (struct zsets_input){e, is_set, weights ? weights[i] : 1.0, members, i};
    }
    zset_draft_init(&o->draft, request->kind == ZSETS_UNION);
    return true;
}

void zsets_operation_want(struct zsets_operation *o, const struct zsets_request *request,
                          const double *weights)
{
    assert(!o->begun && request->kind == o->request.kind);
    o->request = *request;
    for (int i = 0; i < o->count; i++) {
        o->inputs[i].weight = weights[i];
    }
}

void zsets_operation_deinit(struct zsets_operation *o)
{
    zset_draft_deinit(&o->draft);
    mem_free(o->inputs);
}

uint64_t zsets_operation_work(const struct zsets_operation *o)
{
    uint64_t all = 0, least = UINT64_MAX;
    for (int i = 0; i < o->count; i++) {
        uint64_t count = o->inputs[i].count;
        all += count;
        least = count < least ? count : least;
    }
    if (o->request.kind == ZSETS_UNION) {
        return all;
    }
    if (o->request.kind == ZSETS_DIFF) {
        return o->inputs[0].count * (uint64_t)o->count;
    }
    uint64_t limit = o->request.limit;
    return (limit && limit < least ? limit : least) * (uint64_t)o->count;
}

/* ---- inputs ---- */

/* A member that is walked over. */
struct walked {
    struct slice member; /* may stand in what follows */
    double score;
    struct set_member of_set;
    char text[ZSET_TEXT_BYTES];
};

static void walk_begin(struct zsets_operation *o, const struct zsets_input *in)
{
    if (in->is_set) {
        set_walk_begin(&o->walk, in->entry);
    } else {
        o->cursor = zset_cursor_at(in->entry, 0, false);
    }
    o->walking = true;
}

/* The next member of the input being walked; false, once, when there is none. */
static inline bool walk_next(struct zsets_operation *o, struct walked *w)
{
    const struct zsets_input *in = &o->inputs[o->at];
    if (unlikely(!o->walking)) {
        if (!in->entry) {
            return false;
        }
        walk_begin(o, in);
    }
    if (in->is_set) {
        if (!set_walk_next(&o->walk, &w->of_set)) {
            return o->walking = false;
        }
        w->member = set_member_bytes(&w->of_set);
        w->score = 1.0;
        return true;
    }
    if (!zset_cursor_valid(&o->cursor)) {
        return o->walking = false;
    }
    w->member = zset_cursor_member(&o->cursor, w->text);
    w->score = zset_cursor_score(&o->cursor);
    zset_cursor_step(&o->cursor);
    return true;
}

static bool input_score(const struct zsets_input *in, struct slice member, double *score)
{
    if (in->entry && in->is_set) {
        struct set_member m;
        set_member_init(&m, member);
        *score = 1.0;
        return set_contains(in->entry, &m);
    }
    return in->entry && zset_score(in->entry, member, score);
}

/* Smallest first, which the order of sums depends on; equal ones as in the request. */
static int compare_inputs(const void *a, const void *b)
{
    const struct zsets_input *x = a, *y = b;
    if (x->count != y->count) {
        return x->count < y->count ? -1 : 1;
    }
    return x->place - y->place;
}

/* ---- scores ---- */

/* What is no score (0 * inf, inf - inf) counts as 0. */
static double score_of(double value)
{
    return isnan(value) ? 0 : value;
}

/* `b` may be no number: it makes a sum 0, and is neither smaller nor greater than `a`. */
static double aggregated(enum zsets_aggregate how, double a, double b)
{
    switch (how) {
    case ZSETS_MIN:
        return b < a ? b : a;
    case ZSETS_MAX:
        return b > a ? b : a;
    case ZSETS_SUM:
        break;
    }
    return score_of(a + b);
}

/* ---- what becomes of a member: false at the end ---- */

static bool unite(struct zsets_operation *o, struct slice member, double score)
{
    double value = score_of(score * o->inputs[o->at].weight);
    double *there = zset_draft_find_or_add(&o->draft, member, value);
    if (there) {
        *there = aggregated(o->request.aggregate, *there, value);
    }
    return !o->draft.lost;
}

static bool intersect(struct zsets_operation *o, struct slice member, double score)
{
    double value = score_of(score * o->inputs[0].weight);
    for (int k = 1; k < o->count; k++) {
        double other;
        if (!input_score(&o->inputs[k], member, &other)) {
            return true;
        }
        value = aggregated(o->request.aggregate, value, other * o->inputs[k].weight);
    }
    if (o->request.counting) {
        return ++o->found != o->request.limit;
    }
    zset_draft_add(&o->draft, member, value);
    return !o->draft.lost;
}

static bool subtract(struct zsets_operation *o, struct slice member, double score)
{
    double other;
    for (int k = 1; k < o->count; k++) {
        if (input_score(&o->inputs[k], member, &other)) {
            return true;
        }
    }
    zset_draft_add(&o->draft, member, score);
    return !o->draft.lost;
}

bool zsets_operation_run(struct zsets_operation *o, uint64_t steps)
{
    static bool (*const takers[])(struct zsets_operation *, struct slice, double) = {
        [ZSETS_UNION] = unite, [ZSETS_INTER] = intersect, [ZSETS_DIFF] = subtract};
    bool (*take)(struct zsets_operation *, struct slice, double) = takers[o->request.kind];
    int inputs = o->request.kind == ZSETS_UNION ? o->count : 1;
    if (!o->begun && o->request.kind != ZSETS_DIFF) {
        qsort(o->inputs, (size_t)o->count, sizeof(*o->inputs), compare_inputs);
    }
    o->begun = true;
    for (; o->at < inputs; o->at++) {
        struct walked w;
        while (steps > 0 && walk_next(o, &w)) {
            steps--;
            if (!take(o, w.member, w.score)) {
                return true;
            }
        }
        if (steps == 0) {
            return false;
        }
    }
    return true;
}
