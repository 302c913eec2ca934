/* Late writes of hot keys (DESIGN.md, "Hot keys"): put in by what is behind them and names their
 * members, which their key's table finds (hot_keys.h), at a cost that does not grow with what else
 * is behind them.
 *
 * Where all that is behind X is plain and of one type: rules 3 and 4 for members of hashes, sets,
 * sorted sets and counters, of whose conditions nothing is left then; and those for lists, which
 * only a table makes affordable. Where they say nothing, and a base is too expensive to be begun
 * from for each late write, X is a guess. */
#include "active/hot_keys.h"
#include "active/merge_priv.h"

#include "base/mem.h"
#include "base/num.h"

#include <string.h>

/* Writes of a key that were looked at for one of them: from here on it is hot. */
#define HOT_FROM 64
/* Beginning from a base costs about a microsecond for each write that is looked at, and looking at
 * what is behind a tenth of that. Up to so many it may be done for each late write; of more, a
 * tenth of the time may go into it. */
#define FOLD_FREE ((uint32_t)512)
#define FOLD_WRITES_A_MS ((uint32_t)100)
#define LOOK_FREE ((uint32_t)4096)
#define LOOK_WRITES_A_MS ((uint32_t)1000)
/* What it is to take elements off a list to put something below them: each of them is one, each
 * KiB of one, and each look at a write for it. So much of it may be for each late write (of
 * elements that were pushed once, half as many); of more, a tenth of the time may go into it. */
#define LIFT_MAX ((uint32_t)8 * 1024)
#define LIFT_FREE ((uint32_t)512)
#define LIFT_A_MS ((uint32_t)512)
/* Of so many additions to a member it is looked whether they are of integers. */
#define ADDITIONS_LOOKED_AT 64

/* X. */
struct late {
    struct window_write write;
    struct hot_key *key;
    struct slice name;
    int db;
    int64_t now_ms;
};

/* ---- what is behind it ---- */

/* Only for writes whose stamp is not below X's: the others may have left the window. */
static bool is_behind(const struct merge *m, const struct late *x, const struct hot_write *w)
{
    int order = w->stamp == x->write.dot.stamp
                    ? origins_compare(m->origins, w->effect->unit->dot, x->write.dot)
                    : (w->stamp > x->write.dot.stamp ? 1 : -1);
    return order > 0 || (order == 0 && w->effect->number > x->write.number);
}

/* The last that came of those that name the member, but for those of X's own unit: these are not
 * behind X, and were the last to come. */
static struct hot_write *newest(const struct late *x, uint64_t member)
{
    struct hot_write *w = hot_key_named(x->key, member);
    while (w && w->stamp == x->write.dot.stamp && w->effect->unit == x->write.unit) {
        w = hot_key_before(x->key, w);
    }
    return w;
}

/* False: none of these, the write and those of its member that came before it, is behind X. */
static bool any_behind(const struct late *x, const struct hot_write *w)
{
    uint64_t stamp = x->write.dot.stamp;
    return w && (w->latest[0] >= stamp || w->latest[1] >= stamp || w->latest[2] >= stamp);
}

/* The first one of these that is behind X. */
static struct hot_write *behind(const struct merge *m, const struct late *x, struct hot_write *w)
{
    while (any_behind(x, w) && !is_behind(m, x, w)) {
        w = hot_key_before(x->key, w);
    }
    return any_behind(x, w) ? w : NULL;
}

static struct hot_write *first_behind(const struct merge *m, const struct late *x, uint64_t member)
{
    return behind(m, x, newest(x, member));
}

static struct hot_write *next_behind(const struct merge *m, const struct late *x,
                                     const struct hot_write *w)
{
    return behind(m, x, hot_key_before(x->key, w));
}

/* All that is done to the member behind X (of enum hot_does, the kinds). Without a walk, unless
 * somebody has written it with the very stamp. */
static unsigned done_behind(const struct merge *m, const struct late *x, uint64_t member)
{
    const struct hot_write *w = newest(x, member);
    unsigned done = 0;
    bool same_stamp = false;
    for (int kind = 0; w && kind < HOT_KINDS; kind++) {
        done |= w->latest[kind] > x->write.dot.stamp ? 1U << kind : 0;
        same_stamp = same_stamp || w->latest[kind] == x->write.dot.stamp;
    }
    for (w = same_stamp ? first_behind(m, x, member) : NULL; w; w = next_behind(m, x, w)) {
        done |= w->does;
    }
    return done & ((1U << HOT_KINDS) - 1);
}

static uint64_t member_at(const struct late *x, int i)
{
    return hot_member(effect_member(&x->write.effect, x->write.argv, i));
}

