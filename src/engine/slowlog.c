/* The slow log: a list of entries, the newest first. An entry is one allocation, made and freed
 * outside the lock; who replies entries holds references, so that formatting needs no lock either.
 */
#include "engine/slowlog.h"

#include "base/lock.h"
#include "base/mem.h"
#include "engine/redact.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>

/* What is kept of a call, as in Redis. */
#define ENTRY_MAX_ARGS 32
#define ENTRY_MAX_ARG_BYTES 128
/* Room for "... (18446744073709551615 more arguments)". */
#define TRIM_NOTE_BYTES 48

struct slowlog_entry {
    struct slowlog_entry *older, *newer; /* in the list; `older` also in a list that was cut off */
    _Atomic uint32_t refs;
    uint64_t id;
    uint64_t duration_us;
    int64_t wall_s;
    struct slice peer, name;
    int argc;
    struct slice argv[ENTRY_MAX_ARGS];
    char bytes[]; /* what the slices show */
};

static struct lock slowlog_lock = LOCK_INIT(LOCK_RANK_SLOWLOG, "slowlog");
static struct {
    struct slowlog_entry *newest GUARDED_BY(slowlog_lock);
    struct slowlog_entry *oldest GUARDED_BY(slowlog_lock);
    uint64_t count GUARDED_BY(slowlog_lock);
    uint64_t next_id GUARDED_BY(slowlog_lock);
    /* World state. */
    int64_t slower_than_us; /* negative: off; 0: everything */
    int64_t max_len;
} slowlog;

/* ---- Entries */

/* Appends `text` to the entry's bytes and returns the slice of the copy. */
static struct slice entry_keep(char **pos, struct slice text)
{
    struct slice copy = slice_of(*pos, text.len);
    if (text.len > 0) {
        memcpy(*pos, text.ptr, text.len);
        *pos += text.len;
    }
    return copy;
}

static struct slice entry_keep_argument(char **pos, struct slice argument)
{
    if (argument.len <= ENTRY_MAX_ARG_BYTES) {
        return entry_keep(pos, argument);
    }
    char note[TRIM_NOTE_BYTES];
    int note_len =
        snprintf(note, sizeof(note), "... (%zu more bytes)", argument.len - ENTRY_MAX_ARG_BYTES);
    struct slice copy = entry_keep(pos, slice_of(argument.ptr, ENTRY_MAX_ARG_BYTES));
    copy.len += entry_keep(pos, slice_of(note, (size_t)note_len)).len;
    return copy;
}

static struct slowlog_entry *entry_create(const struct call *c)
{
    struct slice peer = slice_cstr(c->session != NULL ? c->session->peer : "");
    struct slice name =
        slice_cstr(c->session != NULL && c->session->name != NULL ? c->session->name : "");
    int kept = c->argc <= ENTRY_MAX_ARGS ? c->argc : ENTRY_MAX_ARGS;
    size_t room = peer.len + name.len + (size_t)kept * (ENTRY_MAX_ARG_BYTES + TRIM_NOTE_BYTES);
    struct slowlog_entry *e = mem_alloc(sizeof(*e) + room);
    char *pos = e->bytes;
    e->peer = entry_keep(&pos, peer);
    e->name = entry_keep(&pos, name);
    e->argc = kept;
    for (int i = 0; i < kept; i++) {
        if (i == ENTRY_MAX_ARGS - 1 && c->argc > ENTRY_MAX_ARGS) {
            char note[TRIM_NOTE_BYTES];
            int note_len =
                snprintf(note, sizeof(note), "... (%d more arguments)", c->argc - kept + 1);
            e->argv[i] = entry_keep(&pos, slice_of(note, (size_t)note_len));
        } else if (call_argument_is_sensitive(c, i)) {
            e->argv[i] = entry_keep(&pos, SLICE(REDACTED_TEXT));
        } else {
            e->argv[i] = entry_keep_argument(&pos, c->argv[i]);
        }
    }
    assert((size_t)(pos - e->bytes) <= room);
    atomic_init(&e->refs, 1);
    return e;
}

static void entry_release(struct slowlog_entry *e)
{
    if (atomic_fetch_sub_explicit(&e->refs, 1, memory_order_acq_rel) == 1) {
        mem_free(e);
    }
}

/* Releases a list that nobody else can reach. */
static void entries_release(struct slowlog_entry *e)
{
    while (e != NULL) {
        struct slowlog_entry *older = e->older;
        entry_release(e);
        e = older;
    }
}

/* ---- The list */

/* Cuts off the oldest entries, so that at most `keep` stay, and returns them, linked by `older`. As
 * entries come one by one, more than one goes only when the bound was lowered. */
