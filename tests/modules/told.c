/* What a module tells in INFO and learns from it, users and their rights, children, slots. */
#include "commands.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <signal.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

typedef RedisModuleString String;

static const char *text_of(const String *s)
{
    return RedisModule_StringPtrLen(s, NULL);
}

static int reply_errno(RedisModuleCtx *ctx, int result)
{
    const char *name = result == REDISMODULE_OK ? "OK"
                       : errno == EINVAL        ? "EINVAL"
                       : errno == EACCES        ? "EACCES"
                       : errno == ENOENT        ? "ENOENT"
                       : errno == ENOTSUP       ? "ENOTSUP"
                                                : "ERR";
    return RedisModule_ReplyWithCString(ctx, name);
}

/* ---- INFO ---- */

static void add_fields(RedisModuleInfoCtx *info)
{
    RedisModule_InfoAddFieldCString(info, "text", "plain");
    RedisModule_InfoAddFieldCString(info, "unsafe", "a:b#c\r\nd");
    RedisModule_InfoAddFieldDouble(info, "double", 0.1);
    RedisModule_InfoAddFieldLongLong(info, "negative", LLONG_MIN);
    RedisModule_InfoAddFieldULongLong(info, "large", ULLONG_MAX);
}

/* Argument of the module: what it does when a crash is reported, "fault", "wait", or nothing. */
static char in_crash;

static void tell_of_crash(RedisModuleInfoCtx *info)
{
    RedisModule_InfoAddSection(info, "crash");
    RedisModule_InfoAddFieldCString(info, "is", "reported");
    while (in_crash == 'w') {
        sleep(1);
    }
    if (in_crash == 'f') {
        raise(SIGSEGV);
    }
}

static void tell(RedisModuleInfoCtx *info, int for_crash)
{
    if (for_crash) {
        tell_of_crash(info);
    }
    RedisModule_InfoAddFieldCString(info, "outside", "dropped");
    if (RedisModule_InfoAddSection(info, "") == REDISMODULE_OK) {
        add_fields(info);
    }
    RedisModule_InfoAddSection(info, "dicts");
    RedisModule_InfoBeginDictField(info, "one");
    RedisModule_InfoAddFieldLongLong(info, "a", 1);
    RedisModule_InfoAddFieldCString(info, "b", "two");
    RedisModule_InfoAddFieldDouble(info, "c", 2.5);
    RedisModule_InfoEndDictField(info);
    RedisModule_InfoBeginDictField(info, "left_open");
    RedisModule_InfoAddFieldULongLong(info, "a", 1);
    RedisModule_InfoAddSection(info, "Other");
    RedisModule_InfoAddFieldLongLong(info, "n", 7);
}

/* T.INFO section|- field: the field as each function tells it. */
static int t_info(RedisModuleCtx *ctx, String **argv, int argc)
{
    if (argc != 3) {
        return RedisModule_WrongArity(ctx);
    }
    const char *section = text_of(argv[1]), *field = text_of(argv[2]);
    RedisModuleServerInfoData *data =
        RedisModule_GetServerInfo(ctx, strcmp(section, "-") ? section : NULL);
    int results[3];
    String *text = RedisModule_ServerInfoGetField(ctx, data, field);
    const char *same = RedisModule_ServerInfoGetFieldC(data, field);
    long long whole = RedisModule_ServerInfoGetFieldSigned(data, field, &results[0]);
    unsigned long long positive = RedisModule_ServerInfoGetFieldUnsigned(data, field, &results[1]);
    double fraction = RedisModule_ServerInfoGetFieldDouble(data, field, &results[2]);
    RedisModule_ReplyWithArray(ctx, 7);
    RedisModule_ReplyWithLongLong(ctx, text && same && !strcmp(text_of(text), same));
    RedisModule_ReplyWithLongLong(ctx, results[0]);
    RedisModule_ReplyWithLongLong(ctx, whole);
    RedisModule_ReplyWithLongLong(ctx, results[1]);
    RedisModule_ReplyWithLongLong(ctx, (long long)positive);
    RedisModule_ReplyWithLongLong(ctx, results[2]);
    RedisModule_ReplyWithDouble(ctx, fraction);
    if (text) {
        RedisModule_FreeString(ctx, text);
    }
    RedisModule_FreeServerInfo(ctx, data);
    return REDISMODULE_OK;
}

