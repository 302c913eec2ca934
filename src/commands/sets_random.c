/* Random members of sets: SPOP and SRANDMEMBER. A count that a client sends reserves nothing; what
 * it may make us reply is bounded. */
#include "commands/commands.h"
#include "commands/random_limit.h"
#include "commands/sets_priv.h"

#include "engine/propagate.h"
#include "keyspace/access.h"
#include "keyspace/reclaim.h"
#include "value/member_ttl.h"

/* What set_sample notes of a member at most, in an open table at least half empty. */
#define SAMPLE_BYTES 32

/* SPOP that leaves fewer than this part of what it takes moves those that stay, instead of taking
 * out the others (not where members have deadlines, which would have to move too). */
#define POP_MOVES_PART 5

/* ---- SPOP ---- */

WRITE_COMMAND(pop_one)
{
    struct keyref ref;
    struct set_member m;
    if (!call_open_typed(c, 0, VALUE_SET, &ref)) {
        return;
    }
    if (!ref.entry) {
        reply_null(c->reply);
        return;
    }
    set_random(ref.entry, &m);
    sets_reply_member(c->reply, &m);
    if (unlikely(propagate_on)) {
        PROPAGATE(c, SLICE("SREM"), ref.key.name, set_member_bytes(&m));
    }
    set_remove(ref.entry, &m);
    call_changed(c, &ref, EVENT_SET, "spop");
    sets_delete_empty(&ref);
}

/* What is propagated of members that chance chose: they are named. */
static struct propagate_draft begin_removal(const struct keyref *ref)
{
    struct propagate_draft d = {0};
    propagate_add(&d, SLICE("SREM"));
    propagate_add(&d, ref->key.name);
    return d;
}

/* The removal of all that is in `gone`. */
static struct propagate_draft removal_of(const struct keyref *ref, const struct entry *gone)
{
    struct propagate_draft d = begin_removal(ref);
    struct set_member m;
    struct set_walk walk;
    set_walk_begin(&walk, gone);
    while (set_walk_next(&walk, &m)) {
        propagate_add(&d, set_member_bytes(&m));
    }
    return d;
}

/* Takes all: the key goes. Peers get the members: others may have been added elsewhere. */
static void pop_all(struct call *c, struct keyref *ref) REQUIRES(keyspace_lock)
{
    sets_reply_members(c->reply, ref->entry);
    if (unlikely(propagate_peers)) {
        struct propagate_draft d = removal_of(ref, ref->entry);
        propagate_draft_to_peers(c, &d);
        propagate_emptied(ref);
    }
    if (unlikely(propagate_on)) {
        PROPAGATE(c, reclaim_lazy_server_del() ? SLICE("UNLINK") : SLICE("DEL"), ref->key.name);
    }
    call_changed(c, ref, EVENT_SET, "spop");
    db_delete(ref, reclaim_lazy_server_del());
    event_notify(EVENT_GENERIC, "del", ref->db->id, ref->key.name);
}

/* The members of `gone` were popped. */
static void propagate_popped(struct call *c, const struct keyref *ref, const struct entry *gone)
    REQUIRES(keyspace_lock)
{
    struct propagate_draft d = removal_of(ref, gone);
    propagate_draft_instead(c, &d);
}

/* Takes all but `staying` members, which move to a set of their own that replaces the old one. */
static void pop_most(struct call *c, struct keyref *ref, uint64_t staying) REQUIRES(keyspace_lock)
{
    struct set_member m;
    struct entry *old = ref->entry;
    set_random(old, &m);
    struct entry *kept = set_create(ref->key.name, &m, 1, entry_expiry_ms(old));
    entry_set_clock(kept, entry_clock(old));
    while (staying-- > 0) {
        set_random(old, &m);
        set_add(kept, &m);
        set_remove(old, &m);
    }
    sets_reply_members(c->reply, old);
    if (unlikely(propagate_on)) {
        propagate_popped(c, ref, old);
    }
    db_put(ref, kept);
    call_changed(c, ref, EVENT_SET, "spop");
}

static void pop_some(struct call *c, struct keyref *ref, uint64_t count) REQUIRES(keyspace_lock)
{
    bool told = propagate_on;
    struct propagate_draft gone = told ? begin_removal(ref) : (struct propagate_draft){0};
    while (count-- > 0) {
        struct set_member m;
        set_random(ref->entry, &m);
        sets_reply_member(c->reply, &m);
        if (unlikely(told)) {
            propagate_add(&gone, set_member_bytes(&m));
        }
        set_remove(ref->entry, &m);
    }
    if (unlikely(told)) {
        propagate_draft_instead(c, &gone);
    }
    call_changed(c, ref, EVENT_SET, "spop");
}

