/* INFO's server, modules, cluster and keydb sections: what the process is. */
#include "server/build_info.h"
#include "server/sections_priv.h"
#include "base/clock.h"
#include "base/rand.h"
#include "base/version.h"
#include "engine/config.h"
#include "engine/identity.h"
#include "engine/shutdown.h"
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
    buf_printf(out, "listener%d:name=%s", listener, kind);
    for (int i = 0; i < net_settings.bind_count; i++) {
        buf_printf(out, ",bind=%s", net_settings.bind[i]);
    }
    buf_printf(out, ",port=%lld\r\n", (long long)port);
}

static void info_append_listeners(struct buf *out)
{
    int listener = 0;
    const struct net_settings *n = &net_settings;
    if (n->port) {
        info_append_port(out, listener++, "tcp", n->port);
    }
    if (n->unixsocket && *n->unixsocket) {
        buf_printf(out, "listener%d:name=unix,bind=%s\r\n", listener++, n->unixsocket);
    }
    if (tls_settings.port) {
        info_append_port(out, listener++, "tls", tls_settings.port);
    }
}

static void info_write_server(struct buf *out)
{
    int64_t now_us = clock_wall_us();
    uint64_t uptime_s = (clock_mono_us() - process.start_us) / 1000000;
    buf_printf(out,
               "redis_version:%s\r\nredis_git_sha1:%s\r\nredis_git_dirty:0\r\n"
               "redis_build_id:%s\r\nredis_mode:standalone\r\nserver_name:keydb\r\n"
               "keydb_version:%s\r\nos:%s\r\narch_bits:%zu\r\n",
               identity_version(), build_git_sha(), build_id(), KEYDB_VERSION, process.os,
               8 * sizeof(void *));
    buf_printf(out,
               "monotonic_clock:POSIX clock_gettime\r\nmultiplexing_api:epoll\r\n"
               "atomicvar_api:c11-builtin\r\ngcc_version:%d.%d.%d\r\nprocess_id:%ld\r\n",
               __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__, (long)getpid());
    info_append_option(out, "process_supervised", "supervised", "no");
    buf_printf(
        out,
        "run_id:%s\r\ntcp_port:%lld\r\nserver_time_usec:%lld\r\n"
        "uptime_in_seconds:%llu\r\nuptime_in_days:%llu\r\n",
        process.run_id, (long long)(net_settings.port ? net_settings.port : tls_settings.port),
        (long long)now_us, (unsigned long long)uptime_s, (unsigned long long)(uptime_s / 86400));
    info_append_option(out, "hz", "hz", "10");
    info_append_option(out, "configured_hz", "hz", "10");
    int64_t left_ms = shutdown_wait_left_ms();
    if (left_ms >= 0) {
        buf_printf(out, "shutdown_in_milliseconds:%lld\r\n", (long long)left_ms);
    }
    buf_printf(out, "lru_clock:%u\r\nexecutable:%s\r\nconfig_file:%s\r\nio_threads_active:%d\r\n",
               info_lru_clock(now_us), process.executable, config_file_path(),
               net_settings.server_threads > 1);
    buf_printf(out, "availability_zone:%s\r\nfeatures:\r\n", identity_zone());
    info_append_listeners(out);
}

/* ---- Modules, Cluster, KeyDB ---- */

static void info_write_modules(struct buf *out)
{
    (void)out; /* one line a module: there are none */
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
