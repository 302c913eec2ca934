/* See compat_options.h. */
#include "server/compat_options.h"

#include "base/mem.h"
#include "base/num.h"

#include <stdio.h>
#include <string.h>

/* Each row keeps its value by itself: a compound literal outside of functions lives forever. */
#define INERT_BOOL(option_name, more_flags, initially)                                             \
    {                                                                                              \
        .name = option_name, .type = OPTION_BOOL, .flags = OPTION_NO_EFFECT | (more_flags),        \
        .target = &(bool){false}, .initial = initially                                             \
    }
#define INERT_INT(option_name, more_flags, initially, least, most)                                 \
    {                                                                                              \
        .name = option_name, .type = OPTION_INT, .flags = OPTION_NO_EFFECT | (more_flags),         \
        .target = &(int64_t){0}, .initial = initially, .min = least, .max = most                   \
    }
#define INERT_MEMORY(option_name, initially, least)                                                \
    {                                                                                              \
        .name = option_name, .type = OPTION_MEMORY, .flags = OPTION_NO_EFFECT,                     \
        .target = &(int64_t){0}, .initial = initially, .min = least, .max = INT64_MAX              \
    }
#define INERT_TEXT(option_name, more_flags, initially)                                             \
    {                                                                                              \
        .name = option_name, .type = OPTION_STRING, .flags = OPTION_NO_EFFECT | (more_flags),      \
        .target = &(char *){NULL}, .initial = initially                                            \
    }
#define INERT_CHOICE(option_name, more_flags, names, initially)                                    \
    {                                                                                              \
        .name = option_name, .type = OPTION_ENUM, .flags = OPTION_NO_EFFECT | (more_flags),        \
        .target = &(int){0}, .initial = initially, .enum_names = names                             \
    }

static const struct option_enum endpoint_types[] = {
    {"ip", 0}, {"hostname", 1}, {"unknown-endpoint", 2}, {NULL, 0}};
static const struct option_enum cache_modes[] = {{"writethrough", 0}, {"writeback", 1}, {NULL, 0}};

static bool check_hostname(const struct option *option UNUSED, struct slice text,
                           const char **error)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!letter && !(c >= '0' && c <= '9') && c != '-' && c != '.') {
            *error = "Hostnames may only contain alphanumeric characters, hyphens or dots";
            return false;
        }
    }
    return true;
}

