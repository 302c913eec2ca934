/* See transaction.h. */
#include "engine/transaction.h"

#include "base/clock.h"
#include "base/mem.h"
#include "engine/acl.h"
#include "engine/busy.h"
#include "engine/doubts.h"
#include "engine/execute.h"
#include "engine/propagate.h"
#include "keyspace/waiting.h"
#include "resp/parser.h"

#include <assert.h>

/* A queued call with more arguments is timed by itself. */
#define TIMED_ARGS 8

/* A copy of a request. */
struct kept_request {
    struct kept_request *next;
    struct request request;
    uint64_t block[];
};

struct queued {
    const struct command *cmd;
    struct request request;
    struct key *keys; /* hashed in this batch; not of kept ones */
    int key_count;
    struct kept_request *kept; /* NULL: the request is borrowed */
};

/* A session's queue. */
struct transaction {
    struct queued *items;
    int count, capacity;
    int kept_count; /* the first so many are kept */
    size_t bytes;   /* of arguments and copies */
    uint32_t flags;
    enum call_access access; /* the highest */
    bool acts;               /* some request does something, without lock, that may be done once */
    bool asks;               /* some request tells by its arguments what it needs */
    bool spoiled;            /* a request was refused */
};

const struct slice transaction_queued = {"QUEUED", 6};

/* ---- the queue ---- */

static struct transaction *queue_of(const struct session *s)
{
    assert(s->in_transaction && s->transaction);
    return s->transaction;
}

static void forget_kept(struct kept_request *kept)
{
    while (kept) {
        struct kept_request *next = kept->next;
        parser_release(&kept->request);
        mem_free(kept);
        kept = next;
    }
}

/* Takes all copies out of the queue, as one list. */
static struct kept_request *take_kept(struct transaction *t)
{
    struct kept_request *list = NULL;
    for (int i = t->kept_count - 1; i >= 0; i--) {
        t->items[i].kept->next = list;
        list = t->items[i].kept;
    }
    t->kept_count = 0;
    return list;
}

/* Back to the state outside of transactions; copies have been taken. */
static void close_queue(struct session *s)
{
    struct transaction *t = queue_of(s);
    assert(t->kept_count == 0);
    *t = (struct transaction){.items = t->items, .capacity = t->capacity};
    s->in_transaction = false;
}

static void open_queue(struct session *s)
{
    if (!s->transaction) {
        s->transaction = mem_calloc(1, sizeof(*s->transaction));
    }
    s->in_transaction = true;
}

/* Commands that only look at, or set once more, what the session itself is: a second run of them is
 * as good as the first. */
static bool may_be_repeated(const struct command *cmd)
{
    return (cmd->row->categories & CATEGORY_CONNECTION) && (cmd->flags & CMD_FAST);
}

/* Flags of a call as those of its EXEC. */
static uint32_t flags_in_queue(uint32_t flags)
{
    uint32_t some_not = flags & CMD_LOADING ? 0 : CMD_SOME_NOT_LOADING;
    some_not |= flags & CMD_STALE ? 0 : CMD_SOME_NOT_STALE;
    return (flags & ~(uint32_t)(CMD_SOME_NOT_LOADING | CMD_SOME_NOT_STALE)) | some_not;
}

static enum call_access access_in_queue(const struct call *c)
{
    return doubts_call(c) ? ACCESS_WORLD : command_access(c->cmd);
}

static void enqueue(struct transaction *t, const struct call *c)
{
    if (t->count == t->capacity) {
        t->capacity = t->capacity ? 2 * t->capacity : 8;
        t->items = mem_realloc(t->items, (size_t)t->capacity * sizeof(*t->items));
    }
    enum call_access access = access_in_queue(c);
    t->items[t->count++] = (struct queued){.cmd = c->cmd,
                                           .request = {c->argc, c->argv, c->blobs},
                                           .keys = c->keys,
                                           .key_count = c->key_count};
    t->flags |= flags_in_queue(c->cmd->flags) | (access == ACCESS_WORLD ? CMD_WORLD : 0);
    t->asks |= c->cmd->row->flags_of != NULL;
    t->access = access > t->access ? access : t->access;
    t->acts |= access == ACCESS_NONE && !may_be_repeated(c->cmd);
}

