/* See subscriptions.h.
 *
 * A thread's topics (channels and patterns) and its memberships (a client subscribes to a topic)
 * are in two tables; a membership is also in its topic's array, which dealing out walks, and in its
 * client's list, which the end of a client walks. Notes point at messages and topics: both live
 * until all notes have been sent (spent messages, retired topics). */
#include "net/subscriptions.h"

#include "base/glob.h"
#include "base/mem.h"
#include "ds/table.h"
#include "engine/pubsub.h"
#include "net/output.h"

#include <assert.h>
#include <time.h>

/* Notes, and bytes of messages, that are made before what they say is sent, and in one go between
 * two batches. */
#define NOTES_MAX 4096
#define NOTE_BYTES_MAX ((size_t)1024 * 1024)
/* How long a publisher sleeps before it looks again whether the others have caught up. */
#define WAIT_NS (50 * 1000)

struct membership;

/* A channel or a pattern that clients of this thread subscribe to. */
struct topic {
    uint64_t hash;
    enum pubsub_kind kind;
    uint32_t count, capacity;
    struct membership **members;
    size_t index; /* of a pattern, in `patterns` */
    struct topic *next_retired;
    size_t len;
    char name[];
};

struct membership {
    uint64_t hash;
    struct topic *topic;
    struct client *client;
    uint32_t index;                  /* in the topic's array */
    struct membership *next, **link; /* the client's, of this kind */
};

/* A message to be sent; topic: the pattern that it matched, or NULL. */
struct note {
    struct note *next;
    struct pubsub_message *message;
    const struct topic *pattern;
};

struct subscriber {
    struct membership *first[PUBSUB_KIND_COUNT];
    uint64_t count[PUBSUB_KIND_COUNT];
    struct note *notes, **last_note;
    bool noted; /* is on the thread's list of those with notes */
};

struct subscriptions {
    struct table topics, memberships;
    struct topic **patterns;
    size_t pattern_count, pattern_capacity;
    struct pubsub_message *taken, **last_taken; /* to be dealt out */
    struct pubsub_message *spent;               /* dealt out; notes may point at them */
    struct topic *retired;                      /* without members; notes may point at them */
    struct client **noted;                      /* those with notes; NULL where one has gone */
    uint32_t noted_count, noted_capacity;
    uint32_t note_count;
    size_t note_bytes;
    uint64_t to_wake, to_wait_for; /* threads that were published to in this turn */
    bool waiting;                  /* there is something in the queue */
    _Atomic bool wake_sent;
    struct inbox_message wake; /* on its way while wake_sent */
    _Atomic uint64_t membership_count;
};

static struct slice topic_name(const struct topic *t)
{
    return slice_of(t->name, t->len);
}

/* ---- tables ---- */

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

static uintptr_t *topic_slot(struct subscriptions *s, enum pubsub_kind kind, uint64_t hash,
                             struct slice name)
{
    struct topic_key key = {kind, hash, name};
    return table_find(&s->topics, hash, topic_matches, &key);
}

static struct topic *find_topic(struct subscriptions *s, enum pubsub_kind kind, uint64_t hash,
                                struct slice name)
{
    uintptr_t *slot = topic_slot(s, kind, hash, name);
    return slot ? table_entry(*slot) : NULL;
}

static struct topic *add_topic(struct subscriptions *s, enum pubsub_kind kind, uint64_t hash,
                               struct slice name)
{
    struct topic *t = mem_alloc(sizeof(*t) + name.len);
    *t = (struct topic){.hash = hash, .kind = kind, .len = name.len};
    if (name.len > 0) {
        memcpy(t->name, name.ptr, name.len);
    }
    table_insert(&s->topics, hash, (uintptr_t)t);
    if (kind == PUBSUB_PATTERN) {
        if (s->pattern_count == s->pattern_capacity) {
            s->pattern_capacity = s->pattern_capacity ? 2 * s->pattern_capacity : 16;
            s->patterns = mem_realloc(s->patterns, s->pattern_capacity * sizeof(struct topic *));
        }
        t->index = s->pattern_count;
        s->patterns[s->pattern_count++] = t;
    }
    return t;
}

