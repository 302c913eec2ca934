/* See pubsub.h: making messages and sending them to the receivers.
 *
 * Patterns are compared with a channel outside the lock, since both are as long as clients like: a
 * publisher takes the current list of patterns (immutable, counted), compares, and starts anew when
 * the patterns are others once it has the lock. Who finds them changed again and again compares
 * under the lock in the end. What was found is remembered for the channel's next message.
 *
 * Keyspace events are not counted, and their publisher holds the keyspace lock: they go to every
 * receiver that has any pattern, which compares by itself. */
#include "engine/pubsub_priv.h"

#include "base/buf.h"
#include "base/glob.h"
#include "base/mem.h"
#include "base/num.h"

#include <assert.h>

/* A message counts for its bytes, and for each subscription that it goes to as much as a receiver
 * needs to note that. */
#define COST_OF_SUBSCRIPTION 64
/* Times that a publisher compares patterns in vain before it does so under the lock. */
#define MATCH_TRIES 3

/* ---- messages ---- */

/* A length in the protocol: '$', digits, CR LF. */
#define LENGTH_MAX_CHARS (NUM_I64_MAX_CHARS + 3)

static char *put_length(char *p, size_t len)
{
    *p++ = '$';
    p += num_format_u64(p, len);
    *p++ = '\r';
    *p++ = '\n';
    return p;
}

static char *put_slice(char *p, struct slice s)
{
    if (s.len > 0) {
        memcpy(p, s.ptr, s.len);
    }
    return p + s.len;
}

/* A new message with one reference; `blob` (may be NULL) holds the payload whole, and is the
 * message's then. */
static struct pubsub_message *create_message(enum pubsub_kind kind, struct slice channel,
                                             struct slice payload, struct blob *blob_take)
{
    size_t links = (size_t)pubsub_registry.receiver_count * sizeof(struct pubsub_message *);
    size_t room = 2 * LENGTH_MAX_CHARS + channel.len + 4 + (blob_take ? 0 : payload.len);
    struct pubsub_message *m = mem_alloc(sizeof(*m) + links + room);
    char *text = (char *)m->next + links, *p = put_length(text, channel.len);
    m->kind = kind;
    m->hash = pubsub_hash(kind, channel);
    m->channel = slice_of(p, channel.len);
    p = put_slice(p, channel);
    p = put_slice(p, SLICE("\r\n"));
    p = put_length(p, payload.len);
    if (!blob_take) {
        p = put_slice(p, payload);
        p = put_slice(p, SLICE("\r\n"));
    }
    assert((size_t)(p - text) <= room);
    m->text = slice_of(text, (size_t)(p - text));
    m->payload = blob_take;
    m->cost = sizeof(*m) + links + room + (blob_take ? payload.len : 0);
    atomic_init(&m->refs, 1);
    return m;
}

/* Puts the message in the queues of `receivers`. The lock is held. Returns whose were empty. */
static uint64_t enqueue(struct pubsub_message *m, uint64_t receivers, uint64_t subscriptions)
{
    uint64_t woken = 0;
    m->cost += subscriptions * COST_OF_SUBSCRIPTION;
    atomic_fetch_add_explicit(&m->refs, (uint32_t)__builtin_popcountll(receivers),
                              memory_order_relaxed);
    for (uint64_t left = receivers; left; left &= left - 1) {
        int i = __builtin_ctzll(left);
        struct queue *q = &pubsub_registry.queues[i];
        assert(i < pubsub_registry.receiver_count);
        if (!q->first) {
            woken |= (uint64_t)1 << i;
        }
        m->next[i] = NULL;
        *q->last = m;
        q->last = &m->next[i];
        atomic_fetch_add_explicit(&q->cost, m->cost, memory_order_relaxed);
    }
    return woken;
}

static void announce(uint64_t receivers, uint64_t woken)
{
    if (receivers) {
        pubsub_registry.delivery->posted(woken, pubsub_crowded(receivers));
    }
}

/* ---- patterns ---- */

/* Matches that are kept without memory of their own. */
#define FEW_MATCHES 16

