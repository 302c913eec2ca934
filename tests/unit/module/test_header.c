/* keydbmodule.h against the facts of Redis 7.2's interface: values, layouts and names, written down
 * here a second time from shared/reference/module-api.md. A module that was built elsewhere depends
 * on each of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "engine/command.h"
#include "module/api.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- constants ---- */

#define VALUE(name, value)                                                                         \
    {                                                                                              \
#name, (unsigned long long)(long long)REDISMODULE_##name,                                  \
            (unsigned long long)(long long)(value)                                                 \
    }

static const struct {
    const char *name;
    unsigned long long ours, theirs;
} values[] = {
    VALUE(OK, 0),
    VALUE(ERR, 1),
    VALUE(AUTH_HANDLED, 0),
    VALUE(AUTH_NOT_HANDLED, 1),
    VALUE(APIVER_1, 1),
    VALUE(TYPE_METHOD_VERSION, 5),
    VALUE(READ, 1),
    VALUE(WRITE, 2),
    VALUE(OPEN_KEY_NOTOUCH, 65536),
    VALUE(OPEN_KEY_NONOTIFY, 131072),
    VALUE(OPEN_KEY_NOSTATS, 262144),
    VALUE(OPEN_KEY_NOEXPIRE, 524288),
    VALUE(OPEN_KEY_NOEFFECTS, 1048576),
    VALUE(LIST_HEAD, 0),
    VALUE(LIST_TAIL, 1),
    VALUE(KEYTYPE_EMPTY, 0),
    VALUE(KEYTYPE_STRING, 1),
    VALUE(KEYTYPE_LIST, 2),
    VALUE(KEYTYPE_HASH, 3),
    VALUE(KEYTYPE_SET, 4),
    VALUE(KEYTYPE_ZSET, 5),
    VALUE(KEYTYPE_MODULE, 6),
    VALUE(KEYTYPE_STREAM, 7),
    VALUE(REPLY_UNKNOWN, -1),
    VALUE(REPLY_STRING, 0),
    VALUE(REPLY_ERROR, 1),
    VALUE(REPLY_INTEGER, 2),
    VALUE(REPLY_ARRAY, 3),
    VALUE(REPLY_NULL, 4),
    VALUE(REPLY_MAP, 5),
    VALUE(REPLY_SET, 6),
    VALUE(REPLY_BOOL, 7),
    VALUE(REPLY_DOUBLE, 8),
    VALUE(REPLY_BIG_NUMBER, 9),
    VALUE(REPLY_VERBATIM_STRING, 10),
    VALUE(REPLY_PROMISE, 12),
    VALUE(POSTPONED_ARRAY_LEN, -1),
    VALUE(POSTPONED_LEN, -1),
    VALUE(NO_EXPIRE, -1),
    VALUE(ZADD_XX, 1),
    VALUE(ZADD_NX, 2),
    VALUE(ZADD_ADDED, 4),
    VALUE(ZADD_UPDATED, 8),
    VALUE(ZADD_NOP, 16),
    VALUE(ZADD_GT, 32),
    VALUE(ZADD_LT, 64),
    VALUE(HASH_NONE, 0),
    VALUE(HASH_NX, 1),
    VALUE(HASH_XX, 2),
    VALUE(HASH_CFIELDS, 4),
    VALUE(HASH_EXISTS, 8),
    VALUE(HASH_COUNT_ALL, 16),
    VALUE(CONFIG_DEFAULT, 0),
    VALUE(CONFIG_IMMUTABLE, 1),
    VALUE(CONFIG_SENSITIVE, 2),
    VALUE(CONFIG_HIDDEN, 16),
    VALUE(CONFIG_PROTECTED, 32),
    VALUE(CONFIG_DENY_LOADING, 64),
    VALUE(CONFIG_MEMORY, 128),
    VALUE(CONFIG_BITFLAGS, 256),
    VALUE(STREAM_ADD_AUTOID, 1),
    VALUE(STREAM_ITERATOR_EXCLUSIVE, 1),
    VALUE(STREAM_ITERATOR_REVERSE, 2),
    VALUE(STREAM_TRIM_APPROX, 1),
    VALUE(CTX_FLAGS_LUA, 1),
    VALUE(CTX_FLAGS_MULTI, 2),
    VALUE(CTX_FLAGS_MASTER, 4),
    VALUE(CTX_FLAGS_SLAVE, 8),
    VALUE(CTX_FLAGS_READONLY, 16),
    VALUE(CTX_FLAGS_CLUSTER, 32),
    VALUE(CTX_FLAGS_AOF, 64),
    VALUE(CTX_FLAGS_RDB, 128),
    VALUE(CTX_FLAGS_MAXMEMORY, 256),
    VALUE(CTX_FLAGS_EVICT, 512),
    VALUE(CTX_FLAGS_OOM, 1024),
    VALUE(CTX_FLAGS_OOM_WARNING, 2048),
    VALUE(CTX_FLAGS_REPLICATED, 4096),
    VALUE(CTX_FLAGS_LOADING, 8192),
    VALUE(CTX_FLAGS_REPLICA_IS_STALE, 16384),
    VALUE(CTX_FLAGS_REPLICA_IS_CONNECTING, 32768),
    VALUE(CTX_FLAGS_REPLICA_IS_TRANSFERRING, 65536),
    VALUE(CTX_FLAGS_REPLICA_IS_ONLINE, 131072),
    VALUE(CTX_FLAGS_ACTIVE_CHILD, 262144),
    VALUE(CTX_FLAGS_MULTI_DIRTY, 524288),
    VALUE(CTX_FLAGS_IS_CHILD, 1048576),
    VALUE(CTX_FLAGS_DENY_BLOCKING, 2097152),
    VALUE(CTX_FLAGS_RESP3, 4194304),
    VALUE(CTX_FLAGS_ASYNC_LOADING, 8388608),
    VALUE(CTX_FLAGS_SERVER_STARTUP, 16777216),
    VALUE(NOTIFY_KEYSPACE, 1),
    VALUE(NOTIFY_KEYEVENT, 2),
    VALUE(NOTIFY_GENERIC, 4),
    VALUE(NOTIFY_STRING, 8),
    VALUE(NOTIFY_LIST, 16),
    VALUE(NOTIFY_SET, 32),
    VALUE(NOTIFY_HASH, 64),
    VALUE(NOTIFY_ZSET, 128),
    VALUE(NOTIFY_EXPIRED, 256),
    VALUE(NOTIFY_EVICTED, 512),
    VALUE(NOTIFY_STREAM, 1024),
    VALUE(NOTIFY_KEY_MISS, 2048),
    VALUE(NOTIFY_LOADED, 4096),
    VALUE(NOTIFY_MODULE, 8192),
    VALUE(NOTIFY_NEW, 16384),
    VALUE(NODE_ID_LEN, 40),
    VALUE(NODE_MYSELF, 1),
    VALUE(NODE_MASTER, 2),
    VALUE(NODE_SLAVE, 4),
    VALUE(NODE_PFAIL, 8),
    VALUE(NODE_FAIL, 16),
    VALUE(NODE_NOFAILOVER, 32),
    VALUE(CLUSTER_FLAG_NONE, 0),
    VALUE(CLUSTER_FLAG_NO_FAILOVER, 2),
    VALUE(CLUSTER_FLAG_NO_REDIRECTION, 4),
    VALUE(AUX_BEFORE_RDB, 1),
    VALUE(AUX_AFTER_RDB, 2),
    VALUE(YIELD_FLAG_NONE, 1),
    VALUE(YIELD_FLAG_CLIENTS, 2),
    VALUE(BLOCK_UNBLOCK_DEFAULT, 0),
    VALUE(BLOCK_UNBLOCK_DELETED, 1),
    VALUE(CMDFILTER_NOSELF, 1),
    VALUE(OPTIONS_HANDLE_IO_ERRORS, 1),
    VALUE(OPTION_NO_IMPLICIT_SIGNAL_MODIFIED, 2),
    VALUE(OPTIONS_HANDLE_REPL_ASYNC_LOAD, 4),
    VALUE(OPTIONS_ALLOW_NESTED_KEYSPACE_NOTIFICATIONS, 8),
    VALUE(CMD_ARG_NONE, 0),
    VALUE(CMD_ARG_OPTIONAL, 1),
    VALUE(CMD_ARG_MULTIPLE, 2),
    VALUE(CMD_ARG_MULTIPLE_TOKEN, 4),
    VALUE(CMD_KEY_RO, 1),
    VALUE(CMD_KEY_RW, 2),
    VALUE(CMD_KEY_OW, 4),
    VALUE(CMD_KEY_RM, 8),
    VALUE(CMD_KEY_ACCESS, 16),
    VALUE(CMD_KEY_UPDATE, 32),
    VALUE(CMD_KEY_INSERT, 64),
    VALUE(CMD_KEY_DELETE, 128),
    VALUE(CMD_KEY_NOT_KEY, 256),
    VALUE(CMD_KEY_INCOMPLETE, 512),
    VALUE(CMD_KEY_VARIABLE_FLAGS, 1024),
    VALUE(CMD_CHANNEL_PATTERN, 1),
    VALUE(CMD_CHANNEL_PUBLISH, 2),
    VALUE(CMD_CHANNEL_SUBSCRIBE, 4),
    VALUE(CMD_CHANNEL_UNSUBSCRIBE, 8),
    VALUE(EVENTLOOP_READABLE, 1),
    VALUE(EVENTLOOP_WRITABLE, 2),
    VALUE(EVENT_REPLICATION_ROLE_CHANGED, 0),
    VALUE(EVENT_PERSISTENCE, 1),
    VALUE(EVENT_FLUSHDB, 2),
    VALUE(EVENT_LOADING, 3),
    VALUE(EVENT_CLIENT_CHANGE, 4),
    VALUE(EVENT_SHUTDOWN, 5),
    VALUE(EVENT_REPLICA_CHANGE, 6),
    VALUE(EVENT_MASTER_LINK_CHANGE, 7),
    VALUE(EVENT_CRON_LOOP, 8),
    VALUE(EVENT_MODULE_CHANGE, 9),
    VALUE(EVENT_LOADING_PROGRESS, 10),
    VALUE(EVENT_SWAPDB, 11),
    VALUE(EVENT_REPL_BACKUP, 12),
    VALUE(EVENT_FORK_CHILD, 13),
    VALUE(EVENT_REPL_ASYNC_LOAD, 14),
    VALUE(EVENT_EVENTLOOP, 15),
    VALUE(EVENT_CONFIG, 16),
    VALUE(EVENT_KEY, 17),
    VALUE(SUBEVENT_PERSISTENCE_RDB_START, 0),
    VALUE(SUBEVENT_PERSISTENCE_AOF_START, 1),
    VALUE(SUBEVENT_PERSISTENCE_SYNC_RDB_START, 2),
    VALUE(SUBEVENT_PERSISTENCE_ENDED, 3),
    VALUE(SUBEVENT_PERSISTENCE_FAILED, 4),
    VALUE(SUBEVENT_PERSISTENCE_SYNC_AOF_START, 5),
    VALUE(SUBEVENT_LOADING_RDB_START, 0),
    VALUE(SUBEVENT_LOADING_AOF_START, 1),
    VALUE(SUBEVENT_LOADING_REPL_START, 2),
    VALUE(SUBEVENT_LOADING_ENDED, 3),
    VALUE(SUBEVENT_LOADING_FAILED, 4),
    VALUE(SUBEVENT_CLIENT_CHANGE_CONNECTED, 0),
    VALUE(SUBEVENT_CLIENT_CHANGE_DISCONNECTED, 1),
    VALUE(SUBEVENT_MASTER_LINK_UP, 0),
    VALUE(SUBEVENT_MASTER_LINK_DOWN, 1),
    VALUE(SUBEVENT_REPLICA_CHANGE_ONLINE, 0),
    VALUE(SUBEVENT_REPLICA_CHANGE_OFFLINE, 1),
    VALUE(EVENT_REPLROLECHANGED_NOW_MASTER, 0),
    VALUE(EVENT_REPLROLECHANGED_NOW_REPLICA, 1),
    VALUE(SUBEVENT_FLUSHDB_START, 0),
    VALUE(SUBEVENT_FLUSHDB_END, 1),
    VALUE(SUBEVENT_MODULE_LOADED, 0),
    VALUE(SUBEVENT_MODULE_UNLOADED, 1),
    VALUE(SUBEVENT_CONFIG_CHANGE, 0),
    VALUE(SUBEVENT_LOADING_PROGRESS_RDB, 0),
    VALUE(SUBEVENT_LOADING_PROGRESS_AOF, 1),
    VALUE(SUBEVENT_REPL_BACKUP_CREATE, 0),
    VALUE(SUBEVENT_REPL_BACKUP_RESTORE, 1),
    VALUE(SUBEVENT_REPL_BACKUP_DISCARD, 2),
    VALUE(SUBEVENT_REPL_ASYNC_LOAD_STARTED, 0),
    VALUE(SUBEVENT_REPL_ASYNC_LOAD_ABORTED, 1),
    VALUE(SUBEVENT_REPL_ASYNC_LOAD_COMPLETED, 2),
    VALUE(SUBEVENT_FORK_CHILD_BORN, 0),
    VALUE(SUBEVENT_FORK_CHILD_DIED, 1),
    VALUE(SUBEVENT_EVENTLOOP_BEFORE_SLEEP, 0),
    VALUE(SUBEVENT_EVENTLOOP_AFTER_SLEEP, 1),
    VALUE(SUBEVENT_KEY_DELETED, 0),
    VALUE(SUBEVENT_KEY_EXPIRED, 1),
    VALUE(SUBEVENT_KEY_EVICTED, 2),
    VALUE(SUBEVENT_KEY_OVERWRITTEN, 3),
    VALUE(CLIENTINFO_FLAG_SSL, 1),
    VALUE(CLIENTINFO_FLAG_PUBSUB, 2),
    VALUE(CLIENTINFO_FLAG_BLOCKED, 4),
    VALUE(CLIENTINFO_FLAG_TRACKING, 8),
    VALUE(CLIENTINFO_FLAG_UNIXSOCKET, 16),
    VALUE(CLIENTINFO_FLAG_MULTI, 32),
    VALUE(CLIENTINFO_VERSION, 1),
    VALUE(REPLICATIONINFO_VERSION, 1),
    VALUE(FLUSHINFO_VERSION, 1),
    VALUE(MODULE_CHANGE_VERSION, 1),
    VALUE(CONFIGCHANGE_VERSION, 1),
    VALUE(CRON_LOOP_VERSION, 1),
    VALUE(LOADING_PROGRESS_VERSION, 1),
    VALUE(SWAPDBINFO_VERSION, 1),
    VALUE(KEYINFO_VERSION, 1),
    VALUE(ARG_TYPE_STRING, 0),
    VALUE(ARG_TYPE_INTEGER, 1),
    VALUE(ARG_TYPE_DOUBLE, 2),
    VALUE(ARG_TYPE_KEY, 3),
    VALUE(ARG_TYPE_PATTERN, 4),
    VALUE(ARG_TYPE_UNIX_TIME, 5),
    VALUE(ARG_TYPE_PURE_TOKEN, 6),
    VALUE(ARG_TYPE_ONEOF, 7),
    VALUE(ARG_TYPE_BLOCK, 8),
    VALUE(KSPEC_BS_INVALID, 0),
    VALUE(KSPEC_BS_UNKNOWN, 1),
    VALUE(KSPEC_BS_INDEX, 2),
    VALUE(KSPEC_BS_KEYWORD, 3),
    VALUE(KSPEC_FK_OMITTED, 0),
    VALUE(KSPEC_FK_UNKNOWN, 1),
    VALUE(KSPEC_FK_RANGE, 2),
    VALUE(KSPEC_FK_KEYNUM, 3),
    VALUE(ACL_LOG_AUTH, 0),
    VALUE(ACL_LOG_CMD, 1),
    VALUE(ACL_LOG_KEY, 2),
    VALUE(ACL_LOG_CHANNEL, 3),
};

