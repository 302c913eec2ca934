/* See save.h. */
#include "persist/save.h"

#include "base/clock.h"
#include "base/field.h"
#include "base/log.h"
#include "base/stats.h"
#include "engine/cron.h"
#include "engine/fork_child.h"
#include "engine/gate.h"
#include "engine/info.h"
#include "engine/modules.h"
#include "engine/propagate.h"
#include "engine/shutdown.h"
#include "engine/snapshot.h"
#include "keyspace/db.h"
#include "persist/aof.h"
#include "persist/aof_tail.h"
#include "persist/child_report.h"
#include "persist/dots.h"
#include "persist/kept.h"
#include "persist/notes.h"
#include "persist/payload.h"
#include "persist/rdb_file.h"
#include "persist/save_priv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A save point does not try again sooner after a failure. */
#define RETRY_S 5
#define CRON_PERIOD_MS 100

static struct {
    _Atomic int child;    /* its pid, 0 without one */
    bool scheduled;       /* BGSAVE SCHEDULE waits */
    bool flushed;         /* the unit that is open has emptied everything */
    uint64_t child_dirty; /* STAT_DIRTY when it was forked */
    _Atomic int64_t child_start_ms;
    _Atomic int64_t transfer_start_ms; /* of the child that writes for replicas; 0 without one */
    _Atomic uint64_t saved_dirty;      /* STAT_DIRTY when the last successful save began */
    _Atomic int64_t last_s, last_try_s, last_took_s; /* the last -1: none yet */
    _Atomic bool last_ok;
    _Atomic uint64_t last_cow_bytes;
} state = {.last_took_s = -1, .last_ok = true};

int64_t save_last_s(void)
{
    return state.last_s;
}

static uint64_t changes(void)
{
    return stats_sum(STAT_DIRTY) - state.saved_dirty;
}

/* Whether writes are to be refused follows from the last result and the configuration. */
void save_judge_writes(void)
{
    bool refuse = !state.last_ok && save_settings.stop_writes && save_settings.point_count > 0;
    gate_set(GATE_SAVE_FAILED, refuse);
}

/* A save that began when STAT_DIRTY was `dirty` has ended. As in Redis any success counts, but a
 * failure only of one in the background: whoever waits for SAVE is told of its fault. */
static void note_end(int error, uint64_t dirty)
{
    if (error == 0) {
        state.last_ok = true;
        state.saved_dirty = dirty;
        state.last_s = clock_wall_ms() / 1000;
        log_notice("DB saved on disk");
    } else {
        log_warning("Saving into %s failed: %s", save_settings.file_name, strerror(error));
    }
    save_judge_writes();
}

/* The notes (notes.h) of the file that was written in this thread last. */
static struct buf saved_notes;

/* True when the notes are other ones by now. */
static bool notes_changed(void) REQUIRES_SHARED(keyspace_lock);
static bool notes_changed(void)
{
    struct buf now = {0};
    notes_format_line(&now);
    bool changed = !slice_equal(buf_slice(&now), buf_slice(&saved_notes));
    buf_deinit(&now);
    return changed;
}

/* Takes the lock unless the calling thread has it; tells whether it did. Exclusive, though nothing
 * is written but a file: modules may be told of it. */
static bool visit(void) NO_THREAD_SAFETY_ANALYSIS
{
    bool takes = !keyspace_is_exclusive();
    if (takes) {
        keyspace_lock_exclusive();
    }
    return takes;
}

static void leave(bool taken) NO_THREAD_SAFETY_ANALYSIS
{
    if (taken) {
        keyspace_unlock_exclusive();
    }
}

/* Writes the file in this thread. */
static enum save_result save_here(void) REQUIRES_SHARED(keyspace_lock);
static enum save_result save_here(void)
{
    int64_t start_ms = clock_wall_ms();
    uint64_t dirty = stats_sum(STAT_DIRTY);
    int error = rdb_file_save(save_settings.file_name, start_ms);
    buf_clear(&saved_notes);
    notes_format_line(&saved_notes);
    note_end(error, dirty);
    return error ? SAVE_FAILED : SAVE_DONE;
}

static enum save_result save_telling(void) NO_THREAD_SAFETY_ANALYSIS
{
    bool taken = visit();
    modules_news(MODULES_PERSISTENCE, 2, NULL);
    enum save_result result = save_here();
    modules_news(MODULES_PERSISTENCE, result == SAVE_DONE ? 3 : 4, NULL);
    leave(taken);
    return result;
}

enum save_result save_now(void)
{
    if (state.child) {
        return SAVE_RUNNING;
    }
    snapshot_finish();
    return save_telling();
}

