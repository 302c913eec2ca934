/* See aof.h. Rewriting is in aof_rewrite.c. */
#include "persist/aof.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/stats.h"
#include "engine/commit.h"
#include "engine/modules.h"
#include "engine/propagate.h"
#include "keyspace/db.h"
#include "keyspace/expire.h"
#include "persist/aof_dir.h"
#include "persist/aof_load.h"
#include "persist/aof_priv.h"
#include "persist/aof_tail.h"
#include "persist/dots.h"
#include "persist/kept.h"
#include "persist/notes.h"
#include "persist/rdb_file.h"
#include "persist/save.h"
#include "persist/save_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct aof_state aof_state;

/* A record's buffer that has become larger than this is not kept. */
#define KEPT_BYTES ((size_t)64 * 1024)

/* The log's: keyspace. */
static struct {
    int number;            /* at the door */
    int selected_db;       /* of the file that is written; -1: none yet */
    bool open;             /* there is one */
    int64_t stamp_s;       /* the last time stamp in it */
    struct dots_unit unit; /* an active replica's, which is not whole yet */
    struct buf record;     /* and one that is */
} log_end = {.selected_db = -1};

/* ---- what is written ---- */

static void append_stamp(int64_t now_s) REQUIRES(keyspace_lock)
{
    char text[64];
    int len = snprintf(text, sizeof(text), "#TS:%" PRId64 "\r\n", now_s);
    aof_tail_append(slice_of(text, (size_t)len));
}

static void append_select(int db) REQUIRES(keyspace_lock)
{
    char text[64];
    int digits = snprintf(NULL, 0, "%d", db);
    int len = snprintf(text, sizeof(text), "*2\r\n$6\r\nSELECT\r\n$%d\r\n%d\r\n", digits, db);
    aof_tail_append(slice_of(text, (size_t)len));
    log_end.selected_db = db;
}

/* Units are kept until they are whole: only then their dots are known. */
static void append_unit(int db, struct slice commands) REQUIRES(keyspace_lock)
{
    dots_add(&log_end.unit, db, commands, &log_end.selected_db, &log_end.record);
    if (log_end.record.len > 0) {
        aof_tail_append(buf_slice(&log_end.record));
    }
    buf_clear(&log_end.record);
    if (log_end.record.capacity > KEPT_BYTES) {
        buf_deinit(&log_end.record);
    }
}

void aof_log_alone(struct slice record)
{
    aof_tail_append(record);
}

bool aof_sync(void)
{
    return aof_tail_facts().open && aof_tail_flush(true);
}

/* Takes what comes through the door. */
static void on_commands(int db, struct slice commands)
{
    keyspace_assert_exclusive();
    if (aof_settings.timestamps && !log_end.unit.open) {
        int64_t now_s = clock_wall_ms() / 1000;
        if (now_s > log_end.stamp_s) {
            log_end.stamp_s = now_s;
            append_stamp(now_s);
        }
    }
    if (unlikely(dots_wanted)) {
        append_unit(db, commands);
        return;
    }
    if (db != PROPAGATE_ANY_DB && db != log_end.selected_db) {
        append_select(db);
    }
    aof_tail_append(commands);
}

void aof_log_into(int fd_take, uint64_t size_bytes)
{
    propagate_switch(log_end.number, fd_take >= 0); /* what it still tells is for the old file */
    log_end.selected_db = -1;
    log_end.stamp_s = 0;
    log_end.open = fd_take >= 0;
    aof_tail_open(fd_take, size_bytes);
    dots_logging(fd_take >= 0);
}

void aof_apply_sync(void)
{
    enum aof_sync sync = (enum aof_sync)aof_settings.sync;
    aof_tail_set_sync(sync);
    aof_tail_set_lenient(aof_settings.no_sync_on_rewrite &&
                         (aof_state.child != 0 || save_has_child()));
    /* While there is no base yet as well: once it is there, everything answered counts. */
    atomic_store(&commit.gated, aof_state.stage != AOF_OFF && sync == AOF_SYNC_ALWAYS);
}

