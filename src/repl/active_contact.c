/* See active_contact.h. */
#include "repl/active_contact.h"

#define LENGTH_BYTES 8
/* Of H before its positions: version, clock. */
#define SET_HEAD_BYTES 9

static void put_key(struct buf *out, const struct active_record *r)
{
    active_put(out, (uint64_t)r->db, 2);
    active_put(out, r->stamp, 8);
    active_put(out, r->handle, 2);
    active_put(out, r->sequence, 6);
    active_put(out, (uint64_t)r->deadline_ms, 8);
    active_put(out, r->key.len, 4);
    buf_append_slice(out, r->key);
    buf_append_slice(out, r->payload);
}

static size_t body_bytes(const struct active_record *r)
{
    switch (r->kind) {
    case 'H':
        return SET_HEAD_BYTES + r->positions.len;
    case 'L':
        return r->source.len;
    case 'K':
        return ACTIVE_KEY_HEAD_BYTES + r->key.len + r->payload.len;
    default:
        return 8;
    }
}

void active_record_put(struct buf *out, const struct active_record *r)
{
    active_put(out, 1 + body_bytes(r), LENGTH_BYTES);
    buf_append_char(out, r->kind);
    switch (r->kind) {
    case 'H':
        active_put(out, ACTIVE_RECORD_VERSION, 1);
        active_put(out, r->clock, 8);
        buf_append_slice(out, r->positions);
        break;
    case 'L':
        buf_append_slice(out, r->source);
        break;
    case 'K':
        put_key(out, r);
        break;
    default:
        active_put(out, r->keys, 8);
    }
}

static bool read_head(struct slice body, struct active_record *r)
{
    if (body.len < SET_HEAD_BYTES || active_get(body.ptr, 1) != ACTIVE_RECORD_VERSION) {
        return false;
    }
    r->clock = active_get(body.ptr + 1, 8);
    r->positions = slice_of(body.ptr + SET_HEAD_BYTES, body.len - SET_HEAD_BYTES);
    return true;
}

static bool read_key(struct slice body, struct active_record *r)
{
    if (body.len < ACTIVE_KEY_HEAD_BYTES) {
        return false;
    }
    uint64_t name = active_get(body.ptr + 26, 4);
    size_t rest = body.len - ACTIVE_KEY_HEAD_BYTES;
    uint64_t deadline = active_get(body.ptr + 18, 8);
    r->db = (int)active_get(body.ptr, 2);
    r->stamp = active_get(body.ptr + 2, 8);
    r->handle = (uint16_t)active_get(body.ptr + 10, 2);
    r->sequence = active_get(body.ptr + 12, 6);
    r->deadline_ms = (int64_t)deadline;
    if (name >= rest || deadline > INT64_MAX) {
        return false; /* a value has bytes */
    }
    r->key = slice_of(body.ptr + ACTIVE_KEY_HEAD_BYTES, name);
    r->payload = slice_of(r->key.ptr + name, rest - name);
    return true;
}

static bool read_body(struct slice body, struct active_record *r)
{
    switch (r->kind) {
    case 'H':
        return read_head(body, r);
    case 'L':
        r->source = body;
        return body.len > 0;
    case 'K':
        return read_key(body, r);
    case 'E':
        r->keys = body.len == 8 ? active_get(body.ptr, 8) : 0;
        return body.len == 8;
    default:
        return false;
    }
}

enum active_frame_result active_record_next(struct slice data, struct active_record *r,
                                            size_t *consumed, const char **error)
{
    if (data.len < LENGTH_BYTES) {
        return ACTIVE_FRAME_MORE;
    }
    uint64_t len = active_get(data.ptr, LENGTH_BYTES);
    if (len < 1 || len > ACTIVE_RECORD_MAX_BYTES) {
        *error = "a record of a data set with an impossible length";
        return ACTIVE_FRAME_BROKEN;
    }
    if (data.len - LENGTH_BYTES < len) {
        return ACTIVE_FRAME_MORE;
    }
    *r = (struct active_record){.kind = data.ptr[LENGTH_BYTES]};
    if (!read_body(slice_of(data.ptr + ACTIVE_RECORD_HEAD_BYTES, len - 1), r)) {
        *error = "a record of a data set that is none";
        return ACTIVE_FRAME_BROKEN;
    }
    *consumed = LENGTH_BYTES + len;
    return ACTIVE_FRAME_WHOLE;
}