/* ---- the child ---- */

/* Begins a save in a child, with the keyspace lock held. */
static enum save_result begin_child(void) REQUIRES_SHARED(keyspace_lock);
static enum save_result begin_child(void)
{
    int64_t now_ms = clock_wall_ms();
    assert(state.child == 0);
    state.last_try_s = now_ms / 1000;
    state.child_dirty = stats_sum(STAT_DIRTY);
    stats_add(STAT_RDB_SAVES, 1);
    int pid = child_report_fork(CHILD_SAVE, -1);
    if (pid == 0) {
        child_report_exit(rdb_file_save(save_settings.file_name, now_ms));
    }
    if (pid < 0) {
        log_warning("Can't save in background: fork: %s", strerror(errno));
        state.last_ok = false;
        save_judge_writes();
        return SAVE_FAILED;
    }
    state.child_start_ms = now_ms;
    state.child = pid;
    state.scheduled = false;
    log_notice("Background saving started by pid %d", pid);
    return SAVE_DONE;
}

bool save_has_child(void)
{
    return state.child != 0;
}

enum save_result save_in_background(void) NO_THREAD_SAFETY_ANALYSIS
{
    if (state.child) {
        return SAVE_RUNNING;
    }
    if (propagate_in_unit() || snapshot_is_unfinished()) { /* half of it must not be in a file */
        state.scheduled = true;
        return SAVE_SCHEDULED;
    }
    if (aof_has_child()) {
        return SAVE_BUSY;
    }
    bool taken = visit();
    enum save_result result = begin_child();
    leave(taken);
    return result;
}

void save_schedule(void)
{
    state.scheduled = true;
}

static void note_child(enum child_kind kind, int64_t start_ms)
{
    state.last_cow_bytes = child_report_read(kind).cow_peak_bytes;
    state.last_took_s = (clock_wall_ms() - start_ms) / 1000;
}

void save_transfer_begins(void)
{
    state.transfer_start_ms = clock_wall_ms();
}

void save_transfer_ended(void)
{
    note_child(CHILD_TRANSFER, state.transfer_start_ms);
    state.transfer_start_ms = 0;
}

static void child_ended(int pid, struct child_end end)
{
    if (end.signal) {
        log_warning("Background saving terminated by signal %d", end.signal);
    } else if (end.error) {
        log_warning("Background saving error: %s", strerror(end.error));
    }
    rdb_file_remove_rest(pid);
    state.child = 0;
    note_child(CHILD_SAVE, state.child_start_ms);
    state.last_ok = end.error == 0;
    note_end(end.error, state.child_dirty);
    if (!end.error) {
        log_notice("Background saving terminated with success");
    }
}

/* With the lock: FLUSHALL, on any thread, may be about to end the child. */
static void look_after_child(void)
{
    struct child_end end;
    if (!state.child || !keyspace_try_exclusive()) {
        return; /* or a script takes long */
    }
    int pid = state.child;
    if (fork_child_has_ended(&pid, &end)) {
        child_ended(state.child, end);
    }
    keyspace_unlock_exclusive();
}

/* Ends the child, whose file is not wanted any more. */
static void kill_child(void)
{
    int pid = state.child, child = pid;
    fork_child_kill(&pid);
    if (child) {
        rdb_file_remove_rest(child);
        state.child = 0;
    }
}

void save_abandon(void)
{
    gil_assert_world();
    kill_child();
}

/* ---- FLUSHALL ---- */

/* Everything is gone, and a crash must not bring it back: neither by the file that is there nor by
 * the one that a child still writes. A log that is being loaded tells of old times only. */
static bool wants_emptiness(void) REQUIRES(keyspace_lock);
static bool wants_emptiness(void)
{
    kill_child();
    return save_settings.point_count > 0 && load_is_complete();
}

/* The file is that of a place in the stream, and within a unit there is none. */
static void flushed(void)
{
    keyspace_assert_exclusive();
    state.flushed = propagate_in_unit();
    if (!state.flushed && wants_emptiness()) {
        save_telling();
    }
}

static void unit_ended(void)
{
    if (unlikely(state.flushed)) {
        keyspace_assert_exclusive();
        state.flushed = false;
        if (wants_emptiness()) {
            save_here(); /* modules are not told: the logs are at work */
        }
    }
}

/* ---- the cron ---- */

