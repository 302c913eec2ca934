/* See peer_feed.h. */
#include "active/peer_feed.h"

#include "base/lock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/stats.h"
#include "net/feed.h"
#include "net/settings.h"
#include "net/socket.h"
#include "active/active.h"
#include "active/frame.h"
#include "active/full_sync_record.h"
#include "active/full_sync_source.h"
#include "active/sender.h"
#include "active/sender_disk.h"
#include "repl/replica.h"
#include "repl/sync.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

/* Taken from the logs at a time. */
#define FILL_BYTES ((size_t)64 * 1024)
/* Reads of the disk at a time that may bring nothing for this peer. */
#define READS_IN_VAIN_MAX 64
/* A buffer that has become larger (one large write) is not kept. */
#define KEPT_BYTES (4 * FILL_BYTES)
/* How often clocks are told: at rest, and while nodes write, of whose writes as few as may be are
 * to stay in the windows until all have seen them. */
#define CLOCKS_MS 1000
#define CLOCKS_BUSY_MS 100
/* KEYDB.PULL version node clock */
#define HEAD_WORDS 4

struct pull {
    struct feed feed; /* first */
    struct pull *next, **link;
    char ip[REPLICA_IP_MAX];
    int64_t port;
    char node[ACTIVE_NODE_CHARS]; /* the peer's */
    /* The client's thread's: */
    struct sender send;
    struct sender_disk disk;
    struct buf out; /* frames; those before `sent` are */
    size_t sent;
    int64_t clocks_ms;               /* when clocks were told last */
    struct full_sync_source *source; /* the data set that comes first; NULL: none */
    uint64_t source_sent;
    bool before; /* before it, what the logs have up to its moment */
    bool holds;  /* the logs keep for it what comes behind that */
    /* Anybody's: */
    _Atomic uint64_t upto; /* of what the logs have ever got: it has been sent all of that */
    _Atomic uint64_t pending;
    _Atomic int64_t heard_ms;
    _Atomic uint64_t has; /* of our own writes, as it said last */
    _Atomic bool closing;
    _Atomic bool asked; /* a C frame is due, which it answers */
};

static struct {
    struct lock lock;
    struct pull *first, **last;
    _Atomic int count;
} list = {.lock = LOCK_INIT(LOCK_RANK_REPLICAS, "pulls"), .last = &list.first};

/* Peers that have requested, while they were fed, what is not kept: they get everything when they
 * come again. (What KEYDB.PULL requests is not all: what a peer lacks it may learn from us.) Behind
 * the list's lock; of more than so many the oldest is forgotten, and has to learn it again. */
#define OWED_MAX 16
static struct {
    char nodes[OWED_MAX][ACTIVE_NODE_CHARS];
    unsigned next;
} owed;

static void owe(const char *node)
{
    lock_acquire(&list.lock);
    memcpy(owed.nodes[owed.next++ % OWED_MAX], node, ACTIVE_NODE_CHARS);
    lock_release(&list.lock);
}

static bool is_owed(const char *node)
{
    bool found = false;
    lock_acquire(&list.lock);
    for (int i = 0; i < OWED_MAX; i++) {
        if (memcmp(owed.nodes[i], node, ACTIVE_NODE_CHARS) == 0) {
            memset(owed.nodes[i], 0, ACTIVE_NODE_CHARS);
            found = true;
        }
    }
    lock_release(&list.lock);
    return found;
}

/* ---- what is sent ---- */

static void note_pending(struct pull *p)
{
    atomic_store_explicit(&p->pending, p->out.len - p->sent, memory_order_relaxed);
}

/* The logs need not keep anything for it any more. */
static void let_go(struct pull *p)
{
    if (p->holds) {
        origin_log_let_go(node_log(active_node()));
        p->holds = false;
    }
}

/* More of the data set; a sign of life while it is being written. False: it is none. */
static bool fill_from_source(struct pull *p)
{
    enum full_sync_source_state state = full_sync_source_state(p->source);
    int64_t now_ms = replica_clock_ms();
    if (state == FULL_SYNC_SOURCE_WRITING && now_ms - p->clocks_ms >= CLOCKS_MS) {
        p->clocks_ms = now_ms;
        full_sync_record_put(&p->out, &(struct full_sync_record){.kind = 'N'});
    }
    if (state != FULL_SYNC_SOURCE_READY) {
        return state == FULL_SYNC_SOURCE_WRITING;
    }
    ssize_t got = full_sync_source_read(p->source, buf_reserve(&p->out, FILL_BYTES), FILL_BYTES,
                                        p->source_sent);
    if (got <= 0) {
        return false;
    }
    p->out.len += (size_t)got;
    p->source_sent += (size_t)got;
    if (p->source_sent == full_sync_source_bytes(p->source)) {
        full_sync_source_release(&p->source);
        log_notice("Active peer %s:%lld has been sent the data set", p->ip, (long long)p->port);
    }
    return true;
}

