/* The interface of modules: what a shared object needs that is loaded with `loadmodule` or MODULE
 * LOAD. Names, values and layouts are those of Redis 7.2 (and five functions of later versions), so
 * that a module built with this header runs in Redis too, and one built with Redis's runs here.
 *
 * A module exports
 *
 *     int RedisModule_OnLoad(RedisModuleCtx *ctx, RedisModuleString **argv, int argc);
 *
 * and, if it may be unloaded and has something to end, `int RedisModule_OnUnload(RedisModuleCtx
 * *)`. OnLoad begins with RedisModule_Init, which fetches the functions below: each is a variable
 * of the module, RedisModule_ and the name, and NULL where the server has none. What OnLoad
 * registers is taken back when it returns REDISMODULE_ERR.
 *
 * Module code runs while no other command does: no call needs a lock, but from threads of the
 * module's own (RedisModule_ThreadSafeContextLock). What each function means is told by the public
 * reference of Redis's module API; where this server answers otherwise, src/module/DESIGN.md says
 * so.
 *
 * In a module of several files each includes this one; the variables are the same in all of them.
 */
#ifndef KEYDBMODULE_H
#define KEYDBMODULE_H

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>

#if !defined(KEYDBMODULE_SERVER)
typedef long long mstime_t; /* milliseconds */
typedef long long ustime_t; /* microseconds */
#endif
typedef uint64_t RedisModuleTimerID;

#define KEYDBMODULE_PRINTF(format, arguments)                                                      \
    __attribute__((__format__(__printf__, format, arguments)))

/* Results. */
#define REDISMODULE_OK 0
#define REDISMODULE_ERR 1
#define REDISMODULE_AUTH_HANDLED 0
#define REDISMODULE_AUTH_NOT_HANDLED 1

/* Versions. */
#define REDISMODULE_APIVER_1 1
#define REDISMODULE_TYPE_METHOD_VERSION 5

/* How a key is opened; the upper ones beside REDISMODULE_READ. */
#define REDISMODULE_READ (1 << 0)
#define REDISMODULE_WRITE (1 << 1)
#define REDISMODULE_OPEN_KEY_NOTOUCH (1 << 16)
#define REDISMODULE_OPEN_KEY_NONOTIFY (1 << 17)
#define REDISMODULE_OPEN_KEY_NOSTATS (1 << 18)
#define REDISMODULE_OPEN_KEY_NOEXPIRE (1 << 19)
#define REDISMODULE_OPEN_KEY_NOEFFECTS (1 << 20)

/* Ends of a list. */
#define REDISMODULE_LIST_HEAD 0
#define REDISMODULE_LIST_TAIL 1

/* What KeyType tells. */
#define REDISMODULE_KEYTYPE_EMPTY 0
#define REDISMODULE_KEYTYPE_STRING 1
#define REDISMODULE_KEYTYPE_LIST 2
#define REDISMODULE_KEYTYPE_HASH 3
#define REDISMODULE_KEYTYPE_SET 4
#define REDISMODULE_KEYTYPE_ZSET 5
#define REDISMODULE_KEYTYPE_MODULE 6
#define REDISMODULE_KEYTYPE_STREAM 7

/* What CallReplyType tells. */
#define REDISMODULE_REPLY_UNKNOWN (-1)
#define REDISMODULE_REPLY_STRING 0
#define REDISMODULE_REPLY_ERROR 1
#define REDISMODULE_REPLY_INTEGER 2
#define REDISMODULE_REPLY_ARRAY 3
#define REDISMODULE_REPLY_NULL 4
#define REDISMODULE_REPLY_MAP 5
#define REDISMODULE_REPLY_SET 6
#define REDISMODULE_REPLY_BOOL 7
#define REDISMODULE_REPLY_DOUBLE 8
#define REDISMODULE_REPLY_BIG_NUMBER 9
#define REDISMODULE_REPLY_VERBATIM_STRING 10
#define REDISMODULE_REPLY_ATTRIBUTE 11
#define REDISMODULE_REPLY_PROMISE 12

/* Lengths that are told later; no deadline. */
#define REDISMODULE_POSTPONED_ARRAY_LEN (-1)
#define REDISMODULE_POSTPONED_LEN (-1)
#define REDISMODULE_NO_EXPIRE (-1)

/* Sorted sets: conditions, and what has happened. */
#define REDISMODULE_ZADD_XX (1 << 0)
#define REDISMODULE_ZADD_NX (1 << 1)
#define REDISMODULE_ZADD_ADDED (1 << 2)
#define REDISMODULE_ZADD_UPDATED (1 << 3)
#define REDISMODULE_ZADD_NOP (1 << 4)
#define REDISMODULE_ZADD_GT (1 << 5)
#define REDISMODULE_ZADD_LT (1 << 6)

/* Hashes. */
#define REDISMODULE_HASH_NONE 0
#define REDISMODULE_HASH_NX (1 << 0)
#define REDISMODULE_HASH_XX (1 << 1)
#define REDISMODULE_HASH_CFIELDS (1 << 2)
#define REDISMODULE_HASH_EXISTS (1 << 3)
#define REDISMODULE_HASH_COUNT_ALL (1 << 4)

