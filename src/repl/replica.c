/* See replica.h. */
#include "repl/replica.h"

#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/stats.h"
#include "engine/modules.h"
#include "net/socket.h"
#include "repl/backlog.h"
#include "repl/sync.h"

#include <assert.h>
#include <string.h>

/* Read from the disk at a time. */
#define DISK_READ_BYTES ((size_t)128 * 1024)

static struct {
    struct lock lock;
    struct replica *first, **last;
    int count;
} list = {.lock = LOCK_INIT(LOCK_RANK_REPLICAS, "replicas"), .last = &list.first};

int64_t replica_clock_ms(void)
{
    return (int64_t)(clock_mono_us() / 1000);
}

static enum replica_state state_of(const struct replica *r)
{
    return atomic_load_explicit(&r->state, memory_order_acquire);
}

static void set_state(struct replica *r, enum replica_state state)
{
    bool comes = state == REPLICA_ONLINE && state_of(r) != REPLICA_ONLINE && !r->rdb_only;
    atomic_store_explicit(&r->state, state, memory_order_release);
    if (comes) {
        modules_news_later(MODULES_REPLICA, 0);
    }
}

/* ---- what is sent ---- */

static const char from_text[] = "text", from_transfer[] = "transfer", from_stream[] = "stream",
                  from_disk[] = "disk", from_newline[] = "newline";

static int show(struct replica *r, const char *source, int count)
{
    r->vector_source = count > 0 ? source : NULL;
    return count;
}

/* A line feed between two things, where nothing else is to be said. */
static int show_newline(struct replica *r, struct iovec *vectors)
{
    static char newline[] = "\n";
    if (r->is_old || !atomic_exchange(&r->newline_due, false)) {
        return 0;
    }
    vectors[0] = (struct iovec){newline, 1};
    return show(r, from_newline, 1);
}

/* The transfer is all sent. */
static void end_transfer(struct replica *r)
{
    bool waits = transfer_has_mark(r->transfer);
    chain_reader_drop(&r->transferred);
    transfer_release(&r->transfer);
    atomic_store(&r->heard_ms, replica_clock_ms());
    log_notice("Replica %s:%lld has been sent the whole data set", r->ip, (long long)r->port);
    set_state(r, waits ? REPLICA_WAIT_ACK : REPLICA_ONLINE);
    if (r->rdb_only) {
        log_notice("Replica %s:%lld wants nothing more: disconnecting", r->ip, (long long)r->port);
        atomic_store(&r->closing, true);
        feeds_wake();
    }
}

/* Memory has what comes next: the disk is left. */
static bool leave_disk(struct replica *r) NO_THREAD_SAFETY_ANALYSIS
{
    if (!keyspace_try_shared()) {
        return false; /* a script takes long: the disk has it too */
    }
    bool reached = backlog_reach(&r->disk, &r->stream);
    keyspace_unlock_shared();
    if (reached) {
        buf_deinit(&r->disk_bytes);
        atomic_store(&r->on_disk, false);
        log_notice("Replica %s:%lld has been sent what the disk kept", r->ip, (long long)r->port);
    }
    return reached;
}

static int show_stream(struct replica *r, struct iovec *vectors, int max)
{
    return r->rdb_only ? 0 : show(r, from_stream, chain_reader_vectors(&r->stream, vectors, max));
}

/* What the reserve has next, until that is in memory. */
static int show_disk(struct replica *r, struct iovec *vectors, int max)
{
    if (r->disk_sent == r->disk_bytes.len) {
        if (leave_disk(r)) {
            return show_stream(r, vectors, max);
        }
        buf_clear(&r->disk_bytes);
        r->disk_sent = 0;
        ssize_t got = backlog_read_reserve(&r->disk, buf_reserve(&r->disk_bytes, DISK_READ_BYTES),
                                           DISK_READ_BYTES);
        if (got < 0) {
            log_notice("Replica %s:%lld wants what the disk does not keep any more: its link is "
                       "closed",
                       r->ip, (long long)r->port);
            return -1;
        }
        r->disk_bytes.len = (size_t)got;
    }
    vectors[0] =
        (struct iovec){r->disk_bytes.data + r->disk_sent, r->disk_bytes.len - r->disk_sent};
    return show(r, from_disk, vectors[0].iov_len > 0);
}

