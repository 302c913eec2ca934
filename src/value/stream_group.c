/* See stream_group.h. */
#include "value/stream_group.h"

#include "base/mem.h"

#include <assert.h>
#include <openssl/evp.h>

static_assert(STREAM_NAME_MAX_BYTES <= RADIX_MAX_KEY_BYTES, "names are keys");
static_assert(sizeof(struct stream_id) == sizeof(struct sorted_key) &&
                  offsetof(struct stream_pending, id) == 0,
              "IDs are keys");

static inline struct sorted_key key_of(struct stream_id id)
{
    return (struct sorted_key){id.ms, id.seq};
}

static inline struct stream_id id_of(const void *record)
{
    struct sorted_key key;
    memcpy(&key, record, sizeof(key));
    return (struct stream_id){key.high, key.low};
}

/* ---- Groups ---- */

struct stream_group *stream_group_find(const struct radix *groups, struct slice name)
{
    return radix_find(groups, name);
}

static struct stream_group *group_create(struct slice name, struct stream_id last_id,
                                         int64_t entries_read)
{
    assert(name.len <= STREAM_NAME_MAX_BYTES && entries_read >= STREAM_READ_UNKNOWN);
    struct stream_group *g = mem_alloc(sizeof(*g) + name.len);
    g->last_id = last_id;
    g->entries_read = entries_read;
    sorted_init(&g->pending, sizeof(struct stream_pending));
    radix_init(&g->consumers);
    g->name_len = name.len;
    if (name.len > 0) {
        memcpy(g->name, name.ptr, name.len);
    }
    return g;
}

void stream_group_put(struct radix *groups, struct stream_group *g_take)
{
    void *there = radix_insert(groups, stream_group_name(g_take), g_take);
    assert(!there);
    (void)there;
}

struct stream_group *stream_group_add(struct radix *groups, struct slice name,
                                      struct stream_id last_id, int64_t entries_read)
{
    if (stream_group_find(groups, name)) {
        return NULL;
    }
    struct stream_group *g = group_create(name, last_id, entries_read);
    stream_group_put(groups, g);
    return g;
}

struct stream_group *stream_group_take(struct radix *groups, struct slice name)
{
    return radix_remove(groups, name);
}

static void release_consumer(void *value, void *context)
{
    (void)context;
    struct stream_consumer *c = value;
    sorted_deinit(&c->pending);
    mem_free(c);
}

static void release_group(void *value, void *context)
{
    (void)context;
    struct stream_group *g = value;
    radix_deinit(&g->consumers, release_consumer, NULL);
    sorted_deinit(&g->pending);
    mem_free(g);
}

/* ---- Consumers ---- */

struct stream_consumer *stream_consumer_find(const struct stream_group *g, struct slice name)
{
    return radix_find(&g->consumers, name);
}

struct stream_consumer *stream_consumer_add(struct stream_group *g, struct slice name,
                                            int64_t now_ms)
{
    assert(name.len <= STREAM_NAME_MAX_BYTES);
    if (stream_consumer_find(g, name)) {
        return NULL;
    }
    struct stream_consumer *c = mem_alloc(sizeof(*c) + name.len);
    c->seen_ms = now_ms;
    c->active_ms = STREAM_NEVER;
    sorted_init(&c->pending, sizeof(struct stream_id));
    c->name_len = name.len;
    if (name.len > 0) {
        memcpy(c->name, name.ptr, name.len);
    }
    radix_insert(&g->consumers, name, c);
    return c;
}

uint64_t stream_consumer_remove(struct stream_group *g, struct stream_consumer *c)
{
    uint64_t count = c->pending.count;
    struct sorted_cursor at = sorted_first(&c->pending);
    for (; sorted_cursor_valid(&at); sorted_cursor_next(&at)) {
        struct stream_id id = id_of(sorted_cursor_record(&c->pending, &at));
        bool removed = sorted_remove(&g->pending, key_of(id));
        assert(removed);
        (void)removed;
    }
    void *removed = radix_remove(&g->consumers, stream_consumer_name(c));
    assert(removed == c);
    release_consumer(removed, NULL);
    return count;
}

/* ---- Pending entries ---- */

struct stream_pending *stream_pending_find(const struct stream_group *g, struct stream_id id)
{
    return sorted_find(&g->pending, key_of(id));
}

struct stream_pending_cursor stream_pending_seek(const struct stream_group *g,
                                                 const struct stream_consumer *only,
                                                 struct stream_id id)
{
    const struct sorted *set = only ? &only->pending : &g->pending;
    return (struct stream_pending_cursor){g, set, sorted_seek(set, key_of(id))};
}

struct stream_pending_cursor stream_pending_last(const struct stream_group *g)
{
    return (struct stream_pending_cursor){g, &g->pending, sorted_last(&g->pending)};
}

