/* DEBUG: doors for tests. All of it runs while the world stands still, and only for those whom
 * enable-debug-command lets in. Subcommands that need what this version does not have are not
 * known. */
#include "commands/commands.h"
#include "commands/debug_priv.h"
#include "commands/peer.h"
#include "base/glob.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/num.h"
#include "ds/quicklist.h"
#include "engine/config.h"
#include "engine/cron.h"
#include "engine/propagate.h"
#include "engine/snapshot.h"
#include "keyspace/expire.h"

#include <assert.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

/* ---- Time ---- */

/* Long enough for any test; keeps the conversion to an integer defined. */
#define DEBUG_MAX_SLEEP_S 1e6
#define DEBUG_MAX_RESTART_MS ((int64_t)24 * 3600 * 1000)
#define DEBUG_MAX_LOG_SLEEP_US (10 * 1000 * 1000)

/* Nobody reads or writes meanwhile: what a command that takes so long would do. */
WORLD_COMMAND(debug_sleep)
{
    double seconds;
    if (!call_arg_double(c, 2, &seconds, "ERR value is not a valid float")) {
        return;
    }
    seconds = seconds < 0 ? 0 : seconds > DEBUG_MAX_SLEEP_S ? DEBUG_MAX_SLEEP_S : seconds;
    struct timespec left = {.tv_sec = (time_t)seconds};
    left.tv_nsec = (long)((seconds - (double)left.tv_sec) * 1e9);
    keyspace_lock_exclusive();
    while (nanosleep(&left, &left) != 0) {
        /* a signal: sleep on */
    }
    keyspace_unlock_exclusive();
    reply_ok(c->reply);
}

/* Reads argument 2 as 0 or 1; false with the error replied. */
static bool debug_switch(struct call *c, bool *on)
{
    int64_t value;
    if (!call_arg_range(c, 2, 0, 1, &value, "ERR value must be 0 or 1")) {
        return false;
    }
    *on = value != 0;
    return true;
}

WORLD_COMMAND(debug_set_active_expire)
{
    bool on;
    if (debug_switch(c, &on)) {
        expire_set_active(on);
        reply_ok(c->reply);
    }
}

WORLD_COMMAND(debug_pause_cron)
{
    bool on;
    if (debug_switch(c, &on)) {
        cron_set_paused(on);
        reply_ok(c->reply);
    }
}

WORLD_COMMAND(debug_eager_balance)
{
    bool on;
    if (debug_switch(c, &on)) {
        cron_set_eager(on);
        reply_ok(c->reply);
    }
}

/* ---- Small doors ---- */

WORLD_COMMAND(debug_error)
{
    reply_error_slice(c->reply, c->argv[2]);
}

WORLD_COMMAND(debug_log)
{
    log_warning("DEBUG LOG: %.*s", (int)(c->argv[2].len < 1000 ? c->argv[2].len : 1000),
                c->argv[2].ptr);
    reply_ok(c->reply);
}

/* What a checker of leaks should find. */
WORLD_COMMAND(debug_leak)
{
    char *volatile forgotten = mem_dup(c->argv[2].ptr, c->argv[2].len);
    (void)forgotten;
    reply_ok(c->reply);
}

WORLD_COMMAND(debug_trust_checksums)
{
    bool on;
    if (debug_switch(c, &on)) {
        snapshot_ops()->trust_checksums(on);
        reply_ok(c->reply);
    }
}

WORLD_COMMAND(debug_aof_flush_sleep)
{
    int64_t us;
    if (call_arg_range(c, 2, 0, DEBUG_MAX_LOG_SLEEP_US, &us,
                       "ERR value is out of range, must be positive")) {
        snapshot_ops()->slow_log(us);
        reply_ok(c->reply);
    }
}

