/* See full_sync_receive.h. */
#include "active/full_sync_receive.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "engine/gil.h"
#include "keyspace/expire.h"
#include "persist/payload.h"
#include "persist/rdb_module.h"
#include "active/known_keys.h"

#include <assert.h>
#include <unistd.h>

/* What goes to the file, and comes from it, in one piece. */
#define PIECE_BYTES ((size_t)256 * 1024)
/* Entries, and keys of the window's table, that a look at ours asks for. */
#define WALK_ENTRIES 64

/* The records stand in the file, all but N. */
struct full_sync {
    enum full_sync_phase phase;
    int fd;
    /* Coming. */
    bool reopened; /* from a file that has it */
    bool asleep;   /* who feeds it */
    bool has_head;
    struct buf in;  /* what has come of the next records */
    struct buf out; /* checked records, not in the file yet */
    uint64_t size;  /* of the file */
    int disk_error; /* errno of a write that failed; 0: none has */
    uint64_t keys, names_bytes;
    uint64_t clock;
    struct origin_id *ids; /* by handle, [0] nobody's */
    uint64_t *positions;
    uint32_t handles; /* with [0] */
    int dbs;          /* that it has keys in, and all below */
    /* Met. */
    uint16_t *index; /* ours, by handle */
    struct version_vector *cover, *had;
    struct merge_snapshot snapshot;
    struct known_keys known;
    bool alone;      /* nothing was here: no key but theirs is to be merged */
    struct buf read; /* records from the file, behind those that are merged */
    size_t at;
    uint64_t read_from; /* the file is read up to here */
    uint64_t done;      /* libraries and keys of theirs, so many from the first one on */
    uint64_t skip;      /* so many were done in an earlier life */
    uint64_t merged, refused;
    uint64_t cursor;
    int db;
    struct buf names; /* database, length, name: found, to be merged */
    size_t name_at;
};

struct full_sync *full_sync_create(int fd_take)
{
    struct full_sync *c = mem_calloc(1, sizeof(*c));
    c->fd = fd_take;
    return c;
}

void full_sync_note_had(struct full_sync *c, struct version_vector *had_take)
{
    assert(!full_sync_is_merging(c));
    mem_free(c->had);
    c->had = had_take;
}

const struct version_vector *full_sync_had(const struct full_sync *c)
{
    return c->had;
}

void full_sync_destroy(struct full_sync **contact)
{
    struct full_sync *c = *contact;
    *contact = NULL;
    if (!c) {
        return;
    }
    close(c->fd);
    mem_free(c->ids);
    mem_free(c->positions);
    mem_free(c->index);
    mem_free(c->cover);
    mem_free(c->had);
    known_keys_deinit(&c->known);
    buf_deinit(&c->in);
    buf_deinit(&c->out);
    buf_deinit(&c->read);
    buf_deinit(&c->names);
    mem_free(c);
}

enum full_sync_phase full_sync_phase(const struct full_sync *c)
{
    return c->phase;
}

uint64_t full_sync_keys(const struct full_sync *c)
{
    return c->keys;
}

uint64_t full_sync_keys_merged(const struct full_sync *c)
{
    return c->merged;
}

uint64_t full_sync_keys_refused(const struct full_sync *c)
{
    return c->refused;
}

/* ---- coming ---- */

static bool check_head(struct full_sync *c, const struct full_sync_record *r)
{
    struct origins o;
    origins_init(&o);
    struct version_vector *cover = c->has_head ? NULL : version_vector_decode(&o, r->positions);
    /* Each origin once, so that places in the list are indexes. */
    bool good = cover && o.count == le_get(r->positions.ptr, 4) + 1;
    if (good) {
        c->has_head = true;
        c->clock = r->clock;
        c->handles = o.count;
        c->ids = mem_calloc(o.count, sizeof(*c->ids));
        c->positions = mem_calloc(o.count, sizeof(*c->positions));
        for (uint32_t i = 1; i < o.count; i++) {
            c->ids[i] = origins_at(&o, (uint16_t)i)->id;
            c->positions[i] = cover->sequence[i];
        }
    }
    mem_free(cover);
    origins_deinit(&o);
    return good;
}

