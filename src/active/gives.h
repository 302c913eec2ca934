/* What was given to clients of other nodes, until their nodes have heard of it (delivery.h): a node
 * that gets a data set in place of our units misses those that say what it was given, and tells
 * which units it has missed; what was given by them is put back then.
 *
 * In the order in which it was given. Bounded: beyond GIVES_BYTES the oldest is not known any more,
 * and lost where its node has missed it. State: that of its owner. */
#ifndef ACTIVE_GIVES_H
#define ACTIVE_GIVES_H

#include "base/slice.h"
#include "active/origins.h"

#include <stdbool.h>
#include <stdint.h>

#define GIVES_BYTES ((size_t)64 << 20)

struct give {
    uint8_t node[ORIGIN_NODE_BYTES]; /* that of the client */
    uint64_t number;                 /* of our unit that says so */
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
/* Takes those for that node that units with numbers in (from, upto] say, one a call, the last one
 * first, since what was taken last is to be put back first; false when there is none any more.
 * `*left` is g->count before the first call, and nothing is added or dropped between them.
 * `taken->back` is the caller's (mem_free). */
bool gives_take_missed(struct gives *g, const uint8_t node[ORIGIN_NODE_BYTES], uint64_t from,
                       uint64_t upto, size_t *left, struct give *taken);

#endif
