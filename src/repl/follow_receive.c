/* See follow_priv.h: a whole data set from the primary. */
#include "repl/follow_priv.h"

#include "base/log.h"
#include "base/num.h"
#include "engine/function_store.h"
#include "engine/propagate.h"
#include "engine/tracking.h"
#include "keyspace/db.h"
#include "keyspace/reclaim.h"
#include "persist/aof.h"
#include "persist/load.h"
#include "persist/rdb_file.h"
#include "repl/apply.h"
#include "repl/backlog.h"
#include "repl/replica.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MARK_LEN 40

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

static void empty_everything(void)
{
    keyspace_lock_exclusive();
    if (propagate_on) { /* the AOF */
        propagate_command(db_at(0), 1, &(struct slice){"FLUSHALL", 8});
        propagate_command(db_at(0), 2, (const struct slice[]){SLICE("FUNCTION"), SLICE("FLUSH")});
    }
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

static uint64_t file_bytes(void)
{
    return receiving.got;
}

static enum load_result load_file(void)
{
    struct rdb_file_loaded loaded;
    empty_everything();
    enum rdb_file_load result = rdb_file_load(receiving.name, 0, &loaded);
    if (result == RDB_FILE_FINE) {
        apply_select(loaded.stream_db);
        keyspace_lock_exclusive();
        backlog_follow(slice_of(receiving.id, REPL_ID_LEN), receiving.offset, apply_db());
        keyspace_unlock_exclusive();
        log_notice("The primary's data set is loaded: %" PRIu64 " keys", loaded.keys);
        return LOAD_FINE;
    }
    log_warning("The primary's data set cannot be loaded: %s",
                loaded.stopped ? "called off" : loaded.error);
    empty_everything();
    keyspace_lock_exclusive();
    backlog_turn_off(); /* what is here is nobody's history */
    keyspace_unlock_exclusive();
    return loaded.stopped ? LOAD_STOPPED : LOAD_BAD;
}

static const struct load_source source = {
    .name = "the primary's data set", .is_wanted = always, .bytes = file_bytes, .load = load_file};

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

/* Has the data set replaced, unless we follow somebody else by now. */
static bool replace_data(struct follow_link *l) NO_THREAD_SAFETY_ANALYSIS
{
    bool fine = false;
    gil_wake();
    if (!l->interrupted()) {
        receiving.link = l;
        fine = load_again(&source, &listener) == LOAD_FINE;
    }
    if (fine && propagate_on) {
        /* Its files begin anew, with what was loaded past it; if not now, then by the cron. */
        gil_stop_world();
        aof_begin_anew();
        gil_resume_world();
    }
    gil_sleep();
    return fine;
}

bool follow_receive(struct follow_link *l, const char *id, uint64_t offset)
{
    char line[FOLLOW_LINE_BYTES];
    if (!follow_line(l, line) || !parse_head(line)) {
        return false;
    }
    snprintf(receiving.name, sizeof(receiving.name), "temp-follow-%d.rdb", (int)getpid());
    snprintf(receiving.id, sizeof(receiving.id), "%.40s", id);
    receiving.offset = offset;
    receiving.fd = open(receiving.name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (receiving.fd < 0) {
        log_warning("Can't open %s for the primary's data set: %s", receiving.name,
                    strerror(errno));
        return false;
    }
    receiving.runs = true;
    bool fine = copy_to_file(l);
    close(receiving.fd);
    fine = fine && replace_data(l);
    unlink(receiving.name);
    receiving.runs = false;
    return fine;
}