/* A dot is of a write that the positions cover, or none. */
static bool check_dot(const struct full_sync *c, const struct full_sync_record *r)
{
    if (r->handle == 0) {
        return r->stamp == 0 && r->sequence == 0;
    }
    return r->handle < c->handles && r->sequence > 0 && r->sequence <= c->positions[r->handle] &&
           r->stamp > 0 && r->stamp <= c->clock;
}

static bool is_value(const struct full_sync_record *r)
{
    struct entry *e;
    bool fine = payload_read(r->payload, r->key, &e) == PAYLOAD_FINE;
    if (fine) {
        entry_destroy(&e);
    }
    return fine;
}

/* Nothing of a data set is merged before all of it was found to be values. */
static bool check_value(const struct full_sync *c, const struct full_sync_record *r,
                        const char **error) NO_THREAD_SAFETY_ANALYSIS
{
    if (!rdb_module_is_payload(r->payload)) {
        return is_value(r);
    }
    if (c->asleep) {
        gil_wake();
    }
    module_value_db = r->db;
    bool fine = is_value(r);
    module_value_db = -1;
    if (c->asleep) {
        gil_sleep();
    }
    *error = fine ? *error : rdb_module_payload_fault(r->payload);
    return fine;
}

static bool check_key(struct full_sync *c, const struct full_sync_record *r, const char **error)
{
    if (!c->has_head || !check_dot(c, r) || !check_value(c, r, error)) {
        return false;
    }
    c->keys++;
    c->dbs = r->db >= c->dbs ? r->db + 1 : c->dbs;
    return true;
}

/* What stands in the name of somebody is covered, like a key's dot. */
static bool check_library(const struct full_sync *c, const struct full_sync_record *r)
{
    struct library_row row;
    struct slice rest = r->library;
    if (!c->has_head || c->keys > 0 || !library_row_next(&rest, &row) || rest.len > 0 ||
        row.kind == 'L') {
        return false;
    }
    for (uint32_t i = 1; i < c->handles && row.stamp != 0; i++) {
        if (memcmp(&c->ids[i], &row.id, sizeof(row.id)) == 0) {
            return row.sequence <= c->positions[i] && row.stamp <= c->clock;
        }
    }
    return row.stamp == 0;
}

static bool check_record(struct full_sync *c, const struct full_sync_record *r, const char **error)
{
    switch (r->kind) {
    case 'N':
        return !c->has_head;
    case 'H':
        return check_head(c, r);
    case 'L':
        return check_library(c, r);
    case 'K':
        return check_key(c, r, error);
    default:
        return c->has_head && r->keys == c->keys;
    }
}

static bool write_file(struct full_sync *c, struct slice bytes)
{
    c->size += bytes.len;
    if (!c->reopened) {
        c->disk_error = file_write_all(c->fd, bytes);
    }
    return c->disk_error == 0;
}

/* The next record for the file; a long one is not copied. False: the disk is full. */
static bool put_out(struct full_sync *c, char kind, struct slice record)
{
    bool good = true, is_long = record.len >= PIECE_BYTES;
    if (kind == 'N') {
        return true;
    }
    if (!is_long) {
        buf_append_slice(&c->out, record);
    }
    if (is_long || kind == 'E' || c->out.len >= PIECE_BYTES) {
        good = write_file(c, buf_slice(&c->out));
        buf_clear(&c->out);
    }
    return good && (!is_long || write_file(c, record));
}

