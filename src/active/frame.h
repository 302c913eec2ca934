/* Frames: what goes over a link of active replicas (README, "What is sent"). Numbers are little
 * endian.
 *
 *   4  length of what follows     1  kind
 *   O  2 handle, 16 node id, 8 epoch
 *   W  2 handle, 6 sequence, 8 stamp, 2 database, n commands
 *   C  24 each: 2 handle, 6 position, 8 clock, 8 seen
 *   A  8 each: 2 handle, 6 position
 *   S  nothing: behind it come the records of a data set (full_sync_record.h), then frames again
 *
 * Decoding believes no length before it is checked, and shows borrowed bytes. Pure functions. */
#ifndef ACTIVE_FRAME_H
#define ACTIVE_FRAME_H

#include "base/buf.h"
#include "active/origins.h"

#include <assert.h>
#include <endian.h>
#include <string.h>

/* Of a whole frame's length field; what is longer ends the link. */
#define FRAME_MAX_BYTES (UINT32_C(1) << 30)
/* What KEYDB.PULL names: both sides know the same frames, and what they mean. */
#define FRAME_VERSION "2"
#define FRAME_HEAD_BYTES 5
#define FRAME_WRITE_HEAD_BYTES 18
#define FRAME_CLOCK_BYTES 24
#define FRAME_CAUSE_BYTES 8

struct frame_clock {
    uint16_t handle;
    /* As in struct origin, of the sender: no write with a stamp up to `clock` has a number
     * above `position`. */
    uint64_t position, clock, seen;
};

struct frame {
    char kind; /* 'O', 'W', 'C', 'A' or 'S' */
    uint16_t handle;
    struct origin_id id;      /* O */
    uint64_t sequence, stamp; /* W */
    int db;
    struct slice commands;
    uint32_t count; /* C, A */
    struct slice clocks;
};

/* ---- writing, behind what is in `out` ---- */

/* What the handle stands for from now on. */
void frame_put_origin(struct buf *out, uint16_t handle, const struct origin_id *id);
/* A write, whose commands fit a frame. */
static inline void frame_put_write(struct buf *out, uint16_t handle, uint64_t sequence,
                                   uint64_t stamp, int db, struct slice commands)
{
    size_t body_bytes = FRAME_WRITE_HEAD_BYTES + commands.len;
    assert(body_bytes < FRAME_MAX_BYTES);
    size_t bytes = FRAME_HEAD_BYTES + body_bytes;
    char *at =
        likely(bytes <= out->capacity - out->len) ? out->data + out->len : buf_reserve(out, bytes);
    uint32_t len = htole32((uint32_t)body_bytes + 1);
    uint64_t place = htole64(handle | sequence << 16), when = htole64(stamp);
    uint16_t number = htole16((uint16_t)db);
    memcpy(at, &len, 4);
    at[4] = 'W';
    memcpy(at + 5, &place, 8);
    memcpy(at + 13, &when, 8);
    memcpy(at + 21, &number, 2);
    memcpy(at + FRAME_HEAD_BYTES + FRAME_WRITE_HEAD_BYTES, commands.ptr, commands.len);
    out->len += bytes;
}
void frame_put_clocks(struct buf *out, const struct frame_clock *clocks, uint32_t count);
/* What the next write may be a consequence of: position alone counts. */
void frame_put_causes(struct buf *out, const struct frame_clock *causes, uint32_t count);
void frame_put_set(struct buf *out);

/* ---- reading ---- */

enum frame_result {
    FRAME_WHOLE,  /* *frame is filled, *consumed bytes are its */
    FRAME_MORE,   /* not whole yet */
    FRAME_BROKEN, /* no such thing: *error says why, the link is to be closed */
};
/* The first frame in `data`, none of which is longer than `bytes_max`. */
enum frame_result frame_next(struct slice data, uint32_t bytes_max, struct frame *frame,
                             size_t *consumed, const char **error);
/* The clock with this index of a C frame; the cause of an A frame, without clocks. */
struct frame_clock frame_clock_at(const struct frame *frame, uint32_t index);
struct frame_clock frame_cause_at(const struct frame *frame, uint32_t index);

#endif
