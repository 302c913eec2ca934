/* See tracking.h. */
#include "engine/tracking.h"

#include "base/mem.h"
#include "engine/transaction.h"

#include <assert.h>
#include <stdatomic.h>

#define BLOCK_BYTES ((size_t)64 * 1024)
/* What some reader may leave unread. */
#define UNREAD_MAX_BYTES ((uint64_t)64 * 1024 * 1024)
/* Capacity of the notes that is kept for the next turn. */
#define NOTES_KEPT_BYTES ((size_t)64 * 1024)

/* An entry of the log; the key's bytes follow. Everything is aligned to 8 bytes. */
struct entry_head {
    uint64_t seq, writer;
    size_t len;
    bool everything;
    _Atomic bool taken; /* of "everything": some reader has it */
};

struct tracking_block {
    _Atomic uint32_t refs;                 /* the log's, the block's before it, those of readers */
    _Atomic(struct tracking_block *) next; /* set once */
    _Atomic size_t filled; /* released by the writer when the bytes before it are written */
    size_t capacity;
    char bytes[];
};

struct mark {
    _Atomic uint64_t consumed_bytes;
} ALIGNED(CACHE_LINE_BYTES);

static struct {
    void (*posted)(uint64_t readers); /* immutable after boot */
    _Atomic uint64_t readers;         /* bit i: thread i reads */
    /* Keyspace state: */
    struct tracking_block *last;
    uint64_t appended_bytes;
    bool crowded;
    struct entry_head *everything; /* the last entry, when it is "everything"; else NULL */
    /* Written under the exclusive lock, read under it in any mode. */
    uint64_t seq;
    struct mark marks[TRACKING_READERS_MAX];
} state;

_Thread_local uint64_t tracking_writer;

/* A read; the key's bytes follow. */
struct note {
    uint64_t seq, hash;
    struct session *session;
    size_t len;
};

static _Thread_local struct buf notes;

/* ---- blocks ---- */

static void block_release(struct tracking_block *b)
{
    /* Acquire and release: who frees it comes after all who have read it. */
    while (b && atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) == 1) {
        struct tracking_block *next = atomic_load_explicit(&b->next, memory_order_relaxed);
        mem_free(b);
        b = next;
    }
}

/* A new last block with room for an entry of `size`. */
static void add_block(size_t size)
{
    struct tracking_block *before = state.last;
    size_t capacity = size > BLOCK_BYTES ? size : BLOCK_BYTES;
    struct tracking_block *b = mem_alloc(sizeof(*b) + capacity);
    atomic_init(&b->refs, before ? 2 : 1);
    atomic_init(&b->next, NULL);
    atomic_init(&b->filled, 0);
    b->capacity = capacity;
    state.last = b;
    state.everything = NULL; /* may go with its block */
    if (before) {
        /* Release: readers that follow it see the block as made. */
        atomic_store_explicit(&before->next, b, memory_order_release);
        block_release(before);
    }
}

/* ---- writing; the exclusive lock is held ---- */

static uint64_t most_unread(uint64_t readers)
{
    uint64_t most = 0;
    for (; readers; readers &= readers - 1) {
        const struct mark *m = &state.marks[__builtin_ctzll(readers)];
        uint64_t consumed = atomic_load_explicit(&m->consumed_bytes, memory_order_relaxed);
        uint64_t unread = state.appended_bytes - consumed;
        most = unread > most ? unread : most;
    }
    return most;
}

static size_t entry_size(size_t len)
{
    return sizeof(struct entry_head) + ((len + 7) & ~(size_t)7);
}

static void append_entry(struct slice key, bool everything)
{
    size_t size = entry_size(key.len);
    struct tracking_block *b = state.last;
    size_t at = b ? atomic_load_explicit(&b->filled, memory_order_relaxed) : 0;
    if (!b || b->capacity - at < size) {
        add_block(size);
        b = state.last;
        at = 0;
    }
    struct entry_head *e = (struct entry_head *)(void *)(b->bytes + at);
    e->seq = ++state.seq;
    e->writer = everything ? 0 : tracking_writer;
    e->len = key.len;
    e->everything = everything;
    atomic_init(&e->taken, false);
    if (key.len > 0) {
        memcpy(e + 1, key.ptr, key.len);
    }
    state.everything = everything ? e : NULL;
    state.appended_bytes += size;
    atomic_store_explicit(&b->filled, at + size, memory_order_release);
}

static void append(struct slice key, uint64_t readers)
{
    size_t size = entry_size(key.len);
    bool new_block = !state.last || state.last->capacity - atomic_load(&state.last->filled) < size;
    if (new_block || state.crowded) {
        state.crowded = most_unread(readers) + size > UNREAD_MAX_BYTES;
    }
    if (!state.crowded) {
        append_entry(key, false);
    } else if (!state.everything || atomic_load(&state.everything->taken)) {
        /* While nobody has taken it, the entry stands for this change as well: who takes it does so
         * after the change. */
        append_entry(slice_of(NULL, 0), true);
    }
    state.posted(readers);
}

static void on_change(struct db *db UNUSED, struct slice key)
{
    /* Whole databases: tracking_flushed. Relaxed: a thread begins to read while the world stands
     * still. */
    uint64_t readers = atomic_load_explicit(&state.readers, memory_order_relaxed);
    if (unlikely(readers) && key.ptr) {
        append(key, readers);
    }
}

