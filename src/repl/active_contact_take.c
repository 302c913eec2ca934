/* See active_contact_take.h. */
#include "repl/active_contact_take.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "engine/function_store.h"
#include "keyspace/expire.h"
#include "persist/payload.h"
#include "repl/active_known.h"

#include <assert.h>
#include <unistd.h>

/* What goes to the file, and comes from it, in one piece. */
#define PIECE_BYTES ((size_t)256 * 1024)
/* Entries, and keys of the window's table, that a look at ours asks for. */
#define WALK_ENTRIES 64
/* A library is a text that somebody wrote. */
#define LIBRARY_BYTES_MAX ((size_t)16 << 20)

/* Positions and clock of the head stand here, libraries and keys in the file. */
struct active_contact {
    enum active_contact_phase phase;
    int fd;
    /* Coming. */
    bool has_head;
    struct buf in;  /* what has come of the next records */
    struct buf out; /* checked records, not in the file yet */
    uint64_t size;  /* of the file */
    uint64_t keys, names_bytes;
    uint64_t clock;
    struct active_origin_id *ids; /* by handle, [0] nobody's */
    uint64_t *positions;
    uint32_t handles; /* with [0] */
    int dbs;          /* that it has keys in, and all below */
    /* Met. */
    uint16_t *index; /* ours, by handle */
    struct active_cover *cover;
    struct active_meeting meeting;
    struct active_known known;
    bool alone;      /* nothing was here: no key but theirs is to be met */
    struct buf read; /* records from the file, behind those that are met */
    size_t at;
    uint64_t read_from; /* the file is read up to here */
    uint64_t met, refused;
    uint64_t cursor;
    int db;
    struct buf names; /* database, length, name: found, to be met */
    size_t name_at;
};

struct active_contact *active_contact_create(int fd_take)
{
    struct active_contact *c = mem_calloc(1, sizeof(*c));
    c->fd = fd_take;
    return c;
}

void active_contact_destroy(struct active_contact **contact)
{
    struct active_contact *c = *contact;
    *contact = NULL;
    if (!c) {
        return;
    }
    assert(!active_contact_is_meeting(c));
    close(c->fd);
    mem_free(c->ids);
    mem_free(c->positions);
    mem_free(c->index);
    mem_free(c->cover);
    active_known_deinit(&c->known);
    buf_deinit(&c->in);
    buf_deinit(&c->out);
    buf_deinit(&c->read);
    buf_deinit(&c->names);
    mem_free(c);
}

enum active_contact_phase active_contact_phase(const struct active_contact *c)
{
    return c->phase;
}

uint64_t active_contact_keys(const struct active_contact *c)
{
    return c->keys;
}

uint64_t active_contact_keys_met(const struct active_contact *c)
{
    return c->met;
}

uint64_t active_contact_keys_refused(const struct active_contact *c)
{
    return c->refused;
}

/* ---- coming ---- */

static bool check_head(struct active_contact *c, const struct active_record *r)
{
    struct active_origins o;
    active_origins_init(&o);
    struct active_cover *cover = c->has_head ? NULL : active_cover_decode(&o, r->positions);
    /* Each origin once, so that places in the list are indexes. */
    bool good = cover && o.count == active_get(r->positions.ptr, 4) + 1;
    if (good) {
        c->has_head = true;
        c->clock = r->clock;
        c->handles = o.count;
        c->ids = mem_calloc(o.count, sizeof(*c->ids));
        c->positions = mem_calloc(o.count, sizeof(*c->positions));
        for (uint32_t i = 1; i < o.count; i++) {
            c->ids[i] = active_origins_at(&o, (uint16_t)i)->id;
            c->positions[i] = cover->sequence[i];
        }
    }
    mem_free(cover);
    active_origins_deinit(&o);
    return good;
}

/* A dot is of a write that the positions cover, or none. */
static bool check_dot(const struct active_contact *c, const struct active_record *r)
{
    if (r->handle == 0) {
        return r->stamp == 0 && r->sequence == 0;
    }
    return r->handle < c->handles && r->sequence > 0 && r->sequence <= c->positions[r->handle] &&
           r->stamp > 0 && r->stamp <= c->clock;
}

