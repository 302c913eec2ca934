/* Rules 3 and 4: a late write of members below later writes of members. Registers are independent,
 * so only those that the late write changes matter; what makes them dependent (a deadline takes
 * effect only where something is there; the last member takes the key along) is excluded first. */
#include "active/merge_priv.h"

#include "base/hash.h"
#include "base/mem.h"

#include <stdint.h>
#include <string.h>

struct member {
    struct slice name, scope; /* name.ptr NULL: a free slot */
};
/* A set of them: open addressing over a power of two. */
struct members {
    struct member *slots;
    uint32_t count, capacity;
    uint64_t bits; /* window_member of all of them */
};

static struct member *slot_of(const struct members *s, const struct member *member)
{
    uint64_t at = hash_slice(member->name);
    for (;; at++) {
        struct member *slot = &s->slots[at & (s->capacity - 1)];
        if (!slot->name.ptr ||
            (slice_equal(slot->name, member->name) && slice_equal(slot->scope, member->scope))) {
            return slot;
        }
    }
}

static bool has_member(const struct members *s, const struct member *member)
{
    return s->count > 0 && slot_of(s, member)->name.ptr != NULL;
}

static void add_member(struct members *s, const struct member *member)
{
    if (2 * (s->count + 1) > s->capacity) {
        struct members grown = {.capacity = s->capacity ? 2 * s->capacity : 16, .bits = s->bits};
        grown.slots = mem_calloc(grown.capacity, sizeof(*grown.slots));
        for (uint32_t i = 0; i < s->capacity; i++) {
            if (s->slots[i].name.ptr) {
                *slot_of(&grown, &s->slots[i]) = s->slots[i];
                grown.count++;
            }
        }
        mem_free(s->slots);
        *s = grown;
    }
    struct member *slot = slot_of(s, member);
    s->count += slot->name.ptr == NULL;
    s->bits |= window_member(member->name);
    *slot = *member;
}

static struct member member_of(struct window_write *w, int i)
{
    window_write_open(w);
    return (struct member){.name = effect_member(&w->effect, w->argv, i),
                           .scope = effect_scope(&w->effect, w->argv)};
}

static void add_all(struct members *s, struct window_write *w)
{
    for (int i = 0; i < w->effect.count; i++) {
        struct member member = member_of(w, i);
        add_member(s, &member);
    }
}

/* True when the i-th member of `w` is one of them. */
static bool names(struct window_write *w, int i, const struct members *s)
{
    struct member member = member_of(w, i);
    return has_member(s, &member);
}

/* The same where they are entries, of what a group has pending: who was given one is seen only
 * where it is there. */
static bool names_in_group(struct window_write *w, int i, const struct members *s)
{
    struct member entry = {.name = member_of(w, i).name, .scope = slice_of("", 0)};
    return w->effect.scope > 0 && has_member(s, &entry);
}

static bool names_one_of(struct window_write *w, const struct members *s, bool in_groups)
{
    for (int i = 0; i < w->effect.count && w->members & s->bits; i++) {
        if (names(w, i, s) || (in_groups && names_in_group(w, i, s))) {
            return true;
        }
    }
    return false;
}

static bool is_by_members(const struct window_write *w)
{
    return w->effect.class == EFFECT_ASSIGN || w->effect.class == EFFECT_ADD;
}

/* The key's own deadline, not a member's. */
static bool is_of_key(const struct window_write *w)
{
    return w->effect.count == 0 && (w->effect.flags & ~(unsigned)EFFECT_UNDATES) != EFFECT_GIVES &&
           w->effect.flags & (EFFECT_DATES | EFFECT_UNDATES);
}

static bool gives(const struct window_write *w)
{
    return w->effect.flags & EFFECT_GIVES;
}

static bool is_of_entries(const struct window_write *w)
{
    return w->effect.type == EFFECT_STREAM && w->effect.scope == 0;
}

static bool only_undates(const struct window_write *w)
{
    return w->effect.flags == EFFECT_UNDATES;
}

/* The key goes, where it has that deadline. */
static bool expires_key(const struct window_write *w)
{
    return w->effect.class == EFFECT_ORDER && w->effect.flags & EFFECT_EXPIRES;
}

#define DATING (EFFECT_DATES | EFFECT_UNDATES)

