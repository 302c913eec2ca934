/* See merge.h: which plan, and carrying it out. */
#include "active/merge.h"

#include "base/mem.h"
#include "base/num.h"
#include "active/hlc.h"
#include "active/merge_priv.h"

#include <assert.h>
#include <string.h>

/* ---- what all share ---- */

void merge_conflict(struct merge *m, int db, struct slice key, int64_t now_ms)
{
    m->conflicts_seen++;
    if (!(m->broken & MERGE_BREAK_CONFLICT)) {
        conflicts_note(m->conflicts, db, key, 0, now_ms);
    }
}

void merge_conflict_same(struct merge *m, int db, struct slice key, bool same, int64_t now_ms)
{
    if (!same || m->broken & MERGE_BREAK_CONFLICT) {
        merge_conflict(m, db, key, now_ms);
    } else {
        m->conflicts_seen++;
        conflicts_note_same(m->conflicts, db, key, now_ms);
    }
}

void merge_touch(const struct merge *m, int db, struct slice key, struct dot dot)
{
    struct key k = key_of(key);
    m->executor->touch(m->context, m->origins, db, &k, dot);
}

/* True when the unit says behind this command that the key has no deadline. */
static bool tells_persist(const struct window_write *write, int db, struct slice key)
{
    struct unit_command c = unit_command_before(write->unit);
    while (unit_command_next(write->unit, &c)) {
        if (c.number > write->number && c.db == db && c.argc == 2 &&
            slice_equal_nocase(c.argv[0], "persist") && slice_equal(c.argv[1], key)) {
            unit_command_end(&c);
            return true;
        }
    }
    return false;
}

/* A key goes with the deadline that this names, or stays: whoever runs the same writes in the same
 * order sees the same. */
static bool is_key_expired(const struct window_write *write)
{
    return write->effect.class == EFFECT_ORDER && write->effect.flags & EFFECT_EXPIRES;
}

void merge_run(struct merge *m, struct window_write *write, int db, struct slice key,
               int64_t now_ms)
{
    window_write_open(write);
    struct slice words[EFFECT_WORDS];
    const struct slice *argv;
    const struct merge_executor *e = m->executor;
    int argc = effect_command(&write->effect, write->argc, write->argv, words, &argv);
    bool had_deadline = e->has_deadline(m->context, db, key);
    bool good = e->run(m->context, db, argc, argv);
    merge_note_taking(m, db, key, write);
    if (!good) {
        merge_conflict(m, db, key, now_ms);
    } else if (had_deadline && write->effect.class != EFFECT_WHOLE && !is_key_expired(write) &&
               !e->exists(m->context, db, key) && !tells_persist(write, db, key)) {
        merge_conflict(m, db, key, now_ms);
    }
}

/* Members' words stand at a command's end, one behind the other; if a bad peer's do not, it is run
 * whole, and fails. */
void merge_run_members(struct merge *m, struct window_write *write, const bool *keeps, int db,
                       struct slice key, int64_t now_ms)
{
    window_write_open(write);
    const struct effect *effect = &write->effect;
    struct window_write part = *write;
    int begin = write->argc - effect->count * effect->step;
    if (begin <= effect->key) {
        merge_run(m, write, db, key, now_ms);
        return;
    }
    struct slice *argv = mem_alloc((size_t)write->argc * sizeof(*argv));
    memcpy(argv, write->argv, (size_t)begin * sizeof(*argv));
    part.argc = begin;
    part.argv = argv;
    part.effect.count = 0;
    for (int i = 0; i < effect->count; i++) {
        if (keeps[i]) {
            memcpy(argv + part.argc, write->argv + begin + i * effect->step,
                   (size_t)effect->step * sizeof(*argv));
            part.argc += effect->step;
            part.effect.count++;
        }
    }
    merge_run(m, &part, db, key, now_ms);
    mem_free(argv);
}

/* ---- which plan ---- */

/* A late write, in the view of its key. */
struct arrival {
    struct merge_fold fold; /* with it */
    int x;
    bool is_short;      /* the view has X and what is behind it; no state, nor what is before */
    int base_before;    /* B without it */
    bool existed;       /* the key, before */
    bool guessed;       /* the key is in conflict: its dot may be of a write that was void */
    struct dot key_dot; /* before */
};

static bool any_live_behind(const struct merge *m, const struct arrival *a)
{
    for (int i = a->x + 1; i < (int)a->fold.view.count; i++) {
        if (merge_fold_is_live(m, &a->fold, i)) {
            return true;
        }
    }
    return false;
}

