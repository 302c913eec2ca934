/* SAVE, BGSAVE, LASTSAVE. */
#include "persist/persist.h"

#include "base/stats.h"
#include "engine/call.h"
#include "persist/save.h"

WORLD_COMMAND(save_command)
{
    gil_assert_world();
    enum save_result result = save_now();
    stats_add(STAT_RDB_SAVES, result != SAVE_RUNNING);
    switch (result) {
    case SAVE_DONE:
        reply_ok(c->reply);
        return;
    case SAVE_RUNNING:
    case SAVE_SCHEDULED: /* in the background only, as is the next */
    case SAVE_BUSY:
        reply_error(c->reply, "ERR Background save already in progress");
        return;
    case SAVE_FAILED:
        reply_error(c->reply, "ERR saving failed, see the log");
        return;
    }
}

WORLD_COMMAND(bgsave_command)
{
    gil_assert_world();
    bool schedule = c->argc == 2 && call_arg_is(c, 1, "schedule");
    if (c->argc > 1 && !schedule) {
        reply_syntax_error(c->reply);
        return;
    }
    switch (save_in_background()) {
    case SAVE_DONE:
        reply_status(c->reply, "Background saving started");
        return;
    case SAVE_SCHEDULED:
        reply_status(c->reply, "Background saving scheduled");
        return;
    case SAVE_RUNNING:
        reply_error(c->reply, "ERR Background save already in progress");
        return;
    case SAVE_BUSY:
        if (schedule) {
            save_schedule();
            reply_status(c->reply, "Background saving scheduled");
        } else {
            reply_error(c->reply,
                        "ERR Another child process is active (AOF?): can't BGSAVE right now. Use "
                        "BGSAVE SCHEDULE in order to schedule a BGSAVE whenever possible.");
        }
        return;
    case SAVE_FAILED:
        reply_error(c->reply, "ERR saving in the background failed, see the log");
        return;
    }
}

PLAIN_COMMAND(lastsave_command)
{
    reply_i64(c->reply, save_last_s());
}

const struct command_row save_commands[] = {
    {.name = "bgsave",
     .run = bgsave_command,
     .arity = -1,
     .flags = CMD_ADMIN | CMD_NOSCRIPT | CMD_NO_ASYNC_LOADING | CMD_WORLD | CMD_SLOW,
     .group = "server",
     .since = "1.0.0",
     .summary = "Saves the data set in the background.",
     .complexity = "O(1), and the time that a fork takes",
     .args = "[SCHEDULE]",
     .history = "3.2.2:Takes SCHEDULE."},
    {.name = "lastsave",
     .run = lastsave_command,
     .arity = 1,
     .flags = CMD_LOADING | CMD_STALE | CMD_FAST,
     .categories = CATEGORY_ADMIN | CATEGORY_DANGEROUS,
     .tips = "nondeterministic_output",
     .group = "server",
     .since = "1.0.0",
     .summary = "Tells when the data set was saved last: Unix seconds.",
     .complexity = "O(1)"},
    {.name = "save",
     .run = save_command,
     .arity = 1,
     .flags = CMD_ADMIN | CMD_NOSCRIPT | CMD_NO_ASYNC_LOADING | CMD_NO_MULTI | CMD_WORLD | CMD_SLOW,
     .group = "server",
     .since = "1.0.0",
     .summary = "Saves the data set while everybody waits.",
     .complexity = "O(N) for N keys"},
    {.name = NULL},
};