/* ---- users ---- */

static RedisModuleUser *own; /* T.USER's */

/* T.USER rule|=rules ...: gives the module's user rules, one by one or (=) a line of them; replies
 * what it is then. */
static int t_user(RedisModuleCtx *ctx, String **argv, int argc)
{
    RedisModule_AutoMemory(ctx);
    if (!own) {
        own = RedisModule_CreateModuleUser("told");
    }
    RedisModule_ReplyWithArray(ctx, argc);
    for (int i = 1; i < argc; i++) {
        const char *rule = text_of(argv[i]);
        String *error = NULL;
        if (*rule != '=' || !RedisModule_SetModuleUserACLString) {
            rule += *rule == '=';
            RedisModule_ReplyWithLongLong(ctx, RedisModule_SetModuleUserACL(own, rule));
        } else if (RedisModule_SetModuleUserACLString(ctx, own, rule + 1, &error) ==
                   REDISMODULE_OK) {
            RedisModule_ReplyWithLongLong(ctx, 0);
        } else {
            RedisModule_ReplyWithString(ctx, error);
        }
    }
    if (!RedisModule_GetModuleUserACLString) {
        return RedisModule_ReplyWithNull(ctx);
    }
    String *rules = RedisModule_GetModuleUserACLString(own);
    RedisModule_ReplyWithString(ctx, rules);
    RedisModule_FreeString(NULL, rules);
    return REDISMODULE_OK;
}

static int check(RedisModuleUser *user, String **argv, int argc)
{
    const char *what = text_of(argv[2]);
    errno = 0;
    if (strcmp(what, "command") == 0) {
        return RedisModule_ACLCheckCommandPermissions(user, argv + 3, argc - 3);
    }
    int flags = 0;
    for (const char *p = text_of(argv[3]); *p; p++) {
        bool key = strcmp(what, "key") == 0;
        flags |=
            *p == 'r'
                ? (key ? (int)REDISMODULE_CMD_KEY_ACCESS : (int)REDISMODULE_CMD_CHANNEL_SUBSCRIBE)
            : *p == 'w'
                ? (key ? (int)REDISMODULE_CMD_KEY_UPDATE : (int)REDISMODULE_CMD_CHANNEL_PUBLISH)
            : *p == 'p'
                ? (key ? (int)REDISMODULE_CMD_KEY_INSERT : (int)REDISMODULE_CMD_CHANNEL_PATTERN)
            : *p == 'u'
                ? (key ? (int)REDISMODULE_CMD_KEY_DELETE : (int)REDISMODULE_CMD_CHANNEL_UNSUBSCRIBE)
                : 1 << 20;
    }
    return strcmp(what, "key") == 0 ? RedisModule_ACLCheckKeyPermissions(user, argv[4], flags)
                                    : RedisModule_ACLCheckChannelPermissions(user, argv[4], flags);
}

/* T.MAY -|user command word ... | key flags name | channel flags name; "-" is T.USER's */
static int t_may(RedisModuleCtx *ctx, String **argv, int argc)
{
    if (argc < 4 || (strcmp(text_of(argv[2]), "command") != 0 && argc != 5)) {
        return RedisModule_WrongArity(ctx);
    }
    bool is_own = strcmp(text_of(argv[1]), "-") == 0;
    RedisModuleUser *user = is_own ? own : RedisModule_GetModuleUserFromUserName(argv[1]);
    if (!user) {
        return RedisModule_ReplyWithNull(ctx);
    }
    reply_errno(ctx, check(user, argv, argc));
    if (!is_own) {
        RedisModule_FreeModuleUser(user);
    }
    return REDISMODULE_OK;
}