const struct option inert_options[] = {
    /* Tables grow by a segment at a time, the cron's work follows what there is, all threads read,
     * there is no logo. */
    INERT_BOOL("activerehashing", 0, "yes"),
    INERT_BOOL("dynamic-hz", 0, "yes"),
    INERT_BOOL("io-threads-do-reads", OPTION_IMMUTABLE, "no"),
    INERT_BOOL("always-show-logo", OPTION_IMMUTABLE, "no"),
    /* No memory test runs in a process that has crashed, and nothing is checked that could warn. */
    INERT_BOOL("crash-memcheck-enabled", 0, "yes"),
    INERT_TEXT("ignore-warnings", 0, ""),
    INERT_BOOL("enable-motd", OPTION_IMMUTABLE, "yes"),
    /* Redis 7 takes these from older files as well. */
    INERT_BOOL("lua-replicate-commands", OPTION_HIDDEN, "yes"),
    INERT_INT("list-max-ziplist-entries", OPTION_HIDDEN, "512", 0, INT64_MAX),
    INERT_INT("list-max-ziplist-value", OPTION_HIDDEN, "64", 0, INT64_MAX),
    /* activedefrag's, which does not exist. */
    INERT_INT("active-defrag-cycle-min", 0, "1", 1, 99),
    INERT_INT("active-defrag-cycle-max", 0, "25", 1, 99),
    INERT_MEMORY("active-defrag-ignore-bytes", "100mb", 1),
    INERT_INT("active-defrag-max-scan-fields", 0, "1000", 1, INT64_MAX),
    INERT_INT("active-defrag-threshold-lower", 0, "10", 0, 1000),
    INERT_INT("active-defrag-threshold-upper", 0, "100", 0, 1000),
    /* A replica neither ends over its disk nor evicts by itself. */
    INERT_BOOL("replica-ignore-disk-write-errors", 0, "no"),
    /* KeyDB: every reader reads at once, on any thread, and always with prefetching. */
    INERT_BOOL("enable-async-commands", 0, "no"),
    INERT_INT("max-snapshot-slip", 0, "400", 0, 5000),
    INERT_BOOL("enable-async-rehash", 0, "yes"),
    INERT_BOOL("prefetch-enabled", 0, "yes"),
    INERT_BOOL("allow-rdb-resize-op", 0, "yes"),
    INERT_INT("loading-process-events-interval-keys", 0, "8192", 0, INT64_MAX),
    INERT_BOOL("time-thread-priority", OPTION_IMMUTABLE, "no"),
    INERT_INT("semi-ordered-set-bucket-size", 0, "0", 0, 1024),
    /* storage-provider's, which does not exist. */
    INERT_TEXT("storage-provider-options", OPTION_IMMUTABLE, ""),
    INERT_CHOICE("storage-cache-mode", OPTION_IMMUTABLE, cache_modes, "writethrough"),
    INERT_INT("storage-flush-period", 0, "500", 1, 10000),
    INERT_MEMORY("maxstorage", "0", 0),
    INERT_BOOL("flash-disable-key-cache", 0, "no"),
    INERT_BOOL("delete-on-evict", 0, "no"),
    /* cluster-enabled's, which does not exist. */
    INERT_BOOL("cluster-allow-pubsubshard-when-down", 0, "yes"),
    INERT_BOOL("cluster-allow-reads-when-down", 0, "no"),
    INERT_BOOL("cluster-allow-replica-migration", 0, "yes"),
    INERT_BOOL("cluster-require-full-coverage", 0, "yes"),
    {.name = "cluster-replica-no-failover",
     .alias = "cluster-slave-no-failover",
     .type = OPTION_BOOL,
     .flags = OPTION_NO_EFFECT,
     .target = &(bool){false},
     .initial = "no"},
    {.name = "cluster-replica-validity-factor",
     .alias = "cluster-slave-validity-factor",
     .type = OPTION_INT,
     .flags = OPTION_NO_EFFECT,
     .target = &(int64_t){0},
     .initial = "10",
     .min = 0,
     .max = INT32_MAX},
    {.name = "cluster-announce-hostname",
     .type = OPTION_STRING,
     .flags = OPTION_NO_EFFECT,
     .target = &(char *){NULL},
     .initial = "",
     .check = check_hostname},
    INERT_TEXT("cluster-announce-human-nodename", 0, ""),
    INERT_TEXT("cluster-announce-ip", 0, ""),
    INERT_INT("cluster-announce-port", 0, "0", 0, 65535),
    INERT_INT("cluster-announce-tls-port", 0, "0", 0, 65535),
    INERT_INT("cluster-announce-bus-port", 0, "0", 0, 65535),
    INERT_TEXT("cluster-config-file", OPTION_IMMUTABLE, "nodes.conf"),
    INERT_MEMORY("cluster-link-sendbuf-limit", "0", 0),
    INERT_INT("cluster-migration-barrier", 0, "1", 0, INT32_MAX),
    INERT_INT("cluster-node-timeout", 0, "15000", 0, INT64_MAX),
    INERT_INT("cluster-port", OPTION_IMMUTABLE, "0", 0, 65535),
    INERT_CHOICE("cluster-preferred-endpoint-type", 0, endpoint_types, "ip"),
    INERT_BOOL("tls-cluster", 0, "no"),
    {.name = NULL},
};

/* ---- features that do not exist ---- */

/* What the option would switch, as the refusal says it. */
static const struct {
    const char *option, *feature;
} features[] = {
    {"activedefrag", "Active defragmentation cannot be enabled: this server has none"},
    {"cluster-enabled", "cluster mode does not exist in this version"},
    {"enable-keydb-fastsync", "KeyDB's fast sync does not exist in this version"},
    {"force-backlog-disk-reserve",
     "a backlog that is on disk and not in memory does not exist in this version"},
    {"use-fork", "saving without a fork does not exist in this version"},
    {"multithread-load-enabled", "loading with several threads does not exist in this version"},
    {"storage-provider", "storage providers (FLASH) do not exist in this version"},
    {"scratch-file-path", "storage providers (FLASH) do not exist in this version"},
    {"blob-support", "storage providers (FLASH) do not exist in this version"},
    {"db-s3-object", "saving to S3 does not exist in this version"},
    {"watchdog-period", "the software watchdog does not exist in this version"},
    {"testmode", "KeyDB's test mode does not exist in this version"},
    {"rdbfuzz-mode", "KeyDB's RDB fuzzing mode does not exist in this version"},
};

