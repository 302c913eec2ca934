/* See rdb_value_priv.h. A stream in a file:
 *
 *   count of nodes, each: ID of the master (16 bytes as a string), listpack (a string)
 *   length | last ID | (_2) first ID, greatest deleted ID, entries added
 *   count of groups, each: name | last ID | (_2) entries read
 *     count of pending entries, each: ID (16 bytes) | u64 time of delivery | deliveries
 *     count of consumers, each: name | u64 seen | (_3) u64 active | count of its pending entries,
 *       each: ID (16 bytes)
 *
 * IDs but for those of 16 bytes are two numbers in the form of lengths. */
#include "persist/rdb_format.h"
#include "persist/rdb_value_priv.h"

#include "base/mem.h"
#include "value/stream.h"
#include "value/stream_group.h"
#include "value/stream_lag.h"
#include "value/stream_load.h"

#include <stdlib.h>

/* Bytes that a pending entry, a consumer, a group and a node take at least. */
#define PENDING_BYTES 25
#define CONSUMER_BYTES 10
#define GROUP_BYTES 5
#define NODE_BYTES 25

/* ---- writing ---- */

static void write_id(struct rdb_writer *w, struct stream_id id)
{
    rdb_write_len(w, id.ms);
    rdb_write_len(w, id.seq);
}

static void write_raw_id(struct rdb_writer *w, struct stream_id id)
{
    char key[STREAM_ID_KEY_BYTES];
    rdb_write(w, stream_id_key(id, key).ptr, sizeof(key));
}

static void write_nodes(struct rdb_writer *w, const struct radix *nodes)
{
    rdb_write_len(w, nodes->count);
    struct radix_cursor at = radix_first(nodes);
    for (; radix_cursor_valid(&at); radix_cursor_next(&at)) {
        char key[STREAM_ID_KEY_BYTES];
        assert(radix_cursor_key_bytes(&at) == sizeof(key));
        radix_cursor_copy_key(&at, key);
        rdb_write_string(w, slice_of(key, sizeof(key)));
        const unsigned char *lp = radix_cursor_value(&at);
        rdb_write_string(w, slice_of((const char *)lp, listpack_bytes(lp)));
    }
}

static void write_consumer(struct rdb_writer *w, const struct stream_group *g,
                           const struct stream_consumer *c)
{
    rdb_write_string(w, stream_consumer_name(c));
    rdb_write_u64(w, (uint64_t)c->seen_ms);
    rdb_write_len(w, c->pending.count);
    struct stream_pending_cursor at = stream_pending_seek(g, c, STREAM_ID_MIN);
    for (; stream_pending_valid(&at); stream_pending_next(&at)) {
        write_raw_id(w, stream_pending_at(&at)->id);
    }
}

static void write_group(struct rdb_writer *w, const struct stream_group *g)
{
    rdb_write_string(w, stream_group_name(g));
    write_id(w, g->last_id);
    rdb_write_len(w, (uint64_t)g->entries_read);
    rdb_write_len(w, g->pending.count);
    struct stream_pending_cursor p = stream_pending_seek(g, NULL, STREAM_ID_MIN);
    for (; stream_pending_valid(&p); stream_pending_next(&p)) {
        const struct stream_pending *pending = stream_pending_at(&p);
        write_raw_id(w, pending->id);
        rdb_write_u64(w, (uint64_t)pending->delivered_ms);
        rdb_write_len(w, (uint64_t)pending->deliveries);
    }
    rdb_write_len(w, g->consumers.count);
    struct radix_cursor at = radix_first(&g->consumers);
    for (; radix_cursor_valid(&at); radix_cursor_next(&at)) {
        write_consumer(w, g, stream_consumer_at(&at));
    }
}

