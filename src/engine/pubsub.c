/* See pubsub.h: the registry and the receivers' side. pubsub_publish.c publishes. */
#include "engine/pubsub_priv.h"

#include "base/mem.h"

#include <assert.h>

/* Beyond this a receiver's queue is crowded: publishers wait for it between their turns. */
#define QUEUE_GOOD_BYTES ((size_t)16 * 1024 * 1024)
/* Buckets of names that are copied in one hold. */
#define BUCKETS_A_HOLD 64

struct pubsub_registry pubsub_registry = {.generation = 1,
                                          .lock = LOCK_INIT(LOCK_RANK_PUBSUB, "pubsub")};

static void topic_release(struct topic *t)
{
    if (atomic_fetch_sub_explicit(&t->refs, 1, memory_order_acq_rel) == 1) {
        mem_free(t);
    }
}

void pubsub_release_patterns(struct pattern_list *list)
{
    if (list && atomic_fetch_sub_explicit(&list->refs, 1, memory_order_acq_rel) == 1) {
        for (size_t i = 0; i < list->count; i++) {
            topic_release(list->patterns[i]);
        }
        mem_free(list);
    }
}

/* ---- the table; the lock is held ---- */

struct topic_key {
    enum pubsub_kind kind;
    uint64_t hash;
    struct slice name;
};

static uint64_t topic_hash(const void *entry)
{
    return ((const struct topic *)entry)->hash;
}

static bool topic_matches(const void *entry, const void *key)
{
    const struct topic *t = entry;
    const struct topic_key *k = key;
    return t->hash == k->hash && t->kind == k->kind && slice_equal(topic_name(t), k->name);
}

struct topic *pubsub_find_topic(enum pubsub_kind kind, uint64_t hash, struct slice name)
{
    struct topic_key key = {kind, hash, name};
    uintptr_t *slot = table_find(&pubsub_registry.table, hash, topic_matches, &key);
    return slot ? table_entry(*slot) : NULL;
}

static void patterns_changed(void)
{
    pubsub_registry.generation++;
    /* The list's last reference may be this one: its topics are freed under the lock, which is a
     * free each and nothing more. */
    pubsub_release_patterns(pubsub_registry.list);
    pubsub_registry.list = NULL;
}

static struct topic *add_topic(enum pubsub_kind kind, uint64_t hash, struct slice name)
{
    struct topic *t = mem_alloc(sizeof(*t) + name.len);
    *t = (struct topic){.hash = hash, .kind = kind, .len = name.len};
    atomic_init(&t->refs, 1);
    if (name.len > 0) {
        memcpy(t->name, name.ptr, name.len);
    }
    table_insert(&pubsub_registry.table, hash, (uintptr_t)t);
    uint64_t count = pubsub_registry.names[kind]++;
    if (kind == PUBSUB_PATTERN) {
        if (count == pubsub_registry.pattern_capacity) {
            pubsub_registry.pattern_capacity = count ? 2 * count : 16;
            pubsub_registry.patterns =
                mem_realloc(pubsub_registry.patterns,
                            pubsub_registry.pattern_capacity * sizeof(struct topic *));
        }
        t->index = count;
        pubsub_registry.patterns[count] = t;
        patterns_changed();
    }
    atomic_fetch_add(&pubsub_registry.topics, 1);
    return t;
}

static void remove_topic(struct topic *t)
{
    struct topic_key key = {t->kind, t->hash, topic_name(t)};
    assert(t->subscribers == 0 && t->receivers == 0);
    table_remove(&pubsub_registry.table, t->hash,
                 table_find(&pubsub_registry.table, t->hash, topic_matches, &key));
    uint64_t count = --pubsub_registry.names[t->kind];
    if (t->kind == PUBSUB_PATTERN) {
        pubsub_registry.patterns[t->index] = pubsub_registry.patterns[count];
        pubsub_registry.patterns[t->index]->index = t->index;
        patterns_changed();
    }
    atomic_fetch_sub(&pubsub_registry.topics, 1);
    topic_release(t);
}

/* A receiver has one name of patterns more or less. */
static void count_patterns(int receiver, int change)
{
    uint64_t bit = (uint64_t)1 << receiver;
    pubsub_registry.patterns_of[receiver] =
        (uint64_t)((int64_t)pubsub_registry.patterns_of[receiver] + change);
    uint64_t mask = atomic_load_explicit(&pubsub_registry.pattern_receivers, memory_order_relaxed);
    atomic_store(&pubsub_registry.pattern_receivers,
                 pubsub_registry.patterns_of[receiver] ? mask | bit : mask & ~bit);
}

/* ---- receivers ---- */

static struct pubsub_message *take_queue(int receiver)
{
    struct queue *q = &pubsub_registry.queues[receiver];
    struct pubsub_message *first = q->first;
    q->first = NULL;
    q->last = &q->first;
    return first;
}

struct pubsub_message *pubsub_take(int receiver)
{
    lock_acquire(&pubsub_registry.lock);
    struct pubsub_message *taken = take_queue(receiver);
    lock_release(&pubsub_registry.lock);
    return taken;
}

