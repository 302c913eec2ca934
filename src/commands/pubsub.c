/* Publish and subscribe: SUBSCRIBE and its kin, PUBLISH, PUBSUB. What a client subscribes to is its
 * thread's business (engine/pubsub.h); here are arguments and replies. What is published goes to
 * replicas and peers (engine/propagate.h): run there, it reaches their own subscribers. */
#include "commands/commands.h"
#include "base/glob.h"
#include "engine/propagate.h"
#include "engine/pubsub.h"

/* ---- subscribing ---- */

/* What the confirmations of a kind are called. */
static const char *const subscribe_words[] = {
    [PUBSUB_CHANNEL] = "subscribe", [PUBSUB_SHARD] = "ssubscribe", [PUBSUB_PATTERN] = "psubscribe"};
static const char *const unsubscribe_words[] = {[PUBSUB_CHANNEL] = "unsubscribe",
                                                [PUBSUB_SHARD] = "sunsubscribe",
                                                [PUBSUB_PATTERN] = "punsubscribe"};

/* One confirmation; a name without bytes' address is null. */
static void confirm(struct call *c, const char *word, struct slice name, uint64_t count)
{
    reply_push(c->reply, 3);
    reply_bulk_cstr(c->reply, word);
    if (name.ptr) {
        reply_bulk(c->reply, name);
    } else {
        reply_null(c->reply);
    }
    reply_i64(c->reply, (int64_t)count);
}

/* Messages need a connection that they can be sent to. Transactions may subscribe to channels and
 * patterns, for what was written before Redis 7; shard channels came later. */
static bool may_subscribe(struct call *c, enum pubsub_kind kind)
{
    if (c->session->owner && !(c->nested && kind == PUBSUB_SHARD)) {
        return true;
    }
    reply_errorf(c->reply, "ERR %s isn't allowed for a DENY BLOCKING client",
                 kind == PUBSUB_CHANNEL ? "SUBSCRIBE"
                 : kind == PUBSUB_SHARD ? "SSUBSCRIBE"
                                        : "PSUBSCRIBE");
    return false;
}

static void subscribe(struct call *c, enum pubsub_kind kind)
{
    const struct pubsub_delivery *delivery = pubsub_delivery();
    if (!may_subscribe(c, kind)) {
        return;
    }
    for (int i = 1; i < c->argc; i++) {
        uint64_t count = delivery->subscribe(c->session, kind, c->argv[i]);
        delivery->settle(c);
        confirm(c, subscribe_words[kind], c->argv[i], count);
    }
}

static void unsubscribe_one(struct call *c, enum pubsub_kind kind, struct slice name)
{
    const struct pubsub_delivery *delivery = pubsub_delivery();
    uint64_t count = delivery->unsubscribe(c->session, kind, name);
    delivery->settle(c);
    confirm(c, unsubscribe_words[kind], name, count);
}

static void unsubscribe(struct call *c, enum pubsub_kind kind)
{
    const struct pubsub_delivery *delivery = pubsub_delivery();
    if (!c->session->owner) {
        reply_error(c->reply, "ERR only a connection can unsubscribe");
        return;
    }
    for (int i = 1; i < c->argc; i++) {
        unsubscribe_one(c, kind, c->argv[i]);
    }
    if (c->argc > 1) {
        return;
    }
    struct slice name = delivery->some(c->session, kind);
    if (!name.ptr) {
        confirm(c, unsubscribe_words[kind], name, delivery->count(c->session, kind));
    }
    for (; name.ptr; name = delivery->some(c->session, kind)) {
        unsubscribe_one(c, kind, name);
    }
}

PLAIN_COMMAND(pubsub_subscribe)
{
    subscribe(c, PUBSUB_CHANNEL);
}

PLAIN_COMMAND(pubsub_psubscribe)
{
    subscribe(c, PUBSUB_PATTERN);
}

PLAIN_COMMAND(pubsub_ssubscribe)
{
    subscribe(c, PUBSUB_SHARD);
}

PLAIN_COMMAND(pubsub_unsubscribe)
{
    unsubscribe(c, PUBSUB_CHANNEL);
}

PLAIN_COMMAND(pubsub_punsubscribe)
{
    unsubscribe(c, PUBSUB_PATTERN);
}

PLAIN_COMMAND(pubsub_sunsubscribe)
{
    unsubscribe(c, PUBSUB_SHARD);
}

/* ---- publishing ---- */

/* Under the exclusive lock where other nodes are to hear of it, else without any. */
static void publish(struct call *c, enum pubsub_kind kind) NO_THREAD_SAFETY_ANALYSIS
{
    reply_i64(c->reply, (int64_t)pubsub_publish(c, kind, 1, 2));
    if (c->held == ACCESS_EXCLUSIVE) {
        keyspace_assert_exclusive();
        propagate_message(c);
    }
}