/* True when nothing that is here, or has been since the key is there, is later than X. */
static bool is_last(const struct merge *m, const struct arrival *a)
{
    return origins_compare(m->origins, a->key_dot, a->fold.view.writes[a->x].dot) < 0;
}

/* True when all writes of the key behind X are in the view. */
static bool window_reaches(const struct merge *m, const struct arrival *a)
{
    struct dot dot = a->fold.view.writes[a->x].dot;
    return m->broken & MERGE_BREAK_FLOOR || dot.stamp > window_floor(m->window) ||
           (a->existed && !a->guessed && is_last(m, a));
}

/* What a plan by a short view may be: a longer one has to be looked at. */
#define NEEDS_ALL MERGE_PLANS

static bool is_own_state(const struct merge *m, struct dot dot)
{
    return m->self != 0 && hlc_is_state(dot.stamp) &&
           memcmp(origins_at(m->origins, dot_origin(dot))->id.node,
                  origins_at(m->origins, m->self)->id.node, ORIGIN_NODE_BYTES) == 0;
}

/* True when the key's dot is a state's that the view has. */
static bool is_state_here(const struct arrival *a)
{
    for (uint32_t i = 0; i < a->fold.view.count; i++) {
        const struct window_write *w = &a->fold.view.writes[i];
        if (w->effect.class == EFFECT_STATE && w->dot.place == a->key_dot.place) {
            return true;
        }
    }
    return false;
}

/* True when all that says that what is here is later than X, which is whole, is a state that does
 * not cover it: one in the window (also if a write like X has come before it, and took that state
 * out of force), or one that we told ourselves, before X was here. Nobody wrote by that, and who
 * knew the other one goes before it. */
static bool is_above_state(const struct merge *m, const struct arrival *a)
{
    return a->fold.base < 0 && a->fold.whole == a->x && a->fold.view.count <= MERGE_REFOLD_MAX &&
           (a->base_before >= 0 || is_state_here(a) || is_own_state(m, a->key_dot));
}

static enum merge_plan plan_whole(const struct merge *m, const struct arrival *a, int db,
                                  struct slice key)
{
    if (a->x < a->fold.whole || (a->fold.base >= 0 && a->fold.base == a->base_before)) {
        /* Behind it is a whole write, or a state that has it; and what has taken that one out of
         * force was behind it too, for the state's maker knew a whole write. */
        return MERGE_OVER;
    }
    if (a->fold.base < 0 && (m->broken & MERGE_BREAK_WHOLE || !any_live_behind(m, a))) {
        return window_reaches(m, a) || !a->existed || is_last(m, a) ? MERGE_RUN
               : is_above_state(m, a)                               ? MERGE_GUESS
                                                                    : MERGE_NEITHER;
    }
    if (a->is_short) {
        return NEEDS_ALL;
    }
    return merge_fold_is_possible(m, &a->fold, db, key) ? MERGE_REFOLD
           : is_above_state(m, a)                       ? MERGE_GUESS
                                                        : MERGE_NEITHER;
}

static enum merge_plan plan_part(const struct merge *m, const struct arrival *a, int db,
                                 struct slice key)
{
    bool is_sure = merge_fold_is_sure(m, &a->fold, a->x, db, key);
    if (!merge_fold_is_live(m, &a->fold, a->x)) {
        return is_sure ? MERGE_OVER : MERGE_NEITHER;
    }
    if (!is_sure) {
        return MERGE_GUESS;
    }
    if (window_reaches(m, a)) {
        if (m->broken & MERGE_BREAK_STAMP || !any_live_behind(m, a)) {
            return MERGE_RUN;
        }
        if (merge_rules_commute(m, &a->fold, a->x, db, key)) {
            return MERGE_REPEAT;
        }
    }
    if (a->is_short) {
        return NEEDS_ALL;
    }
    return merge_fold_is_possible(m, &a->fold, db, key) ? MERGE_REFOLD : MERGE_GUESS;
}

/* Opens the key's view and finds X in it. */
static void open_arrival(const struct merge *m, struct arrival *a, int db, struct slice key,
                         struct dot dot, uint32_t number)
{
    window_view(m->window, db, key, &a->fold.view);
    a->x = merge_fold_place(&a->fold, dot, number);
    merge_fold_find(m, &a->fold, a->x);
    a->base_before = a->fold.base;
    merge_fold_find(m, &a->fold, -1);
}

