/* See aof_tail.h. */
#include "persist/aof_tail.h"

#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "engine/commit.h"
#include "engine/gate.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A block's bytes: with the head about a quarter of a MiB. */
#define BLOCK_BYTES ((size_t)256 * 1024 - 64)
/* Writers wait for the disk when more than this is not written. */
#define CROWDED_BYTES ((uint64_t)256 << 20)
/* Longest sleep without work; while there is work and nobody waits for a sync, one write a
 * millisecond is enough. */
#define IDLE_NS ((uint64_t)100 * 1000 * 1000)
#define PACE_NS (1000 * 1000)
/* Idle looks before the thread sleeps until somebody wakes it. */
#define QUIET_LOOKS 20
#define SYNC_PERIOD_US ((uint64_t)1000 * 1000)
#define DELAYED_US ((uint64_t)2000 * 1000)
/* Time between two tries after a fault. */
#define RETRY_NS (100 * 1000 * 1000)
/* aof_tail_flush gives up. */
#define FLUSH_MAX_US ((uint64_t)60 * 1000 * 1000)
#define ORDERS_MAX 16

struct block {
    _Atomic(struct block *) next;
    char bytes[BLOCK_BYTES];
};

/* At `position` the next file begins. */
struct order {
    uint64_t position;
    int fd;
    uint64_t size_bytes;
};

/* The near end. */
static struct {
    struct block *block;
    size_t used;
} near;

/* The thread's end. */
static struct {
    struct block *block; /* where the byte at `written` stands, or will */
    size_t used;
    uint64_t written;
    uint64_t sure; /* before it everything is synced, as far as the syncs say */
    int fd;
    uint64_t size_bytes;
    uint64_t synced_us; /* when the last sync ended */
    uint64_t dirty_us;  /* when the first byte came that is not synced */
    pthread_t pthread;
} far = {.fd = -1};

static struct lock orders_lock = LOCK_INIT(LOCK_RANK_AOF, "aof");
static struct {
    struct order list[ORDERS_MAX];
    int count;
} orders GUARDED_BY(orders_lock);

static struct {
    _Atomic(struct block *) spare;
    _Atomic int sync; /* enum aof_sync */
    _Atomic bool lenient, stopping, trusted, running;
    _Atomic uint64_t file_bytes, written, delayed, sure, sync_failures;
    _Atomic int write_error, sync_error;
    _Atomic bool open;
    _Atomic uint32_t flushes; /* wanted: sync at once */
} shared = {.trusted = true};

/* ---- the near end ---- */

static struct block *block_create(void)
{
    struct block *b = atomic_exchange_explicit(&shared.spare, NULL, memory_order_acquire);
    if (!b) {
        b = mem_alloc(sizeof(*b));
    }
    atomic_init(&b->next, NULL);
    return b;
}

static void block_release(struct block *b)
{
    mem_free(atomic_exchange_explicit(&shared.spare, b, memory_order_acq_rel));
}

void aof_tail_append(struct slice bytes)
{
    uint64_t position = atomic_load_explicit(&commit.appended, memory_order_relaxed) + bytes.len;
    while (bytes.len > 0) {
        if (near.used == BLOCK_BYTES) {
            struct block *next = block_create();
            atomic_store_explicit(&near.block->next, next, memory_order_release);
            near.block = next;
            near.used = 0;
        }
        size_t room = BLOCK_BYTES - near.used, len = bytes.len < room ? bytes.len : room;
        memcpy(near.block->bytes + near.used, bytes.ptr, len);
        near.used += len;
        bytes = slice_of(bytes.ptr + len, bytes.len - len);
    }
    /* Partner: the thread's acquire of it, which shows it the bytes. */
    atomic_store_explicit(&commit.appended, position, memory_order_release);
    if (unlikely(position - atomic_load_explicit(&shared.written, memory_order_relaxed) >
                 CROWDED_BYTES)) {
        atomic_store_explicit(&commit.crowded, true, memory_order_relaxed);
    }
}

void aof_tail_open(int fd_take, uint64_t size_bytes)
{
    lock_acquire(&orders_lock);
    assert(orders.count < ORDERS_MAX);
    orders.list[orders.count++] = (struct order){
        atomic_load_explicit(&commit.appended, memory_order_relaxed), fd_take, size_bytes};
    lock_release(&orders_lock);
    commit_kick();
}

/* ---- the thread's end: faults ---- */

static void tell_faults(void)
{
    int error = atomic_load(&shared.write_error);
    gate_set_aof(error ? error : atomic_load(&shared.sync_error));
}

static void note_write(int error)
{
    int before = atomic_exchange(&shared.write_error, error);
    if (error && error != before) {
        log_warning("Cannot write to the AOF: %s; writes are refused until it works again",
                    strerror(error));
    } else if (!error && before) {
        log_notice("The AOF can be written again");
    }
    if (error != before) {
        tell_faults();
    }
}

