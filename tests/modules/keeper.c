/* A gatekeeper: asked by AUTH and HELLO, by two callbacks. What it does goes by the password:
 *   in      the client is the user that it names, and handled
 *   own     the client is a user of the module's own
 *   nobody  handled, though nobody has been let in
 *   out     denied, with an error with a code; `plain`: without one
 *   second  what the other callback, registered before, looks after: it lets in
 *   later-in, later-out, later-left, later-second
 *           the client is blocked, a thread unblocks it, and then it is let in, denied, left to
 * others, or left to the other callback, which does the same with it before it lets in hold-in the
 * same, unblocked by K.LET K.COUNTS replies how often each was asked and how often a client ceased
 * to be its user. K.HIDE pos
 * ... hides arguments. K.LET unblocks, K.WAITS tells what has become of blocked clients. K.FREE
 * frees the own user. Arguments of the module are names of categories that it adds. */
#include "commands.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

typedef RedisModuleString String;

static long long asked_first, asked_second, changes;
static RedisModuleUser *own;

static const char *text_of(const String *s)
{
    return RedisModule_StringPtrLen(s, NULL);
}

static void on_change(uint64_t client_id, void *user_data)
{
    (void)client_id;
    ++*(long long *)user_data;
}

static int let_in(RedisModuleCtx *ctx, String *name)
{
    size_t len;
    const char *text = RedisModule_StringPtrLen(name, &len);
    return RedisModule_AuthenticateClientWithACLUser(ctx, text, len, on_change, &changes, NULL);
}

static int deny(String **error, const char *text)
{
    *error = RedisModule_CreateString(NULL, text, strlen(text));
    return REDISMODULE_AUTH_HANDLED;
}

/* ---- answers that take a while ---- */

#define HELD_MAX 64

static RedisModuleBlockedClient *held[HELD_MAX];
static int held_count;
static long long replied, freed, disconnected, refused;

static void free_data(RedisModuleCtx *ctx, void *data)
{
    (void)ctx;
    freed++;
    RedisModule_Free(data);
}

static void on_disconnected(RedisModuleCtx *ctx, RedisModuleBlockedClient *client)
{
    (void)ctx;
    (void)client;
    disconnected++;
}

static void *unblock(void *client)
{
    RedisModule_UnblockClient(client, RedisModule_Strdup("told"));
    return NULL;
}

static int on_reply(RedisModuleCtx *ctx, String *name, String *password, String **error)
{
    const char *how = strchr(text_of(password), '-') + 1;
    const char *data = RedisModule_GetBlockedClientPrivateData(ctx);
    replied++;
    if (!data || strcmp(data, "told") != 0 || !RedisModule_IsBlockedReplyRequest(ctx)) {
        return deny(error, "-WRONG no reply request");
    }
    if (RedisModule_BlockClientOnAuth(ctx, on_reply, free_data)) {
        return deny(error, "-WRONG blocked again");
    }
    if (strcmp(how, "in") == 0) {
        let_in(ctx, name);
        return REDISMODULE_AUTH_HANDLED;
    }
    return strcmp(how, "out") == 0 ? deny(error, "-LATE the gate is closed")
                                   : REDISMODULE_AUTH_NOT_HANDLED;
}

static int on_second_reply(RedisModuleCtx *ctx, String *name, String *password, String **error)
{
    (void)password;
    (void)error;
    replied++;
    let_in(ctx, name);
    return REDISMODULE_AUTH_HANDLED;
}

static int wait_for(RedisModuleCtx *ctx, RedisModuleAuthCallback reply, bool holds)
{
    pthread_t thread;
    unsigned long long id = RedisModule_GetClientId(ctx);
    RedisModuleBlockedClient *client = RedisModule_BlockClientOnAuth(ctx, reply, free_data);
    if (!client || id == 0) {
        refused++;
        return REDISMODULE_AUTH_HANDLED;
    }
    RedisModule_SetDisconnectCallback(client, on_disconnected);
    if (holds && held_count < HELD_MAX) {
        held[held_count++] = client;
    } else if (pthread_create(&thread, NULL, unblock, client) == 0) {
        pthread_detach(thread);
    }
    return REDISMODULE_AUTH_HANDLED;
}

