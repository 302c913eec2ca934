/* See rdb_file.h: reading. */
#include "persist/rdb_file.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/num.h"
#include "engine/function_store.h"
#include "keyspace/access.h"
#include "keyspace/db.h"
#include "keyspace/event.h"
#include "keyspace/expire.h"
#include "persist/dots.h"
#include "persist/load.h"
#include "persist/notes.h"
#include "persist/payload.h"
#include "persist/rdb_walk.h"
#include "value/member_ttl.h"
#include "value/module.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* Keys that are put into the databases in one hold of the lock. Their buckets are on their way to
 * the cache by then. */
#define BATCH_KEYS 64
/* A file of so many bytes cannot hold more keys than a third of that: type, empty key, empty value.
 */
#define KEY_MIN_BYTES 3
/* Of a feed, whose length nobody vouches for, tables are sized ahead for so many keys at most. */
#define FEED_KEYS_AHEAD (UINT64_C(1) << 20)
#define FEED_MARK_MAX 64

/* A key on its way into its database. */
struct loaded_key {
    struct db *db;
    struct entry *e;
    uint64_t hash, offset;
};

struct file_loader {
    struct rdb_walk walk;
    struct rdb_file_loaded *loaded;
    int64_t due_ms; /* keys whose time was before are left out */
    int64_t now_ms; /* of access clocks */
    struct db *db;
    bool aside;     /* into the data set aside */
    bool has_notes; /* others go on from these data: nothing goes without being told */
    bool has_stamp; /* of the key that comes */
    char stamp[ENTRY_STAMP_BYTES];
    int count;
    struct loaded_key batch[BATCH_KEYS];
    char library_error[200]; /* what w.r.error points to, of a library */
};

/* Modules hear of each key that comes with the file; of a data set aside they would find none. */
static bool put_one(const struct file_loader *l, const struct loaded_key *k) REQUIRES(keyspace_lock)
{
    if (!db_add_loaded(k->db, k->hash, k->e)) {
        return false;
    }
    if (!l->aside) {
        event_notify(EVENT_LOADED, "loaded", k->db->id, entry_key(k->e));
    }
    return true;
}

/* Puts the batch into the databases. False when a key is there already: its entry and those behind
 * it stay in the batch. */
static bool put_batch(struct file_loader *l)
{
    int i = 0;
    keyspace_lock_exclusive();
    while (i < l->count && put_one(l, &l->batch[i])) {
        i++;
    }
    keyspace_unlock_exclusive();
    l->loaded->keys += (uint64_t)i;
    l->count -= i;
    if (l->count > 0) {
        memmove(l->batch, l->batch + i, (size_t)l->count * sizeof(l->batch[0]));
        rdb_fail(&l->walk.r, "a key that is there twice");
        l->walk.r.error_offset = l->batch[0].offset;
        return false;
    }
    return true;
}

/* The entry with what the file says of the key; NULL (destroyed) when its time has passed. */
static struct entry *complete_entry(struct file_loader *l, struct rdb_walk_key *key)
{
    struct entry *e = key->e;
    key->e = NULL;
    if (!expire_frozen && !l->has_notes &&
        (entry_is_over(key->expiry_ms, l->due_ms) ||
         (member_ttl_any(e) && member_ttl_all_due(e, l->due_ms)))) {
        l->loaded->expired++;
        entry_destroy(&e);
        return NULL;
    }
    if (l->has_stamp) {
        e = entry_with_stamp(e, l->stamp);
    }
    if (key->expiry_ms != ENTRY_NO_EXPIRY) {
        e = entry_with_expiry(e, key->expiry_ms);
    }
    entry_set_clock(e, access_initial(l->now_ms));
    if (key->frequency >= 0 && access_is_lfu()) {
        access_set_frequency(e, (unsigned)key->frequency, l->now_ms);
    } else if (key->idle_s >= 0 && !access_is_lfu()) {
        access_set_idle_ms(e, key->idle_s * 1000, l->now_ms);
    }
    return e;
}