/* Options of a module. */
#define REDISMODULE_CONFIG_DEFAULT 0
#define REDISMODULE_CONFIG_IMMUTABLE (1ULL << 0)
#define REDISMODULE_CONFIG_SENSITIVE (1ULL << 1)
#define REDISMODULE_CONFIG_HIDDEN (1ULL << 4)
#define REDISMODULE_CONFIG_PROTECTED (1ULL << 5)
#define REDISMODULE_CONFIG_DENY_LOADING (1ULL << 6)
#define REDISMODULE_CONFIG_MEMORY (1ULL << 7)
#define REDISMODULE_CONFIG_BITFLAGS (1ULL << 8)

/* Streams. */
#define REDISMODULE_STREAM_ADD_AUTOID (1 << 0)
#define REDISMODULE_STREAM_ITERATOR_EXCLUSIVE (1 << 0)
#define REDISMODULE_STREAM_ITERATOR_REVERSE (1 << 1)
#define REDISMODULE_STREAM_TRIM_APPROX (1 << 0)

/* GetContextFlags. */
#define REDISMODULE_CTX_FLAGS_LUA (1 << 0)
#define REDISMODULE_CTX_FLAGS_MULTI (1 << 1)
#define REDISMODULE_CTX_FLAGS_MASTER (1 << 2)
#define REDISMODULE_CTX_FLAGS_SLAVE (1 << 3)
#define REDISMODULE_CTX_FLAGS_READONLY (1 << 4)
#define REDISMODULE_CTX_FLAGS_CLUSTER (1 << 5)
#define REDISMODULE_CTX_FLAGS_AOF (1 << 6)
#define REDISMODULE_CTX_FLAGS_RDB (1 << 7)
#define REDISMODULE_CTX_FLAGS_MAXMEMORY (1 << 8)
#define REDISMODULE_CTX_FLAGS_EVICT (1 << 9)
#define REDISMODULE_CTX_FLAGS_OOM (1 << 10)
#define REDISMODULE_CTX_FLAGS_OOM_WARNING (1 << 11)
#define REDISMODULE_CTX_FLAGS_REPLICATED (1 << 12)
#define REDISMODULE_CTX_FLAGS_LOADING (1 << 13)
#define REDISMODULE_CTX_FLAGS_REPLICA_IS_STALE (1 << 14)
#define REDISMODULE_CTX_FLAGS_REPLICA_IS_CONNECTING (1 << 15)
#define REDISMODULE_CTX_FLAGS_REPLICA_IS_TRANSFERRING (1 << 16)
#define REDISMODULE_CTX_FLAGS_REPLICA_IS_ONLINE (1 << 17)
#define REDISMODULE_CTX_FLAGS_ACTIVE_CHILD (1 << 18)
#define REDISMODULE_CTX_FLAGS_MULTI_DIRTY (1 << 19)
#define REDISMODULE_CTX_FLAGS_IS_CHILD (1 << 20)
#define REDISMODULE_CTX_FLAGS_DENY_BLOCKING (1 << 21)
#define REDISMODULE_CTX_FLAGS_RESP3 (1 << 22)
#define REDISMODULE_CTX_FLAGS_ASYNC_LOADING (1 << 23)
#define REDISMODULE_CTX_FLAGS_SERVER_STARTUP (1 << 24)

/* Classes of key events. */
#define REDISMODULE_NOTIFY_KEYSPACE (1 << 0)
#define REDISMODULE_NOTIFY_KEYEVENT (1 << 1)
#define REDISMODULE_NOTIFY_GENERIC (1 << 2)
#define REDISMODULE_NOTIFY_STRING (1 << 3)
#define REDISMODULE_NOTIFY_LIST (1 << 4)
#define REDISMODULE_NOTIFY_SET (1 << 5)
#define REDISMODULE_NOTIFY_HASH (1 << 6)
#define REDISMODULE_NOTIFY_ZSET (1 << 7)
#define REDISMODULE_NOTIFY_EXPIRED (1 << 8)
#define REDISMODULE_NOTIFY_EVICTED (1 << 9)
#define REDISMODULE_NOTIFY_STREAM (1 << 10)
#define REDISMODULE_NOTIFY_KEY_MISS (1 << 11)
#define REDISMODULE_NOTIFY_LOADED (1 << 12)
#define REDISMODULE_NOTIFY_MODULE (1 << 13)
#define REDISMODULE_NOTIFY_NEW (1 << 14)
#define REDISMODULE_NOTIFY_ALL                                                                     \
    (REDISMODULE_NOTIFY_GENERIC | REDISMODULE_NOTIFY_STRING | REDISMODULE_NOTIFY_LIST |            \
     REDISMODULE_NOTIFY_SET | REDISMODULE_NOTIFY_HASH | REDISMODULE_NOTIFY_ZSET |                  \
     REDISMODULE_NOTIFY_EXPIRED | REDISMODULE_NOTIFY_EVICTED | REDISMODULE_NOTIFY_STREAM |         \
     REDISMODULE_NOTIFY_MODULE)