static void note_sync_failed(int error)
{
    log_warning("Cannot sync the AOF: %s; writes are refused until it has been rewritten",
                strerror(error));
    atomic_store(&shared.trusted, false);
    atomic_fetch_add(&shared.sync_failures, 1);
    atomic_store(&shared.sync_error, error);
    tell_faults();
}

/* ---- writing ---- */

/* Writes up to `end` into the file. False (errno set) when that failed, whatever came into it: the
 * next try overwrites it with the same bytes. */
static bool write_until(uint64_t end, struct block **block, size_t *used)
{
    uint64_t at = far.written;
    while (at < end) {
        if (*used == BLOCK_BYTES) {
            *block = atomic_load_explicit(&(*block)->next, memory_order_acquire);
            *used = 0;
        }
        uint64_t left = end - at;
        size_t len = left < BLOCK_BYTES - *used ? (size_t)left : BLOCK_BYTES - *used;
        ssize_t done = (ssize_t)len;
        if (far.fd >= 0) {
            done = pwrite(far.fd, (*block)->bytes + *used, len,
                          (off_t)(far.size_bytes + (at - far.written)));
        }
        if (done < 0 && errno == EINTR) {
            continue;
        }
        if (done <= 0) {
            errno = done < 0 ? errno : ENOSPC;
            return false;
        }
        at += (uint64_t)done;
        *used += (size_t)done;
    }
    return true;
}

/* Frees the blocks before `last`. */
static void forget_blocks(struct block *last)
{
    while (far.block != last) {
        struct block *next = atomic_load_explicit(&far.block->next, memory_order_relaxed);
        block_release(far.block);
        far.block = next;
    }
}

/* Writes up to `end`, all of it or nothing. */
static bool write_whole(uint64_t end)
{
    struct block *block = far.block;
    size_t used = far.used;
    if (!write_until(end, &block, &used)) {
        int error = errno;
        if (far.fd >= 0 && ftruncate(far.fd, (off_t)far.size_bytes) < 0) {
            log_verbose("A torn command stays at the end of the AOF: %s", strerror(errno));
        }
        note_write(error);
        return false;
    }
    note_write(0);
    far.size_bytes += end - far.written;
    far.written = end;
    far.used = used;
    forget_blocks(block);
    atomic_store_explicit(&shared.written, end, memory_order_release);
    atomic_store_explicit(&shared.file_bytes, far.size_bytes, memory_order_relaxed);
    atomic_store_explicit(&commit.crowded, commit_appended() - end > CROWDED_BYTES,
                          memory_order_relaxed);
    return true;
}

/* ---- syncing ---- */

static void publish_sure(void)
{
    atomic_store_explicit(&shared.sure, far.sure, memory_order_release);
    if (!atomic_load(&shared.trusted)) {
        return;
    }
    if (far.sure > commit_synced()) {
        commit_advance(far.sure);
    }
    commit_advance_on_disk(far.sure);
}

static bool sync_file(void)
{
    if (far.fd >= 0 && fdatasync(far.fd) < 0) {
        note_sync_failed(errno);
        return false;
    }
    far.sure = far.written;
    far.synced_us = clock_mono_us();
    publish_sure();
    return true;
}

static bool sync_is_due(uint64_t now_us)
{
    if (far.written == far.sure) {
        return false;
    }
    if (atomic_load(&shared.flushes) > 0) {
        return true;
    }
    if (atomic_load(&shared.lenient)) {
        return false;
    }
    switch (atomic_load(&shared.sync)) {
    case AOF_SYNC_ALWAYS:
        return true;
    case AOF_SYNC_EVERYSEC:
        return now_us - far.synced_us >= SYNC_PERIOD_US;
    default:
        return false;
    }
}

static void sync_if_due(void)
{
    uint64_t now_us = clock_mono_us();
    bool trusted = atomic_load(&shared.trusted);
    if (far.written == far.sure) {
        far.dirty_us = now_us;
        publish_sure();
    }
    if (trusted && sync_is_due(now_us)) {
        if (atomic_load(&shared.sync) == AOF_SYNC_EVERYSEC && now_us - far.dirty_us > DELAYED_US) {
            atomic_fetch_add(&shared.delayed, 1);
        }
        sync_file();
    } else if (trusted && far.written > far.sure && atomic_load(&shared.lenient) &&
               far.written > commit_synced() && atomic_load(&shared.sync) == AOF_SYNC_ALWAYS) {
        /* Who asked for no syncs during rewrites waits for none. */
        commit_advance(far.written);
    }
}

/* ---- files ---- */

static bool next_order(struct order *order)
{
    lock_acquire(&orders_lock);
    bool any = orders.count > 0;
    if (any) {
        *order = orders.list[0];
    }
    lock_release(&orders_lock);
    return any;
}