static void run(struct merge *m, struct late *x)
{
    merge_run(m, &x->write, x->db, x->name, x->now_ms);
    merge_take_missed(m, x->db, x->name, &x->write, x->now_ms);
}

/* ---- rules 3 and 4 ---- */

/* Additions to the member, which are all that is behind X and names it: integers, so in whatever
 * order. */
static void add_again(struct merge *m, const struct late *x, uint64_t member)
{
    const struct hot_write *w = first_behind(m, x, member);
    for (; w; w = next_behind(m, x, w)) {
        struct window_write again = window_write_of(w->effect);
        merge_run(m, &again, x->db, x->name, x->now_ms);
        mem_free(again.argv);
    }
}

/* Entries, and what groups have pending of them: more hangs on a word than that its members are
 * what it says (positions, counts, consumers), so it is run, where nothing would be run again. */
static bool put_in_stream(struct merge *m, struct late *x)
{
    for (int i = 0; i < x->write.effect.count; i++) {
        if (done_behind(m, x, member_at(x, i))) {
            return false;
        }
    }
    run(m, x);
    return true;
}

/* Behind X a member is given again that X takes away, or gives without its deadline, and that has
 * a deadline: it would have none. */
static bool is_dated_before(const struct merge *m, const struct late *x, int i, unsigned done)
{
    return done & HOT_GIVES && x->write.effect.flags & (EFFECT_TAKES | EFFECT_UNDATES) &&
           m->executor->has_member_deadline(m->context, x->db, x->name,
                                            effect_member(&x->write.effect, x->write.argv, i));
}

/* A member that is assigned behind X has that, whatever X says. */
static bool put_in_assign(struct merge *m, struct late *x)
{
    int count = x->write.effect.count, kept = 0, added = 0;
    bool *keeps = mem_alloc((size_t)count + 1), dated = false;
    for (int i = 0; i < count; i++) {
        unsigned done = done_behind(m, x, member_at(x, i));
        dated = dated || is_dated_before(m, x, i, done);
        keeps[i] = !(done & (HOT_GIVES | HOT_TAKES));
        kept += keeps[i];
        added += keeps[i] && done & HOT_ADDS;
    }
    /* One without members may make the key. Sums of doubles want their order; and a member that X
     * names twice would be added to twice. */
    bool good =
        count > 0 && !dated && (added == 0 || (count == 1 && x->write.effect.type == EFFECT_HASH));
    if (good && kept == count) {
        run(m, x);
    } else if (good && kept > 0) {
        merge_run_members(m, &x->write, keeps, x->db, x->name, x->now_ms);
    }
    if (good && added > 0) {
        add_again(m, x, member_at(x, 0));
    }
    mem_free(keeps);
    return good;
}

/* True when X, or an addition behind it, may be none of an integer: sums of doubles want their
 * order. */
static bool adds_inexactly(const struct merge *m, const struct late *x, uint64_t member)
{
    if (x->key->inexact < x->write.dot.stamp) {
        return false; /* X's own stamp is one of those */
    }
    const struct hot_write *w = first_behind(m, x, member);
    bool inexact = x->write.effect.flags & EFFECT_INEXACT;
    for (int i = 0; w && !inexact && i < ADDITIONS_LOOKED_AT; i++) {
        inexact = w->effect->effect.flags & EFFECT_INEXACT;
        w = next_behind(m, x, w);
    }
    return inexact || w != NULL;
}

static bool put_in_add(struct merge *m, struct late *x)
{
    bool has_member = x->write.effect.count > 0;
    uint64_t member = has_member ? member_at(x, 0) : hot_member(slice_of("", 0));
    if (done_behind(m, x, member) & (HOT_GIVES | HOT_TAKES)) {
        return true;
    }
    run(m, x);
    if (x->write.effect.type == EFFECT_ZSET &&
        (adds_inexactly(m, x, member) ||
         !m->executor->is_integer(m->context, x->db, x->name,
                                  effect_member(&x->write.effect, x->write.argv, 0)))) {
        merge_conflict(m, x->db, x->name, x->now_ms);
    }
    return true;
}

/* ---- lists ---- */

/* The end of the list to which X pushes: elements that were pushed there behind X, which X's go
 * below of. */
struct region {
    struct merge *m;
    struct late *late;
    bool left, gave_up;
    uint32_t limit, work;    /* see LIFT_MAX */
    uint32_t count, certain; /* elements; so many of them were pushed behind X for sure */
    struct buf elements;     /* from the end on: length (4 bytes), bytes */
};

/* A push behind X to that end which brought the element, and was not met on this walk; NULL: there
 * is none. *clear: nothing else names the element behind X. */
