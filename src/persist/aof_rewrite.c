/* Rewriting the AOF: a child writes a new base while the log goes on in a new increment.
 *
 *   begin   a new increment is made, and named in the manifest (unless the log is just being turned
 *           on); in one hold of the keyspace lock the log moves into it, and the child is forked
 *   child   writes temp-rewriteaof-bg-<pid>.aof, syncs it, ends
 *   end     that file gets its name in the directory; the manifest names it as the base and all
 *           increments before the fork as history; those are deleted
 *
 * State: see aof.h. */
#include "persist/aof.h"

#include "base/clock.h"
#include "base/field.h"
#include "base/log.h"
#include "base/spike.h"
#include "base/stats.h"
#include "engine/fork_child.h"
#include "engine/cron.h"
#include "engine/info.h"
#include "engine/modules.h"
#include "engine/propagate.h"
#include "engine/snapshot.h"
#include "keyspace/db.h"
#include "persist/aof_dir.h"
#include "persist/aof_priv.h"
#include "persist/aof_tail.h"
#include "persist/child_report.h"

#include "persist/save.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CRON_PERIOD_MS 100
/* After so many failures in a row, tries are a minute apart, then two, four ... up to an hour. */
#define FAILURES_AT_ONCE 3
#define FAILURE_DELAY_MS ((int64_t)60 * 1000)
#define FAILURE_DELAY_DOUBLINGS 6
/* Between two tries where the log cannot go on without; each leaves an increment more, so when a
 * fault lasts they become fewer. */
#define NEEDED_DELAY_MS 1000
#define NEEDED_OFTEN 100
#define NEEDED_SELDOM_MS ((int64_t)30 * 1000)

static struct {
    bool from_off;          /* the child writes a base for a log that is off: nothing follows it */
    uint64_t sync_failures; /* when it began */
    _Atomic int64_t start_ms, took_s;
    int64_t last_end_ms;
    _Atomic bool last_ok;
    _Atomic uint64_t failures, last_cow_bytes;
} rewrite = {.took_s = -1, .last_ok = true};

bool aof_has_child(void)
{
    return aof_state.child != 0;
}

static void temporary_name(int pid, char name[48])
{
    snprintf(name, 48, "temp-rewriteaof-bg-%d.aof", pid);
}

/* Writes a base under that name; 0 or an errno. In a child as well. */
static int write_temporary(const char *name)
{
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0) {
        return errno;
    }
    int error = aof_write_base(fd);
    return close(fd) < 0 && !error ? errno : error;
}

/* ---- the child ---- */

/* What the forked process does: see fork_child.h. */
static void NORETURN run_child(void)
{
    char name[48];
    temporary_name((int)getpid(), name);
    child_report_exit(write_temporary(name));
}

/* ---- the beginning ---- */

static void note_failure(void)
{
    rewrite.last_ok = false;
    rewrite.failures++;
    rewrite.last_end_ms = clock_wall_ms();
}

/* Makes the increment that follows the fork; while the log is on, the manifest names it at once. */
static int prepare_increment(int *fd)
{
    struct aof_manifest next = {0};
    int error = aof_dir_create();
    if (error) {
        return error;
    }
    aof_manifest_copy(&next, &aof_state.manifest);
    error = aof_add_increment(&next, fd);
    if (!error && aof_state.stage == AOF_ON) {
        error = aof_dir_write_manifest(&next);
        if (!error) {
            struct aof_manifest before = aof_state.manifest;
            aof_state.closed_bytes += aof_tail_facts().file_bytes;
            aof_state.manifest = next;
            next = before;
        } else {
            close(*fd);
        }
    }
    aof_manifest_deinit(&next);
    return error;
}

/* Moves the log into the increment (-1: there is none) and forks. */
static int switch_and_fork(int fd) EXCLUDES(keyspace_lock)
{
    keyspace_lock_exclusive();
    if (fd >= 0) {
        aof_log_into(fd, 0);
    }
    int pid = child_report_fork(CHILD_AOF_REWRITE, -1);
    if (pid == 0) {
        run_child();
    }
    keyspace_unlock_exclusive();
    return pid;
}

/* The increment that goes on behind the base, *fd; -1 where the log is off. 0 or an errno. */
static int prepare(int *fd)
{
    *fd = -1;
    aof_state.scheduled = false;
    rewrite.from_off = aof_state.stage == AOF_OFF;
    rewrite.sync_failures = aof_tail_facts().sync_failures;
    if (aof_tail_facts().files_waiting > AOF_TAIL_WAITING_MAX / 2) {
        return EBUSY; /* the disk has hung for a while */
    }
    if (!aof_read_manifest()) {
        return EINVAL;
    }
    return rewrite.from_off ? aof_dir_create() : prepare_increment(fd);
}

