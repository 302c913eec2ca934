/* Late writes that are put in together (merge.h). A key's are deferred when the first of them would
 * be repeated or refolded far from the end of the key's writes; then
 *   - where a refold is possible at the end, it is done once: the content is a function of the set
 *     of writes, whichever came when;
 *   - else, all of them being plain (merge_rules_are_plain), they are put in by rules 3 and 4 in
 * one pass. That is what putting them in one by one does, the last one first: for each all that is
 *     behind it is then there, so the rules hold as they are; and as registers are independent, one
 *     pass that runs all of that in order ends with the same (DESIGN.md, "Late writes").
 * What can be neither any more (the window's bound has taken the base away) is run where it stands:
 * a guess, as rule 6 is, and the key is in conflict. */
#include "active/merge_priv.h"

#include "base/mem.h"

#include <assert.h>

/* So far from the end at least: nearer, doing it at once costs as little as deferring. */
#define BEHIND_MIN 32
/* Keys of a batch; a burst on one is meant. */
#define KEYS_MAX 64

struct batch_key {
    int db;
    struct buf name;
    bool refolds;                /* what the first of them was to be put in by */
    struct window_write *writes; /* deferred, in the order of writes; each holds its unit */
    uint32_t count, capacity;
};

struct merge_batch {
    struct batch_key keys[KEYS_MAX];
    uint32_t count;
};

static struct batch_key *find(const struct merge *m, int db, struct slice key)
{
    for (uint32_t i = 0; m->batch && i < m->batch->count; i++) {
        struct batch_key *k = &m->batch->keys[i];
        if (k->db == db && slice_equal(buf_slice(&k->name), key)) {
            return k;
        }
    }
    return NULL;
}

bool merge_batch_has(const struct merge *m, int db, struct slice key)
{
    return find(m, db, key) != NULL;
}

static int compare(const struct merge *m, const struct window_write *a,
                   const struct window_write *b)
{
    int order = origins_compare(m->origins, a->dot, b->dot);
    return order ? order : (a->number > b->number) - (a->number < b->number);
}

static void add(const struct merge *m, struct batch_key *k, const struct window_write *x)
{
    if (k->count == k->capacity) {
        k->capacity = k->capacity ? 2 * k->capacity : 8;
        k->writes = mem_realloc(k->writes, k->capacity * sizeof(*k->writes));
    }
    uint32_t at = k->count++;
    for (; at > 0 && compare(m, x, &k->writes[at - 1]) < 0; at--) {
        k->writes[at] = k->writes[at - 1];
    }
    k->writes[at] = *x;
    k->writes[at].argv = NULL; /* whoever has opened it has its own */
    k->writes[at].cover = NULL;
    unit_acquire(x->unit);
}

bool merge_batch_defer(struct merge *m, int db, struct slice key, const struct window_write *x,
                       enum merge_plan plan, uint32_t behind)
{
    bool refolds = plan == MERGE_REFOLD;
    if (!m->batch || behind < BEHIND_MIN || m->batch->count == KEYS_MAX ||
        x->effect.flags & EFFECT_EXPIRES ||
        !(refolds || (plan == MERGE_REPEAT && merge_rules_are_plain(&x->effect)))) {
        return false;
    }
    struct batch_key *k = &m->batch->keys[m->batch->count++];
    *k = (struct batch_key){.db = db, .refolds = refolds};
    buf_append_slice(&k->name, key);
    add(m, k, x);
    return true;
}

bool merge_batch_takes(struct merge *m, int db, struct slice key, const struct window_write *x,
                       bool reaches)
{
    struct batch_key *k = find(m, db, key);
    assert(k);
    if (x->effect.flags & EFFECT_EXPIRES ||
        (!k->refolds && !(reaches && merge_rules_are_plain(&x->effect)))) {
        return false;
    }
    add(m, k, x);
    return true;
}

/* ---- putting in ---- */