/* What comes before the data set: with the last of it the data set is announced. */
static void fill_before_source(struct pull *p) NO_THREAD_SAFETY_ANALYSIS
{
    const struct version_vector *moment = full_sync_source_positions(p->source);
    if (!keyspace_try_shared()) {
        return; /* asked again by the tick */
    }
    struct node *node = active_node();
    const struct origins *origins = node_origins(node);
    sender_before(&p->send, origins, node_log(node), moment, FILL_BYTES, &p->out);
    if (p->out.len == 0) {
        sender_skip(&p->send, origins, moment);
        frame_put_set(&p->out);
        p->before = false;
    }
    keyspace_unlock_shared();
}

/* How much of the logs is kept for who reads them, or is sent a data set: what a replica may have
 * unread. */
static size_t held_bytes(void)
{
    int64_t hard = net_settings.output_limit[CLIENT_CLASS_REPLICA].hard_bytes;
    return hard > 0 ? (size_t)hard : SIZE_MAX;
}

/* The logs keep what the slowest has not been sent. There is a node. */
static void note_slowest(void)
{
    uint64_t upto = UINT64_MAX;
    lock_acquire(&list.lock);
    for (struct pull *p = list.first; p; p = p->next) {
        uint64_t its = atomic_load(&p->upto);
        upto = !atomic_load(&p->closing) && its < upto ? its : upto;
    }
    origin_log_read_upto(node_log(active_node()), upto, held_bytes());
    lock_release(&list.lock);
}

/* From memory; where that lacks what comes next, from the disk from now on. False: nor is it there.
 * *all: there is nothing more to tell. */
static bool fill_from_memory(struct pull *p, const struct origins *origins,
                             const struct origin_log *log, bool *all)
{
    if (sender_some(&p->send, origins, log, FILL_BYTES, &p->out)) {
        if (p->out.len == 0) {
            let_go(p);
        }
        *all = p->out.len < FILL_BYTES;
        if (*all) {
            atomic_store(&p->upto, origin_log_appended(log));
            note_slowest();
        }
        return true;
    }
    if (p->out.len > 0) {
        return true; /* what comes next is looked at the next time */
    }
    if (!sender_disk_begin(&p->disk, &p->send, origins, log)) {
        return false;
    }
    log_notice("Active peer %s:%lld is sent what the disk has", p->ip, (long long)p->port);
    let_go(p);
    atomic_store(&p->upto, UINT64_MAX); /* memory need not keep anything for it */
    note_slowest();
    return true;
}

/* What has been read from the disk; false: what comes next is nowhere. */
static bool fill_from_disk(struct pull *p, const struct origins *origins,
                           const struct origin_log *log)
{
    bool kept = sender_disk_some(&p->disk, &p->send, origins, log, &p->out);
    if (kept && !p->disk.on) {
        log_notice("Active peer %s:%lld has been sent what the disk has", p->ip,
                   (long long)p->port);
    }
    return kept;
}

/* Clocks, when they are wanted or it is time. `all`: every write that they speak of has been sent;
 * without those they tell a peer nothing. */
static void fill_clocks(struct pull *p, const struct origins *origins, bool wanted, bool all)
{
    int64_t now_ms = replica_clock_ms(), since_ms = now_ms - p->clocks_ms;
    if (wanted || since_ms >= CLOCKS_MS ||
        (all && since_ms >= CLOCKS_BUSY_MS && sender_has_news(&p->send, origins))) {
        p->clocks_ms = now_ms;
        sender_clocks(&p->send, origins, &p->out);
    }
}

enum filled { FILLED, FILLED_NOTHING_YET, FILL_LOST };

