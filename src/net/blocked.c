/* See blocked.h. Time-outs stand in a binary heap of each thread, the earliest first, and one timer
 * of the event loop is set for that one. */
#include "net/blocked.h"

#include "base/clock.h"
#include "base/mem.h"
#include "engine/commit.h"
#include "net/durable.h"
#include "net/input.h"
#include "net/output.h"

#include <assert.h>
#include <stdatomic.h>

/* Waits that one hold ends at most. */
#define TIMEOUTS_A_HOLD 64
/* Longest time that the timer is set for; a later time-out is looked at again then. */
#define TIMER_MAX_MS (3600 * 1000)

#define NOT_IN_HEAP UINT32_MAX

/* A client's wait. The parked call has its own rules; `next` belongs to the writer's thread until
 * it lets go of it, all else to the client's thread. */
struct blocked {
    struct inbox_message message; /* first: how it comes back from another thread */
    struct parked_call *parked;
    struct client *client;        /* NULL: gone */
    struct server_thread *thread; /* the client's; does not change while it waits */
    struct blocked *next;
    int64_t deadline_ms;
    uint32_t heap_index;
    bool silent;
};

/* Waits that were finished by this thread. */
static _Thread_local struct blocked *finished_first, **finished_last;

static struct {
    _Atomic uint64_t waiting, with_timeout;
} counts;

static void count(_Atomic uint64_t *counter, int64_t change)
{
    atomic_fetch_add_explicit(counter, (uint64_t)change, memory_order_relaxed);
}

uint64_t blocked_count(void)
{
    return atomic_load_explicit(&counts.waiting, memory_order_relaxed);
}

uint64_t blocked_timeout_count(void)
{
    return atomic_load_explicit(&counts.with_timeout, memory_order_relaxed);
}

/* ---- the heap ---- */

static void place(struct server_thread *t, struct blocked *b, uint32_t at)
{
    t->timeouts[at] = b;
    b->heap_index = at;
}

/* Moves `b`, which belongs at `at` or nearer the top, to its place. */
static void rise(struct server_thread *t, struct blocked *b, uint32_t at)
{
    while (at > 0 && t->timeouts[(at - 1) / 2]->deadline_ms > b->deadline_ms) {
        place(t, t->timeouts[(at - 1) / 2], at);
        at = (at - 1) / 2;
    }
    place(t, b, at);
}

/* The same downwards. */
static void sink(struct server_thread *t, struct blocked *b, uint32_t at)
{
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child + 1 < t->timeout_count &&
            t->timeouts[child + 1]->deadline_ms < t->timeouts[child]->deadline_ms) {
            child++;
        }
        if (child >= t->timeout_count || t->timeouts[child]->deadline_ms >= b->deadline_ms) {
            break;
        }
        place(t, t->timeouts[child], at);
        at = child;
    }
    place(t, b, at);
}

static void heap_add(struct server_thread *t, struct blocked *b)
{
    if (t->timeout_count == t->timeout_capacity) {
        t->timeout_capacity = t->timeout_capacity ? 2 * t->timeout_capacity : 16;
        t->timeouts = mem_realloc(t->timeouts, t->timeout_capacity * sizeof(struct blocked *));
    }
    rise(t, b, t->timeout_count++);
    count(&counts.with_timeout, 1);
}

static void heap_remove(struct server_thread *t, struct blocked *b)
{
    uint32_t at = b->heap_index;
    if (at == NOT_IN_HEAP) {
        return;
    }
    assert(t->timeouts[at] == b);
    struct blocked *last = t->timeouts[--t->timeout_count];
    if (last != b) {
        rise(t, last, at);
        sink(t, last, last->heap_index);
    }
    b->heap_index = NOT_IN_HEAP;
    count(&counts.with_timeout, -1);
}

/* ---- a finished wait ---- */

/* Takes the wait from its client, who is no longer blocked. */
static void detach(struct blocked *b)
{
    struct client *c = b->client;
    heap_remove(b->thread, b);
    c->flags &= ~(uint32_t)CLIENT_BLOCKED;
    c->blocked = NULL;
    b->client = NULL;
    count(&counts.waiting, -1);
}

static void destroy(struct blocked *b)
{
    assert(!b->client && b->heap_index == NOT_IN_HEAP);
    parked_destroy(&b->parked);
    mem_free(b);
}

/* Client's thread: gives it its reply, and lets it go on. */
static void conclude(struct blocked *b)
{
    struct client *c = b->client;
    struct server_thread *t = b->thread;
    assert(t == server_thread_self());
    if (c) {
        const struct reply *reply = parked_reply(b->parked);
        detach(b);
        parked_account(b->parked, t->wall_us);
        if (!(c->flags & CLIENT_CLOSE_ASAP)) {
            if (parked_has_written(b->parked)) {
                durable_hold_writes(c);
            }
            if (!b->silent) {
                output_pieces(c, reply, 0, reply->piece_count);
            } else if (c->flags & CLIENT_CLOSE_AFTER_REPLY) {
                client_close_asap(c);
            }
            if (input_bytes(c).len > 0 || c->held) {
                server_thread_make_ready(t, c);
                t->more_to_do = true; /* should the turn be past its ready list */
            }
        }
    }
    destroy(b);
}

static void receive(struct inbox_message *message, void *receiver)
{
    struct blocked *b = (struct blocked *)message;
    assert(b->thread == receiver);
    conclude(b);
}

/* A writer has served it (parked_finish). Messages wait for the end of the hold, except on threads
 * that have no turns. */
static void on_finish(struct parked_call *p, void *owner)
{
    struct blocked *b = owner;
    assert(b->parked == p);
    if (!server_thread_self()) {
        inbox_post_take(&b->thread->inbox, &b->message);
        return;
    }
    if (!finished_first) {
        finished_last = &finished_first;
    }
    b->next = NULL;
    *finished_last = b;
    finished_last = &b->next;
}

