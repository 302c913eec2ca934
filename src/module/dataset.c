/* The selected database as a whole, for modules. */
#include "base/clock.h"
#include "base/stats.h"
#include "engine/execute.h"
#include "engine/propagate.h"
#include "engine/snapshot.h"
#include "engine/tracking.h"
#include "keyspace/db.h"
#include "module/text.h"
#include "module/world.h"
#include "persist/aof.h"
#include "persist/dots.h"

static unsigned long long rm_db_size(RedisModuleCtx *ctx)
{
    keyspace_assert_exclusive();
    return db_size(db_at(context_db(ctx)));
}

static RedisModuleString *rm_random_key(RedisModuleCtx *ctx)
{
    keyspace_assert_exclusive();
    const struct entry *e = db_random(db_at(context_db(ctx)), ctx->now_ms);
    return e ? text_give(ctx, text_create(entry_key(e))) : NULL;
}

/* ---- emptying all ---- */

/* All databases; logs, replicas and peers are told nothing of it. */
static void empty_held(bool lazily) REQUIRES(keyspace_lock)
{
    for (int i = 0; i < db_count(); i++) {
        stats_add(STAT_DIRTY, db_flush(db_at(i), lazily));
    }
    tracking_flushed();
    snapshot_flushed();
}

/* With an append-only file that begins with the empty data set. */
static void empty_with_log(void *lazily) NO_THREAD_SAFETY_ANALYSIS
{
    aof_halt();
    keyspace_lock_exclusive();
    empty_held(*(const bool *)lazily);
    keyspace_unlock_exclusive();
    aof_begin_anew();
}

/* Nodes of a group have one data set: it is FLUSHALL there, which the peers and all logs are told.
 */
static void empty_everywhere(bool lazily) REQUIRES(keyspace_lock)
{
    struct session session;
    struct reply reply = {0};
    struct slice words[] = {SLICE("FLUSHALL"), slice_cstr(lazily ? "ASYNC" : "SYNC")};
    session_init_internal(&session);
    struct call c = {.cmd = command_find_original(words[0]),
                     .argc = 2,
                     .argv = words,
                     .db = db_at(0),
                     .reply = &reply,
                     .session = &session,
                     .held = ACCESS_EXCLUSIVE,
                     .now_ms = clock_wall_ms(),
                     .nested = true};
    propagate_begin_unit();
    reply_begin(&reply, session.proto);
    call_run(&c);
    reply_end(&reply);
    propagate_end_unit();
    reply_deinit(&reply);
}

/* Where the world is not to be had for it (amid a transaction) the append-only file goes on: what
 * the module then tells it is all that it knows. */
static void rm_reset(int restart_log, int lazily)
{
    keyspace_assert_exclusive();
    bool in_background = lazily;
    RedisModuleCtx *ctx = context_current();
    if (dots_wanted) {
        empty_everywhere(in_background);
    } else if (!restart_log || !ctx || !world_run(ctx, empty_with_log, &in_background)) {
        empty_held(in_background);
    }
}

const struct api_function dataset_functions[] = {
    API(DbSize, rm_db_size),
    API(RandomKey, rm_random_key),
    API(ResetDataset, rm_reset),
    {NULL, NULL},
};