/* T.DENIED user reason object: an entry of ACL LOG; replies who calls. */
static int t_denied(RedisModuleCtx *ctx, String **argv, int argc)
{
    long long reason = 0;
    if (argc != 4 || RedisModule_StringToLongLong(argv[2], &reason) != REDISMODULE_OK) {
        return RedisModule_WrongArity(ctx);
    }
    if (RedisModule_ACLAddLogEntryByUserName) {
        RedisModule_ACLAddLogEntryByUserName(ctx, argv[1], argv[3],
                                             (RedisModuleACLLogEntryReason)reason);
    } else {
        RedisModuleUser *user = RedisModule_GetModuleUserFromUserName(argv[1]);
        RedisModule_ACLAddLogEntry(ctx, user, argv[3], (RedisModuleACLLogEntryReason)reason);
        RedisModule_FreeModuleUser(user);
    }
    String *name = RedisModule_GetCurrentUserName(ctx);
    RedisModule_ReplyWithString(ctx, name);
    RedisModule_FreeString(ctx, name);
    return REDISMODULE_OK;
}

/* T.LISTEN how channel [how channel ...]: how is made of s (subscribe), p (publish), u (leave) and
 * * (a pattern); replies how many words there are. */
static int t_listen(RedisModuleCtx *ctx, String **argv, int argc)
{
    if (!RedisModule_IsChannelsPositionRequest(ctx)) {
        return RedisModule_ReplyWithLongLong(ctx, argc);
    }
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *how = text_of(argv[i]);
        uint64_t flags = (strchr(how, 's') ? REDISMODULE_CMD_CHANNEL_SUBSCRIBE : 0) |
                         (strchr(how, 'p') ? REDISMODULE_CMD_CHANNEL_PUBLISH : 0) |
                         (strchr(how, 'u') ? REDISMODULE_CMD_CHANNEL_UNSUBSCRIBE : 0) |
                         (strchr(how, '*') ? REDISMODULE_CMD_CHANNEL_PATTERN : 0);
        RedisModule_ChannelAtPosWithFlags(ctx, i + 1, (int)flags);
    }
    return REDISMODULE_OK;
}

/* ---- children ---- */

static int last_child, last_status = -77, last_signal = -77;

static void on_end(int status, int by_signal, void *user_data)
{
    (void)user_data;
    last_status = status;
    last_signal = by_signal;
}

/* T.FORK status seconds: a child that reads a key through its memory, tells it by a pipe that was
 * there before, waits so long and ends; replies what it has told. */
static int t_fork(RedisModuleCtx *ctx, String **argv, int argc)
{
    long long status, seconds;
    int ends[2];
    char told[64] = "";
    if (argc != 3 || RedisModule_StringToLongLong(argv[1], &status) != REDISMODULE_OK ||
        RedisModule_StringToLongLong(argv[2], &seconds) != REDISMODULE_OK) {
        return RedisModule_WrongArity(ctx);
    }
    if (pipe(ends) != 0) {
        return RedisModule_ReplyWithError(ctx, "ERR no pipe");
    }
    int pid = RedisModule_Fork(on_end, NULL);
    if (pid == 0) {
        RedisModule_SendChildHeartbeat(0.5);
        RedisModule_Log(ctx, "notice", "a child runs");
        ssize_t wrote = write(ends[1], "from the child", 14);
        (void)wrote;
        sleep((unsigned)seconds);
        RedisModule_ExitFromChild((int)status);
    }
    last_child = pid > 0 ? pid : last_child;
    if (pid > 0) {
        ssize_t got = read(ends[0], told, sizeof(told) - 1);
        (void)got;
    }
    close(ends[0]);
    close(ends[1]);
    return pid > 0 ? RedisModule_ReplyWithCString(ctx, told)
                   : RedisModule_ReplyWithError(ctx, "ERR no child");
}