/* What the live writes behind X do, all together. */
struct behind {
    bool by_members; /* all of them, of X's type */
    bool gives, takes, dates_key;
    bool gives_x, takes_x, dates_x; /* a member of X's */
    bool assigns_x;                 /* X's register, with a value */
    bool redates_x, expires_x;      /* it gets another deadline or none; it goes by its deadline */
    bool only_expires;              /* the key, all of them */
};

static bool same_type(enum effect_type *type, enum effect_type other)
{
    if (*type == EFFECT_ANY) {
        *type = other;
    }
    return other == EFFECT_ANY || other == *type;
}

static struct behind look_behind(const struct merge *m, const struct merge_fold *f, int x,
                                 const struct members *named)
{
    struct behind b = {.by_members = true, .only_expires = true};
    enum effect_type type = f->view.writes[x].effect.type;
    for (int i = x + 1; i < (int)f->view.count; i++) {
        struct window_write *w = &f->view.writes[i];
        if (!merge_fold_is_live(m, f, i)) {
            continue;
        }
        b.by_members = b.by_members && is_by_members(w) && same_type(&type, w->effect.type);
        b.only_expires = b.only_expires && expires_key(w);
        bool touches = names_one_of(w, named, false);
        b.expires_x = b.expires_x || (touches && w->effect.flags & EFFECT_EXPIRES);
        b.redates_x = b.redates_x || (touches && !gives(w) && w->effect.flags & DATING);
        b.gives = b.gives || gives(w);
        b.takes = b.takes || w->effect.flags & EFFECT_TAKES;
        b.dates_key = b.dates_key || (is_of_key(w) && w->effect.flags & EFFECT_DATES);
        b.dates_x = b.dates_x || (touches && w->effect.flags & EFFECT_DATES);
        b.gives_x = b.gives_x || (touches && gives(w));
        b.takes_x = b.takes_x || (touches && w->effect.flags & EFFECT_TAKES);
        b.assigns_x = b.assigns_x || (touches && w->effect.class == EFFECT_ASSIGN &&
                                      w->effect.flags & (EFFECT_GIVES | EFFECT_TAKES));
    }
    return b;
}

/* True when what is behind, and takes a member where it has some deadline, can be run again to the
 * same end: X gives it without one, or takes it too (as when both sides of a cut say so). */
static bool survives_expiry(const struct window_write *late)
{
    return (gives(late) && late->effect.flags & EFFECT_UNDATES) ||
           late->effect.flags & EFFECT_TAKES;
}

bool merge_rules_commute(const struct merge *m, const struct merge_fold *f, int x, int db,
                         struct slice key)
{
    struct window_write *late = &f->view.writes[x];
    struct members named = {0};
    add_all(&named, late);
    struct behind b = look_behind(m, f, x, &named);
    mem_free(named.slots);
    if (expires_key(late)) {
        return b.only_expires; /* the first of them that finds its deadline, wherever it stands */
    }
    if (!is_by_members(late) || !b.by_members || (b.expires_x && !survives_expiry(late))) {
        return false;
    }
    if (is_of_key(late)) {
        /* A deadline takes effect where the key is: whoever gives members may have made it since;
         * and where it is not, one more late member may show that it was never empty. */
        return !(late->effect.flags & EFFECT_DATES) ||
               (!b.gives && m->executor->exists(m->context, db, key));
    }
    if (late->effect.flags & EFFECT_DATES) {
        return !b.gives_x;
    }
    if (is_of_entries(late) && b.gives_x) {
        return false; /* an entry counts each time that it is added */
    }
    if (late->effect.flags & EFFECT_TAKES) {
        /* The key may have been away when it got its deadline; and a member that has another one
         * by now may have had this one. */
        return !b.dates_key && !(late->effect.flags & EFFECT_EXPIRES && b.redates_x);
    }
    if (b.dates_key && b.takes) {
        return false;
    }
    if (late->effect.class == EFFECT_ADD && b.assigns_x) {
        return !b.dates_x && !b.dates_key;
    }
    return true;
}

/* True when a later write is to be run again, since X changed what it found. */
static bool is_concerned(struct window_write *late, struct window_write *w,
                         const struct members *named)
{
    if (only_undates(late)) {
        return false;
    }
    if (is_of_key(w)) {
        return is_of_key(late) || (gives(late) && late->effect.scope == 0); /* that makes no key */
    }
    if (late->effect.class == EFFECT_ADD) {
        return !gives(w) && w->effect.flags & DATING && names_one_of(w, named, false);
    }
    return names_one_of(w, named, is_of_entries(late));
}

