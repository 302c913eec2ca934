/* See turn.h.
 *
 * A batch holds up to BATCH_CALLS calls of several clients, each client's consecutive and in order.
 * It runs in phases: calls that need no lock; clients that only read, under the lock in shared
 * mode; the rest in exclusive mode; at last calls that need the world to stand still. A client's
 * calls end a batch at a barrier (what follows must be understood in the state that the barrier
 * leaves) and go on in the next. */
#include "net/turn_priv.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/stats.h"
#include "engine/auth.h"
#include "engine/execute.h"
#include "engine/filter.h"
#include "engine/gate.h"
#include "engine/memory_limit.h"
#include "engine/parked.h"
#include "engine/transaction.h"
#include "keyspace/expire.h"
#include "keyspace/reclaim.h"
#include "net/audit.h"
#include "net/blocked.h"
#include "net/feed.h"
#include "net/held.h"
#include "net/client_memory.h"
#include "net/durable.h"
#include "net/input.h"
#include "net/memory.h"
#include "net/output.h"
#include "net/pause.h"
#include "net/subscriptions.h"
#include "net/tracking.h"
#include "resp/limits.h"

#include <assert.h>

/* What a stranger may send before authentication (Redis 7: ten arguments of 16 KiB). */
#define STRANGER_ARGS 10
#define STRANGER_BULK_BYTES (16 * 1024)
/* A call with more arguments is timed by itself. */
#define TIMED_ARGS 8

struct batch *batch_create(void)
{
    return mem_calloc(1, sizeof(struct batch));
}

void batch_destroy(struct batch *b)
{
    mem_free(b);
}

/* ---- parsing ---- */

static const struct parser_limits *limits_of(const struct batch *b, const struct client *c)
{
    static const struct parser_limits stranger = {STRANGER_ARGS, STRANGER_BULK_BYTES, false};
    return unlikely(!c->session.authenticated && auth_required()) ? &stranger : &b->limits;
}

/* The next whole request of a client, and how many bytes there are behind it. False when there is
 * none for now, or the stream is broken (*error set). */
static bool next_request(struct server_thread *t, struct client *c,
                         const struct parser_limits *limits, struct request *request, size_t *rest,
                         const char **error)
{
    for (;;) {
        size_t consumed = 0;
        enum parser_result result =
            parser_next(&c->parser, limits, input_bytes(c), &t->arena, request, &consumed, error);
        if (likely(result == PARSER_DONE)) {
            *rest = input_consume(c, consumed);
            return true;
        }
        if (result != PARSER_EMPTY) {
            if (result == PARSER_BIG) {
                input_keep_for_big(c);
            }
            if (result != PARSER_ERROR) {
                *error = NULL; /* the parser may have prepared a text */
            }
            return false;
        }
        input_consume(c, consumed);
    }
}

/* A browser or a cross-protocol attack speaks HTTP: closed without an answer, and told at most once
 * a minute. */
static bool speaks_http(struct client *c, const struct call *call)
{
    static _Atomic uint64_t told_at_s;
    if (likely(call->cmd) || (!call_arg_is(call, 0, "post") && !call_arg_is(call, 0, "host:"))) {
        return false;
    }
    uint64_t now_s = c->thread->mono_s + 60;
    if (now_s - atomic_load(&told_at_s) >= 60) {
        atomic_store(&told_at_s, now_s);
        log_warning("Possible attack: client %s sends HTTP (POST or Host:); connection closed",
                    c->session.peer);
    }
    client_close_asap(c);
    return true;
}

/* A new call of the batch, all fields set: cheaper than zeroing it first. */
static inline struct call *add_call(struct server_thread *t, struct batch_client *bc,
                                    const struct request *request)
{
    struct call *call = &t->batch->calls[t->batch->call_count++];
    bc->count++;
    call->cmd = NULL;
    call->argc = request->argc;
    call->argv = request->argv;
    call->blobs = request->blobs;
    bc->owns |= request->blobs != NULL;
    call->keys = NULL;
    call->key_count = 0;
    call->reply = &t->reply;
    call->session = &bc->client->session;
    call->now_ms = t->batch->now_ms;
    call->refusal = slice_of(NULL, 0);
    call->execution = NULL;
    call->dirty = 0;
    call->duration_ticks = 0;
    call->held = ACCESS_NONE;
    call->failed = call->nested = call->awaited = call->needs_exclusive = call->told = false;
    call->secrets = 0;
    call->retry = call->waits = call->propagated = call->has_told_peers = false;
    call->parked = NULL;
    call->continuation = (struct continuation){NULL, NULL, NULL, ACCESS_NONE};
    return call;
}

