/* A module that wants one thing, and lets itself not be loaded without it. Arguments: its name,
 * what it wants (command, subcommand, type, option, function, category), and the name of that. */
#include "keydbmodule.h"

#include <string.h>

#define PLAIN REDISMODULE_CONFIG_DEFAULT

static int nothing(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    (void)argv;
    (void)argc;
    return RedisModule_ReplyWithNull(ctx);
}

static void *load(RedisModuleIO *io, int encver)
{
    (void)io;
    (void)encver;
    return NULL;
}

static int get_flag(const char *name, void *data)
{
    (void)name;
    (void)data;
    return 0;
}

static int set_flag(const char *name, int value, void *data, RedisModuleString **error)
{
    (void)name;
    (void)value;
    (void)data;
    (void)error;
    return REDISMODULE_OK;
}

static int add_twice(RedisModuleCtx *ctx, const char *name)
{
    RedisModule_CreateCommand(ctx, "taken.box", NULL, "readonly", 0, 0, 0);
    RedisModuleCommand *box = RedisModule_GetCommand(ctx, "taken.box");
    return RedisModule_CreateSubcommand(box, name, nothing, "readonly", 0, 0, 0) == REDISMODULE_OK
               ? RedisModule_CreateSubcommand(box, name, nothing, "readonly", 0, 0, 0)
               : REDISMODULE_ERR;
}

static int register_twice(RedisModuleCtx *ctx, const char *name)
{
    RedisModule_RegisterBoolConfig(ctx, name, 0, PLAIN, get_flag, set_flag, NULL, NULL);
    return RedisModule_RegisterBoolConfig(ctx, name, 0, PLAIN, get_flag, set_flag, NULL, NULL);
}

static int want(RedisModuleCtx *ctx, const char *kind, const char *name)
{
    if (strcmp(kind, "command") == 0) {
        return RedisModule_CreateCommand(ctx, name, nothing, "readonly", 0, 0, 0);
    }
    if (strcmp(kind, "subcommand") == 0) {
        return add_twice(ctx, name);
    }
    if (strcmp(kind, "type") == 0) {
        RedisModuleTypeMethods methods = {.version = 1, .rdb_load = load};
        return RedisModule_CreateDataType(ctx, name, 0, &methods) ? REDISMODULE_OK
                                                                  : REDISMODULE_ERR;
    }
    if (strcmp(kind, "option") == 0) {
        return register_twice(ctx, name);
    }
    if (strcmp(kind, "function") == 0) {
        return RedisModule_ExportSharedAPI(ctx, name, (void *)nothing);
    }
    return RedisModule_AddACLCategory(ctx, name);
}

int RedisModule_OnLoad(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    /* Functions are fetched under the module's name, which the first argument tells. */
    int (*get_api)(const char *, void *) = *(int (**)(const char *, void *))ctx;
    get_api("RedisModule_StringPtrLen", (void *)&RedisModule_StringPtrLen);
    const char *name = argc > 0 ? RedisModule_StringPtrLen(argv[0], NULL) : "taken";
    if (RedisModule_Init(ctx, name, 1, REDISMODULE_APIVER_1) != REDISMODULE_OK) {
        return REDISMODULE_ERR;
    }
    return argc < 3 ? REDISMODULE_OK
                    : want(ctx, RedisModule_StringPtrLen(argv[1], NULL),
                           RedisModule_StringPtrLen(argv[2], NULL));
}
