/* See payload.h. */
#include "persist/payload.h"

#include "base/crc.h"
#include "persist/rdb_format.h"
#include "persist/rdb_value.h"

#define FOOTER_BYTES 10
/* Room that most payloads need no more than. */
#define USUAL_BYTES 1024

bool payload_trusts_checksums;

/* payload_check's, or nothing. */
static _Thread_local struct {
    struct slice payload;
    struct entry *entry;
} kept;

void payload_write(struct buf *out, const struct entry *e)
{
    struct rdb_writer w;
    rdb_writer_init(&w, -1, true, false);
    buf_reserve(&w.out, USUAL_BYTES);
    rdb_write_byte(&w, rdb_value_type(e));
    rdb_save_value(&w, e);
    rdb_write_byte(&w, RDB_VERSION_WRITTEN);
    rdb_write_byte(&w, 0);
    rdb_write_u64(&w, crc64(0, w.out.data, w.out.len));
    if (out->len == 0 && w.out.len > w.out.capacity / 2) {
        /* It takes the bytes over instead of copying them, where that leaves little room unused. */
        struct buf written = w.out;
        w.out = *out;
        *out = written;
    } else {
        buf_append_slice(out, buf_slice(&w.out));
    }
    rdb_writer_deinit(&w);
}

enum payload_read payload_read_value(struct slice bytes, struct slice key, struct entry **e)
{
    struct rdb_reader r;
    unsigned type;
    *e = NULL;
    rdb_reader_init(&r, bytes);
    bool ok = rdb_read_byte(&r, &type) && rdb_load_value(&r, type, key, e);
    /* A collection has elements, and nothing stands behind it. */
    if (ok && *e && rdb_left(&r) > 0) {
        entry_destroy(e);
    }
    return *e ? PAYLOAD_FINE : PAYLOAD_DAMAGED;
}

/* Gives what is kept of these bytes, or NULL. */
static struct entry *take_kept(struct slice payload, struct slice key)
{
    struct entry *e = kept.entry;
    if (!e || payload.ptr != kept.payload.ptr || payload.len != kept.payload.len ||
        !slice_equal(entry_key(e), key)) {
        return NULL;
    }
    kept.entry = NULL;
    return e;
}

void payload_drop(void)
{
    if (kept.entry) {
        entry_destroy(&kept.entry);
    }
}

bool payload_check(struct slice payload, struct slice key)
{
    struct entry *e;
    if (payload_read(payload, key, &e) != PAYLOAD_FINE) {
        return false;
    }
    if (kept.entry) {
        entry_destroy(&e);
    } else {
        kept.payload = payload;
        kept.entry = e;
    }
    return true;
}

enum payload_read payload_read(struct slice payload, struct slice key, struct entry **e)
{
    *e = take_kept(payload, key);
    if (*e) {
        return PAYLOAD_FINE;
    }
    if (payload.len < FOOTER_BYTES) {
        return PAYLOAD_FOREIGN;
    }
    struct slice bytes = slice_of(payload.ptr, payload.len - FOOTER_BYTES);
    const unsigned char *footer = (const unsigned char *)payload.ptr + bytes.len;
    unsigned version = footer[0] | (unsigned)footer[1] << 8;
    uint64_t said = 0;
    for (int i = 9; i >= 2; i--) {
        said = said << 8 | footer[i];
    }
    bool right =
        payload_trusts_checksums || said == crc64(0, payload.ptr, payload.len - sizeof(said));
    if (version > RDB_VERSION_READ || !right) {
        return PAYLOAD_FOREIGN;
    }
    return payload_read_value(bytes, key, e);
}