static void keep(struct transaction *t, struct queued *q)
{
    size_t bytes = sizeof(*q->kept) + request_copy_bytes(&q->request);
    for (int i = 0; q->request.blobs && i < q->request.argc; i++) {
        bytes += q->request.blobs[i] ? q->request.blobs[i]->len : 0;
    }
    q->kept = mem_alloc(sizeof(*q->kept) + request_copy_bytes(&q->request));
    q->kept->request = q->request = request_copy(&q->request, q->kept->block);
    q->keys = NULL;
    t->bytes += bytes;
}

/* A closed queue is used again within the batch, and no longer: most clients idle then. */
static void free_queue(struct session *s)
{
    assert(!s->in_transaction);
    mem_free(s->transaction->items);
    mem_free(s->transaction);
    s->transaction = NULL;
}

void transaction_keep(struct session *s)
{
    if (!s->in_transaction) {
        free_queue(s);
        return;
    }
    struct transaction *t = queue_of(s);
    while (t->kept_count < t->count) {
        keep(t, &t->items[t->kept_count++]);
    }
}

/* ---- requests ---- */

static enum call_access access_of_queue(const struct transaction *t)
{
    /* Under the lock in shared mode, a read may find that all must be run once more; and PUBLISH,
     * when it was queued, may have had nowhere to go. */
    bool sends = t->flags & CMD_MAY_REPLICATE && propagate_wants_messages();
    bool rises = sends || (t->access == ACCESS_SHARED && t->acts);
    return rises && t->access < ACCESS_EXCLUSIVE ? ACCESS_EXCLUSIVE : t->access;
}

static struct call nested_call(const struct call *exec, const struct queued *q, struct arena *arena)
{
    struct call n = {.cmd = q->cmd,
                     .argc = q->request.argc,
                     .argv = q->request.argv,
                     .blobs = q->request.blobs,
                     .keys = q->keys,
                     .key_count = q->keys ? q->key_count : 0, /* else they are found anew */
                     .db = exec->db,
                     .session = exec->session,
                     .nested = true};
    if (q->kept) {
        call_find_keys(&n, arena);
    }
    return n;
}

static struct execution *execution_create(const struct call *c, struct arena *arena)
{
    struct execution *x = arena_alloc(arena, sizeof(*x));
    *x = (struct execution){.cmd = c->cmd};
    return x;
}

/* Turns the queue into what the EXEC runs. */
static struct execution *take_queue(const struct call *exec, struct arena *arena)
{
    struct transaction *t = queue_of(exec->session);
    struct execution *x = execution_create(exec, arena);
    if (t->spoiled) {
        x->refusal = SLICE("EXECABORT Transaction discarded because of previous errors.");
    } else {
        x->calls = arena_alloc(arena, (size_t)t->count * sizeof(*x->calls));
        x->count = t->count;
        x->flags = t->flags;
        x->access = access_of_queue(t);
        for (int i = 0; i < t->count; i++) {
            x->calls[i] = nested_call(exec, &t->items[i], arena);
        }
    }
    x->kept = take_kept(t);
    close_queue(exec->session);
    return x;
}

static void drop_queue(struct session *s)
{
    if (s->in_transaction) {
        forget_kept(take_kept(s->transaction));
        close_queue(s);
    }
}

static void queue_request(struct call *c)
{
    struct transaction *t = queue_of(c->session);
    if (c->cmd->flags & CMD_NO_MULTI) {
        t->spoiled = true;
        c->refusal = SLICE("ERR Command not allowed inside a transaction");
    } else {
        enqueue(t, c);
        c->refusal = transaction_queued;
    }
}

void transaction_advance(struct call *c, struct arena *arena)
{
    struct session *s = c->session;
    bool inside = s->in_transaction;
    switch (c->cmd->row->transaction) {
    case TRANSACTION_QUEUED:
        if (inside) {
            queue_request(c);
        }
        break;
    case TRANSACTION_OPENS:
        if (inside) {
            c->execution = execution_create(c, arena);
        } else {
            open_queue(s);
        }
        break;
    case TRANSACTION_RUNS:
        if (inside) {
            c->execution = take_queue(c, arena);
        }
        break;
    case TRANSACTION_DROPS:
        c->execution = inside ? execution_create(c, arena) : NULL;
        drop_queue(s);
        break;
    case TRANSACTION_BESIDE:
        c->execution = inside ? execution_create(c, arena) : NULL;
        break;
    }
}