static void test_values(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        if (values[i].ours != values[i].theirs) {
            fail_msg("REDISMODULE_%s is %lld, not %lld", values[i].name, (long long)values[i].ours,
                     (long long)values[i].theirs);
        }
    }
    assert_int_equal(REDISMODULE_NOTIFY_ALL, 0x27fc);
    assert_ptr_equal(REDISMODULE_HASH_DELETE, (void *)1);
    assert_string_equal(REDISMODULE_ERRORMSG_WRONGTYPE,
                        "WRONGTYPE Operation against a key holding the wrong kind of value");
    assert_string_equal(REDISMODULE_LOGLEVEL_DEBUG " " REDISMODULE_LOGLEVEL_VERBOSE
                                                   " " REDISMODULE_LOGLEVEL_NOTICE
                                                   " " REDISMODULE_LOGLEVEL_WARNING,
                        "debug verbose notice warning");
    assert_true(REDISMODULE_POSITIVE_INFINITE > 1e308 && REDISMODULE_NEGATIVE_INFINITE < -1e308);
}

/* ---- layouts: offsets of the fields on machines with 8-byte pointers ---- */

#define AT(type, field, offset) static_assert(offsetof(RedisModule##type, field) == (offset), #type)
#define SIZE(type, size) static_assert(sizeof(RedisModule##type) == (size), #type)

