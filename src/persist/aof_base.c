/* A base as commands (aof-use-rdb-preamble no): strings by SET, all other values by RESTORE of
 * their payloads, which holds whatever a value has, but for those of modules that have a way of
 * their own; libraries of functions by FUNCTION LOAD. */
#include "persist/aof_priv.h"

#include "base/num.h"
#include "engine/function_store.h"
#include "keyspace/db.h"
#include "keyspace/expire.h"
#include "persist/dots.h"
#include "persist/payload.h"
#include "persist/rdb_module.h"
#include "persist/rdb_writer.h"
#include "value/string.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Keys between two looks at whether writing still works. */
#define SCAN_KEYS 1000

struct writer {
    struct rdb_writer w;
    struct buf payload;
    bool has_dots; /* it is an active replica's */
    const struct db *db;
};

static void write_head(struct writer *out, char kind, uint64_t number)
{
    char text[32] = {kind};
    size_t len = 1 + num_format_u64(text + 1, number);
    text[len++] = '\r';
    text[len++] = '\n';
    rdb_write(&out->w, text, len);
}

static void write_word(struct writer *out, struct slice word)
{
    write_head(out, '$', word.len);
    rdb_write(&out->w, word.ptr, word.len);
    rdb_write(&out->w, "\r\n", 2);
}

static void write_number(struct writer *out, int64_t number)
{
    char text[NUM_I64_MAX_CHARS];
    write_word(out, slice_of(text, num_format_i64(text, number)));
}

static void write_string(struct writer *out, const struct entry *e, int64_t expiry_ms)
{
    char scratch[STRING_VIEW_BYTES];
    bool expires = expiry_ms != ENTRY_NO_EXPIRY;
    write_head(out, '*', expires ? 5 : 3);
    write_word(out, SLICE("SET"));
    write_word(out, entry_key(e));
    write_word(out, string_view(e, scratch));
    if (expires) {
        write_word(out, SLICE("PXAT"));
        write_number(out, expiry_ms);
    }
}

static void put_field(const char *name, struct slice value, void *context)
{
    struct writer *out = context;
    write_head(out, '*', 3);
    write_word(out, SLICE("KEYDB.AUX"));
    write_word(out, slice_cstr(name));
    write_word(out, value);
    out->has_dots = true;
}

static void write_dot(struct writer *out, const struct entry *e) NO_THREAD_SAFETY_ANALYSIS
{
    char dot[DOTS_BYTES];
    if (dots_of(out->db, e, dot)) {
        put_field("active-dot", slice_of(dot, sizeof(dot)), out);
    }
}

/* A command by which a module makes its value. */
static void put_command(void *context, int count, const struct slice *words)
{
    struct writer *out = context;
    write_head(out, '*', (uint64_t)count);
    for (int i = 0; i < count; i++) {
        write_word(out, words[i]);
    }
}

static void write_expiry(struct writer *out, const struct entry *e, int64_t expiry_ms)
{
    write_head(out, '*', 3);
    write_word(out, SLICE("PEXPIREAT"));
    write_word(out, entry_key(e));
    write_number(out, expiry_ms);
}

/* False when its module leaves the writing to us. */
static bool write_module(struct writer *out, const struct entry *e, int64_t expiry_ms)
{
    switch (rdb_module_emit(e, put_command, out)) {
    case RDB_MODULE_HAS_NO_WAY:
        return false;
    case RDB_MODULE_FAILED:
        out->w.error = EINVAL;
        return true;
    case RDB_MODULE_EMITTED:
        break;
    }
    if (expiry_ms != ENTRY_NO_EXPIRY) {
        write_expiry(out, e, expiry_ms);
    }
    return true;
}

static void write_entry(struct entry *e, void *context)
{
    struct writer *out = context;
    int64_t expiry_ms = entry_expiry_ms(e);
    bool expires = expiry_ms != ENTRY_NO_EXPIRY;
    if (out->w.error) {
        return;
    }
    if (unlikely(out->has_dots)) {
        write_dot(out, e);
    }
    if (entry_type(e) == VALUE_STRING) {
        write_string(out, e, expiry_ms);
        return;
    }
    if (entry_type(e) == VALUE_MODULE && write_module(out, e, expiry_ms)) {
        return;
    }
    buf_clear(&out->payload);
    payload_write(&out->payload, e);
    write_head(out, '*', expires ? 5 : 4);
    write_word(out, SLICE("RESTORE"));
    write_word(out, entry_key(e));
    write_number(out, expires ? expiry_ms : 0);
    write_word(out, buf_slice(&out->payload));
    if (expires) {
        write_word(out, SLICE("ABSTTL"));
    }
}

static void write_db(struct writer *out, struct db *db, int64_t now_ms)
    REQUIRES_SHARED(keyspace_lock)
{
    uint64_t cursor = 0;
    if (db_size(db) == 0) {
        return;
    }
    write_head(out, '*', 2);
    write_word(out, SLICE("SELECT"));
    write_number(out, db->id);
    out->db = db;
    module_value_db = db->id;
    do {
        cursor = db_scan(db, cursor, SCAN_KEYS, now_ms, write_entry, out);
    } while (cursor && !out->w.error);
    module_value_db = -1;
}

static void write_libraries(struct writer *out) REQUIRES_SHARED(keyspace_lock)
{
    for (size_t i = 0; i < function_store_count() && !out->w.error; i++) {
        write_head(out, '*', 3);
        write_word(out, SLICE("FUNCTION"));
        write_word(out, SLICE("LOAD"));
        write_word(out, function_store_code(i));
    }
}

int aof_write_commands(int fd, int64_t now_ms)
{
    struct writer out = {.payload = {0}};
    rdb_writer_init(&out.w, fd, false, false);
    dots_tell(put_field, &out);
    write_libraries(&out);
    /* As in an RDB file: what has expired and was not told is there. */
    bool frozen = expire_frozen;
    expire_frozen |= out.has_dots;
    for (int i = 0; i < db_count(); i++) {
        write_db(&out, db_at(i), now_ms);
    }
    expire_frozen = frozen;
    int error = rdb_writer_flush(&out.w) ? 0 : out.w.error;
    if (!error && fsync(fd) < 0) {
        error = errno;
    }
    buf_deinit(&out.payload);
    rdb_writer_deinit(&out.w);
    return error;
}
