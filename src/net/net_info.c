/* See net_info.h.
 *
 * Clients belong to their threads, and INFO stops nobody: what it shows of other threads' clients
 * is what each thread found when INFO last asked it to look (at most once a second), which it does
 * after the asking INFO has been answered. The asking thread looks at its own clients at once. */
#include "net/net_info.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/stats.h"
#include "engine/cmdstats.h"
#include "engine/info.h"
#include "keyspace/lock.h"
#include "keyspace/waiting.h"
#include "net/blocked.h"
#include "net/pause.h"
#include "net/tracking.h"

#include <inttypes.h>
#include <stdatomic.h>

/* Server threads at most (settings.h's limit). */
#define INFO_THREADS_MAX 64

/* ---- what threads find ---- */

/* One thread's largest buffers; written by that thread only. State: atomic. */
struct buffer_figures {
    _Atomic uint64_t input_bytes, output_bytes;
    _Atomic uint64_t memory_bytes; /* of all its clients */
};

static struct buffer_figures figures[INFO_THREADS_MAX];
static _Atomic uint64_t asked_at_s;

static void look_at_clients(struct server_thread *t, void *argument UNUSED)
{
    uint64_t input = 0, output = 0, memory = 0;
    for (struct client *c = t->clients; c; c = c->thread_next) {
        uint64_t held = c->pending.capacity + parser_memory_bytes(&c->parser);
        input = held > input ? held : input;
        output = c->out_bytes > output ? c->out_bytes : output;
        memory += client_memory_bytes(c);
    }
    atomic_store_explicit(&figures[t->index].input_bytes, input, memory_order_relaxed);
    atomic_store_explicit(&figures[t->index].output_bytes, output, memory_order_relaxed);
    atomic_store_explicit(&figures[t->index].memory_bytes, memory, memory_order_relaxed);
}

static uint64_t clients_of(const struct server_thread *t)
{
    return atomic_load_explicit(&t->client_count, memory_order_relaxed);
}

/* Has the other threads look, unless they were asked in this second. */
static void ask_others(const struct server_thread *self)
{
    uint64_t now_s = clock_mono_us() / 1000000 + 1;
    if (atomic_exchange_explicit(&asked_at_s, now_s, memory_order_relaxed) == now_s) {
        return;
    }
    for (int i = 0; i < server_thread_count(); i++) {
        struct server_thread *t = server_thread_at(i);
        if (t != self && (clients_of(t) > 0 || figures[i].memory_bytes)) {
            server_thread_post(t, look_at_clients, NULL);
        }
    }
}

size_t net_info_client_bytes(void)
{
    struct server_thread *self = server_thread_self();
    size_t sum = 0;
    if (self) {
        look_at_clients(self, NULL);
    }
    for (int i = 0; i < server_thread_count(); i++) {
        size_t found = atomic_load_explicit(&figures[i].memory_bytes, memory_order_relaxed);
        size_t fixed = clients_of(server_thread_at(i)) * mem_good_size(sizeof(struct client));
        sum += found > fixed ? found : fixed;
    }
    ask_others(self);
    return sum;
}

/* ---- Clients ---- */

static void write_clients(struct buf *out)
{
    struct server_thread *self = server_thread_self();
    uint64_t input = 0, output = 0;
    if (self) {
        look_at_clients(self, NULL);
    }
    for (int i = 0; i < server_thread_count(); i++) {
        uint64_t in = atomic_load_explicit(&figures[i].input_bytes, memory_order_relaxed);
        uint64_t unsent = atomic_load_explicit(&figures[i].output_bytes, memory_order_relaxed);
        input = in > input ? in : input;
        output = unsent > output ? unsent : output;
    }
    ask_others(self);
    buf_printf(out,
               "connected_clients:%" PRIu64 "\r\ncluster_connections:0\r\nmaxclients:%" PRId64
               "\r\nclient_recent_max_input_buffer:%" PRIu64
               "\r\nclient_recent_max_output_buffer:%" PRIu64 "\r\nblocked_clients:%" PRIu64
               "\r\ntracking_clients:%" PRIu64 "\r\nclients_in_timeout_table:%" PRIu64
               "\r\ntotal_blocking_keys:%" PRIu64 "\r\ntotal_blocking_keys_on_nokey:%" PRIu64
               "\r\n",
               client_count(), net_settings.maxclients, input, output,
               pause_waiting() + blocked_count(), tracking_count().clients, blocked_timeout_count(),
               waiting_key_count(), waiting_key_count_when_gone());
    if (self) {
        buf_printf(out, "current_client_thread:%d\r\n", self->index);
    }
    for (int i = 0; i < server_thread_count(); i++) {
        buf_printf(out, "thread_%d_clients:%" PRIu64 "\r\n", i, clients_of(server_thread_at(i)));
    }
}

/* ---- Threads ---- */

/* One thread's use of the keyspace lock, or a sum. */
struct lock_use {
    uint64_t shared_count, exclusive_count, shared_ns, exclusive_ns, wait_ns, parks;
};

/* The lock subtracts the time of taking it and adds that of releasing it: between the two the sum
 * is "negative". */
static uint64_t held_ns(const _Atomic uint64_t *ticks)
{
    uint64_t held = atomic_load_explicit(ticks, memory_order_relaxed);
    if (held > INT64_MAX) {
        held += clock_ticks();
    }
    return clock_ticks_to_ns(held);
}

