/* See parked.h. */
#include "engine/parked.h"

#include "base/clock.h"
#include "base/mem.h"
#include "engine/acl.h"
#include "engine/cmdstats.h"
#include "engine/commit.h"
#include "engine/execute.h"
#include "engine/gate.h"
#include "engine/propagate.h"
#include "keyspace/waiting.h"
#include "resp/parser.h"

#include <assert.h>
#include <stdatomic.h>

enum parked_stage { PARKED_NEW, PARKED_WAITING, PARKED_DONE };

/* One allocation: behind the struct lie the places in the queues, the keys, and the copy of the
 * request. */
struct parked_call {
    struct waiter waiter; /* first: the registry hands it back */
    enum parked_stage stage;
    _Atomic bool abandoned; /* nobody will read the reply */
    const struct command *cmd;
    struct request request;
    struct key *keys;
    int key_count;
    int first_key, waits_for;   /* keys that it waits at */
    const struct key *own_keys; /* instead of the request's, or NULL; until it is enqueued */
    struct db *db;
    struct key event; /* what it waits for instead of keys; name.ptr NULL: keys */
    void (*on_timeout)(struct call *c);
    struct session *session; /* the client's; borrowed while WAITING */
    int64_t deadline_ms;     /* monotonic; INT64_MAX: none */
    uint64_t ticks;          /* its runs took */
    bool wrote;              /* the log has grown by it */
    bool stays;              /* CLIENT UNBLOCK leaves it waiting */
    bool goes;               /* its owner has gone while it was tried */
    bool refused;            /* when it was run again */
    bool adopted;            /* the session is the owner's, and */
    unsigned targets;        /* these logs are told */
    uint32_t secrets;        /* call.secrets */
    uint64_t number;         /* parked_peers' */
    void *state;             /* the handler's */
    void (*destroy_state)(void *state);
    parked_finish finish;
    void *owner;
    struct reply reply; /* finished */
};

_Thread_local uint64_t parked_served_ticks;

const struct parked_peers *parked_peers;

/* What is replied to parked calls is built here, under the keyspace lock, and copied out in its
 * size. State: keyspace. */
static struct reply builder;

/* Which one is being run again, or NULL. State: keyspace. */
static const struct parked_call *tried;

bool parked_possible(const struct call *c)
{
    if (!(c->cmd->flags & CMD_MAY_WAIT)) {
        return false;
    }
    if (c->cmd->row->may_wait) {
        return c->cmd->row->may_wait(c);
    }
    const char *syntax = c->cmd->row->args;
    if (!syntax || !strstr(syntax, "[BLOCK ")) {
        return true;
    }
    /* A key of that name is taken for the option: harmless. */
    for (int i = 1; i < c->argc; i++) {
        if (call_arg_is(c, i, "block")) {
            return true;
        }
    }
    return false;
}

/* ---- the copy ---- */

/* Keys are slices of arguments, in their order: finds each one's argument, and takes the copy. */
static void copy_keys(struct parked_call *p, const struct call *c)
{
    int arg = 0;
    for (int k = 0; k < c->key_count; k++) {
        struct slice name = c->keys[k].name;
        while (c->argv[arg].ptr != name.ptr || c->argv[arg].len != name.len) {
            arg++;
            assert(arg < c->argc);
        }
        p->keys[k] = (struct key){p->request.argv[arg++], c->keys[k].hash};
    }
}

static int64_t deadline_after(int64_t timeout_ms)
{
    int64_t now_ms = (int64_t)((clock_mono_us() + 999) / 1000); /* never ends early */
    return timeout_ms == 0 || timeout_ms > INT64_MAX - now_ms ? INT64_MAX : now_ms + timeout_ms;
}

struct parked_call *parked_create(const struct call *c, const struct block *b)
{
    struct request request = {c->argc, c->argv, c->blobs};
    int places = b->event.ptr ? 1 : b->key_count;
    size_t places_bytes = (size_t)places * sizeof(struct waiting_place);
    size_t keys_bytes = (size_t)c->key_count * sizeof(struct key);
    struct parked_call *p =
        mem_alloc(sizeof(*p) + places_bytes + keys_bytes + request_copy_bytes(&request));
    char *behind = (char *)(p + 1);
    *p = (struct parked_call){
        .waiter = {.places = (struct waiting_place *)behind,
                   .type = b->type,
                   .when_gone = b->when_gone || b->event.ptr},
        .cmd = c->cmd,
        .request = request_copy(&request, behind + places_bytes + keys_bytes),
        .keys = (struct key *)(behind + places_bytes),
        .key_count = c->key_count,
        .first_key = b->first_key,
        .waits_for = b->key_count,
        .own_keys = b->keys,
        .stays = b->stays,
        .db = c->db,
        .on_timeout = b->on_timeout,
        .session = c->session,
        .deadline_ms = deadline_after(b->timeout_ms),
        .state = b->state,
        .secrets = c->secrets,
        .destroy_state = b->destroy_state ? b->destroy_state : mem_free,
    };
    if (b->event.ptr) {
        p->event = key_of(b->event);
    }
    copy_keys(p, c);
    reply_init(&p->reply);
    return p;
}