void rdb_save_stream(struct rdb_writer *w, const struct entry *e)
{
    const struct stream_facts *facts = stream_facts(e);
    const struct radix *groups = stream_groups(e);
    write_nodes(w, stream_nodes(e));
    rdb_write_len(w, facts->length);
    write_id(w, facts->last_id);
    write_id(w, facts->first_id);
    write_id(w, facts->max_deleted_id);
    rdb_write_len(w, facts->entries_added);
    rdb_write_len(w, groups->count);
    struct radix_cursor at = radix_first(groups);
    for (; radix_cursor_valid(&at); radix_cursor_next(&at)) {
        write_group(w, stream_group_at(&at));
    }
}

/* ---- reading ---- */

struct loader {
    struct rdb_reader *r;
    unsigned type;
    struct entry *e;
    struct buf text; /* the string read last */
};

/* A group's pending entry until its consumer is known. */
struct orphan {
    struct stream_id id;
    int64_t delivered_ms, deliveries;
    bool taken;
};

static bool read_id(struct rdb_reader *r, struct stream_id *id)
{
    return rdb_read_len(r, &id->ms) && rdb_read_len(r, &id->seq);
}

static bool read_raw_id(struct rdb_reader *r, struct stream_id *id)
{
    char key[STREAM_ID_KEY_BYTES];
    if (!rdb_read(r, key, sizeof(key))) {
        return false;
    }
    *id = stream_id_of_key(key);
    return true;
}

/* A time, which is not before 1970. */
static bool read_time(struct rdb_reader *r, int64_t *at_ms)
{
    uint64_t value;
    if (!rdb_read_u64(r, &value)) {
        return false;
    }
    *at_ms = (int64_t)value;
    return value <= INT64_MAX / 4 || rdb_fail(r, "a time beyond all times");
}

static bool load_nodes(struct loader *l)
{
    uint64_t nodes;
    if (!rdb_read_count(l->r, NODE_BYTES, &nodes)) {
        return false;
    }
    for (; nodes > 0; nodes--) {
        if (!rdb_read_string(l->r, &l->text)) {
            return false;
        }
        if (l->text.len != STREAM_ID_KEY_BYTES) {
            return rdb_fail(l->r, "a stream's node without a whole ID");
        }
        struct stream_id master = stream_id_of_key(l->text.data);
        if (!rdb_read_string(l->r, &l->text)) {
            return false;
        }
        if (!stream_load_node(l->e, master, buf_slice(&l->text))) {
            return rdb_fail(l->r, "a stream's node that is damaged");
        }
    }
    return true;
}

static bool load_facts(struct loader *l)
{
    uint64_t length, added;
    struct stream_id last, first, deleted = STREAM_ID_MIN;
    if (!rdb_read_len(l->r, &length) || !read_id(l->r, &last)) {
        return false;
    }
    added = length;
    if (l->type != RDB_STREAM &&
        (!read_id(l->r, &first) || !read_id(l->r, &deleted) || !rdb_read_len(l->r, &added))) {
        return false;
    }
    return stream_load_facts(l->e, length, last, deleted, added) ||
           rdb_fail(l->r, "a stream's facts that contradict its entries");
}

/* Appends them. */
static bool load_orphans(struct rdb_reader *r, struct buf *orphans, uint64_t count)
{
    struct stream_id last = STREAM_ID_MIN;
    for (uint64_t i = 0; i < count; i++) {
        struct orphan o = {0};
        uint64_t deliveries;
        if (!read_raw_id(r, &o.id) || !read_time(r, &o.delivered_ms) ||
            !rdb_read_len(r, &deliveries)) {
            return false;
        }
        if (deliveries > INT64_MAX || (i > 0 && stream_id_compare(last, o.id) >= 0)) {
            return rdb_fail(r, "a stream's pending entries out of order");
        }
        o.deliveries = (int64_t)deliveries;
        last = o.id;
        buf_append(orphans, (const char *)&o, sizeof(o));
    }
    return true;
}

static int compare_orphan(const void *id, const void *orphan)
{
    return stream_id_compare(*(const struct stream_id *)id, ((const struct orphan *)orphan)->id);
}

