/* INFO's server, modules, cluster and keydb sections: what the process is. */
#include "server/build_info.h"
#include "server/sections_priv.h"
#include "base/clock.h"
#include "base/field.h"
#include "base/rand.h"
#include "base/version.h"
#include "engine/config.h"
#include "engine/identity.h"
#include "engine/shutdown.h"
#include "module/module.h"
#include "net/settings.h"
#include "net/tls_settings.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#define RUN_ID_CHARS 40

/* Immutable after boot. */
static struct {
    char run_id[RUN_ID_CHARS + 1];
    char executable[4096];
    char os[256];
    int64_t start_s;
    uint64_t start_us; /* monotonic */
} process;

void info_server_setup(void)
{
    rand_hex(process.run_id, RUN_ID_CHARS);
    process.start_s = clock_wall_ms() / 1000;
    process.start_us = clock_mono_us();
    ssize_t len = readlink("/proc/self/exe", process.executable, sizeof(process.executable) - 1);
    process.executable[len > 0 ? len : 0] = '\0';
    struct utsname name;
    if (uname(&name) == 0) {
        snprintf(process.os, sizeof(process.os), "%.60s %.120s %.60s", name.sysname, name.release,
                 name.machine);
    }
}

const char *info_run_id(void)
{
    return process.run_id;
}

int64_t info_start_s(void)
{
    return process.start_s;
}

/* ---- Server ---- */

/* Seconds since 1970 as the 24-bit clock of LRU shows them. */
static unsigned info_lru_clock(int64_t wall_us)
{
    return (unsigned)(wall_us / 1000000) & 0xffffff;
}

static void info_append_port(struct buf *out, int listener, const char *kind, int64_t port)
{
    field_part_i64(out, "listener", listener);
    field_part_text(out, ":name=", kind);
    for (int i = 0; i < net_settings.bind_count; i++) {
        field_part_text(out, ",bind=", net_settings.bind[i]);
    }
    field_part_i64(out, ",port=", port);
    buf_append_cstr(out, "\r\n");
}

static void info_append_listeners(struct buf *out)
{
    int listener = 0;
    const struct net_settings *n = &net_settings;
    if (n->port) {
        info_append_port(out, listener++, "tcp", n->port);
    }
    if (n->unixsocket && *n->unixsocket) {
        field_part_i64(out, "listener", listener++);
        field_part_text(out, ":name=unix,bind=", n->unixsocket);
        buf_append_cstr(out, "\r\n");
    }
    if (tls_settings.port) {
        info_append_port(out, listener++, "tls", tls_settings.port);
    }
}

#define INFO_TEXT_OF(number) #number
#define INFO_VERSION_TEXT(major, minor, patch)                                                     \
    INFO_TEXT_OF(major) "." INFO_TEXT_OF(minor) "." INFO_TEXT_OF(patch)

static void info_write_build(struct buf *out)
{
    field_text(out, "redis_version", identity_version());
    field_text(out, "redis_git_sha1", build_git_sha());
    field_text(out, "redis_git_dirty", "0");
    field_text(out, "redis_build_id", build_id());
    field_text(out, "redis_mode", "standalone");
    field_text(out, "server_name", "keydb");
    field_text(out, "keydb_version", KEYDB_VERSION);
    field_text(out, "os", process.os);
    field_u64(out, "arch_bits", 8 * sizeof(void *));
    field_text(out, "monotonic_clock", "POSIX clock_gettime");
    field_text(out, "multiplexing_api", "epoll");
    field_text(out, "atomicvar_api", "c11-builtin");
    field_text(out, "gcc_version",
               INFO_VERSION_TEXT(__GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__));
}

static void info_write_server(struct buf *out)
{
    int64_t now_us = clock_wall_us();
    uint64_t uptime_s = (clock_mono_us() - process.start_us) / 1000000;
    info_write_build(out);
    field_i64(out, "process_id", getpid());
    info_append_option(out, "process_supervised", "supervised", "no");
    field_text(out, "run_id", process.run_id);
    field_i64(out, "tcp_port", net_settings.port ? net_settings.port : tls_settings.port);
    field_i64(out, "server_time_usec", now_us);
    field_u64(out, "uptime_in_seconds", uptime_s);
    field_u64(out, "uptime_in_days", uptime_s / 86400);
    info_append_option(out, "hz", "hz", "10");
    info_append_option(out, "configured_hz", "hz", "10");
    int64_t left_ms = shutdown_wait_left_ms();
    if (left_ms >= 0) {
        field_i64(out, "shutdown_in_milliseconds", left_ms);
    }
    field_u64(out, "lru_clock", info_lru_clock(now_us));
    field_text(out, "executable", process.executable);
    field_text(out, "config_file", config_file_path());
    field_u64(out, "io_threads_active", net_settings.server_threads > 1);
    field_text(out, "availability_zone", identity_zone());
    field_text(out, "features", "");
    info_append_listeners(out);
}

/* ---- Modules, Cluster, KeyDB ---- */

static void info_write_modules(struct buf *out)
{
    module_append_info(out);
}

static void info_write_cluster(struct buf *out)
{
    buf_append_cstr(out, "cluster_enabled:0\r\n");
}

/* Depth of KeyDB's snapshots: a walk here needs none. */
static void info_write_keydb(struct buf *out)
{
    buf_append_cstr(out, "mvcc_depth:0\r\n");
}

const struct info_section server_sections[] = {
    {.name = "server", .title = "Server", .in_default = true, .write = info_write_server},
    {.name = "modules", .title = "Modules", .in_default = true, .write = info_write_modules},
    {.name = "cluster", .title = "Cluster", .in_default = true, .write = info_write_cluster},
    {.name = "keydb", .title = "KeyDB", .in_default = true, .write = info_write_keydb},
    {.name = NULL},
};
