/* What one peer that pulls from us is sent: frames (frame.h) with the writes that it wants
 * and lacks. Each origin's come in the order of their numbers, all together in the order of their
 * stamps, so that causes mostly come before what they caused.
 *
 * A write is sent when its origin is requested and the peer has not told a position that covers it.
 * But what a node wrote in a later life was made on what it had from earlier ones: of who lacks
 * some of those, and does not want it from us (but from another link, or has not heard of it yet),
 * the later life waits. He would run it on less than that, and where the rest then comes as a data
 * set nothing would tell that his content is not whole.
 *
 * Nothing is held for the peer: what it is to get is found in the logs by number; what memory does
 * not have is read from the disk first (sender_disk.h); and when it is not there either the link
 * ends (DESIGN.md, "Messages").
 *
 * A handle is our own index of the origin. State: its fields belong to who serves the link. */
#ifndef ACTIVE_SENDER_H
#define ACTIVE_SENDER_H

#include "base/buf.h"
#include "active/origin_log.h"
#include "active/origins.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sender_row {
    uint64_t sent;   /* the last number that was sent, or that the peer has anyway */
    uint64_t has;    /* the position that the peer has said */
    uint64_t told;   /* the position that it was told last; UINT64_MAX: none */
    uint64_t before; /* writes up to it are earlier than the last of ours that has causes */
    bool asked;      /* the peer wants it from us */
    bool requested;  /* and it may be sent now */
    bool named;
};

/* What a peer says of an origin. */
struct sender_saying {
    struct origin_id id;
    uint64_t position;
    bool requested;
};
/* Of so many that we do not know at most: far more than a group has nodes and lives. */
#define SENDER_UNKNOWN_MAX 4096

struct sender {
    struct sender_row *rows; /* by our origins' index */
    uint32_t count;
    struct sender_saying *unknown; /* of origins that are not in our table yet */
    uint32_t unknown_count;
    uint8_t peer[ORIGIN_NODE_BYTES]; /* who gets it; all zero: nobody that we know */
    bool forwards;                   /* what others have written as well */
    uint8_t own[ORIGIN_NODE_BYTES];  /* else only what this node has */
};

/* A link that begins: until the peer says otherwise it wants all that we know of now. */
void sender_init(struct sender *s, const struct origins *o);
/* From whom the causes of our writes come to the peer besides: to all but himself. Before a write
 * of ours that has causes (struct unit) he is told, by an A frame, how many writes of each origin
 * are earlier, as far as that is news, so that he can hold it back until he has those. */
void sender_tells_causes(struct sender *s, const uint8_t peer[ORIGIN_NODE_BYTES]);
/* Whether the peer is sent what others have written, and told how far that is here: it does at
 * first. Else what we have, node `own` in all its lives, and no more (multi-master-no-forward),
 * whatever it wants. Changes at any time; what was left out is sent once it forwards. */
void sender_set_forwards(struct sender *s, bool forwards, const uint8_t own[ORIGIN_NODE_BYTES]);
void sender_deinit(struct sender *s);
/* What the peer says of itself, in KEYDB.PULL and REPLCONF PULL-ACK: words in threes, an origin
 * (origin_parse), its position there, and 1 when it wants that origin from us, or 0. It
 * says so once: of origins that we do not know yet it is kept, of so many as
 * SENDER_UNKNOWN_MAX. False when the words are no such thing; nothing changes then. */
bool sender_hear(struct sender *s, const struct origins *o, int argc,
                 const struct slice *argv) MUST_CHECK;
/* The peer has, or is about to be given, all up to there in another way. */
void sender_skip(struct sender *s, const struct origins *o, const struct version_vector *positions);
/* Before a data set of that moment: appends frames of what memory has up to there of all origins,
 * requested or not, as sender_some does; nothing: all was. Of whose writes the peer has got all the
 * data set skips none, so that his own readers lack none of those. */
void sender_before(struct sender *s, const struct origins *o, const struct origin_log *log,
                   const struct version_vector *moment, size_t bytes_max, struct buf *out);
/* False when something that is requested is not kept any more: the peer needs everything. */
bool sender_possible(struct sender *s, const struct origins *o,
                     const struct origin_log *log) MUST_CHECK;
/* The same once it has been skipped to there. */
bool sender_possible_after(struct sender *s, const struct origins *o, const struct origin_log *log,
                           const struct version_vector *positions) MUST_CHECK;
/* True when memory has all that is requested and not sent. */
bool sender_has_all(struct sender *s, const struct origins *o,
                    const struct origin_log *log) MUST_CHECK;
/* Appends the frames of one write, which is the next one of an origin that is requested. */
void sender_put(struct sender *s, const struct origins *o, const struct origin_log *log,
                const struct log_record *write, struct buf *out);
/* Appends frames until there are `bytes_max` (the last may go beyond) or nothing is left to send;
 * then nothing is appended. False: memory does not have what is requested next. */
bool sender_some(struct sender *s, const struct origins *o, const struct origin_log *log,
                 size_t bytes_max, struct buf *out) MUST_CHECK;
/* True when a node's latest epoch has written, here, since the last C frame. */
bool sender_has_news(const struct sender *s, const struct origins *o);
/* Appends one C frame: of each node's latest epoch, and of the others as far as they are news. */
void sender_clocks(struct sender *s, const struct origins *o, struct buf *out);

#endif