/* K.LET: how many were held. */
static int k_let(RedisModuleCtx *ctx, String **argv, int argc)
{
    (void)argv;
    (void)argc;
    int count = held_count;
    while (held_count > 0) {
        unblock(held[--held_count]);
    }
    return RedisModule_ReplyWithLongLong(ctx, count);
}

/* K.WAITS: reply callbacks, data that were freed, clients that went, those that could not wait. */
static int k_waits(RedisModuleCtx *ctx, String **argv, int argc)
{
    (void)argv;
    (void)argc;
    RedisModule_ReplyWithArray(ctx, 4);
    RedisModule_ReplyWithLongLong(ctx, replied);
    RedisModule_ReplyWithLongLong(ctx, freed);
    RedisModule_ReplyWithLongLong(ctx, disconnected);
    return RedisModule_ReplyWithLongLong(ctx, refused);
}

/* Registered last: asked first. */
static int first(RedisModuleCtx *ctx, String *name, String *password, String **error)
{
    const char *how = text_of(password);
    asked_first++;
    if (strcmp(how, "in") == 0) {
        let_in(ctx, name);
        return REDISMODULE_AUTH_HANDLED;
    }
    if (strcmp(how, "own") == 0) {
        RedisModule_AuthenticateClientWithUser(ctx, own, on_change, &changes, NULL);
        return REDISMODULE_AUTH_HANDLED;
    }
    if (strcmp(how, "nobody") == 0) {
        return REDISMODULE_AUTH_HANDLED;
    }
    if (strcmp(how, "out") == 0) {
        return deny(error, "-CLOSED the gate is closed");
    }
    if (strncmp(how, "later-", 6) == 0 || strncmp(how, "hold-", 5) == 0) {
        return wait_for(ctx, on_reply, *how == 'h');
    }
    return strcmp(how, "plain") == 0 ? deny(error, "no way") : REDISMODULE_AUTH_NOT_HANDLED;
}

static int second(RedisModuleCtx *ctx, String *name, String *password, String **error)
{
    (void)error;
    asked_second++;
    if (strcmp(text_of(password), "later-second") == 0) {
        return wait_for(ctx, on_second_reply, false);
    }
    return strcmp(text_of(password), "second") == 0 && let_in(ctx, name) == REDISMODULE_OK
               ? REDISMODULE_AUTH_HANDLED
               : REDISMODULE_AUTH_NOT_HANDLED;
}

static int k_counts(RedisModuleCtx *ctx, String **argv, int argc)
{
    (void)argv;
    (void)argc;
    RedisModule_ReplyWithArray(ctx, 3);
    RedisModule_ReplyWithLongLong(ctx, asked_first);
    RedisModule_ReplyWithLongLong(ctx, asked_second);
    RedisModule_ReplyWithLongLong(ctx, changes);
    asked_first = asked_second = changes = 0;
    return REDISMODULE_OK;
}

static int k_hide(RedisModuleCtx *ctx, String **argv, int argc)
{
    long long pos, hidden = 0;
    for (int i = 1; i < argc; i++) {
        if (RedisModule_StringToLongLong(argv[i], &pos) == REDISMODULE_OK) {
            hidden += RedisModule_RedactClientCommandArgument(ctx, (int)pos) == REDISMODULE_OK;
        }
    }
    return RedisModule_ReplyWithLongLong(ctx, hidden);
}

static int k_become(RedisModuleCtx *ctx, String **argv, int argc)
{
    return argc == 2 ? RedisModule_ReplyWithLongLong(ctx, let_in(ctx, argv[1]))
                     : RedisModule_WrongArity(ctx);
}

static bool make_own(void)
{
    own = RedisModule_CreateModuleUser("keeper-own");
    return RedisModule_SetModuleUserACL(own, "on") == REDISMODULE_OK &&
           RedisModule_SetModuleUserACL(own, "+acl|whoami") == REDISMODULE_OK &&
           RedisModule_SetModuleUserACL(own, "+auth") == REDISMODULE_OK;
}

/* K.FREE: the user goes, and another takes its place. K.RULE rule: a rule for it. */
static int k_free(RedisModuleCtx *ctx, String **argv, int argc)
{
    (void)argv;
    (void)argc;
    RedisModule_FreeModuleUser(own);
    return RedisModule_ReplyWithLongLong(ctx, make_own());
}

