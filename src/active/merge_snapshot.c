/* MERGE, one key at a time: theirs against ours (DESIGN.md, "Merge"). Theirs is the fold of
 * the writes that their positions cover; what we have beyond those is ours alone. While the window
 * has all of that, theirs with ours on top is the fold of both, if ours is later; otherwise, and
 * where the window lacks some, a choice is made and told as a state. */
#include "active/earlier_lives.h"
#include "active/hlc.h"
#include "active/merge_priv.h"

#include "base/mem.h"

#include <assert.h>

struct snapshot_key {
    const struct merge_snapshot *snapshot;
    int db;
    struct slice key;
    struct dot dot;
    int64_t deadline_ms;
    struct slice payload;
    int64_t now_ms;
};

static bool is_ours_alone(const struct snapshot_key *k, const struct window_write *w)
{
    return !version_vector_has(k->snapshot->positions, w->dot);
}

static bool has_ours_alone(const struct snapshot_key *k, const struct window_view *view)
{
    bool has = false;
    for (uint32_t i = 0; i < view->count; i++) {
        has = has || is_ours_alone(k, &view->writes[i]);
    }
    return has;
}

static bool same_content(const struct merge *m, const struct snapshot_key *k)
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

/* True when they have run the write, and it on what it was made on; of a key without a dot nobody
 * has. */
static bool they_know(const struct merge *m, struct dot dot)
{
    return dot.stamp > 0 && version_vector_has(m->known_to_them, dot);
}

static bool is_here(const struct merge *m, struct dot dot)
{
    return dot.stamp > 0 && dot_sequence(dot) <= origins_at(m->origins, dot_origin(dot))->position;
}

/* True when their dot is of a state that we could not begin from. */
static bool is_not_taken(const struct merge *m, const struct snapshot_key *k)
{
    return hlc_is_state(k->dot.stamp) &&
           conflicts_stamp(m->conflicts, k->db, k->key) >= k->dot.stamp - 1;
}

/* True when their dot is one that we have run, on what it was made on; of a key without one we
 * have not. */
static bool is_applied(const struct merge *m, const struct snapshot_key *k)
{
    return is_here(m, k->dot) && !is_not_taken(m, k) && version_vector_has(m->known_to_us, k->dot);
}

/* Of a key that is there and not here. A dot that we have applied, and no key: we deleted it. Where
 * it came before the data set, that takes a later deletion that they do not know. */
static bool was_deleted(const struct merge *m, const struct snapshot_key *k)
{
    bool deleted = is_applied(m, k);
    if (deleted || !is_here(m, k->dot)) {
        return deleted;
    }
    struct window_view view;
    window_view(m->window, k->db, k->key, &view);
    for (uint32_t i = 0; i < view.count; i++) {
        const struct window_write *w = &view.writes[i];
        bool whole = w->effect.class == EFFECT_WHOLE || w->effect.class == EFFECT_FLUSH;
        deleted = deleted || (whole && is_ours_alone(k, w) && w->dot.stamp > k->dot.stamp);
    }
    window_view_deinit(&view);
    return deleted;
}

static bool take_theirs(struct merge *m, const struct snapshot_key *k)
{
    if (!same_content(m, k) &&
        !m->executor->load(m->context, k->db, k->key, k->deadline_ms, k->payload)) {
        return false;
    }
    merge_touch(m, k->db, k->key, k->dot);
    return true;
}

/* Runs what is ours alone on top of theirs; of whole writes the one at `first` (-1: none), and what
 * is behind that. */
static void put_on_top(struct merge *m, const struct snapshot_key *k,
                       const struct window_view *view, int first)
{
    for (int i = first < 0 ? 0 : first; i < (int)view->count; i++) {
        struct window_write *w = &view->writes[i];
        if (!is_ours_alone(k, w) || w->effect.class == EFFECT_STATE) {
            continue;
        }
        if (w->effect.class == EFFECT_FLUSH && i == first) {
            m->executor->load(m->context, k->db, k->key, 0, SLICE(""));
        } else if (w->effect.class != EFFECT_FLUSH &&
                   (w->effect.class != EFFECT_WHOLE || i == first)) {
            merge_run(m, w, k->db, k->key, k->now_ms);
        }
        merge_touch(m, k->db, k->key, w->dot);
    }
}

