/* See aof_tail.h. */
#include "persist/aof_tail.h"

#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/spike.h"
#include "base/thread.h"
#include "engine/commit.h"
#include "engine/gate.h"
#include "keyspace/evict.h"
#include "persist/aof.h"
#include "persist/save.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A block's bytes: with the head about a quarter of a MiB. */
#define BLOCK_BYTES ((size_t)256 * 1024 - 64)
/* Writers wait for the disk when more than this is not written. */
#define CROWDED_BYTES ((uint64_t)256 << 20)
/* The thread's longest sleep: so late may a sync be that is due each second. */
#define IDLE_NS ((uint64_t)100 * 1000 * 1000)
/* Between two looks of those who wait for the thread. */
#define LOOK_NS (250 * 1000)
#define SYNC_PERIOD_US ((uint64_t)1000 * 1000)
/* A sync that is so late counts as delayed, and replies wait for it: so much of what was
 * acknowledged is all that may be lost. */
#define DELAYED_US ((uint64_t)2000 * 1000)
/* Time between two tries after a fault. */
#define RETRY_NS (100 * 1000 * 1000)
/* How often the thread looks how fast the file grows, and what is fast. */
#define GROWTH_LOOK_US ((uint64_t)50 * 1000)
#define GROWTH_FAST_BYTES ((uint64_t)1024 * 1024)
/* Most that the file system is asked to have ready. */
#define AHEAD_MAX_BYTES ((uint64_t)64 * 1024 * 1024)
/* aof_tail_flush gives up. */
#define FLUSH_MAX_US ((uint64_t)60 * 1000 * 1000)

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

/* The far end. The lock is held while a file is written: who waits for it waits for just that. */
static struct lock far_lock = LOCK_INIT(LOCK_RANK_AOF_FILE, "aof file");
static struct {
    struct block *block; /* where the byte at `written` stands, or will */
    size_t used;
    uint64_t written;
    uint64_t sure; /* before it everything is synced, as far as the syncs say */
    int fd;
    uint64_t size_bytes;
} far GUARDED_BY(far_lock) = {.fd = -1};

/* The thread's own. */
static struct {
    uint64_t synced_us; /* when the last sync began */
    pthread_t pthread;
    /* Of the current file. */
    uint64_t looked_us, looked_bytes; /* the last look at its growth */
    uint64_t ahead_bytes;             /* up to there the file system has blocks for it */
    bool no_ahead;                    /* the file system would not */
} syncer;

static struct lock orders_lock = LOCK_INIT(LOCK_RANK_AOF, "aof");
static struct {
    struct order list[AOF_TAIL_WAITING_MAX];
    int count;
} orders GUARDED_BY(orders_lock);

/* Held while a fault, or its end, is told. */
static struct lock faults_lock = LOCK_INIT(LOCK_RANK_AOF, "aof faults");

static struct {
    _Atomic(struct block *) spare;
    _Atomic int sync; /* enum aof_sync */
    _Atomic bool lenient, stopping, trusted, running;
    _Atomic uint64_t file_bytes, delayed, sure, sync_failures;
    _Atomic uint64_t clean_us; /* what was written before this moment is synced */
    _Atomic int write_error, sync_error;
    _Atomic uint64_t failed_at;  /* where the write that failed begins */
    _Atomic uint64_t left_until; /* aof_tail_leave; 0: never */
    _Atomic int64_t slow_us;     /* aof_tail_slow */
    _Atomic bool open;
    _Atomic bool syncing;     /* beside writes */
    _Atomic uint32_t flushes; /* wanted: sync at once */
    _Atomic size_t blocks;    /* in memory, the spare one among them */
} shared = {.trusted = true};

/* ---- the near end ---- */

static struct block *block_create(void)
{
    struct block *b = atomic_exchange_explicit(&shared.spare, NULL, memory_order_acquire);
    if (!b) {
        b = mem_alloc(sizeof(*b));
        atomic_fetch_add_explicit(&shared.blocks, 1, memory_order_relaxed);
    }
    atomic_init(&b->next, NULL);
    return b;
}

static void block_release(struct block *b)
{
    struct block *one_more = atomic_exchange_explicit(&shared.spare, b, memory_order_acq_rel);
    if (one_more) {
        mem_free(one_more);
        atomic_fetch_sub_explicit(&shared.blocks, 1, memory_order_relaxed);
    }
}