/* EXEC itself was refused: its error tells why the transaction is gone. */
static void refuse_execution(struct call *c, struct arena *arena)
{
    static const char begin[] = "EXECABORT Transaction discarded because of: ";
    struct slice why = c->refusal;
    if (why.len >= 4 && memcmp(why.ptr, "ERR ", 4) == 0) {
        why = slice_of(why.ptr + 4, why.len - 4);
    }
    char *text = arena_alloc(arena, sizeof(begin) - 1 + why.len);
    memcpy(text, begin, sizeof(begin) - 1);
    memcpy(text + sizeof(begin) - 1, why.ptr, why.len);
    drop_queue(c->session);
    c->execution = execution_create(c, arena);
    c->execution->refusal = slice_of(text, sizeof(begin) - 1 + why.len);
    c->refusal = slice_of(NULL, 0);
}

bool transaction_spoil(struct call *c, struct arena *arena)
{
    if (c->session->in_transaction) {
        c->session->transaction->spoiled = true;
    }
    bool is_exec = c->cmd && c->cmd->row->transaction == TRANSACTION_RUNS;
    if (is_exec) {
        refuse_execution(c, arena);
    }
    return is_exec;
}

uint32_t transaction_flags(const struct call *c)
{
    uint32_t flags = c->cmd->flags;
    if (unlikely(flags & CMD_TRANSACTION) && c->cmd->row->transaction == TRANSACTION_RUNS) {
        if (c->execution) {
            flags |= c->execution->flags;
        } else if (c->session->in_transaction) {
            flags |= c->session->transaction->flags;
        }
    }
    return flags;
}

bool transaction_asks(const struct call *c)
{
    const struct session *s = c->session;
    bool is_exec = c->cmd->row->transaction == TRANSACTION_RUNS;
    return s->in_transaction && !s->internal &&
           (is_exec ? s->transaction->asks : c->cmd->row->flags_of != NULL);
}

uint32_t transaction_told_flags(const struct call *c)
{
    if (c->cmd->row->flags_of) {
        return c->cmd->row->flags_of(c);
    }
    const struct transaction *t = queue_of(c->session);
    uint32_t flags = c->cmd->flags;
    for (int i = 0; i < t->count; i++) {
        const struct queued *q = &t->items[i];
        struct call n = {.cmd = q->cmd, .argc = q->request.argc, .argv = q->request.argv};
        flags |= flags_in_queue(q->cmd->row->flags_of ? q->cmd->row->flags_of(&n) : q->cmd->flags);
    }
    return flags;
}

enum call_access transaction_access(const struct call *c)
{
    /* A set of watched keys changes under the lock in exclusive mode. A WATCH that has not run yet
     * stands before this call in its client's share of the batch, which is exclusive then. */
    enum call_access access = c->session->watches.count > 0 ? ACCESS_EXCLUSIVE : ACCESS_NONE;
    switch (c->cmd->row->transaction) {
    case TRANSACTION_RUNS:
        return c->execution && c->execution->access > access ? c->execution->access : access;
    case TRANSACTION_BESIDE: /* WATCH has keys, QUIT none */
        return c->key_count > 0 && !c->execution ? ACCESS_EXCLUSIVE : ACCESS_NONE;
    case TRANSACTION_OPENS:
        return ACCESS_NONE;
    default:
        return access;
    }
}

void transaction_release(struct execution *x)
{
    forget_kept(x->kept);
    x->kept = NULL;
}

/* ---- watched keys ---- */

/* Under the keyspace lock in exclusive mode. */
static void watch_within(void *call)
{
    struct call *c = call;
    keyspace_assert_exclusive();
    for (int k = 0; k < c->key_count; k++) {
        watching_add(&c->session->watches, c->db, call_key(c, k), c->now_ms);
    }
}

static void unwatch_within(void *watches)
{
    keyspace_assert_exclusive();
    watching_clear(watches);
}

/* Runs it in the hold of the call, which has none beside a script that takes long. */
static void run_within(const struct call *c, void (*run)(void *argument), void *argument)
{
    assert(c->held == ACCESS_EXCLUSIVE || c->held == ACCESS_NONE);
    if (c->held == ACCESS_EXCLUSIVE) {
        run(argument);
    } else {
        busy_run_within(run, argument);
    }
}

void transaction_watch(struct call *c)
{
    run_within(c, watch_within, c);
}

void transaction_unwatch(struct call *c)
{
    if (c->session->watches.count > 0) {
        run_within(c, unwatch_within, &c->session->watches);
    }
}