/* The last whole write that goes on top of theirs, -1: none; *exact: nothing is ours alone that
 * might belong below something of theirs. */
static int whole_on_top(const struct snapshot_key *k, const struct window_view *view, bool *exact)
{
    /* Theirs may hold writes with stamps up to this one. */
    bool there = k->payload.len > 0;
    uint64_t theirs_upto = there ? k->dot.stamp : k->snapshot->clock;
    int first = -1;
    *exact = true;
    for (int i = 0; i < (int)view->count; i++) {
        const struct window_write *w = &view->writes[i];
        bool later = w->dot.stamp > theirs_upto;
        if (!is_ours_alone(k, w)) {
            continue;
        }
        /* Where they have nothing, that may be because of a later deletion; but it was made by
         * somebody who did not know of ours, and the write wins then. Nor does a state overwrite
         * what its node did not know. */
        if ((w->effect.class == EFFECT_WHOLE || w->effect.class == EFFECT_FLUSH) &&
            (later || !there || hlc_is_state(k->dot.stamp))) {
            first = i;
            *exact = later;
        } else if (!later || w->effect.class == EFFECT_STATE) {
            *exact = false;
        }
    }
    return first;
}

/* The window has all that is ours alone: theirs, and that on top. */
static bool meet_whole(struct merge *m, const struct snapshot_key *k,
                       const struct window_view *view)
{
    bool exact;
    int first = whole_on_top(k, view, &exact);
    if (!take_theirs(m, k)) {
        return false;
    }
    put_on_top(m, k, view, first);
    /* Also of a key that is nowhere: in what they have of it, which is not known here, one of ours
     * may be what keeps it (a PERSIST, or a DEL that took a deadline away, before it expired). */
    if (!exact) {
        merge_conflict(m, k->db, k->key, k->now_ms);
    }
    return true;
}

/* Of a key on both sides, of which one content is to stand. Who knows the other's last write goes
 * before who does not; a client's write goes before a state, by which nobody wrote; and otherwise
 * the later one. */
static bool theirs_stands(const struct merge *m, const struct snapshot_key *k, struct dot ours)
{
    bool we_do = is_applied(m, k), they_do = they_know(m, ours);
    bool is_state = hlc_is_state(k->dot.stamp), ours_is_state = hlc_is_state(ours.stamp);
    if (we_do != they_do) {
        return they_do;
    }
    if (is_state != ours_is_state) {
        return ours_is_state;
    }
    return origins_compare(m->origins, k->dot, ours) > 0;
}

/* True when each side has had something that the other one has. */
static bool have_met(const struct merge *m, const struct snapshot_key *k)
{
    const struct version_vector *theirs = k->snapshot->positions, *had = k->snapshot->had;
    for (uint32_t i = 1; i < theirs->count; i++) {
        uint64_t ours =
            had ? version_vector_at(had, i) : origins_at(m->origins, (uint16_t)i)->position;
        if (theirs->sequence[i] > 0 && ours > 0) {
            return true;
        }
    }
    return false;
}

/* True when the last write of ours is a client's that is ours alone and in the window: it can be
 * put on top of theirs. */
static bool is_last_on_top(const struct snapshot_key *k, const struct window_view *view,
                           struct dot ours)
{
    for (uint32_t i = 0; i < view->count; i++) {
        const struct window_write *w = &view->writes[i];
        if (w->dot.place == ours.place && w->effect.class != EFFECT_STATE && is_ours_alone(k, w)) {
            return true;
        }
    }
    return false;
}

/* Some of what is ours alone has left the window: one of the two stands; where it is theirs, with
 * what the window still has on top. So it does where both have a past in common, and neither knows
 * the other's last write, which both stand then; but a state goes before nothing that a client
 * wrote. */
