/* See reserve.h. */
#include "repl/reserve.h"

#include "base/clock.h"
#include "base/futex.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rand.h"
#include "base/thread.h"
#include "repl/reserve_file.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

/* Blocks that are written at a time: 1 MiB. */
#define BATCH_SLOTS 64
/* The thread is woken when so much more waits: a system call for each block would be felt. */
#define WAKE_BYTES ((uint64_t)256 * 1024)
/* A broken file that somebody still reads in is looked at again so soon. */
#define READERS_MS 10
/* What may wait while there is no file: the block that is being filled, and the one before. */
#define BROKEN_QUEUE_BYTES ((uint64_t)4 * CHAIN_BLOCK_BYTES)

/* Of all of them: there are two at most, and a lock lives for ever (base/lock.h). */
static struct lock reserves_lock = LOCK_INIT(LOCK_RANK_RESERVE, "reserve");

struct reserve {
    char name[64];
    uint64_t slots; /* of the file */
    pthread_t thread;
    _Atomic uint32_t wakes; /* counts; the thread sleeps on it */
    _Atomic bool ending;
    /* The writer's: */
    uint64_t woken_at;
    /* Written by it (release: who sees the end sees the bytes before it): */
    _Atomic uint64_t end;
    /* Behind the lock: */
    enum reserve_state state;
    int fd;                    /* READY; or BROKEN, while somebody reads; else -1 */
    unsigned reading;          /* so many use it */
    struct chain_reader queue; /* what is not written begins there; block NULL: follows nothing */
    uint64_t base;             /* start of the first block of this life, which has slot 0 */
    uint64_t begin;
    uint64_t shown; /* who comes is not given what is before it */
    uint64_t life;
    uint64_t faults;
    /* Changed behind the lock: the queue's position, for the writer. */
    _Atomic uint64_t written;
    _Atomic uint64_t queue_max;
    _Atomic bool overrun; /* the log is to say so */
    /* The thread's: */
    int64_t retry_ms; /* monotonic */
    char batch[BATCH_SLOTS * RESERVE_SLOT_BYTES];
};

static int64_t now_ms(void)
{
    return (int64_t)(clock_mono_us() / 1000);
}

static void check(const struct reserve *r)
{
    assert(r->begin <= atomic_load(&r->end));
    assert(!r->queue.block || r->begin <= r->queue.position);
}

static void wake(struct reserve *r)
{
    atomic_fetch_add(&r->wakes, 1);
    futex_wake(&r->wakes, 1);
}

static uint64_t slot_of(const struct reserve *r, uint64_t start)
{
    return (start - r->base) / CHAIN_BLOCK_BYTES % r->slots;
}

/* ---- the writer's side ---- */

/* Under the lock: nothing before `begin` is kept any more. */
static void forget_before(struct reserve *r, uint64_t begin)
{
    r->begin = begin > r->begin ? begin : r->begin;
}

/* Under the lock: what waits is given up, and with it all before. The old reader is to be dropped
 * outside of the lock. */
static struct chain_reader skip_queue(struct reserve *r, const struct chain *c)
{
    struct chain_reader old = r->queue;
    chain_reader_at_end(&r->queue, c);
    forget_before(r, c->end);
    atomic_store(&r->written, c->end);
    return old;
}

void reserve_follow(struct reserve *r, const struct chain *c)
{
    uint64_t life = rand_u64();
    lock_acquire(&reserves_lock);
    atomic_store(&r->end, c->end);
    r->begin = r->shown = 0;
    struct chain_reader old = skip_queue(r, c);
    r->base = r->queue.block->start;
    r->life = life;
    check(r);
    lock_release(&reserves_lock);
    chain_reader_drop(&old);
    r->woken_at = c->end;
}

void reserve_hide(struct reserve *r, const struct chain *c)
{
    lock_acquire(&reserves_lock);
    r->shown = c->end;
    lock_release(&reserves_lock);
}

void reserve_leave(struct reserve *r)
{
    lock_acquire(&reserves_lock);
    struct chain_reader old = r->queue;
    r->queue = (struct chain_reader){0};
    r->begin = atomic_load(&r->end);
    r->life++;
    lock_release(&reserves_lock);
    chain_reader_drop(&old);
}

void reserve_note(struct reserve *r, const struct chain *c)
{
    atomic_store_explicit(&r->end, c->end, memory_order_release);
    if (c->end - atomic_load_explicit(&r->written, memory_order_relaxed) >
        atomic_load_explicit(&r->queue_max, memory_order_relaxed)) {
        lock_acquire(&reserves_lock);
        bool counts = r->state == RESERVE_READY;
        struct chain_reader old = skip_queue(r, c);
        r->faults += counts;
        check(r);
        lock_release(&reserves_lock);
        chain_reader_drop(&old);
        atomic_store(&r->overrun, counts || atomic_load(&r->overrun));
    }
    if (c->end - r->woken_at >= WAKE_BYTES) {
        r->woken_at = c->end;
        wake(r);
    }
}