struct stream_pending *stream_pending_at(const struct stream_pending_cursor *at)
{
    void *record = sorted_cursor_record(at->set, &at->at);
    if (at->set == &at->group->pending) {
        return record;
    }
    struct stream_pending *p = stream_pending_find(at->group, id_of(record));
    assert(p);
    return p;
}

/* The consumer has the ID as well. */
static void note_id(struct stream_consumer *c, struct stream_id id)
{
    bool added;
    sorted_insert(&c->pending, key_of(id), &added);
    assert(added);
}

static void forget_id(struct stream_consumer *c, struct stream_id id)
{
    bool removed = sorted_remove(&c->pending, key_of(id));
    assert(removed);
    (void)removed;
}

struct stream_pending *stream_pending_give(struct stream_group *g, struct stream_consumer *c,
                                           struct stream_id id, int64_t now_ms, int64_t deliveries)
{
    assert(deliveries >= 0);
    bool added;
    struct stream_pending *p = sorted_insert(&g->pending, key_of(id), &added);
    if (added) {
        p->consumer = c;
        note_id(c, id);
    } else {
        stream_pending_move(p, c);
    }
    p->delivered_ms = now_ms;
    p->deliveries = deliveries;
    return p;
}

void stream_pending_move(struct stream_pending *p, struct stream_consumer *to)
{
    if (p->consumer != to) {
        forget_id(p->consumer, p->id);
        note_id(to, p->id);
        p->consumer = to;
    }
}

void stream_pending_count_delivery(struct stream_pending *p)
{
    p->deliveries += p->deliveries < INT64_MAX;
}

bool stream_pending_remove(struct stream_group *g, struct stream_id id)
{
    struct stream_pending_cursor at = stream_pending_seek(g, NULL, id);
    if (!stream_pending_valid(&at) || stream_id_compare(stream_pending_at(&at)->id, id) != 0) {
        return false;
    }
    stream_pending_remove_at(g, &at);
    return true;
}

void stream_pending_remove_at(struct stream_group *g, struct stream_pending_cursor *at)
{
    assert(at->set == &g->pending);
    const struct stream_pending *p = stream_pending_at(at);
    forget_id(p->consumer, p->id);
    sorted_remove_at(&g->pending, &at->at);
}

/* ---- What the stream's operations need ---- */

void stream_groups_destroy(struct radix *groups)
{
    radix_deinit(groups, release_group, NULL);
}

static void copy_group(const struct stream_group *from, struct stream_group *to)
{
    struct radix_cursor at = radix_first(&from->consumers);
    for (; radix_cursor_valid(&at); radix_cursor_next(&at)) {
        const struct stream_consumer *c = stream_consumer_at(&at);
        struct stream_consumer *twin = stream_consumer_add(to, stream_consumer_name(c), c->seen_ms);
        assert(twin);
        twin->active_ms = c->active_ms;
        struct stream_pending_cursor entry = stream_pending_seek(from, c, STREAM_ID_MIN);
        for (; stream_pending_valid(&entry); stream_pending_next(&entry)) {
            const struct stream_pending *p = stream_pending_at(&entry);
            stream_pending_give(to, twin, p->id, p->delivered_ms, p->deliveries);
        }
    }
}

void stream_groups_copy(const struct radix *groups, struct radix *copy)
{
    assert(copy->count == 0);
    struct radix_cursor at = radix_first(groups);
    for (; radix_cursor_valid(&at); radix_cursor_next(&at)) {
        const struct stream_group *g = stream_group_at(&at);
        struct stream_group *twin =
            stream_group_add(copy, stream_group_name(g), g->last_id, g->entries_read);
        assert(twin);
        copy_group(g, twin);
    }
}

/* What `sampled` of `count` things that take `bytes` make for all of them. */
static size_t extrapolate(size_t bytes, uint64_t sampled, uint64_t count)
{
    return sampled == 0 ? 0 : (size_t)((double)bytes / (double)sampled * (double)count);
}

static size_t group_memory(const struct stream_group *g, size_t samples)
{
    size_t bytes = 0;
    uint64_t looked_at = 0;
    struct radix_cursor at = radix_first(&g->consumers);
    for (; radix_cursor_valid(&at) && (samples == 0 || looked_at < samples); looked_at++) {
        const struct stream_consumer *c = stream_consumer_at(&at);
        bytes += mem_good_size(sizeof(*c) + c->name_len) + sorted_memory_bytes(&c->pending);
        radix_cursor_next(&at);
    }
    return mem_good_size(sizeof(*g) + g->name_len) + sorted_memory_bytes(&g->pending) +
           radix_memory_bytes(&g->consumers) + extrapolate(bytes, looked_at, g->consumers.count);
}