/* In the place of a value: delete the field. What a wrong type is told. Ends of score ranges. */
#define REDISMODULE_HASH_DELETE ((RedisModuleString *)(long)1)
#define REDISMODULE_ERRORMSG_WRONGTYPE                                                             \
    "WRONGTYPE Operation against a key holding the wrong kind of value"
#define REDISMODULE_POSITIVE_INFINITE (1.0 / 0.0)
#define REDISMODULE_NEGATIVE_INFINITE (-1.0 / 0.0)

/* Nodes of a cluster. */
#define REDISMODULE_NODE_ID_LEN 40
#define REDISMODULE_NODE_MYSELF (1 << 0)
#define REDISMODULE_NODE_MASTER (1 << 1)
#define REDISMODULE_NODE_SLAVE (1 << 2)
#define REDISMODULE_NODE_PFAIL (1 << 3)
#define REDISMODULE_NODE_FAIL (1 << 4)
#define REDISMODULE_NODE_NOFAILOVER (1 << 5)
#define REDISMODULE_CLUSTER_FLAG_NONE 0
#define REDISMODULE_CLUSTER_FLAG_NO_FAILOVER (1 << 1)
#define REDISMODULE_CLUSTER_FLAG_NO_REDIRECTION (1 << 2)

/* Levels of the log. */
#define REDISMODULE_LOGLEVEL_DEBUG "debug"
#define REDISMODULE_LOGLEVEL_VERBOSE "verbose"
#define REDISMODULE_LOGLEVEL_NOTICE "notice"
#define REDISMODULE_LOGLEVEL_WARNING "warning"

/* When aux fields are saved; yields; blocked clients; filters. */
#define REDISMODULE_AUX_BEFORE_RDB (1 << 0)
#define REDISMODULE_AUX_AFTER_RDB (1 << 1)
#define REDISMODULE_YIELD_FLAG_NONE (1 << 0)
#define REDISMODULE_YIELD_FLAG_CLIENTS (1 << 1)
#define REDISMODULE_BLOCK_UNBLOCK_DEFAULT 0
#define REDISMODULE_BLOCK_UNBLOCK_DELETED (1 << 0)
#define REDISMODULE_CMDFILTER_NOSELF (1 << 0)

/* SetModuleOptions. */
#define REDISMODULE_OPTIONS_HANDLE_IO_ERRORS (1 << 0)
#define REDISMODULE_OPTION_NO_IMPLICIT_SIGNAL_MODIFIED (1 << 1)
#define REDISMODULE_OPTIONS_HANDLE_REPL_ASYNC_LOAD (1 << 2)
#define REDISMODULE_OPTIONS_ALLOW_NESTED_KEYSPACE_NOTIFICATIONS (1 << 3)

/* Arguments, keys and channels of commands. */
#define REDISMODULE_CMD_ARG_NONE 0
#define REDISMODULE_CMD_ARG_OPTIONAL (1 << 0)
#define REDISMODULE_CMD_ARG_MULTIPLE (1 << 1)
#define REDISMODULE_CMD_ARG_MULTIPLE_TOKEN (1 << 2)
#define REDISMODULE_CMD_KEY_RO (1ULL << 0)
#define REDISMODULE_CMD_KEY_RW (1ULL << 1)
#define REDISMODULE_CMD_KEY_OW (1ULL << 2)
#define REDISMODULE_CMD_KEY_RM (1ULL << 3)
#define REDISMODULE_CMD_KEY_ACCESS (1ULL << 4)
#define REDISMODULE_CMD_KEY_UPDATE (1ULL << 5)
#define REDISMODULE_CMD_KEY_INSERT (1ULL << 6)
#define REDISMODULE_CMD_KEY_DELETE (1ULL << 7)
#define REDISMODULE_CMD_KEY_NOT_KEY (1ULL << 8)
#define REDISMODULE_CMD_KEY_INCOMPLETE (1ULL << 9)
#define REDISMODULE_CMD_KEY_VARIABLE_FLAGS (1ULL << 10)
#define REDISMODULE_CMD_CHANNEL_PATTERN (1ULL << 0)
#define REDISMODULE_CMD_CHANNEL_PUBLISH (1ULL << 1)
#define REDISMODULE_CMD_CHANNEL_SUBSCRIBE (1ULL << 2)
#define REDISMODULE_CMD_CHANNEL_UNSUBSCRIBE (1ULL << 3)

/* The event loop. */
#define REDISMODULE_EVENTLOOP_READABLE 1
#define REDISMODULE_EVENTLOOP_WRITABLE 2

