/* See active_frame.h. */
#include "repl/active_frame.h"

#include <assert.h>
#include <string.h>

#define ORIGIN_BYTES (2 + ACTIVE_NODE_BYTES + 8)

static void put_head(struct buf *out, char kind, size_t body_bytes)
{
    assert(body_bytes < ACTIVE_FRAME_MAX_BYTES);
    active_put(out, body_bytes + 1, 4);
    buf_append_char(out, kind);
}

void active_frame_put_origin(struct buf *out, uint16_t handle, const struct active_origin_id *id)
{
    put_head(out, 'O', ORIGIN_BYTES);
    active_put(out, handle, 2);
    buf_append(out, (const char *)id->node, ACTIVE_NODE_BYTES);
    active_put(out, id->epoch, 8);
}

void active_frame_put_write(struct buf *out, uint16_t handle, uint64_t sequence, uint64_t stamp,
                            int db, size_t commands_bytes)
{
    put_head(out, 'W', ACTIVE_WRITE_HEAD_BYTES + commands_bytes);
    active_put(out, handle, 2);
    active_put(out, sequence, 6);
    active_put(out, stamp, 8);
    active_put(out, (uint64_t)db, 2);
}

void active_frame_put_clocks(struct buf *out, const struct active_frame_clock *clocks,
                             uint32_t count)
{
    put_head(out, 'C', (size_t)count * ACTIVE_CLOCK_BYTES);
    for (uint32_t i = 0; i < count; i++) {
        active_put(out, clocks[i].handle, 2);
        active_put(out, clocks[i].position, 6);
        active_put(out, clocks[i].clock, 8);
        active_put(out, clocks[i].seen, 8);
    }
}

static const char *read_origin(struct slice body, struct active_frame *f)
{
    if (body.len != ORIGIN_BYTES) {
        return "an origin's frame has another length";
    }
    f->handle = (uint16_t)active_get(body.ptr, 2);
    memcpy(f->id.node, body.ptr + 2, ACTIVE_NODE_BYTES);
    f->id.epoch = active_get(body.ptr + 2 + ACTIVE_NODE_BYTES, 8);
    return NULL;
}

static const char *read_write(struct slice body, struct active_frame *f)
{
    if (body.len <= ACTIVE_WRITE_HEAD_BYTES) {
        return "a write without commands";
    }
    f->handle = (uint16_t)active_get(body.ptr, 2);
    f->sequence = active_get(body.ptr + 2, 6);
    f->stamp = active_get(body.ptr + 8, 8);
    f->db = (int)active_get(body.ptr + 16, 2);
    f->commands = slice_of(body.ptr + ACTIVE_WRITE_HEAD_BYTES, body.len - ACTIVE_WRITE_HEAD_BYTES);
    return f->sequence == 0 || f->stamp == 0 ? "a write without a number" : NULL;
}

static const char *read_clocks(struct slice body, struct active_frame *f)
{
    f->count = (uint32_t)(body.len / ACTIVE_CLOCK_BYTES);
    f->clocks = body;
    return body.len % ACTIVE_CLOCK_BYTES ? "half a clock" : NULL;
}

static const char *read_body(char kind, struct slice body, struct active_frame *f)
{
    f->kind = kind;
    switch (kind) {
    case 'O':
        return read_origin(body, f);
    case 'W':
        return read_write(body, f);
    case 'C':
        return read_clocks(body, f);
    default:
        return "a frame of an unknown kind";
    }
}

enum active_frame_result active_frame_next(struct slice data, uint32_t bytes_max,
                                           struct active_frame *frame, size_t *consumed,
                                           const char **error)
{
    if (data.len < ACTIVE_FRAME_HEAD_BYTES) {
        return ACTIVE_FRAME_MORE;
    }
    uint64_t len = active_get(data.ptr, 4);
    if (len < 1 || len > bytes_max || len > ACTIVE_FRAME_MAX_BYTES) {
        *error = "a frame of an impossible length";
        return ACTIVE_FRAME_BROKEN;
    }
    if (data.len - 4 < len) {
        return ACTIVE_FRAME_MORE;
    }
    *frame = (struct active_frame){0};
    *error = read_body(data.ptr[4], slice_of(data.ptr + ACTIVE_FRAME_HEAD_BYTES, len - 1), frame);
    if (*error) {
        return ACTIVE_FRAME_BROKEN;
    }
    *consumed = 4 + len;
    return ACTIVE_FRAME_WHOLE;
}

struct active_frame_clock active_frame_clock_at(const struct active_frame *frame, uint32_t index)
{
    assert(index < frame->count);
    const char *at = frame->clocks.ptr + (size_t)index * ACTIVE_CLOCK_BYTES;
    return (struct active_frame_clock){(uint16_t)active_get(at, 2), active_get(at + 2, 6),
                                       active_get(at + 8, 8), active_get(at + 16, 8)};
}