static void retire_topic(struct subscriptions *s, struct topic *t)
{
    assert(t->count == 0);
    table_remove(&s->topics, t->hash, topic_slot(s, t->kind, t->hash, topic_name(t)));
    if (t->kind == PUBSUB_PATTERN) {
        s->patterns[t->index] = s->patterns[--s->pattern_count];
        s->patterns[t->index]->index = t->index;
    }
    t->next_retired = s->retired;
    s->retired = t;
}

struct membership_key {
    const struct topic *topic;
    const struct client *client;
};

static uint64_t membership_hash(const void *entry)
{
    return ((const struct membership *)entry)->hash;
}

static bool membership_matches(const void *entry, const void *key)
{
    const struct membership *m = entry;
    const struct membership_key *k = key;
    return m->topic == k->topic && m->client == k->client;
}

static uint64_t hash_membership(const struct topic *t, const struct client *c)
{
    return hash_fold(t->hash ^ hash_secret.word[1], c->session.id ^ hash_secret.word[2]);
}

static uintptr_t *membership_slot(struct subscriptions *s, const struct topic *t,
                                  const struct client *c)
{
    struct membership_key key = {t, c};
    return table_find(&s->memberships, hash_membership(t, c), membership_matches, &key);
}

static void add_membership(struct subscriptions *s, struct topic *t, struct client *c)
{
    struct subscriber *sub = c->subscriber;
    struct membership *m = mem_alloc(sizeof(*m));
    if (t->count == t->capacity) {
        t->capacity = t->capacity ? 2 * t->capacity : 1;
        t->members = mem_realloc(t->members, t->capacity * sizeof(struct membership *));
    }
    *m = (struct membership){.hash = hash_membership(t, c),
                             .topic = t,
                             .client = c,
                             .index = t->count,
                             .next = sub->first[t->kind],
                             .link = &sub->first[t->kind]};
    t->members[t->count++] = m;
    if (m->next) {
        m->next->link = &m->next;
    }
    sub->first[t->kind] = m;
    sub->count[t->kind]++;
    c->session.subscriptions++;
    table_insert(&s->memberships, m->hash, (uintptr_t)m);
    atomic_store_explicit(&s->membership_count, s->memberships.count, memory_order_relaxed);
}

static void remove_membership(struct subscriptions *s, struct membership *m)
{
    struct topic *t = m->topic;
    struct subscriber *sub = m->client->subscriber;
    table_remove(&s->memberships, m->hash, membership_slot(s, t, m->client));
    t->members[m->index] = t->members[--t->count];
    t->members[m->index]->index = m->index;
    *m->link = m->next;
    if (m->next) {
        m->next->link = m->link;
    }
    sub->count[t->kind]--;
    m->client->session.subscriptions--;
    mem_free(m);
    atomic_store_explicit(&s->membership_count, s->memberships.count, memory_order_relaxed);
    if (t->count == 0) {
        mem_free(t->members);
        t->members = NULL;
        retire_topic(s, t);
    }
}

/* ---- dealing out ---- */

static void note(struct subscriptions *s, struct client *c, struct pubsub_message *message,
                 const struct topic *pattern)
{
    struct subscriber *sub = c->subscriber;
    if (c->flags & (CLIENT_CLOSE_ASAP | CLIENT_CLOSE_AFTER_REPLY)) {
        return;
    }
    struct note *n = mem_alloc(sizeof(*n));
    *n = (struct note){NULL, message, pattern};
    *sub->last_note = n;
    sub->last_note = &n->next;
    s->note_count++;
    if (!sub->noted) {
        if (s->noted_count == s->noted_capacity) {
            s->noted_capacity = s->noted_capacity ? 2 * s->noted_capacity : 16;
            s->noted = mem_realloc(s->noted, s->noted_capacity * sizeof(struct client *));
        }
        s->noted[s->noted_count++] = c;
        sub->noted = true;
    }
}

static void note_all(struct subscriptions *s, const struct topic *t, struct pubsub_message *message)
{
    for (uint32_t i = 0; i < t->count; i++) {
        note(s, t->members[i]->client, message, t->kind == PUBSUB_PATTERN ? t : NULL);
    }
}