/* Events of the server. */
#define REDISMODULE_EVENT_REPLICATION_ROLE_CHANGED 0
#define REDISMODULE_EVENT_PERSISTENCE 1
#define REDISMODULE_EVENT_FLUSHDB 2
#define REDISMODULE_EVENT_LOADING 3
#define REDISMODULE_EVENT_CLIENT_CHANGE 4
#define REDISMODULE_EVENT_SHUTDOWN 5
#define REDISMODULE_EVENT_REPLICA_CHANGE 6
#define REDISMODULE_EVENT_MASTER_LINK_CHANGE 7
#define REDISMODULE_EVENT_CRON_LOOP 8
#define REDISMODULE_EVENT_MODULE_CHANGE 9
#define REDISMODULE_EVENT_LOADING_PROGRESS 10
#define REDISMODULE_EVENT_SWAPDB 11
#define REDISMODULE_EVENT_REPL_BACKUP 12
#define REDISMODULE_EVENT_FORK_CHILD 13
#define REDISMODULE_EVENT_REPL_ASYNC_LOAD 14
#define REDISMODULE_EVENT_EVENTLOOP 15
#define REDISMODULE_EVENT_CONFIG 16
#define REDISMODULE_EVENT_KEY 17

/* What has happened, of each. */
#define REDISMODULE_SUBEVENT_PERSISTENCE_RDB_START 0
#define REDISMODULE_SUBEVENT_PERSISTENCE_AOF_START 1
#define REDISMODULE_SUBEVENT_PERSISTENCE_SYNC_RDB_START 2
#define REDISMODULE_SUBEVENT_PERSISTENCE_ENDED 3
#define REDISMODULE_SUBEVENT_PERSISTENCE_FAILED 4
#define REDISMODULE_SUBEVENT_PERSISTENCE_SYNC_AOF_START 5
#define REDISMODULE_SUBEVENT_LOADING_RDB_START 0
#define REDISMODULE_SUBEVENT_LOADING_AOF_START 1
#define REDISMODULE_SUBEVENT_LOADING_REPL_START 2
#define REDISMODULE_SUBEVENT_LOADING_ENDED 3
#define REDISMODULE_SUBEVENT_LOADING_FAILED 4
#define REDISMODULE_SUBEVENT_CLIENT_CHANGE_CONNECTED 0
#define REDISMODULE_SUBEVENT_CLIENT_CHANGE_DISCONNECTED 1
#define REDISMODULE_SUBEVENT_MASTER_LINK_UP 0
#define REDISMODULE_SUBEVENT_MASTER_LINK_DOWN 1
#define REDISMODULE_SUBEVENT_REPLICA_CHANGE_ONLINE 0
#define REDISMODULE_SUBEVENT_REPLICA_CHANGE_OFFLINE 1
#define REDISMODULE_EVENT_REPLROLECHANGED_NOW_MASTER 0
#define REDISMODULE_EVENT_REPLROLECHANGED_NOW_REPLICA 1
#define REDISMODULE_SUBEVENT_FLUSHDB_START 0
#define REDISMODULE_SUBEVENT_FLUSHDB_END 1
#define REDISMODULE_SUBEVENT_MODULE_LOADED 0
#define REDISMODULE_SUBEVENT_MODULE_UNLOADED 1
#define REDISMODULE_SUBEVENT_CONFIG_CHANGE 0
#define REDISMODULE_SUBEVENT_LOADING_PROGRESS_RDB 0
#define REDISMODULE_SUBEVENT_LOADING_PROGRESS_AOF 1
#define REDISMODULE_SUBEVENT_REPL_BACKUP_CREATE 0
#define REDISMODULE_SUBEVENT_REPL_BACKUP_RESTORE 1
#define REDISMODULE_SUBEVENT_REPL_BACKUP_DISCARD 2
#define REDISMODULE_SUBEVENT_REPL_ASYNC_LOAD_STARTED 0
#define REDISMODULE_SUBEVENT_REPL_ASYNC_LOAD_ABORTED 1
#define REDISMODULE_SUBEVENT_REPL_ASYNC_LOAD_COMPLETED 2
#define REDISMODULE_SUBEVENT_FORK_CHILD_BORN 0
#define REDISMODULE_SUBEVENT_FORK_CHILD_DIED 1
#define REDISMODULE_SUBEVENT_EVENTLOOP_BEFORE_SLEEP 0
#define REDISMODULE_SUBEVENT_EVENTLOOP_AFTER_SLEEP 1
#define REDISMODULE_SUBEVENT_KEY_DELETED 0
#define REDISMODULE_SUBEVENT_KEY_EXPIRED 1
#define REDISMODULE_SUBEVENT_KEY_EVICTED 2
#define REDISMODULE_SUBEVENT_KEY_OVERWRITTEN 3

/* Clients. */
#define REDISMODULE_CLIENTINFO_FLAG_SSL (1 << 0)
#define REDISMODULE_CLIENTINFO_FLAG_PUBSUB (1 << 1)
#define REDISMODULE_CLIENTINFO_FLAG_BLOCKED (1 << 2)
#define REDISMODULE_CLIENTINFO_FLAG_TRACKING (1 << 3)
#define REDISMODULE_CLIENTINFO_FLAG_UNIXSOCKET (1 << 4)
#define REDISMODULE_CLIENTINFO_FLAG_MULTI (1 << 5)
#define REDISMODULE_CLIENTINFO_VERSION 1