/* ---- faults ---- */

/* Under the lock: what is in the file is given up. */
static void set_broken(struct reserve *r)
{
    r->state = RESERVE_BROKEN;
    r->faults++;
    forget_before(r, r->queue.block ? r->queue.position : atomic_load(&r->end));
    atomic_store(&r->queue_max, BROKEN_QUEUE_BYTES);
}

static void say_broken(const struct reserve *r, const char *what, int error)
{
    log_warning("The reserve on disk (%s) %s: %s. What it kept is given up; it is made anew in %d "
                "seconds",
                r->name, what, error == EBADMSG ? "it is damaged" : strerror(error),
                RESERVE_RETRY_MS / 1000);
}

/* ---- reading ---- */

/* Under the lock. */
static uint64_t first_shown(const struct reserve *r)
{
    return r->begin > r->shown ? r->begin : r->shown;
}

bool reserve_place_at(struct reserve *r, uint64_t position, struct reserve_place *place)
{
    lock_acquire(&reserves_lock);
    bool kept = r->queue.block && position >= first_shown(r) && position <= atomic_load(&r->end);
    *place = (struct reserve_place){r->life, position};
    lock_release(&reserves_lock);
    return kept;
}

bool reserve_is_of_now(struct reserve *r, const struct reserve_place *place)
{
    lock_acquire(&reserves_lock);
    bool same = r->queue.block && r->life == place->life;
    lock_release(&reserves_lock);
    return same;
}

/* Under the lock. */
static bool keeps(const struct reserve *r, const struct reserve_place *place)
{
    return r->queue.block && place->life == r->life && place->position >= r->begin &&
           place->position <= atomic_load(&r->end);
}

/* From the chain; lets go of the reader. */
static size_t read_queue(struct chain_reader *from, char *into, size_t max)
{
    struct iovec vectors[8];
    size_t got = 0;
    int count = chain_reader_vectors(from, vectors, 8);
    for (int i = 0; i < count && got < max; i++) {
        size_t take = vectors[i].iov_len < max - got ? vectors[i].iov_len : max - got;
        memcpy(into + got, vectors[i].iov_base, take);
        got += take;
    }
    chain_reader_drop(from);
    return got;
}

/* What is to be read from the file, noted under the lock. */
struct file_part {
    int fd;
    uint64_t life, position, end; /* end: what is behind is not in the file */
    uint64_t base, slots;
};

/* How much was read; what is wrong with the file goes to *error. */
static size_t read_file(const struct file_part *part, char *into, size_t max, int *error)
{
    char slot[RESERVE_SLOT_BYTES];
    uint64_t at = part->position;
    size_t got = 0;
    *error = 0;
    while (at < part->end && got < max) {
        uint64_t number = (at - part->base) / CHAIN_BLOCK_BYTES;
        uint64_t start = part->base + number * CHAIN_BLOCK_BYTES, skip = at - start;
        const char *bytes = NULL;
        *error = reserve_file_read(part->fd, number % part->slots, part->life, start, slot, &bytes);
        if (*error) {
            break;
        }
        size_t take = (size_t)(CHAIN_BLOCK_BYTES - skip);
        take = take < max - got ? take : max - got;
        memcpy(into + got, bytes + skip, take);
        got += take;
        at += take;
    }
    return got;
}

enum source { SOURCE_NONE, SOURCE_FILE, SOURCE_QUEUE };

/* Begins to read at the place, where that is kept: *part, or *queue. */
static enum source begin_reading(struct reserve *r, const struct reserve_place *place,
                                 struct file_part *part, struct chain_reader *queue)
{
    enum source from = SOURCE_NONE;
    lock_acquire(&reserves_lock);
    if (keeps(r, place) && place->position < r->queue.position) {
        from = SOURCE_FILE;
        r->reading++;
        *part = (struct file_part){.fd = r->fd,
                                   .life = r->life,
                                   .position = place->position,
                                   .end = r->queue.position,
                                   .base = r->base,
                                   .slots = r->slots};
    } else if (keeps(r, place)) {
        from = SOURCE_QUEUE;
        chain_reader_at(queue, &r->queue, place->position);
    }
    lock_release(&reserves_lock);
    return from;
}