/* The same with a short view, where that can tell enough (window_view_behind): all states are
 * before X, so they cover nothing behind X, nor X, which is live unless there is a whole write
 * behind it, and that is in this view, as all is that the rules look at. What a refold would begin
 * from is not. */
static bool open_short(const struct merge *m, struct arrival *a, int db, struct slice key,
                       struct dot dot, uint32_t number)
{
    a->is_short = !(m->broken & MERGE_BREAK_SHORT) &&
                  window_view_behind(m->window, db, key, dot, number, &a->fold.view);
    if (a->is_short) {
        a->x = 0;
        a->base_before = -1;
        merge_fold_find(m, &a->fold, -1);
    }
    return a->is_short;
}

/* The content is a guess; where something may have been removed before its time, whoever has it is
 * to be heard first. */
static void conflict_guess(struct merge *m, const struct arrival *a, int db, struct slice key,
                           int64_t now_ms)
{
    merge_conflict(m, db, key, now_ms);
    for (int i = a->x + 1; i < (int)a->fold.view.count; i++) {
        const struct window_write *w = &a->fold.view.writes[i];
        if (w->effect.flags & EFFECT_EXPIRES) {
            conflicts_wait(m->conflicts, db, key, w->dot.stamp, now_ms);
        }
    }
}

static void carry_out(struct merge *m, const struct arrival *a, enum merge_plan plan, int db,
                      struct slice key, int64_t now_ms)
{
    struct window_write *x = &a->fold.view.writes[a->x];
    m->plans[plan]++;
    window_write_open(x);
    switch (plan) {
    case MERGE_RUN:
        if (x->effect.class == EFFECT_WHOLE && window_reaches(m, a)) {
            conflicts_resolve(m->conflicts, db, key, x->dot.stamp);
        } else if (x->effect.class == EFFECT_WHOLE) {
            merge_conflict(m, db, key, now_ms);
        }
        merge_run(m, x, db, key, now_ms); /* may fail, and so conflict it */
        break;
    case MERGE_REPEAT:
        merge_rules_repeat(m, &a->fold, a->x, db, key, now_ms);
        break;
    case MERGE_REFOLD:
        merge_fold_run(m, &a->fold, db, key, now_ms);
        break;
    case MERGE_GUESS:
        if (x->effect.class == EFFECT_WHOLE) {
            merge_fold_run(m, &a->fold, db, key, now_ms);
        } else {
            merge_rules_guess(m, &a->fold, a->x, db, key, now_ms);
        }
        conflict_guess(m, a, db, key, now_ms);
        break;
    case MERGE_NEITHER:
        merge_conflict(m, db, key, now_ms);
        break;
    default:
        break;
    }
    if (plan != MERGE_OVER && plan != MERGE_NEITHER) {
        merge_take_missed(m, db, key, x, now_ms);
    }
    merge_touch(m, db, key, a->fold.view.writes[a->fold.view.count - 1].dot);
    if (x->effect.flags & EFFECT_EXPIRES && plan != MERGE_OVER &&
        m->executor->survives(m->context, db, x->argc, x->argv)) {
        /* Somebody has removed it who did not know of another deadline: he may need it back. */
        merge_conflict(m, db, key, now_ms);
    }
}

/* ---- a client's write of one key ---- */

static enum merge_plan plan_of(const struct merge *m, const struct arrival *a,
                               const struct effect *effect, int db, struct slice key)
{
    return effect->class == EFFECT_WHOLE ? plan_whole(m, a, db, key) : plan_part(m, a, db, key);
}

static enum merge_plan open_and_plan(const struct merge *m, struct arrival *a, struct unit *unit,
                                     const struct unit_command *c, const struct effect *effect)
{
    struct slice key = c->argv[effect->key];
    enum merge_plan plan = NEEDS_ALL;
    if (open_short(m, a, c->db, key, unit->dot, c->number)) {
        plan = plan_of(m, a, effect, c->db, key);
    }
    if (plan == NEEDS_ALL) {
        if (a->is_short) {
            window_view_deinit(&a->fold.view);
            a->is_short = false;
        }
        open_arrival(m, a, c->db, key, unit->dot, c->number);
        plan = plan_of(m, a, effect, c->db, key);
    }
    return plan;
}

/* A write that is later than the key's last one, as nearly all are: nothing is behind it. */
static void run_in_order(struct merge *m, struct arrival *a, struct unit *unit,
                         const struct unit_command *c, const struct effect *effect, int64_t now_ms)
{
    struct window_write x = {.dot = unit->dot,
                             .number = c->number,
                             .offset = c->offset,
                             .effect = *effect,
                             .unit = unit,
                             .argc = c->argc,
                             .argv = c->argv};
    a->fold.view = (struct window_view){.writes = &x, .count = 1};
    a->fold.base = a->fold.whole = -1;
    carry_out(m, a, MERGE_RUN, c->db, c->argv[effect->key], now_ms);
}