/* Versions of what events tell. */
#define REDISMODULE_REPLICATIONINFO_VERSION 1
#define REDISMODULE_FLUSHINFO_VERSION 1
#define REDISMODULE_MODULE_CHANGE_VERSION 1
#define REDISMODULE_CONFIGCHANGE_VERSION 1
#define REDISMODULE_CRON_LOOP_VERSION 1
#define REDISMODULE_LOADING_PROGRESS_VERSION 1
#define REDISMODULE_SWAPDBINFO_VERSION 1
#define REDISMODULE_KEYINFO_VERSION 1

/* The server's own: a module only holds pointers. */
typedef struct RedisModuleCtx RedisModuleCtx;
typedef struct RedisModuleCommand RedisModuleCommand;
typedef struct RedisModuleKey RedisModuleKey;
typedef struct RedisModuleString RedisModuleString;
typedef struct RedisModuleCallReply RedisModuleCallReply;
typedef struct RedisModuleType RedisModuleType;
typedef struct RedisModuleBlockedClient RedisModuleBlockedClient;
typedef struct RedisModuleDict RedisModuleDict;
typedef struct RedisModuleDictIter RedisModuleDictIter;
typedef struct RedisModuleCommandFilterCtx RedisModuleCommandFilterCtx;
typedef struct RedisModuleCommandFilter RedisModuleCommandFilter;
typedef struct RedisModuleServerInfoData RedisModuleServerInfoData;
typedef struct RedisModuleScanCursor RedisModuleScanCursor;
typedef struct RedisModuleUser RedisModuleUser;
typedef struct RedisModuleKeyOptCtx RedisModuleKeyOptCtx;
typedef struct RedisModuleRdbStream RedisModuleRdbStream;
typedef struct RedisModuleIO RedisModuleIO;
typedef struct RedisModuleDigest RedisModuleDigest;
typedef struct RedisModuleInfoCtx RedisModuleInfoCtx;
typedef struct RedisModuleDefragCtx RedisModuleDefragCtx;

/* ---- what crosses the border field by field ---- */

typedef enum {
    REDISMODULE_ARG_TYPE_STRING,
    REDISMODULE_ARG_TYPE_INTEGER,
    REDISMODULE_ARG_TYPE_DOUBLE,
    REDISMODULE_ARG_TYPE_KEY,
    REDISMODULE_ARG_TYPE_PATTERN,
    REDISMODULE_ARG_TYPE_UNIX_TIME,
    REDISMODULE_ARG_TYPE_PURE_TOKEN,
    REDISMODULE_ARG_TYPE_ONEOF,
    REDISMODULE_ARG_TYPE_BLOCK,
} RedisModuleCommandArgType;

typedef enum {
    REDISMODULE_KSPEC_BS_INVALID = 0,
    REDISMODULE_KSPEC_BS_UNKNOWN,
    REDISMODULE_KSPEC_BS_INDEX,
    REDISMODULE_KSPEC_BS_KEYWORD,
} RedisModuleKeySpecBeginSearchType;

typedef enum {
    REDISMODULE_KSPEC_FK_OMITTED = 0,
    REDISMODULE_KSPEC_FK_UNKNOWN,
    REDISMODULE_KSPEC_FK_RANGE,
    REDISMODULE_KSPEC_FK_KEYNUM,
} RedisModuleKeySpecFindKeysType;

typedef enum {
    REDISMODULE_ACL_LOG_AUTH = 0,
    REDISMODULE_ACL_LOG_CMD,
    REDISMODULE_ACL_LOG_KEY,
    REDISMODULE_ACL_LOG_CHANNEL,
} RedisModuleACLLogEntryReason;

typedef struct RedisModuleStreamID {
    uint64_t ms;
    uint64_t seq;
} RedisModuleStreamID;

typedef struct RedisModuleCommandArg {
    const char *name;
    RedisModuleCommandArgType type;
    int key_spec_index;
    const char *token;
    const char *summary;
    const char *since;
    int flags;
    const char *deprecated_since;
    struct RedisModuleCommandArg *subargs;
    const char *display_text;
} RedisModuleCommandArg;

typedef struct RedisModuleCommandHistoryEntry {
    const char *since;
    const char *changes;
} RedisModuleCommandHistoryEntry;

typedef struct RedisModuleCommandKeySpec {
    const char *notes;
    uint64_t flags; /* REDISMODULE_CMD_KEY_ */
    RedisModuleKeySpecBeginSearchType begin_search_type;
    union {
        struct {
            int pos;
        } index;
        struct {
            const char *keyword;
            int startfrom; /* negative: from the end */
        } keyword;
    } bs;
    RedisModuleKeySpecFindKeysType find_keys_type;
    union {
        struct {
            int lastkey; /* relative to the first one; negative: from the end */
            int keystep;
            int limit;
        } range;
        struct {
            int keynumidx;
            int firstkey;
            int keystep;
        } keynum;
    } fk;
} RedisModuleCommandKeySpec;

typedef struct RedisModuleCommandInfoVersion {
    int version;
    size_t sizeof_historyentry;
    size_t sizeof_keyspec;
    size_t sizeof_arg;
} RedisModuleCommandInfoVersion;