/* T.CHILD: how the last one ended. T.KILL: ends it. */
static int t_child(RedisModuleCtx *ctx, String **argv, int argc)
{
    (void)argv;
    (void)argc;
    RedisModule_ReplyWithArray(ctx, 2);
    RedisModule_ReplyWithLongLong(ctx, last_status);
    return RedisModule_ReplyWithLongLong(ctx, last_signal);
}

static int t_kill(RedisModuleCtx *ctx, String **argv, int argc)
{
    (void)argv;
    (void)argc;
    return RedisModule_ReplyWithLongLong(ctx, RedisModule_KillForkChild(last_child));
}

/* ---- clients ---- */

/* T.CLIENT id: what it is. */
static int t_client(RedisModuleCtx *ctx, String **argv, int argc)
{
    long long id;
    if (argc != 2 || RedisModule_StringToLongLong(argv[1], &id) != REDISMODULE_OK) {
        return RedisModule_WrongArity(ctx);
    }
    RedisModule_AutoMemory(ctx);
    RedisModuleClientInfo info = REDISMODULE_CLIENTINFO_INITIALIZER_V1;
    int result = RedisModule_GetClientInfoById(&info, (uint64_t)id);
    int exists = RedisModule_GetClientInfoById(NULL, (uint64_t)id);
    String *name = RedisModule_GetClientNameById(ctx, (uint64_t)id);
    String *user = RedisModule_GetClientUserNameById(ctx, (uint64_t)id);
    String *certificate = RedisModule_GetClientCertificate(ctx, (uint64_t)id);
    RedisModule_ReplyWithArray(ctx, 9);
    RedisModule_ReplyWithLongLong(ctx, result);
    RedisModule_ReplyWithLongLong(ctx, exists);
    RedisModule_ReplyWithLongLong(ctx, (long long)info.flags);
    RedisModule_ReplyWithLongLong(ctx, result == REDISMODULE_OK && info.id == (uint64_t)id);
    RedisModule_ReplyWithCString(ctx, result == REDISMODULE_OK ? info.addr : "");
    RedisModule_ReplyWithLongLong(ctx, result == REDISMODULE_OK ? info.db : 0);
    RedisModule_ReplyWithCString(ctx, name ? text_of(name) : "none");
    RedisModule_ReplyWithCString(ctx, user ? text_of(user) : "none");
    return RedisModule_ReplyWithCString(ctx, certificate ? text_of(certificate) : "none");
}

/* T.NAME id name */
static int t_name(RedisModuleCtx *ctx, String **argv, int argc)
{
    long long id;
    if (argc != 3 || RedisModule_StringToLongLong(argv[1], &id) != REDISMODULE_OK) {
        return RedisModule_WrongArity(ctx);
    }
    errno = 0;
    return reply_errno(ctx, RedisModule_SetClientNameById((uint64_t)id, argv[2]));
}

/* T.AWAY id: closes it */
static int t_away(RedisModuleCtx *ctx, String **argv, int argc)
{
    long long id;
    if (argc != 2 || RedisModule_StringToLongLong(argv[1], &id) != REDISMODULE_OK) {
        return RedisModule_WrongArity(ctx);
    }
    return RedisModule_ReplyWithLongLong(
        ctx, RedisModule_DeauthenticateAndCloseClient(ctx, (uint64_t)id));
}

/* ---- authentication ---- */

static long long changed_client;

static void on_change(uint64_t client_id, void *user_data)
{
    (void)user_data;
    changed_client = (long long)client_id;
}

/* T.BECOME -|user: the caller is that user; "-" is T.USER's. T.CHANGED: who ceased to be one. */
static int t_become(RedisModuleCtx *ctx, String **argv, int argc)
{
    if (argc != 2) {
        return RedisModule_WrongArity(ctx);
    }
    size_t len;
    const char *name = RedisModule_StringPtrLen(argv[1], &len);
    uint64_t id = 0;
    int result =
        strcmp(name, "-") == 0
            ? RedisModule_AuthenticateClientWithUser(ctx, own, on_change, NULL, &id)
            : RedisModule_AuthenticateClientWithACLUser(ctx, name, len, on_change, NULL, &id);
    RedisModule_ReplyWithArray(ctx, 2);
    RedisModule_ReplyWithLongLong(ctx, result);
    return RedisModule_ReplyWithLongLong(
        ctx, result == REDISMODULE_OK ? id == RedisModule_GetClientId(ctx) : 0);
}

