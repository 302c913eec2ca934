/* What a module is told: of keys, of the server, by timers and by the event loop. It notes all of
 * it in a log of its own, which EV.LOG hands out. */
#include "commands.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define LINES_MAX 1024
#define LINE_BYTES 128

static char lines[LINES_MAX][LINE_BYTES];
static int line_count;
static int listens; /* to keys */
static int progress_count;
static RedisModuleString *kept[8]; /* keys of events */
static int kept_count;
static uint64_t loop_part;

#define NOTE(...)                                                                                  \
    do {                                                                                           \
        if (line_count < LINES_MAX) {                                                              \
            snprintf(lines[line_count++], LINE_BYTES, __VA_ARGS__);                                \
        }                                                                                          \
    } while (0)

static int ok(RedisModuleCtx *ctx)
{
    return RedisModule_ReplyWithSimpleString(ctx, "OK");
}

/* EV.LOG: what was noted since the last time. */
static int ev_log(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    (void)argv;
    (void)argc;
    RedisModule_ReplyWithArray(ctx, line_count);
    for (int i = 0; i < line_count; i++) {
        RedisModule_ReplyWithCString(ctx, lines[i]);
    }
    line_count = 0;
    return REDISMODULE_OK;
}

/* ---- keys ---- */

static void do_job(RedisModuleCtx *ctx, void *data)
{
    RedisModule_FreeCallReply(RedisModule_Call(ctx, "INCR", "!s", (RedisModuleString *)data));
}

static void free_job(void *data)
{
    RedisModule_FreeString(NULL, data);
}

/* Modules know names by their addresses again. */
static void check_address(const char *event)
{
    static struct {
        const char *at;
        char text[32];
    } known[256];
    static int count;
    for (int i = 0; i < count; i++) {
        if (known[i].at == event) {
            if (strcmp(known[i].text, event) != 0) {
                NOTE("address %s was %s", event, known[i].text);
            }
            return;
        }
    }
    if (count < 256) {
        known[count].at = event;
        snprintf(known[count++].text, sizeof(known[0].text), "%s", event);
    }
}

/* Changes of keys "job..." make a job, which counts in "jobs"; those of "told..." are told on; the
 * names of "kept..." are kept. */
static int on_key(RedisModuleCtx *ctx, int type, const char *event, RedisModuleString *key)
{
    const char *name = RedisModule_StringPtrLen(key, NULL);
    if (!listens) {
        return REDISMODULE_OK;
    }
    if (type != REDISMODULE_NOTIFY_MODULE) { /* in Redis those are where the module has them */
        check_address(event);
    }
    NOTE("key %d %s %s db%d %s", type, event, name, RedisModule_GetSelectedDb(ctx),
         RedisModule_KeyExists(ctx, key) ? "there" : "gone");
    /* Redis has jobs from 7.2 on. */
    if (RMAPI_FUNC_SUPPORTED(RedisModule_AddPostNotificationJob) && strncmp(name, "job", 3) == 0 &&
        strcmp(name, "jobs") != 0) {
        RedisModule_AddPostNotificationJob(ctx, do_job, RedisModule_CreateString(NULL, "jobs", 4),
                                           free_job);
    }
    if (strncmp(name, "told", 4) == 0) {
        RedisModule_Replicate(ctx, "RPUSH", "cs", "telling", key);
    }
    if (strncmp(name, "kept", 4) == 0 && kept_count < 8) {
        RedisModule_RetainString(NULL, key);
        kept[kept_count++] = key;
    }
    return REDISMODULE_OK;
}

/* EV.KEPT: the keys that were kept, which are let go of. */
static int ev_kept(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    (void)argv;
    (void)argc;
    RedisModule_ReplyWithArray(ctx, kept_count);
    for (int i = 0; i < kept_count; i++) {
        RedisModule_ReplyWithString(ctx, kept[i]);
        RedisModule_FreeString(NULL, kept[i]);
    }
    kept_count = 0;
    return REDISMODULE_OK;
}

/* Keys that a file brings. */
static int on_loaded(RedisModuleCtx *ctx, int type, const char *event, RedisModuleString *key)
{
    NOTE("key %d %s %s db%d", type, event, RedisModule_StringPtrLen(key, NULL),
         RedisModule_GetSelectedDb(ctx));
    return REDISMODULE_OK;
}

/* A key that goes is there still, and nothing can be changed. */
static void on_going(RedisModuleCtx *ctx, RedisModuleEvent event, uint64_t part, void *data)
{
    RedisModuleKey *key = ((RedisModuleKeyInfoV1 *)data)->key;
    (void)event;
    if (listens) {
        NOTE("going %d %s type%d length%d db%d", (int)part,
             RedisModule_StringPtrLen(RedisModule_GetKeyNameFromModuleKey(key), NULL),
             RedisModule_KeyType(key), (int)RedisModule_ValueLength(key),
             RedisModule_GetDbIdFromModuleKey(key));
    }
    (void)ctx;
}