/* Takes back the call added last. */
static void drop_call(struct server_thread *t, struct batch_client *bc)
{
    t->batch->call_count--;
    bc->count--;
}

/* Puts a broken stream's error behind the replies of what came before it. */
static void add_protocol_error(struct server_thread *t, struct batch_client *bc, const char *error)
{
    char *text = arena_alloc(&t->arena, strlen(error) + 8);
    memcpy(text, "ERR ", 4);
    memcpy(text + 4, error, strlen(error));
    struct request none = {0, NULL, NULL};
    struct call *call = add_call(t, bc, &none);
    call->refusal = slice_of(text, strlen(error) + 4);
    bc->client->flags |= CLIENT_CLOSE_AFTER_REPLY;
    log_verbose("Protocol error from client %s: %s", bc->client->session.peer, error);
}

/* Keys between the look for a bucket and the look into it: what is parsed meanwhile takes about as
 * long as its line needs to come from memory. */
#define PEEK_AHEAD 4

/* Brings the call's keys towards the cache, outside the lock, while other requests are parsed: the
 * bucket of each key now, the entry of one that was noted a little earlier. */
static ALWAYS_INLINE void prefetch_keys(struct batch *b, const struct call *call)
{
    for (int i = 0; i < call->key_count && b->key_count < PREFETCH_KEYS; i++) {
        b->keys[b->key_count++] =
            (struct batch_key){db_peek_bucket(call->db, &call->keys[i]), &call->keys[i]};
        if (b->key_count > PEEK_AHEAD) {
            const struct batch_key *earlier = &b->keys[b->key_count - 1 - PEEK_AHEAD];
            db_peek_entry(earlier->bucket, earlier->key);
        }
    }
}

/* The entries of the keys noted last. */
static void prefetch_last_keys(const struct batch *b)
{
    for (int i = b->key_count > PEEK_AHEAD ? b->key_count - PEEK_AHEAD : 0; i < b->key_count; i++) {
        db_peek_entry(b->keys[i].bucket, b->keys[i].key);
    }
}

static void prefetch_execution(struct batch *b, const struct execution *x)
{
    for (int i = 0; i < x->count; i++) {
        prefetch_keys(b, &x->calls[i]);
    }
}

/* What a client publishes and subscribes to itself it is told right behind the reply, before the
 * next one. */
static bool may_publish(const struct call *call)
{
    uint32_t flags = transaction_flags(call);
    return flags & (CMD_PUBSUB | CMD_MAY_REPLICATE) || (flags & CMD_WRITE && event_is_published());
}

/* The same for what a client that tracks keys changes among them. In broadcasting mode it is told
 * once for all that it has sent. */
static bool may_invalidate(const struct call *call)
{
    return !(call->session->tracking & TRACKING_BCAST) &&
           transaction_flags(call) & (CMD_WRITE | CMD_MAY_REPLICATE);
}

/* An EXEC is one when something in its queue is. */
static bool is_barrier(const struct call *call, uint32_t flags)
{
    bool tells = call->cmd->flags & CMD_BARRIER && call->cmd->row->is_barrier;
    return flags & CMD_BARRIER && (!tells || call->cmd->row->is_barrier(call));
}

/* Whether requests behind this call may be in the same batch. */
static __attribute__((noinline)) bool goes_on(struct server_thread *t, struct batch_client *bc,
                                              const struct call *call)
{
    struct client *c = bc->client;
    uint32_t flags = transaction_flags(call);
    t->batch->looks_ahead |= flags & CMD_LOOKS_AHEAD;
    bool is_modules = call->cmd->flags & CMD_MODULE;
    if (call->cmd->flags & CMD_MAY_WAIT &&
        (parked_possible(call) || (is_modules && !turn_may_be_cut(c)))) {
        /* What follows may have to wait. Most clients send nothing behind: others go on. */
        bc->exhausted = input_bytes(c).len == 0 && !c->held;
        return false;
    }
    bc->uncertain |= is_modules;
    if (call->execution) {
        prefetch_execution(t->batch, call->execution);
    }
    return !is_barrier(call, flags) && !(c->session.subscriptions > 0 && may_publish(call)) &&
           !(c->session.tracking && may_invalidate(call));
}

/* A refused call spoils the transaction it was sent in. True when it is to be run all the same. */
static bool spoil_transaction(struct server_thread *t, struct batch_client *bc, struct call *call)
{
    bc->owns = true;
    return transaction_spoil(call, &t->arena);
}

/* What becomes of a request that was refused: its error is replied; it is run all the same; or the
 * client's share of the batch ends before it. */