/* What was read was kept all the time; if not so for its fault, the file is given up. */
static bool end_reading(struct reserve *r, const struct reserve_place *place, int error)
{
    lock_acquire(&reserves_lock);
    r->reading--;
    bool kept = keeps(r, place), breaks = kept && error && r->state == RESERVE_READY;
    if (breaks) {
        set_broken(r);
    }
    lock_release(&reserves_lock);
    if (breaks) {
        say_broken(r, "can't be read", error);
        wake(r);
    }
    return kept && !error;
}

ssize_t reserve_read(struct reserve *r, struct reserve_place *place, char *into, size_t max)
{
    struct file_part part = {0};
    struct chain_reader queue = {0};
    enum source from = begin_reading(r, place, &part, &queue);
    size_t got = 0;
    if (from == SOURCE_FILE) {
        int error = 0;
        got = read_file(&part, into, max, &error);
        if (!end_reading(r, place, error)) {
            return -1;
        }
    } else if (from == SOURCE_QUEUE) {
        got = read_queue(&queue, into, max);
    } else {
        return -1;
    }
    place->position += got;
    return (ssize_t)got;
}

/* ---- the thread ---- */

/* Blocks on their way to the file. */
struct batch {
    uint64_t life, from, end; /* offsets */
    uint64_t index;           /* of the first slot */
    unsigned count;
};

/* Whether the block is full, there is another one behind it, and the writer has said so: what he
 * appends just now is not kept yet. */
static bool is_done(const struct reserve *r, const struct chain_block *b)
{
    return atomic_load_explicit(&b->next, memory_order_acquire) != NULL &&
           b->start + CHAIN_BLOCK_BYTES <= atomic_load_explicit(&r->end, memory_order_acquire);
}

/* Under the lock: where the writing goes on, with a reader of its own. */
static bool begin_batch(struct reserve *r, struct batch *b, struct chain_reader *at)
{
    if (r->state != RESERVE_READY || !r->queue.block || !is_done(r, r->queue.block)) {
        return false;
    }
    chain_reader_at(at, &r->queue, r->queue.position);
    *b = (struct batch){
        .life = r->life, .from = r->queue.position, .index = slot_of(r, r->queue.block->start)};
    return true;
}

/* Fills the thread's buffer, up to the file's end; the reader is let go of, so that a disk that
 * hangs holds nothing in memory. */
static void fill_batch(struct reserve *r, struct batch *b, struct chain_reader *at)
{
    uint64_t left = r->slots - b->index;
    unsigned room = left < BATCH_SLOTS ? (unsigned)left : BATCH_SLOTS;
    while (b->count < room && is_done(r, at->block)) {
        uint64_t start = at->block->start;
        reserve_slot_fill(r->batch + (size_t)b->count++ * RESERVE_SLOT_BYTES, b->life, start,
                          at->block->bytes);
        chain_reader_advance(at, start + CHAIN_BLOCK_BYTES - at->position);
    }
    b->end = at->position;
    chain_reader_drop(at);
}

/* Under the lock: nothing has happened since it was begun. */
static bool is_wanted(const struct reserve *r, const struct batch *b)
{
    return r->state == RESERVE_READY && r->queue.block && r->life == b->life &&
           r->queue.position == b->from;
}

/* What the batch overwrites is not kept any more. False: it is not wanted. */
static bool make_room(struct reserve *r, const struct batch *b)
{
    uint64_t capacity = r->slots * CHAIN_BLOCK_BYTES;
    lock_acquire(&reserves_lock);
    bool wanted = is_wanted(r, b);
    if (wanted && b->end - r->base > capacity) {
        forget_before(r, b->end - capacity);
    }
    lock_release(&reserves_lock);
    return wanted;
}

/* It is in the file, or can't be written. */
static void end_batch(struct reserve *r, const struct batch *b, int error)
{
    struct chain_reader old = {0};
    lock_acquire(&reserves_lock);
    bool breaks = error && r->state == RESERVE_READY;
    if (breaks) {
        set_broken(r);
    } else if (!error && is_wanted(r, b)) {
        old = r->queue;
        chain_reader_at(&r->queue, &old, b->end);
        chain_reader_advance(&r->queue, 0); /* on to the next block, which is there */
        atomic_store(&r->written, b->end);
        check(r);
    }
    lock_release(&reserves_lock);
    chain_reader_drop(&old);
    if (breaks) {
        say_broken(r, "can't be written", error);
    }
}

/* Writes what waits, as much as goes at a time; false when nothing did. */
static bool write_some(struct reserve *r)
{
    struct batch b = {0};
    struct chain_reader at = {0};
    lock_acquire(&reserves_lock);
    bool begun = begin_batch(r, &b, &at);
    lock_release(&reserves_lock);
    if (!begun) {
        return false;
    }
    fill_batch(r, &b, &at);
    if (make_room(r, &b)) {
        end_batch(r, &b, reserve_file_write(r->fd, b.index, r->batch, b.count));
    }
    return true;
}