/* EV.LISTEN yes|no */
static int ev_listen(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    if (argc != 2) {
        return RedisModule_WrongArity(ctx);
    }
    listens = strcasecmp(RedisModule_StringPtrLen(argv[1], NULL), "yes") == 0;
    return ok(ctx);
}

/* EV.NOTIFY event key */
static int ev_notify(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    if (argc != 3) {
        return RedisModule_WrongArity(ctx);
    }
    RedisModule_NotifyKeyspaceEvent(ctx, REDISMODULE_NOTIFY_MODULE,
                                    RedisModule_StringPtrLen(argv[1], NULL), argv[2]);
    return RedisModule_ReplyWithLongLong(ctx, RedisModule_GetNotifyKeyspaceEvents());
}

/* ---- the server ---- */

static void on_server(RedisModuleCtx *ctx, RedisModuleEvent event, uint64_t part, void *data)
{
    if (event.id == REDISMODULE_EVENT_FLUSHDB) {
        const RedisModuleFlushInfo *flush = data;
        NOTE("flush %d db%d sync%d", (int)part, flush->dbnum, flush->sync);
    } else if (event.id == REDISMODULE_EVENT_SWAPDB) {
        const RedisModuleSwapDbInfo *swap = data;
        NOTE("swap %d db%d db%d", (int)part, swap->dbnum_first, swap->dbnum_second);
    } else if (event.id == REDISMODULE_EVENT_MODULE_CHANGE) {
        const RedisModuleModuleChange *change = data;
        NOTE("module %d %s %d", (int)part, change->module_name, change->module_version);
    } else if (event.id == REDISMODULE_EVENT_REPLICATION_ROLE_CHANGED) {
        const RedisModuleReplicationInfo *role = data;
        NOTE("role %d master%d host '%s' port%d id%d", (int)part, role->master, role->masterhost,
             role->masterport, (int)strlen(role->replid1));
    } else if (event.id == REDISMODULE_EVENT_MASTER_LINK_CHANGE) {
        NOTE("link %d", (int)part);
    } else if (event.id == REDISMODULE_EVENT_LOADING) {
        NOTE("loading %d", (int)part);
    } else if (event.id == REDISMODULE_EVENT_REPLICA_CHANGE) {
        NOTE("replica %d", (int)part);
    } else if (event.id == REDISMODULE_EVENT_FORK_CHILD) {
        NOTE("child %d", (int)part);
    } else if (event.id == REDISMODULE_EVENT_SHUTDOWN) {
        RedisModule_Log(ctx, "notice", "told of the end, with %llu keys", RedisModule_DbSize(ctx));
    } else if (event.id == REDISMODULE_EVENT_CONFIG) {
        const RedisModuleConfigChangeV1 *change = data;
        NOTE("config %d %s", (int)change->num_changes, change->config_names[0]);
    }
}

/* Saving: in a child what is noted goes with it, so a key is set there, which is in the file. */
static void on_saving(RedisModuleCtx *ctx, RedisModuleEvent event, uint64_t part, void *data)
{
    (void)event;
    (void)data;
    NOTE("saving %d", (int)part);
    if (part == REDISMODULE_SUBEVENT_PERSISTENCE_RDB_START ||
        part == REDISMODULE_SUBEVENT_PERSISTENCE_AOF_START) {
        RedisModule_FreeCallReply(RedisModule_Call(ctx, "SET", "cl", "of:child", (long long)part));
    }
}

static void on_progress(RedisModuleCtx *ctx, RedisModuleEvent event, uint64_t part, void *data)
{
    const RedisModuleLoadingProgressV1 *progress = data;
    static int last;
    (void)ctx;
    (void)event;
    if (progress->progress < 0) { /* it is not known how much there is */
        progress_count++;
        return;
    }
    if (progress->progress < last || progress->progress > 1024) {
        NOTE("progress from %d to %d", last, progress->progress);
    }
    last = part == 0 ? progress->progress : 0;
    progress_count++;
}

/* EV.PROGRESS: how often it was told. */
static int ev_progress(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    (void)argv;
    (void)argc;
    return RedisModule_ReplyWithLongLong(ctx, progress_count);
}

