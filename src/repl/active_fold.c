/* The content of a key as a function of its writes (active_merge.h), and running it anew. */
#include "repl/active_merge_priv.h"

#include "base/num.h"

static bool is_whole(const struct active_write *w)
{
    return w->piece.class == ACTIVE_WHOLE || w->piece.class == ACTIVE_FLUSH;
}

bool active_fold_covers(const struct active_merge *m, const struct active_write *state,
                        struct active_dot dot)
{
    uint64_t upto = active_cover_at(state->cover, active_dot_origin(dot));
    uint64_t less = m->broken & ACTIVE_BREAK_COVER ? 1 : 0;
    return active_dot_sequence(dot) + less <= upto;
}

/* The stamp up to which a state has made all void: of the last whole write that its maker knew. */
static uint64_t void_upto(const struct active_write *state)
{
    uint64_t stamp = 0;
    return num_parse_u64(state->argv[ACTIVE_STATE_WHOLE], &stamp) ? stamp : 0;
}

static bool is_on_top(const struct active_merge *m, const struct active_write *state,
                      const struct active_write *w)
{
    return w->dot.stamp > void_upto(state) && !active_fold_covers(m, state, w->dot);
}

/* A whole write on top of a state takes it out of force. */
static bool is_in_force(const struct active_merge *m, const struct active_fold *f, int state,
                        int without)
{
    for (int i = 0; i < (int)f->view.count; i++) {
        const struct active_write *w = &f->view.writes[i];
        if (i != without && is_whole(w) && is_on_top(m, &f->view.writes[state], w)) {
            return false;
        }
    }
    return true;
}

void active_fold_find(const struct active_merge *m, struct active_fold *f, int without)
{
    f->whole = f->base = -1;
    for (int i = (int)f->view.count - 1; i >= 0; i--) {
        if (i != without && f->view.writes[i].piece.class == ACTIVE_STATE &&
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

bool active_fold_is_live(const struct active_merge *m, const struct active_fold *f, int i)
{
    const struct active_write *w = &f->view.writes[i];
    if (w->piece.class == ACTIVE_STATE) {
        return false;
    }
    return f->base >= 0 ? is_on_top(m, &f->view.writes[f->base], w) : i > f->whole;
}

uint64_t active_fold_void_upto(const struct active_view *view)
{
    uint64_t stamp = 0;
    for (uint32_t i = 0; i < view->count; i++) {
        const struct active_write *w = &view->writes[i];
        uint64_t own = is_whole(w)                      ? w->dot.stamp
                       : w->piece.class == ACTIVE_STATE ? void_upto(w)
                                                        : 0;
        stamp = own > stamp ? own : stamp;
    }
    return stamp;
}

bool active_fold_is_possible(const struct active_merge *m, const struct active_fold *f)
{
    if (f->view.count > ACTIVE_REFOLD_MAX) {
        return false;
    }
    if (f->base >= 0) {
        return active_window_holds_beyond(m->window, f->view.writes[f->base].cover);
    }
    return f->whole >= 0 && f->view.writes[f->whole].dot.stamp > active_window_floor(m->window);
}

/* False: the state's bytes are bad, which its maker's fault is; the key is disputed. */
static bool load_state(const struct active_merge *m, const struct active_write *state, int db,
                       struct slice key)
{
    int64_t deadline_ms;
    return num_parse_i64(state->argv[2], &deadline_ms) &&
           m->executor->load(m->context, db, key, deadline_ms, state->argv[3]);
}

void active_fold_run(struct active_merge *m, const struct active_fold *f, int db, struct slice key,
                     int64_t now_ms)
{
    int64_t none = 0;
    int begin = f->base >= 0 ? f->base : f->whole;
    active_disputes_settle(m->disputes, db, key, f->view.writes[begin].dot.stamp);
    if (f->base >= 0) {
        if (!load_state(m, &f->view.writes[f->base], db, key)) {
            active_merge_dispute(m, db, key, now_ms);
        }
    } else {
        m->executor->load(m->context, db, key, none, SLICE(""));
        if (f->view.writes[f->whole].piece.class == ACTIVE_WHOLE) {
            active_merge_run(m, &f->view.writes[f->whole], db, key, now_ms);
        }
    }
    for (int i = 0; i < (int)f->view.count; i++) {
        if (active_fold_is_live(m, f, i)) {
            active_merge_run(m, &f->view.writes[i], db, key, now_ms);
        }
    }
    active_merge_touch(m, db, key, f->view.writes[f->view.count - 1].dot);
}
