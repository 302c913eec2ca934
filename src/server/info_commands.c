/* INFO's commandstats, errorstats and latencystats sections: one line a command or error code that
 * ever was. */
#include "server/sections_priv.h"
#include "base/field.h"
#include "base/mem.h"
#include "engine/cmdstats.h"

#include <stdio.h>

static void info_write_commandstats(struct buf *out)
{
    for (unsigned id = 0; id < command_id_count(); id++) {
        const struct command *cmd = command_by_id(id);
        struct cmdstats s = cmdstats_sum(cmd);
        if (s.calls || s.rejected || s.failed) {
            double us = (double)s.time_ns / 1000;
            field_part_text(out, "cmdstat_", cmd->full_name);
            field_part_u64(out, ":calls=", s.calls);
            field_part_fixed(out, ",usec=", us, 0);
            field_part_fixed(out, ",usec_per_call=", s.calls ? us / (double)s.calls : 0, 2);
            field_part_u64(out, ",rejected_calls=", s.rejected);
            field_part_u64(out, ",failed_calls=", s.failed);
            buf_append_cstr(out, "\r\n");
        }
    }
}

static void info_append_error(const char *code, uint64_t count, void *context)
{
    field_part_text(context, "errorstat_", code);
    field_part_u64(context, ":count=", count);
    buf_append_cstr(context, "\r\n");
}

static void info_write_errorstats(struct buf *out)
{
    errorstats_each(info_append_error, out);
}

/* "p99.9=" as a command's line has it, the comma before the second one included. */
#define PERCENTILE_LABEL_BYTES 32

static void info_append_percentiles(struct buf *out, const struct command *cmd,
                                    const struct histogram *h,
                                    char (*labels)[PERCENTILE_LABEL_BYTES])
{
    const double *percentiles;
    uint64_t values_ns[CMDSTATS_PERCENTILES_MAX];
    int count = cmdstats_percentiles(&percentiles);
    histogram_percentiles_ns(h, percentiles, count, values_ns);
    field_part_text(out, "latency_percentiles_usec_", cmd->full_name);
    buf_append_char(out, ':');
    for (int i = 0; i < count; i++) {
        field_part_fixed(out, labels[i], (double)values_ns[i] / 1000, 3);
    }
    buf_append_cstr(out, "\r\n");
}

static void info_write_latencystats(struct buf *out)
{
    const double *percentiles;
    int count = cmdstats_percentiles(&percentiles);
    if (!cmdstats_tracking()) {
        return;
    }
    struct histogram *h = mem_calloc(1, sizeof(*h));
    char(*labels)[PERCENTILE_LABEL_BYTES] = mem_alloc((size_t)(count + 1) * sizeof(*labels));
    for (int i = 0; i < count; i++) {
        snprintf(labels[i], sizeof(labels[i]), "%sp%g=", i ? "," : "", percentiles[i]);
    }
    for (unsigned id = 0; id < command_id_count(); id++) {
        const struct command *cmd = command_by_id(id);
        if (cmdstats_histogram(cmd, h)) {
            info_append_percentiles(out, cmd, h, labels);
        }
    }
    mem_free(labels);
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
