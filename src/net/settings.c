/* See settings.h. */
#include "net/settings.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/num.h"
#include "net/client_memory.h"
#include "net/listener.h"
#include "net/open_files.h"
#include "net/tracking.h"

#include <stdio.h>
#include <string.h>

/* More than any machine has. */
#define CORES_MAX 4096

struct net_settings net_settings = {.affinity_first = -1};

static void set_bind(const struct slice *words, int count)
{
    for (int i = 0; i < net_settings.bind_count; i++) {
        mem_free(net_settings.bind[i]);
    }
    net_settings.bind_count = count;
    for (int i = 0; i < count; i++) {
        net_settings.bind[i] = mem_dup(words[i].ptr, words[i].len);
    }
}

void net_settings_teardown(void)
{
    set_bind(NULL, 0);
    mem_free(net_settings.unixsocket);
    net_settings.unixsocket = NULL;
}

static bool parse_bind(const struct option *option, const struct slice *words, int count,
                       const char **error)
{
    (void)option;
    if (count > BIND_MAX) {
        *error = "Too many bind addresses specified.";
        return false;
    }
    set_bind(words, count == 1 && words[0].len == 0 ? 0 : count);
    return true;
}

static void format_bind(const struct option *option, struct buf *out)
{
    (void)option;
    for (int i = 0; i < net_settings.bind_count; i++) {
        buf_printf(out, "%s%s", i ? " " : "", net_settings.bind[i]);
    }
}

static bool restart_listeners(const struct option *option, const char **error)
{
    if (listener_restart()) {
        return true;
    }
    *error = strcmp(option->name, "port") == 0 ? "Unable to listen on this port. Check server logs."
                                               : "Failed to bind to specified addresses.";
    return false;
}

static bool apply_maxclients(const struct option *option, const char **error)
{
    static _Thread_local char text[128];
    (void)option;
    int64_t possible = open_files_fit(net_settings.maxclients);
    if (possible >= net_settings.maxclients) {
        return true;
    }
    snprintf(text, sizeof(text),
             "The operating system is not able to handle the specified number of clients, try with "
             "%lld",
             (long long)possible);
    *error = text;
    return false;
}

/* server-thread-affinity true|false|N: thread 0 runs on the Nth core, which is core N - 1. */
static bool parse_affinity(const struct option *option, const struct slice *words, int count,
                           const char **error)
{
    int64_t first;
    (void)option;
    if (count == 1 &&
        (slice_equal_nocase(words[0], "true") || slice_equal_nocase(words[0], "yes"))) {
        net_settings.affinity_first = 0;
    } else if (count == 1 &&
               (slice_equal_nocase(words[0], "false") || slice_equal_nocase(words[0], "no"))) {
        net_settings.affinity_first = -1;
    } else if (count == 1 && num_parse_i64(words[0], &first) && first > 0 && first <= CORES_MAX) {
        net_settings.affinity_first = (int)first - 1;
    } else {
        *error = "argument must be 'true', 'false' or which core is the first, from 1 on";
        return false;
    }
    return true;
}

static void format_affinity(const struct option *option, struct buf *out)
{
    (void)option;
    if (net_settings.affinity_first > 0) {
        buf_printf(out, "%d", net_settings.affinity_first + 1);
    } else {
        buf_append_cstr(out, net_settings.affinity_first == 0 ? "true" : "false");
    }
}

/* client-output-buffer-limit <class> <hard> <soft> <seconds>, one or more times. */
static const char *const class_names[CLIENT_CLASS_COUNT] = {"normal", "slave", "pubsub"};

static int class_named(struct slice name)
{
    for (int i = 0; i < CLIENT_CLASS_COUNT; i++) {
        if (slice_equal_nocase(name, class_names[i])) {
            return i;
        }
    }
    return slice_equal_nocase(name, "replica") ? CLIENT_CLASS_REPLICA : -1;
}

static bool parse_limit(const struct slice *words, struct output_limit *limit, const char **error)
{
    uint64_t hard, soft;
    int64_t seconds;
    if (!num_parse_memory(words[1], &hard) || !num_parse_memory(words[2], &soft) ||
        hard > INT64_MAX || soft > INT64_MAX) {
        *error = "Error in hard, soft or soft_seconds setting in buffer limit configuration.";
        return false;
    }
    if (!num_parse_i64(words[3], &seconds) || seconds < 0) {
        *error = "Error in hard, soft or soft_seconds setting in buffer limit configuration.";
        return false;
    }
    *limit = (struct output_limit){(int64_t)hard, (int64_t)soft, seconds};
    return true;
}

static bool parse_output_limits(const struct option *option, const struct slice *words, int count,
                                const char **error)
{
    struct output_limit limits[CLIENT_CLASS_COUNT];
    (void)option;
    if (count == 1 && words[0].len == 0) {
        return true; /* nothing to change */
    }
    if (count == 0 || count % 4 != 0) {
        *error = "Wrong number of arguments in buffer limit configuration.";
        return false;
    }
    memcpy(limits, net_settings.output_limit, sizeof(limits));
    for (int i = 0; i < count; i += 4) {
        int class = class_named(words[i]);
        if (class < 0) {
            *error = "Invalid client class specified in buffer limit configuration.";
            return false;
        }
        if (!parse_limit(&words[i], &limits[class], error)) {
            return false;
        }
    }
    memcpy(net_settings.output_limit, limits, sizeof(limits));
    net_settings.normal_output_is_limited = limits[CLIENT_CLASS_NORMAL].hard_bytes > 0;
    return true;
}

