/* See active.h. */
#include "active/active.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "engine/cron.h"
#include "engine/function_store.h"
#include "engine/gate.h"
#include "engine/propagate.h"
#include "keyspace/evict.h"
#include "keyspace/expire.h"
#include "keyspace/reclaim.h"
#include "keyspace/schedule.h"
#include "active/delivery.h"
#include "active/epoch_file.h"
#include "active/full_sync_source.h"
#include "active/peer_feed.h"
#include "active/peer_links.h"
#include "active/node_files.h"
#include "keyspace/waiting.h"
#include "net/blocked.h"
#include "net/client.h"
#include "repl/backlog.h"
#include "repl/follow.h"
#include "repl/sync.h"
#include "value/stream.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define TICK_MS 100
/* A tick trims, and tells states, in so many holds at most. */
#define TRIM_HOLDS 128
#define STATES_HOLDS 16
#define CLOCK_NOTE_MS 1000
#define RESERVE_NAME "temp-active-log.reserve"
#define NEEDS_ACTIVE "multi-master needs active-replica yes"

struct active_settings active_settings;

/* Made before clients may use the data, or by CONFIG SET, while the world stands; gone after all
 * threads have ended, or likewise. */
static struct node *node;
static struct restored past;  /* until then, what is loaded tells it */
static struct node *prepared; /* CONFIG SET's, until it is accepted */
/* The nodes' logs on disk, of one after the other; made with the first one, NULL: none. */
static struct reserve *reserve;

bool active_is_on(void)
{
    return node != NULL;
}

struct node *active_node(void)
{
    assert(node);
    return node;
}

void active_node_text(char text[ACTIVE_NODE_CHARS])
{
    char whole[ORIGIN_CHARS];
    origin_format(&origins_at(node_origins(node), node_self(node))->id, whole);
    memcpy(text, whole, ACTIVE_NODE_CHARS);
}

/* ---- what the node is told of ---- */

/* The lock is about to be let go of. With the world standing that may be within a unit (EXEC): the
 * end of that is waited for. */
static void end_hold(void)
{
    keyspace_assert_exclusive();
    if (propagate_in_unit()) {
        keyspace_has_work = true;
        return;
    }
    node_settle(node);
    const struct hlc *clock = node_clock(node);
    keyspace_set_clock((struct keyspace_clock){.last_ms = hlc_stamp_ms(clock->last),
                                               .ahead_ms = clock->ahead_ms,
                                               .heard_mono_ms = clock->heard_mono_ms});
    peer_feeds_wake();
}

static bool decide_expiry(struct keyref *ref, int64_t now_ms)
{
    keyspace_assert_exclusive();
    return !node || node_judge(node, ref, now_ms); /* none yet: it is left for later */
}

/* A job runs where it was made; before its hold's end its key has no dot, and that is here. */
static bool owns_job(struct db *db, struct slice name)
{
    struct key key = key_of(name);
    keyspace_assert_exclusive();
    const struct entry *e = db_look(db, &key);
    return !e || node_wrote(node, e);
}

/* Where the group's time is ahead of our wall clock, the next start is to go on from there,
 * whatever its data files know: else it would give stamps below those of its own former writes,
 * which would be void. Once a second, for the second that comes. */
static uint64_t clock_to_note(int64_t now_ms) REQUIRES(keyspace_lock);
static uint64_t clock_to_note(int64_t now_ms)
{
    static int64_t noted_ms;
    const struct hlc *clock = node_clock(node);
    if (hlc_ahead_ms(clock) < CLOCK_NOTE_MS || now_ms - noted_ms < CLOCK_NOTE_MS) {
        return 0;
    }
    noted_ms = now_ms;
    return (uint64_t)(hlc_ms(clock) + CLOCK_NOTE_MS) << HLC_COUNTER_BITS;
}

