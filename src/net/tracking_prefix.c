/* Broadcasting mode: prefixes, and the changed keys that they fit. Each thread has a list of its
 * clients' prefixes, by name; what is known of all threads is only how many there are. */
#include "net/tracking_priv.h"

#include "base/lock.h"
#include "base/mem.h"
#include "base/num.h"
#include "net/client.h"

#include <assert.h>
#include <stdlib.h>

/* Changes of one prefix, in bytes, that are told in one message. */
#define CHANGES_MAX_BYTES ((size_t)1024 * 1024)

struct changed {
    uint64_t writer; /* client id */
    size_t len;
};

/* ---- names of all threads ---- */

struct name {
    struct name *next;
    uint64_t threads;
    size_t len;
    char bytes[];
};

static struct {
    struct lock lock;
    struct name *first;
    _Atomic uint64_t count;
} names = {.lock = LOCK_INIT(LOCK_RANK_TRACKING, "tracking")};

static struct name **find_name(struct slice text) REQUIRES(names.lock)
{
    struct name **link = &names.first;
    while (*link && !slice_equal(slice_of((*link)->bytes, (*link)->len), text)) {
        link = &(*link)->next;
    }
    return link;
}

static void name_join(struct slice text)
{
    struct name *fresh = mem_alloc(sizeof(*fresh) + text.len);
    *fresh = (struct name){.threads = 1, .len = text.len};
    if (text.len > 0) {
        memcpy(fresh->bytes, text.ptr, text.len);
    }
    lock_acquire(&names.lock);
    struct name *known = *find_name(text);
    if (known) {
        known->threads++;
    } else {
        fresh->next = names.first;
        names.first = fresh;
        atomic_fetch_add_explicit(&names.count, 1, memory_order_relaxed);
        fresh = NULL;
    }
    lock_release(&names.lock);
    mem_free(fresh);
}

static void name_leave(struct slice text)
{
    struct name *unused = NULL;
    lock_acquire(&names.lock);
    struct name **link = find_name(text);
    assert(*link);
    if (--(*link)->threads == 0) {
        unused = *link;
        *link = unused->next;
        atomic_fetch_sub_explicit(&names.count, 1, memory_order_relaxed);
    }
    lock_release(&names.lock);
    mem_free(unused);
}

uint64_t tracking_prefix_count(void)
{
    return atomic_load_explicit(&names.count, memory_order_relaxed);
}

/* ---- a thread's ---- */

static struct slice name_of(const struct prefix *p)
{
    return slice_of(p->name, p->len);
}

static int compare(struct slice a, struct slice b)
{
    size_t len = a.len < b.len ? a.len : b.len;
    int order = len > 0 ? memcmp(a.ptr, b.ptr, len) : 0;
    return order ? order : (a.len > b.len) - (a.len < b.len);
}

/* Where the prefix is, or belongs, in a list by name. */
static size_t place_of(struct prefix *const *list, size_t count, struct slice name)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare(name_of(list[middle]), name) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static struct prefix *add_prefix(struct tracking *s, size_t at, struct slice name)
{
    struct prefix *p = mem_alloc(sizeof(*p) + name.len);
    *p = (struct prefix){.len = name.len};
    if (name.len > 0) {
        memcpy(p->name, name.ptr, name.len);
    }
    if (s->prefix_count == s->prefix_capacity) {
        s->prefix_capacity = s->prefix_capacity ? 2 * s->prefix_capacity : 8;
        s->prefixes = mem_realloc(s->prefixes, s->prefix_capacity * sizeof(struct prefix *));
    }
    memmove(&s->prefixes[at + 1], &s->prefixes[at],
            (s->prefix_count - at) * sizeof(struct prefix *));
    s->prefixes[at] = p;
    s->prefix_count++;
    name_join(name);
    return p;
}

static void remove_prefix(struct tracking *s, struct prefix *p)
{
    size_t at = place_of(s->prefixes, s->prefix_count, name_of(p));
    assert(s->prefixes[at] == p && p->count == 0);
    s->prefix_count--;
    memmove(&s->prefixes[at], &s->prefixes[at + 1],
            (s->prefix_count - at) * sizeof(struct prefix *));
    name_leave(name_of(p));
    buf_deinit(&p->changes);
    mem_free(p->trackers);
    mem_free(p);
}

void tracking_prefix_join(struct tracking *s, struct tracker *tracker, struct slice name)
{
    size_t own_count, at = place_of(s->prefixes, s->prefix_count, name);
    bool known = at < s->prefix_count && slice_equal(name_of(s->prefixes[at]), name);
    struct prefix *p = known ? s->prefixes[at] : add_prefix(s, at, name);
    struct prefix **own = tracking_prefixes_of(tracker, &own_count);
    at = place_of(own, own_count, name);
    if (at < own_count && own[at] == p) {
        return;
    }
    if (p->count == p->capacity) {
        p->capacity = p->capacity ? 2 * p->capacity : 4;
        p->trackers = mem_realloc(p->trackers, p->capacity * sizeof(struct tracker *));
    }
    p->trackers[p->count++] = tracker;
    buf_append(&tracker->prefixes, (const char *)&p, sizeof(struct prefix *));
    own = tracking_prefixes_of(tracker, &own_count);
    memmove(&own[at + 1], &own[at], (own_count - 1 - at) * sizeof(struct prefix *));
    own[at] = p;
}