/* Whether a watched key has changed; nothing is watched any more. */
static bool settle_watches(struct call *c) NO_THREAD_SAFETY_ANALYSIS
{
    struct watch_set *watches = &c->session->watches;
    if (watches->count == 0) {
        return false;
    }
    assert(c->held >= ACCESS_EXCLUSIVE);
    if (c->held == ACCESS_WORLD) {
        keyspace_lock_exclusive();
    }
    bool changed = watching_has_changed(watches, c->now_ms);
    watching_clear(watches);
    if (c->held == ACCESS_WORLD) {
        keyspace_unlock_exclusive();
    }
    return changed;
}

/* ---- EXEC ---- */

/* Runs it whole: slices without a break. */
static void run_whole(struct call *n)
{
    call_run(n);
    while (n->continuation.step && !call_continue(n)) {
    }
}

/* The world stands still, but who holds it does not hold the keyspace. False: the call took long,
 * and was let off the world (`spare`); the keyspace lock is held from then on. */
static bool run_in_world(struct call *n, bool spare) NO_THREAD_SAFETY_ANALYSIS
{
    n->held = n->cmd->flags & CMD_MODULE ? ACCESS_WORLD : command_access(n->cmd);
    if (n->held == ACCESS_EXCLUSIVE) {
        keyspace_lock_exclusive();
    } else if (n->held == ACCESS_SHARED) {
        keyspace_lock_shared();
    }
    doubts_set_spare(spare && n->held >= ACCESS_EXCLUSIVE);
    run_whole(n);
    doubts_set_spare(false);
    if (unlikely(!gil_has_world())) {
        return false;
    }
    if (n->held == ACCESS_SHARED) {
        keyspace_unlock_shared();
    }
    if (n->needs_exclusive) {
        n->needs_exclusive = false;
        n->held = ACCESS_EXCLUSIVE;
        keyspace_lock_exclusive();
        run_whole(n);
    }
    if (n->held == ACCESS_EXCLUSIVE) {
        keyspace_unlock_exclusive();
    }
    return true;
}

/* Behind the last call that needs the world for sure, an EXEC of a client can go on without. */
static bool can_spare_world(const struct call *exec, const struct execution *x)
{
    return exec->session->owner && !exec->nested && !exec->session->internal &&
           x->ran > x->needs_world;
}

static int last_world_call(const struct execution *x)
{
    int last = x->count;
    while (last > 0 && !(x->calls[last - 1].cmd->flags & CMD_WORLD)) {
        last--;
    }
    return last;
}

/* The user, or what it may do, may have changed since the call was queued. */
static void check_again(struct call *n)
{
    if (!n->refusal.ptr) {
        const char *error = acl_check_queued(n);
        n->refusal = slice_of(error, error ? strlen(error) : 0);
    }
}

static void run_nested(struct call *exec, struct call *n)
{
    n->db = db_at(n->session->db_index); /* SELECT may be among those before */
    n->reply = exec->reply;
    n->now_ms = exec->now_ms;
    if (unlikely(!acl_is_unlimited(n->session))) {
        check_again(n);
    }
    if (exec->held == ACCESS_WORLD) {
        bool stands = run_in_world(n, can_spare_world(exec, exec->session->execution));
        exec->held = stands ? ACCESS_WORLD : ACCESS_EXCLUSIVE;
    } else {
        n->held = exec->held;
        run_whole(n);
    }
}

/* Runs it; its reply goes to nobody while the client wants none (CLIENT REPLY, which may be among
 * the calls). */
static void run_muted(struct call *exec, struct call *n)
{
    struct reply_mark before = reply_mark(exec->reply);
    run_nested(exec, n);
    if (unlikely(n->session->muted)) {
        reply_rewind(exec->reply, before);
    }
}

/* One call of the queue, timed by itself if it may be slow. */
static uint64_t run_timed(struct call *exec, struct call *n)
{
    if (n->argc <= TIMED_ARGS && !(n->cmd->flags & CMD_SLOW)) {
        run_muted(exec, n);
        return 0;
    }
    uint64_t begin = clock_ticks();
    run_muted(exec, n);
    n->duration_ticks = clock_ticks() - begin;
    return n->duration_ticks;
}

/* Takes back what a run has done that has to be repeated: it has only read. */
static void prepare_again(struct call *exec, struct execution *x, int db_index, int proto)
{
    exec->session->db_index = db_index;
    if (exec->session->proto != proto) {
        exec->session->proto = proto;
        reply_set_proto(exec->reply, proto);
    }
    for (int i = 0; i < x->ran; i++) {
        x->calls[i].needs_exclusive = x->calls[i].failed = false;
        x->calls[i].duration_ticks = 0;
    }
    /* The last one was not told. */
    x->told = x->ran - 1 > x->told ? x->ran - 1 : x->told;
    x->ran = 0;
    call_need_exclusive(exec);
}

