/* See rdb_file.h: writing. */
#include "persist/rdb_file.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/spike.h"
#include "base/version.h"
#include "engine/fork_child.h"
#include "engine/function_store.h"
#include "keyspace/access.h"
#include "keyspace/db.h"
#include "keyspace/expire.h"
#include "persist/child_report.h"
#include "persist/dots.h"
#include "persist/notes.h"
#include "persist/rdb_format.h"
#include "persist/rdb_module.h"
#include "persist/rdb_value.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

bool rdb_file_compress = true, rdb_file_checksum = true, rdb_file_sync_often = true;
int64_t rdb_file_key_delay;

/* Keys between two looks at whether writing still works. */
#define SCAN_KEYS 1000

struct saver {
    struct rdb_writer w;
    int64_t now_ms;
    uint64_t keys;  /* since the last report */
    bool has_notes; /* the file says which history the data are */
    bool has_dots;  /* it is an active replica's */
    const struct db *db;
};

static void write_aux(struct rdb_writer *w, const char *name, const char *value)
{
    rdb_write_byte(w, RDB_OP_AUX);
    rdb_write_string(w, slice_cstr(name));
    rdb_write_string(w, slice_cstr(value));
}

static void put_note(const char *name, struct slice value, void *context)
{
    struct saver *s = context;
    rdb_write_byte(&s->w, RDB_OP_AUX);
    rdb_write_string(&s->w, slice_cstr(name));
    rdb_write_string(&s->w, value);
    s->has_notes = true;
}

static void put_field(const char *name, struct slice value, void *context)
{
    put_note(name, value, context);
    ((struct saver *)context)->has_dots = true;
}

static void save_dot(struct saver *s, const struct entry *e) NO_THREAD_SAFETY_ANALYSIS
{
    char dot[DOTS_BYTES];
    if (dots_of(s->db, e, dot)) {
        rdb_write_byte(&s->w, RDB_OP_AUX);
        rdb_write_string(&s->w, SLICE("active-dot"));
        rdb_write_string(&s->w, slice_of(dot, sizeof(dot)));
    }
}

/* How long it was not used, or how often: what eviction goes by, where it goes by that. */
static void save_access(struct saver *s, const struct entry *e)
{
    if (access_is_lfu()) {
        rdb_write_byte(&s->w, RDB_OP_FREQ);
        rdb_write_byte(&s->w, access_frequency(e, s->now_ms));
    } else if (access_is_lru()) {
        rdb_write_byte(&s->w, RDB_OP_IDLE);
        rdb_write_len(&s->w, (uint64_t)access_idle_ms(e, s->now_ms) / 1000);
    }
}

static void delay_child(uint64_t keys)
{
    int64_t us = rdb_file_key_delay > 0 ? rdb_file_key_delay : 1;
    struct timespec time = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
    bool due = rdb_file_key_delay > 0 || keys % (uint64_t)-rdb_file_key_delay == 0;
    if (due && fork_child_is_here()) {
        nanosleep(&time, NULL);
    }
}

static void save_entry(struct entry *e, void *context)
{
    struct saver *s = context;
    int64_t expiry_ms = entry_expiry_ms(e);
    if (s->w.error) {
        return;
    }
    s->keys++;
    if (unlikely(s->has_dots)) {
        save_dot(s, e);
    }
    save_access(s, e);
    if (expiry_ms != ENTRY_NO_EXPIRY) {
        rdb_write_byte(&s->w, RDB_OP_EXPIRE_MS);
        rdb_write_u64(&s->w, (uint64_t)expiry_ms);
    }
    rdb_write_byte(&s->w, rdb_value_type(e));
    rdb_write_string(&s->w, entry_key(e));
    rdb_save_value(&s->w, e);
    if (unlikely(rdb_file_key_delay != 0)) {
        delay_child(s->keys);
    }
}

static void save_db(struct saver *s, struct db *db) REQUIRES_SHARED(keyspace_lock);
static void save_db(struct saver *s, struct db *db)
{
    uint64_t cursor = 0;
    if (db_size(db) == 0) {
        return;
    }
    rdb_write_byte(&s->w, RDB_OP_SELECT);
    rdb_write_len(&s->w, (uint64_t)db->id);
    rdb_write_byte(&s->w, RDB_OP_RESIZE);
    rdb_write_len(&s->w, db_size(db));
    rdb_write_len(&s->w, db_expires(db));
    s->db = db;
    module_value_db = db->id;
    do {
        cursor = db_scan(db, cursor, SCAN_KEYS, s->now_ms, save_entry, s);
        child_report_keys(s->keys);
        s->keys = 0;
    } while (cursor && !s->w.error);
    module_value_db = -1;
}

