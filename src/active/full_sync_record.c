/* See full_sync_record.h. */
#include "active/full_sync_record.h"

#define LENGTH_BYTES 8
/* Of H before its positions: version, clock. */
#define SET_HEAD_BYTES 9

static void put_key(struct buf *out, const struct full_sync_record *r)
{
    le_put(out, (uint64_t)r->db, 2);
    le_put(out, r->stamp, 8);
    le_put(out, r->handle, 2);
    le_put(out, r->sequence, 6);
    le_put(out, (uint64_t)r->deadline_ms, 8);
    le_put(out, r->key.len, 4);
    buf_append_slice(out, r->key);
    buf_append_slice(out, r->payload);
}

static size_t body_bytes(const struct full_sync_record *r)
{
    switch (r->kind) {
    case 'H':
        return SET_HEAD_BYTES + r->positions.len;
    case 'L':
        return r->library.len;
    case 'K':
        return FULL_SYNC_KEY_HEAD_BYTES + r->key.len + r->payload.len;
    case 'N':
        return 0;
    default:
        return 8;
    }
}

void full_sync_record_put(struct buf *out, const struct full_sync_record *r)
{
    le_put(out, 1 + body_bytes(r), LENGTH_BYTES);
    buf_append_char(out, r->kind);
    switch (r->kind) {
    case 'H':
        le_put(out, FULL_SYNC_RECORD_VERSION, 1);
        le_put(out, r->clock, 8);
        buf_append_slice(out, r->positions);
        break;
    case 'L':
        buf_append_slice(out, r->library);
        break;
    case 'K':
        put_key(out, r);
        break;
    case 'N':
        break;
    default:
        le_put(out, r->keys, 8);
    }
}

static bool read_head(struct slice body, struct full_sync_record *r)
{
    if (body.len < SET_HEAD_BYTES || le_get(body.ptr, 1) != FULL_SYNC_RECORD_VERSION) {
        return false;
    }
    r->clock = le_get(body.ptr + 1, 8);
    r->positions = slice_of(body.ptr + SET_HEAD_BYTES, body.len - SET_HEAD_BYTES);
    return true;
}

static bool read_key(struct slice body, struct full_sync_record *r)
{
    if (body.len < FULL_SYNC_KEY_HEAD_BYTES) {
        return false;
    }
    uint64_t name = le_get(body.ptr + 26, 4);
    size_t rest = body.len - FULL_SYNC_KEY_HEAD_BYTES;
    uint64_t deadline = le_get(body.ptr + 18, 8);
    r->db = (int)le_get(body.ptr, 2);
    r->stamp = le_get(body.ptr + 2, 8);
    r->handle = (uint16_t)le_get(body.ptr + 10, 2);
    r->sequence = le_get(body.ptr + 12, 6);
    r->deadline_ms = (int64_t)deadline;
    if (name >= rest || deadline > INT64_MAX) {
        return false; /* a value has bytes */
    }
    r->key = slice_of(body.ptr + FULL_SYNC_KEY_HEAD_BYTES, name);
    r->payload = slice_of(r->key.ptr + name, rest - name);
    return true;
}

static bool read_body(struct slice body, struct full_sync_record *r)
{
    switch (r->kind) {
    case 'N':
        return body.len == 0;
    case 'H':
        return read_head(body, r);
    case 'L':
        r->library = body;
        return body.len > 0;
    case 'K':
        return read_key(body, r);
    case 'E':
        r->keys = body.len == 8 ? le_get(body.ptr, 8) : 0;
        return body.len == 8;
    default:
        return false;
    }
}

/* What the length field of a kind may say; the kind's last `max` is 0: there is no such kind. */
static void bounds_of(char kind, uint64_t *min, uint64_t *max)
{
    static const struct {
        char kind;
        uint64_t min, max; /* without the kind itself */
    } bounds[] = {
        {'N', 0, 0},
        {'H', SET_HEAD_BYTES + 4, SET_HEAD_BYTES + 4 + ORIGINS_MAX * VERSION_VECTOR_ROW_BYTES},
        {'L', 1, FULL_SYNC_LIBRARY_MAX_BYTES},
        {'K', FULL_SYNC_KEY_HEAD_BYTES + 1, FULL_SYNC_RECORD_MAX_BYTES - 1},
        {'E', 8, 8}};
    *min = 1;
    *max = 0;
    for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++) {
        if (bounds[i].kind == kind) {
            *min = 1 + bounds[i].min;
            *max = 1 + bounds[i].max;
        }
    }
}

enum frame_result full_sync_record_next(struct slice data, struct full_sync_record *r,
                                        size_t *consumed, const char **error)
{
    uint64_t min, max;
    if (data.len < FULL_SYNC_RECORD_HEAD_BYTES) {
        return FRAME_MORE;
    }
    uint64_t len = le_get(data.ptr, LENGTH_BYTES);
    bounds_of(data.ptr[LENGTH_BYTES], &min, &max);
    if (len < min || len > max) {
        *error = "a record of a data set with an impossible length";
        return FRAME_BROKEN;
    }
    if (data.len - LENGTH_BYTES < len) {
        return FRAME_MORE;
    }
    *r = (struct full_sync_record){.kind = data.ptr[LENGTH_BYTES]};
    if (!read_body(slice_of(data.ptr + FULL_SYNC_RECORD_HEAD_BYTES, len - 1), r)) {
        *error = "a record of a data set that is none";
        return FRAME_BROKEN;
    }
    *consumed = LENGTH_BYTES + len;
    return FRAME_WHOLE;
}