void aof_set_stage(enum aof_stage stage)
{
    aof_state.stage = stage;
    commit_set_log(stage == AOF_OFF       ? COMMIT_NO_LOG
                   : stage == AOF_WAITING ? COMMIT_WAITS
                                          : COMMIT_LOGS);
    aof_apply_sync();
}

/* ---- start ---- */

static bool is_wanted(void)
{
    return aof_settings.enabled;
}

bool aof_read_manifest(void)
{
    aof_state.known = aof_state.known || aof_dir_read_manifest(&aof_state.manifest);
    return aof_state.known;
}

static uint64_t bytes_to_load(void)
{
    if (!aof_read_manifest() || !aof_dir_upgrade(&aof_state.manifest)) {
        aof_state.unusable = true;
        return 0;
    }
    return aof_dir_bytes(&aof_state.manifest);
}

/* The increments from `i` on hold nothing: what a rewrite that was interrupted leaves. */
static bool rest_is_empty(int i)
{
    const struct aof_file *f;
    for (; (f = aof_manifest_increment(&aof_state.manifest, i)); i++) {
        if (aof_dir_file_bytes(f->name) > 0) {
            return false;
        }
    }
    return true;
}

/* Cuts the torn end off, if that is allowed. */
static bool cut(const char *path, const struct aof_load *load, bool last)
{
    if (!last) {
        log_warning("The AOF file %s: %s, and others follow it", path, load->error);
        return false;
    }
    if (!aof_settings.load_truncated) {
        log_warning("The AOF file %s: %s. With aof-load-truncated yes it is cut off", path,
                    load->error);
        return false;
    }
    int error = truncate(path, (off_t)load->whole) < 0 ? errno : 0;
    if (error) {
        log_warning("Cannot cut the torn end off the AOF file %s: %s", path, strerror(error));
        return false;
    }
    log_warning("The AOF file %s was torn: %" PRIu64 " bytes behind offset %" PRIu64 " are cut off",
                path, load->bytes - load->whole, load->whole);
    return true;
}

static enum load_result load_file(const struct aof_file *f, uint64_t *done_bytes, bool last)
{
    struct buf path = {0};
    struct aof_load load;
    int64_t start_ms = clock_wall_ms();
    bool fine = false;
    aof_dir_path(&path, f->name);
    enum aof_load_result result = aof_load_file(path.data, *done_bytes, &load);
    switch (result) {
    case AOF_LOAD_FINE:
    case AOF_LOAD_EMPTY:
        fine = true;
        break;
    case AOF_LOAD_TORN:
        fine = cut(path.data, &load, last);
        break;
    case AOF_LOAD_MISSING:
        log_warning("The AOF file %s, which the manifest names, is not there", path.data);
        break;
    case AOF_LOAD_BAD:
        log_warning("Cannot load the AOF file %s: %s", path.data, load.error);
        break;
    case AOF_LOAD_STOPPED:
        break;
    }
    if (fine) {
        log_notice("Loaded %s: %" PRIu64 " commands, %" PRId64 " ms", path.data, load.commands,
                   clock_wall_ms() - start_ms);
    }
    if (fine && load.failed) {
        log_warning("%" PRIu64 " commands of %s replied an error", load.failed, path.data);
    }
    *done_bytes += load.bytes;
    buf_deinit(&path);
    return fine ? LOAD_FINE : result == AOF_LOAD_STOPPED ? LOAD_STOPPED : LOAD_BAD;
}

/* Loads all files of the manifest. */
static enum load_result load_files(void)
{
    uint64_t done_bytes = 0;
    enum load_result result = LOAD_FINE;
    int64_t start_ms = clock_wall_ms();
    const struct aof_file *f = aof_manifest_base(&aof_state.manifest);
    if (f) {
        result = load_file(f, &done_bytes, rest_is_empty(0));
    }
    for (int i = 0; result == LOAD_FINE && (f = aof_manifest_increment(&aof_state.manifest, i));
         i++) {
        result = load_file(f, &done_bytes, rest_is_empty(i + 1));
    }
    if (result == LOAD_FINE) {
        log_notice("DB loaded from append only file: %.3f seconds",
                   (double)(clock_wall_ms() - start_ms) / 1000);
    }
    return result;
}