AT(StreamID, ms, 0);
AT(StreamID, seq, 8);
SIZE(StreamID, 16);
AT(CommandArg, name, 0);
AT(CommandArg, type, 8);
AT(CommandArg, key_spec_index, 12);
AT(CommandArg, token, 16);
AT(CommandArg, summary, 24);
AT(CommandArg, since, 32);
AT(CommandArg, flags, 40);
AT(CommandArg, deprecated_since, 48);
AT(CommandArg, subargs, 56);
AT(CommandArg, display_text, 64);
SIZE(CommandArg, 72);
AT(CommandHistoryEntry, since, 0);
AT(CommandHistoryEntry, changes, 8);
SIZE(CommandHistoryEntry, 16);
AT(CommandKeySpec, notes, 0);
AT(CommandKeySpec, flags, 8);
AT(CommandKeySpec, begin_search_type, 16);
AT(CommandKeySpec, bs.index.pos, 24);
AT(CommandKeySpec, bs.keyword.keyword, 24);
AT(CommandKeySpec, bs.keyword.startfrom, 32);
AT(CommandKeySpec, find_keys_type, 40);
AT(CommandKeySpec, fk.range.lastkey, 44);
AT(CommandKeySpec, fk.range.keystep, 48);
AT(CommandKeySpec, fk.range.limit, 52);
AT(CommandKeySpec, fk.keynum.keynumidx, 44);
AT(CommandKeySpec, fk.keynum.firstkey, 48);
AT(CommandKeySpec, fk.keynum.keystep, 52);
SIZE(CommandKeySpec, 56);
AT(CommandInfoVersion, version, 0);
AT(CommandInfoVersion, sizeof_historyentry, 8);
AT(CommandInfoVersion, sizeof_keyspec, 16);
AT(CommandInfoVersion, sizeof_arg, 24);
SIZE(CommandInfoVersion, 32);
AT(CommandInfo, version, 0);
AT(CommandInfo, summary, 8);
AT(CommandInfo, complexity, 16);
AT(CommandInfo, since, 24);
AT(CommandInfo, history, 32);
AT(CommandInfo, tips, 40);
AT(CommandInfo, arity, 48);
AT(CommandInfo, key_specs, 56);
AT(CommandInfo, args, 64);
SIZE(CommandInfo, 72);
AT(Event, id, 0);
AT(Event, dataver, 8);
SIZE(Event, 16);
AT(ClientInfoV1, version, 0);
AT(ClientInfoV1, flags, 8);
AT(ClientInfoV1, id, 16);
AT(ClientInfoV1, addr, 24);
AT(ClientInfoV1, port, 70);
AT(ClientInfoV1, db, 72);
SIZE(ClientInfoV1, 80);
AT(ReplicationInfoV1, version, 0);
AT(ReplicationInfoV1, master, 8);
AT(ReplicationInfoV1, masterhost, 16);
AT(ReplicationInfoV1, masterport, 24);
AT(ReplicationInfoV1, replid1, 32);
AT(ReplicationInfoV1, replid2, 40);
AT(ReplicationInfoV1, repl1_offset, 48);
AT(ReplicationInfoV1, repl2_offset, 56);
SIZE(ReplicationInfoV1, 64);
AT(FlushInfoV1, version, 0);
AT(FlushInfoV1, sync, 8);
AT(FlushInfoV1, dbnum, 12);
SIZE(FlushInfoV1, 16);
AT(ModuleChangeV1, version, 0);
AT(ModuleChangeV1, module_name, 8);
AT(ModuleChangeV1, module_version, 16);
SIZE(ModuleChangeV1, 24);
AT(ConfigChangeV1, version, 0);
AT(ConfigChangeV1, num_changes, 8);
AT(ConfigChangeV1, config_names, 16);
SIZE(ConfigChangeV1, 24);
AT(CronLoopV1, version, 0);
AT(CronLoopV1, hz, 8);
SIZE(CronLoopV1, 16);
AT(LoadingProgressV1, version, 0);
AT(LoadingProgressV1, hz, 8);
AT(LoadingProgressV1, progress, 12);
SIZE(LoadingProgressV1, 16);
AT(SwapDbInfoV1, version, 0);
AT(SwapDbInfoV1, dbnum_first, 8);
AT(SwapDbInfoV1, dbnum_second, 12);
SIZE(SwapDbInfoV1, 16);
AT(KeyInfoV1, version, 0);
AT(KeyInfoV1, key, 8);
SIZE(KeyInfoV1, 16);
AT(TypeMethods, version, 0);
AT(TypeMethods, rdb_load, 8);
AT(TypeMethods, rdb_save, 16);
AT(TypeMethods, aof_rewrite, 24);
AT(TypeMethods, mem_usage, 32);
AT(TypeMethods, digest, 40);
AT(TypeMethods, free, 48);
AT(TypeMethods, aux_load, 56);
AT(TypeMethods, aux_save, 64);
AT(TypeMethods, aux_save_triggers, 72);
AT(TypeMethods, free_effort, 80);
AT(TypeMethods, unlink, 88);
AT(TypeMethods, copy, 96);
AT(TypeMethods, defrag, 104);
AT(TypeMethods, mem_usage2, 112);
AT(TypeMethods, free_effort2, 120);
AT(TypeMethods, unlink2, 128);
AT(TypeMethods, copy2, 136);
AT(TypeMethods, aux_save2, 144);
SIZE(TypeMethods, 152);