static struct hot_write *push_of(struct region *r, uint64_t element, bool *clear)
{
    struct hot_write *found = NULL;
    struct hot_write *w = first_behind(r->m, r->late, element);
    *clear = true;
    for (; w && r->work < r->limit; w = next_behind(r->m, r->late, w), r->work++) {
        bool same_end = w->does & HOT_GIVES && !(w->does & HOT_LEFT) == !r->left;
        if (same_end && !found && w->walk != r->late->key->walks) {
            found = w;
        }
        *clear = *clear && same_end;
    }
    return found;
}

/* An element, the next one from the end: true while there may be more of the region. */
static bool look_at(struct slice element, void *argument)
{
    struct region *r = argument;
    bool clear;
    struct hot_write *push = push_of(r, hot_member(element), &clear);
    uint32_t len = (uint32_t)element.len, work = 1 + len / 1024;
    r->gave_up = r->work >= r->limit || (push && r->work + work > r->limit);
    if (!push || r->gave_up) {
        return false;
    }
    r->work += work;
    push->walk = r->late->key->walks;
    buf_append(&r->elements, (const char *)&len, sizeof(len));
    buf_append_slice(&r->elements, element);
    r->count++;
    if (clear) {
        r->certain = r->count; /* and so were those nearer to the end */
    }
    return true;
}

static void run_words(struct region *r, int argc, const struct slice *argv)
{
    if (!r->m->executor->run(r->m->context, r->late->db, argc, argv)) {
        merge_conflict(r->m, r->late->db, r->late->name, r->late->now_ms);
    }
}

static void take_off(struct region *r)
{
    char number[NUM_I64_MAX_CHARS];
    struct slice count = slice_of(number, num_format_i64(number, r->count));
    run_words(
        r, 3,
        (const struct slice[]){r->left ? SLICE("LPOP") : SLICE("RPOP"), r->late->name, count});
}

static void put_back(struct region *r)
{
    uint32_t words = r->count + 2, len;
    struct slice *argv = mem_alloc(words * sizeof(*argv));
    argv[0] = r->left ? SLICE("LPUSH") : SLICE("RPUSH");
    argv[1] = r->late->name;
    const char *at = r->elements.data;
    for (uint32_t i = words; i > 2; i--) { /* that at the very end was the last */
        memcpy(&len, at, sizeof(len));
        argv[i - 1] = slice_of(at + sizeof(len), len);
        at += sizeof(len) + len;
    }
    run_words(r, (int)words, argv);
    mem_free(argv);
}

static bool put_in_push(struct merge *m, struct late *x)
{
    bool is_dear = x->now_ms < x->key->lift_after_ms;
    struct region r = {.m = m,
                       .late = x,
                       .left = x->write.effect.flags & EFFECT_LEFT,
                       .limit = is_dear ? LIFT_FREE : LIFT_MAX};
    for (int i = 0; i < x->write.effect.count; i++) {
        if (done_behind(m, x, member_at(x, i)) & HOT_TAKES) {
            return false; /* it may have been this one */
        }
    }
    x->key->walks++;
    m->executor->elements(m->context, x->db, x->name, r.left, look_at, &r);
    bool clear = !r.gave_up && r.count == r.certain;
    if (!is_dear && r.work > LIFT_FREE) {
        x->key->lift_after_ms = x->now_ms + r.work / LIFT_A_MS;
    }
    if (clear && r.count > 0) {
        take_off(&r);
    }
    if (clear) {
        run(m, x);
    }
    if (clear && r.count > 0) {
        put_back(&r);
    }
    buf_deinit(&r.elements);
    return clear;
}

static bool put_in_list(struct merge *m, struct late *x)
{
    if (!m->executor->elements || m->executor->has_deadline(m->context, x->db, x->name)) {
        return false;
    }
    if (x->write.effect.flags & EFFECT_GIVES) {
        return put_in_push(m, x);
    }
    if (done_behind(m, x, member_at(x, 0)) & HOT_GIVES) {
        return false; /* X would take an element that was not there yet */
    }
    run(m, x);
    return true;
}

/* ---- which of them ---- */

/* Nothing is behind it: the key was gone, or is in conflict. */
static bool put_in_last(struct merge *m, struct late *x)
{
    if (x->key->last.place != x->write.dot.place ||
        window_last_flush(m->window, x->db) >= x->write.dot.stamp) {
        return false;
    }
    run(m, x);
    m->plans[MERGE_RUN]++;
    return true;
}

static bool put_in_by_rules(struct merge *m, struct late *x)
{
    uint64_t stamp = x->write.dot.stamp;
    if (!hot_is_plain(&x->write.effect) || x->write.effect.type != x->key->type ||
        x->key->other >= stamp || window_last_flush(m->window, x->db) >= stamp) {
        return false;
    }
    bool done;
    if (x->write.effect.type == EFFECT_LIST) {
        done = put_in_list(m, x);
    } else if (x->write.effect.type == EFFECT_STREAM) {
        done = put_in_stream(m, x);
    } else {
        done = x->write.effect.class == EFFECT_ADD ? put_in_add(m, x) : put_in_assign(m, x);
    }
    m->plans[MERGE_REPEAT] += done;
    return done;
}