/* The patterns that match a channel. */
struct matches {
    size_t count, capacity;
    struct topic **topics; /* `few`, or grown beyond it */
    struct topic *few[FEW_MATCHES];
};

static void matches_init(struct matches *found)
{
    found->count = 0;
    found->capacity = FEW_MATCHES;
    found->topics = found->few;
}

static void matches_deinit(struct matches *found)
{
    if (found->topics != found->few) {
        mem_free(found->topics);
    }
}

static void add_match(struct matches *found, struct topic *t)
{
    if (found->count == found->capacity) {
        struct topic **old = found->topics == found->few ? NULL : found->topics;
        found->capacity *= 2;
        found->topics = mem_realloc(old, found->capacity * sizeof(struct topic *));
        if (!old) {
            memcpy(found->topics, found->few, sizeof(found->few));
        }
    }
    found->topics[found->count++] = t;
}

/* Channels are published on again and again: what each thread has found for some of them, good as
 * long as the patterns are the same ones. The topics live then, for the registry has them. */
#define REMEMBERED_CHANNELS 64
#define REMEMBERED_BYTES 104

struct remembered {
    uint64_t generation; /* 0: nothing here */
    uint64_t hash;
    uint32_t len, count;
    char channel[REMEMBERED_BYTES];
    struct topic *topics[FEW_MATCHES];
};

static _Thread_local struct remembered remembered[REMEMBERED_CHANNELS];

/* The lock is held. */
static bool recall(const struct pubsub_message *m, struct matches *found)
{
    const struct remembered *r = &remembered[m->hash % REMEMBERED_CHANNELS];
    if (r->generation != pubsub_registry.generation || r->hash != m->hash ||
        r->len != m->channel.len || memcmp(r->channel, m->channel.ptr, r->len) != 0) {
        return false;
    }
    found->count = r->count;
    memcpy(found->few, r->topics, r->count * sizeof(struct topic *));
    return true;
}

static void remember(const struct pubsub_message *m, const struct matches *found)
{
    struct remembered *r = &remembered[m->hash % REMEMBERED_CHANNELS];
    if (found->topics == found->few && m->channel.len <= REMEMBERED_BYTES) {
        r->generation = pubsub_registry.generation;
        r->hash = m->hash;
        r->len = (uint32_t)m->channel.len;
        r->count = (uint32_t)found->count;
        memcpy(r->channel, m->channel.ptr, m->channel.len);
        memcpy(r->topics, found->few, found->count * sizeof(struct topic *));
    }
}

static void match(struct matches *found, struct topic *const *patterns, size_t count,
                  struct slice channel)
{
    found->count = 0;
    for (size_t i = 0; i < count; i++) {
        if (glob_match(topic_name(patterns[i]), channel, false)) {
            add_match(found, patterns[i]);
        }
    }
}

/* The current list, with a reference for the caller. The lock is held. */
static struct pattern_list *acquire_list(void)
{
    size_t count = pubsub_registry.names[PUBSUB_PATTERN];
    if (!pubsub_registry.list) {
        struct pattern_list *list = mem_alloc(sizeof(*list) + count * sizeof(struct topic *));
        atomic_init(&list->refs, 1);
        list->generation = pubsub_registry.generation;
        list->count = count;
        for (size_t i = 0; i < count; i++) {
            list->patterns[i] = pubsub_registry.patterns[i];
            atomic_fetch_add_explicit(&list->patterns[i]->refs, 1, memory_order_relaxed);
        }
        pubsub_registry.list = list;
    }
    atomic_fetch_add_explicit(&pubsub_registry.list->refs, 1, memory_order_relaxed);
    return pubsub_registry.list;
}