/* The first record in `in`, behind `at`. */
static enum frame_result take_record(struct full_sync *c, size_t *at, const char **error)
{
    struct full_sync_record r;
    size_t len = 0;
    struct slice rest = buf_from(&c->in, *at);
    enum frame_result result = full_sync_record_next(rest, &r, &len, error);
    if (result != FRAME_WHOLE) {
        return result;
    }
    const char *why = "a record of a data set that does not belong there";
    if (!check_record(c, &r, &why)) {
        *error = why;
        return FRAME_BROKEN;
    }
    *at += len;
    c->phase = r.kind == 'E' ? FULL_SYNC_WHOLE : c->phase;
    if (!put_out(c, r.kind, slice_of(rest.ptr, len))) {
        *error = "the disk takes no more of a data set";
        return FRAME_BROKEN;
    }
    return FRAME_WHOLE;
}

int full_sync_disk_error(const struct full_sync *c)
{
    return c->disk_error;
}

void full_sync_feeds_asleep(struct full_sync *c)
{
    c->asleep = true;
}

enum full_sync_phase full_sync_feed(struct full_sync *c, struct slice data, size_t *consumed,
                                    const char **error)
{
    enum frame_result result = FRAME_WHOLE;
    size_t at = 0;
    assert(c->phase == FULL_SYNC_COMING);
    buf_append_slice(&c->in, data);
    while (result == FRAME_WHOLE && c->phase == FULL_SYNC_COMING) {
        result = take_record(c, &at, error);
    }
    if (result == FRAME_BROKEN) {
        c->phase = FULL_SYNC_BROKEN;
    }
    /* What is behind the end is frames. */
    *consumed = data.len - (c->phase == FULL_SYNC_WHOLE ? c->in.len - at : 0);
    if (c->phase == FULL_SYNC_COMING) {
        buf_consume(&c->in, at);
    } else {
        buf_deinit(&c->in);
        buf_deinit(&c->out);
    }
    return c->phase;
}

bool full_sync_reopen(struct full_sync *c, uint64_t done, const char **error)
{
    char *piece = mem_alloc(PIECE_BYTES);
    ssize_t got = 1;
    c->reopened = true;
    c->skip = done;
    *error = "it is cut off";
    for (off_t at = 0; got > 0 && c->phase == FULL_SYNC_COMING; at += got) {
        size_t used;
        got = pread(c->fd, piece, PIECE_BYTES, at);
        if (got > 0) {
            (void)full_sync_feed(c, slice_of(piece, (size_t)got), &used, error);
        }
    }
    mem_free(piece);
    return c->phase == FULL_SYNC_WHOLE;
}

uint64_t full_sync_done(const struct full_sync *c)
{
    return c->done;
}

/* ---- merged ---- */

static bool enter_origins(struct full_sync *c, struct origins *o)
{
    mem_free(c->index);
    mem_free(c->cover);
    c->cover = NULL;
    c->index = mem_calloc(c->handles, sizeof(*c->index));
    for (uint32_t i = 1; i < c->handles; i++) {
        c->index[i] = origins_enter(o, &c->ids[i]);
        if (c->index[i] == 0) {
            return false;
        }
    }
    c->cover = version_vector_create(o);
    memset(c->cover->sequence, 0, c->cover->count * sizeof(c->cover->sequence[0]));
    for (uint32_t i = 1; i < c->handles; i++) {
        c->cover->sequence[c->index[i]] = c->positions[i];
    }
    return true;
}

bool full_sync_is_known(const struct full_sync *c, struct node *n)
{
    const struct origins *o = node_origins(n);
    for (uint32_t i = 1; i < c->handles; i++) {
        uint16_t index = origins_find(o, &c->ids[i]);
        if (c->positions[i] > (index ? origins_at(o, index)->position : 0)) {
            return false;
        }
    }
    return true;
}

static uint64_t keys_here(const struct executor *x) REQUIRES(keyspace_lock);
static uint64_t keys_here(const struct executor *x)
{
    uint64_t keys = 0;
    for (int db = 0; db < x->dbs; db++) {
        keys += db_size(executor_db(x, db));
    }
    return keys;
}

/* What we have that lacks nothing, for the log to say: our own writes, and what data sets had that
 * were merged since this one was asked for. */