/* The disk is read before the lock is taken. `last`: it had better be something. */
static enum filled fill_some(struct pull *p, bool last) NO_THREAD_SAFETY_ANALYSIS
{
    struct node *node = active_node();
    bool on_disk = p->disk.on, all = false;
    if (on_disk && !sender_disk_read(&p->disk, origin_log_reserve(node_log(node)))) {
        return FILL_LOST;
    }
    if (!keyspace_try_shared()) {
        return FILLED; /* a script takes long: asked again by the tick */
    }
    const struct origins *origins = node_origins(node);
    const struct origin_log *log = node_log(node);
    sender_set_forwards(&p->send, !active_settings.no_forward, node_id(node));
    bool kept = on_disk ? fill_from_disk(p, origins, log) : fill_from_memory(p, origins, log, &all);
    bool goes_on = p->out.len == 0 && (on_disk || p->disk.on);
    if (kept) {
        /* Who is asked has been told everything then. */
        bool asks = all && atomic_exchange(&p->asked, false);
        fill_clocks(p, origins, asks || (goes_on && last), all);
    }
    keyspace_unlock_shared();
    if (!kept) {
        return FILL_LOST;
    }
    return goes_on && p->out.len == 0 ? FILLED_NOTHING_YET : FILLED;
}

/* More frames, if there is anything to tell; false: what the peer wants next is not kept. */
static bool fill(struct pull *p)
{
    if (p->out.capacity > KEPT_BYTES) {
        buf_deinit(&p->out);
    }
    buf_clear(&p->out);
    p->sent = 0;
    if (p->source && p->before) {
        fill_before_source(p);
        return true;
    }
    if (p->source) {
        return fill_from_source(p);
    }
    enum filled filled = FILLED_NOTHING_YET;
    for (int i = 1; i <= READS_IN_VAIN_MAX && filled == FILLED_NOTHING_YET; i++) {
        filled = fill_some(p, i == READS_IN_VAIN_MAX);
    }
    return filled != FILL_LOST;
}

static bool over(struct feed *f)
{
    const struct pull *p = (const struct pull *)f;
    return atomic_load_explicit(&p->closing, memory_order_relaxed);
}

static int next(struct feed *f, struct iovec *vectors, int max UNUSED)
{
    struct pull *p = (struct pull *)f;
    if (over(f)) {
        return -1;
    }
    if (p->sent == p->out.len && !fill(p)) {
        log_notice(
            "Active peer %s:%lld requests what is not kept any more: its link is closed, and "
            "it gets everything",
            p->ip, (long long)p->port);
        owe(p->node);
        return -1;
    }
    note_pending(p);
    if (p->sent == p->out.len) {
        return 0;
    }
    vectors[0] = (struct iovec){p->out.data + p->sent, p->out.len - p->sent};
    return 1;
}

static void sent(struct feed *f, size_t bytes)
{
    struct pull *p = (struct pull *)f;
    stats_add(STAT_REPL_OUTPUT_BYTES, bytes);
    p->sent += bytes;
    note_pending(p);
}

static uint64_t pending(const struct feed *f)
{
    const struct pull *p = (const struct pull *)f;
    return atomic_load_explicit(&p->pending, memory_order_relaxed);
}

/* ---- life ---- */

static void enter_list(struct pull *p)
{
    lock_acquire(&list.lock);
    p->link = list.last;
    *list.last = p;
    list.last = &p->next;
    lock_release(&list.lock);
    atomic_fetch_add(&list.count, 1);
    sync_wake(); /* min-replicas-to-write */
}

static void gone(struct feed *f)
{
    struct pull *p = (struct pull *)f;
    lock_acquire(&list.lock);
    *p->link = p->next;
    *(p->next ? &p->next->link : &list.last) = p->link;
    lock_release(&list.lock);
    atomic_fetch_sub(&list.count, 1);
    log_notice("The connection with active peer %s:%lld is lost", p->ip, (long long)p->port);
    let_go(p);
    sync_wake();
    if (active_is_on()) {
        note_slowest();
    }
    full_sync_source_release(&p->source);
    sender_disk_deinit(&p->disk);
    sender_deinit(&p->send);
    buf_deinit(&p->out);
    mem_free(p);
}

static const struct feed_ops ops = {
    .next = next, .sent = sent, .over = over, .pending = pending, .gone = gone};

bool peer_feed_is(const struct client *c)
{
    return c->feed && c->feed->ops == &ops;
}

/* What the peer has said of our own writes. */
static void note_has(struct pull *p) REQUIRES(keyspace_lock)
{
    uint16_t self = node_self(active_node());
    if (self < p->send.count) {
        atomic_store(&p->has, p->send.rows[self].has);
    }
}