/* Nothing of a data set is met before all of it was found to be values. */
static bool check_key(struct active_contact *c, const struct active_record *r)
{
    struct entry *e;
    if (!c->has_head || !check_dot(c, r) || payload_read(r->payload, r->key, &e) != PAYLOAD_FINE) {
        return false;
    }
    entry_destroy(&e);
    c->keys++;
    c->dbs = r->db >= c->dbs ? r->db + 1 : c->dbs;
    return true;
}

static bool check_record(struct active_contact *c, const struct active_record *r)
{
    switch (r->kind) {
    case 'H':
        return check_head(c, r);
    case 'L':
        return c->has_head && c->keys == 0 && r->source.len <= LIBRARY_BYTES_MAX;
    case 'K':
        return check_key(c, r);
    default:
        return c->has_head && r->keys == c->keys;
    }
}

static bool write_out(struct active_contact *c, size_t least)
{
    if (c->out.len <= least) {
        return true;
    }
    c->size += c->out.len;
    bool good = file_write_all(c->fd, buf_slice(&c->out)) == 0;
    buf_clear(&c->out);
    return good;
}

/* The first record in `in`, behind `at`. */
static enum active_frame_result take_record(struct active_contact *c, size_t *at,
                                            const char **error)
{
    struct active_record r;
    size_t len = 0;
    struct slice rest = slice_of(c->in.data + *at, c->in.len - *at);
    enum active_frame_result result = active_record_next(rest, &r, &len, error);
    if (result != ACTIVE_FRAME_WHOLE) {
        return result;
    }
    if (!check_record(c, &r)) {
        *error = "a record of a data set that does not belong there";
        return ACTIVE_FRAME_BROKEN;
    }
    if (r.kind == 'L' || r.kind == 'K') {
        buf_append(&c->out, rest.ptr, len);
    }
    *at += len;
    c->phase = r.kind == 'E' ? ACTIVE_CONTACT_WHOLE : c->phase;
    if (!write_out(c, r.kind == 'E' ? 0 : PIECE_BYTES)) {
        *error = "the disk takes no more of a data set";
        return ACTIVE_FRAME_BROKEN;
    }
    return ACTIVE_FRAME_WHOLE;
}

enum active_contact_phase active_contact_feed(struct active_contact *c, struct slice data,
                                              size_t *consumed, const char **error)
{
    enum active_frame_result result = ACTIVE_FRAME_WHOLE;
    size_t at = 0;
    assert(c->phase == ACTIVE_CONTACT_COMING);
    buf_append_slice(&c->in, data);
    while (result == ACTIVE_FRAME_WHOLE && c->phase == ACTIVE_CONTACT_COMING) {
        result = take_record(c, &at, error);
    }
    if (result == ACTIVE_FRAME_BROKEN) {
        c->phase = ACTIVE_CONTACT_BROKEN;
    }
    /* What is behind the end is frames. */
    *consumed = data.len - (c->phase == ACTIVE_CONTACT_WHOLE ? c->in.len - at : 0);
    if (c->phase == ACTIVE_CONTACT_COMING) {
        buf_consume(&c->in, at);
    } else {
        buf_deinit(&c->in);
        buf_deinit(&c->out);
    }
    return c->phase;
}

/* ---- met ---- */

static bool enter_origins(struct active_contact *c, struct active_origins *o)
{
    mem_free(c->index);
    mem_free(c->cover);
    c->cover = NULL;
    c->index = mem_calloc(c->handles, sizeof(*c->index));
    for (uint32_t i = 1; i < c->handles; i++) {
        c->index[i] = active_origins_enter(o, &c->ids[i]);
        if (c->index[i] == 0) {
            return false;
        }
    }
    c->cover = active_cover_create(o);
    memset(c->cover->sequence, 0, c->cover->count * sizeof(c->cover->sequence[0]));
    for (uint32_t i = 1; i < c->handles; i++) {
        c->cover->sequence[c->index[i]] = c->positions[i];
    }
    return true;
}