static void raise_had(struct full_sync *c, struct node *n) REQUIRES(keyspace_lock);
static void raise_had(struct full_sync *c, struct node *n)
{
    const struct version_vector *met = node_merge(n)->met;
    for (uint32_t i = 1; c->had && i < c->had->count; i++) {
        uint64_t whole = i == node_self(n) ? origins_at(node_origins(n), (uint16_t)i)->position
                         : met             ? version_vector_at(met, i)
                                           : 0;
        c->had->sequence[i] = whole > c->had->sequence[i] ? whole : c->had->sequence[i];
    }
}

bool full_sync_begin(struct full_sync *c, struct node *n, const char **error)
{
    const struct merge *m = node_merge(n);
    const struct executor *x = m->context;
    assert(c->phase == FULL_SYNC_WHOLE);
    if (c->dbs > x->dbs) {
        *error = "a data set with more databases than there are here";
        return false;
    }
    if (!enter_origins(c, node_origins(n))) {
        *error = "there is no room for another origin";
        return false;
    }
    raise_had(c, n);
    c->snapshot = (struct merge_snapshot){c->cover, c->clock, c->had};
    if (!node_snapshot_begin(n, &c->snapshot, error)) {
        return false;
    }
    c->alone = keys_here(x) == 0 && window_bytes(m->window) == 0;
    c->phase = FULL_SYNC_THEIRS;
    return true;
}

/* Reads on until there is a whole record; what is merged makes room. */
static bool read_records(struct full_sync *c)
{
    struct full_sync_record r;
    size_t len;
    const char *error;
    buf_consume(&c->read, c->at);
    c->at = 0;
    while (c->read_from < c->size &&
           (c->read.len < PIECE_BYTES ||
            full_sync_record_next(buf_slice(&c->read), &r, &len, &error) == FRAME_MORE)) {
        uint64_t left = c->size - c->read_from;
        size_t want = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;
        ssize_t got = pread(c->fd, buf_reserve(&c->read, want), want, (off_t)c->read_from);
        if (got <= 0) {
            return false;
        }
        c->read.len += (size_t)got;
        c->read_from += (uint64_t)got;
    }
    return true;
}

bool full_sync_read(struct full_sync *c, const char **error)
{
    if (c->phase != FULL_SYNC_THEIRS) {
        return true;
    }
    if (!c->alone && !c->known.slots) {
        known_keys_init(&c->known, c->keys);
    }
    if (!read_records(c)) {
        *error = "a data set cannot be read from its file again";
        return false;
    }
    return true;
}

static void meet_record(struct full_sync *c, struct node *n, const struct full_sync_record *r,
                        int64_t now_ms) REQUIRES(keyspace_lock);
static void meet_record(struct full_sync *c, struct node *n, const struct full_sync_record *r,
                        int64_t now_ms)
{
    if (r->kind != 'L' && r->kind != 'K') {
        return;
    }
    bool is_done = c->done++ < c->skip;
    if (r->kind == 'L') {
        if (!is_done) {
            c->refused += !node_snapshot_library(n, r->library);
        }
        return;
    }
    struct dot dot = dot_of(r->stamp, c->index[r->handle], r->sequence);
    if (!c->alone && !known_keys_add(&c->known, r->db, r->key)) {
        return; /* twice the same key: the first one counts */
    }
    c->merged++;
    if (is_done) {
        return;
    }
    c->refused += !node_snapshot_key(n, r->db, r->key, dot, r->deadline_ms, r->payload, now_ms);
}

/* The next record of theirs, or the next phase; false when there is more to be read first. */
static bool step_theirs(struct full_sync *c, struct node *n, int64_t now_ms)
    REQUIRES(keyspace_lock);
static bool step_theirs(struct full_sync *c, struct node *n, int64_t now_ms)
{
    struct full_sync_record r;
    size_t len;
    const char *error;
    struct slice rest = buf_from(&c->read, c->at);
    if (full_sync_record_next(rest, &r, &len, &error) == FRAME_WHOLE) {
        c->at += len;
        meet_record(c, n, &r, now_ms);
        return true;
    }
    if (c->read_from < c->size) {
        return false;
    }
    buf_deinit(&c->read);
    c->phase = c->alone ? FULL_SYNC_OURS : FULL_SYNC_WINDOW;
    c->db = c->alone ? INT32_MAX : 0;
    return true;
}

