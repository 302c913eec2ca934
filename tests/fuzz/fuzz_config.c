/* Configuration files (engine/config.h) of arbitrary bytes, with the options of most layers.
 * Oracles: after a file is taken every option can be shown; CONFIG REWRITE writes a file that is
 * taken as well and says the same. */
#include "commands/commands.h"
#include "engine/acl.h"
#include "engine/auth.h"
#include "engine/busy.h"
#include "engine/cmdstats.h"
#include "engine/config.h"
#include "engine/latency.h"
#include "engine/slowlog.h"
#include "keyspace/access.h"
#include "keyspace/event.h"
#include "keyspace/evict.h"
#include "keyspace/expire.h"
#include "keyspace/reclaim.h"
#include "net/settings.h"
#include "net/tls_settings.h"
#include "persist/aof.h"
#include "persist/load.h"
#include "persist/save.h"
#include "repl/follow.h"
#include "repl/link.h"
#include "repl/repl.h"
#include "value/hash.h"
#include "value/list.h"
#include "value/set.h"
#include "value/stream.h"
#include "value/zset.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct option *const tables[] = {
    net_options,    auth_options,           event_options,       acl_rule_options, expire_options,
    access_options, reclaim_options,        slowlog_options,     latency_options,  cmdstats_options,
    hash_options,   list_options,           hyperloglog_options, set_options,      zset_options,
    stream_options, sort_options,           save_options,        load_options,     aof_options,
    evict_options,  link_options,           tls_options,         busy_options,     repl_options,
    follow_options, config_protect_options,
};

static char directory[64], path[96];
static FILE *reports;

static void require(bool holds, const char *what)
{
    if (!holds) {
        fprintf(stdout, "config: %s\n", what);
        fflush(stdout);
        abort();
    }
}

static void append_value(const struct option *o, const char *name, void *context)
{
    struct buf *out = context;
    buf_printf(out, "%s=", name);
    option_format(o, out);
    buf_append_char(out, '\n');
}

static void write_file(const uint8_t *bytes, size_t len)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    require(fd >= 0 && write(fd, bytes, len) == (ssize_t)len && close(fd) == 0, "a file to read");
}

/* Reads the file into options that have their defaults; what they are then. */
static bool load(struct buf *values)
{
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        config_register(tables[i]);
    }
    /* Reports go to stderr by the thousand. */
    FILE *before = stderr;
    stderr = reports;
    bool fine = config_load_file(path);
    stderr = before;
    config_each(append_value, values);
    return fine;
}

static void remove_directory(void)
{
    unlink(path);
    rmdir(directory);
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    snprintf(directory, sizeof(directory), "%s/keydb-fuzz-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    require(mkdtemp(directory) != NULL, "a directory");
    snprintf(path, sizeof(path), "%s/main.conf", directory);
    atexit(remove_directory);
    reports = fopen("/dev/null", "w");
    require(reports != NULL, "/dev/null");
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct buf first = {0}, second = {0};
    const char *error = NULL;
    if (memmem(bytes, len, "nclude", 6) || memmem(bytes, len, "NCLUDE", 6)) {
        return 0; /* other files' content is not the input's */
    }
    write_file(bytes, len);
    if (load(&first)) {
        require(config_rewrite(&error), "what was read can be written");
        config_teardown();
        require(load(&second), "what was written can be read");
        require(slice_equal(buf_slice(&first), buf_slice(&second)), "and says the same");
    }
    config_teardown();
    buf_deinit(&first);
    buf_deinit(&second);
    return 0;
}