#define FEATURE_COUNT (sizeof(features) / sizeof(features[0]))

static bool fail_absent(const struct option *option, const char **error)
{
    size_t i = 0;
    while (i < FEATURE_COUNT && strcmp(features[i].option, option->name) != 0) {
        i++;
    }
    *error = i < FEATURE_COUNT ? features[i].feature : "this feature does not exist";
    return false;
}

/* Takes what leaves the feature off: the default. */
static bool check_off(const struct option *option, struct slice text, const char **error)
{
    uint64_t bytes;
    bool off = slice_equal_nocase(text, option->initial);
    if (option->type == OPTION_MEMORY) {
        off = num_parse_memory(text, &bytes) && bytes == 0;
    }
    return off || fail_absent(option, error);
}

/* An option whose every line would switch something on; the empty text is what CONFIG REWRITE and
 * the built-in default say. */
static bool parse_nothing(const struct option *option, const struct slice *words, int count,
                          const char **error)
{
    return (count == 1 && words[0].len == 0) || fail_absent(option, error);
}

static void format_nothing(const struct option *option UNUSED, struct buf *out UNUSED)
{
}

#define ABSENT_BOOL(option_name, more_flags, initially)                                            \
    {                                                                                              \
        .name = option_name, .type = OPTION_BOOL, .flags = more_flags, .target = &(bool){false},   \
        .initial = initially, .check = check_off                                                   \
    }
#define ABSENT_MEMORY(option_name, more_flags)                                                     \
    {                                                                                              \
        .name = option_name, .type = OPTION_MEMORY, .flags = more_flags, .target = &(int64_t){0},  \
        .initial = "0", .min = 0, .max = INT64_MAX, .check = check_off                             \
    }
#define ABSENT_LINE(option_name, more_flags)                                                       \
    {                                                                                              \
        .name = option_name, .type = OPTION_CUSTOM, .flags = OPTION_MULTI | (more_flags),          \
        .initial = "", .parse = parse_nothing, .format = format_nothing                            \
    }

const struct option absent_options[] = {
    ABSENT_BOOL("activedefrag", 0, "no"),
    ABSENT_BOOL("cluster-enabled", OPTION_IMMUTABLE, "no"),
    ABSENT_BOOL("enable-keydb-fastsync", 0, "no"),
    ABSENT_BOOL("force-backlog-disk-reserve", 0, "no"),
    ABSENT_BOOL("use-fork", OPTION_IMMUTABLE, "yes"),
    ABSENT_BOOL("multithread-load-enabled", 0, "no"),
    ABSENT_LINE("db-s3-object", 0),
    ABSENT_MEMORY("watchdog-period", OPTION_HIDDEN),
    ABSENT_BOOL("testmode", OPTION_IMMUTABLE | OPTION_HIDDEN, "no"),
    ABSENT_BOOL("rdbfuzz-mode", OPTION_IMMUTABLE | OPTION_HIDDEN, "no"),
    ABSENT_BOOL("blob-support", OPTION_IMMUTABLE | OPTION_HIDDEN, "no"),
    ABSENT_LINE("storage-provider", OPTION_IMMUTABLE | OPTION_HIDDEN),
    ABSENT_LINE("scratch-file-path", OPTION_IMMUTABLE | OPTION_HIDDEN),
    {.name = NULL},
};

static void free_texts(const struct option *table)
{
    for (; table->name; table++) {
        if (table->type == OPTION_STRING) {
            mem_free(*(char **)table->target);
            *(char **)table->target = NULL;
        }
    }
}

void compat_options_teardown(void)
{
    free_texts(inert_options);
}
