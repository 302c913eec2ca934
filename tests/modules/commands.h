/* How the modules for tests create their commands. (example.c does it by itself, as authors do.) */
#ifndef TEST_MODULES_COMMANDS_H
#define TEST_MODULES_COMMANDS_H

#include "keydbmodule.h"

struct test_command {
    const char *name;
    RedisModuleCmdFunc function;
    const char *flags; /* NULL: as all others */
    int key;           /* where its one key is; 0: as all others */
};

/* All of the array `commands`; `flags` and `key` are those of who says none. */
#define CREATE_COMMANDS(ctx, commands, flags, key)                                                 \
    create_commands(ctx, commands, sizeof(commands) / sizeof((commands)[0]), flags, key)

static inline int create_commands(RedisModuleCtx *ctx, const struct test_command *commands,
                                  size_t count, const char *flags, int key)
{
    for (size_t i = 0; i < count; i++) {
        const struct test_command *c = &commands[i];
        int at = c->key ? c->key : key;
        if (RedisModule_CreateCommand(ctx, c->name, c->function, c->flags ? c->flags : flags, at,
                                      at, at ? 1 : 0) != REDISMODULE_OK) {
            return REDISMODULE_ERR;
        }
    }
    return REDISMODULE_OK;
}

#endif