/* The first time that a loop sleeps, and the first time that it wakes up after that. */
static void on_loop(RedisModuleCtx *ctx, RedisModuleEvent event, uint64_t part, void *data)
{
    (void)data;
    if (part == loop_part) {
        NOTE("loop %d", (int)part);
        loop_part++;
    }
    if (loop_part > REDISMODULE_SUBEVENT_EVENTLOOP_AFTER_SLEEP) {
        RedisModule_SubscribeToServerEvent(ctx, event, NULL);
    }
}

/* EV.LOOP: notes how an event loop goes round once. */
static int ev_loop(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    (void)argv;
    (void)argc;
    loop_part = REDISMODULE_SUBEVENT_EVENTLOOP_BEFORE_SLEEP;
    return RedisModule_SubscribeToServerEvent(ctx, RedisModuleEvent_EventLoop, on_loop) ==
                   REDISMODULE_OK
               ? ok(ctx)
               : RedisModule_ReplyWithError(ctx, "ERR there is no such event");
}

static void on_cron(RedisModuleCtx *ctx, RedisModuleEvent event, uint64_t part, void *data)
{
    const RedisModuleCronLoopV1 *cron = data;
    (void)part;
    NOTE("cron hz%d", cron->hz);
    RedisModule_SubscribeToServerEvent(ctx, event, NULL); /* once is enough */
}

static void on_client(RedisModuleCtx *ctx, RedisModuleEvent event, uint64_t part, void *data)
{
    const RedisModuleClientInfo *client = data;
    (void)ctx;
    (void)event;
    NOTE("client %d %s db%d %s %s", (int)part, client->addr, client->db,
         client->id > 0 ? "id" : "no id", client->port > 0 ? "port" : "no port");
}

/* EV.CLIENTS yes|no: notes who comes and goes. */
static int ev_clients(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    if (argc != 2) {
        return RedisModule_WrongArity(ctx);
    }
    int yes = strcasecmp(RedisModule_StringPtrLen(argv[1], NULL), "yes") == 0;
    RedisModule_SubscribeToServerEvent(ctx, RedisModuleEvent_ClientChange, yes ? on_client : NULL);
    return ok(ctx);
}

/* EV.CRON: notes the next beat of the cron. */
static int ev_cron(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    (void)argv;
    (void)argc;
    RedisModule_SubscribeToServerEvent(ctx, RedisModuleEvent_CronLoop, on_cron);
    return ok(ctx);
}

/* ---- timers ---- */

static void on_timer(RedisModuleCtx *ctx, void *data)
{
    NOTE("timer %s db%d", RedisModule_StringPtrLen(data, NULL), RedisModule_GetSelectedDb(ctx));
    RedisModule_FreeCallReply(RedisModule_Call(ctx, "RPUSH", "!cs", "timers", data));
    RedisModule_FreeString(ctx, data);
}

/* EV.TIMER ms text: its id. EV.STOP id: the text. EV.INFO id: the milliseconds that are left. */
static int ev_timer(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    long long ms;
    if (argc != 3 || RedisModule_StringToLongLong(argv[1], &ms) != REDISMODULE_OK) {
        return RedisModule_WrongArity(ctx);
    }
    RedisModule_RetainString(NULL, argv[2]);
    return RedisModule_ReplyWithLongLong(
        ctx, (long long)RedisModule_CreateTimer(ctx, ms, on_timer, argv[2]));
}

static int ev_stop(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    long long id;
    void *text;
    if (argc != 2 || RedisModule_StringToLongLong(argv[1], &id) != REDISMODULE_OK) {
        return RedisModule_WrongArity(ctx);
    }
    if (RedisModule_StopTimer(ctx, (RedisModuleTimerID)id, &text) != REDISMODULE_OK) {
        return RedisModule_ReplyWithNull(ctx);
    }
    RedisModule_ReplyWithString(ctx, text);
    RedisModule_FreeString(ctx, text);
    return REDISMODULE_OK;
}

static int ev_info(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    long long id;
    uint64_t left_ms;
    if (argc != 2 || RedisModule_StringToLongLong(argv[1], &id) != REDISMODULE_OK) {
        return RedisModule_WrongArity(ctx);
    }
    if (RedisModule_GetTimerInfo(ctx, (RedisModuleTimerID)id, &left_ms, NULL) != REDISMODULE_OK) {
        return RedisModule_ReplyWithNull(ctx);
    }
    return RedisModule_ReplyWithLongLong(ctx, (long long)left_ms);
}

/* ---- the event loop ---- */

static void on_readable(int fd, void *data, int mask)
{
    char byte = '?';
    NOTE("readable %d %c", mask, read(fd, &byte, 1) == 1 ? byte : '-');
    RedisModule_EventLoopDel(fd, REDISMODULE_EVENTLOOP_READABLE);
    close(fd);
    (void)data;
}