enum refused_fate { REFUSED_STAYS, REFUSED_RUNS, REFUSED_ENDS };

static __attribute__((noinline)) enum refused_fate
decide_refused(struct server_thread *t, struct batch_client *bc, struct call *call)
{
    struct client *c = bc->client;
    if (call->refusal.ptr == memory_limit_refusal && t->batch->call_count > 1) {
        /* What stands before it may free memory: it is looked at after that. */
        turn_put_off(t, bc, call);
        return REFUSED_ENDS;
    }
    if (spoil_transaction(t, bc, call)) {
        return REFUSED_RUNS;
    }
    if (!speaks_http(c, call)) {
        return REFUSED_STAYS;
    }
    drop_call(t, bc);
    bc->exhausted = true;
    return REFUSED_ENDS;
}

/* Adds one request to the batch, and tells how many bytes there are behind it. False when the
 * client's share of the batch ends with (or before) it. */
static ALWAYS_INLINE bool parse_one(struct server_thread *t, struct batch_client *bc,
                                    const struct parser_limits *limits, size_t *rest)
{
    struct client *c = bc->client;
    struct request request;
    const char *error = NULL;
    if (unlikely(c->held)) {
        request = turn_take_held(bc, rest);
    } else if (!next_request(t, c, limits, &request, rest, &error)) {
        if (unlikely(error) && bc->uncertain) {
            return false; /* met again by the next batch, which may close the client */
        }
        if (unlikely(error)) {
            add_protocol_error(t, bc, error);
        }
        bc->exhausted = true;
        return false;
    } else if (filter_wanted()) { /* one that was held has been filtered */
        filter_request(&c->session, &request, &t->arena);
    }
    struct call *call = add_call(t, bc, &request);
    call_prepare(call, &t->arena);
    if (unlikely(call->refusal.ptr)) {
        enum refused_fate fate = decide_refused(t, bc, call);
        if (fate != REFUSED_RUNS) {
            return fate == REFUSED_STAYS;
        }
    }
    if (unlikely(pause_applies(call, call->now_ms))) {
        pause_hold(c, &request);
        parser_release(&request);
        drop_call(t, bc);
        bc->exhausted = true;
        return false;
    }
    if (unlikely(transaction_concerns(call))) {
        if (bc->uncertain) {
            turn_put_off(t, bc, call);
            return false;
        }
        bc->owns = true;
        transaction_advance(call, &t->arena);
        if (call->refusal.ptr) {
            return true; /* is queued, or never will be */
        }
    }
    enum call_access access = call_access(call);
    if (unlikely(access == ACCESS_WORLD)) {
        bc->world_last = true;
        return false;
    }
    bc->access = access > bc->access ? access : bc->access;
    prefetch_keys(t->batch, call);
    bool usual =
        !(call->cmd->flags & (CMD_MAY_WAIT | CMD_TRANSACTION | CMD_BARRIER | CMD_LOOKS_AHEAD)) &&
        c->session.subscriptions == 0 && !c->session.tracking;
    return likely(usual) || goes_on(t, bc, call);
}

static __attribute__((noinline)) void tell_of_client(struct batch_client *bc)
{
    client_tell_come(bc->client); /* if that was put off */
    if (bc->client->flags & CLIENT_AUDITED) {
        audit_tell(bc->client, bc->calls, bc->count);
    }
}

/* Adds a client's requests to the batch, as many as there is room for. */
static struct batch_client *parse_client(struct server_thread *t, struct client *c)
{
    struct batch *b = t->batch;
    struct batch_client *bc = &b->clients[b->client_count++];
    /* All that is read before it is written, and no more: this is for every request of a client
     * without pipeline. */
    bc->client = c;
    bc->calls = &b->calls[b->call_count];
    bc->count = bc->ran = bc->accounted = 0;
    bc->access = ACCESS_NONE;
    bc->world_last = bc->uncertain = bc->owns = bc->wrote = bc->empty = false;
    bc->replied = bc->carried = 0;
    bc->held = NULL;
    bc->exhausted = !turn_may_parse(c);
    if (unlikely(bc->exhausted)) {
        return bc;
    }
    bc->empty = input_bytes(c).len == 0 && !c->held;
    const struct parser_limits *limits = limits_of(b, c);
    size_t rest;
    while (b->call_count < BATCH_CALLS && parse_one(t, bc, limits, &rest)) {
        if (rest == 0) {
            bc->exhausted = true; /* nothing left of it: the parser need not be asked */
            break;
        }
    }
    if (unlikely((c->flags & (CLIENT_AUDITED | CLIENT_TOLD)) != CLIENT_TOLD)) {
        tell_of_client(bc);
    }
    return bc;
}

