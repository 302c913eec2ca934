/* See active_contact_send.h. */
#include "repl/active_contact_send.h"

#include "base/file.h"
#include "base/mem.h"
#include "engine/function_store.h"
#include "keyspace/expire.h"
#include "persist/payload.h"
#include "repl/active_contact.h"

#include <assert.h>

/* Records that are written in one piece, unless one is longer. */
#define PIECE_BYTES ((size_t)64 * 1024)
/* Entries that a step of a walk looks at. */
#define WALK_ENTRIES 1024

struct teller {
    const struct active_moment *moment;
    uint16_t *handles; /* by origin's index: its place in H; 0: not there */
    struct buf out, payload;
    active_contact_write_fn write;
    void *context;
    uint64_t keys;
    int db;
    bool failed;
};

bool active_contact_write_fd(struct slice bytes, void *context)
{
    return file_write_all(*(int *)context, bytes) == 0;
}

struct active_moment active_contact_moment(struct active_node *n)
{
    assert(!active_node_is_meeting(n));
    active_node_settle(n);
    const struct active_execute *x = active_node_merge(n)->context;
    return (struct active_moment){active_node_origins(n), active_clock_tell(active_node_clock(n)),
                                  x->first_db, x->dbs};
}

static void flush(struct teller *t)
{
    t->failed = t->failed || !t->write(buf_slice(&t->out), t->context);
    buf_clear(&t->out);
}

static void put(struct teller *t, const struct active_record *r)
{
    if (!t->failed) {
        active_record_put(&t->out, r);
        if (t->out.len >= PIECE_BYTES) {
            flush(t);
        }
    }
}

static void tell_head(struct teller *t)
{
    const struct active_origins *o = t->moment->origins;
    struct buf positions = {0};
    struct active_cover *cover = active_cover_create(o);
    uint16_t place = 0;
    t->handles = mem_calloc(o->count, sizeof(*t->handles));
    for (uint32_t i = 1; i < o->count; i++) {
        t->handles[i] = cover->sequence[i] > 0 ? ++place : 0;
    }
    active_cover_encode(o, cover, &positions);
    put(t, &(struct active_record){
               .kind = 'H', .clock = t->moment->clock, .positions = buf_slice(&positions)});
    mem_free(cover);
    buf_deinit(&positions);
}

static void tell_libraries(struct teller *t) REQUIRES_SHARED(keyspace_lock);
static void tell_libraries(struct teller *t)
{
    for (size_t i = 0; i < function_store_count(); i++) {
        put(t, &(struct active_record){.kind = 'L', .source = function_store_code(i)});
    }
}

static void tell_entry(struct entry *e, void *context)
{
    struct teller *t = context;
    struct active_dot dot = active_execute_dot(e);
    if (t->failed) {
        return;
    }
    buf_clear(&t->payload);
    payload_write(&t->payload, e);
    t->keys++;
    put(t, &(struct active_record){.kind = 'K',
                                   .db = t->db,
                                   .stamp = dot.stamp,
                                   .handle = t->handles[active_dot_origin(dot)],
                                   .sequence = active_dot_sequence(dot),
                                   .deadline_ms = e->flags & ENTRY_EXPIRES ? entry_expiry_ms(e) : 0,
                                   .key = entry_key(e),
                                   .payload = buf_slice(&t->payload)});
}

static void tell_db(struct teller *t) REQUIRES_SHARED(keyspace_lock);
static void tell_db(struct teller *t)
{
    uint64_t cursor = 0;
    struct db *db = db_at(t->moment->first_db + t->db);
    do {
        cursor = db_scan(db, cursor, WALK_ENTRIES, 0, tell_entry, t);
    } while (cursor && !t->failed);
}

bool active_contact_tell(const struct active_moment *moment, active_contact_write_fn write,
                         void *context)
{
    struct teller t = {.moment = moment, .write = write, .context = context};
    /* What its time has taken, and nobody has told, is there still. */
    bool frozen = expire_frozen;
    expire_frozen = true;
    tell_head(&t);
    tell_libraries(&t);
    for (; t.db < moment->dbs; t.db++) {
        tell_db(&t);
    }
    put(&t, &(struct active_record){.kind = 'E', .keys = t.keys});
    flush(&t);
    expire_frozen = frozen;
    mem_free(t.handles);
    buf_deinit(&t.out);
    buf_deinit(&t.payload);
    return !t.failed;
}