static void apply_effect(struct merge *m, struct unit *unit, const struct unit_command *c,
                         const struct effect *effect, int64_t now_ms)
{
    struct slice key = c->argv[effect->key];
    struct arrival a = {.guessed = conflicts_has(m->conflicts, c->db, key),
                        .key_dot = m->executor->dot(m->context, c->db, key)};
    a.existed = a.key_dot.stamp != 0 || m->executor->exists(m->context, c->db, key);
    window_add(m->window, unit, c, effect, hash_slice(key));
    if ((m->broken & ~(unsigned)MERGE_BREAK_HOT) == 0 && a.existed && !a.guessed &&
        origins_compare(m->origins, a.key_dot, unit->dot) < 0) {
        run_in_order(m, &a, unit, c, effect, now_ms);
        return;
    }
    if (m->broken == 0 && merge_hot_put_in(m, unit, c, effect, now_ms)) {
        return;
    }
    enum merge_plan plan = open_and_plan(m, &a, unit, c, effect);
    carry_out(m, &a, plan, c->db, key, now_ms);
    merge_hot_looked(m, c->db, key, a.fold.view.walked, !a.is_short, now_ms);
    window_view_deinit(&a.fold.view);
}

/* ---- a flush ---- */

struct keys {
    struct buf names; /* database, length, bytes; each key */
    int db;
};

static void collect(int db, struct slice key, void *context)
{
    struct keys *k = context;
    uint32_t head[2] = {(uint32_t)db, (uint32_t)key.len};
    buf_append(&k->names, (const char *)head, sizeof(head));
    buf_append_slice(&k->names, key);
}

/* A key with writes behind a flush that came late. The flush takes away what only a state has
 * behind it, as DEL would (plan_whole). */
static void refold_or_conflict(struct merge *m, int db, struct slice key, struct dot flush,
                               uint32_t number, int64_t now_ms)
{
    struct arrival a = {.key_dot = m->executor->dot(m->context, db, key)};
    open_arrival(m, &a, db, key, flush, number);
    bool is_last = a.x == (int)a.fold.view.count - 1 && !m->executor->exists(m->context, db, key);
    bool possible = merge_fold_is_possible(m, &a.fold, db, key);
    if (!is_last && (possible || is_above_state(m, &a))) {
        merge_fold_run(m, &a.fold, db, key, now_ms);
    }
    if (!is_last && !possible) {
        merge_conflict(m, db, key, now_ms);
    }
    window_view_deinit(&a.fold.view);
}

static void apply_flush(struct merge *m, struct unit *unit, const struct unit_command *c,
                        const struct effect *effect, int64_t now_ms)
{
    struct keys k = {.db = slice_equal_nocase(c->argv[0], "flushall") ? -1 : c->db};
    window_add(m->window, unit, c, effect, hash_slice(SLICE("")));
    m->executor->flush(m->context, k.db, unit->dot, collect, &k);
    window_each(m->window, k.db, collect, &k);
    for (size_t at = 0; at < k.names.len;) {
        uint32_t head[2];
        memcpy(head, k.names.data + at, sizeof(head));
        at += sizeof(head);
        refold_or_conflict(m, (int)head[0], slice_of(k.names.data + at, head[1]), unit->dot,
                           c->number, now_ms);
        at += head[1];
    }
    buf_deinit(&k.names);
}

/* ---- units ---- */

/* A word of one key, as a node may tell it. */
static bool is_acceptable(const struct merge *m, const struct unit_command *c,
                          const struct effect *effect)
{
    int64_t deadline;
    uint64_t whole;
    if (effect->class == EFFECT_UNTOLD) {
        return false;
    }
    if (effect->class == EFFECT_LIBRARY) {
        return libraries_is_word(c->argc, c->argv);
    }
    if (effect->class != EFFECT_STATE) {
        return true;
    }
    struct version_vector *cover = merge_cover_of(m, c);
    bool good = cover != NULL;
    mem_free(cover);
    if (good && effect_is_digest(effect)) {
        return merge_digest_is_sound(c->argv, effect);
    }
    return good && num_parse_i64(c->argv[2], &deadline) &&
           num_parse_u64(c->argv[STATE_COMMAND_WHOLE], &whole);
}