/* Fills a batch from the ready list. */
static void fill_batch(struct server_thread *t)
{
    struct batch *b = t->batch;
    b->call_count = b->client_count = b->key_count = b->cut = 0;
    b->log_faults = durable_begin_batch();
    b->looks_ahead = 0;
    b->limits = (struct parser_limits){INT32_MAX, resp_max_bulk_bytes, true};
    b->now_ms = keyspace_time_ms(t->wall_us / 1000);
    while (t->ready_next < t->ready_count && b->call_count < BATCH_CALLS &&
           b->client_count < BATCH_CALLS) {
        if (!parse_client(t, t->ready[t->ready_next])->exhausted) {
            break; /* goes on with the next batch */
        }
        t->ready_next++;
    }
    prefetch_last_keys(b);
    if (unlikely(b->carried.client)) {
        turn_take_carried(t);
    }
}

/* ---- running ---- */

#define REPLY_FLAGS (CLIENT_REPLY_OFF | CLIENT_REPLY_SKIP | CLIENT_REPLY_SKIP_NEXT)
#define SUPPRESSED_FLAGS (CLIENT_REPLY_OFF | CLIENT_REPLY_SKIP)
/* Nothing more of such a client's runs. */
#define STOPPED_FLAGS (CLIENT_CLOSE_ASAP | CLIENT_BLOCKED)

/* Runs a call of a client that has used CLIENT REPLY: drops what it replies where none is wanted.
 */
static void run_suppressed(struct server_thread *t, struct client *c, struct call *call)
{
    bool suppressed = c->flags & SUPPRESSED_FLAGS;
    uint32_t mark = reply_end(&t->reply);
    call_run(call);
    if (call->needs_exclusive) {
        return;
    }
    reply_end(&t->reply);
    bool confirms = call->cmd && call->cmd->flags & CMD_CONFIRMS && !call->refusal.ptr;
    if (suppressed && c->flags & SUPPRESSED_FLAGS && !confirms) {
        reply_drop(&t->reply, mark);
    }
    if (!call->continuation.step) { /* else it is what comes of its slices that is skipped */
        c->flags &= ~(uint32_t)CLIENT_REPLY_SKIP;
    }
}

/* CLIENT REPLY SKIP is for the request behind it. */
static void shift_reply_skip(struct client *c)
{
    if (c->flags & CLIENT_REPLY_SKIP_NEXT) {
        c->flags ^= CLIENT_REPLY_SKIP_NEXT | CLIENT_REPLY_SKIP;
    }
}

static void suspend(struct server_thread *t, struct client *c, struct call *call)
{
    assert(!c->continuation_argv);
    c->continuation_argv = call_copy_words(call);
    c->continuation_argc = call->argc;
    c->continuation = call->continuation;
    c->continuation_cmd = call->cmd;
    c->continuation_ticks = call->duration_ticks;
    c->flags |= CLIENT_SUSPENDED;
    call->waits = true; /* it is accounted for when it has ended, once */
    if (t->suspended_count == t->suspended_capacity) {
        t->suspended_capacity = t->suspended_capacity ? 2 * t->suspended_capacity : 8;
        t->suspended = mem_realloc(t->suspended, t->suspended_capacity * sizeof(struct client *));
    }
    t->suspended[t->suspended_count++] = c;
}

/* Calls that need more than to be run: they are timed by themselves, go on in slices, may have to
 * wait, or change CLIENT REPLY. */
static inline bool is_special(const struct call *call)
{
    return unlikely(call->argc > TIMED_ARGS) ||
           unlikely(!call->cmd ||
                    call->cmd->flags & (CMD_SLOW | CMD_WORLD | CMD_BARRIER | CMD_MAY_WAIT));
}

/* The call waits for keys: here still under the hold in which it found nothing; or, with the world
 * standing, for an event. */
static void begin_wait(struct client *c, struct call *call, bool silent) NO_THREAD_SAFETY_ANALYSIS
{
    if (call->held == ACCESS_WORLD) {
        keyspace_lock_exclusive();
        blocked_begin(c, call, silent);
        keyspace_unlock_exclusive();
        return;
    }
    assert(call->held == ACCESS_EXCLUSIVE);
    keyspace_assert_exclusive();
    blocked_begin(c, call, silent);
}

/* The slices of a call without a break: it is no barrier, and what follows must see it done. */
static void run_to_end(struct server_thread *t, struct client *c, struct call *call, bool silent)
{
    uint32_t mark = reply_end(&t->reply);
    while (!call_continue(call)) {
    }
    reply_end(&t->reply);
    if (silent) {
        reply_drop(&t->reply, mark);
    }
    c->flags &= ~(uint32_t)CLIENT_REPLY_SKIP;
}

