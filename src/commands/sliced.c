/* See sliced.h. */
#include "commands/sliced.h"

#include "base/mem.h"
#include "keyspace/changes.h"
#include "keyspace/reclaim.h"

/* What takes more work than this many members goes in slices: some milliseconds. What makes a new
 * value of them is slower. */
#define WHOLE_MEMBERS_READ 32768
#define WHOLE_MEMBERS_STORED 8192
/* Beginnings in slices; the one after them is not interrupted. */
#define BEGINNINGS_MAX 4

enum stage { GATHER, ARRANGE, PUBLISH };

struct sliced {
    const struct sliced_kind *kind;
    void *request;
    void *work; /* NULL: to begin anew */
    enum stage stage;
    bool stores;
    unsigned beginnings;
    int count;             /* of the keys that are read */
    struct key *keys;      /* those, behind the destination if it stores */
    struct entry **values; /* at the beginning */
    uint64_t *seen;        /* changes_count() of each, then */
};

bool sliced_fits(const struct call *c, uint64_t members)
{
    bool stores = c->cmd->flags & CMD_WRITE;
    return members > (stores ? WHOLE_MEMBERS_STORED : WHOLE_MEMBERS_READ) && !c->nested &&
           !c->session->internal && !c->session->tracking &&
           !(stores && c->session->subscriptions > 0);
}

static inline struct key *source(const struct sliced *s, int i)
{
    return &s->keys[s->stores + i];
}

static void drop_work(struct sliced *s)
{
    if (s->work) {
        reclaim_call(s->kind->release, s->work);
        s->work = NULL;
    }
}

static void sliced_destroy(void *state)
{
    struct sliced *s = state;
    changes_end();
    drop_work(s);
    mem_free(s->request);
    mem_free(s->keys);
    mem_free(s->values);
    mem_free(s->seen);
    mem_free(s);
}

/* Copies keys, names and all, into one block. */
static struct key *copy_keys(const struct key *keys, int count)
{
    size_t bytes = (size_t)count * sizeof(*keys);
    for (int i = 0; i < count; i++) {
        bytes += keys[i].name.len;
    }
    struct key *copies = mem_alloc(bytes);
    char *names = (char *)(copies + count);
    for (int i = 0; i < count; i++) {
        copies[i] = (struct key){slice_of(names, keys[i].name.len), keys[i].hash};
        if (keys[i].name.len > 0) {
            memcpy(names, keys[i].name.ptr, keys[i].name.len);
        }
        names += keys[i].name.len;
    }
    return copies;
}

static struct entry *look_at(struct call *c, const struct key *key) REQUIRES_SHARED(keyspace_lock)
{
    return db_read(c->db, key, c->now_ms, DB_NO_TOUCH | DB_NO_STATS);
}

/* ---- beginning ---- */

/* Begins with what the keys hold now; false when an error is replied. */
static bool begin(struct call *c, struct sliced *s) REQUIRES_SHARED(keyspace_lock)
{
    for (int i = 0; i < s->count; i++) {
        s->values[i] = look_at(c, source(s, i));
    }
    for (int i = 0; i < s->count; i++) {
        s->seen[i] = changes_count(c->db, source(s, i));
    }
    s->work = s->kind->begin(c, s->request, s->values, s->count);
    return s->work != NULL;
}

/* Some members are due, which only an exclusive hold can take out: that is noted, and happens
 * before the next slice. Who holds it already takes them out on looking. */
static bool some_due(struct call *c, const struct sliced *s) REQUIRES_SHARED(keyspace_lock)
{
    bool due = false;
    for (int i = 0; i < s->count && !keyspace_is_exclusive(); i++) {
        due = db_note_due(c->db, source(s, i), c->now_ms) || due;
    }
    return due;
}

static bool is_unchanged(const struct call *c, const struct sliced *s)
    REQUIRES_SHARED(keyspace_lock)
{
    for (int i = 0; i < s->count; i++) {
        if (s->seen[i] != changes_count(c->db, source(s, i))) {
            return false;
        }
    }
    return true;
}