static int show_transfer(struct replica *r, struct iovec *vectors, int max)
{
    /* The end is looked at first: what was put there before it is then seen. */
    enum transfer_state state = transfer_state(r->transfer);
    int count = chain_reader_vectors(&r->transferred, vectors, max);
    if (state == TRANSFER_FAILED) {
        return -1;
    }
    if (count > 0) {
        return show(r, from_transfer, count);
    }
    if (state == TRANSFER_COMPLETE) {
        end_transfer(r);
        return state_of(r) == REPLICA_ONLINE ? show_stream(r, vectors, max) : 0;
    }
    return r->transferred.position == 0 ? show_newline(r, vectors) : 0;
}

/* Whatever it sends is one: a replica that loads what it got sends line feeds. */
static void note_signs_of_life(struct replica *r)
{
    int64_t active_ms = (int64_t)r->feed.client->active_s * 1000;
    if (active_ms > atomic_load_explicit(&r->heard_ms, memory_order_relaxed)) {
        atomic_store_explicit(&r->heard_ms, active_ms, memory_order_relaxed);
    }
}

static int next(struct feed *f, struct iovec *vectors, int max)
{
    struct replica *r = (struct replica *)f;
    enum replica_state state = state_of(r);
    if (state == REPLICA_WAIT_START) {
        return show_newline(r, vectors);
    }
    if (r->text_sent < r->text.len) {
        vectors[0] = (struct iovec){r->text.data + r->text_sent, r->text.len - r->text_sent};
        return show(r, from_text, 1);
    }
    switch (state) {
    case REPLICA_SYNCING:
        return show_transfer(r, vectors, max);
    case REPLICA_ONLINE:
        return atomic_load(&r->on_disk) ? show_disk(r, vectors, max) : show_stream(r, vectors, max);
    default:
        return 0;
    }
}

static bool over(struct feed *f)
{
    struct replica *r = (struct replica *)f;
    note_signs_of_life(r);
    return atomic_load_explicit(&r->closing, memory_order_relaxed);
}

static void sent(struct feed *f, size_t bytes)
{
    struct replica *r = (struct replica *)f;
    stats_add(STAT_REPL_OUTPUT_BYTES, bytes);
    if (r->vector_source == from_text) {
        r->text_sent += bytes;
    } else if (r->vector_source == from_transfer) {
        chain_reader_advance(&r->transferred, bytes);
        atomic_store_explicit(&r->got_bytes, r->transferred.position, memory_order_relaxed);
        if (bytes > 0) {
            atomic_store_explicit(&r->heard_ms, replica_clock_ms(), memory_order_relaxed);
        }
    } else if (r->vector_source == from_stream) {
        chain_reader_advance(&r->stream, bytes);
        atomic_store_explicit(&r->sent_offset, r->stream.position, memory_order_relaxed);
    } else if (r->vector_source == from_disk) {
        r->disk_sent += bytes;
        atomic_fetch_add_explicit(&r->sent_offset, bytes, memory_order_relaxed);
    }
}

static uint64_t pending(const struct feed *f)
{
    const struct replica *r = (const struct replica *)f;
    enum replica_state state = state_of(r);
    if (state < REPLICA_SYNCING || r->rdb_only || atomic_load(&r->on_disk)) {
        return 0; /* what is on disk takes no memory, so no limit of that is for it */
    }
    uint64_t end = backlog_offset(), have = atomic_load(&r->sent_offset);
    return end > have ? end - have : 0;
}

/* ---- life ---- */

static void gone(struct feed *f)
{
    struct replica *r = (struct replica *)f;
    lock_acquire(&list.lock);
    if (r->link) {
        *r->link = r->next;
        *(r->next ? &r->next->link : &list.last) = r->link;
        list.count--;
    }
    lock_release(&list.lock);
    if (state_of(r) == REPLICA_ONLINE && !r->rdb_only) {
        modules_news_later(MODULES_REPLICA, 1);
    }
    if (r->link) {
        log_notice("The connection with replica %s:%lld is lost", r->ip, (long long)r->port);
    }
    chain_reader_drop(&r->transferred);
    chain_reader_drop(&r->stream);
    if (r->transfer) {
        transfer_release(&r->transfer);
    }
    buf_deinit(&r->text);
    buf_deinit(&r->disk_bytes);
    mem_free(r);
    sync_wake();
}

