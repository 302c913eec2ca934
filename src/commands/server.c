/* Commands about the whole server that stand alone: TIME, DBSIZE, FLUSHALL, FLUSHDB, SWAPDB, INFO,
 * SHUTDOWN, LOLWUT. */
#include "commands/commands.h"
#include "commands/lolwut.h"
#include "base/clock.h"
#include "base/num.h"
#include "base/stats.h"
#include "engine/call.h"
#include "engine/execute.h"
#include "engine/info.h"
#include "engine/block.h"
#include "engine/busy.h"
#include "engine/gate.h"
#include "engine/modules.h"
#include "engine/propagate.h"
#include "engine/shutdown.h"
#include "engine/snapshot.h"
#include "engine/tracking.h"
#include "keyspace/reclaim.h"

PLAIN_COMMAND(server_time)
{
    int64_t now_us = clock_wall_us();
    reply_array(c->reply, 2);
    reply_bulk_i64(c->reply, now_us / 1000000);
    reply_bulk_i64(c->reply, now_us % 1000000);
}

READ_COMMAND(server_dbsize)
{
    reply_i64(c->reply, (int64_t)db_size(c->db));
}

/* Reads [ASYNC|SYNC]; false with the error replied. */
static bool server_flush_mode(struct call *c, bool *lazily)
{
    if (c->argc == 1) {
        *lazily = reclaim_lazy_user_flush();
    } else if (c->argc == 2 && call_arg_is(c, 1, "async")) {
        *lazily = true;
    } else if (c->argc == 2 && call_arg_is(c, 1, "sync")) {
        *lazily = false;
    } else if (c->argc == 2 && call_arg_is(c, 1, "cache")) {
        reply_errorf(c->reply,
                     "ERR '%s CACHE' needs a storage provider (FLASH), which does not exist in "
                     "this version",
                     c->cmd->full_name);
        return false;
    } else {
        reply_syntax_error(c->reply);
        return false;
    }
    return true;
}

/* So many keys went. Told even where nothing was here: it may be elsewhere. And told now: a file
 * that is written next stands behind it in the stream. */
static void server_tell_flush(struct call *c, uint64_t keys) REQUIRES(keyspace_lock);
static void server_tell_flush(struct call *c, uint64_t keys)
{
    tracking_flushed();
    stats_add(STAT_DIRTY, keys);
    if (unlikely(propagate_on)) {
        propagate_call(c);
    }
}

WRITE_COMMAND(server_flushdb)
{
    bool lazily;
    if (server_flush_mode(c, &lazily)) {
        struct modules_facts facts = {.first = c->db->id, .second = !lazily};
        modules_news(MODULES_FLUSH, 0, &facts);
        server_tell_flush(c, db_flush(c->db, lazily));
        modules_news(MODULES_FLUSH, 1, &facts);
        reply_ok(c->reply);
    }
}

WRITE_COMMAND(server_flushall)
{
    bool lazily;
    uint64_t keys = 0;
    if (!server_flush_mode(c, &lazily)) {
        return;
    }
    struct modules_facts facts = {.first = -1, .second = !lazily};
    modules_news(MODULES_FLUSH, 0, &facts);
    for (int i = 0; i < db_count(); i++) {
        keys += db_flush(db_at(i), lazily);
    }
    server_tell_flush(c, keys);
    modules_news(MODULES_FLUSH, 1, &facts);
    snapshot_flushed();
    reply_ok(c->reply);
}

/* Whether anything has changed. Peers are told of each key (active/DESIGN.md); to the other logs
 * also a swap of nothing is one, as in Redis. */
static bool tell_swapped(struct call *c, struct db *a, struct db *b) REQUIRES(keyspace_lock);
static bool tell_swapped(struct call *c, struct db *a, struct db *b)
{
    return likely(!propagate_peers) || (a != b && propagate_swap_to_peers(c, a, b));
}

WRITE_COMMAND(server_swapdb)
{
    int64_t first, second;
    if (!call_arg_range(c, 1, INT32_MIN, INT32_MAX, &first, "ERR invalid first DB index") ||
        !call_arg_range(c, 2, INT32_MIN, INT32_MAX, &second, "ERR invalid second DB index")) {
        return;
    }
    if (first < 0 || first >= db_count() || second < 0 || second >= db_count()) {
        reply_error(c->reply, "ERR DB index is out of range");
        return;
    }
    if (first != second) {
        db_swap(db_at((int)first), db_at((int)second));
        tracking_flushed();
        modules_news(MODULES_SWAPDB, 0,
                     &(struct modules_facts){.first = (int)first, .second = (int)second});
    }
    c->dirty += tell_swapped(c, db_at((int)first), db_at((int)second));
    reply_ok(c->reply);
}