/* A consumer, and which of the group's pending entries are its own. */
static bool load_consumer(struct loader *l, struct stream_group *g, struct orphan *orphans,
                          uint64_t count)
{
    struct rdb_reader *r = l->r;
    int64_t seen_ms, active_ms;
    uint64_t own;
    if (!rdb_read_string(r, &l->text)) {
        return false;
    }
    if (l->text.len > STREAM_NAME_MAX_BYTES || !read_time(r, &seen_ms)) {
        return rdb_fail(r, "a stream's consumer that is damaged");
    }
    struct stream_consumer *c = stream_consumer_add(g, buf_slice(&l->text), seen_ms);
    if (!c) {
        return rdb_fail(r, "a stream's consumer that is there twice");
    }
    uint64_t raw = (uint64_t)seen_ms;
    if (l->type == RDB_STREAM_3 && !rdb_read_u64(r, &raw)) {
        return false;
    }
    active_ms = (int64_t)raw;
    if (active_ms != STREAM_NEVER && (active_ms < 0 || active_ms > INT64_MAX / 4)) {
        return rdb_fail(r, "a time beyond all times");
    }
    c->active_ms = active_ms;
    if (!rdb_read_count(r, STREAM_ID_KEY_BYTES, &own)) {
        return false;
    }
    for (; own > 0; own--) {
        struct stream_id id;
        if (!read_raw_id(r, &id)) {
            return false;
        }
        struct orphan *o =
            count ? bsearch(&id, orphans, count, sizeof(*orphans), compare_orphan) : NULL;
        if (!o || o->taken) {
            return rdb_fail(r, "a stream's pending entry of nobody or of two");
        }
        o->taken = true;
        stream_pending_give(g, c, id, o->delivered_ms, o->deliveries);
    }
    return true;
}

static bool load_consumers(struct loader *l, struct stream_group *g, struct orphan *orphans,
                           uint64_t count)
{
    uint64_t consumers;
    if (!rdb_read_count(l->r, CONSUMER_BYTES, &consumers)) {
        return false;
    }
    for (; consumers > 0; consumers--) {
        if (!load_consumer(l, g, orphans, count)) {
            return false;
        }
    }
    for (uint64_t i = 0; i < count; i++) {
        if (!orphans[i].taken) {
            return rdb_fail(l->r, "a stream's pending entry without a consumer");
        }
    }
    return true;
}

static bool load_group(struct loader *l)
{
    struct stream_id last;
    const struct stream_facts *facts = stream_facts(l->e);
    uint64_t read_count, pending;
    if (!rdb_read_string(l->r, &l->text) || !read_id(l->r, &last)) {
        return false;
    }
    read_count = (uint64_t)stream_rank(facts, last); /* older forms leave that to the reader */
    if ((l->type != RDB_STREAM && !rdb_read_len(l->r, &read_count)) ||
        !rdb_read_count(l->r, PENDING_BYTES, &pending)) {
        return false;
    }
    if (l->text.len > STREAM_NAME_MAX_BYTES || (int64_t)read_count < STREAM_READ_UNKNOWN) {
        return rdb_fail(l->r, "a stream's group that is damaged");
    }
    struct stream_group *g =
        stream_group_add(stream_groups(l->e), buf_slice(&l->text), last, STREAM_READ_UNKNOWN);
    if (!g) {
        return rdb_fail(l->r, "a stream's group that is there twice");
    }
    stream_group_place(facts, g, last, (int64_t)read_count);
    struct buf orphans = {0};
    bool ok = load_orphans(l->r, &orphans, pending) &&
              load_consumers(l, g, (struct orphan *)(void *)orphans.data, pending);
    buf_deinit(&orphans);
    return ok;
}

bool rdb_load_stream(struct rdb_reader *r, unsigned type, struct slice key, struct entry **e)
{
    struct loader l = {.r = r, .type = type, .e = stream_create(key)};
    uint64_t groups;
    bool ok = load_nodes(&l) && load_facts(&l) && rdb_read_count(r, GROUP_BYTES, &groups);
    for (; ok && groups > 0; groups--) {
        ok = load_group(&l);
    }
    buf_deinit(&l.text);
    if (!ok) {
        entry_destroy(&l.e);
    }
    *e = l.e;
    return ok;
}