static void save_head(struct saver *s, bool aof_base, int stream_db) REQUIRES_SHARED(keyspace_lock);
static void save_head(struct saver *s, bool aof_base, int stream_db)
{
    char text[32];
    snprintf(text, sizeof(text), "REDIS%04d", RDB_VERSION_WRITTEN);
    rdb_write(&s->w, text, 9);
    write_aux(&s->w, "redis-ver", REDIS_COMPAT_VERSION);
    write_aux(&s->w, "redis-bits", "64");
    snprintf(text, sizeof(text), "%" PRId64, s->now_ms / 1000);
    write_aux(&s->w, "ctime", text);
    snprintf(text, sizeof(text), "%zu", mem_used_bytes());
    write_aux(&s->w, "used-mem", text);
    write_aux(&s->w, "aof-base", aof_base ? "1" : "0");
    if (stream_db < 0) {
        notes_tell(put_note, s);
        dots_tell(put_field, s);
    } else {
        snprintf(text, sizeof(text), "%d", stream_db);
        write_aux(&s->w, "repl-stream-db", text);
    }
}

static void save_functions(struct saver *s) REQUIRES_SHARED(keyspace_lock);
static void save_functions(struct saver *s)
{
    for (size_t i = 0; i < function_store_count(); i++) {
        rdb_write_byte(&s->w, RDB_OP_FUNCTION);
        rdb_write_string(&s->w, function_store_code(i));
    }
}

/* What has expired and was not told as deleted is still there in the history that a stream or the
 * file's notes go on with. */
static void save_keys(struct saver *s, bool for_stream) REQUIRES_SHARED(keyspace_lock);
static void save_keys(struct saver *s, bool for_stream)
{
    bool frozen = expire_frozen;
    expire_frozen |= s->has_notes || for_stream;
    for (int i = 0; i < db_count(); i++) {
        save_db(s, db_at(i));
    }
    expire_frozen = frozen;
}

/* Writes everything but `left_out` into the open file. */
static int save_all(int fd, int64_t now_ms, bool aof_base, int stream_db, unsigned left_out)
    REQUIRES_SHARED(keyspace_lock);
static int save_all(int fd, int64_t now_ms, bool aof_base, int stream_db, unsigned left_out)
{
    struct saver s = {.now_ms = now_ms};
    rdb_writer_init(&s.w, fd, rdb_file_compress, rdb_file_checksum);
    s.w.sync_often = rdb_file_sync_often && stream_db < 0; /* a pipe cannot be */
    save_head(&s, aof_base, stream_db);
    if (!(left_out & RDB_FILE_KEYS)) {
        rdb_module_save_aux(&s.w, RDB_MODULE_BEFORE_KEYS);
    }
    if (!(left_out & RDB_FILE_FUNCTIONS)) {
        save_functions(&s);
    }
    if (!(left_out & RDB_FILE_KEYS)) {
        save_keys(&s, stream_db >= 0);
        rdb_module_save_aux(&s.w, RDB_MODULE_AFTER_KEYS);
    }
    rdb_write_byte(&s.w, RDB_OP_EOF);
    bool ok = rdb_writer_flush(&s.w);
    if (ok) {
        rdb_write_u64(&s.w, rdb_file_checksum ? s.w.crc : 0);
        ok = rdb_writer_flush(&s.w);
    }
    int error = s.w.error;
    rdb_writer_deinit(&s.w);
    return ok ? 0 : error;
}

void rdb_file_temporary_name(int pid, char name[RDB_FILE_TEMPORARY_BYTES])
{
    snprintf(name, RDB_FILE_TEMPORARY_BYTES, "temp-%d.rdb", pid);
}

void rdb_file_remove_rest(int pid)
{
    char name[RDB_FILE_TEMPORARY_BYTES];
    rdb_file_temporary_name(pid, name);
    uint64_t begin = spike_begin();
    unlink(name);
    spike_end("rdb-unlink-temp-file", begin);
}

int rdb_file_write(int fd, int64_t now_ms, int stream_db, unsigned left_out)
{
    return save_all(fd, now_ms, false, stream_db, left_out);
}

int rdb_file_write_base(int fd, int64_t now_ms)
{
    int error = save_all(fd, now_ms, true, -1, 0);
    return !error && fsync(fd) < 0 ? errno : error;
}

int rdb_file_save(const char *name, int64_t now_ms)
{
    char temporary[RDB_FILE_TEMPORARY_BYTES];
    rdb_file_temporary_name((int)getpid(), temporary);
    int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0) {
        return errno;
    }
    int error = save_all(fd, now_ms, false, -1, 0);
    if (!error && fsync(fd) < 0) {
        error = errno;
    }
    if (close(fd) < 0 && !error) {
        error = errno;
    }
    if (!error && rename(temporary, name) < 0) {
        error = errno;
    }
    if (error) {
        unlink(temporary);
        return error;
    }
    return file_sync_directory(".");
}