/* Replicas are told a command that nobody runs here. */
WORLD_COMMAND(debug_replicate)
{
    keyspace_lock_exclusive();
    if (propagate_on) {
        propagate_aim(PROPAGATE_TO_REPLICAS);
        propagate_instead(c, c->argc - 2, c->argv + 2);
        propagate_aim(PROPAGATE_TO_ALL);
    }
    keyspace_unlock_exclusive();
    reply_ok(c->reply);
}

WORLD_COMMAND(debug_stringmatch)
{
    reply_i64(c->reply, glob_match(c->argv[2], c->argv[3], false));
}

/* From so many bytes on elements of large lists stand by themselves; 0: only those too large for a
 * node. */
WORLD_COMMAND(debug_quicklist_threshold)
{
    uint64_t bytes;
    if (!num_parse_memory(c->argv[2], &bytes) || bytes > UINT32_MAX) {
        reply_error(c->reply,
                    "ERR argument must be a memory value bigger than 1 and smaller than 4gb");
        return;
    }
    quicklist_set_packed_threshold((size_t)bytes);
    reply_ok(c->reply);
}

/* Aborts when a table does not hold its invariants. */
WORLD_COMMAND(debug_check)
{
    keyspace_lock_shared();
    for (int i = 0; i < db_count(); i++) {
        db_check(db_at(i));
    }
    keyspace_unlock_shared();
    reply_ok(c->reply);
}

/* Replies are built in memory of the server thread, which all its clients share, so there is no
 * buffer of a client's whose size could change: test suites may ask, nothing is switched. */
WORLD_COMMAND(debug_replybuffer)
{
    int64_t value;
    bool peak = call_arg_is(c, 2, "peak-reset-time");
    if (!peak && !call_arg_is(c, 2, "resizing")) {
        debug_reply_unknown(c);
    } else if ((peak && (call_arg_is(c, 3, "never") || call_arg_is(c, 3, "reset"))) ||
               call_arg_i64(c, 3, &value)) {
        reply_ok(c->reply);
    }
}

/* CONFIG REWRITE with all options. */
WORLD_COMMAND(debug_rewrite_all)
{
    const char *error;
    if (config_rewrite_all(&error)) {
        reply_ok(c->reply);
    } else {
        reply_errorf(c->reply, "ERR CONFIG-REWRITE-FORCE-ALL failed: %s", error);
    }
}

static void (*change_repl_id)(void);
static void (*truncate_backlog)(void);

void debug_set_backlog(void (*change_id)(void), void (*truncate)(void))
{
    change_repl_id = change_id;
    truncate_backlog = truncate;
}

WORLD_COMMAND(debug_change_repl_id)
{
    log_notice("DEBUG CHANGE-REPL-ID: the history gets another name");
    change_repl_id();
    reply_ok(c->reply);
}

WORLD_COMMAND(debug_truncate_backlog)
{
    truncate_backlog();
    reply_ok(c->reply);
}

static bool (*describe_client_eviction)(struct buf *out);

void debug_set_client_eviction(bool (*describe)(struct buf *out))
{
    describe_client_eviction = describe;
}

WORLD_COMMAND(debug_client_eviction)
{
    struct buf out = {0};
    if (describe_client_eviction(&out)) {
        reply_verbatim(c->reply, "txt", buf_slice(&out));
    } else {
        reply_error(c->reply, "ERR maxmemory-clients is disabled.");
    }
    buf_deinit(&out);
}

/* ---- Ways to begin anew ---- */

static bool (*restart)(bool orderly, int64_t delay_ms, const char **error);

void debug_set_restart(bool (*set)(bool orderly, int64_t delay_ms, const char **error))
{
    restart = set;
}

/* Who asks gets no reply: the connection ends. */
static void begin_anew(struct call *c, bool orderly) REQUIRES(gil)
{
    int64_t delay_ms = 0;
    const char *error;
    if (c->argc == 3 && !call_arg_i64(c, 2, &delay_ms)) {
        return;
    }
    delay_ms = delay_ms < 0 ? 0 : delay_ms > DEBUG_MAX_RESTART_MS ? DEBUG_MAX_RESTART_MS : delay_ms;
    if (!restart(orderly, delay_ms, &error)) {
        reply_error(c->reply, error);
    }
}

