/* See migrate.h.
 *
 *   handler: copies the keys' payloads, under the lock
 *   worker:  connects, AUTH, SELECT, then rounds of: RESTORE of what is to be sent, replies;
 *            under the lock, some keys a hold: deletes those that are as they were sent, takes
 *            anew what was changed; and says that it is done
 *   handler: is run again, and replies what the worker says
 */
#include "repl/migrate.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/lock.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/stats.h"
#include "base/thread.h"
#include "engine/block.h"
#include "engine/propagate.h"
#include "keyspace/event.h"
#include "keyspace/reclaim.h"
#include "keyspace/waiting.h"
#include "persist/payload.h"
#include "repl/link.h"
#include "value/module.h"

#include <arpa/inet.h>
#include <assert.h>
#include <pthread.h>
#include <string.h>

/* Threads that migrate at once; more calls wait for one of them. */
#define WORKERS_MAX 4
/* Keys that are looked at in one hold of the lock: each is written out to be compared. */
#define KEYS_A_HOLD 16
/* How often what was changed meanwhile is sent again before the call gives up. */
#define ROUNDS_MAX 64
#define DEFAULT_TIMEOUT_MS 1000
/* Everybody else may be kept waiting for so long by a call within EXEC or a script. */
#define HELD_MAX_MS 1000

enum item_state {
    ITEM_TO_SEND,   /* RESTORE */
    ITEM_TO_DELETE, /* the other server has it, and it is deleted here: DEL there too */
    ITEM_SENT,      /* the other server has it as it is in `payload` */
    ITEM_DONE,      /* nothing is left to be done */
};

struct item {
    struct buf key, payload;
    int64_t expiry_ms;
    enum item_state state;
    bool was_sent; /* at least once: RESTORE has to replace then */
};

