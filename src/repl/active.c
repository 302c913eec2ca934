/* See active.h. */
#include "repl/active.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "engine/cron.h"
#include "engine/gate.h"
#include "engine/propagate.h"
#include "keyspace/expire.h"
#include "keyspace/reclaim.h"
#include "keyspace/schedule.h"
#include "repl/active_epoch.h"
#include "repl/active_feed.h"
#include "repl/active_files.h"
#include "repl/backlog.h"
#include "repl/sync.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define TICK_MS 100

struct active_settings active_settings;

/* Made before clients may use the data, while the world stands; gone after all threads have ended.
 */
static struct active_node *node;
static struct active_past past; /* until then, what is loaded tells it */

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

struct active_node *active_node(void)
{
    assert(node);
    return node;
}

void active_node_text(char text[ACTIVE_NODE_CHARS])
{
    char whole[ACTIVE_ORIGIN_CHARS];
    active_origin_format(&active_origins_at(active_node_origins(node), active_node_self(node))->id,
                         whole);
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
    active_node_settle(node);
    int64_t now_ms = active_stamp_ms(active_node_clock(node)->last);
    if (now_ms > atomic_load_explicit(&keyspace_earliest_ms, memory_order_relaxed)) {
        atomic_store_explicit(&keyspace_earliest_ms, now_ms, memory_order_relaxed);
    }
    active_feeds_wake();
}

static bool judge(struct keyref *ref, int64_t now_ms)
{
    keyspace_assert_exclusive();
    return !node || active_node_judge(node, ref, now_ms); /* none yet: it is left for later */
}

/* A job runs where it was made; before its hold's end its key has no dot, and that is here. */
static bool owns_job(struct db *db, struct slice name)
{
    struct key key = key_of(name);
    keyspace_assert_exclusive();
    const struct entry *e = db_look(db, &key);
    return !e || active_node_wrote(node, e);
}

static void tick(int64_t wall_ms UNUSED)
{
    if (!node) {
        return;
    }
    int64_t now_ms = (int64_t)(clock_mono_us() / 1000);
    if (keyspace_try_exclusive()) {
        active_node_tick(node, now_ms);
        keyspace_has_work = true;
        keyspace_unlock_exclusive();
        reclaim_run();
    }
    active_feeds_tick(now_ms, sync_settings.timeout_s * 1000);
}

static const struct cron_job tick_job = {.name = "active", .period_ms = TICK_MS, .run = tick};

/* ---- life ---- */

void active_setup(void)
{
    active_own_setup();
    cron_register(&tick_job);
}

void active_prepare(void)
{
    if (active_settings.on) {
        active_past_init(&past, 0, db_count());
        active_files_setup();
        active_files_load_into(&past);
        expire_set_judge(judge);
        keyspace_lock_exclusive();
        active_own_replay();
        keyspace_unlock_exclusive();
    }
}

static bool create_node(void)
{
    struct active_origin_id last;
    if (!active_epoch_read(&last)) {
        return false;
    }
    if (last.epoch == 0 && past.has_id) {
        /* It may be a copy of another node's directory: two that have one id tell each other
         * nothing, so an id is never taken from there. */
        log_warning("There is no file %s beside the data of a node: this begins as a new node",
                    ACTIVE_EPOCH_FILE);
    }
    struct active_node_options options = {.last_epoch = last.epoch,
                                          .past = &past,
                                          .dbs = db_count(),
                                          .log_bytes = (size_t)backlog_size_bytes,
                                          .silence_ms = sync_settings.timeout_s * 1000};
    memcpy(options.id, last.node, sizeof(options.id));
    node = active_node_create(&options);
    last.epoch = active_node_epoch(node);
    return active_epoch_write(&last);
}

/* Keys of a server that was not active: our first write, of which the AOF has the number alone. */
static void adopt(void) REQUIRES(keyspace_lock);
static void adopt(void)
{
    struct active_head *head = active_node_head(node);
    log_notice("No node has written the data that are here: they count as new");
    active_node_adopt(node);
    active_head_begin(head,
                      active_dot_of(active_node_clock(node)->last, active_node_self(node), 1));
    active_head_end(head);
}

/* What is written from now on is the node's. */
static void join(bool is_news) EXCLUDES(keyspace_lock);
static void join(bool is_news)
{
    keyspace_lock_exclusive();
    active_files_load_into(NULL);
    active_files_attach(node);
    if (is_news && db_all_keys() > 0) {
        adopt();
    }
    keyspace_set_end_work(end_hold);
    schedule_set_judge(owns_job);
    active_own_attach(active_node_own(node));
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
    }
    gil_resume_world();
    active_past_deinit(&past);
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
        keyspace_lock_exclusive();
        active_own_attach(NULL);
        schedule_set_judge(NULL);
        active_files_attach(NULL);
        keyspace_unlock_exclusive();
        keyspace_set_end_work(NULL);
        active_node_destroy(&node);
    }
    expire_set_judge(NULL);
    active_past_deinit(&past);
    active_own_teardown();
}

/* ---- INFO ---- */

void active_write_info(struct buf *out)
{
    char text[ACTIVE_NODE_CHARS];
    active_node_text(text);
    bool taken = keyspace_visit();
    const struct active_merge *merge = active_node_merge(node);
    buf_printf(out,
               "active_node_id:%.*s\r\nactive_origins:%" PRIu32 "\r\nactive_log_bytes:%zu\r\n"
               "active_own_units:%" PRIu64 "\r\nactive_disputed_keys:%zu\r\n"
               "active_states:%" PRIu64 "\r\n",
               ACTIVE_NODE_CHARS, text, active_node_origins(node)->count - 1,
               active_log_bytes(active_node_log(node)), active_node_own(node)->units,
               active_disputes_count(merge->disputes), active_node_states(node));
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
    {.name = NULL},
};