void blocked_deliver(struct server_thread *t)
{
    while (finished_first) {
        struct blocked *b = finished_first;
        finished_first = b->next;
        if (b->thread == t) {
            conclude(b);
        } else {
            inbox_post_take(&b->thread->inbox, &b->message);
        }
    }
}

/* ---- the client's side ---- */

void blocked_begin(struct client *c, struct call *call, bool silent)
{
    struct blocked *b = mem_alloc(sizeof(*b));
    assert(call->waits && !c->blocked && !(c->flags & CLIENT_BLOCKED));
    *b = (struct blocked){.message = {.receive = receive},
                          .parked = call->parked,
                          .client = c,
                          .thread = c->thread,
                          .deadline_ms = parked_deadline_ms(call->parked),
                          .heap_index = NOT_IN_HEAP,
                          .silent = silent};
    parked_add_ticks(b->parked, call->duration_ticks);
    parked_enqueue(b->parked, on_finish, b);
    c->blocked = b;
    c->flags |= CLIENT_BLOCKED;
    count(&counts.waiting, 1);
    if (b->deadline_ms != INT64_MAX) {
        heap_add(c->thread, b);
    }
}

void blocked_abandon(struct client *c)
{
    if (c->blocked) {
        parked_abandon(c->blocked->parked);
    }
}

void blocked_forget(struct client *c)
{
    struct blocked *b = c->blocked;
    if (!b) {
        return;
    }
    detach(b);
    keyspace_lock_exclusive();
    bool ended = parked_end(b->parked, PARKED_GONE);
    keyspace_unlock_exclusive();
    if (ended) {
        destroy(b);
    } /* else it is on its way back to this thread, and freed when it comes */
}

void blocked_join_peers(struct client *c)
{
    if (c->blocked) {
        parked_join_peers(c->blocked->parked);
    }
}

bool blocked_unblock(struct client *c, enum parked_reason reason)
{
    struct blocked *b = c->blocked;
    bool stays = b && reason != PARKED_DEMOTED && parked_stays(b->parked);
    if (!b || stays || c->flags & CLIENT_CLOSE_ASAP) {
        return false;
    }
    keyspace_lock_exclusive();
    bool ended = parked_end(b->parked, reason);
    keyspace_unlock_exclusive();
    if (ended) {
        c->flags |= reason == PARKED_DEMOTED ? CLIENT_CLOSE_AFTER_REPLY : 0;
        inbox_post_take(&b->thread->inbox, &b->message);
    }
    return ended;
}

size_t blocked_memory_bytes(const struct client *c)
{
    const struct blocked *b = c->blocked;
    return b ? mem_usable_size((void *)b) + parked_memory_bytes(b->parked) : 0;
}

/* ---- time-outs ---- */

static int64_t mono_ms(void)
{
    return (int64_t)(clock_mono_us() / 1000);
}

/* Takes up to `max` waits that are due off the heap. */
static int take_due(struct server_thread *t, int64_t now_ms, struct blocked **due, int max)
{
    int taken = 0;
    while (taken < max && t->timeout_count > 0 && t->timeouts[0]->deadline_ms <= now_ms) {
        due[taken] = t->timeouts[0];
        heap_remove(t, due[taken++]);
    }
    return taken;
}

/* Ends some waits that are due; true when there may be more. */
static bool end_due(struct server_thread *t, int64_t now_ms)
{
    struct blocked *due[TIMEOUTS_A_HOLD];
    bool ended[TIMEOUTS_A_HOLD];
    if (t->timeout_count == 0 || t->timeouts[0]->deadline_ms > now_ms ||
        !keyspace_try_exclusive()) {
        return false;
    }
    int taken = take_due(t, now_ms, due, TIMEOUTS_A_HOLD);
    for (int i = 0; i < taken; i++) {
        ended[i] = parked_end(due[i]->parked, PARKED_TIMED_OUT);
    }
    keyspace_unlock_exclusive();
    for (int i = 0; i < taken; i++) {
        if (ended[i]) {
            conclude(due[i]);
        } /* else it was served, and comes as a message */
    }
    return taken == TIMEOUTS_A_HOLD;
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct server_thread *t = arg;
    (void)fd;
    (void)what;
    server_thread_wake(t);
    t->timer_ms = INT64_MAX;
}

bool blocked_run_timeouts(struct server_thread *t)
{
    if (t->timeout_count == 0 || t->timeouts[0]->deadline_ms >= t->timer_ms) {
        return false; /* nothing, or not before the timer */
    }
    uint32_t before = t->timeout_count;
    int64_t now_ms = mono_ms();
    while (end_due(t, now_ms)) {
    }
    if (t->timeout_count == 0) {
        return true;
    }
    int64_t left_ms = t->timeouts[0]->deadline_ms - now_ms;
    left_ms = left_ms > TIMER_MAX_MS ? TIMER_MAX_MS : left_ms;
    left_ms = left_ms < 1 ? 1 : left_ms; /* due, but a script takes long */
    struct timeval left = {.tv_sec = left_ms / 1000, .tv_usec = left_ms % 1000 * 1000};
    event_add(t->timer, &left);
    t->timer_ms = now_ms + left_ms;
    return t->timeout_count != before;
}

void blocked_setup_thread(struct server_thread *t)
{
    t->timer = event_new(t->base, -1, 0, on_timer, t);
    t->timer_ms = INT64_MAX;
}

void blocked_teardown_thread(struct server_thread *t)
{
    assert(t->timeout_count == 0);
    event_free(t->timer);
    mem_free(t->timeouts);
}