WRITE_COMMAND(pop_several)
{
    int64_t count;
    struct keyref ref;
    if (!call_arg_range(c, 2, 0, INT64_MAX, &count,
                        "ERR value is out of range, must be positive") ||
        !call_open_typed(c, 0, VALUE_SET, &ref)) {
        return;
    }
    if (!ref.entry || count == 0) {
        reply_set(c->reply, 0);
        return;
    }
    uint64_t size = set_count(ref.entry);
    uint64_t popped = (uint64_t)count < size ? (uint64_t)count : size;
    reply_set(c->reply, popped);
    if (popped == size) {
        pop_all(c, &ref);
    } else if ((size - popped) * POP_MOVES_PART <= popped && !member_ttl_any(ref.entry)) {
        pop_most(c, &ref, size - popped);
    } else {
        pop_some(c, &ref, popped);
    }
    c->dirty += popped - 1;
}

WRITE_COMMAND(spop_command)
{
    if (c->argc > 3) {
        reply_syntax_error(c->reply);
    } else if (c->argc == 3) {
        pop_several(c);
    } else {
        pop_one(c);
    }
}

/* ---- SRANDMEMBER ---- */

READ_COMMAND(random_one)
{
    struct entry *e;
    struct set_member m;
    if (!call_read_typed(c, 0, VALUE_SET, &e)) {
        return;
    }
    if (!e) {
        reply_null(c->reply);
        return;
    }
    set_random(e, &m);
    sets_reply_member(c->reply, &m);
}

static void visit_repeated(struct set_member *m, void *context)
{
    struct random_repeats *repeats = context;
    if (random_repeats_take(repeats, set_member_bytes(m).len, NULL)) {
        sets_reply_member(repeats->call->reply, m);
    }
}

static void reply_repeated(struct call *c, const struct entry *e, uint64_t count)
    REQUIRES_SHARED(keyspace_lock)
{
    struct random_repeats repeats;
    if (!random_repeats_begin(&repeats, c, count)) {
        return;
    }
    reply_array(c->reply, count);
    while (count > 0 && !repeats.refused) {
        uint64_t some = count < RANDOM_REPEATS_STEP ? count : RANDOM_REPEATS_STEP;
        set_draw(e, some, visit_repeated, &repeats);
        count -= some;
    }
}

READ_COMMAND(random_several)
{
    int64_t count;
    struct entry *e;
    if (!call_arg_range(c, 2, -INT64_MAX, INT64_MAX, &count, NULL) ||
        !random_limit_allows(c, count) || !call_read_typed(c, 0, VALUE_SET, &e)) {
        return;
    }
    if (!e || count == 0) {
        reply_array(c->reply, 0);
    } else if (count < 0) {
        reply_repeated(c, e, (uint64_t)-count);
    } else {
        uint64_t size = set_count(e);
        uint64_t shown = (uint64_t)count < size ? (uint64_t)count : size;
        if (!call_reserve(c, shown * SAMPLE_BYTES)) {
            return;
        }
        reply_array(c->reply, shown);
        set_sample(e, shown, sets_visit_reply, c->reply);
        call_unreserve();
    }
}

READ_COMMAND(srandmember_command)
{
    if (c->argc > 3) {
        reply_syntax_error(c->reply);
    } else if (c->argc == 3) {
        random_several(c);
    } else {
        random_one(c);
    }
}

const struct command_row set_random_commands[] = {
    {.name = "spop",
     .run = spop_command,
     .arity = -2,
     .flags = CMD_WRITE | CMD_FAST | CMD_SLOW,
     .categories = CATEGORY_SET,
     .keys = "i1/r0,1,0/RW+ACCESS+DELETE",
     .tips = "nondeterministic_output",
     .group = "set",
     .since = "1.0.0",
     .summary =
         "Takes random members out of a set and returns them; the key goes with the last one.",
     .complexity = "O(1) without count, else O(N), N being the members taken",
     .args = "key [count]",
     .history = "3.2.0:Takes a count."},
    {.name = "srandmember",
     .run = srandmember_command,
     .arity = -2,
     .flags = CMD_READONLY | CMD_SLOW,
     .categories = CATEGORY_SET,
     .keys = "i1/r0,1,0/RO+ACCESS",
     .tips = "nondeterministic_output",
     .group = "set",
     .since = "1.0.0",
     .summary = "Returns random members of a set: different ones, or with a negative count any.",
     .complexity = "O(1) without count, else O(N), N being the count",
     .args = "key [count]",
     .history = "2.6.0:Takes a count."},
    {.name = NULL},
};
