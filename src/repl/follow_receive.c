/* See follow_priv.h: a whole data set from the primary. */
#include "repl/follow_priv.h"

#include "base/log.h"
#include "base/num.h"
#include "engine/function_store.h"
#include "engine/modules.h"
#include "engine/tracking.h"
#include "keyspace/db.h"
#include "keyspace/reclaim.h"
#include "persist/aof.h"
#include "persist/load.h"
#include "persist/rdb_file.h"
#include "persist/save.h"
#include "repl/apply.h"
#include "repl/backlog.h"
#include "repl/enveloped.h"
#include "repl/replica.h"
#include "repl/sync.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MARK_LEN 40
/* Between two looks around while nothing comes. */
#define LOOK_MS 100
/* Of the primary's keys none is left out as due: it tells which are gone. */
#define NONE_DUE 0

/* The one transfer there can be. */
static struct {
    char name[40];
    int fd; /* of its file */
    char mark[MARK_LEN];
    bool by_mark;
    uint64_t length;     /* by length */
    char tail[MARK_LEN]; /* the last bytes, by mark */
    size_t tail_len;
    char id[REPL_ID_LEN + 1];
    uint64_t offset;
    struct follow_link *link;
    _Atomic uint64_t got, total;
    _Atomic bool runs;
    _Atomic int64_t io_ms;
} receiving;

void follow_write_transfer(struct buf *out)
{
    if (!receiving.runs) {
        return;
    }
    uint64_t got = receiving.got, total = receiving.total;
    int64_t ago_s = (replica_clock_ms() - receiving.io_ms) / 1000;
    buf_printf(out,
               "master_sync_total_bytes:%" PRIu64 "\r\nmaster_sync_read_bytes:%" PRIu64
               "\r\nmaster_sync_left_bytes:%" PRId64 "\r\nmaster_sync_perc:%.2f\r\n"
               "master_sync_last_io_seconds_ago:%" PRId64 "\r\n",
               total, got, (int64_t)(total - got),
               total ? 100.0 * (double)got / (double)total : 0.0, ago_s);
}

/* ---- to the file ---- */

static bool write_all(const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t done = write(receiving.fd, bytes, len);
        if (done < 0 && errno == EINTR) {
            continue;
        }
        if (done <= 0) {
            log_warning("Can't write what the primary sends: %s", strerror(errno));
            return false;
        }
        bytes += done;
        len -= (size_t)done;
    }
    return true;
}

/* Notes the last bytes; true when they are the mark. */
static bool ends_with_mark(const char *bytes, size_t len)
{
    if (len >= MARK_LEN) {
        memcpy(receiving.tail, bytes + len - MARK_LEN, MARK_LEN);
        receiving.tail_len = MARK_LEN;
    } else {
        size_t keep = receiving.tail_len;
        keep = keep > MARK_LEN - len ? MARK_LEN - len : keep;
        memmove(receiving.tail, receiving.tail + receiving.tail_len - keep, keep);
        memcpy(receiving.tail + keep, bytes, len);
        receiving.tail_len = keep + len;
    }
    return receiving.tail_len == MARK_LEN && memcmp(receiving.tail, receiving.mark, MARK_LEN) == 0;
}

static bool copy_to_file(struct follow_link *l)
{
    bool whole = !receiving.by_mark && receiving.length == 0;
    while (!whole) {
        if (!follow_fill(l)) {
            log_warning("The link broke while the data set came");
            return false;
        }
        size_t len = l->end - l->begin;
        if (!receiving.by_mark && len > receiving.length - receiving.got) {
            len = (size_t)(receiving.length - receiving.got);
        }
        if (!write_all(l->bytes + l->begin, len)) {
            return false;
        }
        receiving.got += len;
        receiving.io_ms = replica_clock_ms();
        whole = receiving.by_mark ? ends_with_mark(l->bytes + l->begin, len)
                                  : receiving.got == receiving.length;
        l->begin += len;
    }
    if (receiving.by_mark && ftruncate(receiving.fd, (off_t)(receiving.got - MARK_LEN)) < 0) {
        return false;
    }
    return true;
}

/* "$length" or "$EOF:mark". */
static bool parse_head(const char *line)
{
    receiving.got = receiving.total = receiving.length = 0;
    receiving.tail_len = 0;
    receiving.io_ms = replica_clock_ms();
    receiving.by_mark = strncmp(line, "$EOF:", 5) == 0;
    if (receiving.by_mark && strlen(line) == 5 + MARK_LEN) {
        memcpy(receiving.mark, line + 5, MARK_LEN);
        return true;
    }
    if (!receiving.by_mark && line[0] == '$' &&
        num_parse_u64(slice_cstr(line + 1), &receiving.length) && receiving.length < INT64_MAX) {
        receiving.total = receiving.length;
        return true;
    }
    log_warning("The primary does not send a data set but: %.100s", line);
    return false;
}

/* ---- from the file ---- */

