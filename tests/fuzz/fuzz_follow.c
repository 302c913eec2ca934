/* What a primary may send to us (repl/follow.h): replies to the handshake, a data set in both
 * framings, the stream behind it. Whatever comes, nothing breaks: bad input ends the link. What was
 * applied is what the backlog has, so the offset never leaves the bytes that came.
 *
 * An input is the primary's bytes as they are; first those of a link, and behind "\n---\n", if that
 * is there, those of the next one. Its length decides about repl-diskless-load. */
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/rand.h"
#include "base/thread.h"
#include "commands/commands.h"
#include "engine/cmdstats.h"
#include "engine/config.h"
#include "engine/memory_limit.h"
#include "engine/parked.h"
#include "engine/propagate.h"
#include "keyspace/access.h"
#include "keyspace/changes.h"
#include "keyspace/expire.h"
#include "keyspace/reclaim.h"
#include "keyspace/watching.h"
#include "net/settings.h"
#include "net/tls_settings.h"
#include "persist/persist.h"
#include "persist/rdb_file.h"
#include "repl/apply.h"
#include "repl/backlog.h"
#include "repl/follow_priv.h"
#include "repl/repl.h"
#include "resp/limits.h"
#include "value/hash.h"
#include "value/list.h"
#include "value/set.h"
#include "value/stream.h"
#include "value/zset.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* What fits into a socket without anybody who reads. */
#define INPUT_MAX_BYTES ((size_t)64 * 1024)
#define SEPARATOR "\n---\n"

static const struct option *const option_tables[] = {
    net_options,      resp_options,        expire_options, access_options, reclaim_options,
    cmdstats_options, hash_options,        list_options,   set_options,    zset_options,
    stream_options,   hyperloglog_options, tls_options,    link_options,   repl_options,
    follow_options,   sort_options,
};

/* What changes keys, and nothing that reaches beyond them. */
static const struct command_row *const command_tables[] = {
    string_commands,        string_set_commands,
    string_number_commands, bit_commands,
    bit_field_commands,     hyperloglog_commands,
    geo_commands,           set_commands,
    set_random_commands,    set_algebra_commands,
    zset_commands,          zset_range_commands,
    zset_pop_commands,      zset_algebra_commands,
    list_commands,          list_index_commands,
    key_commands,           key_expire_commands,
    hash_commands,          hash_expire_commands,
    member_expire_commands, transaction_commands,
    connection_commands,    list_blocking_commands,
    zset_blocking_commands, stream_commands,
    stream_group_commands,  stream_group_read_commands,
    stream_claim_commands,  nested_commands,
    dump_commands,          repl_commands,
};

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* Where data sets are received, while an input runs: elsewhere libFuzzer's own paths hold. */
static char *directory;
static int home_fd;

static void remove_directory(void)
{
    rmdir(directory);
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    home_fd = open(".", O_RDONLY | O_DIRECTORY);
    const char *place = getenv("TMPDIR");
    if (home_fd < 0 || asprintf(&directory, "%s/fuzz-follow-XXXXXX", place ? place : "/tmp") < 0 ||
        !mkdtemp(directory)) {
        abort();
    }
    atexit(remove_directory);
    clock_setup();
    log_setup();
    if (!log_set_file("/dev/null")) {
        abort();
    }
    hash_set_secret(1);
    rand_set_seed(1);
    for (size_t i = 0; i < COUNT_OF(option_tables); i++) {
        config_register(option_tables[i]);
    }
    for (size_t i = 0; i < COUNT_OF(command_tables); i++) {
        command_register(command_tables[i]);
    }
    thread_enter("fuzz");
    access_setup();
    memory_limit_setup();
    sort_setup();
    cmdstats_setup();
    db_setup(16);
    parked_setup();
    propagate_setup();
    watching_setup();
    changes_setup();
    reclaim_setup();
    repl_setup();
    apply_setup();
    rdb_file_checksum = false; /* inputs that are nearly right get further */
    return 0;
}

/* One connection on which these bytes come, and then its end. */
static void talk(const uint8_t *data, size_t size)
{
    int ends[2];
    struct link socket = {.timeout_ms = 1000};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) < 0) {
        abort();
    }
    ssize_t sent = size > 0 ? write(ends[1], data, size) : 0;
    if (sent < 0 || shutdown(ends[1], SHUT_WR) < 0) {
        abort();
    }
    socket.fd = ends[0];
    follow_talk(&socket);
    close(ends[0]);
    close(ends[1]);
}

static void empty(void)
{
    keyspace_lock_exclusive();
    backlog_turn_off();
    for (int i = 0; i < db_count(); i++) {
        db_flush(db_at(i), false);
    }
    keyspace_unlock_exclusive();
    reclaim_run();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > INPUT_MAX_BYTES) {
        return 0;
    }
    if (chdir(directory) < 0) {
        abort();
    }
    follow_settings.diskless_load = (int)(size % (DISKLESS_SWAP + 1));
    const uint8_t *next = memmem(data, size, SEPARATOR, strlen(SEPARATOR));
    talk(data, next ? (size_t)(next - data) : size);
    if (next) {
        next += strlen(SEPARATOR);
        talk(next, size - (size_t)(next - data));
    }
    empty();
    if (fchdir(home_fd) < 0) {
        abort();
    }
    return 0;
}