/* ---- keys that they do not have ---- */

static void note_name(struct full_sync *c, int db, struct slice name)
{
    uint32_t head[2] = {(uint32_t)db, (uint32_t)name.len};
    if (!known_keys_has(&c->known, db, name)) {
        buf_append(&c->names, (const char *)head, sizeof(head));
        buf_append_slice(&c->names, name);
    }
}

struct window_look {
    struct full_sync *c;
    const struct merge *m;
};

/* What is here will be merged as ours. */
static void visit_window(int db, struct slice name, void *context)
{
    const struct window_look *look = context;
    if (!look->m->executor->exists(look->m->context, db, name)) {
        note_name(look->c, db, name);
    }
}

static void visit_entry(struct entry *e, void *context)
{
    struct full_sync *c = context;
    note_name(c, c->db, entry_key(e));
}

/* Looks at some more of the window; false at its end. */
static bool look_at_window(struct full_sync *c, const struct merge *m)
{
    struct window_look look = {c, m};
    if (c->db > 0) {
        return false;
    }
    c->cursor = window_scan(m->window, c->cursor, visit_window, &look);
    c->db = c->cursor == 0; /* once through */
    return true;
}

/* The same of the databases. */
static bool look_at_ours(struct full_sync *c, const struct executor *x) REQUIRES(keyspace_lock);
static bool look_at_ours(struct full_sync *c, const struct executor *x)
{
    if (c->db >= x->dbs) {
        return false;
    }
    bool frozen = expire_frozen;
    expire_frozen = true;
    c->cursor = db_scan(executor_db(x, c->db), c->cursor, WALK_ENTRIES, 0, visit_entry, c);
    expire_frozen = frozen;
    c->db += c->cursor == 0;
    return true;
}

/* The next name that was found; false when there is none. */
static bool meet_name(struct full_sync *c, struct node *n, int64_t now_ms) REQUIRES(keyspace_lock);
static bool meet_name(struct full_sync *c, struct node *n, int64_t now_ms)
{
    struct dot none = {0, 0};
    uint32_t head[2];
    if (c->name_at == c->names.len) {
        buf_clear(&c->names);
        c->name_at = 0;
        return false;
    }
    memcpy(head, c->names.data + c->name_at, sizeof(head));
    struct slice name = slice_of(c->names.data + c->name_at + sizeof(head), head[1]);
    c->name_at += sizeof(head) + head[1];
    c->refused += !node_snapshot_key(n, (int)head[0], name, none, 0, SLICE(""), now_ms);
    return true;
}

static void step_ours(struct full_sync *c, struct node *n, int64_t now_ms) REQUIRES(keyspace_lock);
static void step_ours(struct full_sync *c, struct node *n, int64_t now_ms)
{
    const struct merge *m = node_merge(n);
    if (meet_name(c, n, now_ms)) {
        return;
    }
    if (c->phase == FULL_SYNC_WINDOW && !look_at_window(c, m)) {
        c->phase = FULL_SYNC_OURS;
        c->db = 0;
    } else if (c->phase == FULL_SYNC_OURS && !look_at_ours(c, m->context)) {
        node_snapshot_end(n);
        c->phase = FULL_SYNC_MERGED;
    }
}

void full_sync_step(struct full_sync *c, struct node *n, int64_t now_ms, uint64_t budget_us)
{
    uint64_t begin = clock_mono_us();
    bool more;
    assert(full_sync_is_merging(c));
    node_settle(n);
    do {
        if (c->phase == FULL_SYNC_THEIRS && !step_theirs(c, n, now_ms)) {
            return;
        }
        if (c->phase != FULL_SYNC_THEIRS) {
            step_ours(c, n, now_ms);
        }
        more = full_sync_is_merging(c);
    } while (more && clock_mono_us() - begin < budget_us);
}
