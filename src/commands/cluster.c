/* The cluster commands of a server that is no cluster node: all known, all refused in the words
 * that cluster clients test for. */
#include "commands/commands.h"
#include "engine/call.h"

PLAIN_COMMAND(cluster_refuse)
{
    reply_error(c->reply, "ERR This instance has cluster support disabled");
}

/* A subcommand's row. */
#define CLUSTER_ROW(word, count, flag_bits, version, syntax, text)                                 \
    {                                                                                              \
        .name = (word), .run = cluster_refuse, .arity = (count), .flags = (flag_bits),             \
        .group = "cluster", .since = (version), .summary = (text), .complexity = "O(1)",           \
        .args = (syntax)                                                                           \
    }
#define CLUSTER_ROW_TIP(word, count, flag_bits, version, syntax, text)                             \
    {                                                                                              \
        .name = (word), .run = cluster_refuse, .arity = (count), .flags = (flag_bits),             \
        .tips = "nondeterministic_output", .group = "cluster", .since = (version),                 \
        .summary = (text), .complexity = "O(1)", .args = (syntax)                                  \
    }
#define CLUSTER_ADMIN (CMD_NO_ASYNC_LOADING | CMD_ADMIN | CMD_STALE)
#define CLUSTER_ASK (CMD_LOADING | CMD_STALE)

static const struct command_row cluster_subcommands[] = {
    CLUSTER_ROW("addslots", -3, CLUSTER_ADMIN, "3.0.0", "slot [slot ...]",
                "Gives hash slots to this node."),
    CLUSTER_ROW("addslotsrange", -4, CLUSTER_ADMIN, "7.0.0",
                "start-slot end-slot [start-slot end-slot ...]",
                "Gives ranges of hash slots to this node."),
    CLUSTER_ROW_TIP("bumpepoch", 2, CLUSTER_ADMIN, "3.0.0", NULL,
                    "Raises the configuration epoch of this node."),
    CLUSTER_ROW_TIP("count-failure-reports", 3, CMD_ADMIN | CMD_STALE, "3.0.0", "node-id",
                    "Counts the reports that say a node has failed."),
    CLUSTER_ROW("countkeysinslot", 3, CMD_STALE, "3.0.0", "slot",
                "Counts the keys of a hash slot."),
    CLUSTER_ROW("delslots", -3, CLUSTER_ADMIN, "3.0.0", "slot [slot ...]",
                "Takes hash slots from this node."),
    CLUSTER_ROW("delslotsrange", -4, CLUSTER_ADMIN, "7.0.0",
                "start-slot end-slot [start-slot end-slot ...]",
                "Takes ranges of hash slots from this node."),
    CLUSTER_ROW("failover", -2, CLUSTER_ADMIN, "3.0.0", "[FORCE|TAKEOVER]",
                "Makes this replica take over from its primary."),
    CLUSTER_ROW("flushslots", 2, CLUSTER_ADMIN, "3.0.0", NULL,
                "Takes all hash slots from this node."),
    CLUSTER_ROW("forget", 3, CLUSTER_ADMIN, "3.0.0", "node-id",
                "Drops a node from this node's list."),
    CLUSTER_ROW_TIP("getkeysinslot", 4, CMD_STALE, "3.0.0", "slot count",
                    "Lists keys of a hash slot."),
    CLUSTER_ROW("help", 2, CLUSTER_ASK, "5.0.0", NULL, "Lists the subcommands."),
    CLUSTER_ROW_TIP("info", 2, CLUSTER_ASK, "3.0.0", NULL, "Shows the state of the cluster."),
    CLUSTER_ROW("keyslot", 3, CMD_STALE, "3.0.0", "key", "Computes the hash slot of a key."),
    CLUSTER_ROW_TIP("links", 2, CMD_STALE, "7.0.0", NULL,
                    "Lists the links to and from other nodes."),
    CLUSTER_ROW("meet", -4, CLUSTER_ADMIN, "3.0.0", "ip port [cluster-bus-port]",
                "Introduces another node to this one."),
    CLUSTER_ROW("myid", 2, CLUSTER_ASK, "3.0.0", NULL, "Shows the id of this node."),
    CLUSTER_ROW_TIP("myshardid", 2, CLUSTER_ASK, "7.2.0", NULL,
                    "Shows the id of this node's shard."),
    CLUSTER_ROW_TIP("nodes", 2, CLUSTER_ASK, "3.0.0", NULL,
                    "Shows the cluster as this node sees it."),
    CLUSTER_ROW_TIP("replicas", 3, CMD_ADMIN | CMD_STALE, "5.0.0", "node-id",
                    "Lists the replicas of a primary."),
    CLUSTER_ROW("replicate", 3, CLUSTER_ADMIN, "3.0.0", "node-id",
                "Makes this node a replica of a primary."),
    CLUSTER_ROW("reset", -2, CMD_ADMIN | CMD_STALE | CMD_NOSCRIPT, "3.0.0", "[HARD|SOFT]",
                "Makes this node forget the cluster."),
    CLUSTER_ROW("saveconfig", 2, CLUSTER_ADMIN, "3.0.0", NULL,
                "Writes the node's configuration to disk."),
    CLUSTER_ROW("set-config-epoch", 3, CLUSTER_ADMIN, "3.0.0", "config-epoch",
                "Sets the configuration epoch of a new node."),
    CLUSTER_ROW("setslot", -4, CLUSTER_ADMIN | CMD_MAY_REPLICATE, "3.0.0",
                "slot <IMPORTING importing|MIGRATING migrating|NODE node|STABLE> [TIMEOUT timeout]",
                "Sets the state of a hash slot."),
    CLUSTER_ROW_TIP("shards", 2, CLUSTER_ASK, "7.0.0", NULL, "Shows which shard has which slots."),
    {.name = "slaves",
     .run = cluster_refuse,
     .arity = 3,
     .flags = CMD_ADMIN | CMD_STALE,
     .tips = "nondeterministic_output",
     .group = "cluster",
     .since = "3.0.0",
     .summary = "Lists the replicas of a primary.",
     .complexity = "O(1)",
     .args = "node-id",
     .deprecated_since = "5.0.0",
     .replaced_by = "`CLUSTER REPLICAS`"},
    {.name = "slots",
     .run = cluster_refuse,
     .arity = 2,
     .flags = CLUSTER_ASK,
     .tips = "nondeterministic_output",
     .group = "cluster",
     .since = "3.0.0",
     .summary = "Shows which node has which slots.",
     .complexity = "O(1)",
     .deprecated_since = "7.0.0",
     .replaced_by = "`CLUSTER SHARDS`"},
    {.name = NULL},
};