/* Runs it again for X's members alone: of another one it may be that it found something that is not
 * there any more (a deadline, say), and would do something else now. */
static void run_again(struct merge *m, struct window_write *late, struct window_write *w,
                      const struct members *named, int db, struct slice key, int64_t now_ms)
{
    if (w->effect.count <= 1) {
        merge_run(m, w, db, key, now_ms);
        return;
    }
    bool *keeps = mem_alloc((size_t)w->effect.count);
    for (int i = 0; i < w->effect.count; i++) {
        keeps[i] = names(w, i, named) || (is_of_entries(late) && names_in_group(w, i, named));
    }
    /* What is pending is pending at somebody: the first word (KEYDB.XPEND). */
    keeps[0] = keeps[0] || (w->effect.scope > 0 && gives(w));
    merge_run_members(m, w, keeps, db, key, now_ms);
    mem_free(keeps);
}

/* True when `w`, behind X, decides what X would have changed, whether it found something or not.
 * Rule 4: an assignment makes an addition void. A deadline makes void that there was none before:
 * it has taken the place of what was there, or there was nothing that could have one. */
static bool makes_void(struct window_write *late, struct window_write *w,
                       const struct members *named)
{
    if (only_undates(late)) {
        return w->effect.flags & EFFECT_DATES && is_of_key(w) == is_of_key(late) &&
               (is_of_key(w) || names_one_of(w, named, false));
    }
    return late->effect.class == EFFECT_ADD && w->effect.class == EFFECT_ASSIGN &&
           w->effect.flags & (EFFECT_GIVES | EFFECT_TAKES) && names_one_of(w, named, false);
}

static bool is_void(const struct merge *m, const struct merge_fold *f, int x,
                    const struct members *named)
{
    for (int i = x + 1; i < (int)f->view.count; i++) {
        if (merge_fold_is_live(m, f, i) &&
            makes_void(&f->view.writes[x], &f->view.writes[i], named)) {
            return true;
        }
    }
    return false;
}

/* True when additions to X's member, X and those behind it, may be in any order: doubles do not
 * commute, but for integers below 2^53. */
static bool sums_exactly(const struct merge *m, const struct merge_fold *f, int x, int db,
                         struct slice key)
{
    struct window_write *late = &f->view.writes[x];
    struct member member = member_of(late, 0);
    bool exact = m->executor->is_integer(m->context, db, key, member.name);
    for (int i = x; i < (int)f->view.count && exact; i++) {
        struct window_write *w = &f->view.writes[i];
        exact = !(w->effect.flags & EFFECT_INEXACT) || !merge_fold_is_live(m, f, i) ||
                !slice_equal(member_of(w, 0).name, member.name);
    }
    return exact;
}

void merge_rules_guess(struct merge *m, const struct merge_fold *f, int x, int db, struct slice key,
                       int64_t now_ms)
{
    if (f->view.count <= MERGE_REFOLD_MAX && merge_rules_commute(m, f, x, db, key)) {
        merge_rules_repeat(m, f, x, db, key, now_ms);
    } else {
        merge_run(m, &f->view.writes[x], db, key, now_ms);
    }
}

void merge_rules_repeat(struct merge *m, const struct merge_fold *f, int x, int db,
                        struct slice key, int64_t now_ms)
{
    struct window_write *late = &f->view.writes[x];
    struct members named = {0};
    add_all(&named, late);
    if (is_void(m, f, x, &named)) {
        mem_free(named.slots);
        return;
    }
    merge_run(m, late, db, key, now_ms);
    if (late->effect.flags & EFFECT_EXPIRES && !m->executor->changed(m->context)) {
        mem_free(named.slots); /* it had another deadline then, too: nothing is other than it was */
        return;
    }
    for (int i = x + 1; i < (int)f->view.count && !(m->broken & MERGE_BREAK_REPEAT); i++) {
        struct window_write *w = &f->view.writes[i];
        if (merge_fold_is_live(m, f, i) && is_concerned(late, w, &named)) {
            run_again(m, late, w, &named, db, key, now_ms);
        }
    }
    mem_free(named.slots);
    if (late->effect.class == EFFECT_ADD && late->effect.type == EFFECT_ZSET &&
        !sums_exactly(m, f, x, db, key)) {
        merge_conflict(m, db, key, now_ms);
    }
}
