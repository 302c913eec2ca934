/* Messages that modules publish. They are no data: replicas publish what they are told by
 * themselves. */
#include "engine/pubsub.h"
#include "module/context.h"
#include "module/text.h"

static int publish(enum pubsub_kind kind, RedisModuleString *channel, RedisModuleString *message)
{
    struct slice words[] = {SLICE("publish"), text_slice(channel), text_slice(message)};
    struct call c = {.argc = 3, .argv = words, .nested = true};
    return (int)pubsub_publish(&c, kind, 1, 2);
}

static int rm_publish_message(RedisModuleCtx *ctx, RedisModuleString *channel,
                              RedisModuleString *message)
{
    (void)ctx;
    return publish(PUBSUB_CHANNEL, channel, message);
}

static int rm_publish_message_shard(RedisModuleCtx *ctx, RedisModuleString *channel,
                                    RedisModuleString *message)
{
    (void)ctx;
    return publish(PUBSUB_SHARD, channel, message);
}

const struct api_function message_functions[] = {
    API(PublishMessage, rm_publish_message),
    API(PublishMessageShard, rm_publish_message_shard),
    {NULL, NULL},
};
