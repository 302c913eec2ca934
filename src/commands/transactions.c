/* MULTI, EXEC, DISCARD, WATCH, UNWATCH: doors to the engine's transactions. A call's execution is
 * what it has from the transaction that it was sent in; NULL outside. */
#include "commands/commands.h"
#include "engine/transaction.h"

PLAIN_COMMAND(transactions_multi)
{
    if (c->execution) {
        reply_error(c->reply, "ERR MULTI calls can not be nested");
    } else {
        reply_ok(c->reply);
    }
}

PLAIN_COMMAND(transactions_exec)
{
    transaction_run(c);
}

PLAIN_COMMAND(transactions_discard)
{
    if (!c->execution) {
        reply_error(c->reply, "ERR DISCARD without MULTI");
        return;
    }
    transaction_unwatch(c);
    reply_ok(c->reply);
}

PLAIN_COMMAND(transactions_watch)
{
    if (c->execution) {
        reply_error(c->reply, "ERR WATCH inside MULTI is not allowed");
        return;
    }
    transaction_watch(c);
    reply_ok(c->reply);
}

PLAIN_COMMAND(transactions_unwatch)
{
    transaction_unwatch(c);
    reply_ok(c->reply);
}

#define TRANSACTION_FLAGS (CMD_NOSCRIPT | CMD_LOADING | CMD_STALE | CMD_TRANSACTION)
#define TRANSACTION_FAST_FLAGS (TRANSACTION_FLAGS | CMD_FAST | CMD_ALLOW_BUSY)

const struct command_row transaction_commands[] = {
    {.name = "discard",
     .run = transactions_discard,
     .arity = 1,
     .flags = TRANSACTION_FAST_FLAGS,
     .categories = CATEGORY_TRANSACTION,
     .transaction = TRANSACTION_DROPS,
     .group = "transactions",
     .since = "2.0.0",
     .summary = "Throws the queued commands away and ends the transaction.",
     .complexity = "O(N) where N is the number of commands in the queue"},
    {.name = "exec",
     .run = transactions_exec,
     .arity = 1,
     .flags = TRANSACTION_FLAGS | CMD_SKIP_SLOWLOG | CMD_SLOW,
     .categories = CATEGORY_TRANSACTION,
     .transaction = TRANSACTION_RUNS,
     .group = "transactions",
     .since = "1.2.0",
     .summary = "Runs the queued commands, with nobody else's in between.",
     .complexity = "That of the commands in the queue"},
    {.name = "multi",
     .run = transactions_multi,
     .arity = 1,
     .flags = TRANSACTION_FAST_FLAGS | CMD_NO_MULTI,
     .categories = CATEGORY_TRANSACTION,
     .transaction = TRANSACTION_OPENS,
     .group = "transactions",
     .since = "1.2.0",
     .summary = "Begins a transaction: commands are queued from now on.",
     .complexity = "O(1)"},
    {.name = "unwatch",
     .run = transactions_unwatch,
     .arity = 1,
     .flags = TRANSACTION_FAST_FLAGS,
     .categories = CATEGORY_TRANSACTION,
     .group = "transactions",
     .since = "2.2.0",
     .summary = "Forgets all watched keys.",
     .complexity = "O(N) where N is the number of watched keys"},
    {.name = "watch",
     .run = transactions_watch,
     .arity = -2,
     .flags = TRANSACTION_FAST_FLAGS | CMD_NO_MULTI,
     .categories = CATEGORY_TRANSACTION,
     .keys = "i1/r-1,1,0/RO",
     .transaction = TRANSACTION_BESIDE,
     .group = "transactions",
     .since = "2.2.0",
     .summary = "Watches keys: the next transaction runs only if none of them has changed.",
     .complexity = "O(N) where N is the number of keys",
     .args = "key [key ...]"},
    {.name = NULL},
};