size_t aof_tail_memory_bytes(void)
{
    size_t blocks = atomic_load_explicit(&shared.blocks, memory_order_relaxed);
    return blocks > 1 ? (blocks - 1) * sizeof(struct block) : 0;
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
    if (unlikely(position - commit_written() > CROWDED_BYTES)) {
        atomic_store_explicit(&commit.crowded, true, memory_order_relaxed);
    }
}

void aof_tail_open(int fd_take, uint64_t size_bytes)
{
    lock_acquire(&orders_lock);
    assert(orders.count < AOF_TAIL_WAITING_MAX);
    orders.list[orders.count++] = (struct order){
        atomic_load_explicit(&commit.appended, memory_order_relaxed), fd_take, size_bytes};
    lock_release(&orders_lock);
    commit_kick();
}

/* ---- the far end: faults ---- */

static void pause_ns(int64_t ns)
{
    const struct timespec time = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
    nanosleep(&time, NULL);
}

/* After every change of what is told. With a write that failed, what is behind it is doomed; with a
 * sync that failed all that no sync has covered. Clients' writes are refused before the first is
 * doomed, until none is. */
static void tell_faults(void) REQUIRES(faults_lock);
static void tell_faults(void)
{
    int write_error = atomic_load(&shared.write_error),
        sync_error = atomic_load(&shared.sync_error);
    if (write_error || sync_error) {
        gate_set_aof(write_error ? write_error : sync_error);
        commit_set_doomed(sync_error ? 0 : atomic_load(&shared.failed_at));
    } else {
        commit_set_doomed(UINT64_MAX);
        gate_set_aof(0);
    }
}

/* What stands before the position belongs to a log that has been left. */
static bool is_left(uint64_t position)
{
    return position <= atomic_load(&shared.left_until);
}

static void note_write_fault(int error, uint64_t position)
{
    lock_acquire(&faults_lock);
    int before = atomic_load(&shared.write_error);
    if (error && is_left(position + 1)) {
        error = 0;
    }
    if (error) {
        atomic_store(&shared.failed_at, position);
    }
    atomic_store(&shared.write_error, error);
    if (error != before) {
        tell_faults();
    }
    lock_release(&faults_lock);
    if (error && error != before) {
        log_warning("Cannot write to the AOF: %s; writes are refused until it works again",
                    strerror(error));
        commit_tell();
    } else if (!error && before) {
        log_notice("The AOF can be written again");
    }
}

/* A write from `position` on has failed, or (0) succeeded. */
static void note_write(int error, uint64_t position)
{
    if (error || atomic_load(&shared.write_error)) {
        note_write_fault(error, position);
    }
}

/* A sync of all before `written` has failed. */
static void note_sync_failed(int error, uint64_t written)
{
    lock_acquire(&faults_lock);
    bool matters = !is_left(written);
    if (matters) {
        atomic_store(&shared.trusted, false);
        atomic_fetch_add(&shared.sync_failures, 1);
        atomic_store(&shared.sync_error, error);
        tell_faults();
    }
    lock_release(&faults_lock);
    if (matters) {
        log_warning("Cannot sync the AOF: %s; writes are refused until it has been rewritten",
                    strerror(error));
        commit_tell();
    }
}

/* ---- writing ---- */

/* Writes up to `end` into the file. False (errno set) when that failed, whatever came into it: the
 * next try overwrites it with the same bytes. */