#if !defined(KEYDBMODULE_SERVER)
static const RedisModuleCommandInfoVersion RedisModule_CurrentCommandInfoVersion
    __attribute__((unused)) = {
        .version = 1,
        .sizeof_historyentry = sizeof(RedisModuleCommandHistoryEntry),
        .sizeof_keyspec = sizeof(RedisModuleCommandKeySpec),
        .sizeof_arg = sizeof(RedisModuleCommandArg),
};
#define REDISMODULE_COMMAND_INFO_VERSION (&RedisModule_CurrentCommandInfoVersion)
#endif

typedef struct RedisModuleCommandInfo {
    const RedisModuleCommandInfoVersion *version;
    const char *summary;
    const char *complexity;
    const char *since;
    RedisModuleCommandHistoryEntry *history;
    const char *tips;
    int arity;
    RedisModuleCommandKeySpec *key_specs;
    RedisModuleCommandArg *args;
} RedisModuleCommandInfo;

typedef struct RedisModuleEvent {
    uint64_t id;
    uint64_t dataver;
} RedisModuleEvent;

typedef struct RedisModuleClientInfoV1 {
    uint64_t version;
    uint64_t flags;
    uint64_t id;
    char addr[46];
    uint16_t port;
    uint16_t db;
} RedisModuleClientInfoV1;

typedef struct RedisModuleReplicationInfoV1 {
    uint64_t version;
    int master;
    char *masterhost;
    int masterport;
    char *replid1;
    char *replid2;
    uint64_t repl1_offset;
    uint64_t repl2_offset;
} RedisModuleReplicationInfoV1;

typedef struct RedisModuleFlushInfoV1 {
    uint64_t version;
    int32_t sync;
    int32_t dbnum;
} RedisModuleFlushInfoV1;

typedef struct RedisModuleModuleChangeV1 {
    uint64_t version;
    const char *module_name;
    int32_t module_version;
} RedisModuleModuleChangeV1;

typedef struct RedisModuleConfigChangeV1 {
    uint64_t version;
    uint32_t num_changes;
    const char **config_names;
} RedisModuleConfigChangeV1;

typedef struct RedisModuleCronLoopV1 {
    uint64_t version;
    int32_t hz;
} RedisModuleCronLoopV1;

typedef struct RedisModuleLoadingProgressV1 {
    uint64_t version;
    int32_t hz;
    int32_t progress;
} RedisModuleLoadingProgressV1;

typedef struct RedisModuleSwapDbInfoV1 {
    uint64_t version;
    int32_t dbnum_first;
    int32_t dbnum_second;
} RedisModuleSwapDbInfoV1;

typedef struct RedisModuleKeyInfoV1 {
    uint64_t version;
    RedisModuleKey *key;
} RedisModuleKeyInfoV1;

typedef RedisModuleClientInfoV1 RedisModuleClientInfo;
typedef RedisModuleReplicationInfoV1 RedisModuleReplicationInfo;
typedef RedisModuleFlushInfoV1 RedisModuleFlushInfo;
typedef RedisModuleModuleChangeV1 RedisModuleModuleChange;
typedef RedisModuleConfigChangeV1 RedisModuleConfigChange;
typedef RedisModuleCronLoopV1 RedisModuleCronLoop;
typedef RedisModuleLoadingProgressV1 RedisModuleLoadingProgress;
typedef RedisModuleSwapDbInfoV1 RedisModuleSwapDbInfo;
typedef RedisModuleKeyInfoV1 RedisModuleKeyInfo;
#define REDISMODULE_CLIENTINFO_INITIALIZER_V1                                                      \
    {                                                                                              \
        .version = 1                                                                               \
    }

/* ---- functions of modules that the server calls ---- */

typedef void (*RedisModuleEventLoopFunc)(int fd, void *user_data, int mask);
typedef void (*RedisModuleEventLoopOneShotFunc)(void *user_data);
typedef void (*RedisModuleEventCallback)(struct RedisModuleCtx *ctx, RedisModuleEvent eid,
                                         uint64_t subevent, void *data);
typedef void (*RedisModuleInfoFunc)(RedisModuleInfoCtx *ctx, int for_crash_report);
typedef void (*RedisModuleDefragFunc)(RedisModuleDefragCtx *ctx);
typedef void (*RedisModuleUserChangedFunc)(uint64_t client_id, void *privdata);
typedef int (*RedisModuleCmdFunc)(RedisModuleCtx *ctx, RedisModuleString **argv, int argc);
typedef void (*RedisModuleDisconnectFunc)(RedisModuleCtx *ctx, RedisModuleBlockedClient *bc);
typedef int (*RedisModuleNotificationFunc)(RedisModuleCtx *ctx, int type, const char *event,
                                           RedisModuleString *key);
typedef void (*RedisModulePostNotificationJobFunc)(RedisModuleCtx *ctx, void *pd);
typedef void *(*RedisModuleTypeLoadFunc)(RedisModuleIO *rdb, int encver);
typedef void (*RedisModuleTypeSaveFunc)(RedisModuleIO *rdb, void *value);
typedef int (*RedisModuleTypeAuxLoadFunc)(RedisModuleIO *rdb, int encver, int when);
typedef void (*RedisModuleTypeAuxSaveFunc)(RedisModuleIO *rdb, int when);
typedef void (*RedisModuleTypeRewriteFunc)(RedisModuleIO *aof, RedisModuleString *key, void *value);
typedef size_t (*RedisModuleTypeMemUsageFunc)(const void *value);
typedef size_t (*RedisModuleTypeMemUsageFunc2)(RedisModuleKeyOptCtx *ctx, const void *value,
                                               size_t sample_size);