/* Deals out the oldest message that was taken. */
static void deal_one(struct server_thread *t)
{
    struct subscriptions *s = t->subscriptions;
    struct pubsub_message *m = s->taken;
    s->taken = m->next[t->index];
    if (!s->taken) {
        s->last_taken = &s->taken;
    }
    struct topic *topic = find_topic(s, m->kind, m->hash, m->channel);
    if (topic) {
        note_all(s, topic, m);
    }
    for (size_t i = 0; m->kind == PUBSUB_CHANNEL && i < s->pattern_count; i++) {
        if (glob_match(topic_name(s->patterns[i]), m->channel, false)) {
            note_all(s, s->patterns[i], m);
        }
    }
    pubsub_dealt(t->index, m);
    m->next[t->index] = s->spent;
    s->spent = m;
    s->note_bytes += m->text.len;
}

/* Puts what came out of the queue behind what came before. */
static void take(struct server_thread *t, struct pubsub_message *list)
{
    struct subscriptions *s = t->subscriptions;
    *s->last_taken = list;
    while (*s->last_taken) {
        s->last_taken = &(*s->last_taken)->next[t->index];
    }
}

/* Deals out all that was published until now, before the subscriptions change. */
static void deal_all(struct server_thread *t, struct pubsub_message *list)
{
    take(t, list);
    while (t->subscriptions->taken) {
        deal_one(t);
    }
}

/* ---- sending ---- */

static void reply_note(struct reply *r, const struct note *n)
{
    struct pubsub_message *m = n->message;
    if (n->pattern) {
        reply_push(r, 4);
        reply_bulk_cstr(r, "pmessage");
        reply_bulk(r, topic_name(n->pattern));
    } else {
        reply_push(r, 3);
        reply_bulk_cstr(r, m->kind == PUBSUB_SHARD ? "smessage" : "message");
    }
    reply_raw(r, m->text);
    if (m->payload) {
        reply_raw_blob(r, m->payload);
        reply_raw(r, SLICE("\r\n"));
    }
}

/* Takes the client's notes, and writes them where there is a reply. */
static void use_notes(struct subscriptions *s, struct subscriber *sub, struct reply *r)
{
    struct note *n = sub->notes;
    sub->notes = NULL;
    sub->last_note = &sub->notes;
    while (n) {
        struct note *next = n->next;
        if (r) {
            reply_note(r, n);
        }
        mem_free(n);
        s->note_count--;
        n = next;
    }
}

/* Nobody notes spent messages and retired topics any more. */
static void free_spent(struct server_thread *t)
{
    struct subscriptions *s = t->subscriptions;
    assert(s->note_count == 0);
    while (s->spent) {
        struct pubsub_message *m = s->spent;
        s->spent = m->next[t->index];
        pubsub_release(m);
    }
    while (s->retired) {
        struct topic *topic = s->retired;
        s->retired = topic->next_retired;
        mem_free(topic);
    }
    s->note_bytes = 0;
}

static void send_notes(struct server_thread *t)
{
    struct subscriptions *s = t->subscriptions;
    for (uint32_t i = 0; i < s->noted_count; i++) {
        struct client *c = s->noted[i];
        if (!c) {
            continue;
        }
        c->subscriber->noted = false;
        uint32_t begin = reply_begin(&t->reply, c->session.proto);
        use_notes(s, c->subscriber, &t->reply);
        uint32_t end = reply_end(&t->reply);
        if (end > begin) {
            output_pieces(c, &t->reply, begin, end);
            reply_reset(&t->reply);
        }
    }
    s->noted_count = 0;
    free_spent(t);
}

void subscriptions_deliver(struct server_thread *t)
{
    struct subscriptions *s = t->subscriptions;
    if (likely(!s->waiting && !s->taken && s->noted_count == 0 && !s->spent && !s->retired)) {
        return;
    }
    if (s->waiting) {
        s->waiting = false;
        take(t, pubsub_take(t->index));
    }
    while (s->taken && s->note_count < NOTES_MAX && s->note_bytes < NOTE_BYTES_MAX) {
        deal_one(t);
    }
    send_notes(t);
    t->more_to_do |= s->taken != NULL;
}

