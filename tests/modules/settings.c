/* A module with an option of each kind. Arguments: "noload" leaves LoadConfigs out, "bad" registers
 * what cannot be. S.LOG replies what its callbacks were told since the last time. */
#include "keydbmodule.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

typedef RedisModuleString String;

static int flag = -1;
static long long number, memory;
static String *word, *fixed;
static int choice, flags;
static char told[4096];

static const char *text_of(const String *s)
{
    return RedisModule_StringPtrLen(s, NULL);
}

static void note(const char *name, const char *text)
{
    size_t len = strlen(told);
    snprintf(told + len, sizeof(told) - len, "%s=%s;", name, text);
}

static void note_number(const char *name, long long value)
{
    char text[32];
    snprintf(text, sizeof(text), "%lld", value);
    note(name, text);
}

static int get_bool(const char *name, void *data)
{
    (void)name;
    (void)data;
    return flag;
}

static int set_bool(const char *name, int value, void *data, String **err)
{
    (void)data;
    (void)err;
    note_number(name, value);
    flag = value;
    return REDISMODULE_OK;
}

static long long get_number(const char *name, void *data)
{
    (void)name;
    return *(long long *)data;
}

/* 13 is refused. */
static int set_number(const char *name, long long value, void *data, String **err)
{
    note_number(name, value);
    if (value == 13) {
        *err = RedisModule_CreateString(NULL, "13 brings bad luck", 18);
        return REDISMODULE_ERR;
    }
    *(long long *)data = value;
    return REDISMODULE_OK;
}

static String *get_word(const char *name, void *data)
{
    (void)name;
    return *(String **)data;
}

static int set_word(const char *name, String *value, void *data, String **err)
{
    String **place = data;
    (void)err;
    note(name, text_of(value));
    if (*place) {
        RedisModule_FreeString(NULL, *place);
    }
    RedisModule_RetainString(NULL, value);
    *place = value;
    return REDISMODULE_OK;
}

static int get_choice(const char *name, void *data)
{
    (void)name;
    return *(int *)data;
}

static int set_choice(const char *name, int value, void *data, String **err)
{
    (void)err;
    note_number(name, value);
    *(int *)data = value;
    return REDISMODULE_OK;
}

/* Refuses when the number is 99. */
static int apply(RedisModuleCtx *ctx, void *data, String **err)
{
    (void)ctx;
    (void)data;
    note("apply", "");
    if (number == 99) {
        *err = RedisModule_CreateString(NULL, "99 cannot be applied", 20);
        return REDISMODULE_ERR;
    }
    return REDISMODULE_OK;
}

static const char *choices[] = {"none", "one", "two", "four"};
static const int values[] = {0, 1, 2, 4};

static int register_all(RedisModuleCtx *ctx)
{
    return RedisModule_RegisterBoolConfig(ctx, "flag", 1, 0, get_bool, set_bool, apply, &number) ||
           RedisModule_RegisterNumericConfig(ctx, "number", 5, 0, -10, 1000, get_number, set_number,
                                             apply, &number) ||
           RedisModule_RegisterNumericConfig(ctx, "memory", 1024, REDISMODULE_CONFIG_MEMORY, 0,
                                             LLONG_MAX, get_number, set_number, NULL, &memory) ||
           RedisModule_RegisterStringConfig(ctx, "word", "two words", 0, get_word, set_word, NULL,
                                            &word) ||
           RedisModule_RegisterStringConfig(ctx, "fixed", "", REDISMODULE_CONFIG_IMMUTABLE,
                                            get_word, set_word, NULL, &fixed) ||
           RedisModule_RegisterEnumConfig(ctx, "choice", 1, 0, choices, values, 4, get_choice,
                                          set_choice, apply, &choice) ||
           RedisModule_RegisterEnumConfig(ctx, "flags", 3, REDISMODULE_CONFIG_BITFLAGS, choices,
                                          values, 4, get_choice, set_choice, NULL, &flags);
}

static const char *error_of(int result)
{
    return result == REDISMODULE_OK ? "OK"
           : errno == EINVAL        ? "EINVAL"
           : errno == EALREADY      ? "EALREADY"
           : errno == EBUSY         ? "EBUSY"
                                    : "ERR";
}

/* What cannot be registered. */
static void register_bad(RedisModuleCtx *ctx, bool again)
{
    static const char *const names[] = {"a b", "a.b", "", "number", "fine"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) - !again; i++) {
        note("bad", error_of(RedisModule_RegisterNumericConfig(
                        ctx, names[i], 5, again ? 0 : REDISMODULE_CONFIG_BITFLAGS, 0, 10,
                        get_number, set_number, NULL, &memory)));
    }
}

static int s_log(RedisModuleCtx *ctx, String **argv, int argc)
{
    (void)argv;
    if (argc > 1) {
        register_bad(ctx, true);
    }
    RedisModule_ReplyWithCString(ctx, told);
    told[0] = '\0';
    return REDISMODULE_OK;
}

int RedisModule_OnLoad(RedisModuleCtx *ctx, String **argv, int argc)
{
    if (RedisModule_Init(ctx, "settings", 1, REDISMODULE_APIVER_1) != REDISMODULE_OK ||
        RedisModule_CreateCommand(ctx, "s.log", s_log, "", 0, 0, 0) != REDISMODULE_OK) {
        return REDISMODULE_ERR;
    }
    const char *how = argc > 0 ? text_of(argv[0]) : "";
    if (register_all(ctx) != REDISMODULE_OK) {
        return REDISMODULE_ERR;
    }
    if (strcmp(how, "bad") == 0) {
        register_bad(ctx, false);
    }
    return strcmp(how, "noload") == 0 ? REDISMODULE_OK : RedisModule_LoadConfigs(ctx);
}

int RedisModule_OnUnload(RedisModuleCtx *ctx)
{
    (void)ctx;
    RedisModule_FreeString(NULL, word);
    RedisModule_FreeString(NULL, fixed);
    word = fixed = NULL;
    return REDISMODULE_OK;
}
