/* The content of a key as a function of its writes (merge.h), and running it anew. */
#include "active/merge_priv.h"

#include "base/num.h"

#include <assert.h>

static bool is_whole(const struct window_write *w)
{
    return w->effect.class == EFFECT_WHOLE || w->effect.class == EFFECT_FLUSH;
}

bool merge_fold_covers(const struct merge *m, const struct window_write *state, struct dot dot)
{
    uint64_t upto = version_vector_at(state->cover, dot_origin(dot));
    uint64_t less = m->broken & MERGE_BREAK_COVER ? 1 : 0;
    return dot_sequence(dot) + less <= upto;
}

/* The stamp up to which a state has made all void: of the last whole write that its maker knew. */
static uint64_t void_upto(const struct window_write *state)
{
    uint64_t stamp = 0;
    int at = effect_is_digest(&state->effect) ? state->effect.key + 2 : STATE_COMMAND_WHOLE;
    return num_parse_u64(state->argv[at], &stamp) ? stamp : 0;
}

bool merge_fold_is_on_top(const struct merge *m, const struct window_write *state,
                          const struct window_write *w)
{
    return w->dot.stamp > void_upto(state) && !merge_fold_covers(m, state, w->dot);
}

/* A whole write on top of a state takes it out of force. */
static bool is_in_force(const struct merge *m, const struct merge_fold *f, int state, int without)
{
    for (int i = 0; i < (int)f->view.count; i++) {
        const struct window_write *w = &f->view.writes[i];
        if (i != without && is_whole(w) && merge_fold_is_on_top(m, &f->view.writes[state], w)) {
            return false;
        }
    }
    return true;
}

int merge_fold_place(const struct merge_fold *f, struct dot dot, uint32_t number)
{
    int x = -1;
    for (uint32_t i = 0; i < f->view.count; i++) {
        const struct window_write *w = &f->view.writes[i];
        x = w->dot.place == dot.place && w->number == number ? (int)i : x;
    }
    assert(x >= 0);
    return x;
}

void merge_fold_find(const struct merge *m, struct merge_fold *f, int without)
{
    f->whole = f->base = -1;
    for (int i = (int)f->view.count - 1; i >= 0; i--) {
        if (i != without && f->view.writes[i].effect.class == EFFECT_STATE &&
            is_in_force(m, f, i, without)) {
            f->base = i;
            return;
        }
    }
    for (int i = (int)f->view.count - 1; i >= 0 && f->whole < 0; i--) {
        if (i != without && is_whole(&f->view.writes[i])) {
            f->whole = i;
        }
    }
}

bool merge_fold_is_live(const struct merge *m, const struct merge_fold *f, int i)
{
    const struct window_write *w = &f->view.writes[i];
    if (w->effect.class == EFFECT_STATE) {
        return false;
    }
    return f->base >= 0 ? merge_fold_is_on_top(m, &f->view.writes[f->base], w) : i > f->whole;
}

uint64_t merge_fold_void_upto(const struct window_view *view)
{
    uint64_t stamp = 0;
    for (uint32_t i = 0; i < view->count; i++) {
        const struct window_write *w = &view->writes[i];
        uint64_t own = is_whole(w)                       ? w->dot.stamp
                       : w->effect.class == EFFECT_STATE ? void_upto(w)
                                                         : 0;
        stamp = own > stamp ? own : stamp;
    }
    return stamp;
}

bool merge_fold_is_possible(const struct merge *m, const struct merge_fold *f, int db,
                            struct slice key)
{
    if (f->view.count > MERGE_REFOLD_MAX) {
        return false;
    }
    if (f->base >= 0) {
        const struct window_write *base = &f->view.writes[f->base];
        return !effect_is_digest(&base->effect) && /* its bytes are not known */
               window_holds_for_state(m->window, db, key, base->cover, base->dot.stamp);
    }
    return f->whole >= 0 && f->view.writes[f->whole].dot.stamp > window_floor(m->window);
}

bool merge_fold_is_too_much(const struct merge *m, int db, struct slice key,
                            const struct window_write *state)
{
    struct window_view view;
    uint32_t on_top = 0;
    bool in_force = true;
    window_view(m->window, db, key, &view);
    for (uint32_t i = 0; i < view.count && in_force && view.count > MERGE_REFOLD_MAX; i++) {
        const struct window_write *w = &view.writes[i];
        if (w->effect.class != EFFECT_STATE && merge_fold_is_on_top(m, state, w)) {
            on_top++;
            in_force = !is_whole(w);
        }
    }
    window_view_deinit(&view);
    return in_force && on_top > MERGE_REFOLD_MAX;
}

bool merge_fold_is_sure(const struct merge *m, const struct merge_fold *f, int x, int db,
                        struct slice key)
{
    if (f->base <= x || m->broken & MERGE_BREAK_FLOOR) {
        return true;
    }
    const struct window_write *base = &f->view.writes[f->base];
    return window_holds_for_state(m->window, db, key, base->cover, base->dot.stamp);
}

/* False: the state's bytes are bad, which its maker's fault is; the key is in conflict. */
static bool load_state(const struct merge *m, const struct window_write *state, int db,
                       struct slice key)
{
    int64_t deadline_ms;
    return num_parse_i64(state->argv[2], &deadline_ms) &&
           m->executor->load(m->context, db, key, deadline_ms, state->argv[3]);
}

void merge_fold_run(struct merge *m, const struct merge_fold *f, int db, struct slice key,
                    int64_t now_ms)
{
    int64_t none = 0;
    int begin = f->base >= 0 ? f->base : f->whole;
    conflicts_resolve(m->conflicts, db, key, f->view.writes[begin].dot.stamp);
    if (f->base >= 0) {
        if (!load_state(m, &f->view.writes[f->base], db, key)) {
            merge_conflict(m, db, key, now_ms);
        }
    } else {
        m->executor->load(m->context, db, key, none, SLICE(""));
        if (f->view.writes[f->whole].effect.class == EFFECT_WHOLE) {
            merge_run(m, &f->view.writes[f->whole], db, key, now_ms);
        }
    }
    for (int i = 0; i < (int)f->view.count; i++) {
        if (merge_fold_is_live(m, f, i)) {
            merge_run(m, &f->view.writes[i], db, key, now_ms);
        }
    }
    merge_touch(m, db, key, f->view.writes[f->view.count - 1].dot);
}