static int t_changed(RedisModuleCtx *ctx, String **argv, int argc)
{
    (void)argv;
    (void)argc;
    RedisModule_ReplyWithLongLong(ctx, changed_client);
    changed_client = 0;
    return REDISMODULE_OK;
}

/* T.RESET restart-aof async */
static int t_reset(RedisModuleCtx *ctx, String **argv, int argc)
{
    long long restart, async;
    if (argc != 3 || RedisModule_StringToLongLong(argv[1], &restart) != REDISMODULE_OK ||
        RedisModule_StringToLongLong(argv[2], &async) != REDISMODULE_OK) {
        return RedisModule_WrongArity(ctx);
    }
    RedisModule_ResetDataset((int)restart, (int)async);
    return RedisModule_ReplyWithSimpleString(ctx, "OK");
}

/* T.SLOT key: its slot; and that of the name that stands for it */
static int t_slot(RedisModuleCtx *ctx, String **argv, int argc)
{
    if (argc != 2 || !RedisModule_ClusterKeySlot) {
        return RedisModule_ReplyWithError(ctx, "ERR unknown here");
    }
    unsigned slot = RedisModule_ClusterKeySlot(argv[1]);
    const char *name = RedisModule_ClusterCanonicalKeyNameInSlot(slot);
    String *text = RedisModule_CreateString(ctx, name, strlen(name));
    RedisModule_ReplyWithArray(ctx, 3);
    RedisModule_ReplyWithLongLong(ctx, slot);
    RedisModule_ReplyWithLongLong(ctx, RedisModule_ClusterKeySlot(text));
    RedisModule_ReplyWithLongLong(ctx, RedisModule_ClusterCanonicalKeyNameInSlot(16384) == NULL);
    RedisModule_FreeString(ctx, text);
    return REDISMODULE_OK;
}

static const struct test_command commands[] = {
    {"t.info", t_info, NULL, 0},     {"t.user", t_user, NULL, 0},
    {"t.may", t_may, NULL, 0},       {"t.denied", t_denied, NULL, 0},
    {"t.fork", t_fork, NULL, 0},     {"t.child", t_child, NULL, 0},
    {"t.kill", t_kill, NULL, 0},     {"t.slot", t_slot, NULL, 0},
    {"t.become", t_become, NULL, 0}, {"t.changed", t_changed, NULL, 0},
    {"t.reset", t_reset, NULL, 0},   {"t.client", t_client, NULL, 0},
    {"t.name", t_name, NULL, 0},     {"t.away", t_away, NULL, 0},
};

int RedisModule_OnLoad(RedisModuleCtx *ctx, String **argv, int argc)
{
    if (RedisModule_Init(ctx, "told", 1, REDISMODULE_APIVER_1) != REDISMODULE_OK ||
        RedisModule_RegisterInfoFunc(ctx, tell) != REDISMODULE_OK) {
        return REDISMODULE_ERR;
    }
    in_crash = argc > 0 ? *RedisModule_StringPtrLen(argv[0], NULL) : 0;
    if (CREATE_COMMANDS(ctx, commands, "", 0) != REDISMODULE_OK) {
        return REDISMODULE_ERR;
    }
    return RedisModule_CreateCommand(ctx, "t.listen", t_listen, "getchannels-api", 0, 0, 0);
}

int RedisModule_OnUnload(RedisModuleCtx *ctx)
{
    (void)ctx;
    if (own) {
        RedisModule_FreeModuleUser(own);
        own = NULL;
    }
    return REDISMODULE_OK;
}