void parked_destroy(struct parked_call **parked)
{
    struct parked_call *p = *parked;
    *parked = NULL;
    assert(p->stage != PARKED_WAITING && p->waiter.place_count == 0);
    parser_release(&p->request);
    if (p->state) {
        p->destroy_state(p->state);
    }
    reply_deinit(&p->reply);
    mem_free(p);
}

/* ---- waiting and its end ---- */

void parked_adopt(struct parked_call *p, struct session *session, unsigned targets)
{
    assert(p->stage == PARKED_NEW);
    p->session = session;
    p->adopted = true;
    p->targets = targets;
}

void parked_enqueue(struct parked_call *p, parked_finish finish, void *owner)
{
    assert(p->stage == PARKED_NEW);
    p->finish = finish;
    p->owner = owner;
    if (p->event.name.ptr) {
        waiting_add(&p->waiter, db_at(0), &p->event, 1);
    } else if (p->own_keys) {
        waiting_add(&p->waiter, p->db, p->own_keys, p->waits_for);
    } else {
        waiting_add(&p->waiter, p->db, &p->keys[p->first_key], p->waits_for);
    }
    p->stage = PARKED_WAITING;
    if (unlikely(parked_peers)) {
        parked_join_peers(p);
    }
}

void parked_look_again(struct parked_call *p)
{
    for (int i = 0; i < p->waiter.place_count; i++) {
        waiting_look_again(&p->waiter.places[i]);
    }
}

bool parked_is_tried(const struct parked_call *p)
{
    return p == tried;
}

void parked_join_peers(struct parked_call *p)
{
    if (p->stage == PARKED_WAITING && p->number == 0 && p->cmd->flags & CMD_WRITE &&
        !p->event.name.ptr && !p->own_keys) {
        parked_peers->begun(p);
    }
}

/* Takes what has been built as its reply. */
static void conclude(struct parked_call *p) REQUIRES(keyspace_lock)
{
    reply_end(&builder);
    waiting_remove(&p->waiter);
    p->stage = PARKED_DONE;
    if (unlikely(p->number != 0)) {
        parked_peers->ended(p);
    }
    reply_copy(&p->reply, &builder);
    reply_reset(&builder);
}

/* The call as it is run again, or accounted. */
static struct call call_of(struct parked_call *p)
{
    return (struct call){
        .cmd = p->cmd,
        .argc = p->request.argc,
        .argv = p->request.argv,
        .blobs = p->request.blobs,
        .keys = p->keys,
        .key_count = p->key_count,
        .db = p->db,
        .session = p->session,
        .held = ACCESS_EXCLUSIVE,
        .secrets = p->secrets,
        .retry = true,
        .parked = p,
    };
}

bool parked_end(struct parked_call *p, enum parked_reason reason)
{
    assert(p->stage != PARKED_NEW);
    if (p->stage == PARKED_DONE) {
        return false;
    }
    if (p == tried) { /* a module's, which has let go of the lock for the world */
        p->goes = true;
        return false;
    }
    reply_begin(&builder, p->session->proto);
    if (reason == PARKED_TIMED_OUT && p->on_timeout) {
        struct call c = call_of(p);
        c.reply = &builder;
        p->on_timeout(&c);
    } else if (reason == PARKED_TIMED_OUT) {
        reply_null_array(&builder);
    } else if (reason != PARKED_GONE) {
        reply_error(&builder, reason == PARKED_DEMOTED
                                  ? "UNBLOCKED force unblock from blocking operation, instance "
                                    "state changed (master -> replica?)"
                                  : "UNBLOCKED client unblocked via CLIENT UNBLOCK");
        errorstats_record(builder.last_error);
        cmdstats_failed(p->cmd);
    }
    conclude(p);
    return true;
}

void parked_abandon(struct parked_call *p)
{
    atomic_store_explicit(&p->abandoned, true, memory_order_relaxed);
}

/* A gate has been shut meanwhile. What waits for an event is run on, not again; a module's own call
 * has been let in. */
static void refuse_shut(const struct parked_call *p, struct call *c)
{
    bool again = !p->event.name.ptr && !(p->cmd->flags & CMD_MODULE);
    const char *why = again && gate_any() ? gate_refusal_again(c) : NULL;
    if (why) {
        c->refusal = slice_cstr(why);
    }
}

/* Runs the call, unless its user may do so no more, or nobody may. (The log shows clients, which
 * other threads may not look at: this denial is not in it.) */