static uint64_t keys_here(const struct active_execute *x) REQUIRES(keyspace_lock);
static uint64_t keys_here(const struct active_execute *x)
{
    uint64_t keys = 0;
    for (int db = 0; db < x->dbs; db++) {
        keys += db_size(active_execute_db(x, db));
    }
    return keys;
}

bool active_contact_begin(struct active_contact *c, struct active_node *n, const char **error)
{
    const struct active_merge *m = active_node_merge(n);
    const struct active_execute *x = m->context;
    assert(c->phase == ACTIVE_CONTACT_WHOLE);
    if (c->dbs > x->dbs) {
        *error = "a data set with more databases than there are here";
        return false;
    }
    if (!enter_origins(c, active_node_origins(n))) {
        *error = "there is no room for another origin";
        return false;
    }
    c->meeting = (struct active_meeting){c->cover, c->clock};
    if (!active_node_meet_begin(n, &c->meeting, error)) {
        return false;
    }
    c->alone = keys_here(x) == 0 && active_window_bytes(m->window) == 0;
    c->phase = ACTIVE_CONTACT_THEIRS;
    return true;
}

/* Reads on until there is a whole record; what is met makes room. */
static bool read_records(struct active_contact *c)
{
    struct active_record r;
    size_t len;
    const char *error;
    buf_consume(&c->read, c->at);
    c->at = 0;
    while (c->read_from < c->size &&
           (c->read.len < PIECE_BYTES ||
            active_record_next(buf_slice(&c->read), &r, &len, &error) == ACTIVE_FRAME_MORE)) {
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

bool active_contact_read(struct active_contact *c, const char **error)
{
    if (c->phase != ACTIVE_CONTACT_THEIRS) {
        return true;
    }
    if (!c->alone && !c->known.slots) {
        active_known_init(&c->known, c->keys);
    }
    if (!read_records(c)) {
        *error = "a data set cannot be read from its file again";
        return false;
    }
    return true;
}

static void load_library(struct slice source) REQUIRES(keyspace_lock);
static void load_library(struct slice source)
{
    struct buf error = {0};
    /* One that does not load has a name that is taken here: ours stays. */
    if (!function_store_load(source, false, &error)) {
        buf_clear(&error);
    }
    buf_deinit(&error);
}

static void meet_record(struct active_contact *c, struct active_node *n,
                        const struct active_record *r, int64_t now_ms) REQUIRES(keyspace_lock);
static void meet_record(struct active_contact *c, struct active_node *n,
                        const struct active_record *r, int64_t now_ms)
{
    if (r->kind == 'L') {
        load_library(r->source);
        return;
    }
    struct active_dot dot = active_dot_of(r->stamp, c->index[r->handle], r->sequence);
    if (!c->alone && !active_known_add(&c->known, r->db, r->key)) {
        return; /* twice the same key: the first one counts */
    }
    c->met++;
    c->refused += !active_node_meet(n, r->db, r->key, dot, r->deadline_ms, r->payload, now_ms);
}

/* The next record of theirs, or the next phase; false when there is more to be read first. */
static bool step_theirs(struct active_contact *c, struct active_node *n, int64_t now_ms)
    REQUIRES(keyspace_lock);
static bool step_theirs(struct active_contact *c, struct active_node *n, int64_t now_ms)
{
    struct active_record r;
    size_t len;
    const char *error;
    struct slice rest = slice_of(c->read.data + c->at, c->read.len - c->at);
    if (active_record_next(rest, &r, &len, &error) == ACTIVE_FRAME_WHOLE) {
        c->at += len;
        meet_record(c, n, &r, now_ms);
        return true;
    }
    if (c->read_from < c->size) {
        return false;
    }
    buf_deinit(&c->read);
    c->phase = c->alone ? ACTIVE_CONTACT_OURS : ACTIVE_CONTACT_WINDOW;
    c->db = c->alone ? INT32_MAX : 0;
    return true;
}

/* ---- keys that they do not have ---- */

static void note_name(struct active_contact *c, int db, struct slice name)
{
    uint32_t head[2] = {(uint32_t)db, (uint32_t)name.len};
    if (!active_known_has(&c->known, db, name)) {
        buf_append(&c->names, (const char *)head, sizeof(head));
        buf_append_slice(&c->names, name);
    }
}

struct window_look {
    struct active_contact *c;
    const struct active_merge *m;
};

/* What is here will be met as ours. */
static void visit_window(int db, struct slice name, void *context)
{
    const struct window_look *look = context;
    if (!look->m->executor->exists(look->m->context, db, name)) {
        note_name(look->c, db, name);
    }
}

static void visit_entry(struct entry *e, void *context)
{
    struct active_contact *c = context;
    note_name(c, c->db, entry_key(e));
}

/* Looks at some more of the window; false at its end. */
static bool look_at_window(struct active_contact *c, const struct active_merge *m)
{
    struct window_look look = {c, m};
    if (c->db > 0) {
        return false;
    }
    c->cursor = active_window_scan(m->window, c->cursor, visit_window, &look);
    c->db = c->cursor == 0; /* once through */
    return true;
}

/* The same of the databases. */
static bool look_at_ours(struct active_contact *c, const struct active_execute *x)
    REQUIRES(keyspace_lock);
static bool look_at_ours(struct active_contact *c, const struct active_execute *x)
{
    if (c->db >= x->dbs) {
        return false;
    }
    bool frozen = expire_frozen;
    expire_frozen = true;
    c->cursor = db_scan(active_execute_db(x, c->db), c->cursor, WALK_ENTRIES, 0, visit_entry, c);
    expire_frozen = frozen;
    c->db += c->cursor == 0;
    return true;
}

/* The next name that was found; false when there is none. */
static bool meet_name(struct active_contact *c, struct active_node *n, int64_t now_ms)
    REQUIRES(keyspace_lock);
static bool meet_name(struct active_contact *c, struct active_node *n, int64_t now_ms)
{
    struct active_dot none = {0, 0};
    uint32_t head[2];
    if (c->name_at == c->names.len) {
        buf_clear(&c->names);
        c->name_at = 0;
        return false;
    }
    memcpy(head, c->names.data + c->name_at, sizeof(head));
    struct slice name = slice_of(c->names.data + c->name_at + sizeof(head), head[1]);
    c->name_at += sizeof(head) + head[1];
    c->refused += !active_node_meet(n, (int)head[0], name, none, 0, SLICE(""), now_ms);
    return true;
}

static void step_ours(struct active_contact *c, struct active_node *n, int64_t now_ms)
    REQUIRES(keyspace_lock);
static void step_ours(struct active_contact *c, struct active_node *n, int64_t now_ms)
{
    const struct active_merge *m = active_node_merge(n);
    if (meet_name(c, n, now_ms)) {
        return;
    }
    if (c->phase == ACTIVE_CONTACT_WINDOW && !look_at_window(c, m)) {
        c->phase = ACTIVE_CONTACT_OURS;
        c->db = 0;
    } else if (c->phase == ACTIVE_CONTACT_OURS && !look_at_ours(c, m->context)) {
        active_node_met(n);
        c->phase = ACTIVE_CONTACT_MET;
    }
}

void active_contact_step(struct active_contact *c, struct active_node *n, int64_t now_ms,
                         uint64_t budget_us)
{
    uint64_t begin = clock_mono_us();
    bool more;
    assert(active_contact_is_meeting(c));
    active_node_settle(n);
    do {
        if (c->phase == ACTIVE_CONTACT_THEIRS && !step_theirs(c, n, now_ms)) {
            return;
        }
        if (c->phase != ACTIVE_CONTACT_THEIRS) {
            step_ours(c, n, now_ms);
        }
        more = active_contact_is_meeting(c);
    } while (more && clock_mono_us() - begin < budget_us);
}