static bool write_until(uint64_t end, struct block **block, size_t *used) REQUIRES(far_lock);
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
        if (far.fd >= 0 && !is_left(end)) {
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
static void forget_blocks(struct block *last) REQUIRES(far_lock);
static void forget_blocks(struct block *last)
{
    while (far.block != last) {
        struct block *next = atomic_load_explicit(&far.block->next, memory_order_relaxed);
        block_release(far.block);
        far.block = next;
    }
}

void aof_tail_slow(int64_t us)
{
    atomic_store(&shared.slow_us, us);
}

/* How long a write took, and beside what. */
static void note_duration(uint64_t begin, bool syncs)
{
    spike_end("aof-write", begin);
    spike_end(syncs                                 ? "aof-write-pending-fsync"
              : aof_has_child() || save_has_child() ? "aof-write-active-child"
                                                    : "aof-write-alone",
              begin);
}

/* Writes up to `end`, all of it or nothing. */
static bool write_whole(uint64_t end) REQUIRES(far_lock);
static bool write_whole(uint64_t end)
{
    struct block *block = far.block;
    size_t used = far.used;
    uint64_t begin = spike_begin();
    bool syncs = atomic_load_explicit(&shared.syncing, memory_order_relaxed);
    int64_t slow_us = atomic_load_explicit(&shared.slow_us, memory_order_relaxed);
    if (unlikely(slow_us > 0)) {
        pause_ns(slow_us * 1000);
    }
    bool fine = write_until(end, &block, &used);
    int error = errno;
    note_duration(begin, syncs);
    if (!fine) {
        if (far.fd >= 0 && ftruncate(far.fd, (off_t)far.size_bytes) < 0) {
            log_verbose("A torn command stays at the end of the AOF: %s", strerror(errno));
        }
        note_write(error, far.written);
        return false;
    }
    note_write(0, end);
    far.size_bytes += end - far.written;
    far.written = end;
    far.used = used;
    forget_blocks(block);
    atomic_store_explicit(&commit.written, end, memory_order_release);
    atomic_store_explicit(&shared.file_bytes, far.size_bytes, memory_order_relaxed);
    atomic_store_explicit(&commit.crowded, commit_appended() - end > CROWDED_BYTES,
                          memory_order_relaxed);
    return true;
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

static void end_order(void)
{
    lock_acquire(&orders_lock);
    orders.count--;
    memmove(orders.list, orders.list + 1, (size_t)orders.count * sizeof(orders.list[0]));
    lock_release(&orders_lock);
}

/* Writes up to `end`, or up to where the next file begins; false after a fault. */
static bool write_some(uint64_t end) REQUIRES(far_lock);
static bool write_some(uint64_t end)
{
    struct order order;
    if (next_order(&order) && order.position < end) {
        end = order.position;
    }
    return far.written >= end || write_whole(end);
}

/* ---- whoever replies ---- */

/* With everysec, the disk is so slow that more would be lost than is promised. */
static bool is_far_behind(uint64_t now_us)
{
    uint64_t clean_us = atomic_load_explicit(&shared.clean_us, memory_order_relaxed);
    return now_us > clean_us && now_us - clean_us > DELAYED_US &&
           atomic_load(&shared.sync) == AOF_SYNC_EVERYSEC && !atomic_load(&shared.lenient) &&
           atomic_load(&shared.trusted);
}

/* Only the thread begins files, and only it tries again after a fault. */
static void write_upto(uint64_t position, bool waits)
{
    if (!atomic_load(&shared.write_error)) {
        lock_acquire(&far_lock);
        if (far.written < position) {
            write_some(commit_appended());
        }
        lock_release(&far_lock);
    }
    uint64_t begin_us = clock_mono_us(), now_us = begin_us;
    while (waits && (commit_written() < position || is_far_behind(now_us)) &&
           !atomic_load(&shared.write_error) && now_us - begin_us < FLUSH_MAX_US) {
        commit_kick();
        pause_ns(LOOK_NS);
        now_us = clock_mono_us();
    }
}

/* ---- syncing ---- */

static void publish_sure(uint64_t sure) REQUIRES(far_lock);
static void publish_sure(uint64_t sure)
{
    far.sure = sure;
    atomic_store_explicit(&shared.sure, sure, memory_order_release);
    if (!atomic_load(&shared.trusted)) {
        return;
    }
    if (sure > commit_synced()) {
        commit_advance(sure);
    }
    commit_advance_on_disk(sure);
}

/* Syncs what is written so far. Others write meanwhile; the file stays open, for only this thread
 * closes it. */
static void sync_file(void)
{
    uint64_t begin_us = clock_mono_us();
    lock_acquire(&far_lock);
    int fd = far.fd;
    uint64_t written = far.written;
    lock_release(&far_lock);
    uint64_t begin = spike_begin();
    atomic_store_explicit(&shared.syncing, fd >= 0, memory_order_relaxed);
    int error = fd >= 0 && fdatasync(fd) < 0 ? errno : 0;
    atomic_store_explicit(&shared.syncing, false, memory_order_relaxed);
    if (fd >= 0 && atomic_load(&shared.sync) == AOF_SYNC_ALWAYS) {
        spike_end("aof-fsync-always", begin);
    }
    if (error) {
        note_sync_failed(error, written);
        return;
    }
    syncer.synced_us = begin_us;
    atomic_store(&shared.clean_us, begin_us);
    lock_acquire(&far_lock);
    publish_sure(written);
    lock_release(&far_lock);
}

static bool sync_is_due(uint64_t now_us)
{
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
        return now_us - syncer.synced_us >= SYNC_PERIOD_US;
    default:
        return false;
    }
}

/* Who asked for no syncs during rewrites waits for none. */
static void advance_leniently(uint64_t written)
{
    if (atomic_load(&shared.lenient) && atomic_load(&shared.sync) == AOF_SYNC_ALWAYS &&
        written > commit_synced()) {
        commit_advance(written);
    }
}

static void sync_if_due(void)
{
    uint64_t now_us = clock_mono_us();
    bool trusted = atomic_load(&shared.trusted);
    lock_acquire(&far_lock);
    uint64_t written = far.written;
    bool clean = written == far.sure;
    if (clean) {
        atomic_store(&shared.clean_us, now_us);
        publish_sure(written);
    }
    lock_release(&far_lock);
    if (clean || !trusted) {
        return;
    }
    if (!sync_is_due(now_us)) {
        advance_leniently(written);
        return;
    }
    sync_file();
    if (is_far_behind(clock_mono_us())) {
        atomic_fetch_add(&shared.delayed, 1);
    }
}

/* ---- blocks ahead ---- */

/* A file that grows fast gets its blocks from the file system before they are written, many at once
 * and without the lock: a write has no transaction of the file system to wait for then. Its size
 * stays. Where that is refused it goes on without. */
static void keep_ahead(void)
{
    uint64_t now_us = clock_mono_us();
    if (syncer.no_ahead || now_us - syncer.looked_us < GROWTH_LOOK_US) {
        return;
    }
    lock_acquire(&far_lock);
    int fd = far.fd;
    uint64_t size = far.size_bytes;
    lock_release(&far_lock);
    uint64_t grown = size > syncer.looked_bytes ? size - syncer.looked_bytes : 0;
    syncer.looked_us = now_us;
    syncer.looked_bytes = size;
    if (fd < 0 || grown < GROWTH_FAST_BYTES || syncer.ahead_bytes > size + 2 * grown) {
        return;
    }
    uint64_t begin = syncer.ahead_bytes > size ? syncer.ahead_bytes : size;
    uint64_t end = size + (4 * grown < AHEAD_MAX_BYTES ? 4 * grown : AHEAD_MAX_BYTES);
    if (end > begin) {
        int refused = fallocate(fd, FALLOC_FL_KEEP_SIZE, (off_t)begin, (off_t)(end - begin));
        syncer.no_ahead = refused != 0;
        syncer.ahead_bytes = refused ? syncer.ahead_bytes : end;
    }
}

/* The current file gets no more: blocks that it does not need are given back. */
static void close_file(void) REQUIRES(far_lock);
static void close_file(void)
{
    if (syncer.ahead_bytes > far.size_bytes && ftruncate(far.fd, (off_t)far.size_bytes) < 0) {
        log_verbose("The AOF file keeps blocks behind its end: %s", strerror(errno));
    }
    close(far.fd);
    far.fd = -1;
}

/* Goes over to the next file. */
static void begin_file(const struct order *order) REQUIRES(far_lock);
static void begin_file(const struct order *order)
{
    if (far.fd >= 0) {
        /* Whatever appendfsync says: nobody looks after this file later, and what the next one
         * gets must not reach the disk before it. A fault is told. */
        if (fdatasync(far.fd) < 0) {
            note_sync_failed(errno, far.written);
        } else {
            publish_sure(far.written);
        }
        close_file();
    }
    syncer.looked_bytes = order->size_bytes;
    syncer.ahead_bytes = 0;
    syncer.no_ahead = false;
    far.fd = order->fd;
    far.size_bytes = order->size_bytes;
    atomic_store(&shared.open, far.fd >= 0);
    atomic_store(&shared.file_bytes, far.size_bytes);
    if (far.fd < 0) {
        publish_sure(far.written);
    }
    end_order();
}

/* Writes all that is there and changes files on the way; false after a fault. */
static bool write_all(void)
{
    struct order order;
    bool fine, begins;
    do {
        if (next_order(&order)) {
            sync_file(); /* so that little is left to sync while others wait */
        }
        lock_acquire(&far_lock);
        fine = write_some(commit_appended());
        begins = fine && next_order(&order) && order.position == far.written;
        if (begins) {
            begin_file(&order);
        }
        lock_release(&far_lock);
    } while (begins);
    return fine;
}

/* ---- the thread ---- */

/* Others write, too (commit_put), and syncing is left to this thread. */
static bool is_idle(void)
{
    uint64_t appended = atomic_load(&commit.appended);
    bool synced =
        !commit_is_gated() || !atomic_load(&shared.trusted) || commit_synced() >= appended;
    return appended == commit_written() && synced && atomic_load(&shared.flushes) == 0;
}

/* Sleeps until there is something to do, or for a while. */
static void sleep_idle(void)
{
    atomic_store(&commit.asleep, 1);
    if (is_idle() && !atomic_load(&shared.stopping)) {
        futex_wait(&commit.asleep, 1, IDLE_NS);
    }
    atomic_store(&commit.asleep, 0);
}

static void *run(void *arg)
{
    (void)arg;
    thread_enter("aof");
    for (bool stopping = false; !stopping;) {
        stopping = atomic_load(&shared.stopping);
        bool fine = write_all();
        sync_if_due();
        keep_ahead();
        if (!stopping && !fine) {
            pause_ns(RETRY_NS);
        } else if (!stopping) {
            sleep_idle();
        }
    }
    thread_leave();
    return NULL;
}

void aof_tail_start(void)
{
    evict_exempt(aof_tail_memory_bytes);
    near.block = block_create();
    lock_acquire(&far_lock);
    far.block = near.block;
    lock_release(&far_lock);
    commit_set_writer(write_upto);
    atomic_store(&shared.running, true);
    int error = thread_start(&syncer.pthread, run, NULL);
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
    pthread_join(syncer.pthread, NULL);
    lock_acquire(&far_lock);
    if (far.fd >= 0) {
        close_file();
    }
    forget_blocks(near.block);
    far.block = NULL;
    lock_release(&far_lock);
    mem_free(near.block);
    mem_free(atomic_exchange(&shared.spare, NULL));
    atomic_store(&shared.blocks, 0);
    atomic_store(&shared.running, false);
}

bool aof_tail_flush(bool sync)
{
    uint64_t end = commit_appended(), begin_us = clock_mono_us();
    atomic_fetch_add(&shared.flushes, sync);
    bool done;
    while (!(done = (sync ? atomic_load(&shared.sure) : commit_written()) >= end) &&
           !atomic_load(&shared.write_error) && !atomic_load(&shared.sync_error) &&
           clock_mono_us() - begin_us < FLUSH_MAX_US) {
        commit_kick();
        pause_ns(LOOK_NS);
    }
    atomic_fetch_sub(&shared.flushes, sync);
    return done;
}

void aof_tail_trust(void)
{
    lock_acquire(&faults_lock);
    atomic_store(&shared.sync_error, 0);
    atomic_store(&shared.trusted, true);
    tell_faults();
    lock_release(&faults_lock);
    commit_kick();
}

void aof_tail_leave(void)
{
    lock_acquire(&faults_lock);
    atomic_store(&shared.left_until, commit_appended());
    atomic_store(&shared.write_error, 0);
    lock_release(&faults_lock);
    aof_tail_trust();
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
    lock_acquire(&orders_lock);
    int waiting = orders.count;
    lock_release(&orders_lock);
    return (struct aof_tail_facts){
        .file_bytes = atomic_load(&shared.file_bytes),
        .buffered = commit_appended() - commit_written(),
        .delayed = atomic_load(&shared.delayed),
        .syncing = atomic_load(&shared.syncing),
        .write_error = atomic_load(&shared.write_error),
        .sync_error = atomic_load(&shared.sync_error),
        .sync_failures = atomic_load(&shared.sync_failures),
        .files_waiting = waiting,
        .open = atomic_load(&shared.open),
    };
}