/* Ours goes: no log may hear of it, as its files hold our data set until they hold the new one, and
 * nobody wants a file of it that is still being written. */
static void halt_log(void) NO_THREAD_SAFETY_ANALYSIS
{
    gil_stop_world();
    save_abandon();
    aof_halt();
    gil_resume_world();
}

static void empty_everything(void)
{
    keyspace_lock_exclusive();
    function_store_flush();
    for (int i = 0; i < db_count(); i++) {
        db_flush(db_at(i), follow_settings.lazy_flush);
    }
    tracking_flushed();
    keyspace_unlock_exclusive();
    reclaim_run();
}

static bool always(void)
{
    return true;
}

static uint64_t bytes_to_come(void)
{
    return receiving.total ? receiving.total : receiving.got;
}

/* What is here now is the history that came. */
static void settle(const struct rdb_file_loaded *loaded) REQUIRES(keyspace_lock)
{
    apply_select(loaded->stream_db);
    enveloped_begin_history();
    backlog_follow(slice_of(receiving.id, REPL_ID_LEN), receiving.offset, apply_db());
}

static void log_outcome(bool fine, const struct rdb_file_loaded *loaded)
{
    if (fine) {
        log_notice("The primary's data set is loaded: %" PRIu64 " keys", loaded->keys);
    } else {
        log_warning("The primary's data set cannot be loaded: %s",
                    loaded->stopped ? "called off" : loaded->error);
    }
}

/* The end of loading it in place of ours. */
static enum load_result end_over(bool fine, const struct rdb_file_loaded *loaded)
{
    log_outcome(fine, loaded);
    if (fine) {
        keyspace_lock_exclusive();
        settle(loaded);
        keyspace_unlock_exclusive();
        return LOAD_FINE;
    }
    empty_everything();
    keyspace_lock_exclusive();
    backlog_turn_off(); /* what is here is nobody's history */
    keyspace_unlock_exclusive();
    return loaded->stopped ? LOAD_STOPPED : LOAD_BAD;
}

static enum load_result load_file(void)
{
    struct rdb_file_loaded loaded;
    halt_log();
    empty_everything();
    return end_over(rdb_file_load(receiving.name, NONE_DUE, &loaded) == RDB_FILE_FINE, &loaded);
}

/* ---- straight from the link ---- */

/* A feed's `next` (rdb_reader.h). Others have the world while nothing comes. */
static const char *next_bytes(void *context, uint64_t most,
                              struct slice *bytes) NO_THREAD_SAFETY_ANALYSIS
{
    struct follow_link *l = context;
    int64_t since_ms = replica_clock_ms();
    while (l->begin == l->end) {
        gil_sleep();
        int got = follow_wait(l, LOOK_MS);
        gil_wake();
        if (l->interrupted(l) || !load_step(receiving.got, false)) {
            return "called off";
        }
        if (got < 0) {
            return "the link broke";
        }
        if (got == 0 && replica_clock_ms() - since_ms > sync_settings.timeout_s * 1000) {
            return "nothing came for repl-timeout";
        }
    }
    size_t len = l->end - l->begin;
    len = len < most ? len : (size_t)most;
    *bytes = slice_of(l->bytes + l->begin, len);
    l->begin += len;
    receiving.got += len;
    receiving.io_ms = replica_clock_ms();
    return NULL;
}

/* Reads the data set up to its end; the bytes behind it are on the link then. */
static bool load_link(bool aside, struct rdb_file_loaded *loaded)
{
    struct follow_link *l = receiving.link;
    struct rdb_feed feed = {.next = next_bytes,
                            .context = l,
                            .length = receiving.by_mark ? RDB_FEED_OPEN : receiving.length};
    struct slice mark = slice_of(receiving.mark, receiving.by_mark ? MARK_LEN : 0);
    bool fine = rdb_file_load_feed(&feed, mark, aside, NONE_DUE, loaded) == RDB_FILE_FINE;
    assert(receiving.got - loaded->bytes <= l->begin);
    l->begin -= (size_t)(receiving.got - loaded->bytes);
    if (fine && (l->interrupted(l) || follow_is_ending())) {
        loaded->stopped = true;
        return false;
    }
    return fine;
}

static enum load_result load_in_place(void)
{
    struct rdb_file_loaded loaded;
    log_notice("Loading the primary's data set straight from the link");
    halt_log();
    empty_everything();
    return end_over(load_link(false, &loaded), &loaded);
}

/* The data set aside takes the place of ours, unless a library of it cannot be loaded. */
static bool swap_in(struct rdb_file_loaded *loaded) NO_THREAD_SAFETY_ANALYSIS
{
    struct buf error = {0};
    gil_stop_world();
    keyspace_lock_exclusive();
    bool fine = function_store_take_aside(&error);
    if (fine) {
        db_aside_swap();
        tracking_flushed();
        follow_dismiss_replicas();
        settle(loaded);
    }
    keyspace_unlock_exclusive();
    if (fine) {
        save_abandon();
        aof_halt(); /* nobody has written in between */
    }
    gil_resume_world();
    if (!fine) {
        snprintf(loaded->error, sizeof(loaded->error), "a library that cannot be loaded: %s",
                 buf_cstr(&error));
    }
    buf_deinit(&error);
    return fine;
}