struct pubsub_message *pubsub_join(int receiver, enum pubsub_kind kind, uint64_t hash,
                                   struct slice name, bool is_first)
{
    lock_acquire(&pubsub_registry.lock);
    struct pubsub_message *taken = take_queue(receiver);
    struct topic *t = pubsub_find_topic(kind, hash, name);
    if (!t) {
        t = add_topic(kind, hash, name);
    }
    t->subscribers++;
    t->receivers |= (uint64_t)1 << receiver;
    if (kind == PUBSUB_PATTERN) {
        pubsub_registry.pattern_subscribers++;
        count_patterns(receiver, is_first);
    }
    lock_release(&pubsub_registry.lock);
    return taken;
}

struct pubsub_message *pubsub_leave(int receiver, enum pubsub_kind kind, uint64_t hash,
                                    struct slice name, bool is_last)
{
    lock_acquire(&pubsub_registry.lock);
    struct pubsub_message *taken = take_queue(receiver);
    struct topic *t = pubsub_find_topic(kind, hash, name);
    assert(t && t->subscribers > 0 && t->receivers >> receiver & 1);
    t->subscribers--;
    if (is_last) {
        t->receivers &= ~((uint64_t)1 << receiver);
    }
    if (kind == PUBSUB_PATTERN) {
        pubsub_registry.pattern_subscribers--;
        count_patterns(receiver, -(int)is_last);
    }
    if (t->subscribers == 0) {
        remove_topic(t);
    }
    lock_release(&pubsub_registry.lock);
    return taken;
}

void pubsub_dealt(int receiver, const struct pubsub_message *m)
{
    atomic_fetch_sub_explicit(&pubsub_registry.queues[receiver].cost, m->cost,
                              memory_order_relaxed);
}

void pubsub_release(struct pubsub_message *m)
{
    /* Acquire and release: who frees it comes after all who have read it. */
    if (atomic_fetch_sub_explicit(&m->refs, 1, memory_order_acq_rel) == 1) {
        blob_release(&m->payload);
        mem_free(m);
    }
}

uint64_t pubsub_crowded(uint64_t receivers)
{
    uint64_t crowded = 0;
    for (uint64_t left = receivers; left; left &= left - 1) {
        int i = __builtin_ctzll(left);
        if (atomic_load_explicit(&pubsub_registry.queues[i].cost, memory_order_relaxed) >
            QUEUE_GOOD_BYTES) {
            crowded |= (uint64_t)1 << i;
        }
    }
    return crowded;
}

/* ---- looking ---- */

uint64_t pubsub_subscribers(enum pubsub_kind kind, struct slice name)
{
    lock_acquire(&pubsub_registry.lock);
    struct topic *t = pubsub_find_topic(kind, pubsub_hash(kind, name), name);
    uint64_t count = t ? t->subscribers : 0;
    lock_release(&pubsub_registry.lock);
    return count;
}

uint64_t pubsub_names(enum pubsub_kind kind)
{
    lock_acquire(&pubsub_registry.lock);
    uint64_t count = pubsub_registry.names[kind];
    lock_release(&pubsub_registry.lock);
    return count;
}

struct collection {
    enum pubsub_kind kind;
    struct topic **topics;
    size_t count, capacity;
};

static void collect(uintptr_t *slot, void *context)
{
    struct collection *found = context;
    struct topic *t = table_entry(*slot);
    if (t->kind != found->kind) {
        return;
    }
    if (found->count == found->capacity) {
        found->capacity = found->capacity ? 2 * found->capacity : 64;
        found->topics = mem_realloc(found->topics, found->capacity * sizeof(struct topic *));
    }
    atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed);
    found->topics[found->count++] = t;
}

void pubsub_each(enum pubsub_kind kind, void (*visit)(struct slice name, void *context),
                 void *context)
{
    struct collection found = {.kind = kind};
    uint64_t cursor = 0;
    do {
        found.count = 0;
        lock_acquire(&pubsub_registry.lock);
        for (int i = 0; i < BUCKETS_A_HOLD; i++) {
            cursor = table_scan(&pubsub_registry.table, cursor, collect, &found);
            if (cursor == 0) {
                break;
            }
        }
        lock_release(&pubsub_registry.lock);
        for (size_t i = 0; i < found.count; i++) {
            visit(topic_name(found.topics[i]), context);
            topic_release(found.topics[i]);
        }
    } while (cursor != 0);
    mem_free(found.topics);
}

/* ---- life ---- */

void pubsub_setup(const struct pubsub_delivery *delivery, int receivers)
{
    assert(receivers > 0 && receivers <= PUBSUB_RECEIVERS_MAX);
    pubsub_registry.delivery = delivery;
    pubsub_registry.receiver_count = receivers;
    table_init(&pubsub_registry.table, topic_hash);
    for (int i = 0; i < receivers; i++) {
        pubsub_registry.queues[i].last = &pubsub_registry.queues[i].first;
    }
    event_add_listener(pubsub_on_event);
}

void pubsub_teardown(void)
{
    assert(atomic_load(&pubsub_registry.topics) == 0);
    for (int i = 0; i < pubsub_registry.receiver_count; i++) {
        struct pubsub_message *m = pubsub_take(i);
        while (m) {
            struct pubsub_message *next = m->next[i];
            pubsub_release(m);
            m = next;
        }
    }
    pubsub_release_patterns(pubsub_registry.list);
    pubsub_registry.list = NULL;
    mem_free(pubsub_registry.patterns);
    pubsub_registry.patterns = NULL;
    pubsub_registry.pattern_capacity = 0;
    table_deinit(&pubsub_registry.table, NULL, NULL);
}

const struct pubsub_delivery *pubsub_delivery(void)
{
    return pubsub_registry.delivery;
}