PLAIN_COMMAND(server_info)
{
    if (c->held == ACCESS_SHARED && info_asks_guests(c->argv + 1, c->argc - 1)) {
        call_need_exclusive(c);
        return;
    }
    struct buf out = {0};
    call_settle_accounts();
    info_write(&out, c->argv + 1, c->argc - 1);
    reply_verbatim(c->reply, "txt", buf_slice(&out));
    buf_deinit(&out);
}

READ_COMMAND(server_lolwut)
{
    int64_t version;
    if (c->argc >= 3 && call_arg_is(c, 1, "version") && !call_arg_i64(c, 2, &version)) {
        return;
    }
    struct buf out = {0};
    lolwut_draw(&out);
    reply_verbatim(c->reply, "txt", buf_slice(&out));
    buf_deinit(&out);
}

/* Beside the engine's flags: SHUTDOWN ABORT. */
#define SHUTDOWN_WORD_ABORT (1u << 16)
/* SHUTDOWN SOFT. */
#define SHUTDOWN_WORD_SOFT (1u << 17)

/* The flags of SHUTDOWN's arguments; false when they make no sense. */
static bool server_shutdown_parse(const struct call *c, unsigned *flags)
{
    static const struct {
        const char *word;
        unsigned flag;
    } words[] = {
        {"save", SHUTDOWN_SAVE},   {"nosave", SHUTDOWN_NOSAVE},    {"now", SHUTDOWN_NOW},
        {"force", SHUTDOWN_FORCE}, {"abort", SHUTDOWN_WORD_ABORT}, {"soft", SHUTDOWN_WORD_SOFT},
    };
    *flags = 0;
    for (int i = 1; i < c->argc; i++) {
        unsigned flag = 0;
        for (size_t w = 0; w < sizeof(words) / sizeof(words[0]) && !flag; w++) {
            flag = call_arg_is(c, i, words[w].word) ? words[w].flag : 0;
        }
        if (!flag) {
            return false;
        }
        *flags |= flag;
    }
    bool both = (*flags & SHUTDOWN_SAVE) && (*flags & SHUTDOWN_NOSAVE);
    bool abort_and_more = (*flags & SHUTDOWN_WORD_ABORT) && *flags != SHUTDOWN_WORD_ABORT;
    return !both && !abort_and_more;
}

/* The world stands and nobody must be waited for. */
static void server_end_now(struct call *c, unsigned flags) REQUIRES(gil);
static void server_end_now(struct call *c, unsigned flags)
{
    if (snapshot_ops()->before_exit(flags)) {
        shutdown_request(flags | SHUTDOWN_READY);
    } else {
        shutdown_wait_end();
        reply_error(c->reply, "ERR Errors trying to SHUTDOWN. Check logs.");
    }
}

/* Nothing is held. */
static void server_shutdown_beside_script(struct call *c, unsigned flags)
{
    unsigned soft;
    const char *busy = gate_busy_refusal();
    bool is_asked = shutdown_wait_left_ms() >= 0 || shutdown_is_soft(&soft);
    if (flags & SHUTDOWN_NOSAVE && busy_end_for_shutdown()) {
        shutdown_request(flags);
    } else if (flags & SHUTDOWN_WORD_ABORT && !is_asked) {
        reply_error(c->reply, "ERR No shutdown in progress.");
    } else {
        reply_error(c->reply, busy ? busy : "ERR The script has just ended: ask again");
    }
}

/* The client that asks gets no reply: its connection ends with the server. While replicas take what
 * they lack it waits; run again it hears that the end was called off. Beside a script that takes
 * long it runs without stopping the world; then only NOSAVE ends the server, and the script with
 * it. */
WORLD_COMMAND(server_shutdown)
{
    unsigned flags;
    if (c->retry) {
        reply_error(c->reply, "ERR Errors trying to SHUTDOWN. Check logs.");
    } else if (!server_shutdown_parse(c, &flags)) {
        reply_syntax_error(c->reply);
    } else if (c->held == ACCESS_NONE) {
        server_shutdown_beside_script(c, flags);
    } else if (flags & SHUTDOWN_WORD_SOFT) {
        shutdown_request_soft(flags & ~SHUTDOWN_WORD_SOFT);
        reply_ok(c->reply);
    } else if (flags & SHUTDOWN_WORD_ABORT && shutdown_withdraw_soft()) {
        reply_ok(c->reply);
    } else if (flags & SHUTDOWN_WORD_ABORT) {
        if (shutdown_wait_left_ms() >= 0 && shutdown_wait_end()) {
            reply_ok(c->reply);
        } else {
            reply_error(c->reply, "ERR No shutdown in progress.");
        }
    } else if (shutdown_wait_begin(flags)) {
        keyspace_lock_exclusive();
        call_block(c, &(struct block){.event = SHUTDOWN_CALLED_OFF});
        keyspace_unlock_exclusive();
    } else {
        server_end_now(c, flags);
    }
}