/* SELECT: what stands behind it in the batch was prepared in the database before. */
static void follow_select(struct batch_client *bc, int index)
{
    for (int i = index + 1; i < bc->count; i++) {
        bc->calls[i].db = db_at(bc->client->session.db_index);
    }
}

/* A module's command has made the client another user, which may be allowed less. */
static void follow_user(struct server_thread *t, struct batch_client *bc, int index)
{
    for (int i = index + 1; i < bc->count; i++) {
        call_check_user_again(&bc->calls[i], &t->arena);
    }
}

/* Runs one such call, or one of a client that has used CLIENT REPLY; adds to *slow_ticks what it
 * took. */
static __attribute__((noinline)) void run_special(struct server_thread *t, struct batch_client *bc,
                                                  int index, uint64_t *slow_ticks)
{
    struct client *c = bc->client;
    struct call *call = &bc->calls[index];
    uint64_t begin = clock_ticks() - parked_served_ticks;
    bool silent = c->flags & SUPPRESSED_FLAGS;
    int db_index = c->session.db_index;
    const struct acl_user *user = c->session.acl;
    if (c->flags & REPLY_FLAGS) {
        run_suppressed(t, c, call);
    } else {
        call_run(call);
    }
    call->duration_ticks = clock_ticks() - parked_served_ticks - begin;
    *slow_ticks += call->duration_ticks;
    if (call->needs_exclusive) {
        return;
    }
    shift_reply_skip(c);
    if (unlikely(c->session.db_index != db_index)) {
        follow_select(bc, index);
    }
    if (unlikely(c->session.acl != user)) {
        follow_user(t, bc, index);
    }
    if (unlikely(call->waits)) {
        if (unlikely(index < bc->count - 1)) { /* what follows must not run before it */
            turn_cut(t, bc, index);
        }
        begin_wait(c, call, silent);
    }
    if (call->continuation.step) {
        if (index == bc->count - 1) {
            suspend(t, c, call);
        } else {
            run_to_end(t, c, call, silent);
        }
    }
}

static inline void run_call(struct server_thread *t, struct batch_client *bc, int index,
                            uint64_t *slow_ticks)
{
    struct call *call = &bc->calls[index];
    if (likely(!(bc->client->flags & REPLY_FLAGS) && !is_special(call))) {
        call_run(call);
    } else {
        run_special(t, bc, index, slow_ticks);
    }
}

/* A read of the shared phase must write: it and what follows it of its client run in the exclusive
 * phase of the same batch. */
static __attribute__((noinline)) void promote(struct batch *b, struct batch_client *bc)
{
    assert(bc->access == ACCESS_SHARED);
    bc->access = ACCESS_EXCLUSIVE;
    bc->calls[--bc->ran].needs_exclusive = false;
    int left = bc->count - bc->world_last - bc->ran;
    b->plan.calls[ACCESS_SHARED] -= left;
    b->plan.calls[ACCESS_EXCLUSIVE] += left;
    b->phase_calls -= left;
}

/* What a hold has begun the next one goes on with. */
static inline void note_pieces(struct batch_client *bc, uint32_t begin, uint32_t end)
{
    if (unlikely(bc->replied > bc->carried) && bc->pieces[bc->replied - 1].end == begin) {
        bc->pieces[bc->replied - 1].end = end;
        return;
    }
    bc->pieces[bc->replied].begin = begin;
    bc->pieces[bc->replied].end = end;
    bc->replied += end > begin;
}

/* The batch has taken much memory: the hold is interrupted to make up for it, and what cannot be
 * made up for is not run. */
static __attribute__((noinline)) void
look_at_memory(struct server_thread *t) NO_THREAD_SAFETY_ANALYSIS
{
    struct batch *b = t->batch;
    keyspace_unlock_exclusive();
    reclaim_run();
    memory_keep_now(t);
    for (int i = 0; memory_is_short() && i < b->client_count; i++) {
        struct batch_client *bc = &b->clients[i];
        for (int k = bc->ran; bc->access == ACCESS_EXCLUSIVE && k < bc->count; k++) {
            memory_limit_refuse(&bc->calls[k]);
        }
    }
    keyspace_lock_exclusive();
}

/* Slow calls, and waiters that were served, have used up the hold. */
static inline bool is_used_up(uint64_t others_ticks)
{
    return unlikely(others_ticks) && clock_ticks_to_ns(others_ticks) > HOLD_MAX_NS;
}

/* Runs the client's ordinary calls, as far as the hold goes. False when there are some left for
 * another hold. */