/* `source_take`: a data set comes first, NULL: none. */
static void begin_feed(struct client *client, struct slice peer, struct sender *send_take,
                       struct full_sync_source *source_take) REQUIRES(keyspace_lock)
{
    char node[ACTIVE_NODE_CHARS];
    struct pull *p = mem_calloc(1, sizeof(*p));
    struct replica *r = replica_greet(client); /* what it has told of itself */
    memcpy(p->ip, r->ip, sizeof(p->ip));
    p->port = r->port;
    feed_forget(client);
    memcpy(p->node, peer.ptr, sizeof(p->node));
    p->send = *send_take;
    note_has(p);
    active_node_text(node);
    p->source = source_take;
    p->before = p->holds = source_take != NULL;
    p->upto = origin_log_appended(node_log(active_node()));
    buf_printf(&p->out, "+%s %.*s\r\n", source_take ? "MERGE" : "PULL", ACTIVE_NODE_CHARS, node);
    atomic_store(&p->heard_ms, replica_clock_ms());
    feed_attach(client, &p->feed, &ops);
    enter_list(p);
    note_slowest();
    socket_set_delay(client->fd, sync_settings.disable_nodelay);
    feed_start(&p->feed);
    log_notice("Active peer %s:%lld takes our writes%s", p->ip, (long long)p->port,
               source_take ? ", all that is here first" : "");
}

/* ---- KEYDB.PULL ---- */

/* The version, the node, which is *peer, and its clock; false with the error replied. */
static bool take_head(struct call *c, struct origin_id *peer) REQUIRES(keyspace_lock);
static bool take_head(struct call *c, struct origin_id *peer)
{
    char own[ACTIVE_NODE_CHARS], origin[ORIGIN_CHARS];
    uint64_t clock;
    memset(origin, '0', sizeof(origin));
    if (c->argv[2].len == ACTIVE_NODE_CHARS) {
        memcpy(origin, c->argv[2].ptr, ACTIVE_NODE_CHARS);
    }
    active_node_text(own);
    if (!slice_equal(c->argv[1], SLICE(FRAME_VERSION))) {
        reply_error(c->reply,
                    "ERR KEYDB.PULL is version " FRAME_VERSION " here: an active replica of "
                    "another release");
    } else if (c->argv[2].len != ACTIVE_NODE_CHARS || !num_parse_u64(c->argv[3], &clock) ||
               !origin_parse(slice_of(origin, sizeof(origin)), peer)) {
        reply_syntax_error(c->reply);
    } else if (memcmp(c->argv[2].ptr, own, ACTIVE_NODE_CHARS) == 0) {
        reply_error(c->reply, "ERR a node does not pull from itself");
    } else if (!hlc_see(node_clock(active_node()), clock)) {
        reply_error(c->reply, "ERR your clock is more than a day ahead of ours");
    } else {
        keyspace_has_work = true;
        return true;
    }
    return false;
}

/* ---- who lacks what is not kept ---- */

/* Who begins with that data set, can he have what comes behind it? */
static bool will_do(const struct version_vector *moment, void *context)
{
    keyspace_assert_exclusive();
    return sender_possible_after(context, node_origins(active_node()), node_log(active_node()),
                                 moment);
}

/* Everything first. */
static void begin_with_source(struct call *c, struct client *client, struct sender *send_take)
    REQUIRES(keyspace_lock)
{
    struct node *node = active_node();
    const char *error = NULL;
    struct full_sync_source *source = full_sync_source_join(node, will_do, send_take, &error);
    if (!source) {
        char text[256];
        snprintf(text, sizeof(text), "NOMERGE what you lack is not kept any more, and just now: %s",
                 error);
        reply_error(c->reply, text);
        client->flags |= CLIENT_CLOSE_AFTER_REPLY;
        sender_deinit(send_take);
        return;
    }
    origin_log_hold(node_log(node), held_bytes());
    begin_feed(client, c->argv[2], send_take, source);
}

