/* MERGE, one key at a time: theirs against ours (README, "First contact"). Theirs is the fold of
 * the writes that their positions cover; what we have beyond those is ours alone. While the window
 * has all of that, theirs with ours on top is the fold of both, if ours is later; otherwise, and
 * where the window lacks some, a choice is made and told as a state. */
#include "repl/active_merge_priv.h"

struct meeting_key {
    const struct active_meeting *meeting;
    int db;
    struct slice key;
    struct active_dot dot;
    int64_t deadline_ms;
    struct slice payload;
    int64_t now_ms;
};

static bool is_ours_alone(const struct meeting_key *k, const struct active_write *w)
{
    return !active_cover_has(k->meeting->positions, w->dot);
}

static bool same_content(const struct active_merge *m, const struct meeting_key *k)
{
    int64_t deadline_ms = 0;
    struct buf ours = {0};
    bool there = k->payload.len > 0;
    bool here = m->executor->dump(m->context, k->db, k->key, &deadline_ms, &ours);
    bool same = here == there;
    if (here && there) {
        same = deadline_ms == k->deadline_ms &&
               (slice_equal(buf_slice(&ours), k->payload) ||
                (m->executor->same && m->executor->same(m->context, k->db, k->key, k->payload)));
    }
    buf_deinit(&ours);
    return same;
}

/* True when the positions cover the dot; of a key without one nobody does. */
static bool is_covered(const struct active_cover *positions, struct active_dot dot)
{
    return dot.stamp > 0 && active_cover_has(positions, dot);
}

static bool take_theirs(struct active_merge *m, const struct meeting_key *k)
{
    if (!same_content(m, k) &&
        !m->executor->load(m->context, k->db, k->key, k->deadline_ms, k->payload)) {
        return false;
    }
    active_merge_touch(m, k->db, k->key, k->dot);
    return true;
}

/* The window has all that is ours alone: theirs, and that on top. */
static bool meet_whole(struct active_merge *m, const struct meeting_key *k,
                       const struct active_view *view)
{
    /* Theirs may hold writes with stamps up to this one. */
    uint64_t theirs_upto = k->payload.len ? k->dot.stamp : k->meeting->clock;
    int first = -1;
    bool exact = true, existed = m->executor->exists(m->context, k->db, k->key);
    for (int i = 0; i < (int)view->count; i++) {
        const struct active_write *w = &view->writes[i];
        bool later = w->dot.stamp > theirs_upto;
        if (!is_ours_alone(k, w)) {
            continue;
        }
        if ((w->piece.class == ACTIVE_WHOLE || w->piece.class == ACTIVE_FLUSH) && later) {
            first = i;
            exact = true;
        } else if (!later || w->piece.class == ACTIVE_STATE) {
            exact = false;
        }
    }
    if (!take_theirs(m, k)) {
        return false;
    }
    for (int i = first < 0 ? 0 : first; i < (int)view->count; i++) {
        const struct active_write *w = &view->writes[i];
        if (!is_ours_alone(k, w) || w->piece.class == ACTIVE_STATE) {
            continue;
        }
        if (w->piece.class == ACTIVE_FLUSH && i == first) {
            m->executor->load(m->context, k->db, k->key, 0, SLICE(""));
        } else if (w->piece.class != ACTIVE_FLUSH &&
                   (w->piece.class != ACTIVE_WHOLE || i == first)) {
            active_merge_run(m, w, k->db, k->key, k->now_ms);
        }
        active_merge_touch(m, k->db, k->key, w->dot);
    }
    bool none = !k->payload.len && !existed && !m->executor->exists(m->context, k->db, k->key);
    if (!exact && !none) {
        active_merge_dispute(m, k->db, k->key, k->now_ms);
    }
    return true;
}

/* Some of what is ours alone has left the window: one of the two stands. */
static bool meet_choice(struct active_merge *m, const struct meeting_key *k)
{
    struct active_dot ours = m->executor->dot(m->context, k->db, k->key);
    bool here = m->executor->exists(m->context, k->db, k->key), there = k->payload.len > 0;
    bool taken;
    if (same_content(m, k) &&
        (!here || (ours.stamp == k->dot.stamp && ours.place == k->dot.place))) {
        return true;
    }
    if (here && there) {
        taken = active_origins_compare(m->origins, k->dot, ours) > 0;
    } else if (there) {
        /* A dot that we have applied, and no key: we deleted it. */
        taken = k->dot.stamp == 0 ||
                active_dot_sequence(k->dot) >
                    active_origins_at(m->origins, active_dot_origin(k->dot))->position;
    } else {
        taken = is_covered(k->meeting->positions, ours);
    }
    if (taken && !take_theirs(m, k)) {
        return false;
    }
    active_merge_dispute(m, k->db, k->key, k->now_ms);
    return true;
}

bool active_merge_meet(struct active_merge *m, const struct active_meeting *meeting, int db,
                       struct slice key, struct active_dot dot, int64_t deadline_ms,
                       struct slice payload, int64_t now_ms)
{
    struct meeting_key k = {meeting, db, key, dot, deadline_ms, payload, now_ms};
    if (!active_window_holds_beyond(m->window, meeting->positions)) {
        return meet_choice(m, &k);
    }
    struct active_view view;
    active_window_view(m->window, db, key, &view);
    bool good = meet_whole(m, &k, &view);
    active_view_deinit(&view);
    return good;
}

void active_merge_meet_begin(struct active_merge *m, const struct active_meeting *meeting)
{
    active_window_skip(m->window, meeting->positions, meeting->clock);
}

void active_merge_met(struct active_merge *m, const struct active_meeting *meeting)
{
    for (uint32_t i = 1; i < meeting->positions->count; i++) {
        active_origins_advance(m->origins, (uint16_t)i, meeting->positions->sequence[i]);
    }
}