static bool run_client(struct server_thread *t, struct batch_client *bc, uint64_t *slow_ticks)
{
    int count = bc->count - bc->world_last;
    enum call_access access = bc->access;
    uint64_t log_before = commit_appended();
    bool is_done = true;
    tracking_writer = bc->client->session.id;
    uint32_t begin = reply_begin(&t->reply, bc->client->session.proto);
    while (bc->ran < count && likely(!(bc->client->flags & STOPPED_FLAGS))) {
        if (is_used_up(*slow_ticks)) {
            is_done = false;
            break;
        }
        struct call *call = &bc->calls[bc->ran];
        call->held = access;
        t->batch->running = call;
        run_call(t, bc, bc->ran++, slow_ticks);
        if (unlikely(call->needs_exclusive)) {
            promote(t->batch, bc);
            break;
        }
        if (access == ACCESS_EXCLUSIVE && unlikely(memory_has_outgrown()) && !call->refusal.ptr) {
            look_at_memory(t);
            tracking_writer = bc->client->session.id;
        }
    }
    t->batch->running = NULL;
    note_pieces(bc, begin, reply_end(&t->reply));
    bc->wrote |= access == ACCESS_EXCLUSIVE && commit_appended() != log_before;
    return is_done;
}

void turn_run_client(struct server_thread *t, struct batch_client *bc)
{
    uint64_t slow_ticks;
    do {
        slow_ticks = 0;
    } while (!run_client(t, bc, &slow_ticks));
}

/* Runs clients of one access mode from `from` on, until slow calls, or waiters that were served,
 * have used up the hold. Returns where to go on. */
static int run_some(struct server_thread *t, enum call_access access, int from)
{
    struct batch *b = t->batch;
    uint64_t slow_ticks = 0, served = parked_served_ticks;
    b->hold = (struct hold){clock_ticks(), served, &slow_ticks};
    struct batch_client *bc = b->clients + from, *end = b->clients + b->client_count;
    while (bc < end) {
        if (bc->access == access && !run_client(t, bc, &slow_ticks)) {
            break;
        }
        bc++;
        if (is_used_up(slow_ticks + parked_served_ticks - served)) {
            break;
        }
    }
    turn_charge_hold(b);
    b->hold.slow_ticks = NULL;
    return (int)(bc - b->clients);
}

/* ---- phases ---- */

static void phase_plain(struct server_thread *t)
{
    for (int next = 0; next < t->batch->client_count;) {
        next = run_some(t, ACCESS_NONE, next);
    }
}

void turn_run_expire_notes(struct server_thread *t)
{
    tracking_writer = 0;
    while (unlikely(expire_has_notes())) {
        if (!keyspace_try_exclusive()) {
            return; /* the notes are kept */
        }
        expire_run_notes(t->wall_us / 1000);
        keyspace_unlock_exclusive();
        reclaim_run();
    }
}

/* Before the first call of a phase. A hold that follows a slow call begins with what the phase's
 * first one has brought. */
static inline void look_ahead(struct server_thread *t, enum call_access access, int next)
    REQUIRES_SHARED(keyspace_lock)
{
    if (unlikely(t->batch->looks_ahead) && next == 0) {
        turn_look_ahead(t->batch, access);
    }
}

static void phase_shared(struct server_thread *t)
{
    for (int next = 0; next < t->batch->client_count;) {
        if (unlikely(!keyspace_try_shared())) {
            next = turn_refuse_some(t, ACCESS_SHARED, next);
            continue;
        }
        look_ahead(t, ACCESS_SHARED, next);
        next = run_some(t, ACCESS_SHARED, next);
        keyspace_unlock_shared();
        turn_run_expire_notes(t);
    }
}

static void phase_exclusive(struct server_thread *t)
{
    if (unlikely(db_has_member_ttls())) {
        turn_remove_due_members(t);
    }
    for (int next = 0; next < t->batch->client_count;) {
        if (unlikely(!keyspace_try_exclusive())) {
            next = turn_refuse_some(t, ACCESS_EXCLUSIVE, next);
            continue;
        }
        look_ahead(t, ACCESS_EXCLUSIVE, next);
        next = run_some(t, ACCESS_EXCLUSIVE, next);
        keyspace_unlock_exclusive();
        reclaim_run();
        turn_run_expire_notes(t);
    }
}

/* Stops the world for a call. Where a script takes long that is not possible: false, and the call
 * is refused, or (SHUTDOWN) runs without, with nothing held. */