/* ---- what the engine asks for ---- */

static uint64_t count_of(const struct subscriber *sub, enum pubsub_kind kind)
{
    if (!sub) {
        return 0;
    }
    return kind == PUBSUB_SHARD ? sub->count[PUBSUB_SHARD]
                                : sub->count[PUBSUB_CHANNEL] + sub->count[PUBSUB_PATTERN];
}

static uint64_t count(const struct session *session, enum pubsub_kind kind)
{
    return count_of(client_of(session)->subscriber, kind);
}

static uint64_t subscribe(struct session *session, enum pubsub_kind kind, struct slice name)
{
    struct client *c = client_of(session);
    struct server_thread *t = c->thread;
    struct subscriptions *s = t->subscriptions;
    uint64_t hash = pubsub_hash(kind, name);
    assert(t == server_thread_self());
    if (!c->subscriber) {
        c->subscriber = mem_calloc(1, sizeof(struct subscriber));
        c->subscriber->last_note = &c->subscriber->notes;
    }
    struct topic *topic = find_topic(s, kind, hash, name);
    if (!topic || !membership_slot(s, topic, c)) {
        deal_all(t, pubsub_join(t->index, kind, hash, name, !topic));
        add_membership(s, topic ? topic : add_topic(s, kind, hash, name), c);
    }
    return count_of(c->subscriber, kind);
}

static void leave(struct server_thread *t, struct membership *m)
{
    const struct topic *topic = m->topic;
    deal_all(
        t, pubsub_leave(t->index, topic->kind, topic->hash, topic_name(topic), topic->count == 1));
    remove_membership(t->subscriptions, m);
}

static uint64_t unsubscribe(struct session *session, enum pubsub_kind kind, struct slice name)
{
    struct client *c = client_of(session);
    struct server_thread *t = c->thread;
    struct topic *topic = find_topic(t->subscriptions, kind, pubsub_hash(kind, name), name);
    uintptr_t *slot = topic ? membership_slot(t->subscriptions, topic, c) : NULL;
    assert(t == server_thread_self());
    if (slot) {
        leave(t, table_entry(*slot));
    }
    return count_of(c->subscriber, kind);
}

static struct slice some(const struct session *session, enum pubsub_kind kind)
{
    const struct subscriber *sub = client_of(session)->subscriber;
    const struct membership *m = sub ? sub->first[kind] : NULL;
    return m ? topic_name(m->topic) : slice_of(NULL, 0);
}

static void settle(struct call *call)
{
    struct client *c = client_of(call->session);
    if (!call->nested && c->subscriber) {
        use_notes(c->thread->subscriptions, c->subscriber, call->reply);
    }
}

/* ---- threads ---- */

static void receive_wake(struct inbox_message *message UNUSED, void *receiver)
{
    struct server_thread *t = receiver;
    /* Before the queue is looked at: who fills it after that look sends another one. */
    atomic_store(&t->subscriptions->wake_sent, false);
    t->subscriptions->waiting = true;
}

static void wake(int index)
{
    struct server_thread *t = server_thread_at(index);
    if (!atomic_exchange(&t->subscriptions->wake_sent, true)) {
        inbox_post_take(&t->inbox, &t->subscriptions->wake);
    }
}

static void wake_all(uint64_t threads)
{
    for (; threads; threads &= threads - 1) {
        wake(__builtin_ctzll(threads));
    }
}

static void posted(uint64_t to_wake, uint64_t crowded)
{
    struct server_thread *t = server_thread_self();
    if (!t) {
        wake_all(to_wake);
        return;
    }
    uint64_t self = (uint64_t)1 << t->index;
    struct subscriptions *s = t->subscriptions;
    s->waiting |= to_wake & self;
    s->to_wake |= to_wake & ~self;
    s->to_wait_for |= crowded;
}

void subscriptions_wake_others(struct server_thread *t)
{
    if (unlikely(t->subscriptions->to_wake)) {
        wake_all(t->subscriptions->to_wake);
        t->subscriptions->to_wake = 0;
    }
}

