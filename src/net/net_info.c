/* See net_info.h.
 *
 * Clients belong to their threads, and INFO stops nobody: what it shows of other threads' clients
 * is what each thread found when INFO last asked it to look (at most once a second), which it does
 * after the asking INFO has been answered. The asking thread looks at its own clients at once. */
#include "net/net_info.h"

#include "base/clock.h"
#include "base/field.h"
#include "base/mem.h"
#include "base/stats.h"
#include "engine/cmdstats.h"
#include "engine/info.h"
#include "keyspace/lock.h"
#include "keyspace/waiting.h"
#include "net/blocked.h"
#include "net/pause.h"
#include "net/tracking.h"

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

/* The highest of the last seconds. */
static uint64_t recent_most(const struct server_thread *t, const struct recent *r)
{
    uint64_t most = 0;
    for (int i = 0; i < RECENT_SECONDS; i++) {
        if (t->mono_s - r->second[i] < RECENT_SECONDS && r->most[i] > most) {
            most = r->most[i];
        }
    }
    return most;
}

static void look_at_clients(struct server_thread *t, void *argument UNUSED)
{
    uint64_t input = recent_most(t, &t->recent_input), memory = 0;
    uint64_t output = recent_most(t, &t->recent_output);
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

/* Replicas are counted by themselves. */
static uint64_t count_without_feeds(void)
{
    uint64_t count = client_count(), feeds = 0;
    for (int i = 0; i < server_thread_count(); i++) {
        feeds += atomic_load_explicit(&server_thread_at(i)->feed_count, memory_order_relaxed);
    }
    return count > feeds ? count - feeds : 0;
}

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
    field_u64(out, "connected_clients", count_without_feeds());
    field_u64(out, "cluster_connections", 0);
    field_i64(out, "maxclients", net_settings.maxclients);
    field_u64(out, "client_recent_max_input_buffer", input);
    field_u64(out, "client_recent_max_output_buffer", output);
    field_u64(out, "blocked_clients", pause_waiting() + blocked_count());
    field_u64(out, "tracking_clients", tracking_count().clients);
    field_u64(out, "clients_in_timeout_table", blocked_timeout_count());
    field_u64(out, "total_blocking_keys", waiting_key_count());
    field_u64(out, "total_blocking_keys_on_nokey", waiting_key_count_when_gone());
    if (self) {
        field_i64(out, "current_client_thread", self->index);
    }
    for (int i = 0; i < server_thread_count(); i++) {
        field_part_i64(out, "thread_", i);
        field_u64(out, "_clients", clients_of(server_thread_at(i)));
    }
}

/* ---- Threads ---- */

/* One thread's use of the keyspace lock, or a sum. */
struct lock_use {
    uint64_t shared_count, exclusive_count, shared_ns, exclusive_ns, wait_ns, parks;
};

static struct lock_use lock_use_of(unsigned slot)
{
    const struct brlock_stats *s = &keyspace_lock.stats[slot];
    return (struct lock_use){
        .shared_count = atomic_load_explicit(&s->shared_count, memory_order_relaxed),
        .exclusive_count = atomic_load_explicit(&s->exclusive_count, memory_order_relaxed),
        .shared_ns = clock_ticks_to_ns(brlock_held_ticks(&s->shared_held_ticks)),
        .exclusive_ns = clock_ticks_to_ns(brlock_held_ticks(&s->exclusive_held_ticks)),
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

/* What the thread has used of a core. */
static uint64_t cpu_us_of(const struct server_thread *t)
{
    struct timespec used;
    clockid_t clock = t->cpu_clock;
    if (clock == NO_CPU_CLOCK || clock_gettime(clock, &used) != 0) {
        return 0;
    }
    return (uint64_t)used.tv_sec * 1000000 + (uint64_t)used.tv_nsec / 1000;
}

static void write_thread(struct buf *out, const struct server_thread *t)
{
    unsigned slot = t->slot;
    struct lock_use u = lock_use_of(slot);
    uint64_t batches = stats_of_thread(slot, STAT_BATCHES);
    uint64_t commands = stats_of_thread(slot, STAT_BATCH_COMMANDS);
    field_part_i64(out, "thread_", t->index);
    field_part_u64(out, ":clients=", clients_of(t));
    field_part_u64(out, ",turns=", stats_of_thread(slot, STAT_TURNS));
    field_part_u64(out, ",commands=", commands);
    field_part_u64(out, ",batches=", batches);
    field_part_fixed(out, ",batch_mean=", ratio(commands, batches), 2);
    field_part_u64(out, ",batch_max=", stats_of_thread(slot, STAT_BATCH_MAX));
    field_part_u64(out, ",shared_acquisitions=", u.shared_count);
    field_part_u64(out, ",exclusive_acquisitions=", u.exclusive_count);
    field_part_u64(out, ",shared_held_us=", u.shared_ns / 1000);
    field_part_u64(out, ",exclusive_held_us=", u.exclusive_ns / 1000);
    field_part_u64(out, ",waited_us=", u.wait_ns / 1000);
    field_part_u64(out, ",parked=", u.parks);
    field_part_u64(out, ",cpu_us=", cpu_us_of(t));
    buf_append_cstr(out, "\r\n");
}

/* The names of the five fields of a mode of the lock. */
struct mode_fields {
    const char *acquisitions, *commands, *held_ns, *per_acquisition, *per_command;
};

static void write_mode(struct buf *out, const struct mode_fields *f, uint64_t count, uint64_t ns,
                       uint64_t calls)
{
    field_u64(out, f->acquisitions, count);
    field_u64(out, f->commands, calls);
    field_u64(out, f->held_ns, ns);
    field_fixed(out, f->per_acquisition, ratio(ns, count), 1);
    field_fixed(out, f->per_command, ratio(ns, calls), 1);
}

/* Calls count for the mode they ran in. The figures per command are rough: the server's own work
 * (expiry) holds the lock as well. */
static void write_threads(struct buf *out)
{
    static const struct mode_fields shared = {
        "lock_shared_acquisitions", "lock_shared_commands", "lock_shared_held_ns",
        "lock_shared_held_ns_per_acquisition", "lock_shared_held_ns_per_command"};
    static const struct mode_fields exclusive = {
        "lock_exclusive_acquisitions", "lock_exclusive_commands", "lock_exclusive_held_ns",
        "lock_exclusive_held_ns_per_acquisition", "lock_exclusive_held_ns_per_command"};
    struct lock_use sum = {0};
    for (int i = 0; i < server_thread_count(); i++) {
        const struct server_thread *t = server_thread_at(i);
        struct lock_use u = lock_use_of(t->slot);
        lock_use_add(&sum, &u);
        write_thread(out, t);
    }
    write_mode(out, &shared, sum.shared_count, sum.shared_ns, stats_sum(STAT_SHARED_CALLS));
    write_mode(out, &exclusive, sum.exclusive_count, sum.exclusive_ns,
               stats_sum(STAT_EXCLUSIVE_CALLS));
    uint64_t acquisitions = sum.shared_count + sum.exclusive_count;
    field_u64(out, "lock_waited_ns", sum.wait_ns);
    field_fixed(out, "lock_waited_ns_per_acquisition", ratio(sum.wait_ns, acquisitions), 1);
    field_u64(out, "lock_parked", sum.parks);
    field_u64(out, "clients_moved", stats_sum(STAT_CLIENTS_MOVED));
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