static bool stop_world(struct server_thread *t, struct call *call) NO_THREAD_SAFETY_ANALYSIS
{
    const char *why = NULL;
    while (!why && !gil_try_stop_world()) {
        why = gate_busy_refusal();
    }
    call->held = why ? ACCESS_NONE : ACCESS_WORLD;
    if (why && !(call->cmd->flags & CMD_ALLOW_BUSY)) {
        turn_refuse_call(t, call, why);
    }
    return !why;
}

/* Runs a client's world call: everybody else stands still. The thread is awake before and after. */
static void run_world(struct server_thread *t, struct batch_client *bc) NO_THREAD_SAFETY_ANALYSIS
{
    struct call *call = &bc->calls[bc->count - 1];
    uint64_t slow_ticks = 0;
    if (bc->client->flags & CLIENT_CLOSE_ASAP) {
        return;
    }
    tracking_writer = bc->client->session.id;
    uint32_t pieces_begin = reply_begin(&t->reply, bc->client->session.proto);
    bool stopped = stop_world(t, call);
    uint64_t log_before = commit_appended();
    t->batch->running = call;
    run_call(t, bc, bc->count - 1, &slow_ticks);
    t->batch->running = NULL;
    bc->wrote |= commit_appended() != log_before;
    if (stopped && likely(call->held == ACCESS_WORLD)) {
        gil_resume_world();
    } else if (stopped) { /* it was given back, and the lock kept (engine/doubts.h) */
        keyspace_unlock_exclusive();
    }
    note_pieces(bc, pieces_begin, reply_end(&t->reply));
    reclaim_run();
    turn_run_expire_notes(t);
    if (!call->waits) { /* else when it has ended */
        call_account(call, 1, 0, t->wall_us);
    }
    bc->client->commands++;
}

static struct plan plan_of(const struct batch *b)
{
    struct plan plan = {{0}};
    const struct batch_client *end = b->clients + b->client_count;
    for (const struct batch_client *bc = b->clients; bc < end; bc++) {
        plan.calls[bc->access] += bc->count - bc->world_last;
        plan.calls[ACCESS_WORLD] += bc->world_last;
    }
    return plan;
}

static void run_worlds(struct server_thread *t)
{
    for (int i = 0; i < t->batch->client_count; i++) {
        struct batch_client *bc = &t->batch->clients[i];
        if (bc->world_last) {
            run_world(t, bc);
        }
    }
}

/* Whether the turn has another batch for a client that is not in this one. */
static bool goes_on_after(const struct server_thread *t)
{
    const struct batch *b = t->batch;
    uint32_t in_both = b->client_count > 0 && !b->clients[b->client_count - 1].exhausted;
    return t->ready_count - t->ready_next > in_both;
}

static void run_batch(struct server_thread *t)
{
    static void (*const phases[])(struct server_thread *) = {
        [ACCESS_NONE] = phase_plain,
        [ACCESS_SHARED] = phase_shared,
        [ACCESS_EXCLUSIVE] = phase_exclusive,
    };
    struct plan *plan = &t->batch->plan;
    *plan = plan_of(t->batch);
    bool may_write = plan->calls[ACCESS_EXCLUSIVE] + plan->calls[ACCESS_WORLD] > 0;
    uint64_t log_before = may_write ? durable_begin_writes() : 0;
    for (enum call_access access = ACCESS_NONE; access <= ACCESS_EXCLUSIVE; access++) {
        if (plan->calls[access] > 0) {
            t->batch->phase_ticks = 0;
            t->batch->phase_calls = plan->calls[access];
            phases[access](t);
            turn_account_phase(t);
        }
    }
    if (plan->calls[ACCESS_WORLD] > 0) {
        run_worlds(t);
    }
    t->batch->log_position =
        may_write ? durable_end_writes(log_before, t->batch->log_faults, goes_on_after(t)) : 0;
    uint64_t calls = (uint64_t)(t->batch->call_count - t->batch->cut);
    stats_add(STAT_BATCHES, 1);
    stats_add(STAT_BATCH_COMMANDS, calls);
    stats_max(STAT_BATCH_MAX, calls);
    atomic_store_explicit(&t->commands,
                          atomic_load_explicit(&t->commands, memory_order_relaxed) + calls,
                          memory_order_relaxed);
}

/* ---- delivering ---- */

static void release_calls(struct batch_client *bc)
{
    for (int i = 0; i < bc->count; i++) {
        struct call *call = &bc->calls[i];
        if (unlikely(call->blobs)) {
            struct request request = {call->argc, call->argv, call->blobs};
            parser_release(&request);
        }
        if (unlikely(call->execution)) {
            transaction_release(call->execution);
        }
    }
    while (unlikely(bc->held)) {
        struct held_request *held = bc->held;
        bc->held = held->next;
        mem_free(held);
    }
}