void tracking_flushed(void)
{
    uint64_t readers = atomic_load_explicit(&state.readers, memory_order_relaxed);
    if (readers) {
        append_entry(slice_of(NULL, 0), true);
        state.posted(readers);
    }
}

/* ---- reading ---- */

void tracking_join(int reader, struct tracking_position *at)
{
    assert(!at->block && reader < TRACKING_READERS_MAX);
    gil_assert_world();
    if (!state.last) {
        add_block(0);
    }
    atomic_fetch_add_explicit(&state.last->refs, 1, memory_order_relaxed);
    *at = (struct tracking_position){state.last, atomic_load(&state.last->filled),
                                     state.appended_bytes};
    tracking_caught_up(reader, at);
    atomic_fetch_or(&state.readers, (uint64_t)1 << reader);
}

void tracking_leave(int reader, struct tracking_position *at)
{
    atomic_fetch_and(&state.readers, ~((uint64_t)1 << reader));
    block_release(at->block);
    *at = (struct tracking_position){NULL, 0, 0};
    buf_deinit(&notes);
}

/* Goes on to the next block when this one is read to its end. */
static bool find_entry(struct tracking_position *at)
{
    for (;;) {
        struct tracking_block *b = at->block;
        /* Before the fill mark: with a next block, that mark is the last one. */
        struct tracking_block *next = atomic_load_explicit(&b->next, memory_order_acquire);
        if (at->offset < atomic_load_explicit(&b->filled, memory_order_acquire)) {
            return true;
        }
        if (!next) {
            return false;
        }
        atomic_fetch_add_explicit(&next->refs, 1, memory_order_relaxed);
        at->block = next;
        at->offset = 0;
        block_release(b);
    }
}

bool tracking_next(struct tracking_position *at, uint64_t up_to, struct tracking_change *change)
{
    if (likely(!find_entry(at))) {
        return false;
    }
    struct entry_head *e = (struct entry_head *)(void *)(at->block->bytes + at->offset);
    if (e->seq > up_to) {
        return false;
    }
    if (e->everything) {
        /* Before it is dealt out: see append. */
        atomic_store(&e->taken, true);
    }
    *change = (struct tracking_change){
        e->writer, e->everything ? slice_of(NULL, 0) : slice_of((const char *)(e + 1), e->len)};
    at->offset += entry_size(e->len);
    at->consumed_bytes += entry_size(e->len);
    return true;
}

void tracking_caught_up(int reader, const struct tracking_position *at)
{
    atomic_store_explicit(&state.marks[reader].consumed_bytes, at->consumed_bytes,
                          memory_order_relaxed);
}

/* ---- notes of reads ---- */

static void note_reads(const struct call *c)
{
    for (int k = 0; k < c->key_count; k++) {
        struct slice name = c->keys[k].name;
        struct note n = {state.seq, c->keys[k].hash, c->session, name.len};
        buf_append(&notes, (const char *)&n, sizeof(n));
        buf_append_slice(&notes, name);
    }
}

/* Whether reads are to be remembered now. */
static bool remembers(unsigned flags)
{
    if (flags & TRACKING_BCAST) {
        return false;
    }
    if (flags & TRACKING_OPTIN) {
        return flags & TRACKING_CACHING;
    }
    return !(flags & TRACKING_OPTOUT && flags & TRACKING_CACHING);
}

static bool is_client_command(const struct command *cmd)
{
    return cmd && cmd->parent && strcmp(cmd->parent->full_name, "client") == 0;
}

void tracking_after_call(struct call *c)
{
    struct session *s = c->session;
    bool queued = c->refusal.ptr == transaction_queued.ptr;
    /* What a script has read its commands tell: not the keys that it was given. */
    bool reads =
        c->cmd && c->cmd->flags & CMD_READONLY && !(c->cmd->categories & CATEGORY_SCRIPTING);
    if (!c->refusal.ptr && reads && remembers(s->tracking) && !c->retry) {
        assert(c->key_count == 0 || c->held == ACCESS_SHARED || c->held == ACCESS_EXCLUSIVE);
        note_reads(c);
    }
    bool opens =
        c->cmd && !c->refusal.ptr && c->cmd->row->transaction == TRANSACTION_OPENS && !c->execution;
    if (s->tracking & TRACKING_CACHING && !c->nested && !queued && !opens &&
        !is_client_command(c->cmd)) {
        s->tracking &= ~(unsigned)TRACKING_CACHING;
    }
}

bool tracking_has_reads(void)
{
    return notes.len > 0;
}

bool tracking_next_read(size_t *offset, struct tracking_read *read)
{
    struct note n;
    if (*offset == notes.len) {
        buf_clear(&notes);
        if (notes.capacity > NOTES_KEPT_BYTES) {
            buf_deinit(&notes);
        }
        return false;
    }
    memcpy(&n, notes.data + *offset, sizeof(n));
    *offset += sizeof(n);
    *read =
        (struct tracking_read){n.seq, n.session, {slice_of(notes.data + *offset, n.len), n.hash}};
    *offset += n.len;
    return true;
}

/* ---- boot ---- */

void tracking_setup(void (*posted)(uint64_t readers))
{
    state.posted = posted;
    event_add_change_listener(on_change);
}

void tracking_teardown(void)
{
    assert(atomic_load(&state.readers) == 0);
    block_release(state.last);
    state.last = NULL;
    state.everything = NULL;
}
