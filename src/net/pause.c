/* See pause.h.
 *
 * A pause is one word, so that server threads read it without a lock: until when (milliseconds of
 * wall time), shifted by one, and whether all commands wait in the lowest bit. 0: no pause. */
#include "net/pause.h"

#include "base/mem.h"
#include "engine/gate.h"
#include "engine/transaction.h"
#include "keyspace/evict.h"
#include "keyspace/expire.h"
#include "keyspace/lock.h"
#include "net/held.h"

#include <assert.h>
#include <stdatomic.h>

#define PAUSE_ALL_BIT 1u
/* Latest end that the word holds. */
#define PAUSE_UNTIL_MAX_MS (INT64_MAX / 2)

static struct {
    _Atomic uint64_t word;
    uint64_t wishes[PAUSE_REASONS]; /* such words, one a reason; world, or the cron, which holds
                                       the GIL in shared mode and is one thread */
    _Atomic uint64_t waiting;
    _Atomic uint64_t last_order;
} pause_state;

static int64_t word_until_ms(uint64_t word)
{
    return (int64_t)(word >> 1);
}

/* Whether the call may change what replicas have. Scripts tell it of themselves, under the lock:
 * where that is not to be had, since a script takes long, the call will be refused. */
static bool may_change(const struct call *c) NO_THREAD_SAFETY_ANALYSIS
{
    static const uint32_t changes = CMD_WRITE | CMD_MAY_REPLICATE;
    if (!c->cmd->row->flags_of && !transaction_asks(c)) {
        return transaction_flags(c) & changes;
    }
    while (!gate_busy_refusal()) {
        if (keyspace_try_exclusive()) {
            uint32_t flags = transaction_told_flags(c);
            keyspace_unlock_exclusive();
            return flags & changes;
        }
    }
    return false;
}

bool pause_applies(const struct call *c, int64_t now_ms)
{
    uint64_t word = atomic_load_explicit(&pause_state.word, memory_order_relaxed);
    if (likely(word == 0) || c->refusal.ptr || c->session->internal ||
        now_ms >= word_until_ms(word)) {
        return false;
    }
    /* What a replica sends is about the stream, which goes on. */
    if (client_of(c->session) && client_of(c->session)->flags & CLIENT_FED) {
        return false;
    }
    return (word & PAUSE_ALL_BIT) || may_change(c);
}

/* Both kinds of pause end what the server deletes by itself: nothing is to change that would have
 * to be propagated. A pause that begins just when the cron ends one cannot lose it: the cron holds
 * the GIL in shared mode. */
static void suspend_deletions(bool suspended)
{
    evict_suspend(suspended);
    expire_suspend(suspended);
}

static uint64_t join_words(uint64_t a, uint64_t b)
{
    int64_t later = word_until_ms(a) > word_until_ms(b) ? word_until_ms(a) : word_until_ms(b);
    return (uint64_t)later << 1 | ((a | b) & PAUSE_ALL_BIT);
}

/* What all reasons together want. World, or the cron. */
static uint64_t join_wishes(void)
{
    uint64_t word = 0;
    for (int i = 0; i < PAUSE_REASONS; i++) {
        word = join_words(word, pause_state.wishes[i]);
    }
    return word;
}

void pause_start(enum pause_reason reason, bool all_commands, int64_t until_ms)
{
    if (until_ms > PAUSE_UNTIL_MAX_MS) {
        until_ms = PAUSE_UNTIL_MAX_MS;
    }
    assert(until_ms >= 0);
    uint64_t wish = (uint64_t)until_ms << 1 | (all_commands ? PAUSE_ALL_BIT : 0);
    pause_state.wishes[reason] = join_words(pause_state.wishes[reason], wish);
    atomic_store(&pause_state.word, join_wishes());
    suspend_deletions(true);
}

/* Who waited first goes on first. */
static uint64_t order_of(const struct client *c)
{
    uint64_t order = 0;
    for (const struct held_request *held = c->held; held && !order; held = held->next) {
        order = held->order; /* those before it were taken out of a batch (turn_cut.c) */
    }
    return order;
}

static int compare_order(const void *a, const void *b)
{
    uint64_t first = order_of(*(struct client *const *)a);
    uint64_t second = order_of(*(struct client *const *)b);
    return (first > second) - (first < second);
}

/* Owner: puts the thread's waiting clients back to work, in the order in which they came to wait.
 */
static void resume_clients(struct server_thread *t, void *argument UNUSED)
{
    size_t count = 0;
    for (struct client *c = t->clients; c; c = c->thread_next) {
        count += (c->flags & CLIENT_PAUSED) != 0;
    }
    if (count == 0) {
        return;
    }
    struct client **waiting = mem_alloc(count * sizeof(struct client *));
    size_t filled = 0;
    for (struct client *c = t->clients; c; c = c->thread_next) {
        if (c->flags & CLIENT_PAUSED) {
            waiting[filled++] = c;
        }
    }
    qsort(waiting, count, sizeof(struct client *), compare_order);
    for (size_t i = 0; i < count; i++) {
        pause_forget(waiting[i]);
        server_thread_make_ready(t, waiting[i]);
    }
    mem_free(waiting);
}

/* Puts into force what is left of the wishes. */
static void settle(void)
{
    uint64_t word = join_wishes();
    if (atomic_exchange(&pause_state.word, word) != word) {
        suspend_deletions(word != 0);
        /* Who has to wait for another reason does so again. */
        server_thread_post_all(resume_clients, NULL);
    }
}

void pause_end(enum pause_reason reason)
{
    pause_state.wishes[reason] = 0;
    settle();
}

void pause_cron(int64_t wall_ms)
{
    if (atomic_load_explicit(&pause_state.word, memory_order_relaxed) == 0) {
        return;
    }
    for (int i = 0; i < PAUSE_REASONS; i++) {
        if (word_until_ms(pause_state.wishes[i]) <= wall_ms) {
            pause_state.wishes[i] = 0;
        }
    }
    settle();
}

int64_t pause_until_ms(bool *all_commands)
{
    uint64_t word = atomic_load_explicit(&pause_state.word, memory_order_relaxed);
    *all_commands = (word & PAUSE_ALL_BIT) != 0;
    return word_until_ms(word);
}

void pause_hold(struct client *c, const struct request *request)
{
    assert(!(c->flags & CLIENT_PAUSED));
    held_put_first(c, request);
    c->held->order =
        atomic_fetch_add_explicit(&pause_state.last_order, 1, memory_order_relaxed) + 1;
    c->flags |= CLIENT_PAUSED;
    atomic_fetch_add_explicit(&pause_state.waiting, 1, memory_order_relaxed);
}

void pause_forget(struct client *c)
{
    if (c->flags & CLIENT_PAUSED) {
        c->flags &= ~(uint32_t)CLIENT_PAUSED;
        atomic_fetch_sub_explicit(&pause_state.waiting, 1, memory_order_relaxed);
    }
}

uint64_t pause_waiting(void)
{
    return atomic_load_explicit(&pause_state.waiting, memory_order_relaxed);
}