/* Others get in between. What is left goes the next time. */
static void trim(void)
{
    bool more = true;
    for (int i = 0; i < TRIM_HOLDS && more && keyspace_try_exclusive(); i++) {
        more = node_trim(node);
        keyspace_unlock_exclusive();
    }
    reclaim_run();
}

static void tell_states(void)
{
    bool more = true;
    for (int i = 0; i < STATES_HOLDS && more && keyspace_try_exclusive(); i++) {
        more = node_tell_states(node);
        keyspace_has_work = true;
        keyspace_unlock_exclusive();
    }
}

static void tick(int64_t wall_ms UNUSED)
{
    if (!node) {
        return;
    }
    int64_t now_ms = (int64_t)(clock_mono_us() / 1000);
    if (keyspace_try_exclusive()) {
        node_set_log_bytes(node, (size_t)backlog_size_bytes); /* CONFIG SET may have changed it */
        node_expects_data(node, peer_links_bring_data());
        node_keeps_window(node, !peer_links_have_met());
        node_tick(node, now_ms);
        delivery_tick(peer_links_count() + peer_feeds_count() > 0, now_ms);
        keyspace_has_work = true;
        struct origin_id own = origins_at(node_origins(node), node_self(node))->id;
        uint64_t clock = clock_to_note(now_ms);
        keyspace_unlock_exclusive();
        if (clock) {
            epoch_file_note_clock(&own, clock);
        }
        tell_states();
        trim();
    }
    peer_links_judge_stale();
    full_sync_sources_look(); /* whoever waits for it is woken */
    peer_feeds_tick(now_ms, sync_settings.timeout_s * 1000);
}

/* What is kept for peers that have not read it counts as a replica's unread output does. */
static size_t unread_bytes(void)
{
    return node ? origin_log_beyond(node_log(node)) : 0;
}

static const struct cron_job tick_job = {.name = "active", .period_ms = TICK_MS, .run = tick};

/* ---- life ---- */

#if KEYDB_DEBUG
/* Test seams: the wall clock of this node is so far ahead; its writes are so long at most. */
static void take_seams(void)
{
    const char *skew_ms = getenv("KEYDB_ACTIVE_SKEW_MS");
    const char *unit_bytes = getenv("KEYDB_ACTIVE_UNIT_BYTES");
    if (skew_ms) {
        clock_set_skew_ms(strtoll(skew_ms, NULL, 10));
    }
    if (unit_bytes) {
        local_writes_bound = (size_t)strtoull(unit_bytes, NULL, 10);
    }
}
#else
static void take_seams(void)
{
}
#endif

void active_setup(void)
{
    take_seams();
    node_files_setup();
    local_writes_setup();
    cron_register(&tick_job);
    evict_exempt(unread_bytes);
}

bool active_prepare(void)
{
    if (active_settings.multi && !active_settings.on) {
        log_warning("%s", NEEDS_ACTIVE);
        return false;
    }
    if (active_settings.on) {
        restored_init(&past, 0, db_count());
        node_files_load_into(&past);
        expire_set_judge(decide_expiry);
        keyspace_lock_exclusive();
        local_writes_replay();
        stream_set_id_tag(UINT32_MAX); /* any: none is made yet */
        keyspace_unlock_exclusive();
    }
    return true;
}

/* NULL, logged: its epoch can't be written down. */
static struct node *create_node(void)
{
    struct origin_id last;
    uint64_t clock;
    if (!epoch_file_read(&last, &clock)) {
        return NULL;
    }
    if (hlc_stamp_ms(clock) > clock_wall_ms() + HLC_AHEAD_MAX_MS) {
        clock = 0; /* somebody has mended a wall clock */
    }
    if (last.epoch == 0 && past.has_id) {
        /* It may be a copy of another node's directory: two that have one id tell each other
         * nothing, so an id is never taken from there. */
        log_warning("There is no file %s beside the data of a node: this begins as a new node",
                    EPOCH_FILE);
    }
    if (!reserve && backlog_reserve_bytes > 0) {
        reserve = reserve_create(RESERVE_NAME, (uint64_t)backlog_reserve_bytes);
    }
    struct node_options options = {.last_epoch = last.epoch,
                                   .past = &past,
                                   .clock = clock,
                                   .dbs = db_count(),
                                   .log_bytes = (size_t)backlog_size_bytes,
                                   .reserve = reserve,
                                   .silence_ms = sync_settings.timeout_s * 1000};
    memcpy(options.id, last.node, sizeof(options.id));
    struct node *made = node_create(&options);
    last.epoch = node_epoch(made);
    if (!epoch_file_write(&last, clock)) {
        node_destroy(&made);
    }
    return made;
}