static void format_output_limits(const struct option *option, struct buf *out)
{
    (void)option;
    for (int i = 0; i < CLIENT_CLASS_COUNT; i++) {
        const struct output_limit *l = &net_settings.output_limit[i];
        buf_printf(out, "%s%s %lld %lld %lld", i ? " " : "", class_names[i],
                   (long long)l->hard_bytes, (long long)l->soft_bytes, (long long)l->soft_seconds);
    }
}

static bool apply_maxmemory_clients(const struct option *option UNUSED, const char **error UNUSED)
{
    client_memory_recount_all();
    return true;
}

static bool trim_tracking(const struct option *option UNUSED, const char **error UNUSED)
{
    tracking_trim_all();
    return true;
}

const struct option net_options[] = {
    {.name = "server-threads",
     .alias = "io-threads",
     .type = OPTION_INT,
     .flags = OPTION_IMMUTABLE,
     .target = &net_settings.server_threads,
     .initial = "2",
     .min = 1,
     .max = 64},
    {.name = "server-thread-affinity",
     .type = OPTION_CUSTOM,
     .flags = OPTION_IMMUTABLE,
     .initial = "false",
     .parse = parse_affinity,
     .format = format_affinity},
    {.name = "min-clients-per-thread",
     .type = OPTION_INT,
     .target = &net_settings.min_clients_per_thread,
     .initial = "20",
     .min = 0,
     .max = 400},
    {.name = "active-client-balancing",
     .type = OPTION_BOOL,
     .target = &net_settings.active_client_balancing,
     .initial = "yes"},
    {.name = "replica-weighting-factor",
     .type = OPTION_INT,
     .target = &net_settings.replica_weighting_factor,
     .initial = "2",
     .min = 1,
     .max = INT32_MAX},
    {.name = "port",
     .type = OPTION_INT,
     .target = &net_settings.port,
     .initial = "6379",
     .min = 0,
     .max = 65535,
     .apply = restart_listeners},
    {.name = "bind",
     .type = OPTION_CUSTOM,
     .flags = OPTION_MULTI | OPTION_WORDLESS,
     .initial = "* -::*",
     .parse = parse_bind,
     .format = format_bind,
     .apply = restart_listeners},
    {.name = "unixsocket",
     .type = OPTION_STRING,
     .flags = OPTION_IMMUTABLE,
     .target = &net_settings.unixsocket,
     .initial = ""},
    {.name = "unixsocketperm",
     .type = OPTION_INT,
     .flags = OPTION_IMMUTABLE | OPTION_OCTAL,
     .target = &net_settings.unixsocketperm,
     .initial = "0",
     .min = 0,
     .max = 0777},
    {.name = "tcp-backlog",
     .type = OPTION_INT,
     .flags = OPTION_IMMUTABLE,
     .target = &net_settings.tcp_backlog,
     .initial = "511",
     .min = 0,
     .max = INT32_MAX},
    {.name = "tcp-keepalive",
     .type = OPTION_INT,
     .target = &net_settings.tcp_keepalive_s,
     .initial = "300",
     .min = 0,
     .max = INT32_MAX},
    {.name = "timeout",
     .type = OPTION_INT,
     .target = &net_settings.timeout_s,
     .initial = "0",
     .min = 0,
     .max = INT32_MAX},
    {.name = "maxclients",
     .type = OPTION_INT,
     .target = &net_settings.maxclients,
     .initial = "10000",
     .min = 1,
     .max = UINT32_MAX,
     .apply = apply_maxclients},
    {.name = "maxclients-reserved",
     .type = OPTION_INT,
     .target = &net_settings.maxclients_reserved,
     .initial = "0",
     .min = 0,
     .max = 100},
    {.name = "socket-mark-id",
     .type = OPTION_INT,
     .flags = OPTION_IMMUTABLE,
     .target = &net_settings.socket_mark_id,
     .initial = "0",
     .min = 0,
     .max = UINT32_MAX},
    {.name = "protected-mode",
     .type = OPTION_BOOL,
     .target = &net_settings.protected_mode,
     .initial = "yes"},
    {.name = "client-query-buffer-limit",
     .type = OPTION_MEMORY,
     .target = &net_settings.query_buffer_limit_bytes,
     .initial = "1gb",
     .min = 1024 * 1024,
     .max = INT64_MAX},
    {.name = "maxmemory-clients",
     .type = OPTION_MEMORY,
     .flags = OPTION_PERCENT,
     .target = &net_settings.maxmemory_clients,
     .initial = "0",
     .min = -100,
     .max = INT64_MAX,
     .apply = apply_maxmemory_clients},
    {.name = "tracking-table-max-keys",
     .type = OPTION_INT,
     .target = &net_settings.tracking_table_max_keys,
     .initial = "1000000",
     .min = 0,
     .max = INT64_MAX,
     .apply = trim_tracking},
    {.name = "client-output-buffer-limit",
     .type = OPTION_CUSTOM,
     .flags = OPTION_MULTI | OPTION_WORDLESS | OPTION_REPEAT | OPTION_WHOLE,
     .initial = "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60",
     .parse = parse_output_limits,
     .format = format_output_limits},
    {.name = NULL},
};