static void on_writable(int fd, void *data, int mask)
{
    NOTE("writable %d", mask);
    RedisModule_EventLoopDel(fd, REDISMODULE_EVENTLOOP_WRITABLE);
    if (write(fd, data, 1) != 1) {
        NOTE("not written");
    }
    close(fd);
}

static void on_turn(void *data)
{
    NOTE("turn %s", (const char *)data);
}

/* EV.PIPE: a byte goes through a pipe, both of whose ends the event loop watches. */
static int ev_pipe(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    static char byte[] = "x";
    int ends[2];
    (void)argv;
    (void)argc;
    if (pipe(ends) != 0 ||
        RedisModule_EventLoopAdd(ends[0], REDISMODULE_EVENTLOOP_READABLE, on_readable, NULL) !=
            REDISMODULE_OK ||
        RedisModule_EventLoopAdd(ends[1], REDISMODULE_EVENTLOOP_WRITABLE, on_writable, byte) !=
            REDISMODULE_OK) {
        return RedisModule_ReplyWithError(ctx, "ERR no pipe");
    }
    return RedisModule_EventLoopAdd(ends[0], 4, on_readable, NULL) == REDISMODULE_ERR
               ? ok(ctx)
               : RedisModule_ReplyWithError(ctx, "ERR a wrong mask was taken");
}

static int ev_turn(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    static char text[] = "once";
    (void)argv;
    (void)argc;
    RedisModule_EventLoopAddOneShot(on_turn, text);
    return ok(ctx);
}

int RedisModule_OnLoad(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    static const struct test_command commands[] = {
        {"ev.log", ev_log, NULL, 0},       {"ev.listen", ev_listen, NULL, 0},
        {"ev.notify", ev_notify, NULL, 0}, {"ev.cron", ev_cron, NULL, 0},
        {"ev.timer", ev_timer, NULL, 0},   {"ev.stop", ev_stop, NULL, 0},
        {"ev.info", ev_info, NULL, 0},     {"ev.pipe", ev_pipe, NULL, 0},
        {"ev.turn", ev_turn, NULL, 0},     {"ev.clients", ev_clients, NULL, 0},
        {"ev.loop", ev_loop, NULL, 0},     {"ev.progress", ev_progress, NULL, 0},
        {"ev.kept", ev_kept, NULL, 0},
    };
    (void)argv;
    (void)argc;
    if (RedisModule_Init(ctx, "events", 1, REDISMODULE_APIVER_1) != REDISMODULE_OK) {
        return REDISMODULE_ERR;
    }
    if (CREATE_COMMANDS(ctx, commands, "", 0) != REDISMODULE_OK) {
        return REDISMODULE_ERR;
    }
    /* No server of today has it, and modules ask for it. */
    if (RedisModule_SubscribeToServerEvent(ctx, RedisModuleEvent_ReplBackup, on_server) !=
        REDISMODULE_OK) {
        return REDISMODULE_ERR;
    }
    RedisModule_SubscribeToServerEvent(ctx, RedisModuleEvent_FlushDB, on_server);
    RedisModule_SubscribeToServerEvent(ctx, RedisModuleEvent_SwapDB, on_server);
    RedisModule_SubscribeToServerEvent(ctx, RedisModuleEvent_Loading, on_server);
    RedisModule_SubscribeToServerEvent(ctx, RedisModuleEvent_ReplicationRoleChanged, on_server);
    RedisModule_SubscribeToServerEvent(ctx, RedisModuleEvent_MasterLinkChange, on_server);
    RedisModule_SubscribeToServerEvent(ctx, RedisModuleEvent_ModuleChange, on_server);
    RedisModule_SubscribeToServerEvent(ctx, RedisModuleEvent_Config, on_server);
    RedisModule_SubscribeToServerEvent(ctx, RedisModuleEvent_Shutdown, on_server);
    RedisModule_SubscribeToServerEvent(ctx, RedisModuleEvent_Persistence, on_saving);
    RedisModule_SubscribeToServerEvent(ctx, RedisModuleEvent_ReplicaChange, on_server);
    RedisModule_SubscribeToServerEvent(ctx, RedisModuleEvent_LoadingProgress, on_progress);
    RedisModule_SubscribeToServerEvent(ctx, RedisModuleEvent_ForkChild, on_server);
    RedisModule_SubscribeToServerEvent(ctx, RedisModuleEvent_Key, on_going);
    RedisModule_SubscribeToKeyspaceEvents(ctx, REDISMODULE_NOTIFY_LOADED, on_loaded);
    return RedisModule_SubscribeToKeyspaceEvents(
        ctx, REDISMODULE_NOTIFY_ALL | REDISMODULE_NOTIFY_KEY_MISS, on_key);
}