/* The file of a broken one goes once nobody reads in it. */
static void drop_file(struct reserve *r)
{
    lock_acquire(&reserves_lock);
    int fd = r->state == RESERVE_BROKEN && r->reading == 0 ? r->fd : -1;
    r->fd = fd >= 0 ? -1 : r->fd;
    if (fd >= 0) {
        r->retry_ms = now_ms() + RESERVE_RETRY_MS;
    }
    lock_release(&reserves_lock);
    if (fd >= 0) {
        close(fd);
    }
}

static void make_file(struct reserve *r)
{
    int fd = -1, error = reserve_file_create(r->name, r->slots * RESERVE_SLOT_BYTES, &fd);
    lock_acquire(&reserves_lock);
    bool was_broken = r->state == RESERVE_BROKEN;
    if (error) {
        set_broken(r);
        r->retry_ms = now_ms() + RESERVE_RETRY_MS;
    } else {
        r->state = RESERVE_READY;
        r->fd = fd;
        atomic_store(&r->queue_max, RESERVE_QUEUE_BYTES);
    }
    lock_release(&reserves_lock);
    if (error) {
        say_broken(r, "can't be made", error);
    } else {
        log_notice("The reserve on disk (%s) is %s, %" PRIu64 " bytes", r->name,
                   was_broken ? "there again" : "ready", r->slots * RESERVE_SLOT_BYTES);
    }
}

/* Milliseconds until the next step when nothing is told; 0: none. */
static int64_t step(struct reserve *r)
{
    if (atomic_exchange(&r->overrun, false)) {
        log_warning("The disk of the reserve (%s) is slower than the writes: what it kept is given "
                    "up",
                    r->name);
    }
    while (!atomic_load(&r->ending) && write_some(r)) {
    }
    drop_file(r);
    lock_acquire(&reserves_lock);
    bool waits = r->state == RESERVE_BROKEN, closed = r->fd < 0;
    lock_release(&reserves_lock);
    if (!waits) {
        return 0;
    }
    if (!closed) {
        return READERS_MS;
    }
    int64_t left_ms = r->retry_ms - now_ms();
    if (left_ms <= 0) {
        make_file(r);
        return 1;
    }
    return left_ms;
}

static void *run(void *argument)
{
    struct reserve *r = argument;
    thread_enter("repl-reserve");
    make_file(r);
    while (!atomic_load(&r->ending)) {
        uint32_t wakes = atomic_load(&r->wakes);
        int64_t wait_ms = step(r);
        if (!atomic_load(&r->ending)) {
            futex_wait(&r->wakes, wakes, (uint64_t)wait_ms * 1000000);
        }
    }
    thread_leave();
    return NULL;
}

/* ---- life ---- */

struct reserve *reserve_create(const char *name, uint64_t bytes)
{
    struct reserve *r = mem_calloc(1, sizeof(*r));
    bytes = bytes > RESERVE_LEAST_BYTES ? bytes : RESERVE_LEAST_BYTES;
    assert(strlen(name) < sizeof(r->name));
    memcpy(r->name, name, strlen(name) + 1);
    r->slots = bytes / RESERVE_SLOT_BYTES;
    r->fd = -1;
    r->queue_max = RESERVE_QUEUE_BYTES;
    int error = thread_start(&r->thread, run, r);
    if (error) {
        log_warning("Can't start the thread of the reserve on disk (%s): %s", name,
                    strerror(error));
        mem_free(r);
        return NULL;
    }
    return r;
}

void reserve_destroy(struct reserve **reserve)
{
    struct reserve *r = *reserve;
    *reserve = NULL;
    if (!r) {
        return;
    }
    atomic_store(&r->ending, true);
    wake(r);
    pthread_join(r->thread, NULL);
    assert(r->reading == 0);
    chain_reader_drop(&r->queue);
    if (r->fd >= 0) {
        close(r->fd);
    }
    mem_free(r);
}

void reserve_look(struct reserve *r, struct reserve_facts *facts)
{
    lock_acquire(&reserves_lock);
    uint64_t end = atomic_load(&r->end);
    *facts = (struct reserve_facts){
        .state = r->state,
        .size_bytes = r->slots * RESERVE_SLOT_BYTES,
        .begin = first_shown(r),
        .end = end,
        .queued_bytes = r->queue.block && end > r->queue.position ? end - r->queue.position : 0,
        .faults = r->faults,
    };
    lock_release(&reserves_lock);
}

const char *reserve_state_word(enum reserve_state state)
{
    static const char *const words[] = {
        [RESERVE_MAKING] = "making", [RESERVE_READY] = "ready", [RESERVE_BROKEN] = "broken"};
    return words[state];
}
