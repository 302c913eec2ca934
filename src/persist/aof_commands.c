/* BGREWRITEAOF. */
#include "persist/persist.h"

#include "engine/call.h"
#include "persist/aof.h"

WORLD_COMMAND(bgrewriteaof_command)
{
    gil_assert_world();
    switch (aof_rewrite()) {
    case AOF_STARTED:
        reply_status(c->reply, "Background append only file rewriting started");
        return;
    case AOF_SCHEDULED:
        reply_status(c->reply, "Background append only file rewriting scheduled");
        return;
    case AOF_RUNNING:
        reply_error(c->reply, "ERR Background append only file rewriting already in progress");
        return;
    case AOF_FAILED:
        reply_error(c->reply,
                    "ERR Can't execute an AOF background rewriting. Please check the server logs "
                    "for more information.");
        return;
    }
}

const struct command_row aof_commands[] = {
    {.name = "bgrewriteaof",
     .run = bgrewriteaof_command,
     .arity = 1,
     .flags = CMD_ADMIN | CMD_NOSCRIPT | CMD_NO_ASYNC_LOADING | CMD_WORLD | CMD_SLOW,
     .group = "server",
     .since = "1.0.0",
     .summary = "Rewrites the append-only file in the background: shorter, with the same data.",
     .complexity = "O(1), and the time that a fork takes"},
    {.name = NULL},
};