static int k_rule(RedisModuleCtx *ctx, String **argv, int argc)
{
    return argc == 2 ? RedisModule_ReplyWithLongLong(
                           ctx, RedisModule_SetModuleUserACL(own, text_of(argv[1])))
                     : RedisModule_WrongArity(ctx);
}

/* K.AS -|user|none word ...: calls a command with the rights of the own user, the server's, the
 * caller's. */
static int k_as(RedisModuleCtx *ctx, String **argv, int argc)
{
    if (argc < 3) {
        return RedisModule_WrongArity(ctx);
    }
    bool is_own = strcmp(text_of(argv[1]), "-") == 0,
         is_none = strcmp(text_of(argv[1]), "none") == 0;
    RedisModuleUser *found =
        is_own || is_none ? NULL : RedisModule_GetModuleUserFromUserName(argv[1]);
    RedisModule_SetContextUser(ctx, is_own ? own : found);
    errno = 0;
    RedisModuleCallReply *reply =
        RedisModule_Call(ctx, text_of(argv[2]), "vCE", argv + 3, (size_t)(argc - 3));
    RedisModule_SetContextUser(ctx, NULL);
    if (found) {
        RedisModule_FreeModuleUser(found);
    }
    if (!reply) {
        return RedisModule_ReplyWithNull(ctx);
    }
    RedisModule_ReplyWithCallReply(ctx, reply);
    RedisModule_FreeCallReply(reply);
    return REDISMODULE_OK;
}

/* Of the categories that were to be added, the errno of each; 0: it was added. */
static int results[8], result_count;

static int k_categories(RedisModuleCtx *ctx, String **argv, int argc)
{
    (void)argv;
    (void)argc;
    RedisModule_ReplyWithArray(ctx, result_count);
    for (int i = 0; i < result_count; i++) {
        RedisModule_ReplyWithLongLong(ctx, results[i]);
    }
    return REDISMODULE_OK;
}

/* Redis 7.4. K.COUNTS is in each of the categories; nothing comes of a call with a wrong word. */
static bool add_categories(RedisModuleCtx *ctx, String **names, int count)
{
    RedisModuleCommand *command = RedisModule_GetCommand(ctx, "k.counts");
    for (result_count = 0; result_count < count && result_count < 8; result_count++) {
        const char *name = text_of(names[result_count]);
        errno = 0;
        bool added = RedisModule_AddACLCategory(ctx, name) == REDISMODULE_OK;
        results[result_count] = added ? 0 : errno;
        if (added &&
            (RedisModule_SetCommandACLCategories(command, name) != REDISMODULE_OK ||
             RedisModule_SetCommandACLCategories(command, "fast none") == REDISMODULE_OK)) {
            return false;
        }
    }
    return true;
}

static const struct test_command commands[] = {
    {"k.counts", k_counts, "", 0},  {"k.hide", k_hide, "", 0},
    {"k.free", k_free, "", 0},      {"k.become", k_become, "no-auth", 0},
    {"k.rule", k_rule, "", 0},      {"k.turn", k_become, "", 0},
    {"k.as", k_as, "", 0},          {"k.categories", k_categories, "", 0},
    {"k.let", k_let, "no-auth", 0}, {"k.waits", k_waits, "", 0},
};

int RedisModule_OnLoad(RedisModuleCtx *ctx, String **argv, int argc)
{
    if (RedisModule_Init(ctx, "keeper", 1, REDISMODULE_APIVER_1) != REDISMODULE_OK) {
        return REDISMODULE_ERR;
    }
    if (CREATE_COMMANDS(ctx, commands, "", 0) != REDISMODULE_OK) {
        return REDISMODULE_ERR;
    }
    if (RedisModule_RegisterAuthCallback) { /* Redis 7.2 */
        RedisModule_RegisterAuthCallback(ctx, second);
        RedisModule_RegisterAuthCallback(ctx, first);
    }
    if (argc > 0 && RedisModule_AddACLCategory && !add_categories(ctx, argv, argc)) {
        return REDISMODULE_ERR;
    }
    return make_own() ? REDISMODULE_OK : REDISMODULE_ERR;
}

int RedisModule_OnUnload(RedisModuleCtx *ctx)
{
    (void)ctx;
    RedisModule_FreeModuleUser(own);
    return REDISMODULE_OK;
}
