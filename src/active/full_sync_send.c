/* See full_sync_send.h. */
#include "active/full_sync_send.h"

#include "base/file.h"
#include "base/mem.h"
#include "keyspace/expire.h"
#include "persist/payload.h"
#include "value/module.h"
#include "active/full_sync_record.h"

#include <assert.h>

/* Records that are written in one piece, unless one is longer. */
#define PIECE_BYTES ((size_t)64 * 1024)
/* Entries that a step of a walk looks at. */
#define WALK_ENTRIES 1024

struct teller {
    const struct full_sync_moment *moment;
    uint16_t *handles; /* by origin's index: its place in H; 0: not there */
    struct buf out, payload;
    full_sync_write_fn write;
    void *context;
    uint64_t keys;
    int db;
    bool failed;
};

bool full_sync_write_fd(struct slice bytes, void *context)
{
    return file_write_all(*(int *)context, bytes) == 0;
}

struct full_sync_moment full_sync_now(struct node *n)
{
    assert(!node_is_merging(n));
    node_settle(n);
    node_data_told(n);
    const struct executor *x = node_merge(n)->context;
    return (struct full_sync_moment){node_origins(n), hlc_tell(node_clock(n)), x->first_db, x->dbs,
                                     node_merge(n)->libraries};
}

static void flush(struct teller *t)
{
    t->failed = t->failed || !t->write(buf_slice(&t->out), t->context);
    buf_clear(&t->out);
}

static void put(struct teller *t, const struct full_sync_record *r)
{
    if (!t->failed) {
        full_sync_record_put(&t->out, r);
        if (t->out.len >= PIECE_BYTES) {
            flush(t);
        }
    }
}

static void tell_head(struct teller *t)
{
    const struct origins *o = t->moment->origins;
    struct buf positions = {0};
    struct version_vector *cover = version_vector_create(o);
    uint16_t place = 0;
    t->handles = mem_calloc(o->count, sizeof(*t->handles));
    for (uint32_t i = 1; i < o->count; i++) {
        t->handles[i] = cover->sequence[i] > 0 ? ++place : 0;
    }
    version_vector_encode(o, cover, &positions);
    put(t, &(struct full_sync_record){
               .kind = 'H', .clock = t->moment->clock, .positions = buf_slice(&positions)});
    mem_free(cover);
    buf_deinit(&positions);
}

static void tell_library(struct slice row, void *context)
{
    put(context, &(struct full_sync_record){.kind = 'L', .library = row});
}

static void tell_entry(struct entry *e, void *context)
{
    struct teller *t = context;
    struct dot dot = executor_dot(e);
    if (t->failed) {
        return;
    }
    buf_clear(&t->payload);
    payload_write(&t->payload, e);
    t->keys++;
    put(t,
        &(struct full_sync_record){.kind = 'K',
                                   .db = t->db,
                                   .stamp = dot.stamp,
                                   .handle = t->handles[dot_origin(dot)],
                                   .sequence = dot_sequence(dot),
                                   .deadline_ms = e->flags & ENTRY_EXPIRES ? entry_expiry_ms(e) : 0,
                                   .key = entry_key(e),
                                   .payload = buf_slice(&t->payload)});
}

static void tell_db(struct teller *t) REQUIRES_SHARED(keyspace_lock);
static void tell_db(struct teller *t)
{
    uint64_t cursor = 0;
    struct db *db = db_at(t->moment->first_db + t->db);
    module_value_db = t->db;
    do {
        cursor = db_scan(db, cursor, WALK_ENTRIES, 0, tell_entry, t);
    } while (cursor && !t->failed);
    module_value_db = -1;
}

bool full_sync_tell(const struct full_sync_moment *moment, full_sync_write_fn write, void *context)
{
    struct teller t = {.moment = moment, .write = write, .context = context};
    /* What its time has taken, and nobody has told, is there still. */
    bool frozen = expire_frozen;
    expire_frozen = true;
    tell_head(&t);
    libraries_each(moment->libraries, true, tell_library, &t);
    for (; t.db < moment->dbs; t.db++) {
        tell_db(&t);
    }
    put(&t, &(struct full_sync_record){.kind = 'E', .keys = t.keys});
    flush(&t);
    expire_frozen = frozen;
    mem_free(t.handles);
    buf_deinit(&t.out);
    buf_deinit(&t.payload);
    return !t.failed;
}
