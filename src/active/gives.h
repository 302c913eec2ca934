/* What was given to clients of other nodes, until their nodes have heard of it (delivery.h): a node
 * that gets a data set in place of our units misses those that say what it was given, and tells
 * which units it has missed; what was given by them is put back then. Files keep them, for nobody
 * but us knows of a unit that we had not sent when we ended.
 *
 * In the order in which it was given. Bounded: beyond GIVES_BYTES the oldest is not known any more,
 * and lost where its node has missed it. State: that of its owner. */
#ifndef ACTIVE_GIVES_H
#define ACTIVE_GIVES_H

#include "base/buf.h"
#include "base/compiler.h"
#include "base/slice.h"
#include "active/origins.h"

#include <stdbool.h>
#include <stdint.h>

#define GIVES_BYTES ((size_t)64 << 20)

struct give {
    uint8_t node[ORIGIN_NODE_BYTES]; /* that of the client */
    uint64_t epoch, number;          /* of the unit that says so: our life, and its number there */
    uint64_t stamp;                  /* of no earlier unit of ours than that */
    int db, words;                   /* no words: it was put back, or has arrived */
    struct slice back;               /* what delivery_put_back made; owned */
};

/* All zero: none. */
struct gives {
    struct give *rows; /* those from `first` on */
    size_t first, count, capacity;
    size_t bytes;
};

/* Frees what it holds. */
void gives_deinit(struct gives *g);
/* Adds a copy of it, as the last one. */
void gives_add(struct gives *g, const struct give *give);
/* The i-th of g->count; with no words where it was taken or cleared. */
const struct give *gives_at(const struct gives *g, size_t i);
/* What it gave has arrived: only its place is left, until it is dropped. */
void gives_clear(struct gives *g, size_t i);
/* Forgets the first one. */
void gives_drop(struct gives *g);
/* Takes those for that node that units of that life with numbers in (from, upto] say, one a call,
 * the last one first, since what was taken last is to be put back first; false when there is none
 * any more. `*left` is g->count before the first call, and nothing is added or dropped between
 * them. `taken->back` is the caller's (mem_free). */
bool gives_take_missed(struct gives *g, const uint8_t node[ORIGIN_NODE_BYTES], uint64_t epoch,
                       uint64_t from, uint64_t upto, size_t *left, struct give *taken);

/* ---- In files, little endian. What is read is not believed. ----
 *
 *   gave   16 node, 8 epoch, 8 number, 8 stamp, 4 database, 4 words, 4 length, the bytes of `back`
 *   heard  16 node, 8 stamp: it has all that was told up to it, or what it gave was put back */

/* Appends a row of it. */
void gives_put_row(const struct give *give, struct buf *out);
/* Takes the first row off the bytes, `give->back` of which is borrowed; false when they do not
 * begin with one. */
bool gives_next_row(struct slice *rows, struct give *give) MUST_CHECK;
/* Appends that the node has heard of what was given up to the stamp. */
void gives_put_heard(const uint8_t node[ORIGIN_NODE_BYTES], uint64_t stamp, struct buf *out);
/* Forgets what such a row says, and closes up: no place is left of it, or a log of hours would
 * leave all of them behind one that a node that is away has not heard of. False when it is none. */
bool gives_hear_row(struct gives *g, struct slice row);

#endif