static const struct feed_ops ops = {.next = next,
                                    .sent = sent,
                                    .over = over,
                                    .pending = pending,
                                    .least_limit = backlog_kept_most_bytes,
                                    .gone = gone};

struct replica *replica_of(const struct client *c)
{
    assert(!c->feed || c->feed->ops == &ops);
    return (struct replica *)c->feed;
}

/* The address of "ip:port" or "[ip]:port". */
static void take_ip(struct replica *r, const char *peer)
{
    const char *colon = strrchr(peer, ':');
    size_t len = colon ? (size_t)(colon - peer) : strlen(peer);
    if (len >= 2 && peer[0] == '[') {
        peer++;
        len -= 2;
    }
    memcpy(r->ip, peer, len);
    r->ip[len] = '\0';
}

struct replica *replica_greet(struct client *c)
{
    if (!c->feed) {
        struct replica *r = mem_calloc(1, sizeof(*r));
        static_assert(sizeof(c->session.peer) <= REPLICA_IP_MAX, "an address fits");
        take_ip(r, c->session.peer);
        feed_attach(c, &r->feed, &ops);
    }
    return replica_of(c);
}

static void enter_list(struct replica *r, enum replica_state state)
{
    assert(!r->link && state_of(r) == REPLICA_GREETING);
    atomic_store(&r->heard_ms, replica_clock_ms());
    set_state(r, state);
    lock_acquire(&list.lock);
    r->link = list.last;
    *list.last = r;
    list.last = &r->next;
    list.count++;
    lock_release(&list.lock);
    socket_set_delay(r->feed.client->fd, sync_settings.disable_nodelay);
    feed_start(&r->feed);
    sync_wake();
}

void replica_go_on(struct replica *r, const char *line)
{
    buf_append_cstr(&r->text, line);
    uint64_t offset = atomic_load(&r->on_disk) ? r->disk.position : r->stream.position;
    atomic_store(&r->sent_offset, offset);
    atomic_store(&r->ack_offset, offset);
    enter_list(r, REPLICA_ONLINE);
}

void replica_wait(struct replica *r)
{
    enter_list(r, REPLICA_WAIT_START);
}

void replica_acknowledge(struct replica *r, uint64_t offset)
{
    atomic_store(&r->heard_ms, replica_clock_ms());
    if (offset > atomic_load(&r->ack_offset)) {
        atomic_store(&r->ack_offset, offset);
    }
    if (state_of(r) == REPLICA_WAIT_ACK) {
        set_state(r, REPLICA_ONLINE);
        feeds_wake();
    }
}

void replica_acknowledge_safe(struct replica *r, uint64_t offset)
{
    if (offset >= atomic_load(&r->safe_told)) {
        atomic_store(&r->safe_told, offset + 1);
    }
}

/* ---- looking ---- */

void replicas_each(void (*visit)(struct replica *r, void *context), void *context)
{
    lock_acquire(&list.lock);
    for (struct replica *r = list.first; r; r = r->next) {
        visit(r, context);
    }
    lock_release(&list.lock);
}

int replicas_count(void)
{
    lock_acquire(&list.lock);
    int count = list.count;
    lock_release(&list.lock);
    return count;
}

struct having {
    uint64_t offset;
    int count;
};

static void count_having(struct replica *r, void *context)
{
    struct having *h = context;
    h->count += state_of(r) == REPLICA_ONLINE && !r->rdb_only &&
                atomic_load_explicit(&r->ack_offset, memory_order_relaxed) >= h->offset;
}

static void count_safe(struct replica *r, void *context)
{
    struct having *h = context;
    h->count += state_of(r) == REPLICA_ONLINE && !r->rdb_only &&
                atomic_load_explicit(&r->safe_told, memory_order_relaxed) > h->offset;
}

int replicas_with_safe(uint64_t offset)
{
    struct having h = {.offset = offset};
    replicas_each(count_safe, &h);
    return h.count;
}

int replicas_with(uint64_t offset)
{
    struct having h = {.offset = offset};
    replicas_each(count_having, &h);
    return h.count;
}
