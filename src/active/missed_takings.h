/* Takings of an element of a list that have found none when they were run last: whoever told them
 * had it, so its push has been overtaken, and is on its way (DESIGN.md, "Lists"). Bounded, the
 * oldest go. Keys and elements are told apart by 64 bits of hash.
 *
 * State: the window's. */
#ifndef ACTIVE_MISSED_TAKINGS_H
#define ACTIVE_MISSED_TAKINGS_H

#include "base/compiler.h"
#include "active/origins.h"

#include <stdbool.h>
#include <stdint.h>

#define MISSED_TAKINGS_MAX 1024

struct missed_taking {
    uint64_t element; /* a hash of it and of its key; 0: free */
    struct dot dot;
    uint32_t number; /* of its command in the unit */
    int8_t count;    /* LREM's: 1 the one nearest to the head, -1 to the tail, 0 all */
    uint16_t next;   /* private: the next of its chain, from 1; 0: it is the last */
};

struct missed_takings {
    struct missed_taking *rows; /* NULL: none yet */
    uint16_t *chains;           /* by the element: the first row, from 1; 0: none */
    uint32_t next;              /* the row that is given next */
    uint32_t count;             /* rows in use */
};

/* Zero: none. Frees what it holds. */
void missed_takings_deinit(struct missed_takings *s);
/* It was run again: it has found something now, or not (`missed`). */
void missed_takings_note(struct missed_takings *s, const struct missed_taking *taking, bool missed);
/* The first one of the element in the order of writes that is later than the push; NULL: there is
 * none. Valid until the next note. */
const struct missed_taking *missed_takings_of(const struct missed_takings *s,
                                              const struct origins *o, uint64_t element,
                                              struct dot push);

#endif