static struct slowlog_entry *slowlog_cut(uint64_t keep) REQUIRES(slowlog_lock);
static struct slowlog_entry *slowlog_cut(uint64_t keep)
{
    struct slowlog_entry *cut = NULL;
    while (slowlog.count > keep) {
        struct slowlog_entry *e = slowlog.oldest;
        assert(e != NULL);
        slowlog.oldest = e->newer;
        if (slowlog.oldest != NULL) {
            slowlog.oldest->older = NULL;
        } else {
            slowlog.newest = NULL;
        }
        e->older = cut;
        cut = e;
        slowlog.count--;
    }
    return cut;
}

bool slowlog_wants(uint64_t duration_us)
{
    return slowlog.slower_than_us >= 0 && duration_us >= (uint64_t)slowlog.slower_than_us;
}

void slowlog_note(const struct call *c, uint64_t duration_us, int64_t wall_s)
{
    if (!slowlog_wants(duration_us) ||
        (c->cmd != NULL && (c->cmd->flags & CMD_SKIP_SLOWLOG) != 0)) {
        return;
    }
    struct slowlog_entry *e = entry_create(c);
    e->duration_us = duration_us;
    e->wall_s = wall_s;
    lock_acquire(&slowlog_lock);
    e->id = slowlog.next_id++;
    e->older = slowlog.newest;
    e->newer = NULL;
    if (e->older != NULL) {
        e->older->newer = e;
    } else {
        slowlog.oldest = e;
    }
    slowlog.newest = e;
    slowlog.count++;
    struct slowlog_entry *cut = slowlog_cut((uint64_t)slowlog.max_len);
    lock_release(&slowlog_lock);
    entries_release(cut);
}

/* Takes references to up to `count` entries (-1: all), the newest first; the caller releases them
 * and frees the list. */
static struct slowlog_entry **entries_acquire(int64_t count, uint64_t *taken)
{
    uint64_t room = slowlog_len();
    if (count >= 0 && (uint64_t)count < room) {
        room = (uint64_t)count;
    }
    struct slowlog_entry **entries = mem_alloc(room * sizeof(*entries));
    *taken = 0;
    lock_acquire(&slowlog_lock);
    for (struct slowlog_entry *e = slowlog.newest; e != NULL && *taken < room; e = e->older) {
        atomic_fetch_add_explicit(&e->refs, 1, memory_order_relaxed);
        entries[(*taken)++] = e;
    }
    lock_release(&slowlog_lock);
    return entries;
}

uint64_t slowlog_each(int64_t count, void (*visit)(const struct slowlog_view *entry, void *context),
                      void *context)
{
    uint64_t taken;
    struct slowlog_entry **entries = entries_acquire(count, &taken);
    for (uint64_t i = 0; i < taken; i++) {
        const struct slowlog_entry *e = entries[i];
        struct slowlog_view view = {.id = e->id,
                                    .duration_us = e->duration_us,
                                    .wall_s = e->wall_s,
                                    .peer = e->peer,
                                    .name = e->name,
                                    .argc = e->argc,
                                    .argv = e->argv};
        visit(&view, context);
        entry_release(entries[i]);
    }
    mem_free(entries);
    return taken;
}

static void reply_entry(const struct slowlog_view *e, void *context)
{
    struct reply *r = context;
    reply_array(r, 6);
    reply_i64(r, (int64_t)e->id);
    reply_i64(r, e->wall_s);
    reply_i64(r, (int64_t)e->duration_us);
    reply_array(r, (uint64_t)e->argc);
    for (int i = 0; i < e->argc; i++) {
        reply_bulk(r, e->argv[i]);
    }
    reply_bulk(r, e->peer);
    reply_bulk(r, e->name);
}

void slowlog_reply(struct reply *r, int64_t count)
{
    uint32_t list = reply_deferred(r);
    reply_set_deferred_array(r, list, slowlog_each(count, reply_entry, r));
}

uint64_t slowlog_len(void)
{
    lock_acquire(&slowlog_lock);
    uint64_t len = slowlog.count;
    lock_release(&slowlog_lock);
    return len;
}

void slowlog_reset(void)
{
    lock_acquire(&slowlog_lock);
    struct slowlog_entry *all = slowlog_cut(0);
    lock_release(&slowlog_lock);
    entries_release(all);
}

const struct option slowlog_options[] = {
    {.name = "slowlog-log-slower-than",
     .type = OPTION_INT,
     .target = &slowlog.slower_than_us,
     .initial = "10000",
     .min = -1,
     .max = INT64_MAX},
    {.name = "slowlog-max-len",
     .type = OPTION_INT,
     .target = &slowlog.max_len,
     .initial = "128",
     .min = 0,
     .max = INT64_MAX},
    {.name = NULL},
};