/* ---- functions ---- */

static const char *const names[] = {
    "ACLAddLogEntry",
    "ACLAddLogEntryByUserName",
    "ACLCheckChannelPermissions",
    "ACLCheckCommandPermissions",
    "ACLCheckKeyPermissions",
    "AbortBlock",
    "AddACLCategory",
    "AddPostNotificationJob",
    "Alloc",
    "AuthenticateClientWithACLUser",
    "AuthenticateClientWithUser",
    "AutoMemory",
    "AvoidReplicaTraffic",
    "BlockClient",
    "BlockClientGetPrivateData",
    "BlockClientOnAuth",
    "BlockClientOnKeys",
    "BlockClientOnKeysWithFlags",
    "BlockClientSetPrivateData",
    "BlockedClientDisconnected",
    "BlockedClientMeasureTimeEnd",
    "BlockedClientMeasureTimeStart",
    "CachedMicroseconds",
    "Call",
    "CallReplyArrayElement",
    "CallReplyAttribute",
    "CallReplyAttributeElement",
    "CallReplyBigNumber",
    "CallReplyBool",
    "CallReplyDouble",
    "CallReplyInteger",
    "CallReplyLength",
    "CallReplyMapElement",
    "CallReplyPromiseAbort",
    "CallReplyPromiseSetUnblockHandler",
    "CallReplyProto",
    "CallReplySetElement",
    "CallReplyStringPtr",
    "CallReplyType",
    "CallReplyVerbatim",
    "Calloc",
    "ChannelAtPosWithFlags",
    "CloseKey",
    "ClusterCanonicalKeyNameInSlot",
    "ClusterKeySlot",
    "CommandFilterArgDelete",
    "CommandFilterArgGet",
    "CommandFilterArgInsert",
    "CommandFilterArgReplace",
    "CommandFilterArgsCount",
    "CommandFilterGetClientId",
    "CreateCommand",
    "CreateDataType",
    "CreateDict",
    "CreateModuleUser",
    "CreateString",
    "CreateStringFromCallReply",
    "CreateStringFromDouble",
    "CreateStringFromLongDouble",
    "CreateStringFromLongLong",
    "CreateStringFromStreamID",
    "CreateStringFromString",
    "CreateStringFromULongLong",
    "CreateStringPrintf",
    "CreateSubcommand",
    "CreateTimer",
    "DbSize",
    "DeauthenticateAndCloseClient",
    "DefragAlloc",
    "DefragCursorGet",
    "DefragCursorSet",
    "DefragRedisModuleString",
    "DefragShouldStop",
    "DeleteKey",
    "DictCompare",
    "DictCompareC",
    "DictDel",
    "DictDelC",
    "DictGet",
    "DictGetC",
    "DictIteratorReseek",
    "DictIteratorReseekC",
    "DictIteratorStart",
    "DictIteratorStartC",
    "DictIteratorStop",
    "DictNext",
    "DictNextC",
    "DictPrev",
    "DictPrevC",
    "DictReplace",
    "DictReplaceC",
    "DictSet",
    "DictSetC",
    "DictSize",
    "DigestAddLongLong",
    "DigestAddStringBuffer",
    "DigestEndSequence",
    "EmitAOF",
    "EventLoopAdd",
    "EventLoopAddOneShot",
    "EventLoopDel",
    "ExitFromChild",
    "ExportSharedAPI",
    "Fork",
    "Free",
    "FreeCallReply",
    "FreeClusterNodesList",
    "FreeDict",
    "FreeModuleUser",
    "FreeServerInfo",
    "FreeString",
    "FreeThreadSafeContext",
    "GetAbsExpire",
    "GetApi",
    "GetBlockedClientHandle",
    "GetBlockedClientPrivateData",
    "GetBlockedClientReadyKey",
    "GetClientCertificate",
    "GetClientId",
    "GetClientInfoById",
    "GetClientNameById",
    "GetClientUserNameById",
    "GetClusterNodeInfo",
    "GetClusterNodesList",
    "GetClusterSize",
    "GetCommand",
    "GetCommandKeys",
    "GetCommandKeysWithFlags",
    "GetContextFlags",
    "GetContextFlagsAll",
    "GetContextFromIO",
    "GetCurrentCommandName",
    "GetCurrentUserName",
    "GetDbIdFromDefragCtx",
    "GetDbIdFromDigest",
    "GetDbIdFromIO",
    "GetDbIdFromModuleKey",
    "GetDbIdFromOptCtx",
    "GetDetachedThreadSafeContext",
    "GetExpire",
    "GetKeyNameFromDefragCtx",
    "GetKeyNameFromDigest",
    "GetKeyNameFromIO",
    "GetKeyNameFromModuleKey",
    "GetKeyNameFromOptCtx",
    "GetKeyspaceNotificationFlagsAll",
    "GetLFU",
    "GetLRU",
    "GetModuleOptionsAll",
    "GetModuleUserACLString",
    "GetModuleUserFromUserName",
    "GetMyClusterID",
    "GetNotifyKeyspaceEvents",
    "GetOpenKeyModesAll",
    "GetRandomBytes",
    "GetRandomHexChars",
    "GetSelectedDb",
    "GetServerInfo",
    "GetServerVersion",
    "GetSharedAPI",
    "GetThreadSafeContext",
    "GetTimerInfo",
    "GetToDbIdFromOptCtx",
    "GetToKeyNameFromOptCtx",
    "GetTypeMethodVersion",
    "GetUsedMemoryRatio",
    "HashGet",
    "HashSet",
    "HoldString",
    "InfoAddFieldCString",
    "InfoAddFieldDouble",
    "InfoAddFieldLongLong",
    "InfoAddFieldString",
    "InfoAddFieldULongLong",
    "InfoAddSection",
    "InfoBeginDictField",
    "InfoEndDictField",
    "IsBlockedReplyRequest",
    "IsBlockedTimeoutRequest",
    "IsChannelsPositionRequest",
    "IsIOError",
    "IsKeysPositionRequest",
    "IsModuleNameBusy",
    "IsSubEventSupported",
    "KeyAtPos",
    "KeyAtPosWithFlags",
    "KeyExists",
    "KeyType",
    "KillForkChild",
    "LatencyAddSample",
    "ListDelete",
    "ListGet",
    "ListInsert",
    "ListPop",
    "ListPush",
    "ListSet",
    "LoadConfigs",
    "LoadDataTypeFromString",
    "LoadDataTypeFromStringEncver",
    "LoadDouble",
    "LoadFloat",
    "LoadLongDouble",
    "LoadSigned",
    "LoadString",
    "LoadStringBuffer",
    "LoadUnsigned",
    "Log",
    "LogIOError",
    "MallocSize",
    "MallocSizeDict",
    "MallocSizeString",
    "MallocUsableSize",
    "Microseconds",
    "Milliseconds",
    "ModuleTypeGetType",
    "ModuleTypeGetValue",
    "ModuleTypeReplaceValue",
    "ModuleTypeSetValue",
    "MonotonicMicroseconds",
    "NotifyKeyspaceEvent",
    "OpenKey",
    "PoolAlloc",
    "PublishMessage",
    "PublishMessageShard",
    "RandomKey",
    "RdbLoad",
    "RdbSave",
    "RdbStreamCreateFromFile",
    "RdbStreamFree",
    "Realloc",
    "RedactClientCommandArgument",
    "RegisterAuthCallback",
    "RegisterBoolConfig",
    "RegisterClusterMessageReceiver",
    "RegisterCommandFilter",
    "RegisterDefragFunc",
    "RegisterEnumConfig",
    "RegisterInfoFunc",
    "RegisterNumericConfig",
    "RegisterStringConfig",
    "Replicate",
    "ReplicateVerbatim",
    "ReplySetArrayLength",
    "ReplySetAttributeLength",
    "ReplySetMapLength",
    "ReplySetPushLength",
    "ReplySetSetLength",
    "ReplyWithArray",
    "ReplyWithAttribute",
    "ReplyWithBigNumber",
    "ReplyWithBool",
    "ReplyWithCString",
    "ReplyWithCallReply",
    "ReplyWithDouble",
    "ReplyWithEmptyArray",
    "ReplyWithEmptyString",
    "ReplyWithError",
    "ReplyWithErrorFormat",
    "ReplyWithLongDouble",
    "ReplyWithLongLong",
    "ReplyWithMap",
    "ReplyWithNull",
    "ReplyWithNullArray",
    "ReplyWithSet",
    "ReplyWithSimpleString",
    "ReplyWithString",
    "ReplyWithStringBuffer",
    "ReplyWithVerbatimString",
    "ReplyWithVerbatimStringType",
    "ResetDataset",
    "RetainString",
    "SaveDataTypeToString",
    "SaveDouble",
    "SaveFloat",
    "SaveLongDouble",
    "SaveSigned",
    "SaveString",
    "SaveStringBuffer",
    "SaveUnsigned",
    "Scan",
    "ScanCursorCreate",
    "ScanCursorDestroy",
    "ScanCursorRestart",
    "ScanKey",
    "SelectDb",
    "SendChildHeartbeat",
    "SendClusterMessage",
    "ServerInfoGetField",
    "ServerInfoGetFieldC",
    "ServerInfoGetFieldDouble",
    "ServerInfoGetFieldSigned",
    "ServerInfoGetFieldUnsigned",
    "SetAbsExpire",
    "SetClientNameById",
    "SetClusterFlags",
    "SetCommandACLCategories",
    "SetCommandInfo",
    "SetContextUser",
    "SetDisconnectCallback",
    "SetExpire",
    "SetLFU",
    "SetLRU",
    "SetModuleAttribs",
    "SetModuleOptions",
    "SetModuleUserACL",
    "SetModuleUserACLString",
    "SignalKeyAsReady",
    "SignalModifiedKey",
    "StopTimer",
    "Strdup",
    "StreamAdd",
    "StreamDelete",
    "StreamIteratorDelete",
    "StreamIteratorNextField",
    "StreamIteratorNextID",
    "StreamIteratorStart",
    "StreamIteratorStop",
    "StreamTrimByID",
    "StreamTrimByLength",
    "StringAppendBuffer",
    "StringCompare",
    "StringDMA",
    "StringPtrLen",
    "StringSet",
    "StringToDouble",
    "StringToLongDouble",
    "StringToLongLong",
    "StringToStreamID",
    "StringToULongLong",
    "StringTruncate",
    "SubscribeToKeyspaceEvents",
    "SubscribeToServerEvent",
    "ThreadSafeContextLock",
    "ThreadSafeContextTryLock",
    "ThreadSafeContextUnlock",
    "TrimStringAllocation",
    "TryAlloc",
    "TryCalloc",
    "TryRealloc",
    "UnblockClient",
    "UnlinkKey",
    "UnregisterCommandFilter",
    "ValueLength",
    "WrongArity",
    "Yield",
    "ZsetAdd",
    "ZsetFirstInLexRange",
    "ZsetFirstInScoreRange",
    "ZsetIncrby",
    "ZsetLastInLexRange",
    "ZsetLastInScoreRange",
    "ZsetRangeCurrentElement",
    "ZsetRangeEndReached",
    "ZsetRangeNext",
    "ZsetRangePrev",
    "ZsetRangeStop",
    "ZsetRem",
    "ZsetScore",
    "_Assert",
};
#define NAME_COUNT (sizeof(names) / sizeof(names[0]))