static bool meet_choice(struct merge *m, const struct snapshot_key *k,
                        const struct window_view *view)
{
    struct dot ours = m->executor->dot(m->context, k->db, k->key);
    bool here = m->executor->exists(m->context, k->db, k->key), there = k->payload.len > 0;
    bool taken, same = same_content(m, k);
    bool exact, same_dot = ours.stamp == k->dot.stamp && ours.place == k->dot.place;
    int first = whole_on_top(k, view, &exact);
    /* Not where one of ours, below, would change what they have: they will get it (meet_whole). */
    if (same && exact && (!here || same_dot)) {
        return true;
    }
    if (here && there) {
        taken = theirs_stands(m, k, ours) || (!is_applied(m, k) && !hlc_is_state(k->dot.stamp) &&
                                              have_met(m, k) && is_last_on_top(k, view, ours));
    } else if (there) {
        taken = !was_deleted(m, k);
    } else {
        taken = they_know(m, ours);
    }
    if (taken && !take_theirs(m, k)) {
        return false;
    }
    if (taken && !same) {
        put_on_top(m, k, view, first);
    }
    /* They choose by the same rules, so a digest will mostly do. */
    merge_conflict_same(m, k->db, k->key, same || !has_ours_alone(k, view), k->now_ms);
    return true;
}

bool merge_snapshot_key(struct merge *m, const struct merge_snapshot *snapshot, int db,
                        struct slice key, struct dot dot, int64_t deadline_ms, struct slice payload,
                        int64_t now_ms)
{
    struct snapshot_key k = {snapshot, db, key, dot, deadline_ms, payload, now_ms};
    struct window_view view;
    window_view(m->window, db, key, &view);
    bool good = window_holds_beyond(m->window, snapshot->positions) ? meet_whole(m, &k, &view)
                                                                    : meet_choice(m, &k, &view);
    window_view_deinit(&view);
    return good;
}

/* Ours, going by what we had when it was asked for. What came since then was run on what lacked the
 * data set; unless another one, which was merged meanwhile, had it, or we wrote it ourselves. */
static struct version_vector *known_to_us(const struct merge *m,
                                          const struct merge_snapshot *snapshot)
{
    struct version_vector *known = version_vector_create(m->origins);
    for (uint32_t i = 1; snapshot->had && i < known->count; i++) {
        uint64_t had = version_vector_at(snapshot->had, i);
        uint64_t met = m->met ? version_vector_at(m->met, i) : 0;
        known->sequence[i] = had > met ? had : met;
    }
    known->sequence[m->self] = ORIGIN_SEQUENCE_MAX; /* also what we are going to write */
    earlier_lives_forget(m->origins, known, snapshot->positions);
    return known;
}

static struct version_vector *known_to_them(const struct merge *m,
                                            const struct merge_snapshot *snapshot)
{
    struct version_vector *known = version_vector_create(m->origins);
    struct version_vector *ours = version_vector_create(m->origins);
    for (uint32_t i = 1; i < known->count; i++) {
        known->sequence[i] = version_vector_at(snapshot->positions, i);
    }
    earlier_lives_forget(m->origins, known, ours);
    mem_free(ours);
    return known;
}

void merge_snapshot_forget(struct merge *m)
{
    mem_free(m->known_to_us);
    mem_free(m->known_to_them);
    m->known_to_us = m->known_to_them = NULL;
}

void merge_snapshot_begin(struct merge *m, const struct merge_snapshot *snapshot, int64_t now_ms)
{
    assert(!m->known_to_us);
    m->known_to_us = known_to_us(m, snapshot);
    m->known_to_them = known_to_them(m, snapshot);
    merge_take_waiting_also(m, snapshot->positions, now_ms);
    window_skip(m->window, snapshot->positions, snapshot->clock);
}

void merge_snapshot_end(struct merge *m, const struct merge_snapshot *snapshot)
{
    merge_snapshot_forget(m);
    for (uint32_t i = 1; i < snapshot->positions->count; i++) {
        origins_advance(m->origins, (uint16_t)i, snapshot->positions->sequence[i]);
    }
}
