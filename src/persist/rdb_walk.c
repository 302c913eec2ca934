/* See rdb_walk.h. */
#include "persist/rdb_walk.h"

#include "base/num.h"
#include "persist/rdb_format.h"
#include "persist/rdb_module.h"
#include "persist/rdb_value.h"
#include "value/member_ttl.h"

#include <limits.h>
#include <string.h>

/* Files of this version and later end with a checksum. */
#define CHECKSUM_VERSION 5

static void init(struct rdb_walk *w, const struct rdb_walk_visitor *visitor, void *context)
{
    *w = (struct rdb_walk){.visitor = visitor,
                           .context = context,
                           .checksum = true,
                           .expiry_ms = ENTRY_NO_EXPIRY,
                           .idle_s = -1,
                           .frequency = -1};
    rdb_build_begin(&w->due, VALUE_SET, SLICE(""), 0);
}

void rdb_walk_init(struct rdb_walk *w, const struct rdb_walk_visitor *visitor, void *context,
                   int fd, uint64_t size)
{
    init(w, visitor, context);
    rdb_reader_init_file(&w->r, fd, size);
}

void rdb_walk_init_feed(struct rdb_walk *w, const struct rdb_walk_visitor *visitor, void *context,
                        const struct rdb_feed *feed)
{
    init(w, visitor, context);
    rdb_reader_init_feed(&w->r, feed);
}

void rdb_walk_deinit(struct rdb_walk *w)
{
    if (w->waiting.e) {
        entry_destroy(&w->waiting.e);
    }
    rdb_build_drop(&w->due);
    rdb_reader_deinit(&w->r);
    buf_deinit(&w->member);
    buf_deinit(&w->key);
    buf_deinit(&w->text);
}

/* Shows the key read last. */
static bool show_waiting(struct rdb_walk *w)
{
    if (!w->waits) {
        return true;
    }
    w->waits = false;
    if (w->waiting.e && w->due.due.len > 0) {
        if (!rdb_build_deadlines(&w->due, &w->waiting.e)) {
            return rdb_fail(&w->r, "a deadline of a member that is not there");
        }
        buf_clear(&w->due.due);
        buf_clear(&w->due.due_names);
    }
    struct rdb_walk_key key = w->waiting;
    w->waiting.e = NULL;
    return w->visitor->key(w, &key);
}

static bool walk_key(struct rdb_walk *w, unsigned type)
{
    uint64_t offset = rdb_offset(&w->r) - 1;
    w->doing = "read-key";
    w->has_key = false;
    w->doing_type = type;
    if (!rdb_read_string(&w->r, &w->key)) {
        return false;
    }
    if (w->key.len > UINT32_MAX) {
        return rdb_fail(&w->r, "a key that is too long");
    }
    w->waiting = (struct rdb_walk_key){.expiry_ms = w->expiry_ms,
                                       .idle_s = w->idle_s,
                                       .frequency = w->frequency,
                                       .db = w->db,
                                       .offset = offset,
                                       .type = type};
    w->expiry_ms = ENTRY_NO_EXPIRY;
    w->idle_s = w->frequency = -1;
    w->doing = "read-object-value";
    w->has_key = true;
    w->waits = rdb_load_value(&w->r, type, buf_slice(&w->key), &w->waiting.e);
    return w->waits;
}

/* A fact beside the keys. All are for information but KeyDB's deadlines of members. */
static bool walk_aux(struct rdb_walk *w)
{
    /* The key that waits may be one without entry, whose name is still in w->key. */
    struct buf name_bytes = {0};
    w->doing = "read-aux";
    bool ok = rdb_read_string(&w->r, &name_bytes) && rdb_read_string(&w->r, &w->text);
    struct slice name = buf_slice(&name_bytes), value = buf_slice(&w->text);
    if (ok && slice_equal(name, SLICE("keydb-subexpire-key"))) {
        buf_clear(&w->member);
        buf_append_slice(&w->member, value);
    } else if (ok && slice_equal(name, SLICE("keydb-subexpire-when"))) {
        int64_t at_ms;
        /* Of a job it says when that was to run next, which the job knows. */
        if (w->waits && w->waiting.e && w->waiting.type != RDB_KEYDB_CRON &&
            (!num_parse_i64(value, &at_ms) || !member_ttl_supported(w->waiting.e) ||
             !rdb_build_add_deadline(&w->due, buf_slice(&w->member), at_ms))) {
            ok = rdb_fail(&w->r, "a deadline of a member that is damaged");
        }
    } else if (ok && slice_equal(name, SLICE("active-dot"))) {
        ok = show_waiting(w) && (!w->visitor->dot || w->visitor->dot(w, value));
    } else if (ok && w->visitor->aux) {
        ok = w->visitor->aux(w, name, value);
    }
    buf_deinit(&name_bytes);
    return ok;
}

static bool walk_library(struct rdb_walk *w)
{
    return rdb_read_string(&w->r, &w->text) &&
           (!w->visitor->library || w->visitor->library(w, buf_slice(&w->text)));
}

static bool walk_slot_info(struct rdb_walk *w)
{
    uint64_t number;
    return rdb_read_len(&w->r, &number) && rdb_read_len(&w->r, &number) &&
           rdb_read_len(&w->r, &number);
}

