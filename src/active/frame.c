/* See frame.h. */
#include "active/frame.h"

#include <assert.h>
#include <string.h>

#define ORIGIN_BYTES (2 + ORIGIN_NODE_BYTES + 8)

static void put_head(struct buf *out, char kind, size_t body_bytes)
{
    assert(body_bytes < FRAME_MAX_BYTES);
    le_put(out, body_bytes + 1, 4);
    buf_append_char(out, kind);
}

void frame_put_origin(struct buf *out, uint16_t handle, const struct origin_id *id)
{
    put_head(out, 'O', ORIGIN_BYTES);
    le_put(out, handle, 2);
    buf_append(out, (const char *)id->node, ORIGIN_NODE_BYTES);
    le_put(out, id->epoch, 8);
}

void frame_put_clocks(struct buf *out, const struct frame_clock *clocks, uint32_t count)
{
    put_head(out, 'C', (size_t)count * FRAME_CLOCK_BYTES);
    for (uint32_t i = 0; i < count; i++) {
        le_put(out, clocks[i].handle, 2);
        le_put(out, clocks[i].position, 6);
        le_put(out, clocks[i].clock, 8);
        le_put(out, clocks[i].seen, 8);
    }
}

void frame_put_causes(struct buf *out, const struct frame_clock *causes, uint32_t count)
{
    put_head(out, 'A', (size_t)count * FRAME_CAUSE_BYTES);
    for (uint32_t i = 0; i < count; i++) {
        le_put(out, causes[i].handle, 2);
        le_put(out, causes[i].position, 6);
    }
}

void frame_put_set(struct buf *out)
{
    put_head(out, 'S', 0);
}

static const char *read_origin(struct slice body, struct frame *f)
{
    if (body.len != ORIGIN_BYTES) {
        return "an origin's frame has another length";
    }
    f->handle = (uint16_t)le_get(body.ptr, 2);
    memcpy(f->id.node, body.ptr + 2, ORIGIN_NODE_BYTES);
    f->id.epoch = le_get(body.ptr + 2 + ORIGIN_NODE_BYTES, 8);
    return NULL;
}

static const char *read_write(struct slice body, struct frame *f)
{
    if (body.len <= FRAME_WRITE_HEAD_BYTES) {
        return "a write without commands";
    }
    f->handle = (uint16_t)le_get(body.ptr, 2);
    f->sequence = le_get(body.ptr + 2, 6);
    f->stamp = le_get(body.ptr + 8, 8);
    f->db = (int)le_get(body.ptr + 16, 2);
    f->commands = slice_of(body.ptr + FRAME_WRITE_HEAD_BYTES, body.len - FRAME_WRITE_HEAD_BYTES);
    return f->sequence == 0 || f->stamp == 0 ? "a write without a number" : NULL;
}

static const char *read_clocks(struct slice body, struct frame *f)
{
    f->count = (uint32_t)(body.len / FRAME_CLOCK_BYTES);
    f->clocks = body;
    return body.len % FRAME_CLOCK_BYTES ? "half a clock" : NULL;
}

static const char *read_causes(struct slice body, struct frame *f)
{
    f->count = (uint32_t)(body.len / FRAME_CAUSE_BYTES);
    f->clocks = body;
    return body.len % FRAME_CAUSE_BYTES ? "half a cause" : NULL;
}

static const char *read_body(char kind, struct slice body, struct frame *f)
{
    f->kind = kind;
    switch (kind) {
    case 'O':
        return read_origin(body, f);
    case 'W':
        return read_write(body, f);
    case 'C':
        return read_clocks(body, f);
    case 'A':
        return read_causes(body, f);
    case 'S':
        return body.len > 0 ? "a data set within a frame" : NULL;
    default:
        return "a frame of an unknown kind";
    }
}

enum frame_result frame_next(struct slice data, uint32_t bytes_max, struct frame *frame,
                             size_t *consumed, const char **error)
{
    if (data.len < FRAME_HEAD_BYTES) {
        return FRAME_MORE;
    }
    uint64_t len = le_get(data.ptr, 4);
    if (len < 1 || len > bytes_max || len > FRAME_MAX_BYTES) {
        *error = "a frame of an impossible length";
        return FRAME_BROKEN;
    }
    if (data.len - 4 < len) {
        return FRAME_MORE;
    }
    *frame = (struct frame){0};
    *error = read_body(data.ptr[4], slice_of(data.ptr + FRAME_HEAD_BYTES, len - 1), frame);
    if (*error) {
        return FRAME_BROKEN;
    }
    *consumed = 4 + len;
    return FRAME_WHOLE;
}

struct frame_clock frame_clock_at(const struct frame *frame, uint32_t index)
{
    assert(index < frame->count);
    const char *at = frame->clocks.ptr + (size_t)index * FRAME_CLOCK_BYTES;
    return (struct frame_clock){(uint16_t)le_get(at, 2), le_get(at + 2, 6), le_get(at + 8, 8),
                                le_get(at + 16, 8)};
}

struct frame_clock frame_cause_at(const struct frame *frame, uint32_t index)
{
    assert(index < frame->count);
    const char *at = frame->clocks.ptr + (size_t)index * FRAME_CAUSE_BYTES;
    return (struct frame_clock){.handle = (uint16_t)le_get(at, 2), .position = le_get(at + 2, 6)};
}