/* Keys of a server that was not active: our first write, of which the AOF has the number alone. */
static void adopt(void) REQUIRES(keyspace_lock);
static void adopt(void)
{
    struct log_head *head = node_head(node);
    log_notice("No node has written the data that are here: they count as new");
    node_adopt(node);
    log_head_begin(head, dot_of(node_clock(node)->last, node_self(node), 1));
    log_head_end(head);
}

/* What is written from now on is the node's. */
static void join(bool is_news) EXCLUDES(keyspace_lock);
static void join(bool is_news)
{
    keyspace_lock_exclusive();
    node_files_load_into(NULL);
    node_files_attach(node);
    node_restore_libraries(node, buf_slice(&past.libraries));
    if (is_news && (db_all_keys() > 0 || function_store_count() > 0)) {
        adopt();
    }
    keyspace_set_end_work(end_hold);
    schedule_set_judge(owns_job);
    local_writes_attach(node_own(node));
    stream_set_id_tag(node_id_tag(node));
    delivery_begin(node);
    keyspace_has_work = true; /* the clock is the files' at once */
    keyspace_unlock_exclusive();
}

static void say_begun(void)
{
    char text[ACTIVE_NODE_CHARS];
    active_node_text(text);
    log_notice("Active replica: node %.*s", ACTIVE_NODE_CHARS, text);
}

bool active_begin(void)
{
    if (!active_settings.on) {
        return true;
    }
    bool is_news = past.origins.count == 1; /* the files tell of no node's writes */
    gil_stop_world();
    node = create_node();
    bool fine = node != NULL;
    if (fine) {
        join(is_news);
        fine = peer_links_resume(buf_slice(&past.merging), past.merging_done, past.merging_had);
        past.merging_had = NULL;
    }
    gil_resume_world();
    restored_deinit(&past);
    if (fine) {
        say_begun();
    }
    return fine;
}

/* Of a life as a node that is over nothing may be believed in the next one: keys will have been
 * written without it. The log's reader forgets at the same place, behind the last head. */
static void forget_life(void) REQUIRES(keyspace_lock);
static void forget_life(void)
{
    const struct slice word = SLICE("KEYDB.PARTED");
    node_settle(node);
    log_head_write(node_head(node), 1, &word);
    restored_void_dots(0, db_count());
    for (int i = 0; i < db_count(); i++) {
        waiting_note_change(db_at(i), (struct slice){NULL, 0}); /* what another node was to give */
    }
}

/* What is written from now on is nobody's. */
static void part(bool goes_on) EXCLUDES(keyspace_lock);
static void part(bool goes_on)
{
    delivery_end();
    keyspace_lock_exclusive();
    if (goes_on) {
        forget_life();
    }
    local_writes_attach(NULL);
    schedule_set_judge(NULL);
    node_files_attach(NULL);
    stream_set_id_tag(0);
    keyspace_unlock_exclusive();
    keyspace_set_end_work(NULL);
    expire_set_judge(NULL);
}

void active_teardown(void)
{
    if (node) {
        part(false);
        node_destroy(&node);
        peer_links_teardown();
    }
    reserve_destroy(&reserve);
    expire_set_judge(NULL);
    stream_set_id_tag(0);
    restored_deinit(&past);
    local_writes_teardown();
}

/* ---- at run time ---- */