static bool walk_resize(struct rdb_walk *w)
{
    uint64_t keys, expires;
    return rdb_read_len(&w->r, &keys) && rdb_read_len(&w->r, &expires) &&
           (!w->visitor->resize || w->visitor->resize(w, keys, expires));
}

static bool walk_select(struct rdb_walk *w)
{
    return rdb_read_len(&w->r, &w->db) && (!w->visitor->select || w->visitor->select(w, w->db));
}

static bool walk_expiry(struct rdb_walk *w, unsigned opcode)
{
    uint64_t value = 0;
    unsigned char b[4];
    if (opcode == RDB_OP_EXPIRE_MS) {
        if (!rdb_read_u64(&w->r, &value)) {
            return false;
        }
    } else {
        if (!rdb_read(&w->r, b, sizeof(b))) {
            return false;
        }
        value = 1000 * ((uint64_t)b[0] | (uint64_t)b[1] << 8 | (uint64_t)b[2] << 16 |
                        (uint64_t)b[3] << 24);
    }
    w->expiry_ms = (int64_t)value;
    return value <= INT64_MAX || rdb_fail(&w->r, "an expiry beyond all times");
}

static bool walk_access(struct rdb_walk *w, unsigned opcode)
{
    uint64_t idle_s;
    unsigned frequency;
    if (opcode == RDB_OP_FREQ) {
        if (!rdb_read_byte(&w->r, &frequency)) {
            return false;
        }
        w->frequency = frequency;
        return true;
    }
    if (!rdb_read_len(&w->r, &idle_s)) {
        return false;
    }
    w->idle_s = idle_s < UINT32_MAX ? (int64_t)idle_s : UINT32_MAX;
    return true;
}

static bool walk_module_aux(struct rdb_walk *w)
{
    w->doing = "read-module-aux";
    return (!w->visitor->module_aux || w->visitor->module_aux(w)) && rdb_module_load_aux(&w->r);
}

static bool walk_item(struct rdb_walk *w, unsigned opcode)
{
    if (opcode == RDB_OP_AUX) {
        return walk_aux(w);
    }
    if (!show_waiting(w)) {
        return false;
    }
    switch (opcode) {
    case RDB_OP_SELECT:
        return walk_select(w);
    case RDB_OP_RESIZE:
        return walk_resize(w);
    case RDB_OP_SLOT_INFO:
        return walk_slot_info(w);
    case RDB_OP_EXPIRE_MS:
    case RDB_OP_EXPIRE_S:
        return walk_expiry(w, opcode);
    case RDB_OP_IDLE:
    case RDB_OP_FREQ:
        return walk_access(w, opcode);
    case RDB_OP_FUNCTION:
        return walk_library(w);
    case RDB_OP_FUNCTION_OLD:
        return rdb_fail(&w->r, "functions in the form of a release candidate of Redis 7.0");
    case RDB_OP_MODULE_AUX:
        return walk_module_aux(w);
    default:
        return walk_key(w, opcode);
    }
}

static bool walk_head(struct rdb_walk *w)
{
    char head[9];
    int64_t version;
    if (!rdb_read(&w->r, head, sizeof(head))) {
        return false;
    }
    struct slice digits = slice_of(head + 5, 4);
    while (digits.len > 1 && *digits.ptr == '0') {
        digits = slice_of(digits.ptr + 1, digits.len - 1);
    }
    if (memcmp(head, "REDIS", 5) != 0 || !num_parse_i64(digits, &version)) {
        return rdb_fail(&w->r, "this is no RDB file");
    }
    w->version = (unsigned)version;
    return (version >= 1 && version <= RDB_VERSION_READ) ||
           rdb_fail(&w->r, "a version of the format that is not known");
}

static bool walk_checksum(struct rdb_walk *w)
{
    uint64_t sum = rdb_checksum(&w->r), said;
    if (w->version < CHECKSUM_VERSION) {
        return true;
    }
    if (!rdb_read_u64(&w->r, &said)) {
        return false;
    }
    w->sum_told = said != 0;
    if (said == 0 && w->alone && rdb_left(&w->r) > 0) {
        /* Where the end mark is damage, zeros behind it must not pass for "no checksum". */
        return rdb_fail(&w->r, "an end mark without a checksum, and more behind it");
    }
    return said == 0 || !w->checksum || said == sum ||
           rdb_fail(&w->r, "the checksum is wrong: the file is damaged");
}

bool rdb_walk_run(struct rdb_walk *w)
{
    unsigned opcode;
    w->doing = "start";
    w->doing_type = UINT_MAX;
    if (!walk_head(w)) {
        return false;
    }
    for (;;) {
        w->doing = "read-type";
        if (!rdb_read_byte(&w->r, &opcode)) {
            return false;
        }
        w->doing_type = UINT_MAX;
        w->has_key = false;
        if (opcode == RDB_OP_EOF) {
            w->doing = "check-sum";
            return show_waiting(w) && walk_checksum(w);
        }
        if (!walk_item(w, opcode)) {
            return false;
        }
    }
}