PLAIN_COMMAND(pubsub_publish_command)
{
    publish(c, PUBSUB_CHANNEL);
}

PLAIN_COMMAND(pubsub_spublish_command)
{
    publish(c, PUBSUB_SHARD);
}

/* ---- PUBSUB ---- */

struct listing {
    struct reply *reply;
    const struct slice *pattern; /* NULL: all */
    uint64_t count;
};

static void list_name(struct slice name, void *context)
{
    struct listing *l = context;
    if (!l->pattern || glob_match(*l->pattern, name, false)) {
        reply_bulk(l->reply, name);
        l->count++;
    }
}

static void list_names(struct call *c, enum pubsub_kind kind)
{
    struct listing l = {.reply = c->reply, .pattern = c->argc == 3 ? &c->argv[2] : NULL};
    if (c->argc > 3) {
        int len = c->argv[1].len < 128 ? (int)c->argv[1].len : 128;
        reply_errorf(c->reply,
                     "ERR unknown subcommand or wrong number of arguments for '%.*s'. Try PUBSUB "
                     "HELP.",
                     len, c->argv[1].ptr);
        return;
    }
    uint32_t handle = reply_deferred(c->reply);
    pubsub_each(kind, list_name, &l);
    reply_set_deferred_array(c->reply, handle, l.count);
}

static void count_subscribers(struct call *c, enum pubsub_kind kind)
{
    reply_array(c->reply, 2 * (uint64_t)(c->argc - 2));
    for (int i = 2; i < c->argc; i++) {
        reply_bulk(c->reply, c->argv[i]);
        reply_i64(c->reply, (int64_t)pubsub_subscribers(kind, c->argv[i]));
    }
}

PLAIN_COMMAND(pubsub_channels)
{
    list_names(c, PUBSUB_CHANNEL);
}

PLAIN_COMMAND(pubsub_shardchannels)
{
    list_names(c, PUBSUB_SHARD);
}

PLAIN_COMMAND(pubsub_numsub)
{
    count_subscribers(c, PUBSUB_CHANNEL);
}

PLAIN_COMMAND(pubsub_shardnumsub)
{
    count_subscribers(c, PUBSUB_SHARD);
}

PLAIN_COMMAND(pubsub_numpat)
{
    reply_i64(c->reply, (int64_t)pubsub_names(PUBSUB_PATTERN));
}

PLAIN_COMMAND(pubsub_help)
{
    static const char *const lines[] = {
        "CHANNELS [<pattern>]",
        "    Lists the channels that somebody subscribes to, or those that match <pattern>.",
        "NUMPAT",
        "    Tells how many patterns somebody subscribes to.",
        "NUMSUB [<channel> ...]",
        "    Tells the number of subscribers of each channel, patterns not counted.",
        "SHARDCHANNELS [<pattern>]",
        "    Lists the shard channels that somebody subscribes to, or those that match <pattern>.",
        "SHARDNUMSUB [<shardchannel> ...]",
        "    Tells the number of subscribers of each shard channel.",
        NULL,
    };
    call_reply_help(c, lines);
}

/* ---- tables ---- */

#define ASK_FLAGS (CMD_PUBSUB | CMD_LOADING | CMD_STALE)
#define LISTEN_FLAGS (ASK_FLAGS | CMD_NOSCRIPT | CMD_BARRIER | CMD_SUBSCRIBED | CMD_CONFIRMS)
#define PUBLISH_FLAGS (ASK_FLAGS | CMD_FAST | CMD_MAY_REPLICATE)