struct job {
    _Atomic int references; /* the worker's, the parked call's */
    struct job *next;       /* in the queue */
    /* What was asked. */
    struct buf host, user, password, source;
    int port, target_db;
    int64_t timeout_ms;
    bool copy, replace, authenticates, has_user;
    struct db *db;
    struct item *items;
    int item_count;
    struct buf wait_key; /* at which the call waits */
    /* What came of it; `done` under the keyspace lock. */
    bool done;
    struct buf error; /* empty: fine */
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct job *first, *last;
    int workers, idle;
    _Atomic bool stop;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void release(struct job *j)
{
    if (atomic_fetch_sub(&j->references, 1) > 1) {
        return;
    }
    for (int i = 0; i < j->item_count; i++) {
        buf_deinit(&j->items[i].key);
        buf_deinit(&j->items[i].payload);
    }
    mem_free(j->items);
    buf_deinit(&j->host);
    buf_deinit(&j->user);
    buf_deinit(&j->password);
    buf_deinit(&j->source);
    buf_deinit(&j->wait_key);
    buf_deinit(&j->error);
    mem_free(j);
}

static void release_state(void *state)
{
    release(state);
}

/* ---- under the lock: keys as they are ---- */

/* Writes the key's value and expiry into the item; false when there is no such key. */
static bool take_payload(struct job *j, struct item *item, int64_t now_ms)
    REQUIRES_SHARED(keyspace_lock);
static bool take_payload(struct job *j, struct item *item, int64_t now_ms)
{
    struct key key = key_of(buf_slice(&item->key));
    struct entry *e = db_read(j->db, &key, now_ms, DB_NO_TOUCH | DB_NO_STATS);
    buf_clear(&item->payload);
    if (!e) {
        return false;
    }
    int before = module_value_db;
    module_value_db = j->target_db; /* as Redis has it */
    payload_write(&item->payload, e);
    module_value_db = before;
    item->expiry_ms = entry_expiry_ms(e);
    return true;
}

static void delete_key(struct job *j, struct keyref *ref) REQUIRES(keyspace_lock);
static void delete_key(struct job *j, struct keyref *ref)
{
    struct entry *e = db_take(ref);
    propagate_delete(j->db, ref->key.name, false);
    event_key_changed(j->db, ref->key.name);
    event_notify(EVENT_GENERIC, "del", j->db->id, ref->key.name);
    stats_add(STAT_DIRTY, 1);
    reclaim_entry(e, reclaim_lazy_server_del());
}

/* The other server has the key as it was sent. It is deleted here if it is still that; what was
 * changed meanwhile is to be sent again. */
static void settle_item(struct job *j, struct item *item, int64_t now_ms) REQUIRES(keyspace_lock);
static void settle_item(struct job *j, struct item *item, int64_t now_ms)
{
    struct keyref ref;
    struct key key = key_of(buf_slice(&item->key));
    struct buf sent = item->payload;
    int64_t sent_expiry_ms = item->expiry_ms;
    item->payload = (struct buf){0};
    db_open(&ref, j->db, &key, now_ms, 0);
    if (!ref.entry) {
        /* Expired here, it does so there; or somebody has deleted it. */
        item->state = entry_is_over(sent_expiry_ms, now_ms) ? ITEM_DONE : ITEM_TO_DELETE;
    } else {
        bool there = take_payload(j, item, now_ms);
        assert(there);
        if (slice_equal(buf_slice(&sent), buf_slice(&item->payload)) &&
            sent_expiry_ms == item->expiry_ms) {
            delete_key(j, &ref);
            item->state = ITEM_DONE;
        } else {
            item->state = ITEM_TO_SEND;
        }
    }
    buf_deinit(&sent);
}

/* ---- the network ---- */

static bool fail(struct job *j, const char *text)
{
    if (j->error.len == 0) {
        buf_append_cstr(&j->error, text);
    }
    return false;
}

static bool fail_io(struct job *j, const char *doing)
{
    if (j->error.len == 0) {
        buf_printf(&j->error, "IOERR error or timeout %s to target instance", doing);
    }
    return false;
}

/* Keeps the first error that the other server has replied. */
static void note_refusal(struct job *j, const char *text)
{
    if (j->error.len == 0) {
        buf_printf(&j->error, "ERR Target instance replied with error: %s", text);
    }
}

/* One more reply; false when the connection is broken or it is an error. */
static bool expect_fine(struct job *j, struct link *l)
{
    char text[LINK_TEXT_BYTES];
    switch (link_read(l, text)) {
    case LINK_FINE:
        return true;
    case LINK_ERROR:
        note_refusal(j, text);
        return false;
    case LINK_BROKEN:
        return fail_io(j, "reading");
    }
    return false;
}

static bool greet(struct job *j, struct link *l)
{
    char number[NUM_I64_MAX_CHARS];
    struct slice auth[] = {SLICE("AUTH"), buf_slice(&j->password)};
    struct slice auth2[] = {SLICE("AUTH"), buf_slice(&j->user), buf_slice(&j->password)};
    struct slice select[] = {SLICE("SELECT"),
                             slice_of(number, num_format_i64(number, j->target_db))};
    if (j->authenticates && j->has_user) {
        link_add(l, 3, auth2);
    } else if (j->authenticates) {
        link_add(l, 2, auth);
    }
    link_add(l, 2, select);
    if (!link_flush(l)) {
        return fail_io(j, "writing");
    }
    bool fine = !j->authenticates || expect_fine(j, l);
    return fine && expect_fine(j, l);
}

static void add_item(const struct job *j, struct link *l, const struct item *item, int64_t now_ms)
{
    if (item->state == ITEM_TO_DELETE) {
        struct slice words[] = {SLICE("DEL"), buf_slice(&item->key)};
        link_add(l, 2, words);
        return;
    }
    char number[NUM_I64_MAX_CHARS];
    int64_t ttl_ms = 0;
    if (item->expiry_ms != ENTRY_NO_EXPIRY) {
        ttl_ms = item->expiry_ms - now_ms;
        ttl_ms = ttl_ms < 1 ? 1 : ttl_ms;
    }
    struct slice words[] = {SLICE("RESTORE"), buf_slice(&item->key),
                            slice_of(number, num_format_i64(number, ttl_ms)),
                            buf_slice(&item->payload), SLICE("REPLACE")};
    link_add(l, j->replace || item->was_sent ? 5 : 4, words);
}

static bool is_open(const struct item *item)
{
    return item->state == ITEM_TO_SEND || item->state == ITEM_TO_DELETE;
}

/* Sends what is to be sent and reads the replies. False when the connection is broken; what the
 * other server refuses stays here, and the first of its errors is the call's. */
static bool exchange(struct job *j, struct link *l)
{
    char text[LINK_TEXT_BYTES];
    int64_t now_ms = clock_wall_ms();
    for (int i = 0; i < j->item_count; i++) {
        if (is_open(&j->items[i])) {
            add_item(j, l, &j->items[i], now_ms);
        }
    }
    if (!link_flush(l)) {
        return fail_io(j, "writing");
    }
    for (int i = 0; i < j->item_count; i++) {
        struct item *item = &j->items[i];
        if (!is_open(item)) {
            continue;
        }
        enum link_reply reply = link_read(l, text);
        if (reply == LINK_BROKEN) {
            return fail_io(j, "reading");
        }
        bool sent = item->state == ITEM_TO_SEND && reply == LINK_FINE;
        item->was_sent |= sent;
        item->state = sent ? ITEM_SENT : ITEM_DONE;
        if (reply == LINK_ERROR) {
            note_refusal(j, text);
        }
    }
    return true;
}

/* ---- the worker ---- */

/* Settles what was sent; true when something is to be sent again. */
static bool settle(struct job *j) EXCLUDES(keyspace_lock)
{
    bool again = false;
    for (int i = 0; i < j->item_count;) {
        keyspace_lock_exclusive();
        int64_t now_ms = clock_wall_ms();
        for (int held = 0; held < KEYS_A_HOLD && i < j->item_count; held++, i++) {
            if (j->items[i].state == ITEM_SENT) {
                settle_item(j, &j->items[i], now_ms);
                again |= is_open(&j->items[i]);
            }
        }
        keyspace_unlock_exclusive();
        reclaim_run();
    }
    return again;
}

static void open_link(struct job *j, struct link *l)
{
    buf_append_char(&j->host, '\0');
    buf_append_char(&j->source, '\0');
    if (!link_connect(l, j->host.data, j->port, j->source.data)) {
        fail(j, "IOERR error or timeout connecting to the client");
    }
}

/* Awake: has the GIL in shared mode, but not while it waits for the network. */
static void work(struct job *j) NO_THREAD_SAFETY_ANALYSIS
{
    struct link l = {.timeout_ms = j->timeout_ms, .stop = &pool.stop};
    bool again = true;
    link_prepare(&l);
    gil_sleep();
    open_link(j, &l);
    bool ok = l.context && greet(j, &l);
    gil_wake();
    for (int round = 0; ok && again && round < ROUNDS_MAX; round++) {
        gil_sleep();
        ok = exchange(j, &l);
        gil_wake();
        again = !j->copy && settle(j);
    }
    if (ok && again) {
        fail(j, "ERR keys were changed again and again while they were sent: they are still here");
    }
    link_close(&l);
}

/* Runs the parked call again, if somebody still waits. */
static void tell_done(struct job *j) EXCLUDES(keyspace_lock)
{
    keyspace_lock_exclusive();
    j->done = true;
    waiting_note_change(j->db, buf_slice(&j->wait_key));
    keyspace_unlock_exclusive();
}

static struct job *next_job(void)
{
    pthread_mutex_lock(&pool.lock);
    struct job *j = pool.stop ? NULL : pool.first;
    if (j) {
        pool.first = j->next;
    } else {
        pool.workers--;
        pthread_cond_signal(&pool.changed);
    }
    pthread_mutex_unlock(&pool.lock);
    return j;
}

static void *run_worker(void *argument)
{
    struct job *j;
    (void)argument;
    thread_enter("migrate");
    while ((j = next_job()) != NULL) {
        gil_wake();
        work(j);
        tell_done(j);
        gil_sleep();
        release(j);
    }
    thread_leave();
    return NULL;
}

/* Queues the job, with one more worker unless there are enough; false when no thread is to be had.
 */
static bool hand_over(struct job *j)
{
    pthread_t thread;
    pthread_mutex_lock(&pool.lock);
    bool has_worker = pool.workers > 0;
    if (pool.workers < WORKERS_MAX && thread_start(&thread, run_worker, NULL) == 0) {
        pthread_detach(thread);
        pool.workers++;
        has_worker = true;
    }
    if (has_worker) {
        j->next = NULL;
        *(pool.first ? &pool.last->next : &pool.first) = j;
        pool.last = j;
        atomic_fetch_add(&j->references, 1);
    }
    pthread_mutex_unlock(&pool.lock);
    return has_worker;
}

void migrate_teardown(void)
{
    pthread_mutex_lock(&pool.lock);
    pool.stop = true;
    while (pool.workers > 0) {
        pthread_cond_wait(&pool.changed, &pool.lock);
    }
    pthread_mutex_unlock(&pool.lock);
    while (pool.first) {
        struct job *j = pool.first;
        pool.first = j->next;
        release(j);
    }
}

/* ---- the handler ---- */

static void put(struct buf *to, struct slice from)
{
    buf_clear(to);
    buf_append_slice(to, from);
}

/* Options behind the time-out; false with the error replied. */
static bool parse_options(struct call *c, struct job *j)
{
    for (int i = 6; i < c->argc; i++) {
        int more = c->argc - i - 1;
        if (call_arg_is(c, i, "copy")) {
            j->copy = true;
        } else if (call_arg_is(c, i, "replace")) {
            j->replace = true;
        } else if (call_arg_is(c, i, "auth") && more >= 1) {
            put(&j->password, c->argv[++i]);
            j->authenticates = true;
            j->has_user = false;
        } else if (call_arg_is(c, i, "auth2") && more >= 2) {
            put(&j->user, c->argv[++i]);
            put(&j->password, c->argv[++i]);
            j->authenticates = j->has_user = true;
        } else if (call_arg_is(c, i, "keys")) {
            if (c->argv[3].len > 0) {
                reply_error(c->reply, "ERR When using MIGRATE KEYS option, the key argument must "
                                      "be set to the empty string");
                return false;
            }
            return true;
        } else {
            reply_syntax_error(c->reply);
            return false;
        }
    }
    return true;
}

static bool parse(struct call *c, struct job *j)
{
    int64_t port = 0, db;
    if (!parse_options(c, j) || !call_arg_i64(c, 5, &j->timeout_ms) || !call_arg_i64(c, 4, &db)) {
        return false;
    }
    if (db < INT32_MIN || db > INT32_MAX) {
        reply_error(c->reply, "ERR value is out of range");
        return false;
    }
    /* A port that is none is found when connecting to it fails. */
    bool is_port = num_parse_i64(c->argv[2], &port) && port > 0 && port < 65536;
    j->port = is_port ? (int)port : 0;
    j->target_db = (int)db;
    j->timeout_ms = j->timeout_ms > 0 ? j->timeout_ms : DEFAULT_TIMEOUT_MS;
    j->db = c->db;
    put(&j->host, c->argv[1]);
    put(&j->source, slice_cstr(link_source_address ? link_source_address : ""));
    return true;
}

/* Copies the keys that are there. */
static void collect(struct call *c, struct job *j) REQUIRES(keyspace_lock);
static void collect(struct call *c, struct job *j)
{
    j->items = mem_calloc((size_t)c->key_count + 1, sizeof(*j->items));
    for (int k = 0; k < c->key_count; k++) {
        struct item *item = &j->items[j->item_count];
        struct keyref ref;
        call_open(c, k, &ref);
        put(&item->key, call_key(c, k)->name);
        if (ref.entry && take_payload(j, item, c->now_ms)) {
            j->item_count++;
        } else {
            buf_deinit(&item->key);
        }
    }
    if (c->key_count > 0) {
        put(&j->wait_key, call_key(c, 0)->name);
    }
}

static void reply_outcome(struct call *c, const struct job *j)
{
    if (j->error.len > 0) {
        reply_error_slice(c->reply, buf_slice(&j->error));
    } else {
        reply_ok(c->reply);
    }
}

static bool is_address(const struct buf *host)
{
    char text[INET6_ADDRSTRLEN];
    unsigned char bytes[sizeof(struct in6_addr)];
    if (host->len == 0 || host->len >= sizeof(text)) {
        return false;
    }
    memcpy(text, host->data, host->len);
    text[host->len] = '\0';
    return inet_pton(AF_INET, text, bytes) == 1 || inet_pton(AF_INET6, text, bytes) == 1;
}

/* Who cannot wait: all of it here, under the lock, so nothing is changed meanwhile. */
static void run_here(struct call *c, struct job *j) REQUIRES(keyspace_lock);
static void run_here(struct call *c, struct job *j)
{
    struct link l = {.timeout_ms = j->timeout_ms,
                     .total_ms = j->timeout_ms < HELD_MAX_MS ? j->timeout_ms : HELD_MAX_MS,
                     .stop = &pool.stop};
    if (!is_address(&j->host)) {
        reply_error(c->reply, "ERR MIGRATE within a transaction or a script needs an IP address: a "
                              "name would be looked up while everybody waits");
        return;
    }
    link_prepare(&l);
    open_link(j, &l);
    if (l.context && greet(j, &l)) {
        exchange(j, &l);
    }
    for (int i = 0; i < j->item_count && !j->copy; i++) {
        if (j->items[i].state == ITEM_SENT) {
            settle_item(j, &j->items[i], c->now_ms);
        }
    }
    link_close(&l);
    reply_outcome(c, j);
}

static void start(struct call *c, struct job *j_take) REQUIRES(keyspace_lock);
static void start(struct call *c, struct job *j_take)
{
    if (!hand_over(j_take)) {
        reply_error(c->reply, "ERR no thread is to be had for MIGRATE");
        release(j_take);
        return;
    }
    call_block(c, &(struct block){.key_count = 1,
                                  .type = VALUE_STRING,
                                  .when_gone = true,
                                  .state = j_take,
                                  .destroy_state = release_state});
}

WRITE_COMMAND(migrate_command)
{
    if (c->retry) {
        const struct job *waits_for = call_block_state(c);
        if (waits_for->done) {
            reply_outcome(c, waits_for);
        } else {
            call_block(c, &(struct block){.key_count = 1});
        }
        return;
    }
    struct job *j = mem_calloc(1, sizeof(*j));
    j->references = 1;
    if (!parse(c, j)) {
        release(j);
        return;
    }
    collect(c, j);
    if (j->item_count == 0) {
        reply_status(c->reply, "NOKEY");
        release(j);
    } else if (call_may_block(c)) {
        start(c, j);
    } else {
        run_here(c, j);
        release(j);
    }
}

const struct command_row migrate_commands[] = {
    {.name = "migrate",
     .run = migrate_command,
     .arity = -6,
     .flags = CMD_WRITE | CMD_WAITS_QUIETLY | CMD_SLOW,
     .categories = CATEGORY_KEYSPACE | CATEGORY_DANGEROUS,
     .keys = "i3/r0,1,0/RW+ACCESS+DELETE; kw:KEYS@-2/r-1,1,0/RW+ACCESS+DELETE+INCOMPLETE",
     .tips = "nondeterministic_output",
     .group = "generic",
     .since = "2.6.0",
     .summary = "Moves keys to another server.",
     .complexity = "O(N) for N bytes of values, here, there and between",
     .args = "host port <key|\"\"> destination-db timeout [COPY] [REPLACE] [AUTH password|AUTH2 "
             "username password] [KEYS key [key ...]]",
     .history = "3.0.0:Takes COPY and REPLACE.|3.0.6:Takes KEYS.|4.0.7:Takes AUTH.|6.0.0:Takes "
                "AUTH2."},
    {.name = NULL},
};