/* True when a save point is reached. */
static bool save_is_due(int64_t now_s)
{
    uint64_t changed = changes();
    if (!state.last_ok && now_s - state.last_try_s < RETRY_S) {
        return false;
    }
    for (size_t i = 0; i < save_settings.point_count; i++) {
        const struct save_point *p = &save_settings.points[i];
        if (changed >= p->changes && now_s - state.last_s > p->seconds) {
            log_notice("%" PRIu64 " changes in %" PRId64 " seconds: saving", p->changes,
                       p->seconds);
            return true;
        }
    }
    return false;
}

static void save_cron(int64_t wall_ms)
{
    look_after_child();
    if (!state.child && !aof_has_child() && load_is_complete() &&
        (state.scheduled || save_is_due(wall_ms / 1000))) {
        if (!keyspace_try_exclusive()) {
            return; /* a script takes long */
        }
        if (!snapshot_is_unfinished()) {
            state.scheduled = false;
            begin_child();
        }
        keyspace_unlock_exclusive();
    }
}

static const struct cron_job save_job = {
    .name = "save", .period_ms = CRON_PERIOD_MS, .run = save_cron};

/* ---- start, reload and end ---- */

/* Adds what the file holds to the databases, or to the data set aside. */
static enum rdb_file_load load_file(bool aside)
{
    struct rdb_file_loaded loaded;
    int64_t start_ms = clock_wall_ms();
    enum rdb_file_load result =
        aside ? rdb_file_load_aside(save_settings.file_name, start_ms, &loaded)
              : rdb_file_load(save_settings.file_name, start_ms, &loaded);
    if (result == RDB_FILE_BAD && loaded.stopped) {
        log_notice("Loading %s was called off", save_settings.file_name);
    } else if (result == RDB_FILE_BAD) {
        log_warning("Cannot load %s: %s", save_settings.file_name, loaded.error);
    } else if (result == RDB_FILE_FINE) {
        log_notice("DB loaded from disk: %.3f seconds, %" PRIu64 " keys, %" PRIu64
                   " expired, %" PRIu64 " empty ones left out",
                   (double)(clock_wall_ms() - start_ms) / 1000, loaded.keys, loaded.expired,
                   loaded.empty);
    }
    return result;
}

/* A file that cannot be looked at is one all the same: loading it says why. */
static bool file_is_there(void)
{
    struct stat about;
    return stat(save_settings.file_name, &about) == 0 || errno != ENOENT;
}

static uint64_t file_bytes(void)
{
    struct stat about;
    return stat(save_settings.file_name, &about) == 0 ? (uint64_t)about.st_size : 0;
}

void save_forget_changes(void)
{
    state.saved_dirty = stats_sum(STAT_DIRTY);
}

static enum load_result load_at_start(void)
{
    enum rdb_file_load result = load_file(false);
    save_forget_changes();
    return result == RDB_FILE_BAD ? LOAD_BAD : LOAD_FINE;
}

const struct load_source save_load_source = {
    .name = "the RDB file", .is_wanted = file_is_there, .bytes = file_bytes, .load = load_at_start};

static void note_dots(const char *name UNUSED, struct slice value UNUSED, void *context)
{
    *(bool *)context = true;
}

/* An active replica: its peers have what it has, and nothing older. */
static bool has_dots(void)
{
    bool has = false;
    bool taken = keyspace_visit();
    keyspace_assert_shared();
    dots_tell(note_dots, &has);
    keyspace_leave(taken);
    return has;
}

/* The file's data in place of what is there; false, with all as it was, when it does not load. */
static bool load_instead(void)
{
    kept_begin();
    if (load_file(false) != RDB_FILE_FINE) {
        kept_restore();
        return false;
    }
    kept_drop();
    return true;
}

/* The file's data beside what is there; in the same way. */
static bool load_beside(bool replace)
{
    struct buf error = {0};
    db_aside_open();
    bool fine = load_file(true) == RDB_FILE_FINE && kept_add_aside(replace, &error);
    if (error.len > 0) {
        log_warning("Cannot load %s: %s", save_settings.file_name, buf_cstr(&error));
    }
    kept_drop();
    buf_deinit(&error);
    return fine;
}

static const char *reload(unsigned flags)
{
    static const char not_loaded[] = "ERR Error trying to load the RDB dump, check server logs.";
    gil_assert_world();
    if (flags & RELOAD_NOSAVE && has_dots()) {
        log_warning("An older file of an active replica is not loaded while it runs");
        return not_loaded;
    }
    if (!kept_may_begin()) {
        log_warning("No file is loaded while the data set of a primary is");
        return not_loaded;
    }
    if (!(flags & RELOAD_NOSAVE)) {
        kill_child(); /* what it writes is older, and would take the place of this */
        if (save_now() != SAVE_DONE) {
            return "ERR Error saving the data set, see the log";
        }
    }
    modules_news(MODULES_LOADING, 0, NULL);
    bool fine = flags & RELOAD_NOFLUSH ? load_beside(flags & RELOAD_MERGE) : load_instead();
    modules_news(MODULES_LOADING, fine ? 3 : 4, NULL);
    return fine ? NULL : not_loaded;
}