static enum aof_result begin(void) EXCLUDES(keyspace_lock)
{
    int fd, error = prepare(&fd);
    if (error) {
        log_warning("Cannot begin to rewrite the AOF: %s", strerror(error));
        note_failure();
        return AOF_FAILED;
    }
    rewrite.start_ms = clock_wall_ms();
    int pid = switch_and_fork(fd);
    aof_state.child = pid > 0 ? pid : 0;
    stats_add(STAT_AOF_REWRITES, 1); /* who sees one more, in INFO, sees that it runs */
    if (pid < 0) {
        log_warning("Cannot rewrite the AOF: fork: %s", strerror(errno));
        note_failure();
        return AOF_FAILED;
    }
    aof_apply_sync();
    log_notice("Background append only file rewriting started by pid %d", pid);
    return AOF_STARTED;
}

enum aof_result aof_rewrite(void)
{
    if (aof_state.child) {
        return AOF_RUNNING;
    }
    /* A base of half a data set would take the place of a whole one. */
    if (save_has_child() || propagate_in_unit() || !load_is_complete() ||
        snapshot_is_unfinished()) {
        aof_state.scheduled = true;
        return AOF_SCHEDULED;
    }
    return begin();
}

void aof_begin_anew(void)
{
    if (aof_state.stage != AOF_OFF) {
        aof_halt();          /* it may have been turned on meanwhile */
        (void)aof_rewrite(); /* the cron job tries again */
    }
}

/* ---- the end ---- */

/* Gives the child's file its name and place in a manifest. */
static int install(const char *temporary, struct aof_manifest *next)
{
    struct buf name = {0}, path = {0};
    aof_manifest_next_base(next, aof_settings.file_name, aof_settings.rdb_preamble, &name);
    buf_cstr(&name);
    uint64_t begin = spike_begin();
    int error = rename(temporary, aof_dir_path(&path, name.data)) < 0 ? errno : 0;
    spike_end("aof-rename", begin);
    if (!error) {
        error = aof_dir_sync();
    }
    aof_manifest_add(next, buf_slice(&name), next->base_seq + 1, AOF_BASE);
    if (aof_state.stage == AOF_WAITING) {
        /* It is there since the fork. */
        aof_manifest_next_increment(next, aof_settings.file_name, &name);
        aof_manifest_add(next, buf_slice(&name), next->increment_seq + 1, AOF_INCREMENT);
    }
    aof_manifest_retire(next, rewrite.from_off ? 0 : 1);
    if (!error) {
        error = aof_dir_write_manifest(next);
    }
    buf_deinit(&name);
    buf_deinit(&path);
    return error;
}

static void succeed(struct aof_manifest *next)
{
    struct aof_manifest before = aof_state.manifest;
    aof_state.manifest = *next;
    *next = before;
    aof_dir_delete_history(&aof_state.manifest);
    int error = aof_dir_write_manifest(&aof_state.manifest);
    if (error) {
        /* Files that are not there any more stay in its history: harmless. */
        log_warning("Cannot write the AOF's manifest once more: %s", strerror(error));
    }
    uint64_t tail_bytes = rewrite.from_off ? 0 : aof_tail_facts().file_bytes;
    aof_state.base_bytes = aof_dir_bytes(&aof_state.manifest);
    aof_state.closed_bytes =
        aof_state.base_bytes > tail_bytes ? aof_state.base_bytes - tail_bytes : 0;
    rewrite.last_ok = true;
    rewrite.failures = 0;
    if (aof_state.stage != AOF_OFF) {
        if (aof_tail_facts().sync_failures == rewrite.sync_failures) {
            aof_tail_trust();
        }
        aof_set_stage(AOF_ON);
    }
    log_notice("Background AOF rewrite terminated with success");
}

/* Puts the base under that name into its place; 0 or an errno. */
static int finish(const char *temporary)
{
    struct aof_manifest next = {0};
    aof_manifest_copy(&next, &aof_state.manifest);
    int error = install(temporary, &next);
    if (!error) {
        succeed(&next);
    }
    aof_manifest_deinit(&next);
    return error;
}

static void child_ended(struct child_end end)
{
    char temporary[48];
    temporary_name(aof_state.child, temporary);
    int error = end.error;
    rewrite.took_s = (clock_wall_ms() - rewrite.start_ms) / 1000;
    rewrite.last_end_ms = clock_wall_ms();
    rewrite.last_cow_bytes = child_report_read(CHILD_AOF_REWRITE).cow_peak_bytes;
    if (!error) {
        error = finish(temporary);
    }
    if (error) {
        if (end.signal) {
            log_warning("Background AOF rewrite terminated by signal %d", end.signal);
        } else {
            log_warning("Background AOF rewrite terminated with error: %s", strerror(error));
        }
        note_failure();
    }
    unlink(temporary);
    /* Only now: who sees in INFO that no rewrite runs may rely on what it has done. */
    aof_state.child = 0;
    aof_apply_sync();
}

bool aof_complete(void)
{
    char temporary[48];
    int fd;
    if (aof_state.stage != AOF_WAITING || !load_is_complete()) {
        return true;
    }
    aof_kill_child();
    snapshot_finish();
    log_notice("The AOF has no base of the data set yet: writing it");
    temporary_name((int)getpid(), temporary);
    int error = prepare(&fd);
    if (!error) {
        keyspace_lock_exclusive();
        aof_log_into(fd, 0);
        keyspace_unlock_exclusive();
        modules_news(MODULES_PERSISTENCE, 5, NULL);
        error = write_temporary(temporary);
        modules_news(MODULES_PERSISTENCE, error ? 4 : 3, NULL);
    }
    if (!error) {
        error = finish(temporary);
    }
    if (error) {
        log_warning("Cannot write the AOF's base: %s", strerror(error));
        note_failure();
    }
    unlink(temporary);
    return !error;
}

