/* See acl_log.h. Entries are made and freed outside of the lock; replies are made from copies, so
 * that nothing is formatted under it. */
#include "engine/acl_log.h"

#include "base/clock.h"
#include "base/lock.h"
#include "base/mem.h"

#include <assert.h>
#include <stdatomic.h>

/* Denials alike within this time are one entry. */
#define GROUP_MS 60000
/* So many entries are compared with a new one, and so many bytes kept of a name. */
#define GROUP_SEARCH 10
#define NAME_MAX_BYTES 1024

struct entry_text {
    size_t object_len, user_len, client_len;
    char bytes[]; /* object, user, client */
};

struct acl_log_entry {
    struct acl_log_entry *older, *newer;
    uint64_t id, count;
    enum acl_verdict verdict;
    enum acl_context context;
    int64_t created_ms, updated_ms; /* wall clock */
    struct entry_text *text;        /* owned */
};

static struct lock acl_log_lock = LOCK_INIT(LOCK_RANK_ACL_LOG, "acl log");
static struct {
    struct acl_log_entry *newest GUARDED_BY(acl_log_lock);
    struct acl_log_entry *oldest GUARDED_BY(acl_log_lock);
    int64_t count GUARDED_BY(acl_log_lock);
    uint64_t next_id GUARDED_BY(acl_log_lock);
} acl_log;

static int64_t max_len; /* acllog-max-len; world */
static _Atomic uint64_t denied[ACL_DENIED_CHANNEL + 1];

uint64_t acl_log_denied(enum acl_verdict verdict)
{
    return atomic_load_explicit(&denied[verdict], memory_order_relaxed);
}

void acl_log_reset_counters(void)
{
    for (size_t i = 0; i < sizeof(denied) / sizeof(denied[0]); i++) {
        atomic_store_explicit(&denied[i], 0, memory_order_relaxed);
    }
}

static struct slice cut(struct slice text)
{
    return slice_of(text.ptr, text.len < NAME_MAX_BYTES ? text.len : NAME_MAX_BYTES);
}

static struct entry_text *make_text(struct slice object, struct slice user, struct slice client)
{
    struct entry_text *t = mem_alloc(sizeof(*t) + object.len + user.len + client.len);
    const struct slice parts[] = {object, user, client};
    char *pos = t->bytes;
    t->object_len = object.len;
    t->user_len = user.len;
    t->client_len = client.len;
    for (size_t i = 0; i < 3; i++) {
        if (parts[i].len > 0) {
            memcpy(pos, parts[i].ptr, parts[i].len);
            pos += parts[i].len;
        }
    }
    return t;
}

static bool alike(const struct acl_log_entry *a, const struct acl_log_entry *b)
{
    size_t names = a->text->object_len + a->text->user_len;
    return a->verdict == b->verdict && a->context == b->context &&
           b->created_ms - a->updated_ms <= GROUP_MS &&
           a->text->object_len == b->text->object_len && a->text->user_len == b->text->user_len &&
           memcmp(a->text->bytes, b->text->bytes, names) == 0;
}

static void unlink_entry(struct acl_log_entry *e) REQUIRES(acl_log_lock)
{
    *(e->newer ? &e->newer->older : &acl_log.newest) = e->older;
    *(e->older ? &e->older->newer : &acl_log.oldest) = e->newer;
    acl_log.count--;
}

static void push_entry(struct acl_log_entry *e) REQUIRES(acl_log_lock)
{
    e->newer = NULL;
    e->older = acl_log.newest;
    *(e->older ? &e->older->newer : &acl_log.oldest) = e;
    acl_log.newest = e;
    acl_log.count++;
}

/* Counts an entry like `e` up; true when there is one, which has what `e` said of the client. */
static bool join(struct acl_log_entry *e) REQUIRES(acl_log_lock)
{
    struct acl_log_entry *old = acl_log.newest;
    for (int i = 0; i < GROUP_SEARCH && old; i++, old = old->older) {
        if (alike(old, e)) {
            struct entry_text *text = old->text;
            old->count++;
            old->updated_ms = e->created_ms;
            old->text = e->text;
            e->text = text;
            unlink_entry(old);
            push_entry(old);
            return true;
        }
    }
    return false;
}

static void free_entries(struct acl_log_entry *e)
{
    while (e) {
        struct acl_log_entry *older = e->older;
        mem_free(e->text);
        mem_free(e);
        e = older;
    }
}