const struct command_row cluster_commands[] = {
    {.name = "asking",
     .run = cluster_refuse,
     .arity = 1,
     .flags = CMD_FAST,
     .categories = CATEGORY_CONNECTION,
     .group = "cluster",
     .since = "3.0.0",
     .summary = "Lets the next command into a slot that is being moved here.",
     .complexity = "O(1)"},
    {.name = "cluster",
     .run = NULL,
     .arity = -2,
     .group = "cluster",
     .since = "3.0.0",
     .summary = "Holds the commands of Redis Cluster.",
     .complexity = "Depends on the subcommand.",
     .subcommands = cluster_subcommands},
    {.name = "readonly",
     .run = cluster_refuse,
     .arity = 1,
     .flags = CMD_FAST | CMD_LOADING | CMD_STALE,
     .categories = CATEGORY_CONNECTION,
     .group = "cluster",
     .since = "3.0.0",
     .summary = "Lets the connection read from a replica of a cluster.",
     .complexity = "O(1)"},
    {.name = "readwrite",
     .run = cluster_refuse,
     .arity = 1,
     .flags = CMD_FAST | CMD_LOADING | CMD_STALE,
     .categories = CATEGORY_CONNECTION,
     .group = "cluster",
     .since = "3.0.0",
     .summary = "Undoes READONLY for the connection.",
     .complexity = "O(1)"},
    {.name = NULL},
};