/* An empty base, where there is nothing yet. */
static int create_base(struct aof_manifest *m)
{
    struct buf name = {0};
    int error = aof_dir_create();
    aof_manifest_next_base(m, aof_settings.file_name, aof_settings.rdb_preamble, &name);
    int fd = error ? -1 : aof_dir_create_file(buf_cstr(&name));
    if (!error && fd < 0) {
        error = errno;
    }
    if (!error) {
        modules_news(MODULES_PERSISTENCE, 5, NULL);
        error = aof_write_base(fd);
        modules_news(MODULES_PERSISTENCE, error ? 4 : 3, NULL);
        close(fd);
        aof_manifest_add(m, buf_slice(&name), m->base_seq + 1, AOF_BASE);
    }
    buf_deinit(&name);
    return error;
}

int aof_write_base(int fd)
{
    bool taken = keyspace_visit();
    keyspace_assert_shared();
    int64_t now_ms = clock_wall_ms();
    int error = aof_settings.rdb_preamble ? rdb_file_write_base(fd, now_ms)
                                          : aof_write_commands(fd, now_ms);
    keyspace_leave(taken);
    return error;
}

int aof_add_increment(struct aof_manifest *m, int *fd)
{
    struct buf name = {0};
    aof_manifest_next_increment(m, aof_settings.file_name, &name);
    *fd = aof_dir_create_file(buf_cstr(&name));
    int error = *fd < 0 ? errno : 0;
    if (!error) {
        aof_manifest_add(m, buf_slice(&name), m->increment_seq + 1, AOF_INCREMENT);
    }
    buf_deinit(&name);
    return error;
}

/* Opens the last increment, or makes the files that are missing; the descriptor and its size. */
static int open_last(int *fd, uint64_t *size_bytes)
{
    struct aof_manifest *m = &aof_state.manifest;
    int count = aof_manifest_increments(m), error = 0;
    *size_bytes = 0;
    if (count > 0) {
        struct buf path = {0};
        const struct aof_file *last = aof_manifest_increment(m, count - 1);
        *fd = open(aof_dir_path(&path, last->name), O_WRONLY | O_CLOEXEC);
        error = *fd < 0 ? errno : 0;
        struct stat about;
        /* What a process before, which was killed, had got ahead (aof_tail.c) is given back. A size
         * that cannot be had must not be taken for nothing: the log would be cut to that. */
        if (!error && (fstat(*fd, &about) < 0 || ftruncate(*fd, about.st_size) < 0)) {
            error = errno;
            close(*fd);
        }
        *size_bytes = error ? 0 : (uint64_t)about.st_size;
        buf_deinit(&path);
        return error;
    }
    if (!aof_manifest_base(m)) {
        error = create_base(m);
    }
    if (!error) {
        error = aof_add_increment(m, fd);
    }
    return error ? error : aof_dir_write_manifest(m);
}

static enum load_result load_at_start(void)
{
    enum load_result result = aof_state.unusable ? LOAD_BAD : load_files();
    int fd = -1;
    uint64_t size_bytes;
    if (result != LOAD_FINE) {
        return result;
    }
    /* What was loaded may be in the kernel's memory alone, if a process before was killed: new
     * commands, which get into a file behind it, must not reach the disk without it; and the files
     * that it does without are the disk's only ones as long as an older manifest is there. */
    int error = aof_dir_sync_all(&aof_state.manifest);
    if (!error) {
        aof_dir_delete_history(&aof_state.manifest);
        error = open_last(&fd, &size_bytes);
    }
    if (error) {
        log_warning("Cannot open the AOF: %s", strerror(error));
        return LOAD_BAD;
    }
    aof_state.base_bytes = aof_dir_bytes(&aof_state.manifest);
    aof_state.closed_bytes = aof_state.base_bytes - size_bytes;
    keyspace_lock_exclusive();
    aof_log_into(fd, size_bytes);
    keyspace_unlock_exclusive();
    aof_set_stage(AOF_ON);
    save_forget_changes();
    return LOAD_FINE;
}