/* What is queued and watched outlives the batch, and counts as input. */
static void keep_transaction(struct client *c)
{
    if (c->session.transaction) {
        transaction_keep(&c->session);
    }
    if (transaction_bytes(&c->session) > 0) {
        input_check_limit(c);
    }
}

/* The client's share of the batch is done: its replies are sent. */
static inline void finish_client(struct server_thread *t, struct batch_client *bc)
{
    struct client *c = bc->client;
    /* It was told nothing: more may have come, or the end, of which no event tells when it came as
     * a reset together with these bytes. */
    if ((unlikely(bc->replied == bc->carried) && !bc->empty) ||
        unlikely(c->flags & CLIENT_PEER_CLOSED)) {
        input_receive_later(t, c);
    }
    if (unlikely(c->flags & CLIENT_CLOSE_AFTER_REPLY) && output_is_empty(c)) {
        client_close_asap(c);
    }
    if (unlikely(c->session.transaction) || unlikely(c->session.watches.count > 0)) {
        keep_transaction(c);
    }
    if (unlikely(bc->owns)) {
        release_calls(bc);
    }
    if (bc->exhausted) {
        c->flags &= ~(uint32_t)CLIENT_ON_READY_LIST;
        input_keep_rest(c);
    }
}

void turn_finish_client(struct server_thread *t, struct batch_client *bc)
{
    finish_client(t, bc);
}

static void deliver_batch(struct server_thread *t)
{
    struct batch_client *end = t->batch->clients + t->batch->client_count;
    for (struct batch_client *bc = t->batch->clients; bc < end; bc++) {
        if (unlikely(t->batch->log_position) && bc->replied && bc->wrote) {
            durable_hold(bc->client, t->batch->log_position);
        }
        if (unlikely(!bc->exhausted || bc->carried) && turn_carry(t, bc)) {
            assert(bc + 1 == end);
        } else {
            output_ranges(bc->client, &t->reply, bc->pieces, bc->replied);
        }
        finish_client(t, bc);
    }
    if (client_memory_is_limited()) {
        for (struct batch_client *bc = t->batch->clients; bc < end; bc++) {
            if (bc->client->thread) { /* nobody's: served out of a script (turn_busy.c) */
                client_memory_note(bc->client);
            }
        }
    }
    if (likely(!t->batch->carried.client)) {
        reply_reset(&t->reply);
    }
    arena_reset(&t->arena);
    blocked_deliver(t);
}

/* ---- the turn ---- */

void turn_serve(struct server_thread *t)
{
    while (t->ready_next < t->ready_count) {
        fill_batch(t);
        if (t->batch->call_count > 0) {
            run_batch(t);
        }
        deliver_batch(t);
        if (unlikely(t->committing_count > 0) && t->ready_next == t->ready_count) {
            durable_deliver(t); /* who has sent more is ready again */
        }
    }
    t->ready_count = t->ready_next = 0;
    t->input_used = 0;
}

void turn_deliver_late(struct server_thread *t)
{
    subscriptions_wake_others(t);
    tracking_wake_others(t);
    subscriptions_deliver(t);
    tracking_deliver(t);
    blocked_deliver(t);
}

void turn_run(struct server_thread *t)
{
    memory_keep(t);
    subscriptions_deliver(t);
    tracking_deliver(t);
    while (t->ready_next < t->ready_count) {
        fill_batch(t);
        if (t->batch->call_count > 0) {
            run_batch(t);
        }
        subscriptions_wake_others(t);
        tracking_wake_others(t);
        deliver_batch(t);
        if (unlikely(t->committing_count > 0)) {
            durable_end_gathering(t);
        }
        memory_keep(t);
        if (likely(!t->batch->carried.client)) {
            subscriptions_deliver(t);
            tracking_deliver(t);
        }
    }
    t->ready_count = t->ready_next = 0;
    t->input_used = 0;
    if (unlikely(t->suspended_count > 0)) {
        turn_step_suspended(t);
        turn_deliver_late(t);
    }
    blocked_deliver(t);
    bool is_late = blocked_run_timeouts(t);
    if (unlikely(t->committing_count > 0)) {
        durable_deliver(t);
    }
    if (unlikely(t->feeds_woken)) {
        feeds_run_woken(t);
    }
    stats_add(STAT_TURNS, 1);
    if (client_memory_is_limited()) {
        client_memory_keep(t);
    }
    if (unlikely(t->closing_count > 0)) {
        turn_close_clients(t);
        is_late = true;
    }
    if (unlikely(is_late)) {
        turn_deliver_late(t);
    }
}
