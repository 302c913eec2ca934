/* What one peer that pulls from us is sent: frames (active_frame.h) with the writes that it wants
 * and lacks. Each origin's come in the order of their numbers, all together in the order of their
 * stamps, so that causes mostly come before what they caused.
 *
 * A write is sent when its origin is wanted and the peer has not told a position that covers it.
 * Nothing is held for the peer: what it is to get is found in the logs by number, and when it is
 * not there any more the link ends (ACTIVE.md, "Logs").
 *
 * A handle is our own index of the origin. State: its fields belong to who serves the link. */
#ifndef REPL_ACTIVE_SEND_H
#define REPL_ACTIVE_SEND_H

#include "base/buf.h"
#include "repl/active_log.h"
#include "repl/active_origins.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct active_send_row {
    uint64_t sent; /* the last number that was sent, or that the peer has anyway */
    uint64_t has;  /* the position that the peer has said */
    uint64_t told; /* the position that it was told last; UINT64_MAX: none */
    bool wanted, named;
};

struct active_send {
    struct active_send_row *rows; /* by our origins' index */
    uint32_t count;
};

/* A link that begins: until the peer says otherwise it wants all that we know of now. */
void active_send_init(struct active_send *s, const struct active_origins *o);
void active_send_deinit(struct active_send *s);
/* What the peer says of itself, in KEYDB.PULL and REPLCONF PULL-ACK: words in threes, an origin
 * (active_origin_parse), its position there, and 1 when it wants that origin from us, or 0. Origins
 * that we do not know are of no use to us. False when the words are no such thing; nothing changes
 * then. */
bool active_send_hear(struct active_send *s, const struct active_origins *o, int argc,
                      const struct slice *argv) MUST_CHECK;
/* False when something that is wanted is not kept any more: the peer needs everything. */
bool active_send_possible(struct active_send *s, const struct active_origins *o,
                          const struct active_log *log) MUST_CHECK;
/* Appends frames until there are `bytes_max` (the last may go beyond) or nothing is left to send;
 * then nothing is appended. False: as active_send_possible. */
bool active_send_some(struct active_send *s, const struct active_origins *o,
                      const struct active_log *log, size_t bytes_max, struct buf *out) MUST_CHECK;
/* Appends one C frame: of each node's latest epoch, and of the others as far as they are news. */
void active_send_clocks(struct active_send *s, const struct active_origins *o, struct buf *out);

#endif