typedef void (*RedisModuleTypeDigestFunc)(RedisModuleDigest *digest, void *value);
typedef void (*RedisModuleTypeFreeFunc)(void *value);
typedef size_t (*RedisModuleTypeFreeEffortFunc)(RedisModuleString *key, const void *value);
typedef size_t (*RedisModuleTypeFreeEffortFunc2)(RedisModuleKeyOptCtx *ctx, const void *value);
typedef void (*RedisModuleTypeUnlinkFunc)(RedisModuleString *key, const void *value);
typedef void (*RedisModuleTypeUnlinkFunc2)(RedisModuleKeyOptCtx *ctx, const void *value);
typedef void *(*RedisModuleTypeCopyFunc)(RedisModuleString *fromkey, RedisModuleString *tokey,
                                         const void *value);
typedef void *(*RedisModuleTypeCopyFunc2)(RedisModuleKeyOptCtx *ctx, const void *value);
typedef int (*RedisModuleTypeDefragFunc)(RedisModuleDefragCtx *ctx, RedisModuleString *key,
                                         void **value);
typedef void (*RedisModuleClusterMessageReceiver)(RedisModuleCtx *ctx, const char *sender_id,
                                                  uint8_t type, const unsigned char *payload,
                                                  uint32_t len);
typedef void (*RedisModuleTimerProc)(RedisModuleCtx *ctx, void *data);
typedef void (*RedisModuleCommandFilterFunc)(RedisModuleCommandFilterCtx *filter);
typedef void (*RedisModuleForkDoneHandler)(int exitcode, int bysignal, void *user_data);
typedef void (*RedisModuleScanCB)(RedisModuleCtx *ctx, RedisModuleString *keyname,
                                  RedisModuleKey *key, void *privdata);
typedef void (*RedisModuleScanKeyCB)(RedisModuleKey *key, RedisModuleString *field,
                                     RedisModuleString *value, void *privdata);
typedef RedisModuleString *(*RedisModuleConfigGetStringFunc)(const char *name, void *privdata);
typedef long long (*RedisModuleConfigGetNumericFunc)(const char *name, void *privdata);
typedef int (*RedisModuleConfigGetBoolFunc)(const char *name, void *privdata);
typedef int (*RedisModuleConfigGetEnumFunc)(const char *name, void *privdata);
typedef int (*RedisModuleConfigSetStringFunc)(const char *name, RedisModuleString *val,
                                              void *privdata, RedisModuleString **err);
typedef int (*RedisModuleConfigSetNumericFunc)(const char *name, long long val, void *privdata,
                                               RedisModuleString **err);
typedef int (*RedisModuleConfigSetBoolFunc)(const char *name, int val, void *privdata,
                                            RedisModuleString **err);
typedef int (*RedisModuleConfigSetEnumFunc)(const char *name, int val, void *privdata,
                                            RedisModuleString **err);
typedef int (*RedisModuleConfigApplyFunc)(RedisModuleCtx *ctx, void *privdata,
                                          RedisModuleString **err);
typedef void (*RedisModuleOnUnblocked)(RedisModuleCtx *ctx, RedisModuleCallReply *reply,
                                       void *private_data);
typedef int (*RedisModuleAuthCallback)(RedisModuleCtx *ctx, RedisModuleString *username,
                                       RedisModuleString *password, RedisModuleString **err);

typedef struct RedisModuleTypeMethods {
    uint64_t version;
    RedisModuleTypeLoadFunc rdb_load;
    RedisModuleTypeSaveFunc rdb_save;
    RedisModuleTypeRewriteFunc aof_rewrite;
    RedisModuleTypeMemUsageFunc mem_usage;
    RedisModuleTypeDigestFunc digest;
    RedisModuleTypeFreeFunc free;
    RedisModuleTypeAuxLoadFunc aux_load;
    RedisModuleTypeAuxSaveFunc aux_save;
    int aux_save_triggers;
    RedisModuleTypeFreeEffortFunc free_effort;
    RedisModuleTypeUnlinkFunc unlink;
    RedisModuleTypeCopyFunc copy;
    RedisModuleTypeDefragFunc defrag;
    RedisModuleTypeMemUsageFunc2 mem_usage2;
    RedisModuleTypeFreeEffortFunc2 free_effort2;
    RedisModuleTypeUnlinkFunc2 unlink2;
    RedisModuleTypeCopyFunc2 copy2;
    RedisModuleTypeAuxSaveFunc aux_save2;
} RedisModuleTypeMethods;

/* ---- functions of the server ---- */

#include "module/keydbmodule_functions.h" /* (put here by make install) */

#if !defined(KEYDBMODULE_SERVER)

/* In C the variables of all files of a module are one; in C++ one file defines REDISMODULE_API as
 * nothing and the others as extern. */