#define OUR_NAME(returns, name, parameters) #name,
static const char *const our_names[] = {KEYDBMODULE_FUNCTIONS(OUR_NAME)};
#define OUR_COUNT (sizeof(our_names) / sizeof(our_names[0]))

static int compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool is_listed(const char *name)
{
    return bsearch(&name, names, NAME_COUNT, sizeof(names[0]), compare);
}

static void test_function_names(void **state)
{
    (void)state;
    assert_int_equal(OUR_COUNT, NAME_COUNT);
    for (size_t i = 0; i < OUR_COUNT; i++) {
        assert_true(is_listed(our_names[i]));
        for (size_t k = 0; k < i; k++) {
            assert_string_not_equal(our_names[i], our_names[k]);
        }
    }
}

/* ---- the table ---- */

static void test_table(void **state)
{
    (void)state;
    api_setup();
    assert_int_equal(api_count(), NAME_COUNT);
    for (unsigned i = 0; i < api_count(); i++) {
        char name[64];
        api_pointer found = NULL;
        assert_true(is_listed(api_at(i)->name));
        assert_true(i == 0 || strcmp(api_at(i - 1)->name, api_at(i)->name) < 0);
        snprintf(name, sizeof(name), "RedisModule_%s", api_at(i)->name);
        assert_int_equal(api_get(name, &found), REDISMODULE_OK);
        assert_true(found == api_at(i)->function && found);
    }
    api_pointer untouched = (api_pointer)test_table;
    assert_int_equal(api_get("RedisModule_NoSuch", &untouched), REDISMODULE_ERR);
    assert_int_equal(api_get("Alloc", &untouched), REDISMODULE_ERR);
    assert_int_equal(api_get("", &untouched), REDISMODULE_ERR);
    api_teardown();
}

/* Modules' flags of keys are passed on as they are. */
static void test_key_flags(void **state)
{
    (void)state;
    static const struct {
        unsigned long long theirs;
        uint32_t ours;
    } flags[] = {
        {REDISMODULE_CMD_KEY_RO, KEY_RO},
        {REDISMODULE_CMD_KEY_RW, KEY_RW},
        {REDISMODULE_CMD_KEY_OW, KEY_OW},
        {REDISMODULE_CMD_KEY_RM, KEY_RM},
        {REDISMODULE_CMD_KEY_ACCESS, KEY_ACCESS},
        {REDISMODULE_CMD_KEY_UPDATE, KEY_UPDATE},
        {REDISMODULE_CMD_KEY_INSERT, KEY_INSERT},
        {REDISMODULE_CMD_KEY_DELETE, KEY_DELETE},
        {REDISMODULE_CMD_KEY_NOT_KEY, KEY_NOT_KEY},
        {REDISMODULE_CMD_KEY_INCOMPLETE, KEY_INCOMPLETE},
        {REDISMODULE_CMD_KEY_VARIABLE_FLAGS, KEY_VARIABLE_FLAGS},
    };
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
        assert_int_equal(flags[i].theirs, flags[i].ours);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_function_names),
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_key_flags),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