WRITE_COMMAND(pull_command)
{
    struct client *client = client_of(c->session);
    struct sender send;
    struct origin_id peer;
    if (!client || !active_is_on()) {
        reply_error(c->reply, "ERR this server is no active replica, or you are no connection");
        return;
    }
    if (client->feed &&
        (peer_feed_is(client) || atomic_load(&replica_of(client)->state) != REPLICA_GREETING)) {
        return; /* is fed already */
    }
    if (!take_head(c, &peer)) {
        return;
    }
    const struct origins *origins = node_origins(active_node());
    sender_init(&send, origins);
    sender_tells_causes(&send, peer.node);
    sender_set_forwards(&send, !active_settings.no_forward, node_id(active_node()));
    bool heard = sender_hear(&send, origins, c->argc - HEAD_WORDS, c->argv + HEAD_WORDS);
    if (!heard) {
        sender_deinit(&send);
        reply_syntax_error(c->reply);
    } else if (!is_owed(c->argv[2].ptr) &&
               sender_possible(&send, origins, node_log(active_node()))) {
        begin_feed(client, c->argv[2], &send, NULL);
    } else {
        begin_with_source(c, client, &send);
    }
}

bool peer_feed_hear(struct call *c)
{
    struct client *client = client_of(c->session);
    if (!client || !peer_feed_is(client)) {
        return false;
    }
    struct pull *p = (struct pull *)client->feed;
    if (over(client->feed)) {
        return true;
    }
    atomic_store(&p->heard_ms, replica_clock_ms());
    if (!sender_hear(&p->send, node_origins(active_node()), c->argc - 2, c->argv + 2)) {
        log_warning("Active peer %s:%lld wants what is no origin", p->ip, (long long)p->port);
        atomic_store(&p->closing, true);
    }
    note_has(p);
    feeds_wake();
    return true;
}

const struct command_row active_commands[] = {
    {.name = "keydb.pull",
     .run = pull_command,
     .arity = -HEAD_WORDS,
     .flags = CMD_ADMIN | CMD_NOSCRIPT | CMD_NO_ASYNC_LOADING | CMD_NO_MULTI | CMD_EXCLUSIVE |
              CMD_BARRIER | CMD_STALE,
     .group = "server",
     .since = "7.2.0",
     .summary = "Makes the connection one of an active replica that takes our writes.",
     .args = "version node clock [origin position requested ...]"},
    {.name = NULL},
};

/* ---- all of them ---- */

void peer_feeds_wake(void)
{
    if (atomic_load_explicit(&list.count, memory_order_relaxed) > 0) {
        feeds_wake();
    }
}

void peer_feeds_tick(int64_t now_ms, int64_t timeout_ms)
{
    lock_acquire(&list.lock);
    for (struct pull *p = list.first; p; p = p->next) {
        if (now_ms - atomic_load(&p->heard_ms) > timeout_ms) {
            atomic_store(&p->closing, true);
        }
    }
    lock_release(&list.lock);
    note_slowest();
    peer_feeds_wake();
}

void peer_feeds_end(void)
{
    lock_acquire(&list.lock);
    for (struct pull *p = list.first; p; p = p->next) {
        atomic_store(&p->closing, true);
        p->holds = false; /* the logs go with the node; its thread stands */
    }
    lock_release(&list.lock);
    feeds_wake();
}

int peer_feeds_with(uint64_t sequence)
{
    int count = 0;
    lock_acquire(&list.lock);
    for (struct pull *p = list.first; p; p = p->next) {
        count += atomic_load(&p->has) >= sequence && !atomic_load(&p->closing);
    }
    lock_release(&list.lock);
    return count;
}

void peer_feeds_ask(void)
{
    lock_acquire(&list.lock);
    for (struct pull *p = list.first; p; p = p->next) {
        atomic_store(&p->asked, true);
    }
    lock_release(&list.lock);
    peer_feeds_wake();
}

int peer_feeds_count(void)
{
    return atomic_load(&list.count);
}

int peer_feeds_heard_since(int64_t ms)
{
    int count = 0;
    lock_acquire(&list.lock);
    for (struct pull *p = list.first; p; p = p->next) {
        count += atomic_load(&p->heard_ms) >= ms && !atomic_load(&p->closing);
    }
    lock_release(&list.lock);
    return count;
}

void peer_feeds_each(void (*visit)(const struct peer_feed_facts *f, void *context), void *context)
{
    lock_acquire(&list.lock);
    for (struct pull *p = list.first; p; p = p->next) {
        struct peer_feed_facts facts = {p->ip, p->port, atomic_load(&p->heard_ms)};
        visit(&facts, context);
    }
    lock_release(&list.lock);
}