#if !defined(REDISMODULE_API)
#define REDISMODULE_API
#endif
#if !defined(REDISMODULE_ATTR)
#if defined(__cplusplus)
#define REDISMODULE_ATTR __attribute__((unused))
#else
#define REDISMODULE_ATTR __attribute__((unused, __common__))
#endif
#endif

#define KEYDBMODULE_DECLARE(returns, name, parameters)                                             \
    REDISMODULE_API returns(*RedisModule_##name) parameters REDISMODULE_ATTR;
KEYDBMODULE_FUNCTIONS(KEYDBMODULE_DECLARE)

#define KEYDBMODULE_EVENT(name, id)                                                                \
    static const RedisModuleEvent RedisModuleEvent_##name __attribute__((unused)) = {id, 1};
/* What happens to the server, for SubscribeToServerEvent. */
KEYDBMODULE_EVENT(ReplicationRoleChanged, REDISMODULE_EVENT_REPLICATION_ROLE_CHANGED)
KEYDBMODULE_EVENT(Persistence, REDISMODULE_EVENT_PERSISTENCE)
KEYDBMODULE_EVENT(FlushDB, REDISMODULE_EVENT_FLUSHDB)
KEYDBMODULE_EVENT(Loading, REDISMODULE_EVENT_LOADING)
KEYDBMODULE_EVENT(ClientChange, REDISMODULE_EVENT_CLIENT_CHANGE)
KEYDBMODULE_EVENT(Shutdown, REDISMODULE_EVENT_SHUTDOWN)
KEYDBMODULE_EVENT(ReplicaChange, REDISMODULE_EVENT_REPLICA_CHANGE)
KEYDBMODULE_EVENT(MasterLinkChange, REDISMODULE_EVENT_MASTER_LINK_CHANGE)
KEYDBMODULE_EVENT(CronLoop, REDISMODULE_EVENT_CRON_LOOP)
KEYDBMODULE_EVENT(ModuleChange, REDISMODULE_EVENT_MODULE_CHANGE)
KEYDBMODULE_EVENT(LoadingProgress, REDISMODULE_EVENT_LOADING_PROGRESS)
KEYDBMODULE_EVENT(SwapDB, REDISMODULE_EVENT_SWAPDB)
KEYDBMODULE_EVENT(ReplBackup, REDISMODULE_EVENT_REPL_BACKUP)
KEYDBMODULE_EVENT(ForkChild, REDISMODULE_EVENT_FORK_CHILD)
KEYDBMODULE_EVENT(ReplAsyncLoad, REDISMODULE_EVENT_REPL_ASYNC_LOAD)
KEYDBMODULE_EVENT(EventLoop, REDISMODULE_EVENT_EVENTLOOP)
KEYDBMODULE_EVENT(Config, REDISMODULE_EVENT_CONFIG)
KEYDBMODULE_EVENT(Key, REDISMODULE_EVENT_KEY)

/* Whether the server has the function: RMAPI_FUNC_SUPPORTED(RedisModule_Call). */
#define RMAPI_FUNC_SUPPORTED(function) ((function) != NULL)
#define REDISMODULE_NOT_USED(variable) ((void)(variable))
/* Ids of clients that are a log being loaded. */
#define RedisModule_IsAOFClient(id) ((id) == UINT64_MAX)
#define RedisModule_Assert(condition)                                                              \
    ((condition) ? (void)0 : (RedisModule__Assert(#condition, __FILE__, __LINE__), exit(1)))

typedef int (*RedisModuleGetApiFunc)(const char *name, void *pointer);

/* What the module defines: see the top. Found by their names, whatever is hidden else. */
#if defined(__cplusplus)
extern "C" {
#endif
__attribute__((visibility("default"))) int RedisModule_OnLoad(RedisModuleCtx *ctx,
                                                              RedisModuleString **argv, int argc);
__attribute__((visibility("default"))) int RedisModule_OnUnload(RedisModuleCtx *ctx);
#if defined(__cplusplus)
}
#endif

/* First thing in OnLoad: fetches the functions and tells the module's name and version.
 * REDISMODULE_ERR when another module has that name. `apiver` is REDISMODULE_APIVER_1. */
static int RedisModule_Init(RedisModuleCtx *ctx, const char *name, int ver, int apiver)
    __attribute__((unused));
static int RedisModule_Init(RedisModuleCtx *ctx, const char *name, int ver, int apiver)
{
    RedisModuleGetApiFunc get_api =
        *(RedisModuleGetApiFunc *)ctx; /* the first word of any context */
#define KEYDBMODULE_FETCH(returns, function, parameters)                                           \
    get_api("RedisModule_" #function, (void *)&RedisModule_##function);
    KEYDBMODULE_FUNCTIONS(KEYDBMODULE_FETCH)
#undef KEYDBMODULE_FETCH
    if (RedisModule_IsModuleNameBusy && RedisModule_IsModuleNameBusy(name)) {
        return REDISMODULE_ERR;
    }
    RedisModule_SetModuleAttribs(ctx, name, ver, apiver);
    return REDISMODULE_OK;
}

#endif

#endif