static bool take_key(struct rdb_walk *w, struct rdb_walk_key *key)
{
    struct file_loader *l = w->context;
    if (!key->e) {
        l->has_stamp = false;
        l->loaded->empty++;
        return true;
    }
    struct entry *e = complete_entry(l, key);
    l->has_stamp = false;
    load_key_done();
    if (!e) {
        return true;
    }
    struct key place = key_of(entry_key(e));
    db_peek_bucket(l->db, &place);
    l->batch[l->count++] = (struct loaded_key){l->db, e, place.hash, key->offset};
    return l->count < BATCH_KEYS || put_batch(l);
}

static bool take_library(struct rdb_walk *w, struct slice source)
{
    struct file_loader *l = w->context;
    struct buf error = {0};
    if (l->aside) {
        function_store_note_aside(source);
        return true;
    }
    buf_append_cstr(&error, "a library that cannot be loaded: ");
    keyspace_lock_exclusive();
    bool loaded = function_store_load(source, false, &error);
    keyspace_unlock_exclusive();
    if (!loaded) {
        snprintf(l->library_error, sizeof(l->library_error), "%s", buf_cstr(&error));
        rdb_fail(&w->r, l->library_error);
    }
    buf_deinit(&error);
    return loaded;
}

/* A module may look at the keys that came before its data. */
static bool take_module_aux(struct rdb_walk *w)
{
    return put_batch(w->context);
}

static bool take_select(struct rdb_walk *w, uint64_t index)
{
    struct file_loader *l = w->context;
    if (index >= (uint64_t)db_count()) {
        return rdb_fail(&w->r, "a database that `databases` does not allow");
    }
    l->db = l->aside ? db_aside((int)index) : db_at((int)index);
    module_value_db = (int)index;
    return true;
}

/* Sizes the table ahead, as far as the file can be right. */
static bool take_resize(struct rdb_walk *w, uint64_t keys, uint64_t expires)
{
    struct file_loader *l = w->context;
    uint64_t most = rdb_left(&w->r) / KEY_MIN_BYTES;
    (void)expires;
    if (w->r.feed && most > FEED_KEYS_AHEAD) {
        most = FEED_KEYS_AHEAD;
    }
    db_reserve(l->db, keys < most ? keys : most);
    return true;
}

static bool take_aux(struct rdb_walk *w, struct slice name, struct slice value)
{
    struct file_loader *l = w->context;
    int64_t db;
    if (slice_equal(name, SLICE("repl-stream-db")) && num_parse_i64(value, &db) && db >= 0 &&
        db < db_count()) {
        l->loaded->stream_db = (int)db;
    }
    int64_t used_bytes;
    if (slice_equal(name, SLICE("used-mem")) && num_parse_i64(value, &used_bytes) &&
        used_bytes > 0) {
        load_note_used_memory((uint64_t)used_bytes);
    }
    bool known;
    const char *error = dots_take(name, value, &known);
    if (error) {
        return rdb_fail(&w->r, error);
    }
    l->has_notes |= known || notes_take(name, value);
    return true;
}

static bool take_dot(struct rdb_walk *w, struct slice value)
{
    struct file_loader *l = w->context;
    const char *error = dots_take_dot(l->db, value, l->stamp, &l->has_stamp);
    return !error || rdb_fail(&w->r, error);
}

static const struct rdb_walk_visitor visitor = {.aux = take_aux,
                                                .dot = take_dot,
                                                .key = take_key,
                                                .library = take_library,
                                                .module_aux = take_module_aux,
                                                .select = take_select,
                                                .resize = take_resize};

/* Between two windows of the file. */
static bool step(void *context, uint64_t offset)
{
    struct file_loader *l = context;
    load_note_keys(l->loaded->keys, l->loaded->expired);
    l->loaded->stopped = !load_step(offset, false);
    return !l->loaded->stopped;
}

