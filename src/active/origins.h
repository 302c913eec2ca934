/* Who wrote what: origins (a node in one of its lives), how far this node has applied each, and
 * what is known of their clocks.
 *
 * Invariants: an origin's index never changes and is never given to another one while the process
 * lives, because keys' dots hold it; index 0 is nobody. Every write of an origin up to its position
 * is applied here, none above it. Positions and clocks never go back. A node's latest epoch is the
 * one that counts for stability, and older ones while more of them is on its way.
 *
 * State: keyspace (exclusive mode changes). */
#ifndef ACTIVE_ORIGINS_H
#define ACTIVE_ORIGINS_H

#include "base/buf.h"
#include "base/compiler.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

#define ORIGIN_NODE_BYTES 16
/* As text: node and epoch in lower-case hexadecimal digits. */
#define ORIGIN_CHARS 48
/* Dots have 16 bits for an index and 48 for a sequence. */
#define ORIGINS_MAX 65535
#define ORIGIN_SEQUENCE_MAX ((UINT64_C(1) << 48) - 1)

struct origin_id {
    uint8_t node[ORIGIN_NODE_BYTES];
    uint64_t epoch;
};

/* Which write it was, in 16 bytes: what a key remembers of its last one. Stamp 0 is none. */
struct dot {
    uint64_t stamp;
    uint64_t place; /* the origin's index in the upper 16 bits, the sequence in the others */
};

static inline uint16_t dot_origin(struct dot d)
{
    return (uint16_t)(d.place >> 48);
}
static inline uint64_t dot_sequence(struct dot d)
{
    return d.place & ORIGIN_SEQUENCE_MAX;
}
static inline struct dot dot_of(uint64_t stamp, uint16_t origin, uint64_t sequence)
{
    return (struct dot){stamp, (uint64_t)origin << 48 | sequence};
}

struct origin {
    struct origin_id id;
    uint64_t position; /* the last sequence that is applied */
    uint64_t clock;    /* every write with a stamp up to it is applied */
    uint64_t seen;     /* the node has told that it has applied everybody's writes up to it */
    bool superseded;   /* its node has begun a later epoch */
    uint64_t told;     /* the position of whom it can be had from now (sources.h); 0: nobody */
};

struct origins {
    struct origin *rows; /* [0] is nobody */
    uint32_t count;      /* rows in use, [0] included */
    uint32_t capacity;
    uint32_t room; /* how many more may be new now; UINT32_MAX: as many as there are places */
};

/* What peers may bring at once that is new, where the table is bounded, and as much again as time
 * goes on (origins_allow): a broken one has to be found before it has filled the table, whose
 * places are never given again. The last ones are for our own lives. */
#define ORIGINS_BURST 4096
#define ORIGINS_OWN 1024

/* A table without origins. */
void origins_init(struct origins *o);
void origins_deinit(struct origins *o);
/* Index of an origin; 0 when it is unknown. */
uint16_t origins_find(const struct origins *o, const struct origin_id *id);
/* The same, entered where it is new; 0 when there is no room: refuse the link. */
uint16_t origins_enter(struct origins *o, const struct origin_id *id);
/* What is entered from now on comes from peers. */
void origins_bound(struct origins *o);
/* One more may. */
void origins_allow(struct origins *o);
static inline struct origin *origins_at(const struct origins *o, uint16_t index)
{
    return &o->rows[index];
}

enum origin_arrival {
    ORIGIN_NEXT,      /* to be applied now */
    ORIGIN_DUPLICATE, /* applied already: dropped */
    ORIGIN_GAP,       /* something before it is missing: an error of the link */
};
/* What to do with a write that has come. */
enum origin_arrival origins_arrival(const struct origins *o, uint16_t index, uint64_t sequence);
/* The position is this one now; never back. */
void origins_advance(struct origins *o, uint16_t index, uint64_t sequence);
/* A node's clocks were told; never back. */
void origins_hear(struct origins *o, uint16_t index, uint64_t clock, uint64_t seen);
/* Stamp up to which every write of every known node is applied here. */
uint64_t origins_seen(const struct origins *o);
/* Stamp up to which every known node has everybody's writes: nothing can come before such a write
 * any more, nor a state that does not cover it. */
uint64_t origins_stable(const struct origins *o);

/* The one order of writes: stamp, then origin (by its id, which is the same on all nodes), then
 * sequence. */
static inline int origins_compare(const struct origins *o, struct dot a, struct dot b);
/* The same of two with one stamp. */
int origins_compare_places(const struct origins *o, struct dot a, struct dot b);
static inline int origins_compare(const struct origins *o, struct dot a, struct dot b)
{
    if (likely(a.stamp != b.stamp)) {
        return a.stamp < b.stamp ? -1 : 1;
    }
    return origins_compare_places(o, a, b);
}

/* ---- positions on their own: what somebody had applied at some moment ---- */

/* sequence[i] for the origin with index i; origins with a higher index: 0. */
struct version_vector {
    uint32_t count;
    uint64_t sequence[];
};
/* Our own positions now. The caller frees it (mem_free). */
struct version_vector *version_vector_create(const struct origins *o);
static inline uint64_t version_vector_at(const struct version_vector *c, uint32_t index)
{
    return index < c->count ? c->sequence[index] : 0;
}
static inline bool version_vector_has(const struct version_vector *c, struct dot d)
{
    return dot_sequence(d) <= version_vector_at(c, dot_origin(d));
}

/* ---- bytes and text ---- */

/* Numbers of so many bytes (at most 8), little endian. */
void le_put(struct buf *out, uint64_t number, int bytes);
uint64_t le_get(const char *at, int bytes);

/* Positions as bytes: number of origins (4), then each: node id (16), epoch (8), sequence (8);
 * numbers little endian. */
#define VERSION_VECTOR_ROW_BYTES 32
/* Appends them. */
void version_vector_encode(const struct origins *o, const struct version_vector *c,
                           struct buf *out);
/* Enters unknown origins. NULL when the bytes are no positions, or there is no room. The caller
 * frees it. */
struct version_vector *version_vector_decode(struct origins *o, struct slice bytes) MUST_CHECK;
/* An origin's text; `out` holds ORIGIN_CHARS, no NUL. */
void origin_format(const struct origin_id *id, char *out);
/* False for anything but such a text. */
bool origin_parse(struct slice text, struct origin_id *id) MUST_CHECK;

#endif