bool merge_acceptable(const struct merge *m, const struct unit *unit)
{
    struct unit_command c = unit_command_before(unit);
    struct effect effect;
    while (unit_command_next(unit, &c)) {
        int effects = 0;
        bool good = true;
        for (; good && effect_walk(c.argc, c.argv, effects, &effect); effects++) {
            good = is_acceptable(m, &c, &effect);
        }
        if (!good || effects == 0) {
            unit_command_end(&c);
            return false;
        }
    }
    return true;
}

/* The keyspace is held, as for all that the executor does. */
static void hear_of_library(const struct merge *m, struct dot dot, const struct unit_command *c,
                            void (*hear)(struct libraries *l, struct library_word at, int argc,
                                         const struct slice *argv)) NO_THREAD_SAFETY_ANALYSIS
{
    if (m->libraries) {
        hear(m->libraries, (struct library_word){dot, c->number}, c->argc, c->argv);
    }
}

static void apply_one(struct merge *m, struct unit *unit, const struct unit_command *c,
                      const struct effect *effect, int64_t now_ms)
{
    switch (effect->class) {
    case EFFECT_STATE:
        merge_apply_state(m, unit, c, effect, now_ms);
        break;
    case EFFECT_FLUSH:
        apply_flush(m, unit, c, effect, now_ms);
        break;
    case EFFECT_KEYLESS:
        m->executor->run(m->context, c->db, c->argc, c->argv);
        break;
    case EFFECT_LIBRARY:
        hear_of_library(m, unit->dot, c, libraries_hear);
        break;
    default:
        apply_effect(m, unit, c, effect, now_ms);
    }
}

static void advance(const struct merge *m, struct unit *unit)
{
    origins_advance(m->origins, dot_origin(unit->dot), dot_sequence(unit->dot));
    window_close(m->window, unit);
}

void merge_apply(struct merge *m, struct unit *unit, int64_t now_ms)
{
    struct unit_command c = unit_command_before(unit);
    struct effect effect;
    while (unit_command_next(unit, &c)) {
        for (int i = 0; effect_walk(c.argc, c.argv, i, &effect); i++) {
            apply_one(m, unit, &c, &effect, now_ms);
        }
    }
    advance(m, unit);
    merge_take_waiting(m, now_ms);
}

static void add_own(struct merge *m, struct unit *unit, const struct unit_command *c,
                    const struct effect *effect)
{
    struct key key = key_of(effect_key(effect, c->argv));
    window_expect(m->window, c->db, key.hash); /* comes while the key is touched */
    if (effect->key > 0) {
        m->executor->touch(m->context, m->origins, c->db, &key, unit->dot);
    }
    if (likely(effect->class != EFFECT_STATE)) {
        window_add(m->window, unit, c, effect, key.hash);
    } else {
        window_add_state(m->window, unit, c, effect, merge_cover_of(m, c), false);
    }
    if (effect->class == EFFECT_WHOLE) {
        conflicts_resolve(m->conflicts, c->db, key.name, unit->dot.stamp);
    }
}

/* However many commands it has, of whatever kind. */
static __attribute__((noinline)) bool add_all_own(struct merge *m, struct unit *unit)
{
    struct unit_command c = unit_command_before(unit);
    struct effect effect;
    bool takes_keys = false;
    while (unit_command_next(unit, &c)) {
        for (int i = 0; effect_walk(c.argc, c.argv, i, &effect); i++) {
            if (effect.class == EFFECT_LIBRARY) {
                hear_of_library(m, unit->dot, &c, libraries_heard_own);
            }
            if (effect.class == EFFECT_KEYLESS || effect.class == EFFECT_LIBRARY) {
                continue;
            }
            unit->has_causes = unit->has_causes || effect.class == EFFECT_ORDER;
            takes_keys = takes_keys || effect.flags & EFFECT_EXPIRES ||
                         (effect.class == EFFECT_WHOLE && effect.values == 0);
            add_own(m, unit, &c, &effect);
        }
    }
    return takes_keys;
}

bool merge_own_set(struct merge *m, struct unit *unit)
{
    struct unit_command c; /* `few` is read only where it was written */
    if (unlikely(!unit_is_set(unit, &c))) {
        return false;
    }
    add_own(m, unit, &c, &effect_of_set);
    advance(m, unit);
    return true;
}

bool merge_own(struct merge *m, struct unit *unit)
{
    if (merge_own_set(m, unit)) {
        return false;
    }
    bool takes_keys = add_all_own(m, unit);
    advance(m, unit);
    return takes_keys;
}