static void run_allowed(struct parked_call *p, struct call *c)
{
    struct buf error = {0};
    if (unlikely(!acl_is_unlimited(p->session))) {
        int at;
        enum acl_verdict verdict = acl_check(p->session->acl, c->cmd, c->argv, c->argc, &at);
        if (verdict != ACL_ALLOWED) {
            buf_append_cstr(&error, "NOPERM ");
            acl_append_denial(&error, verdict, p->session->acl, c->cmd, c->argv[at], false);
            c->refusal = buf_slice(&error);
        }
    }
    if (!c->refusal.ptr) {
        refuse_shut(p, c);
    }
    p->refused = c->refusal.ptr;
    call_run(c);
    buf_deinit(&error);
}

/* Runs it again; true when it has its reply, or its owner has gone meanwhile. */
static bool run_again(struct parked_call *p, int64_t now_ms) REQUIRES(keyspace_lock)
{
    struct call c = call_of(p);
    uint64_t begin = clock_ticks(), log_before = commit_appended();
    c.reply = &builder;
    c.now_ms = now_ms;
    reply_begin(&builder, p->session->proto);
    run_allowed(p, &c);
    p->wrote = p->cmd->flags & CMD_WRITE && commit_appended() != log_before;
    uint64_t ticks = clock_ticks() - begin;
    p->ticks += ticks;
    parked_served_ticks += ticks;
    assert(!c.continuation.step && !c.needs_exclusive);
    /* What a module replies, or whether it does, is its own affair. */
    assert(p->cmd->flags & CMD_MODULE ? !c.waits || reply_bytes(&builder) == 0
                                      : c.waits == (reply_bytes(&builder) == 0));
    bool done = !c.waits || p->goes;
    if (done) {
        conclude(p);
    }
    return done;
}

/* One that is not a client's. It may be gone when it has its reply. */
static void try_adopted(struct parked_call *p, int64_t now_ms) REQUIRES(keyspace_lock)
{
    unsigned aimed = propagate_aimed();
    propagate_begin_unit();
    propagate_aim(aimed & p->targets);
    bool done = run_again(p, now_ms);
    propagate_aim(aimed);
    if (done) {
        p->finish(p, p->owner);
    }
    propagate_end_unit();
}

/* The registry's: one of the waiter's keys has become ready. */
static void try_serve(struct waiter *w, int64_t now_ms)
{
    struct parked_call *p = (struct parked_call *)w;
    keyspace_assert_exclusive();
    assert(p->stage == PARKED_WAITING && !tried);
    if (atomic_load_explicit(&p->abandoned, memory_order_relaxed)) {
        return;
    }
    tried = p;
    if (unlikely(p->adopted)) {
        try_adopted(p, now_ms);
    } else if (run_again(p, now_ms)) {
        p->finish(p, p->owner);
    }
    tried = NULL;
}

/* ---- several nodes ---- */

bool parked_is_elsewhere(const struct call *c, int k)
{
    return unlikely(parked_peers != NULL) && call_may_block(c) &&
           parked_peers->elsewhere(c->db, call_key(c, k)->name);
}

void parked_give(struct parked_call *p, struct slice reply)
{
    assert(p->stage == PARKED_WAITING);
    reply_begin(&builder, p->session->proto);
    reply_raw(&builder, reply);
    conclude(p);
    p->finish(p, p->owner);
}

uint64_t parked_number(const struct parked_call *p)
{
    return p->number;
}

void parked_set_number(struct parked_call *p, uint64_t number)
{
    p->number = number;
}

struct parked_facts parked_look(const struct parked_call *p)
{
    return (struct parked_facts){.cmd = p->cmd,
                                 .argc = p->request.argc,
                                 .argv = p->request.argv,
                                 .keys = p->keys + p->first_key,
                                 .key_count = p->waits_for,
                                 .proto = p->session->proto,
                                 .db = p->db};
}

void parked_serve(int64_t now_ms)
{
    waiting_serve(now_ms);
}

/* ---- for its owner ---- */

int64_t parked_deadline_ms(const struct parked_call *p)
{
    return p->deadline_ms;
}

bool parked_stays(const struct parked_call *p)
{
    return p->stays;
}

void *parked_state(const struct parked_call *p)
{
    return p->state;
}

const struct reply *parked_reply(const struct parked_call *p)
{
    assert(p->stage == PARKED_DONE);
    return &p->reply;
}

bool parked_has_written(const struct parked_call *p)
{
    assert(p->stage == PARKED_DONE);
    return p->wrote;
}

void parked_add_ticks(struct parked_call *p, uint64_t ticks)
{
    p->ticks += ticks;
}

void parked_account(struct parked_call *p, int64_t wall_us)
{
    if (p->refused) {
        return; /* it is counted as such */
    }
    struct call c = call_of(p);
    c.duration_ticks = p->ticks ? p->ticks : 1;
    call_account(&c, 1, 0, wall_us);
}

size_t parked_memory_bytes(const struct parked_call *p)
{
    return mem_usable_size(p);
}

void parked_setup(void)
{
    reply_init(&builder);
    waiting_setup(try_serve);
}

void parked_teardown(void)
{
    waiting_teardown();
    reply_deinit(&builder);
}