/* Takes the lock, with the patterns that match the message's channel then. */
static void lock_matched(const struct pubsub_message *m, struct matches *found)
    ACQUIRE(pubsub_registry.lock)
{
    lock_acquire(&pubsub_registry.lock);
    if (recall(m, found)) {
        return;
    }
    for (int i = 0; i < MATCH_TRIES && pubsub_registry.names[PUBSUB_PATTERN] > 0; i++) {
        struct pattern_list *list = acquire_list();
        lock_release(&pubsub_registry.lock);
        match(found, list->patterns, list->count, m->channel);
        lock_acquire(&pubsub_registry.lock);
        bool current = list->generation == pubsub_registry.generation;
        /* The registry still has one if it is current: what was found lives. Else nothing of it is
         * used. */
        pubsub_release_patterns(list);
        if (current) {
            remember(m, found);
            return;
        }
    }
    match(found, pubsub_registry.patterns, pubsub_registry.names[PUBSUB_PATTERN], m->channel);
}

/* ---- publishing ---- */

/* Where a message goes. */
struct route {
    uint64_t receivers, subscriptions;
};

static void add_topic_route(struct route *route, const struct topic *t)
{
    if (t) {
        route->receivers |= t->receivers;
        route->subscriptions += t->subscribers;
    }
}

uint64_t pubsub_publish(struct call *c, enum pubsub_kind kind, int channel, int payload)
{
    assert(kind == PUBSUB_CHANNEL || kind == PUBSUB_SHARD);
    if (atomic_load(&pubsub_registry.topics) == 0) {
        return 0;
    }
    struct blob *blob = call_take_blob(c, payload);
    struct pubsub_message *m = create_message(kind, c->argv[channel], c->argv[payload], blob);
    struct matches found;
    matches_init(&found);
    if (kind == PUBSUB_CHANNEL) {
        lock_matched(m, &found);
    } else {
        lock_acquire(&pubsub_registry.lock);
    }
    struct route route = {0, 0};
    add_topic_route(&route, pubsub_find_topic(kind, m->hash, m->channel));
    for (size_t i = 0; i < found.count; i++) {
        add_topic_route(&route, found.topics[i]);
    }
    uint64_t woken = enqueue(m, route.receivers, route.subscriptions);
    lock_release(&pubsub_registry.lock);
    matches_deinit(&found);
    announce(route.receivers, woken);
    pubsub_release(m);
    return route.subscriptions;
}

/* Publishes without counting: to all receivers that have patterns. */
static void publish_event(struct slice channel, struct slice payload)
{
    uint64_t hash = pubsub_hash(PUBSUB_CHANNEL, channel);
    struct route route = {0, 0};
    if (atomic_load_explicit(&pubsub_registry.pattern_receivers, memory_order_acquire) == 0) {
        lock_acquire(&pubsub_registry.lock);
        bool heard = pubsub_find_topic(PUBSUB_CHANNEL, hash, channel);
        lock_release(&pubsub_registry.lock);
        if (!heard) {
            return;
        }
    }
    struct pubsub_message *m = create_message(PUBSUB_CHANNEL, channel, payload, NULL);
    lock_acquire(&pubsub_registry.lock);
    add_topic_route(&route, pubsub_find_topic(PUBSUB_CHANNEL, hash, channel));
    route.receivers |=
        atomic_load_explicit(&pubsub_registry.pattern_receivers, memory_order_relaxed);
    route.subscriptions += pubsub_registry.pattern_subscribers;
    uint64_t woken = enqueue(m, route.receivers, route.subscriptions);
    lock_release(&pubsub_registry.lock);
    announce(route.receivers, woken);
    pubsub_release(m);
}

/* The keyspace's listener. */
void pubsub_on_event(const char *event, int db, struct slice key, unsigned mask)
{
    struct buf channel = {0};
    if (atomic_load_explicit(&pubsub_registry.topics, memory_order_acquire) == 0) {
        return;
    }
    if (mask & EVENT_KEYSPACE) {
        buf_printf(&channel, "__keyspace@%d__:", db);
        buf_append_slice(&channel, key);
        publish_event(buf_slice(&channel), slice_cstr(event));
    }
    if (mask & EVENT_KEYEVENT) {
        buf_clear(&channel);
        buf_printf(&channel, "__keyevent@%d__:%s", db, event);
        publish_event(buf_slice(&channel), key);
    }
    buf_deinit(&channel);
}