/* What may have been removed before its time is heard of first (conflict_guess). */
static void conflict(struct merge *m, const struct batch_key *k, const struct window_view *view,
                     int64_t now_ms)
{
    struct slice key = buf_slice(&k->name);
    merge_conflict(m, k->db, key, now_ms);
    for (uint32_t i = 0; i < view->count; i++) {
        if (view->writes[i].effect.flags & EFFECT_EXPIRES) {
            conflicts_wait(m->conflicts, k->db, key, view->writes[i].dot.stamp, now_ms);
        }
    }
}

/* late[] of the deferred ones' places in the view. False: some have left the window, and are run
 * now.
 */
static bool mark_late(struct merge *m, const struct batch_key *k, const struct window_view *view,
                      uint8_t *late, int64_t now_ms)
{
    bool all = true;
    uint32_t at = 0;
    for (uint32_t i = 0; i < k->count; i++) {
        while (at < view->count && compare(m, &view->writes[at], &k->writes[i]) < 0) {
            at++;
        }
        if (at < view->count && compare(m, &view->writes[at], &k->writes[i]) == 0) {
            late[at++] = MERGE_LATE;
        } else {
            merge_run(m, &k->writes[i], k->db, buf_slice(&k->name), now_ms);
            all = false;
        }
    }
    return all;
}

static void put_in_one_by_one(struct merge *m, const struct batch_key *k, struct merge_fold *f,
                              int64_t now_ms)
{
    struct slice key = buf_slice(&k->name);
    uint8_t *late = mem_calloc(f->view.count + 1, sizeof(*late));
    bool exact = mark_late(m, k, &f->view, late, now_ms) && !k->refolds;
    exact = merge_rules_look_at_all(m, f, late, k->db, key) && exact;
    merge_rules_repeat_all(m, f, late, k->db, key, now_ms);
    m->plans[exact ? MERGE_REPEAT : MERGE_GUESS] += k->count;
    if (!exact) {
        conflict(m, k, &f->view, now_ms);
    }
    mem_free(late);
}

static void put_in(struct merge *m, const struct batch_key *k, int64_t now_ms)
{
    struct slice key = buf_slice(&k->name);
    struct merge_fold f;
    window_view(m->window, k->db, key, &f.view);
    merge_fold_find(m, &f, -1);
    if (merge_fold_is_possible(m, &f, k->db, key)) {
        m->plans[MERGE_REFOLD]++;
        merge_fold_run(m, &f, k->db, key, now_ms);
    } else {
        put_in_one_by_one(m, k, &f, now_ms);
    }
    if (f.view.count > 0) {
        merge_touch(m, k->db, key, f.view.writes[f.view.count - 1].dot);
    }
    window_view_deinit(&f.view);
}

static void destroy(struct batch_key *k)
{
    for (uint32_t i = 0; i < k->count; i++) {
        unit_release(k->writes[i].unit);
        mem_free(k->writes[i].argv);
    }
    mem_free(k->writes);
    buf_deinit(&k->name);
}

void merge_batch_settle(struct merge *m, int db, struct slice key, int64_t now_ms)
{
    struct batch_key *k = find(m, db, key);
    if (k) {
        put_in(m, k, now_ms);
        destroy(k);
        *k = m->batch->keys[--m->batch->count];
    }
}

void merge_batch_settle_all(struct merge *m, int64_t now_ms)
{
    while (m->batch && m->batch->count > 0) {
        struct batch_key *k = &m->batch->keys[m->batch->count - 1];
        put_in(m, k, now_ms);
        destroy(k);
        m->batch->count--;
    }
}

void merge_batch_begin(struct merge *m)
{
    assert(!m->batch);
    m->batch = mem_calloc(1, sizeof(*m->batch));
}

void merge_batch_end(struct merge *m, int64_t now_ms)
{
    assert(m->batch);
    merge_batch_settle_all(m, now_ms);
    mem_free(m->batch);
    m->batch = NULL;
}