static void begin_file(const struct order *order)
{
    if (far.fd >= 0) {
        /* Whatever appendfsync says: nobody looks after this file later. A fault is told. */
        sync_file();
        close(far.fd);
    }
    far.fd = order->fd;
    far.size_bytes = order->size_bytes;
    atomic_store(&shared.open, far.fd >= 0);
    atomic_store(&shared.file_bytes, far.size_bytes);
    if (far.fd < 0) {
        far.sure = far.written;
        publish_sure();
    }
    lock_acquire(&orders_lock);
    orders.count--;
    memmove(orders.list, orders.list + 1, (size_t)orders.count * sizeof(orders.list[0]));
    lock_release(&orders_lock);
}

/* Writes all that is there and changes files on the way; false after a fault. */
static bool write_all(void)
{
    uint64_t end = commit_appended();
    struct order order;
    while (next_order(&order) && order.position <= end) {
        if (far.written < order.position && !write_whole(order.position)) {
            return false;
        }
        begin_file(&order);
    }
    return far.written == end || write_whole(end);
}

/* ---- the thread ---- */

static void pause_ns(long ns)
{
    const struct timespec time = {.tv_nsec = ns};
    nanosleep(&time, NULL);
}

/* Sleeps until there is something to do, or for a while. */
static void sleep_idle(void)
{
    atomic_store(&commit.asleep, 1);
    if (atomic_load(&commit.appended) == far.written && !atomic_load(&shared.stopping) &&
        atomic_load(&shared.flushes) == 0) {
        futex_wait(&commit.asleep, 1, IDLE_NS);
    }
    atomic_store(&commit.asleep, 0);
}

static void *run(void *arg)
{
    (void)arg;
    thread_enter("aof");
    for (int quiet = 0;;) {
        uint64_t before = far.written;
        bool stopping = atomic_load(&shared.stopping);
        bool fine = write_all();
        sync_if_due();
        if (stopping) {
            break;
        }
        quiet = far.written == before ? quiet + 1 : 0;
        bool always = atomic_load(&shared.sync) == AOF_SYNC_ALWAYS;
        if (!fine) {
            pause_ns(RETRY_NS);
        } else if (quiet > QUIET_LOOKS || always) {
            sleep_idle();
        } else {
            pause_ns(PACE_NS);
        }
    }
    thread_leave();
    return NULL;
}

void aof_tail_start(void)
{
    near.block = far.block = block_create();
    atomic_store(&shared.running, true);
    int error = thread_start(&far.pthread, run, NULL);
    if (error) {
        log_warning("Can't start the AOF's thread: %s", strerror(error));
        abort();
    }
}

void aof_tail_stop(void)
{
    if (!atomic_load(&shared.running)) {
        return;
    }
    aof_tail_flush(true);
    atomic_store(&shared.stopping, true);
    commit_kick();
    pthread_join(far.pthread, NULL);
    if (far.fd >= 0) {
        close(far.fd);
        far.fd = -1;
    }
    forget_blocks(near.block);
    mem_free(near.block);
    mem_free(atomic_exchange(&shared.spare, NULL));
    atomic_store(&shared.running, false);
}

bool aof_tail_flush(bool sync)
{
    uint64_t end = commit_appended(), begin_us = clock_mono_us();
    atomic_fetch_add(&shared.flushes, sync);
    bool done;
    while (!(done = (sync ? atomic_load(&shared.sure) : atomic_load(&shared.written)) >= end) &&
           !atomic_load(&shared.write_error) && !atomic_load(&shared.sync_error) &&
           clock_mono_us() - begin_us < FLUSH_MAX_US) {
        commit_kick();
        pause_ns(PACE_NS / 4);
    }
    atomic_fetch_sub(&shared.flushes, sync);
    return done;
}

void aof_tail_trust(void)
{
    atomic_store(&shared.sync_error, 0);
    atomic_store(&shared.trusted, true);
    tell_faults();
    commit_kick();
}

void aof_tail_set_sync(enum aof_sync sync)
{
    atomic_store(&shared.sync, (int)sync);
    commit_kick();
}

void aof_tail_set_lenient(bool lenient)
{
    atomic_store(&shared.lenient, lenient);
    commit_kick();
}

struct aof_tail_facts aof_tail_facts(void)
{
    return (struct aof_tail_facts){
        .file_bytes = atomic_load(&shared.file_bytes),
        .buffered = commit_appended() - atomic_load(&shared.written),
        .delayed = atomic_load(&shared.delayed),
        .write_error = atomic_load(&shared.write_error),
        .sync_error = atomic_load(&shared.sync_error),
        .sync_failures = atomic_load(&shared.sync_failures),
        .open = atomic_load(&shared.open),
    };
}
