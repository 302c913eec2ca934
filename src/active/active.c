/* See active.h. */
#include "active/active.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "engine/cron.h"
#include "engine/function_store.h"
#include "engine/gate.h"
#include "engine/propagate.h"
#include "keyspace/expire.h"
#include "keyspace/reclaim.h"
#include "keyspace/schedule.h"
#include "active/delivery.h"
#include "active/epoch_file.h"
#include "active/full_sync_source.h"
#include "active/peer_feed.h"
#include "active/peer_links.h"
#include "active/node_files.h"
#include "repl/backlog.h"
#include "repl/sync.h"
#include "value/stream.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define TICK_MS 100

struct active_settings active_settings;

/* Made before clients may use the data, while the world stands; gone after all threads have ended.
 */
static struct node *node;
static struct restored past; /* until then, what is loaded tells it */

bool active_is_preview(void)
{
#if KEYDB_DEBUG
    const char *wanted = getenv("KEYDB_ACTIVE_PREVIEW");
    return wanted && strcmp(wanted, "1") == 0;
#else
    return false;
#endif
}

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
    int64_t now_ms = hlc_stamp_ms(node_clock(node)->last);
    if (now_ms > atomic_load_explicit(&keyspace_earliest_ms, memory_order_relaxed)) {
        atomic_store_explicit(&keyspace_earliest_ms, now_ms, memory_order_relaxed);
    }
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

static void tick(int64_t wall_ms UNUSED)
{
    if (!node) {
        return;
    }
    int64_t now_ms = (int64_t)(clock_mono_us() / 1000);
    if (keyspace_try_exclusive()) {
        node_set_log_bytes(node, (size_t)backlog_size_bytes); /* CONFIG SET may have changed it */
        node_tick(node, now_ms);
        delivery_tick(peer_links_count() + peer_feeds_count() > 0, now_ms);
        keyspace_has_work = true;
        keyspace_unlock_exclusive();
        reclaim_run();
    }
    full_sync_sources_look(); /* whoever waits for it is woken */
    peer_feeds_tick(now_ms, sync_settings.timeout_s * 1000);
}

static const struct cron_job tick_job = {.name = "active", .period_ms = TICK_MS, .run = tick};

/* ---- life ---- */

/* Test seam: the wall clock of this node is so far ahead. */
static void take_skew(void)
{
    const char *skew_ms = active_is_preview() ? getenv("KEYDB_ACTIVE_SKEW_MS") : NULL;
    if (skew_ms) {
        clock_set_skew_ms(strtoll(skew_ms, NULL, 10));
    }
}

void active_setup(void)
{
    take_skew();
    local_writes_setup();
    cron_register(&tick_job);
}

void active_prepare(void)
{
    if (active_settings.on) {
        restored_init(&past, 0, db_count());
        node_files_setup();
        node_files_load_into(&past);
        expire_set_judge(decide_expiry);
        keyspace_lock_exclusive();
        local_writes_replay();
        stream_set_id_tag(UINT32_MAX); /* any: none is made yet */
        keyspace_unlock_exclusive();
    }
}

static bool create_node(void)
{
    struct origin_id last;
    if (!epoch_file_read(&last)) {
        return false;
    }
    if (last.epoch == 0 && past.has_id) {
        /* It may be a copy of another node's directory: two that have one id tell each other
         * nothing, so an id is never taken from there. */
        log_warning("There is no file %s beside the data of a node: this begins as a new node",
                    EPOCH_FILE);
    }
    struct node_options options = {.last_epoch = last.epoch,
                                   .past = &past,
                                   .dbs = db_count(),
                                   .log_bytes = (size_t)backlog_size_bytes,
                                   .silence_ms = sync_settings.timeout_s * 1000};
    memcpy(options.id, last.node, sizeof(options.id));
    node = node_create(&options);
    last.epoch = node_epoch(node);
    return epoch_file_write(&last);
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

bool active_begin(void)
{
    char text[ACTIVE_NODE_CHARS];
    if (!active_settings.on) {
        return true;
    }
    bool is_news = past.origins.count == 1; /* the files tell of no node's writes */
    gil_stop_world();
    bool fine = create_node();
    if (fine) {
        join(is_news);
        fine = peer_links_resume(buf_slice(&past.merging), past.merging_done);
    }
    gil_resume_world();
    restored_deinit(&past);
    if (!fine) {
        return false;
    }
    active_node_text(text);
    log_notice("Active replica: node %.*s", ACTIVE_NODE_CHARS, text);
    return true;
}

void active_teardown(void)
{
    if (node) {
        delivery_end();
        keyspace_lock_exclusive();
        local_writes_attach(NULL);
        schedule_set_judge(NULL);
        node_files_attach(NULL);
        keyspace_unlock_exclusive();
        keyspace_set_end_work(NULL);
        node_destroy(&node);
        peer_links_teardown();
    }
    expire_set_judge(NULL);
    stream_set_id_tag(0);
    restored_deinit(&past);
    local_writes_teardown();
}

/* ---- INFO ---- */

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
    delivery_write_info(out);
    keyspace_leave(taken);
}

/* ---- options ---- */

/* Takes what leaves it off, or what tests may have. */
static bool check(const struct option *option, struct slice text, const char **error)
{
    if (slice_equal_nocase(text, "no") || active_is_preview()) {
        return true;
    }
    *error = option->target == &active_settings.on
                 ? "active replication does not exist in this version"
                 : "replication from several primaries does not exist in this version";
    return false;
}

static bool apply_writes(const struct option *option UNUSED, const char **error UNUSED)
{
    peer_links_judge_writes();
    return true;
}

const struct option active_options[] = {
    {.name = "active-replica",
     .type = OPTION_BOOL,
     .flags = OPTION_IMMUTABLE,
     .target = &active_settings.on,
     .initial = "no",
     .check = check},
    {.name = "multi-master",
     .type = OPTION_BOOL,
     .flags = OPTION_IMMUTABLE,
     .target = &active_settings.multi,
     .initial = "no",
     .check = check},
    {.name = "multi-master-no-forward",
     .type = OPTION_BOOL,
     .target = &active_settings.no_forward,
     .initial = "no",
     .check = check},
    {.name = "allow-write-during-load",
     .type = OPTION_BOOL,
     .target = &active_settings.write_during_load,
     .initial = "yes",
     .apply = apply_writes},
    {.name = NULL},
};