/* What X is to the content. */
enum place {
    PLACE_UNCLEAR, /* not without a look at all */
    PLACE_OVER,    /* void */
    PLACE_LIVE,    /* a part of it */
    PLACE_DOUBTED, /* void, if the last state is still in force */
};

/* The last state is there, and no whole write has a later stamp; none that may be there has one
 * above `whole`. */
static enum place place_by_state(const struct merge *m, const struct late *x, uint64_t whole)
{
    struct window_write state = window_write_of(x->key->state);
    window_write_open(&state);
    struct window_view alone = {.writes = &state, .count = 1};
    enum place place = PLACE_UNCLEAR;
    if (whole <= merge_fold_void_upto(&alone)) { /* so the state is B */
        bool is_sure =
            window_holds_for_state(m->window, x->db, x->name, state.cover, state.dot.stamp);
        place = merge_fold_is_on_top(m, &state, &x->write) ? PLACE_LIVE
                : is_sure                                  ? PLACE_OVER
                                                           : PLACE_DOUBTED;
    }
    mem_free(state.argv);
    return place;
}

static enum place place_of(const struct merge *m, const struct late *x)
{
    uint64_t floor = window_floor(m->window), stamp = x->write.dot.stamp;
    uint64_t flush = window_last_flush(m->window, x->db), whole = x->key->whole;
    uint64_t state = x->key->state_dot.stamp > floor ? x->key->state_dot.stamp : 0;
    /* A whole write up to the floor may be there all the same, and such a one may be what has taken
     * the state out of force; a state up to the floor does not matter, for X is on top of it. */
    whole = whole > floor || whole >= window_oldest(m->window) ? whole : 0;
    whole = flush > whole ? flush : whole;
    if (state > whole) {
        return place_by_state(m, x, whole);
    }
    if (whole == stamp || (state > 0 && state == whole)) {
        return PLACE_UNCLEAR;
    }
    return whole > stamp ? PLACE_OVER : PLACE_LIVE;
}

/* What the rules say nothing of: X is void, or so much was looked at lately for late writes of this
 * key that it is a guess. */
static bool put_in_without_rules(struct merge *m, struct late *x)
{
    enum place place = place_of(m, x);
    if (place == PLACE_OVER) {
        m->plans[MERGE_OVER]++;
        return true;
    }
    if (place == PLACE_DOUBTED) {
        merge_conflict(m, x->db, x->name, x->now_ms);
        m->plans[MERGE_NEITHER]++;
        return true;
    }
    if (place == PLACE_UNCLEAR || x->now_ms >= x->key->fold_after_ms ||
        x->key->expires >= x->write.dot.stamp) {
        return false;
    }
    run(m, x);
    merge_conflict(m, x->db, x->name, x->now_ms);
    m->plans[MERGE_GUESS]++;
    return true;
}

bool merge_hot_put_in(struct merge *m, struct unit *unit, const struct unit_command *c,
                      const struct effect *effect, int64_t now_ms)
{
    struct late x = {.write = {.dot = unit->dot,
                               .number = c->number,
                               .offset = c->offset,
                               .effect = *effect,
                               .unit = unit,
                               .argc = c->argc,
                               .argv = c->argv},
                     .name = c->argv[effect->key],
                     .db = c->db,
                     .now_ms = now_ms};
    uint64_t stamp = unit->dot.stamp;
    if (effect->class == EFFECT_WHOLE || effect->flags & EFFECT_EXPIRES ||
        stamp <= window_floor(m->window)) {
        return false;
    }
    x.key = window_hot(m->window, c->db, x.name, false);
    if (!x.key && effect->type == EFFECT_LIST && window_last(m->window, c->db, x.name) > stamp) {
        x.key = window_hot(m->window, c->db, x.name, true);
    }
    bool done =
        x.key && (put_in_last(m, &x) || put_in_by_rules(m, &x) || put_in_without_rules(m, &x));
    if (done) {
        merge_touch(m, c->db, x.name, x.key->last);
    }
    return done;
}

void merge_hot_looked(struct merge *m, int db, struct slice key, uint32_t writes, bool all,
                      int64_t now_ms)
{
    struct hot_key *k =
        writes < HOT_FROM || m->broken ? NULL : window_hot(m->window, db, key, true);
    if (k && writes > (all ? FOLD_FREE : LOOK_FREE)) {
        k->fold_after_ms = now_ms + writes / (all ? FOLD_WRITES_A_MS : LOOK_WRITES_A_MS);
    }
}