/* Between the holds of an EXEC in the world nobody who waits for a key is served. */
static void defer_waiters(const struct call *exec, bool defer) NO_THREAD_SAFETY_ANALYSIS
{
    if (exec->held == ACCESS_WORLD) {
        keyspace_lock_exclusive();
        waiting_defer(defer);
        keyspace_unlock_exclusive();
    } else {
        waiting_defer(defer); /* the world was given back */
    }
}

/* What it has changed goes to the logs as one. */
static void end_unit(const struct call *exec) NO_THREAD_SAFETY_ANALYSIS
{
    if (exec->held == ACCESS_WORLD) {
        keyspace_lock_exclusive();
        propagate_end_unit();
        keyspace_unlock_exclusive();
    } else if (exec->held == ACCESS_EXCLUSIVE) {
        propagate_end_unit();
    }
}

static void run_queue(struct call *exec, struct execution *x)
{
    struct session *s = exec->session;
    int db_index = s->db_index, proto = s->proto;
    x->begin_ticks = clock_ticks();
    x->timed_ticks = 0;
    s->execution = x;
    bool in_world = exec->held == ACCESS_WORLD;
    if (in_world) {
        x->needs_world = last_world_call(x);
        defer_waiters(exec, true);
    }
    if (exec->held >= ACCESS_EXCLUSIVE) {
        propagate_begin_unit();
    }
    if (!s->muted) {
        reply_array(exec->reply, (uint64_t)x->count);
    }
    uint32_t errors = exec->reply->errors;
    while (x->ran < x->count) {
        struct call *n = &x->calls[x->ran];
        n->told = x->ran < x->told;
        x->ran++;
        x->timed_ticks += run_timed(exec, n);
        if (unlikely(n->needs_exclusive)) {
            prepare_again(exec, x, db_index, proto);
            break;
        }
    }
    end_unit(exec);
    if (in_world) {
        defer_waiters(exec, false);
    }
    exec->reply->errors = errors; /* theirs, not EXEC's */
    x->ticks = clock_ticks() - x->begin_ticks - x->timed_ticks;
    s->execution = NULL;
}

void transaction_run(struct call *c)
{
    struct execution *x = c->execution;
    if (!x) {
        reply_error(c->reply, "ERR EXEC without MULTI");
        return;
    }
    if (x->refusal.ptr && c->held == ACCESS_NONE) {
        transaction_unwatch(c);
        reply_error_slice(c->reply, x->refusal);
        return;
    }
    bool changed = settle_watches(c);
    if (x->refusal.ptr) {
        reply_error_slice(c->reply, x->refusal);
    } else if (changed) {
        reply_null_array(c->reply);
    } else {
        run_queue(c, x);
    }
}

/* ---- accounts ---- */

void transaction_account(struct execution *x, int64_t wall_us)
{
    int count = x->ran - x->accounted;
    if (count > 0) { /* one that was refused has no calls at all */
        call_account(x->calls + x->accounted, count, x->ticks, wall_us);
    }
}

void transaction_settle(struct execution *x, int64_t wall_us)
{
    int done = x->ran - 1 - x->accounted;
    if (done > 0) {
        uint64_t ticks = clock_ticks() - x->begin_ticks - x->timed_ticks;
        call_account(x->calls + x->accounted, done, ticks, wall_us);
        x->accounted += done;
        x->begin_ticks += ticks;
    }
}

int transaction_length(const struct session *s)
{
    if (s->execution) {
        return s->execution->count;
    }
    return s->in_transaction ? s->transaction->count : -1;
}

size_t transaction_bytes(const struct session *s)
{
    size_t bytes = s->watches.bytes;
    if (s->transaction) {
        bytes += s->transaction->bytes + sizeof(*s->transaction) +
                 (size_t)s->transaction->capacity * sizeof(struct queued);
    }
    return bytes;
}

void transaction_destroy(struct session *s)
{
    drop_queue(s);
    if (s->transaction) {
        free_queue(s);
    }
    if (s->watches.count > 0) {
        keyspace_lock_exclusive();
        watching_clear(&s->watches);
        keyspace_unlock_exclusive();
    }
}
