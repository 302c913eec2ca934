/* See assign.h: balancing.
 *
 * The cron only compares the threads' counters of commands. When they differ too much it has the
 * busiest thread mark where its clients stand, and looks at how busy things are; a second later,
 * when they still differ, each client's share is known, and clients that together make up at most
 * half the difference move to the idlest thread. So the order of the two cannot turn round, and a
 * short burst moves nobody.
 *
 * More threads cost batching: the same load in smaller portions. That pays only where the busy
 * thread is short of time and another core has some; otherwise everybody stays. */
#include "net/assign.h"

#include "base/mem.h"
#include "base/stats.h"
#include "base/thread.h"
#include "engine/cron.h"
#include "net/busyness.h"
#include "net/input.h"
#include "net/tls.h"

#include <assert.h>
#include <stdatomic.h>

/* Differences below this many commands a second are not worth a move: a thread does some hundred
 * thousand. */
#define BALANCE_MIN_DIFFERENCE 2000
/* The busiest thread runs this many times what the idlest does before anything moves. */
#define BALANCE_FACTOR 2
/* Clients that one request moves at most. */
#define BALANCE_MOVES_MAX 64
/* A client whose next request is already here does not move; the busy thread looks again in this
 * many loops. */
#define BALANCE_TRIES 16
/* Server threads at most (settings.h's limit). */
#define BALANCE_THREADS_MAX 64

/* While the cron is eager any difference counts: a test on a slow or crowded machine has no other.
 */
static uint64_t min_difference(void)
{
    return cron_is_eager() ? 2 : BALANCE_MIN_DIFFERENCE;
}

/* ---- on the busy thread ---- */

/* What the busy thread is asked to do; it owns and frees it. */
struct move_request {
    struct server_thread *target;
    uint64_t share; /* commands a second to get rid of, at most */
    int tries;
};

/* Flags that say nothing about where the client has to be. */
#define CLIENT_FREE_FLAGS                                                                          \
    (CLIENT_UNIX | CLIENT_LOCAL | CLIENT_REPLY_OFF | CLIENT_REPLY_SKIP_NEXT | CLIENT_REPLY_SKIP |  \
     CLIENT_NO_EVICT | CLIENT_TLS | CLIENT_TOLD)

/* True between two requests: nothing read, nothing to send, nothing under way. */
static bool may_move(const struct client *c)
{
    return !(c->flags & ~(uint32_t)CLIENT_FREE_FLAGS) && input_bytes(c).len == 0 &&
           c->pending.len == 0 && c->parser.args_expected == -1 && !c->parser.big &&
           !c->out_first && !c->held && !c->continuation.step && c->session.subscriptions == 0 &&
           !c->tracker && !c->feed && (!c->tls || tls_is_quiet(c->tls));
}

static void mark_clients(struct server_thread *t, void *argument UNUSED)
{
    for (struct client *c = t->clients; c; c = c->thread_next) {
        c->commands_marked = c->commands;
    }
}

/* Moves what may move now; returns whether more is wanted. */
static bool move_some(struct server_thread *t, struct move_request *request)
{
    int moves = 0;
    for (struct client *c = t->clients, *next; c; c = next) {
        next = c->thread_next;
        uint64_t share = c->commands - c->commands_marked;
        /* An eighth more may go: of two equal clients one moves, whatever the noise. */
        if (share == 0 || share > request->share + request->share / 8 || !may_move(c)) {
            continue;
        }
        request->share -= share < request->share ? share : request->share;
        client_abandon(c);
        assign_client(c, request->target);
        stats_add(STAT_CLIENTS_MOVED, 1);
        if (++moves == BALANCE_MOVES_MAX) {
            return false;
        }
    }
    return request->share >= min_difference() / 2;
}

static void move_clients(struct server_thread *t, void *argument)
{
    struct move_request *request = argument;
    assert(request->target != t);
    if (!t->stopping && move_some(t, request) && --request->tries > 0) {
        server_thread_post(t, move_clients, request);
        return;
    }
    mem_free(request);
}

/* ---- the cron ---- */

/* State of the cron's thread alone. */
static struct {
    uint64_t commands[BALANCE_THREADS_MAX]; /* at the last look */
    struct server_thread *marked;           /* the thread whose clients were marked then, or NULL */
    struct busyness busyness;               /* at that moment */
} balance;

/* The busiest and the idlest thread since the last look; returns the difference of what they ran.
 */
static uint64_t compare_threads(struct server_thread **busiest, struct server_thread **idlest)
{
    uint64_t most = 0, least = UINT64_MAX;
    for (int i = 0; i < server_thread_count(); i++) {
        struct server_thread *t = server_thread_at(i);
        uint64_t commands = atomic_load_explicit(&t->commands, memory_order_relaxed);
        uint64_t ran = commands - balance.commands[i];
        balance.commands[i] = commands;
        if (ran >= most) {
            most = ran;
            *busiest = t;
        }
        if (ran < least) {
            least = ran;
            *idlest = t;
        }
    }
    return most >= BALANCE_FACTOR * least ? most - least : 0;
}

void assign_balance(int64_t wall_ms UNUSED)
{
    struct server_thread *busiest = NULL, *idlest = NULL;
    if (server_thread_count() < 2 || !net_settings.active_client_balancing) {
        return;
    }
    assert(server_thread_count() <= BALANCE_THREADS_MAX);
    uint64_t difference = compare_threads(&busiest, &idlest);
    if (difference < min_difference() ||
        atomic_load_explicit(&busiest->client_count, memory_order_relaxed) < 2) {
        balance.marked = NULL;
        return;
    }
    struct busyness now = busyness_look(busiest->pthread);
    if (balance.marked == busiest &&
        (cron_is_eager() || busyness_would_help(&balance.busyness, &now, thread_core_count()))) {
        struct move_request *request = mem_alloc(sizeof(*request));
        *request = (struct move_request){idlest, difference / 2, BALANCE_TRIES};
        server_thread_post(busiest, move_clients, request);
        balance.marked = NULL; /* what is left is another load: it is measured anew */
        return;
    }
    balance.marked = busiest;
    balance.busyness = now;
    server_thread_post(busiest, mark_clients, NULL);
}