size_t stream_groups_memory(const struct radix *groups, size_t samples)
{
    size_t bytes = 0;
    uint64_t looked_at = 0;
    struct radix_cursor at = radix_first(groups);
    for (; radix_cursor_valid(&at) && (samples == 0 || looked_at < samples); looked_at++) {
        bytes += group_memory(stream_group_at(&at), samples);
        radix_cursor_next(&at);
    }
    return radix_memory_bytes(groups) + extrapolate(bytes, looked_at, groups->count);
}

size_t stream_groups_free_effort(const struct radix *groups)
{
    /* A walk over the groups, of which there are few, and no further: the consumers have about as
     * many blocks as the group. */
    size_t effort = (size_t)groups->count;
    struct radix_cursor at = radix_first(groups);
    for (; radix_cursor_valid(&at); radix_cursor_next(&at)) {
        const struct stream_group *g = stream_group_at(&at);
        effort += (size_t)(2 * g->consumers.count + 4 * g->pending.blocks.count);
    }
    return effort;
}

/* ---- The digest ---- */

/* Everything that goes in has a fixed length or its length before it. */
static bool sum_number(EVP_MD_CTX *sum, uint64_t number)
{
    return EVP_DigestUpdate(sum, &number, sizeof(number));
}

static bool sum_name(EVP_MD_CTX *sum, struct slice name)
{
    return sum_number(sum, name.len) && EVP_DigestUpdate(sum, name.ptr, name.len);
}

static bool sum_group(EVP_MD_CTX *sum, const struct stream_group *g)
{
    bool ok = sum_name(sum, stream_group_name(g)) && sum_number(sum, g->last_id.ms) &&
              sum_number(sum, g->last_id.seq) && sum_number(sum, (uint64_t)g->entries_read) &&
              sum_number(sum, g->consumers.count);
    struct radix_cursor at = radix_first(&g->consumers);
    for (; ok && radix_cursor_valid(&at); radix_cursor_next(&at)) {
        const struct stream_consumer *c = stream_consumer_at(&at);
        ok = sum_name(sum, stream_consumer_name(c)) && sum_number(sum, c->pending.count);
        struct stream_pending_cursor entry = stream_pending_seek(g, c, STREAM_ID_MIN);
        for (; ok && stream_pending_valid(&entry); stream_pending_next(&entry)) {
            const struct stream_pending *p = stream_pending_at(&entry);
            ok = sum_number(sum, p->id.ms) && sum_number(sum, p->id.seq) &&
                 sum_number(sum, (uint64_t)p->delivered_ms) &&
                 sum_number(sum, (uint64_t)p->deliveries);
        }
    }
    return ok;
}

void stream_groups_digest(const struct radix *groups, uint8_t digest[20])
{
    if (groups->count == 0) {
        return;
    }
    uint8_t own[20];
    EVP_MD_CTX *sum = EVP_MD_CTX_new();
    bool ok = sum && EVP_DigestInit_ex(sum, EVP_sha1(), NULL);
    struct radix_cursor at = radix_first(groups);
    for (; ok && radix_cursor_valid(&at); radix_cursor_next(&at)) {
        ok = sum_group(sum, stream_group_at(&at));
    }
    ok = ok && EVP_DigestFinal_ex(sum, own, NULL);
    assert(ok);
    EVP_MD_CTX_free(sum);
    for (int i = 0; i < 20; i++) {
        digest[i] ^= own[i];
    }
}

/* ---- Checking ---- */

static void check_group(const struct stream_group *g)
{
    assert(g->entries_read >= STREAM_READ_UNKNOWN);
    sorted_check(&g->pending);
    radix_check(&g->consumers);
    uint64_t pending = 0;
    struct radix_cursor at = radix_first(&g->consumers);
    for (; radix_cursor_valid(&at); radix_cursor_next(&at)) {
        const struct stream_consumer *c = stream_consumer_at(&at);
        assert(stream_consumer_find(g, stream_consumer_name(c)) == c);
        sorted_check(&c->pending);
        pending += c->pending.count;
        struct stream_pending_cursor entry = stream_pending_seek(g, c, STREAM_ID_MIN);
        for (; stream_pending_valid(&entry); stream_pending_next(&entry)) {
            const struct stream_pending *p = stream_pending_at(&entry);
            assert(p->consumer == c && p->deliveries >= 0);
        }
    }
    assert(pending == g->pending.count);
}

void stream_groups_check(const struct radix *groups)
{
    radix_check(groups);
    struct radix_cursor at = radix_first(groups);
    for (; radix_cursor_valid(&at); radix_cursor_next(&at)) {
        const struct stream_group *g = stream_group_at(&at);
        assert(stream_group_find(groups, stream_group_name(g)) == g);
        check_group(g);
    }
}