const struct load_source aof_load_source = {
    .name = "the AOF", .is_wanted = is_wanted, .bytes = bytes_to_load, .load = load_at_start};

/* ---- reload and end ---- */

/* NULL, or why it cannot be done now. */
static const char *reload_fault(void)
{
    if (propagate_in_unit()) {
        return "The AOF cannot be loaded within a transaction: it has only a part of it";
    }
    if (dots_wanted) {
        return "The AOF of an active replica is not loaded again: its peers have its writes";
    }
    return kept_may_begin() ? NULL : "The AOF is not loaded while the data set of a primary is";
}

const char *aof_reload(void)
{
    static const char unusable[] =
        "ERR the append-only file is off, or cannot be written: see the log";
    const char *fault = reload_fault();
    if (fault) {
        log_warning("%s", fault);
        return unusable;
    }
    if (aof_state.stage != AOF_ON || !aof_tail_flush(true)) {
        return unusable;
    }
    keyspace_lock_exclusive();
    propagate_switch(log_end.number, false);
    keyspace_unlock_exclusive();
    kept_begin();
    modules_news(MODULES_LOADING, 1, NULL);
    bool fine = load_files() == LOAD_FINE;
    if (fine) {
        kept_drop();
    } else {
        kept_restore();
    }
    modules_news(MODULES_LOADING, fine ? 3 : 4, NULL);
    keyspace_lock_exclusive();
    propagate_switch(log_end.number, true);
    keyspace_unlock_exclusive();
    save_forget_changes();
    return fine ? NULL : "ERR Error trying to load the AOF files, check server logs.";
}

bool aof_before_exit(void)
{
    aof_kill_child();
    if (!aof_complete() || (aof_state.stage == AOF_ON && !aof_tail_flush(true))) {
        log_warning("The AOF could not be written and synced: the server goes on");
        return false;
    }
    return true;
}

void aof_at_exit(void)
{
    struct buf line = {0};
    if (aof_state.stage == AOF_ON && load_is_complete() && aof_tail_facts().sync_error == 0) {
        keyspace_lock_exclusive();
        notes_format_line(&line);
        aof_tail_append(buf_slice(&line));
        keyspace_unlock_exclusive();
    }
    buf_deinit(&line);
}

void aof_halt(void)
{
    if (aof_state.stage == AOF_OFF) {
        return;
    }
    aof_kill_child();
    if (log_end.open) {
        keyspace_lock_exclusive();
        if (!dots_wanted) { /* else the unit is held until it is whole */
            propagate_abandon(log_end.number);
        }
        aof_log_into(-1, 0);
        keyspace_unlock_exclusive();
    }
    aof_set_stage(AOF_WAITING);
}

void aof_turn_off(void)
{
    aof_kill_child();
    keyspace_lock_exclusive();
    aof_log_into(-1, 0);
    keyspace_unlock_exclusive();
    aof_tail_flush(false);
    aof_tail_leave();
    aof_set_stage(AOF_OFF);
    aof_state.scheduled = false;
}

bool aof_apply_enabled(const char **error)
{
    gil_assert_world();
    if (!aof_settings.enabled) {
        aof_turn_off();
    } else if (aof_state.stage == AOF_OFF) {
        aof_set_stage(AOF_WAITING);
        if (aof_rewrite() == AOF_FAILED) {
            aof_turn_off(); /* it may have got as far as the fork */
            *error = "Unable to turn on AOF. Check server logs.";
            return false;
        }
    }
    return true;
}

void aof_setup(void)
{
    log_end.number = propagate_register(PROPAGATE_TO_AOF, on_commands);
    aof_tail_start();
    aof_rewrite_setup();
}

void aof_teardown(void)
{
    aof_kill_child();
    aof_tail_stop();
    aof_manifest_deinit(&aof_state.manifest);
    buf_deinit(&log_end.unit.held);
    buf_deinit(&log_end.record);
}