/* What is not all there yet is never saved. */
static bool wants_save(unsigned flags)
{
    if (!load_is_complete()) {
        return false;
    }
    return (flags & SHUTDOWN_SAVE) || (!(flags & SHUTDOWN_NOSAVE) && save_settings.point_count > 0);
}

static bool before_exit(unsigned flags)
{
    gil_assert_world();
    log_notice("User requested shutdown...");
    kill_child();
    if (!aof_before_exit() && !(flags & SHUTDOWN_FORCE)) {
        return false;
    }
    if (!wants_save(flags)) {
        return true;
    }
    log_notice("Saving the final RDB snapshot before exiting.");
    snapshot_finish();
    enum save_result result = save_telling();
    if (result == SAVE_FAILED && !(flags & SHUTDOWN_FORCE)) {
        log_warning("The data set could not be saved: the server goes on");
        return false;
    }
    return true;
}

void save_at_exit(unsigned flags)
{
    kill_child();
    if (wants_save(flags)) {
        keyspace_lock_shared();
        if (changes() > 0 || !state.last_ok || notes_changed()) {
            save_here();
        }
        keyspace_unlock_shared();
    }
}

/* Of the child that runs, of two of that for the server itself; zeros without one. */
static void write_child_info(struct buf *out)
{
    struct child_figures f = {0};
    if (state.child) {
        f = child_report_read(CHILD_SAVE);
    } else if (aof_has_child()) {
        f = child_report_read(CHILD_AOF_REWRITE);
    } else if (state.transfer_start_ms) {
        f = child_report_read(CHILD_TRANSFER);
    }
    int64_t age_s = f.cow_measured_ms ? (clock_wall_ms() - f.cow_measured_ms) / 1000 : 0;
    double share = f.keys_total ? (double)f.keys_done / (double)f.keys_total : 0;
    field_u64(out, "current_cow_peak", f.cow_peak_bytes);
    field_u64(out, "current_cow_size", f.cow_bytes);
    field_i64(out, "current_cow_size_age", age_s);
    field_fixed(out, "current_fork_perc", share * 100.0, 2);
    field_u64(out, "current_save_keys_processed", f.keys_done);
    field_u64(out, "current_save_keys_total", f.keys_total);
}

static void write_info(struct buf *out)
{
    int64_t transfer_ms = state.transfer_start_ms;
    int64_t start_ms = state.child ? (int64_t)state.child_start_ms : transfer_ms;
    bool writes = state.child || transfer_ms;
    int64_t took_s = writes ? (clock_wall_ms() - start_ms) / 1000 : -1;
    load_write_info(out);
    write_child_info(out);
    field_u64(out, "rdb_changes_since_last_save", changes());
    field_i64(out, "rdb_bgsave_in_progress", writes);
    field_i64(out, "rdb_last_save_time", save_last_s());
    field_text(out, "rdb_last_bgsave_status", state.last_ok ? "ok" : "err");
    field_i64(out, "rdb_last_bgsave_time_sec", state.last_took_s);
    field_i64(out, "rdb_current_bgsave_time_sec", took_s);
    field_u64(out, "rdb_saves", stats_sum(STAT_RDB_SAVES));
    field_u64(out, "rdb_last_cow_size", state.last_cow_bytes);
    load_write_info_progress(out);
}

static const struct info_section info = {
    .name = "persistence", .title = "Persistence", .in_default = true, .write = write_info};

static const char *reload_log(void)
{
    gil_assert_world();
    return aof_reload();
}

static void trust_checksums(bool trusted)
{
    gil_assert_world();
    payload_trusts_checksums = trusted;
}

static const struct snapshot_ops ops = {.before_exit = before_exit,
                                        .reload = reload,
                                        .reload_log = reload_log,
                                        .flushed = flushed,
                                        .trust_checksums = trust_checksums,
                                        .slow_log = aof_tail_slow};

void save_setup(void)
{
    state.last_s = clock_wall_ms() / 1000;
    child_report_setup();
    cron_register(&save_job);
    info_register(&info);
    snapshot_set_ops(&ops);
    propagate_set_unit_listener(unit_ended);
}

void save_teardown(void)
{
    kill_child();
    child_report_teardown();
    buf_deinit(&saved_notes);
}
