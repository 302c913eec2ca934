/* LATENCY: the spikes that the engine noted, and the histograms of commands' times. */
#include "commands/commands.h"
#include "base/clock.h"
#include "base/mem.h"
#include "engine/call.h"
#include "engine/execute.h"
#include "engine/cmdstats.h"
#include "engine/latency.h"

/* ---- Spikes ---- */

PLAIN_COMMAND(latency_command_latest)
{
    latency_reply_latest(c->reply);
}

PLAIN_COMMAND(latency_command_history)
{
    latency_reply_history(c->reply, c->argv[2]);
}

PLAIN_COMMAND(latency_command_reset)
{
    reply_i64(c->reply, latency_reset(c->argv + 2, c->argc - 2));
}

PLAIN_COMMAND(latency_command_graph)
{
    struct buf out = {0};
    if (latency_graph(c->argv[2], c->now_ms / 1000, &out)) {
        reply_verbatim(c->reply, "txt", buf_slice(&out));
    } else {
        struct slice event = c->argv[2];
        reply_errorf(c->reply, "ERR No samples available for event '%.*s'",
                     (int)(event.len < 128 ? event.len : 128), event.ptr);
    }
    buf_deinit(&out);
}

PLAIN_COMMAND(latency_command_doctor)
{
    struct buf out = {0};
    latency_doctor(c->now_ms / 1000, &out);
    reply_verbatim(c->reply, "txt", buf_slice(&out));
    buf_deinit(&out);
}

/* ---- Histograms ---- */

/* Replies one command's map; only steps that add samples are shown, each with the count up to it.
 */
static void histogram_reply(struct reply *r, const struct histogram *h)
{
    uint64_t total = histogram_total(h), seen = 0, shown = 0, steps = 0;
    reply_map(r, 2);
    reply_bulk_cstr(r, "calls");
    reply_i64(r, (int64_t)total);
    reply_bulk_cstr(r, "histogram_usec");
    uint32_t map = reply_deferred(r);
    unsigned bucket = 0;
    for (unsigned power = HISTOGRAM_STEP_FIRST_POWER; seen < total && power < 64; power++) {
        seen += histogram_step_count(h, power, &bucket);
        if (seen > shown) {
            reply_i64(r, histogram_step_label_us(power));
            reply_i64(r, (int64_t)seen);
            shown = seen;
            steps++;
        }
    }
    reply_set_deferred_map(r, map, steps);
}

/* Replies name and map of one command if it ever ran. */
static uint64_t histogram_of_command(struct reply *r, const struct command *cmd,
                                     struct histogram *scratch)
{
    histogram_clear(scratch);
    if (!cmdstats_histogram(cmd, scratch)) {
        return 0;
    }
    reply_bulk_cstr(r, cmd->full_name);
    histogram_reply(r, scratch);
    return 1;
}

/* A container's histograms are those of its subcommands. */
static uint64_t histogram_of_family(struct reply *r, const struct command *cmd,
                                    struct histogram *scratch)
{
    uint64_t shown = histogram_of_command(r, cmd, scratch);
    for (unsigned i = 0; i < cmd->subcommand_count; i++) {
        shown += histogram_of_command(r, &cmd->subcommands[i], scratch);
    }
    return shown;
}

PLAIN_COMMAND(latency_command_histogram)
{
    struct histogram *scratch = mem_calloc(1, sizeof(*scratch));
    uint32_t map = reply_deferred(c->reply);
    uint64_t shown = 0;
    call_settle_accounts();
    if (c->argc == 2) {
        for (unsigned i = 0; i < command_count(); i++) {
            shown += histogram_of_family(c->reply, command_at(i), scratch);
        }
    }
    for (int i = 2; i < c->argc; i++) {
        const struct command *cmd = command_find_full(c->argv[i]);
        shown += cmd ? histogram_of_family(c->reply, cmd, scratch) : 0;
    }
    reply_set_deferred_map(c->reply, map, shown);
    mem_free(scratch);
}

PLAIN_COMMAND(latency_command_help)
{
    static const char *const lines[] = {
        "DOCTOR",
        "    Reply in words what the spikes look like and what may help.",
        "GRAPH <event>",
        "    Reply a small graph of an event's spikes.",
        "HISTOGRAM [<command> ...]",
        "    Reply how long commands took: for steps of microseconds the number of calls up to it.",
        "    Without names, all commands that ever ran.",
        "HISTORY <event>",
        "    Reply time and milliseconds of an event's spikes.",
        "LATEST",
        "    Reply the latest and the largest spike of each event.",
        "RESET [<event> ...]",
        "    Forget the spikes of the events, or of all.",
        NULL,
    };
    call_reply_help(c, lines);
}

#define LATENCY_FLAGS (CMD_ADMIN | CMD_NOSCRIPT | CMD_LOADING | CMD_STALE)
#define LATENCY_TIPS "nondeterministic_output,request_policy:all_nodes,response_policy:special"

static const struct command_row latency_subcommands[] = {
    {.name = "doctor",
     .run = latency_command_doctor,
     .arity = 2,
     .flags = LATENCY_FLAGS,
     .tips = LATENCY_TIPS,
     .group = "server",
     .since = "2.8.13",
     .summary = "Reports about latency spikes in words.",
     .complexity = "O(1)"},
    {.name = "graph",
     .run = latency_command_graph,
     .arity = 3,
     .flags = LATENCY_FLAGS,
     .tips = LATENCY_TIPS,
     .group = "server",
     .since = "2.8.13",
     .summary = "Draws the spikes of an event.",
     .complexity = "O(1)",
     .args = "event"},
    {.name = "help",
     .run = latency_command_help,
     .arity = 2,
     .flags = CMD_LOADING | CMD_STALE,
     .group = "server",
     .since = "2.8.13",
     .summary = "Lists the subcommands.",
     .complexity = "O(1)"},
    {.name = "histogram",
     .run = latency_command_histogram,
     .arity = -2,
     .flags = LATENCY_FLAGS,
     .tips = LATENCY_TIPS,
     .group = "server",
     .since = "7.0.0",
     .summary = "Shows how long commands took, as cumulative histograms.",
     .complexity = "O(N) where N is the number of commands shown",
     .args = "[COMMAND [COMMAND ...]]"},
    {.name = "history",
     .run = latency_command_history,
     .arity = 3,
     .flags = LATENCY_FLAGS,
     .tips = LATENCY_TIPS,
     .group = "server",
     .since = "2.8.13",
     .summary = "Lists the spikes of an event.",
     .complexity = "O(1)",
     .args = "event"},
    {.name = "latest",
     .run = latency_command_latest,
     .arity = 2,
     .flags = LATENCY_FLAGS,
     .tips = LATENCY_TIPS,
     .group = "server",
     .since = "2.8.13",
     .summary = "Shows the latest spike of each event.",
     .complexity = "O(1)"},
    {.name = "reset",
     .run = latency_command_reset,
     .arity = -2,
     .flags = LATENCY_FLAGS,
     .tips = "request_policy:all_nodes,response_policy:agg_sum",
     .group = "server",
     .since = "2.8.13",
     .summary = "Forgets spikes.",
     .complexity = "O(1)",
     .args = "[event [event ...]]"},
    {.name = NULL},
};

const struct command_row latency_commands[] = {
    {.name = "latency",
     .run = NULL,
     .arity = -2,
     .group = "server",
     .since = "2.8.13",
     .summary = "Holds the commands about latency.",
     .complexity = "Depends on the subcommand.",
     .subcommands = latency_subcommands},
    {.name = NULL},
};