WORLD_COMMAND(debug_restart)
{
    begin_anew(c, true);
}

WORLD_COMMAND(debug_crash_and_recover)
{
    begin_anew(c, false);
}

/* ---- Ways to die ---- */

/* By a fault, not by raise(): so the report shows what a fault's report shows. */
WORLD_COMMAND(debug_segfault)
{
    void *page = mmap(NULL, 1, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    (void)c;
    log_warning("DEBUG SEGFAULT: dying as asked");
    if (page != MAP_FAILED) {
        *(volatile char *)page = 'x';
    }
    raise(SIGSEGV);
}

WORLD_COMMAND(debug_assert)
{
    (void)c;
    assert(!"DEBUG ASSERT: dying as asked");
}

/* Dies as when there is no memory. */
WORLD_COMMAND(debug_oom)
{
    (void)c;
    mem_die(SIZE_MAX);
}

WORLD_COMMAND(debug_panic)
{
    (void)c;
    log_warning("DEBUG PANIC: dying as asked");
    abort();
}

/* ---- The table ---- */

static const char *const help_lines[] = {
    "AOF-FLUSH-SLEEP <microseconds>",
    "    Let each write into the append-only file take so much longer.",
    "ASSERT",
    "    Die by a failed assertion.",
    "CHANGE-REPL-ID",
    "    Give the stream to replicas another id: they fetch everything anew.",
    "CHECK",
    "    Walk all tables and die if one is damaged.",
    "CLIENT-EVICTION",
    "    Reply what each thread's clients take towards maxmemory-clients.",
    "CONFIG-REWRITE-FORCE-ALL",
    "    CONFIG REWRITE with a line for each option that has a value.",
    "CRASH-AND-RECOVER [<milliseconds>]",
    "    Run the program anew without an end, and without saving, the delay later.",
    "DIGEST",
    "    Reply a signature of all data: equal for equal data.",
    "DIGEST-VALUE <key> [<key> ...]",
    "    Reply a signature of each key's value.",
    "EAGER-BALANCE <0|1>",
    "    Move clients between threads whenever the load differs, or only where that helps.",
    "ERROR <text>",
    "    Reply the text as an error.",
    "HTSTATS <dbid> [FULL]",
    "    Reply how full the table of a database is, with FULL by the length of its chains.",
    "HTSTATS-KEY <key> [FULL]",
    "    The same of the table under a key's value.",
    "LEAK <text>",
    "    Forget memory that holds the text.",
    "LISTPACK <key>",
    "    Print the elements of a value that is a listpack, and how each is kept.",
    "LOG <text>",
    "    Write the text into the server's log.",
    "MALLCTL <name> [<integer>]",
    "    Reply a number of the allocator's controls, and set it.",
    "MALLCTL-STR <name>",
    "    Reply a text of the allocator's controls.",
    "OBJECT <key> [FAST]",
    "    Reply how a key's value is kept; with FAST without its size in a file.",
    "OOM",
    "    Die as when memory is out.",
    "PANIC",
    "    Die by abort().",
    "POPULATE <count> [<prefix>] [<size>]",
    "    Make keys <prefix>:0 (key:0 unless told) and so on, with values of <size> bytes.",
    "PAUSE-CRON <0|1>",
    "    Stop or start periodic work, the sweep of expired keys included.",
    "PROTOCOL <type>",
    "    Reply a value of a type: string, integer, double, bignum, null, array, set, map,",
    "    attrib, push, verbatim, true or false.",
    "QUICKLIST <key> [<0|1>]",
    "    Print the nodes of a large list, with 1 their elements as well.",
    "QUICKLIST-PACKED-THRESHOLD <size>",
    "    Keep elements of large lists by themselves from this size on; 0 ends it.",
    "LOADAOF",
    "    Forget all keys and load the append-only file.",
    "REPLICATE <command> [<argument> ...]",
    "    Tell replicas the command, which is not run here: their data may differ from then on.",
    "REPLYBUFFER PEAK-RESET-TIME <NEVER|RESET|time>, REPLYBUFFER RESIZING <0|1>",
    "    Nothing: clients have no reply buffers of their own here.",
    "RELOAD [NOSAVE] [NOFLUSH] [MERGE]",
    "    Save the data set, forget it and load the file, unless told not to. With NOFLUSH a key",
    "    that is there as well ends the server; with MERGE the file's takes its place.",
    "RESTART [<milliseconds>]",
    "    End as SHUTDOWN does, with the configuration saved, and run the program anew.",
    "SDSLEN <key>",
    "    Reply the lengths and the memory of a key and its string.",
    "SEGFAULT",
    "    Die by SIGSEGV.",
    "SET-ACTIVE-EXPIRE <0|1>",
    "    Stop or start deleting expired keys that nobody asks for.",
    "SET-SKIP-CHECKSUM-VALIDATION <0|1>",
    "    Take the checksums of RDB files and of RESTORE's payloads for right, or check them.",
    "SLEEP <seconds>",
    "    Let nobody do anything for a while. Fractions are allowed.",
    "STRINGMATCH-LEN <pattern> <text>",
    "    Reply 1 when the glob pattern matches the text, else 0.",
    "STRUCTSIZE",
    "    Reply the sizes of some structs.",
    "TRUNCATE-REPL-BACKLOG",
    "    Keep nothing of the stream to replicas so far: one that is cut off fetches everything.",
    NULL,
};

WORLD_COMMAND(debug_help)
{
    call_reply_help(c, help_lines);
}

static void debug_loadaof(struct call *c)
{
    const char *error = snapshot_ops()->reload_log();
    if (error) {
        reply_error(c->reply, error);
    } else {
        reply_ok(c->reply);
    }
}

static void debug_reload(struct call *c)
{
    unsigned flags = 0;
    for (int i = 2; i < c->argc; i++) {
        unsigned flag = call_arg_is(c, i, "nosave")    ? RELOAD_NOSAVE
                        : call_arg_is(c, i, "noflush") ? RELOAD_NOFLUSH
                        : call_arg_is(c, i, "merge")   ? RELOAD_MERGE
                                                       : 0;
        if (!flag) {
            reply_error(c->reply,
                        "ERR DEBUG RELOAD only supports the MERGE, NOFLUSH and NOSAVE options.");
            return;
        }
        flags |= flag;
    }
    const char *error = snapshot_ops()->reload(flags);
    if (error) {
        reply_error(c->reply, error);
    } else {
        reply_ok(c->reply);
    }
}

struct debug_subcommand {
    const char *name;
    int min_argc, max_argc; /* with "debug" and the name */
    void (*run)(struct call *c);
};

/* KeyDB's doors to what does not exist here. */
static const struct {
    const char *name, *lacks;
} absent_subcommands[] = {
    {"force-master", "RREPLAY, as KeyDB's active replicas speak it"},
    {"get-temp-file", "names of temporary files that are known before"},
    {"flush-storage", "storage providers (FLASH)"},
    {"get-storage-usage", "storage providers (FLASH)"},
};

static bool debug_reply_absent(struct call *c)
{
    for (size_t i = 0; i < sizeof(absent_subcommands) / sizeof(absent_subcommands[0]); i++) {
        if (call_arg_is(c, 1, absent_subcommands[i].name)) {
            reply_errorf(c->reply, "ERR DEBUG %.*s needs what does not exist in this version: %s",
                         (int)c->argv[1].len, c->argv[1].ptr, absent_subcommands[i].lacks);
            return true;
        }
    }
    return false;
}

/* As many arguments as a request may have. */
#define DEBUG_ANY INT32_MAX

static const struct debug_subcommand debug_subcommands[] = {
    {"aof-flush-sleep", 3, 3, debug_aof_flush_sleep},
    {"assert", 2, 2, debug_assert},
    {"change-repl-id", 2, 2, debug_change_repl_id},
    {"check", 2, 2, debug_check},
    {"client-eviction", 2, 2, debug_client_eviction},
    {"config-rewrite-force-all", 2, 2, debug_rewrite_all},
    {"crash-and-recover", 2, 3, debug_crash_and_recover},
    {"digest", 2, 2, debug_digest},
    {"digest-value", 2, DEBUG_ANY, debug_digest_value},
    {"eager-balance", 3, 3, debug_eager_balance},
    {"error", 3, 3, debug_error},
    {"help", 2, 2, debug_help},
    {"htstats", 3, 4, debug_htstats},
    {"htstats-key", 3, 4, debug_htstats_key},
    {"leak", 3, 3, debug_leak},
    {"listpack", 3, 3, debug_listpack},
    {"log", 3, 3, debug_log},
    {"mallctl", 3, 4, debug_mallctl},
    {"mallctl-str", 3, 4, debug_mallctl_str},
    {"object", 3, 4, debug_object},
    {"oom", 2, 2, debug_oom},
    {"panic", 2, 2, debug_panic},
    {"populate", 3, 5, debug_populate},
    {"pause-cron", 3, 3, debug_pause_cron},
    {"protocol", 3, 3, debug_protocol},
    {"quicklist", 3, 4, debug_quicklist},
    {"quicklist-packed-threshold", 3, 3, debug_quicklist_threshold},
    {"loadaof", 2, 2, debug_loadaof},
    {"reload", 2, 5, debug_reload},
    {"replicate", 3, DEBUG_ANY, debug_replicate},
    {"replybuffer", 4, 4, debug_replybuffer},
    {"restart", 2, 3, debug_restart},
    {"sdslen", 3, 3, debug_sdslen},
    {"segfault", 2, 2, debug_segfault},
    {"set-active-expire", 3, 3, debug_set_active_expire},
    {"set-skip-checksum-validation", 3, 3, debug_trust_checksums},
    {"sleep", 3, 3, debug_sleep},
    {"stringmatch-len", 4, 4, debug_stringmatch},
    {"structsize", 2, 2, debug_structsize},
    {"truncate-repl-backlog", 2, 2, debug_truncate_backlog},
};

void debug_reply_unknown(struct call *c)
{
    reply_errorf(c->reply,
                 "ERR unknown subcommand or wrong number of arguments for '%.*s'. Try DEBUG HELP.",
                 (int)(c->argv[1].len < 128 ? c->argv[1].len : 128), c->argv[1].ptr);
}

WORLD_COMMAND(debug_command)
{
    gil_assert_world();
    if (!config_allows_debug(peer_is_local(c->session))) {
        reply_error(c->reply,
                    "ERR DEBUG command not allowed. If the enable-debug-command option is set to "
                    "\"local\", you can run it from a local connection, otherwise you need to set "
                    "this option in the configuration file, and then restart the server.");
        return;
    }
    for (size_t i = 0; i < sizeof(debug_subcommands) / sizeof(debug_subcommands[0]); i++) {
        const struct debug_subcommand *s = &debug_subcommands[i];
        if (call_arg_is(c, 1, s->name) && c->argc >= s->min_argc && c->argc <= s->max_argc) {
            s->run(c);
            return;
        }
    }
    if (!debug_reply_absent(c)) {
        debug_reply_unknown(c);
    }
}

const struct command_row debug_commands[] = {
    {.name = "debug",
     .run = debug_command,
     .arity = -2,
     .flags =
         CMD_ADMIN | CMD_NOSCRIPT | CMD_LOADING | CMD_STALE | CMD_PROTECTED | CMD_WORLD | CMD_SLOW,
     .group = "server",
     .since = "1.0.0",
     .summary = "Holds what tests of the server need.",
     .complexity = "Depends on the subcommand."},
    {.name = NULL},
};
