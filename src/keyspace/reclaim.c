/* See reclaim.h. A thread's list is an array of its own; the background thread's queue is a linked
 * list behind a leaf lock, and it sleeps on a futex while the queue is empty. */
#include "keyspace/reclaim.h"

#include "base/futex.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/spike.h"
#include "base/stats.h"
#include "base/thread.h"
#include "value/module.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Freeing an entry with more allocations than this is worth another thread. */
#define LAZY_EFFORT 64
/* And with more than this, some 50 microseconds, is long. */
#define LONG_EFFORT 1024
/* Elements that are looked at to estimate what an entry's going will free. */
#define ESTIMATE_SAMPLES 5

struct garbage {
    struct garbage *next;
    struct entry *entry;          /* or, when NULL, */
    void (*release)(void *state); /* to be called, or, when NULL, a table */
    void *state;
    size_t bytes; /* of the entry */
    struct table table;
};

/* Places in a thread's list that are always there: what a usual hold unlinks. */
#define OWN_PLACES 256

/* The calling thread's list. Nothing is left to be freed when a thread ends after its reclaim_run.
 */
static _Thread_local struct {
    uint32_t count;
    uint32_t more_count, more_capacity;
    struct entry **more; /* beyond `own` */
    struct garbage *tables;
    const char *spike; /* reclaim_entry_as */
    struct entry *own[OWN_PLACES];
} mine;

static struct {
    struct lock lock;
    struct garbage *first, **last;
    _Atomic uint32_t wakeups; /* futex word: raised with every hand-over */
    _Atomic uint64_t pending; /* entries queued and not yet freed */
    _Atomic size_t pending_bytes;
    _Atomic bool stopping;
    pthread_t thread;
    bool running;
} queue = {.lock = LOCK_INIT(LOCK_RANK_FREE_QUEUE, "reclaim"), .last = &queue.first};

/* This thread is the background one. */
static _Thread_local bool is_background;

static struct {
    bool eviction, expire, server_del, user_del, user_flush;
} settings;

bool reclaim_lazy_eviction(void)
{
    return settings.eviction;
}
bool reclaim_lazy_expire(void)
{
    return settings.expire;
}
bool reclaim_lazy_server_del(void)
{
    return settings.server_del;
}
bool reclaim_lazy_user_del(void)
{
    return settings.user_del;
}
bool reclaim_lazy_user_flush(void)
{
    return settings.user_flush;
}

static void free_entry(void *entry, void *context)
{
    struct entry *e = entry;
    (void)context;
    entry_destroy(&e);
}

static void free_garbage(struct garbage *g)
{
    if (g->entry) {
        entry_destroy(&g->entry);
    } else if (g->release) {
        g->release(g->state);
    } else {
        table_deinit(&g->table, free_entry, NULL);
    }
    mem_free(g);
}

static void enqueue(struct garbage *g)
{
    atomic_fetch_add_explicit(&queue.pending, g->entry ? 1 : g->table.count, memory_order_relaxed);
    atomic_fetch_add_explicit(&queue.pending_bytes, g->bytes, memory_order_relaxed);
    g->next = NULL;
    lock_acquire(&queue.lock);
    *queue.last = g;
    queue.last = &g->next;
    lock_release(&queue.lock);
    atomic_fetch_add(&queue.wakeups, 1);
    futex_wake(&queue.wakeups, 1);
}

static struct garbage *dequeue(void)
{
    lock_acquire(&queue.lock);
    struct garbage *g = queue.first;
    if (g) {
        queue.first = g->next;
        if (!queue.first) {
            queue.last = &queue.first;
        }
    }
    lock_release(&queue.lock);
    return g;
}

static void *background(void *arg)
{
    (void)arg;
    thread_enter("reclaim");
    is_background = true;
    for (;;) {
        uint32_t seen = atomic_load(&queue.wakeups);
        struct garbage *g = dequeue();
        if (g) {
            uint64_t entries = g->entry ? 1 : g->table.count;
            size_t bytes = g->bytes;
            free_garbage(g);
            atomic_fetch_sub_explicit(&queue.pending_bytes, bytes, memory_order_relaxed);
            atomic_fetch_sub_explicit(&queue.pending, entries, memory_order_relaxed);
            stats_add(STAT_LAZYFREED, entries);
        } else if (atomic_load(&queue.stopping)) {
            break;
        } else {
            futex_wait(&queue.wakeups, seen, 0);
        }
    }
    thread_leave();
    return NULL;
}

/* ---- retired blocks ---- */

/* Not linked through the blocks themselves: peekers follow the addresses that they find in them. */
struct retired {
    struct retired *next;
    void *block;
};

static struct {
    struct lock lock;
    struct retired *fresh;   /* behind the lock */
    struct retired *waiting; /* the cron's: unpublished before the note below */
    const struct brlock *peekers;
    uint64_t marks[BRLOCK_MAX_THREADS];
} graves = {.lock = LOCK_INIT(LOCK_RANK_FREE_QUEUE, "retired")};

void reclaim_set_peekers(const struct brlock *lock)
{
    graves.peekers = lock;
}

void reclaim_retire(void *block_take)
{
    struct retired *r = mem_alloc(sizeof(*r));
    r->block = block_take;
    lock_acquire(&graves.lock);
    r->next = graves.fresh;
    graves.fresh = r;
    lock_release(&graves.lock);
}

static void free_retired(struct retired **list)
{
    while (*list) {
        struct retired *r = *list;
        *list = r->next;
        mem_free(r->block);
        mem_free(r);
    }
}