void aof_kill_child(void)
{
    int pid = aof_state.child;
    char temporary[48];
    if (!pid) {
        return;
    }
    temporary_name(pid, temporary);
    fork_child_kill(&pid);
    unlink(temporary);
    aof_state.child = 0;
    aof_apply_sync();
}

/* ---- when ---- */

static uint64_t current_bytes(void)
{
    return aof_state.closed_bytes + aof_tail_facts().file_bytes;
}

/* The files have grown by so much that a rewrite pays. */
static bool has_grown(void)
{
    uint64_t now = current_bytes(), base = aof_state.base_bytes ? aof_state.base_bytes : 1;
    return aof_state.stage == AOF_ON && aof_settings.rewrite_percentage > 0 &&
           now > (uint64_t)aof_settings.rewrite_min_bytes && now > base &&
           (now - base) / base >= (uint64_t)aof_settings.rewrite_percentage / 100 &&
           (double)(now - base) * 100.0 >= (double)base * (double)aof_settings.rewrite_percentage;
}

/* Nothing is durable until there is a new base. */
static bool is_needed(void)
{
    return aof_state.stage == AOF_WAITING || aof_tail_facts().sync_error != 0;
}

static bool is_too_soon(int64_t wall_ms, bool needed)
{
    int64_t delay_ms = 0;
    if (rewrite.failures >= FAILURES_AT_ONCE) {
        uint64_t more = rewrite.failures - FAILURES_AT_ONCE;
        delay_ms = FAILURE_DELAY_MS
                   << (more < FAILURE_DELAY_DOUBLINGS ? more : FAILURE_DELAY_DOUBLINGS);
    }
    if (needed) {
        delay_ms = rewrite.failures < NEEDED_OFTEN ? NEEDED_DELAY_MS : NEEDED_SELDOM_MS;
    }
    return wall_ms - rewrite.last_end_ms < delay_ms;
}

static void rewrite_cron(int64_t wall_ms)
{
    struct child_end end;
    int pid = aof_state.child;
    if (aof_settings.no_sync_on_rewrite) {
        aof_apply_sync(); /* another child may have begun or ended */
    }
    if (fork_child_has_ended(&pid, &end)) {
        child_ended(end);
    }
    if (aof_state.child || save_has_child() || !load_is_complete() || keyspace_is_busy() ||
        snapshot_is_unfinished()) {
        return;
    }
    bool needed = is_needed();
    bool asked = aof_state.scheduled; /* by somebody who does not wait for a pause of the log's */
    if ((asked || needed || has_grown()) && !is_too_soon(wall_ms, needed && !asked)) {
        begin();
    }
}

static const struct cron_job rewrite_job = {
    .name = "aof", .period_ms = CRON_PERIOD_MS, .run = rewrite_cron};

/* ---- INFO ---- */

static void write_info(struct buf *out)
{
    struct aof_tail_facts facts = aof_tail_facts();
    bool child = aof_state.child != 0;
    int64_t now_s = child ? (clock_wall_ms() - rewrite.start_ms) / 1000 : -1;
    field_i64(out, "aof_enabled", aof_state.stage != AOF_OFF);
    field_i64(out, "aof_rewrite_in_progress", child);
    field_i64(out, "aof_rewrite_scheduled", aof_state.scheduled);
    field_i64(out, "aof_last_rewrite_time_sec", rewrite.took_s);
    field_i64(out, "aof_current_rewrite_time_sec", now_s);
    field_text(out, "aof_last_bgrewrite_status", rewrite.last_ok ? "ok" : "err");
    field_u64(out, "aof_rewrites", stats_sum(STAT_AOF_REWRITES));
    field_u64(out, "aof_rewrites_consecutive_failures", rewrite.failures);
    field_text(out, "aof_last_write_status", facts.write_error || facts.sync_error ? "err" : "ok");
    field_u64(out, "aof_last_cow_size", rewrite.last_cow_bytes);
    field_u64(out, "module_fork_in_progress", fork_child_module_runs());
    field_u64(out, "module_fork_last_cow_size", child_report_read(CHILD_MODULE).cow_bytes);
    if (aof_state.stage != AOF_OFF) {
        field_u64(out, "aof_current_size", current_bytes());
        field_u64(out, "aof_base_size", aof_state.base_bytes);
        field_i64(out, "aof_pending_rewrite", aof_state.scheduled);
        field_u64(out, "aof_buffer_length", facts.buffered);
        field_u64(out, "aof_pending_bio_fsync", facts.syncing);
        field_u64(out, "aof_delayed_fsync", facts.delayed);
    }
}

static const struct info_section info = {
    .name = "persistence", .title = "Persistence", .in_default = true, .write = write_info};

void aof_rewrite_setup(void)
{
    cron_register(&rewrite_job);
    info_register(&info);
}
