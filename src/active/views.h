/* The views of this node (membership.h), as they are told and heard by units: who gives; and what
 * was given and may not have been heard of (gives.h). A part of delivery.h, which has all about
 * those who wait; what follows for them it does with what it is told here.
 *
 *   KEYDB.VIEW view entry [origin from upto] ...
 *                       the teller's view and its number, and units of origins that it has missed:
 *                       a data set came in their place (from < number <= upto)
 *
 * One in a process. State: keyspace (exclusive mode). */
#ifndef ACTIVE_VIEWS_H
#define ACTIVE_VIEWS_H

#include "base/buf.h"
#include "base/slice.h"
#include "active/node.h"
#include "active/origins.h"

#include <stdbool.h>
#include <stdint.h>

/* What another look has found. */
struct views_news {
    bool changed; /* the view is another one */
    bool settled; /* it is settled now */
    bool differs; /* that, or whether it is settled, is other than before; or something was not
                     given since then that may be now */
};

enum views_life { VIEWS_LIFE_OVER, VIEWS_LIFE_KNOWN, VIEWS_LIFE_NEW };

/* The node has begun to live; `entry`: above all numbers of its former lives. And its reverse. */
void views_begin(struct node *n, uint64_t entry, int64_t now_ms) REQUIRES(keyspace_lock);
void views_end(void);

/* Whether this node may give what is at the key. */
bool views_is_home(int db, struct slice key) REQUIRES(keyspace_lock);
/* Whether the node is a member of the view. */
bool views_has(const uint8_t node[ORIGIN_NODE_BYTES]);
/* Whether any other node was ever heard. */
bool views_know_others(void);

/* What an origin's words are worth: it is over, or known, or a new life of its node, whose former
 * one has waited for the last time. */
enum views_life views_life_of(uint16_t origin) REQUIRES(keyspace_lock);
/* Hears a KEYDB.VIEW, of a unit with that stamp; `put_back` is called with each gift that the node
 * has missed, the last one first (gives.h: db, words and bytes that delivery_put_back made). */
void views_hear(const uint8_t node[ORIGIN_NODE_BYTES], uint64_t stamp, int argc,
                const struct slice *argv, int64_t now_ms,
                void (*put_back)(int db, int words, struct slice text)) REQUIRES(keyspace_lock);
/* Some ten times a second: who is heard, and the view, which is told if it is to be. `linked`: we
 * have peers, or are to have some. */
struct views_news views_look(bool linked, int64_t now_ms) REQUIRES(keyspace_lock);
/* A data set came in place of units (node_hear_missed). False: of none. Else we take no part from
 * now on, and that is told in this hold: whoever hears how far we are has heard of it before. */
bool views_missed(const struct version_vector *before, int64_t now_ms, struct views_news *news)
    REQUIRES(keyspace_lock);
/* Our last unit says what was given to a client of that node, and what puts it back. */
void views_gave(const uint8_t node[ORIGIN_NODE_BYTES], int db, int words, struct slice text)
    REQUIRES(keyspace_lock);
/* The log is told of what put_back was called with, before it is put back in the same hold. */
void views_note_put_back(void) REQUIRES(keyspace_lock);
/* INFO's lines of it. */
void views_write_info(struct buf *out);

#endif
