/* See exposition.h. What INFO does not tell. */
#include "metrics/exposition_priv.h"

#include "base/mem.h"
#include "base/num.h"
#include "engine/cmdstats.h"
#include "engine/latency.h"
#include "engine/slowlog.h"

/* The last step of the histograms but the endless one: 2^30 nanoseconds, a second. */
#define LAST_POWER 30

/* ---- histograms ---- */

static void write_bucket(struct exposition *x, struct slice command, struct slice edge,
                         uint64_t count)
{
    exposition_sample(x, "redis_commands_latencies_usec", false, "_bucket");
    exposition_label(x, "cmd", command, true);
    exposition_label(x, "le", edge, false);
    exposition_value_u64(x, true, count);
}

/* The steps are LATENCY HISTOGRAM's, and always the same, so that they can be added up. */
static void write_histogram(struct exposition *x, const struct command *cmd,
                            const struct histogram *h)
{
    struct slice command = slice_cstr(cmd->full_name);
    uint64_t seen = 0, total = histogram_total(h);
    unsigned bucket = 0;
    for (unsigned power = HISTOGRAM_STEP_FIRST_POWER; power <= LAST_POWER; power++) {
        char edge[NUM_I64_MAX_CHARS];
        size_t len = num_format_i64(edge, histogram_step_label_us(power));
        seen += histogram_step_count(h, power, &bucket);
        write_bucket(x, command, slice_of(edge, len), seen < total ? seen : total);
    }
    write_bucket(x, command, SLICE("+Inf"), total);
    exposition_sample(x, "redis_commands_latencies_usec", false, "_sum");
    exposition_label(x, "cmd", command, true);
    exposition_value_u64(x, true, cmdstats_sum(cmd).time_ns / 1000);
    exposition_sample(x, "redis_commands_latencies_usec", false, "_count");
    exposition_label(x, "cmd", command, true);
    exposition_value_u64(x, true, total);
}

static void write_histograms(struct exposition *x)
{
    struct histogram *h = mem_calloc(1, sizeof(*h));
    bool first = true;
    for (unsigned id = 0; id < command_id_count(); id++) {
        const struct command *cmd = command_by_id(id);
        if (!cmdstats_histogram(cmd, h)) {
            continue;
        }
        if (first) {
            exposition_family(x, "redis_commands_latencies_usec", "histogram",
                              "LATENCY HISTOGRAM, microseconds", NULL);
            first = false;
        }
        write_histogram(x, cmd, h);
    }
    mem_free(h);
}

/* ---- the slow log, spikes ---- */

static void keep_newest(const struct slowlog_view *entry, void *context)
{
    struct slowlog_view *newest = context;
    newest->id = entry->id;
    newest->duration_us = entry->duration_us;
}

static void write_gauge(struct exposition *x, const char *name, const char *help, uint64_t value)
{
    exposition_family(x, name, "gauge", help, NULL);
    exposition_sample(x, name, false, "");
    exposition_value_u64(x, false, value);
}

static void write_slowlog(struct exposition *x)
{
    struct slowlog_view newest = {.id = 0};
    write_gauge(x, "redis_slowlog_length", "SLOWLOG LEN", slowlog_len());
    if (slowlog_each(1, keep_newest, &newest) > 0) {
        write_gauge(x, "redis_slowlog_last_id", "The id of the newest entry of SLOWLOG GET",
                    newest.id);
        exposition_family(x, "redis_last_slow_execution_duration_seconds", "gauge",
                          "What the newest entry of SLOWLOG GET took", NULL);
        exposition_sample(x, "redis_last_slow_execution_duration_seconds", false, "");
        exposition_value_fixed(x, false, (double)newest.duration_us / 1e6);
    }
}

static void write_spikes(struct exposition *x)
{
    struct latency_spike spike;
    for (unsigned i = 0; latency_spike_at(i, &spike); i++) {
        if (i == 0) {
            exposition_family(x, "redis_latency_spike_last", "gauge",
                              "LATENCY LATEST: when the last spike was, seconds since 1970", NULL);
        }
        exposition_sample(x, "redis_latency_spike_last", false, "");
        exposition_label(x, "event_name", slice_cstr(spike.event), true);
        exposition_value_u64(x, true, (uint64_t)spike.wall_s);
    }
    for (unsigned i = 0; latency_spike_at(i, &spike); i++) {
        if (i == 0) {
            exposition_family(x, "redis_latency_spike_duration_seconds", "gauge",
                              "LATENCY LATEST: what the last spike took", NULL);
        }
        exposition_sample(x, "redis_latency_spike_duration_seconds", false, "");
        exposition_label(x, "event_name", slice_cstr(spike.event), true);
        exposition_value_fixed(x, true, (double)spike.duration_ms / 1e3);
    }
}

void exposition_write_others(struct exposition *x, int64_t start_s)
{
    write_gauge(x, "redis_up", "The server answers", 1);
    write_gauge(x, "redis_start_time_seconds", "When the server started, seconds since 1970",
                (uint64_t)start_s);
    write_histograms(x);
    write_slowlog(x);
    write_spikes(x);
}