static void leave(void) REQUIRES(gil);
static void leave(void)
{
    peer_feeds_end();
    full_sync_sources_forget();
    peer_links_forget();
    part(true);
    node_destroy(&node);
    peer_links_judge_stale();
    follow_forget();
    log_notice("No active replica from now on");
}

static bool join_waiting(struct client *c, void *context UNUSED) NO_THREAD_SAFETY_ANALYSIS
{
    keyspace_assert_exclusive();
    blocked_join_peers(c);
    return true;
}

static void enter(void) REQUIRES(gil);
static void enter(void)
{
    node = prepared;
    prepared = NULL;
    expire_set_judge(decide_expiry);
    join(true);
    keyspace_lock_exclusive();
    client_each(join_waiting, NULL);
    keyspace_unlock_exclusive();
    say_begun();
}

static const char *why_not(void) REQUIRES(gil);
static const char *why_not(void)
{
    bool becomes = active_settings.on && !node, ceases = !active_settings.on && node;
    if (active_settings.multi && !active_settings.on) {
        return NEEDS_ACTIVE;
    }
    if (ceases ? peer_links_count() > 0 : !active_settings.multi && peer_links_count() > 1) {
        return ceases ? "it takes the writes of others: REPLICAOF NO ONE first"
                      : "it takes the writes of several: REPLICAOF REMOVE host port first";
    }
    if ((becomes || ceases) && (gate_is_loading() || propagate_in_unit())) {
        return "not while a data set is being loaded, nor within a transaction";
    }
    if (ceases && node_is_merging(node)) {
        return "a peer's data set is being merged: wait for its end";
    }
    if (becomes && follow_is_replica()) {
        return "it follows a primary: REPLICAOF NO ONE first";
    }
    return NULL;
}

bool active_may_switch(const char **error)
{
    *error = why_not();
    if (*error || !active_settings.on || node || prepared) {
        return !*error;
    }
    restored_init(&past, 0, db_count());
    prepared = create_node();
    restored_deinit(&past);
    *error = prepared ? NULL : "its file " EPOCH_FILE " can't be read or written: see the log";
    return prepared != NULL;
}

void active_switch(bool accepted)
{
    if (accepted && prepared) {
        enter();
    } else if (accepted && !active_settings.on && node) {
        leave();
    }
    node_destroy(&prepared);
}

/* ---- INFO ---- */

static void write_reserve(struct buf *out) REQUIRES_SHARED(keyspace_lock)
{
    struct log_reserve *on_disk = origin_log_reserve(node_log(node));
    struct reserve_facts facts;
    if (on_disk) {
        log_reserve_look(on_disk, &facts);
        buf_printf(out,
                   "active_log_disk_state:%s\r\nactive_log_disk_reserve:%" PRIu64
                   "\r\nactive_log_disk_bytes:%" PRIu64 "\r\nactive_log_disk_queued:%" PRIu64
                   "\r\nactive_log_disk_faults:%" PRIu64 "\r\n",
                   reserve_state_word(facts.state), facts.size_bytes, facts.end - facts.begin,
                   facts.queued_bytes, facts.faults);
    }
}

void active_write_info(struct buf *out)
{
    char text[ACTIVE_NODE_CHARS];
    active_node_text(text);
    bool taken = keyspace_visit();
    const struct merge *merge = node_merge(node);
    buf_printf(out,
               "active_node_id:%.*s\r\nactive_origins:%" PRIu32 "\r\nactive_log_bytes:%zu\r\n"
               "active_own_units:%" PRIu64 "\r\nactive_conflicts:%zu\r\n"
               "active_states:%" PRIu64 "\r\nactive_digests:%" PRIu64 "\r\n",
               ACTIVE_NODE_CHARS, text, node_origins(node)->count - 1,
               origin_log_bytes(node_log(node)), node_own(node)->units,
               conflicts_count(merge->conflicts), node_states(node), node_digests(node));
    write_reserve(out);
    delivery_write_info(out);
    keyspace_leave(taken);
}