static struct retired *take_fresh(void)
{
    lock_acquire(&graves.lock);
    struct retired *taken = graves.fresh;
    graves.fresh = NULL;
    lock_release(&graves.lock);
    return taken;
}

void reclaim_retired(int64_t wall_ms)
{
    (void)wall_ms;
    if (graves.waiting) {
        if (!brlock_readers_have_left(graves.peekers, graves.marks)) {
            return;
        }
        free_retired(&graves.waiting);
    }
    lock_acquire(&graves.lock);
    bool some = graves.fresh != NULL;
    lock_release(&graves.lock);
    /* In shared mode no writer is between retiring and unpublishing. */
    if (some && keyspace_try_shared()) {
        graves.waiting = take_fresh();
        keyspace_unlock_shared();
        brlock_note_readers(graves.peekers, graves.marks);
    }
}

void reclaim_setup(void)
{
    int error = thread_start(&queue.thread, background, NULL);
    if (error) {
        log_warning("Can't start the reclaim thread: %s", strerror(error));
        abort();
    }
    queue.running = true;
}

void reclaim_teardown(void)
{
    if (queue.running) {
        atomic_store(&queue.stopping, true);
        atomic_fetch_add(&queue.wakeups, 1);
        futex_wake(&queue.wakeups, 1);
        pthread_join(queue.thread, NULL);
        queue.running = false;
        atomic_store(&queue.stopping, false);
    }
    reclaim_run();
    /* Nobody peeks any more. */
    free_retired(&graves.waiting);
    graves.waiting = take_fresh();
    free_retired(&graves.waiting);
}

void reclaim_entry(struct entry *entry_take, bool lazily)
{
    if (lazily && entry_free_effort(entry_take) > LAZY_EFFORT) {
        struct garbage *g = mem_calloc(1, sizeof(*g));
        g->entry = entry_take;
        g->bytes = entry_memory_bytes(entry_take, ESTIMATE_SAMPLES);
        enqueue(g);
        return;
    }
    if (unlikely(entry_type(entry_take) == VALUE_MODULE)) {
        module_value_drop(entry_take);
    }
    if (mine.count < OWN_PLACES) {
        mine.own[mine.count++] = entry_take;
        return;
    }
    if (mine.more_count == mine.more_capacity) {
        mine.more_capacity = mine.more_capacity ? 2 * mine.more_capacity : OWN_PLACES;
        mine.more = mem_realloc(mine.more, mine.more_capacity * sizeof(*mine.more));
    }
    mine.more[mine.more_count++] = entry_take;
}

bool reclaim_is_background(void)
{
    return is_background;
}

void reclaim_entry_as(struct entry *entry_take, bool lazily, const char *spike)
{
    if (unlikely(spike_begin() != 0) && reclaim_is_long(entry_take)) {
        mine.spike = spike;
    }
    reclaim_entry(entry_take, lazily);
}

bool reclaim_is_long(const struct entry *entry)
{
    return entry_free_effort(entry) > LONG_EFFORT;
}

void reclaim_table(struct table *table_take, bool lazily)
{
    struct garbage *g = mem_calloc(1, sizeof(*g));
    g->table = *table_take;
    *table_take = (struct table){.hash = table_take->hash};
    if (lazily) {
        enqueue(g);
    } else {
        g->next = mine.tables;
        mine.tables = g;
    }
}

void reclaim_call(void (*release)(void *state), void *state_take)
{
    if (!queue.running) {
        release(state_take);
        return;
    }
    struct garbage *g = mem_calloc(1, sizeof(*g));
    g->release = release;
    g->state = state_take;
    enqueue(g);
}

bool reclaim_has_work(void)
{
    return mine.count > 0 || mine.tables;
}

void reclaim_run(void)
{
    uint64_t begin = unlikely(mine.spike) ? spike_begin() : 0;
    for (uint32_t i = 0; i < mine.count; i++) {
        entry_destroy(&mine.own[i]);
    }
    for (uint32_t i = 0; i < mine.more_count; i++) {
        entry_destroy(&mine.more[i]);
    }
    mem_free(mine.more);
    mine.more = NULL;
    mine.count = mine.more_count = mine.more_capacity = 0;
    while (mine.tables) {
        struct garbage *g = mine.tables;
        mine.tables = g->next;
        free_garbage(g);
    }
    if (unlikely(mine.spike)) {
        spike_end(mine.spike, begin);
        mine.spike = NULL;
    }
}

uint64_t reclaim_pending(void)
{
    return atomic_load_explicit(&queue.pending, memory_order_relaxed);
}

size_t reclaim_pending_bytes(void)
{
    return atomic_load_explicit(&queue.pending_bytes, memory_order_relaxed);
}

const struct option reclaim_options[] = {
    {.name = "lazyfree-lazy-eviction",
     .type = OPTION_BOOL,
     .target = &settings.eviction,
     .initial = "no"},
    {.name = "lazyfree-lazy-expire",
     .type = OPTION_BOOL,
     .target = &settings.expire,
     .initial = "no"},
    {.name = "lazyfree-lazy-server-del",
     .type = OPTION_BOOL,
     .target = &settings.server_del,
     .initial = "no"},
    {.name = "lazyfree-lazy-user-del",
     .type = OPTION_BOOL,
     .target = &settings.user_del,
     .initial = "no"},
    {.name = "lazyfree-lazy-user-flush",
     .type = OPTION_BOOL,
     .target = &settings.user_flush,
     .initial = "no"},
    {.name = NULL},
};