static const struct command_row pubsub_subcommands[] = {
    {.name = "channels",
     .run = pubsub_channels,
     .arity = -2,
     .flags = ASK_FLAGS | CMD_SLOW,
     .group = "pubsub",
     .since = "2.8.0",
     .summary = "Lists the channels that have subscribers.",
     .complexity = "O(N) where N is the number of such channels",
     .args = "[pattern]"},
    {.name = "help",
     .run = pubsub_help,
     .arity = 2,
     .flags = CMD_LOADING | CMD_STALE,
     .group = "pubsub",
     .since = "6.2.0",
     .summary = "Lists the subcommands.",
     .complexity = "O(1)"},
    {.name = "numpat",
     .run = pubsub_numpat,
     .arity = 2,
     .flags = ASK_FLAGS,
     .group = "pubsub",
     .since = "2.8.0",
     .summary = "Tells how many different patterns are subscribed to.",
     .complexity = "O(1)"},
    {.name = "numsub",
     .run = pubsub_numsub,
     .arity = -2,
     .flags = ASK_FLAGS,
     .group = "pubsub",
     .since = "2.8.0",
     .summary = "Tells how many subscribers channels have.",
     .complexity = "O(N) where N is the number of channels asked for",
     .args = "[channel [channel ...]]"},
    {.name = "shardchannels",
     .run = pubsub_shardchannels,
     .arity = -2,
     .flags = ASK_FLAGS | CMD_SLOW,
     .group = "pubsub",
     .since = "7.0.0",
     .summary = "Lists the shard channels that have subscribers.",
     .complexity = "O(N) where N is the number of such channels",
     .args = "[pattern]"},
    {.name = "shardnumsub",
     .run = pubsub_shardnumsub,
     .arity = -2,
     .flags = ASK_FLAGS,
     .group = "pubsub",
     .since = "7.0.0",
     .summary = "Tells how many subscribers shard channels have.",
     .complexity = "O(N) where N is the number of channels asked for",
     .args = "[shardchannel [shardchannel ...]]"},
    {.name = NULL},
};

const struct command_row pubsub_commands[] = {
    {.name = "psubscribe",
     .run = pubsub_psubscribe,
     .arity = -2,
     .flags = LISTEN_FLAGS | CMD_SENTINEL,
     .group = "pubsub",
     .since = "2.0.0",
     .summary = "Subscribes to all channels that match one of the patterns.",
     .complexity = "O(N) where N is the number of patterns",
     .args = "pattern [pattern ...]"},
    {.name = "publish",
     .run = pubsub_publish_command,
     .arity = 3,
     .flags = PUBLISH_FLAGS | CMD_SENTINEL,
     .group = "pubsub",
     .since = "2.0.0",
     .summary = "Sends a message to the subscribers of a channel.",
     .complexity = "O(N+M) where N is the number of subscribers and M that of patterns",
     .args = "channel message"},
    {.name = "pubsub",
     .arity = -2,
     .group = "pubsub",
     .since = "2.8.0",
     .summary = "Groups the commands that look at subscriptions.",
     .complexity = "Depends on the subcommand.",
     .subcommands = pubsub_subcommands},
    {.name = "punsubscribe",
     .run = pubsub_punsubscribe,
     .arity = -1,
     .flags = LISTEN_FLAGS | CMD_SENTINEL,
     .group = "pubsub",
     .since = "2.0.0",
     .summary = "Ends subscriptions to patterns, those given or all.",
     .complexity = "O(N) where N is the number of patterns",
     .args = "[pattern [pattern ...]]"},
    {.name = "spublish",
     .run = pubsub_spublish_command,
     .arity = 3,
     .flags = PUBLISH_FLAGS,
     .keys = "i1/r0,1,0/NOT_KEY",
     .group = "pubsub",
     .since = "7.0.0",
     .summary = "Sends a message to the subscribers of a shard channel.",
     .complexity = "O(N) where N is the number of subscribers",
     .args = "shardchannel message"},
    {.name = "ssubscribe",
     .run = pubsub_ssubscribe,
     .arity = -2,
     .flags = LISTEN_FLAGS,
     .keys = "i1/r-1,1,0/NOT_KEY",
     .group = "pubsub",
     .since = "7.0.0",
     .summary = "Subscribes to shard channels.",
     .complexity = "O(N) where N is the number of channels",
     .args = "shardchannel [shardchannel ...]"},
    {.name = "subscribe",
     .run = pubsub_subscribe,
     .arity = -2,
     .flags = LISTEN_FLAGS | CMD_SENTINEL,
     .group = "pubsub",
     .since = "2.0.0",
     .summary = "Subscribes to channels.",
     .complexity = "O(N) where N is the number of channels",
     .args = "channel [channel ...]"},
    {.name = "sunsubscribe",
     .run = pubsub_sunsubscribe,
     .arity = -1,
     .flags = LISTEN_FLAGS,
     .keys = "i1/r-1,1,0/NOT_KEY",
     .group = "pubsub",
     .since = "7.0.0",
     .summary = "Ends subscriptions to shard channels, those given or all.",
     .complexity = "O(N) where N is the number of channels",
     .args = "[shardchannel [shardchannel ...]]"},
    {.name = "unsubscribe",
     .run = pubsub_unsubscribe,
     .arity = -1,
     .flags = LISTEN_FLAGS | CMD_SENTINEL,
     .group = "pubsub",
     .since = "2.0.0",
     .summary = "Ends subscriptions to channels, those given or all.",
     .complexity = "O(N) where N is the number of channels",
     .args = "[channel [channel ...]]"},
    {.name = NULL},
};