/* The same in exclusive mode, for which also what is due by now is gone: looking takes it out. */
static bool is_current(struct call *c, const struct sliced *s) REQUIRES(keyspace_lock)
{
    for (int i = 0; i < s->count; i++) {
        if (look_at(c, source(s, i)) != s->values[i]) {
            return false;
        }
    }
    return is_unchanged(c, s);
}

/* ---- stages: true when the call has its reply ---- */

static bool step_publish(struct call *c, struct sliced *s);

/* The next slice is one of another stage. */
static bool go_on(struct call *c, struct sliced *s, enum stage stage)
{
    static const enum call_access accesses[] = {
        [GATHER] = ACCESS_SHARED, [ARRANGE] = ACCESS_NONE, [PUBLISH] = ACCESS_EXCLUSIVE};
    s->stage = stage;
    c->continuation.access = accesses[stage];
    return false;
}

static bool begin_anew(struct call *c, struct sliced *s, bool *replied)
    REQUIRES_SHARED(keyspace_lock)
{
    drop_work(s);
    s->beginnings++;
    if (s->beginnings > BEGINNINGS_MAX && c->held != ACCESS_EXCLUSIVE) {
        c->continuation.access = ACCESS_EXCLUSIVE; /* from here to the end */
        return false;
    }
    if (some_due(c, s)) {
        return false;
    }
    *replied = !begin(c, s);
    return !*replied;
}

/* The work has all that it needs of the keys. */
static bool gathered(struct call *c, struct sliced *s)
{
    if (s->stores || s->kind->arrange) {
        return go_on(c, s, ARRANGE);
    }
    s->kind->finish(c, s->work);
    return true;
}

/* All in the hold that has begun, as far as it takes one. */
static bool run_whole(struct call *c, struct sliced *s)
{
    keyspace_assert_exclusive();
    bool done = s->kind->gather(s->work, 0);
    assert(done);
    if (!s->stores) {
        return gathered(c, s);
    }
    done = !s->kind->arrange || s->kind->arrange(s->work, 0);
    assert(done);
    (void)done;
    return step_publish(c, s);
}

static bool step_gather(struct call *c, struct sliced *s)
{
    bool replied = false;
    keyspace_assert_shared();
    if ((!s->work || !is_unchanged(c, s)) && !begin_anew(c, s, &replied)) {
        return replied;
    }
    if (s->beginnings > BEGINNINGS_MAX) {
        return run_whole(c, s);
    }
    return s->kind->gather(s->work, SLICE_NS) && gathered(c, s);
}

static bool step_arrange(struct call *c, struct sliced *s)
{
    if (s->kind->arrange && !s->kind->arrange(s->work, SLICE_NS)) {
        return false;
    }
    if (s->stores) {
        return go_on(c, s, PUBLISH);
    }
    s->kind->finish(c, s->work);
    return true;
}

static bool step_publish(struct call *c, struct sliced *s)
{
    keyspace_assert_exclusive();
    if (!is_current(c, s)) {
        drop_work(s);
        return go_on(c, s, GATHER);
    }
    c->keys = s->keys;
    c->key_count = 1;
    s->kind->finish(c, s->work);
    return true;
}

static bool step(struct call *c, void *state)
{
    static bool (*const stages[])(struct call *, struct sliced *) = {
        [GATHER] = step_gather, [ARRANGE] = step_arrange, [PUBLISH] = step_publish};
    struct sliced *s = state;
    return stages[s->stage](c, s);
}

void sliced_begin(struct call *c, const struct sliced_kind *kind, void *request_take, int first,
                  int count, bool stores)
{
    struct sliced *s = mem_calloc(1, sizeof(*s));
    assert(first + count <= c->key_count && (!stores || first == 1));
    s->kind = kind;
    s->request = request_take;
    s->stores = stores;
    s->count = count;
    s->keys = copy_keys(call_key(c, first - stores), count + stores);
    s->values = mem_alloc((size_t)count * sizeof(*s->values));
    s->seen = mem_alloc((size_t)count * sizeof(*s->seen));
    s->beginnings = 1;
    changes_begin();
    if (!begin(c, s)) {
        sliced_destroy(s);
        return;
    }
    c->continuation = (struct continuation){step, sliced_destroy, s, ACCESS_SHARED};
}