/* Takes what is over the limit out of the list. */
static struct acl_log_entry *trim(int64_t limit) REQUIRES(acl_log_lock)
{
    struct acl_log_entry *out = NULL;
    while (acl_log.count > limit) {
        struct acl_log_entry *e = acl_log.oldest;
        unlink_entry(e);
        e->older = out;
        out = e;
    }
    return out;
}

void acl_log_note(const struct session *s, const struct command *cmd, enum acl_verdict verdict,
                  enum acl_context context, struct slice user, struct slice object)
{
    struct buf client = {0};
    assert(verdict != ACL_ALLOWED);
    atomic_fetch_add_explicit(&denied[verdict], 1, memory_order_relaxed);
    if (max_len == 0) {
        return;
    }
    if (s->owner && acl_clients()) {
        acl_clients()->describe(s, cmd, &client);
    }
    struct acl_log_entry *e = mem_calloc(1, sizeof(*e));
    e->count = 1;
    e->verdict = verdict;
    e->context = context;
    e->created_ms = e->updated_ms = clock_wall_ms();
    e->text = make_text(cut(object), cut(user), buf_slice(&client));
    buf_deinit(&client);
    lock_acquire(&acl_log_lock);
    bool joined = join(e);
    if (!joined) {
        e->id = acl_log.next_id++;
        push_entry(e);
    }
    struct acl_log_entry *gone = trim(max_len);
    lock_release(&acl_log_lock);
    free_entries(gone);
    if (joined) {
        e->older = NULL;
        free_entries(e);
    }
}

/* ---- replies ---- */

static struct acl_log_entry *copy_entries(int64_t count)
{
    struct acl_log_entry *first = NULL, **last = &first;
    lock_acquire(&acl_log_lock);
    for (struct acl_log_entry *e = acl_log.newest; e && count > 0; e = e->older, count--) {
        struct acl_log_entry *copy = mem_alloc(sizeof(*copy));
        size_t bytes =
            sizeof(*e->text) + e->text->object_len + e->text->user_len + e->text->client_len;
        *copy = *e;
        copy->text = mem_alloc(bytes);
        memcpy(copy->text, e->text, bytes);
        copy->older = NULL;
        *last = copy;
        last = &copy->older;
    }
    lock_release(&acl_log_lock);
    return first;
}

static void reply_entry(struct reply *r, const struct acl_log_entry *e, int64_t now_ms)
{
    static const char *const reasons[] = {"", "command", "key", "auth", "channel"};
    static const char *const contexts[] = {"toplevel", "multi", "lua", "module"};
    const struct entry_text *t = e->text;
    int64_t age_ms = now_ms > e->created_ms ? now_ms - e->created_ms : 0;
    reply_map(r, 10);
    reply_bulk_cstr(r, "count");
    reply_i64(r, (int64_t)e->count);
    reply_bulk_cstr(r, "reason");
    reply_bulk_cstr(r, reasons[e->verdict]);
    reply_bulk_cstr(r, "context");
    reply_bulk_cstr(r, contexts[e->context]);
    reply_bulk_cstr(r, "object");
    reply_bulk(r, slice_of(t->bytes, t->object_len));
    reply_bulk_cstr(r, "username");
    reply_bulk(r, slice_of(t->bytes + t->object_len, t->user_len));
    reply_bulk_cstr(r, "age-seconds");
    reply_double(r, (double)age_ms / 1000);
    reply_bulk_cstr(r, "client-info");
    reply_bulk(r, slice_of(t->bytes + t->object_len + t->user_len, t->client_len));
    reply_bulk_cstr(r, "entry-id");
    reply_i64(r, (int64_t)e->id);
    reply_bulk_cstr(r, "timestamp-created");
    reply_i64(r, e->created_ms);
    reply_bulk_cstr(r, "timestamp-last-updated");
    reply_i64(r, e->updated_ms);
}

void acl_log_reply(struct reply *reply, int64_t count)
{
    struct acl_log_entry *entries = copy_entries(count);
    uint64_t found = 0;
    for (const struct acl_log_entry *e = entries; e; e = e->older) {
        found++;
    }
    reply_array(reply, found);
    for (const struct acl_log_entry *e = entries; e; e = e->older) {
        reply_entry(reply, e, clock_wall_ms());
    }
    free_entries(entries);
}

void acl_log_reset(void)
{
    lock_acquire(&acl_log_lock);
    struct acl_log_entry *gone = trim(0);
    lock_release(&acl_log_lock);
    free_entries(gone);
}

const struct option acl_log_options[] = {
    {.name = "acllog-max-len",
     .type = OPTION_INT,
     .target = &max_len,
     .initial = "128",
     .min = 0,
     .max = INT64_MAX},
    {.name = NULL},
};
