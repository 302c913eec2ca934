/* Frames: what goes over a link of active replicas (README, "What is sent"). Numbers are little
 * endian.
 *
 *   4  length of what follows     1  kind
 *   O  2 handle, 16 node id, 8 epoch
 *   W  2 handle, 6 sequence, 8 stamp, 2 database, n commands
 *   C  24 each: 2 handle, 6 position, 8 clock, 8 seen
 *
 * Decoding believes no length before it is checked, and shows borrowed bytes. Pure functions. */
#ifndef REPL_ACTIVE_FRAME_H
#define REPL_ACTIVE_FRAME_H

#include "base/buf.h"
#include "repl/active_origins.h"

/* Of a whole frame's length field; what is longer ends the link. */
#define ACTIVE_FRAME_MAX_BYTES (UINT32_C(1) << 30)
#define ACTIVE_FRAME_HEAD_BYTES 5
#define ACTIVE_WRITE_HEAD_BYTES 18
#define ACTIVE_CLOCK_BYTES 24

struct active_frame_clock {
    uint16_t handle;
    /* As in struct active_origin, of the sender: no write with a stamp up to `clock` has a number
     * above `position`. */
    uint64_t position, clock, seen;
};

struct active_frame {
    char kind; /* 'O', 'W' or 'C' */
    uint16_t handle;
    struct active_origin_id id; /* O */
    uint64_t sequence, stamp;   /* W */
    int db;
    struct slice commands;
    uint32_t count; /* C */
    struct slice clocks;
};

/* ---- writing, behind what is in `out` ---- */

/* What the handle stands for from now on. */
void active_frame_put_origin(struct buf *out, uint16_t handle, const struct active_origin_id *id);
/* The head of a write whose commands, so many bytes, follow from elsewhere. They fit a frame. */
void active_frame_put_write(struct buf *out, uint16_t handle, uint64_t sequence, uint64_t stamp,
                            int db, size_t commands_bytes);
void active_frame_put_clocks(struct buf *out, const struct active_frame_clock *clocks,
                             uint32_t count);

/* ---- reading ---- */

enum active_frame_result {
    ACTIVE_FRAME_WHOLE,  /* *frame is filled, *consumed bytes are its */
    ACTIVE_FRAME_MORE,   /* not whole yet */
    ACTIVE_FRAME_BROKEN, /* no such thing: *error says why, the link is to be closed */
};
/* The first frame in `data`, none of which is longer than `bytes_max`. */
enum active_frame_result active_frame_next(struct slice data, uint32_t bytes_max,
                                           struct active_frame *frame, size_t *consumed,
                                           const char **error);
/* The clock with this index of a C frame. */
struct active_frame_clock active_frame_clock_at(const struct active_frame *frame, uint32_t index);

#endif
