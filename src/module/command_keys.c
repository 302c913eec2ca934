/* Keys and channels of commands: what a module tells when it is asked for those of its own, and
 * what it asks of any command. */
#include "base/mem.h"
#include "module/run.h"
#include "module/text.h"

#include <errno.h>

/* Keys of which the places need no second look. */
#define FEW_KEYS 16

/* ---- the module tells ---- */

static int rm_is_keys_request(RedisModuleCtx *ctx)
{
    return ctx->key_request && !ctx->key_request->channels;
}

static int rm_is_channels_request(RedisModuleCtx *ctx)
{
    return ctx->key_request && ctx->key_request->channels;
}

static void add_place(struct key_request *request, int position, uint32_t flags)
{
    if (position <= 0 || position >= request->argc) {
        return;
    }
    if (request->count < request->max) {
        request->places[request->count] = (struct key_place){.index = position, .flags = flags};
    }
    request->count++;
}

/* Modules' flags of keys and ours are the same bits (a unit test compares them). */
static void rm_key_at_pos_with_flags(RedisModuleCtx *ctx, int position, int flags)
{
    if (rm_is_keys_request(ctx)) {
        add_place(ctx->key_request, position, (uint32_t)flags & (KEY_OF_PATH - 1));
    }
}

static void rm_key_at_pos(RedisModuleCtx *ctx, int position)
{
    rm_key_at_pos_with_flags(ctx, position, KEY_RW | KEY_ACCESS | KEY_UPDATE);
}

static_assert(CHANNEL_IS_PATTERN == REDISMODULE_CMD_CHANNEL_PATTERN &&
                  CHANNEL_PUBLISHED == REDISMODULE_CMD_CHANNEL_PUBLISH &&
                  CHANNEL_SUBSCRIBED == REDISMODULE_CMD_CHANNEL_SUBSCRIBE &&
                  CHANNEL_LEFT == REDISMODULE_CMD_CHANNEL_UNSUBSCRIBE,
              "the same bits");

static void rm_channel_at_pos_with_flags(RedisModuleCtx *ctx, int position, int flags)
{
    if (rm_is_channels_request(ctx)) {
        add_place(ctx->key_request, position, (uint32_t)flags);
    }
}

/* ---- the module asks ---- */

static const struct command *asked_command(RedisModuleString **argv, int argc)
{
    const struct command *cmd = argc > 0 ? command_find(text_slice(argv[0])) : NULL;
    if (cmd && cmd->subcommands && argc > 1) {
        cmd = command_find_sub(cmd, text_slice(argv[1]));
    }
    errno = ENOENT;
    if (cmd && !command_arity_fits(cmd, argc)) {
        errno = EINVAL;
        cmd = NULL;
    }
    return cmd;
}

static int *make_result(const struct key_place *places, int count, int **flags)
{
    int *indexes = mem_alloc((size_t)count * sizeof(*indexes));
    if (flags) {
        *flags = mem_alloc((size_t)count * sizeof(**flags));
    }
    for (int i = 0; i < count; i++) {
        indexes[i] = places[i].index;
        if (flags) {
            (*flags)[i] = (int)places[i].flags;
        }
    }
    return indexes;
}

static int *rm_get_command_keys_with_flags(RedisModuleCtx *ctx, RedisModuleString **argv, int argc,
                                           int *key_count, int **flags)
{
    const struct command *cmd = asked_command(argv, argc);
    *key_count = 0;
    if (!cmd) {
        return NULL;
    }
    struct slice *words = arena_alloc(&ctx->pool, (size_t)argc * sizeof(*words));
    for (int i = 0; i < argc; i++) {
        words[i] = text_slice(argv[i]);
    }
    struct key_place few[FEW_KEYS], *places = few;
    errno = 0;
    int count = command_find_keys(cmd, words, argc, few, FEW_KEYS);
    if (count > FEW_KEYS) {
        places = arena_alloc(&ctx->pool, (size_t)count * sizeof(*places));
        count = command_find_keys(cmd, words, argc, places, count);
    }
    if (count <= 0) {
        errno = count < 0 ? EINVAL : 0;
        return NULL;
    }
    *key_count = count;
    return make_result(places, count, flags);
}

static int *rm_get_command_keys(RedisModuleCtx *ctx, RedisModuleString **argv, int argc,
                                int *key_count)
{
    return rm_get_command_keys_with_flags(ctx, argv, argc, key_count, NULL);
}

const struct api_function command_key_functions[] = {
    API(IsKeysPositionRequest, rm_is_keys_request),
    API(IsChannelsPositionRequest, rm_is_channels_request),
    API(ChannelAtPosWithFlags, rm_channel_at_pos_with_flags),
    API(KeyAtPos, rm_key_at_pos),
    API(KeyAtPosWithFlags, rm_key_at_pos_with_flags),
    API(GetCommandKeys, rm_get_command_keys),
    API(GetCommandKeysWithFlags, rm_get_command_keys_with_flags),
    {NULL, NULL},
};