void subscriptions_wait_for_others(struct server_thread *t)
{
    struct subscriptions *s = t->subscriptions;
    const struct timespec pause = {0, WAIT_NS};
    while (unlikely(s->to_wait_for) && !t->stopping) {
        s->to_wait_for = pubsub_crowded(s->to_wait_for);
        if (s->to_wait_for & ~((uint64_t)1 << t->index)) {
            server_thread_pause(t, &pause);
        }
        inbox_receive(&t->inbox, t);
        s->waiting = true; /* whether or not who filled the queue has told yet */
        subscriptions_deliver(t);
    }
}

struct subscriptions *subscriptions_create(struct server_thread *t)
{
    struct subscriptions *s = mem_calloc(1, sizeof(*s));
    (void)t;
    table_init(&s->topics, topic_hash);
    table_init(&s->memberships, membership_hash);
    s->last_taken = &s->taken;
    s->wake.receive = receive_wake;
    return s;
}

void subscriptions_destroy(struct server_thread *t)
{
    struct subscriptions *s = t->subscriptions;
    deal_all(t, pubsub_take(t->index));
    free_spent(t);
    table_deinit(&s->topics, NULL, NULL);
    table_deinit(&s->memberships, NULL, NULL);
    mem_free(s->patterns);
    mem_free(s->noted);
    mem_free(s);
    t->subscriptions = NULL;
}

void subscriptions_setup(int threads)
{
    static const struct pubsub_delivery delivery = {.subscribe = subscribe,
                                                    .unsubscribe = unsubscribe,
                                                    .some = some,
                                                    .count = count,
                                                    .settle = settle,
                                                    .posted = posted};
    pubsub_setup(&delivery, threads);
}

/* ---- clients ---- */

static void leave_everything(struct client *c)
{
    for (int kind = 0; kind < PUBSUB_KIND_COUNT; kind++) {
        while (c->subscriber->first[kind]) {
            leave(c->thread, c->subscriber->first[kind]);
        }
    }
    assert(c->session.subscriptions == 0);
}

void subscriptions_end(struct client *c, struct reply *reply)
{
    if (c->subscriber) {
        leave_everything(c);
        use_notes(c->thread->subscriptions, c->subscriber, reply);
    }
}

void subscriptions_forget(struct client *c)
{
    struct subscriptions *s = c->thread->subscriptions;
    if (!c->subscriber) {
        return;
    }
    leave_everything(c);
    use_notes(s, c->subscriber, NULL);
    for (uint32_t i = 0; c->subscriber->noted && i < s->noted_count; i++) {
        if (s->noted[i] == c) {
            s->noted[i] = NULL;
            c->subscriber->noted = false;
        }
    }
    mem_free(c->subscriber);
    c->subscriber = NULL;
}

struct subscription_counts subscriptions_count(const struct client *c)
{
    const struct subscriber *sub = c->subscriber;
    return sub ? (struct subscription_counts){sub->count[PUBSUB_CHANNEL],
                                              sub->count[PUBSUB_PATTERN], sub->count[PUBSUB_SHARD]}
               : (struct subscription_counts){0, 0, 0};
}

bool subscriptions_each(const struct client *c,
                        bool (*visit)(struct slice name, bool is_pattern, void *context),
                        void *context)
{
    for (int kind = 0; c->subscriber && kind < PUBSUB_KIND_COUNT; kind++) {
        for (const struct membership *m = c->subscriber->first[kind]; m; m = m->next) {
            if (!visit(topic_name(m->topic), kind == PUBSUB_PATTERN, context)) {
                return false;
            }
        }
    }
    return true;
}

size_t subscriptions_memory_bytes(const struct client *c)
{
    return c->subscriber ? mem_usable_size(c->subscriber) +
                               c->session.subscriptions *
                                   (sizeof(struct membership) + sizeof(struct membership *))
                         : 0;
}

bool subscriptions_exist(const struct server_thread *t)
{
    return atomic_load_explicit(&t->subscriptions->membership_count, memory_order_relaxed) > 0;
}