static enum load_result load_aside(void)
{
    struct rdb_file_loaded loaded;
    log_notice("Loading the primary's data set straight from the link, aside");
    db_aside_open();
    bool fine = load_link(true, &loaded) && swap_in(&loaded);
    log_outcome(fine, &loaded);
    function_store_drop_aside();
    db_aside_close();
    return fine ? LOAD_FINE : loaded.stopped ? LOAD_STOPPED : LOAD_BAD;
}

static const char source_name[] = "the primary's data set";
static const struct load_source file_source = {
    .name = source_name, .is_wanted = always, .bytes = bytes_to_come, .load = load_file};
static const struct load_source link_source = {
    .name = source_name, .is_wanted = always, .bytes = bytes_to_come, .load = load_in_place};
static const struct load_source aside_source = {
    .name = source_name, .is_wanted = always, .bytes = bytes_to_come, .load = load_aside};

/* ---- which way ---- */

/* Signs of life to the primary. */
static void on_progress(unsigned percent)
{
    (void)percent;
    follow_send_newline(receiving.link);
}

static void on_ended(bool fine)
{
    (void)fine;
}

static const struct load_listener listener = {.progress = on_progress, .ended = on_ended};

static bool has_keys(void)
{
    keyspace_lock_shared();
    bool has = db_all_keys() > 0;
    keyspace_unlock_shared();
    return has;
}

/* What is here is of the history that comes, at another place. */
static bool is_same_history(void)
{
    keyspace_lock_shared();
    bool same = backlog_is_on() && load_is_complete() &&
                slice_equal(slice_cstr(receiving.id), slice_cstr(backlog_id()));
    keyspace_unlock_shared();
    return same;
}

/* Has the data set replaced, unless we follow somebody else by now. */
static bool replace_data(struct follow_link *l, const struct load_source *source,
                         enum load_again how) NO_THREAD_SAFETY_ANALYSIS
{
    bool fine = false;
    gil_wake();
    if (!l->interrupted(l)) {
        receiving.link = l;
        if (how == LOAD_ASIDE && is_same_history()) {
            how = LOAD_ASIDE_SERVING;
        }
        fine = load_again(source, how, &listener) == LOAD_FINE;
    }
    if (fine) {
        /* Its files begin anew, with what was loaded past it; if not now, then by the cron. */
        gil_stop_world();
        aof_begin_anew();
        gil_resume_world();
    }
    gil_sleep();
    return fine;
}

static bool receive_by_file(struct follow_link *l)
{
    snprintf(receiving.name, sizeof(receiving.name), "temp-follow-%d.rdb", (int)getpid());
    receiving.fd = open(receiving.name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (receiving.fd < 0) {
        log_warning("Can't open %s for the primary's data set: %s", receiving.name,
                    strerror(errno));
        return false;
    }
    bool fine = copy_to_file(l);
    close(receiving.fd);
    fine = fine && replace_data(l, &file_source, LOAD_OVER);
    unlink(receiving.name);
    return fine;
}

/* What repl-diskless-load says. */
static enum follow_diskless setting(void) NO_THREAD_SAFETY_ANALYSIS
{
    gil_wake();
    enum follow_diskless diskless = (enum follow_diskless)follow_settings.diskless_load;
    if (diskless == DISKLESS_SWAP && !modules_allow_load_aside()) {
        log_notice("The primary's data set is not loaded beside ours: a module does not know of "
                   "that");
        diskless = DISKLESS_DISABLED;
    }
    gil_sleep();
    return diskless;
}

static bool is_empty(void) NO_THREAD_SAFETY_ANALYSIS
{
    gil_wake();
    bool empty = !has_keys();
    gil_sleep();
    return empty;
}

bool follow_receive(struct follow_link *l, const char *id, uint64_t offset)
{
    char line[FOLLOW_LINE_BYTES];
    enum follow_diskless diskless = setting();
    bool fine;
    if (diskless != DISKLESS_SWAP) {
        follow_dismiss_replicas();
    }
    if (!follow_line(l, line) || !parse_head(line)) {
        return false;
    }
    snprintf(receiving.id, sizeof(receiving.id), "%.40s", id);
    receiving.offset = offset;
    receiving.runs = true;
    if (diskless == DISKLESS_SWAP) {
        fine = replace_data(l, &aside_source, LOAD_ASIDE);
    } else if (diskless == DISKLESS_ON_EMPTY && is_empty()) {
        fine = replace_data(l, &link_source, LOAD_OVER);
    } else {
        fine = receive_by_file(l);
    }
    receiving.runs = false;
    return fine;
}