#define SERVER_ALL_SHARDS "request_policy:all_shards,response_policy:all_succeeded"

const struct command_row server_commands[] = {
    {.name = "dbsize",
     .run = server_dbsize,
     .arity = 1,
     .flags = CMD_READONLY | CMD_FAST,
     .categories = CATEGORY_KEYSPACE,
     .tips = "request_policy:all_shards,response_policy:agg_sum",
     .group = "server",
     .since = "1.0.0",
     .summary = "Counts the keys of the database.",
     .complexity = "O(1)"},
    {.name = "flushall",
     .run = server_flushall,
     .arity = -1,
     .flags = CMD_WRITE,
     .categories = CATEGORY_KEYSPACE | CATEGORY_DANGEROUS,
     .tips = SERVER_ALL_SHARDS,
     .group = "server",
     .since = "1.0.0",
     .summary = "Deletes all keys of all databases.",
     .complexity = "O(1) to unlink them; O(N) to free them, where N is the number of keys",
     .args = "[ASYNC|SYNC]",
     .history = "4.0.0:Frees in the background with ASYNC.|6.2.0:Takes SYNC, for when "
                "lazyfree-lazy-user-flush is on."},
    {.name = "flushdb",
     .run = server_flushdb,
     .arity = -1,
     .flags = CMD_WRITE,
     .categories = CATEGORY_KEYSPACE | CATEGORY_DANGEROUS,
     .tips = SERVER_ALL_SHARDS,
     .group = "server",
     .since = "1.0.0",
     .summary = "Deletes all keys of the database.",
     .complexity = "O(1) to unlink them; O(N) to free them, where N is the number of keys",
     .args = "[ASYNC|SYNC]",
     .history = "4.0.0:Frees in the background with ASYNC.|6.2.0:Takes SYNC, for when "
                "lazyfree-lazy-user-flush is on."},
    {.name = "info",
     .run = server_info,
     .arity = -1,
     .flags = CMD_LOADING | CMD_STALE | CMD_SENTINEL,
     .categories = CATEGORY_DANGEROUS,
     .tips = "nondeterministic_output,request_policy:all_shards,response_policy:special",
     .group = "server",
     .since = "1.0.0",
     .summary = "Shows figures about the server, by section.",
     .complexity = "O(1)",
     .args = "[section [section ...]]",
     .history = "7.0.0:Takes several sections."},
    {.name = "lolwut",
     .run = server_lolwut,
     .arity = -1,
     .flags = CMD_READONLY | CMD_FAST,
     .group = "server",
     .since = "5.0.0",
     .summary = "Draws a picture and tells the version.",
     .complexity = "O(1)",
     .args = "[VERSION version]"},
    {.name = "shutdown",
     .run = server_shutdown,
     .arity = -1,
     .flags = CMD_ADMIN | CMD_NOSCRIPT | CMD_LOADING | CMD_STALE | CMD_NO_MULTI | CMD_SENTINEL |
              CMD_ALLOW_BUSY | CMD_WORLD | CMD_WAITS_QUIETLY,
     .group = "server",
     .since = "1.0.0",
     .summary = "Ends the server.",
     .complexity = "O(1), and O(N) to save N keys",
     .args = "[[NOSAVE|SAVE] [NOW] [FORCE] [SOFT]|ABORT]",
     .history = "7.0.0:Takes NOW, FORCE and ABORT."},
    {.name = "swapdb",
     .run = server_swapdb,
     .arity = 3,
     .flags = CMD_WRITE | CMD_FAST,
     .categories = CATEGORY_KEYSPACE | CATEGORY_DANGEROUS,
     .group = "server",
     .since = "4.0.0",
     .summary = "Exchanges the contents of two databases.",
     .complexity = "O(1), and O(N) for the N clients that watch or wait for keys in them",
     .args = "index1 index2"},
    {.name = "time",
     .run = server_time,
     .arity = 1,
     .flags = CMD_LOADING | CMD_STALE | CMD_FAST,
     .tips = "nondeterministic_output",
     .group = "server",
     .since = "2.6.0",
     .summary = "Tells the time: seconds since 1970, and microseconds of the second.",
     .complexity = "O(1)"},
    {.name = NULL},
};