void tracking_prefixes_leave(struct tracking *s, struct tracker *tracker)
{
    size_t count;
    struct prefix **own = tracking_prefixes_of(tracker, &count);
    for (size_t i = 0; i < count; i++) {
        struct prefix *p = own[i];
        uint32_t at = 0;
        while (p->trackers[at] != tracker) {
            at++;
            assert(at < p->count);
        }
        p->trackers[at] = p->trackers[--p->count];
        if (p->count == 0) {
            remove_prefix(s, p);
        }
    }
    buf_deinit(&tracker->prefixes);
}

/* ---- changes ---- */

/* A changed key, for sorting. */
struct key_change {
    struct slice key;
    uint64_t writer;
    uint32_t order;
};

static int by_key(const void *a, const void *b)
{
    const struct key_change *x = a, *y = b;
    int order = compare(x->key, y->key);
    return order ? order : (x->order > y->order) - (x->order < y->order);
}

/* The prefix's changes by key, each key once, with who changed it last. Returns how many. */
static uint32_t collect(const struct prefix *p, struct key_change *list)
{
    size_t offset = 0;
    for (uint32_t i = 0; i < p->change_count; i++) {
        struct changed c;
        memcpy(&c, p->changes.data + offset, sizeof(c));
        offset += sizeof(c);
        list[i] = (struct key_change){slice_of(p->changes.data + offset, c.len), c.writer, i};
        offset += c.len;
    }
    qsort(list, p->change_count, sizeof(*list), by_key);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < p->change_count; i++) {
        if (kept > 0 && slice_equal(list[kept - 1].key, list[i].key)) {
            kept--;
        }
        list[kept++] = list[i];
    }
    return kept;
}

static void append_head(struct buf *out, char kind, uint64_t number)
{
    buf_append_char(out, kind);
    out->len += num_format_u64(buf_reserve(out, NUM_I64_MAX_CHARS), number);
    buf_append_slice(out, SLICE("\r\n"));
}

void tracking_append_key(struct buf *out, struct slice key)
{
    append_head(out, '$', key.len);
    buf_append_slice(out, key);
    buf_append_slice(out, SLICE("\r\n"));
}

/* The keys as an array in RESP, but for those that `except` has changed; empty when none is left.
 */
static void write_body(struct buf *out, const struct key_change *list, uint32_t count,
                       uint64_t except)
{
    uint64_t left = 0;
    buf_clear(out);
    for (uint32_t i = 0; i < count; i++) {
        left += !except || list[i].writer != except;
    }
    if (left == 0) {
        return;
    }
    append_head(out, '*', left);
    for (uint32_t i = 0; i < count; i++) {
        if (!except || list[i].writer != except) {
            tracking_append_key(out, list[i].key);
        }
    }
}

static void deal_prefix(struct server_thread *t, struct prefix *p)
{
    struct key_change *list = mem_alloc(p->change_count * sizeof(*list));
    uint32_t count = collect(p, list);
    struct buf all = {0}, some = {0};
    write_body(&all, list, count, 0);
    for (uint32_t i = 0; i < p->count; i++) {
        const struct session *session = &p->trackers[i]->client->session;
        const struct buf *body = &all;
        if (session->tracking & TRACKING_NOLOOP) {
            write_body(&some, list, count, session->id);
            body = &some;
        }
        if (body->len > 0) {
            tracking_put(t, p->trackers[i], buf_slice(body));
        }
    }
    buf_deinit(&all);
    buf_deinit(&some);
    mem_free(list);
    buf_deinit(&p->changes);
    p->change_count = 0;
}

void tracking_prefixes_note(struct server_thread *t, const struct tracking_change *change)
{
    struct tracking *s = t->tracking;
    for (uint32_t i = 0; i < s->prefix_count; i++) {
        struct prefix *p = s->prefixes[i];
        if (p->len > change->key.len ||
            (p->len > 0 && memcmp(p->name, change->key.ptr, p->len) != 0)) {
            continue;
        }
        struct changed c = {change->writer, change->key.len};
        buf_append(&p->changes, (const char *)&c, sizeof(c));
        buf_append_slice(&p->changes, change->key);
        p->change_count++;
        if (p->changes.len > CHANGES_MAX_BYTES) {
            deal_prefix(t, p);
        }
    }
}

void tracking_prefixes_deal(struct server_thread *t)
{
    struct tracking *s = t->tracking;
    for (uint32_t i = 0; i < s->prefix_count; i++) {
        if (s->prefixes[i]->change_count > 0) {
            deal_prefix(t, s->prefixes[i]);
        }
    }
}

struct slice tracking_prefix_at(const struct client *c, size_t i)
{
    size_t count = 0;
    struct prefix **own = c->tracker ? tracking_prefixes_of(c->tracker, &count) : NULL;
    return i < count ? name_of(own[i]) : slice_of(NULL, 0);
}