static void drop_batch(struct file_loader *l)
{
    for (int i = 0; i < l->count; i++) {
        entry_destroy(&l->batch[i].e);
    }
}

/* What stands behind the RDB part of a feed is the mark, or nothing. */
static bool ends_as_told(struct rdb_reader *r, struct slice mark)
{
    char bytes[FEED_MARK_MAX];
    assert(mark.len <= sizeof(bytes));
    if (mark.len == 0) {
        return rdb_left(r) == 0 || rdb_fail(r, "more than the data set");
    }
    return rdb_read(r, bytes, mark.len) && (memcmp(bytes, mark.ptr, mark.len) == 0 ||
                                            rdb_fail(r, "the data set does not end with its mark"));
}

/* Reads what l->walk was prepared for. */
static bool run(struct file_loader *l, bool alone, struct slice mark)
{
    struct rdb_file_loaded *loaded = l->loaded;
    struct rdb_reader *r = &l->walk.r;
    notes_outdate();
    l->now_ms = clock_wall_ms();
    l->walk.alone = alone;
    l->walk.checksum = rdb_file_checksum && !payload_trusts_checksums;
    r->step = step;
    r->step_context = l;
    module_value_db = 0;
    bool ok = rdb_walk_run(&l->walk) && (!r->feed || ends_as_told(r, mark)) && put_batch(l);
    module_value_db = -1;
    loaded->bytes = rdb_offset(r);
    load_note_keys(loaded->keys, loaded->expired);
    if (!ok) {
        snprintf(loaded->error, sizeof(loaded->error), "%s, at offset %" PRIu64, r->error,
                 r->error_offset);
    }
    drop_batch(l);
    rdb_walk_deinit(&l->walk);
    return ok;
}

static enum rdb_file_load load_file(const char *name, bool alone, bool aside, int64_t due_ms,
                                    struct rdb_file_loaded *loaded)
{
    struct stat about;
    *loaded = (struct rdb_file_loaded){0};
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) {
        return RDB_FILE_MISSING;
    }
    if (fd < 0 || fstat(fd, &about) < 0) {
        snprintf(loaded->error, sizeof(loaded->error), "cannot open it: %s", strerror(errno));
        if (fd >= 0) {
            close(fd);
        }
        return RDB_FILE_BAD;
    }
    struct file_loader l = {
        .loaded = loaded, .due_ms = due_ms, .aside = aside, .db = aside ? db_aside(0) : db_at(0)};
    rdb_walk_init(&l.walk, &visitor, &l, fd, (uint64_t)about.st_size);
    bool ok = run(&l, alone, slice_of(NULL, 0));
    close(fd);
    return ok ? RDB_FILE_FINE : RDB_FILE_BAD;
}

enum rdb_file_load rdb_file_load(const char *name, int64_t due_ms, struct rdb_file_loaded *loaded)
{
    return load_file(name, true, false, due_ms, loaded);
}

enum rdb_file_load rdb_file_load_aside(const char *name, int64_t due_ms,
                                       struct rdb_file_loaded *loaded)
{
    return load_file(name, true, true, due_ms, loaded);
}

enum rdb_file_load rdb_file_load_preamble(const char *name, int64_t due_ms,
                                          struct rdb_file_loaded *loaded)
{
    return load_file(name, false, false, due_ms, loaded);
}

enum rdb_file_load rdb_file_load_feed(const struct rdb_feed *feed, struct slice mark, bool aside,
                                      int64_t due_ms, struct rdb_file_loaded *loaded)
{
    *loaded = (struct rdb_file_loaded){0};
    struct file_loader l = {
        .loaded = loaded, .due_ms = due_ms, .aside = aside, .db = aside ? db_aside(0) : db_at(0)};
    rdb_walk_init_feed(&l.walk, &visitor, &l, feed);
    return run(&l, mark.len == 0, mark) ? RDB_FILE_FINE : RDB_FILE_BAD;
}
