/* INFO's commandstats, errorstats and latencystats sections: one line a command or error code that
 * ever was. */
#include "server/sections_priv.h"
#include "base/mem.h"
#include "engine/cmdstats.h"

#include <inttypes.h>

static void info_write_commandstats(struct buf *out)
{
    for (unsigned id = 0; id < command_id_count(); id++) {
        const struct command *cmd = command_by_id(id);
        struct cmdstats s = cmdstats_sum(cmd);
        if (s.calls || s.rejected || s.failed) {
            double us = (double)s.time_ns / 1000;
            buf_printf(out,
                       "cmdstat_%s:calls=%" PRIu64 ",usec=%.0f,usec_per_call=%.2f,"
                       "rejected_calls=%" PRIu64 ",failed_calls=%" PRIu64 "\r\n",
                       cmd->full_name, s.calls, us, s.calls ? us / (double)s.calls : 0, s.rejected,
                       s.failed);
        }
    }
}

static void info_append_error(const char *code, uint64_t count, void *context)
{
    buf_printf(context, "errorstat_%s:count=%" PRIu64 "\r\n", code, count);
}

static void info_write_errorstats(struct buf *out)
{
    errorstats_each(info_append_error, out);
}

static void info_append_percentiles(struct buf *out, const struct command *cmd,
                                    const struct histogram *h)
{
    const double *percentiles;
    int count = cmdstats_percentiles(&percentiles);
    buf_printf(out, "latency_percentiles_usec_%s:", cmd->full_name);
    for (int i = 0; i < count; i++) {
        double us = (double)histogram_percentile_ns(h, percentiles[i]) / 1000;
        buf_printf(out, "%sp%g=%.3f", i ? "," : "", percentiles[i], us);
    }
    buf_append_cstr(out, "\r\n");
}

static void info_write_latencystats(struct buf *out)
{
    if (!cmdstats_tracking()) {
        return;
    }
    struct histogram *h = mem_alloc(sizeof(*h));
    for (unsigned id = 0; id < command_id_count(); id++) {
        const struct command *cmd = command_by_id(id);
        histogram_clear(h);
        if (cmdstats_histogram(cmd, h)) {
            info_append_percentiles(out, cmd, h);
        }
    }
    mem_free(h);
}

const struct info_section command_sections[] = {
    {.name = "commandstats", .title = "Commandstats", .write = info_write_commandstats},
    {.name = "errorstats",
     .title = "Errorstats",
     .in_default = true,
     .write = info_write_errorstats},
    {.name = "latencystats", .title = "Latencystats", .write = info_write_latencystats},
    {.name = NULL},
};