static struct lock_use lock_use_of(unsigned slot)
{
    const struct brlock_stats *s = &keyspace_lock.stats[slot];
    return (struct lock_use){
        .shared_count = atomic_load_explicit(&s->shared_count, memory_order_relaxed),
        .exclusive_count = atomic_load_explicit(&s->exclusive_count, memory_order_relaxed),
        .shared_ns = held_ns(&s->shared_held_ticks),
        .exclusive_ns = held_ns(&s->exclusive_held_ticks),
        .wait_ns = clock_ticks_to_ns(atomic_load_explicit(&s->wait_ticks, memory_order_relaxed)),
        .parks = atomic_load_explicit(&s->long_waits, memory_order_relaxed),
    };
}

static void lock_use_add(struct lock_use *sum, const struct lock_use *u)
{
    sum->shared_count += u->shared_count;
    sum->exclusive_count += u->exclusive_count;
    sum->shared_ns += u->shared_ns;
    sum->exclusive_ns += u->exclusive_ns;
    sum->wait_ns += u->wait_ns;
    sum->parks += u->parks;
}

static double ratio(uint64_t a, uint64_t b)
{
    return b ? (double)a / (double)b : 0.0;
}

static void write_thread(struct buf *out, const struct server_thread *t)
{
    unsigned slot = t->slot;
    struct lock_use u = lock_use_of(slot);
    uint64_t batches = stats_of_thread(slot, STAT_BATCHES);
    uint64_t commands = stats_of_thread(slot, STAT_BATCH_COMMANDS);
    buf_printf(out,
               "thread_%d:clients=%" PRIu64 ",turns=%" PRIu64 ",commands=%" PRIu64
               ",batches=%" PRIu64 ",batch_mean=%.2f,batch_max=%" PRIu64,
               t->index, clients_of(t), stats_of_thread(slot, STAT_TURNS), commands, batches,
               ratio(commands, batches), stats_of_thread(slot, STAT_BATCH_MAX));
    buf_printf(out,
               ",shared_acquisitions=%" PRIu64 ",exclusive_acquisitions=%" PRIu64
               ",shared_held_us=%" PRIu64 ",exclusive_held_us=%" PRIu64 ",waited_us=%" PRIu64
               ",parked=%" PRIu64 "\r\n",
               u.shared_count, u.exclusive_count, u.shared_ns / 1000, u.exclusive_ns / 1000,
               u.wait_ns / 1000, u.parks);
}

/* Calls so far of the commands that need the lock in a mode. */
static void count_calls(uint64_t *shared, uint64_t *exclusive)
{
    *shared = *exclusive = 0;
    for (unsigned id = 0; id < command_id_count(); id++) {
        const struct command *cmd = command_by_id(id);
        enum call_access access = command_access(cmd);
        if (access == ACCESS_SHARED) {
            *shared += cmdstats_sum(cmd).calls;
        } else if (access == ACCESS_EXCLUSIVE) {
            *exclusive += cmdstats_sum(cmd).calls;
        }
    }
}

static void write_mode(struct buf *out, const char *mode, uint64_t count, uint64_t ns,
                       uint64_t calls)
{
    buf_printf(out,
               "lock_%s_acquisitions:%" PRIu64 "\r\nlock_%s_commands:%" PRIu64
               "\r\nlock_%s_held_ns:%" PRIu64 "\r\nlock_%s_held_ns_per_acquisition:%.1f\r\n"
               "lock_%s_held_ns_per_command:%.1f\r\n",
               mode, count, mode, calls, mode, ns, mode, ratio(ns, count), mode, ratio(ns, calls));
}

/* Of a mix of reads and writes the figures per command are rough: a client's reads among writes run
 * in exclusive mode, and the server's own work (expiry) holds the lock as well. */
static void write_threads(struct buf *out)
{
    struct lock_use sum = {0};
    uint64_t shared, exclusive;
    for (int i = 0; i < server_thread_count(); i++) {
        const struct server_thread *t = server_thread_at(i);
        struct lock_use u = lock_use_of(t->slot);
        lock_use_add(&sum, &u);
        write_thread(out, t);
    }
    count_calls(&shared, &exclusive);
    write_mode(out, "shared", sum.shared_count, sum.shared_ns, shared);
    write_mode(out, "exclusive", sum.exclusive_count, sum.exclusive_ns, exclusive);
    uint64_t acquisitions = sum.shared_count + sum.exclusive_count;
    buf_printf(out,
               "lock_waited_ns:%" PRIu64 "\r\nlock_waited_ns_per_acquisition:%.1f\r\n"
               "lock_parked:%" PRIu64 "\r\nclients_moved:%" PRIu64 "\r\n",
               sum.wait_ns, ratio(sum.wait_ns, acquisitions), sum.parks,
               stats_sum(STAT_CLIENTS_MOVED));
}

/* ---- the sections ---- */

static const struct info_section sections[] = {
    {.name = "clients", .title = "Clients", .in_default = true, .write = write_clients},
    {.name = "threads", .title = "Threads", .in_default = true, .write = write_threads},
};

void net_info_setup(void)
{
    for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
        info_register(&sections[i]);
    }
}
