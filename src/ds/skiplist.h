/* A skiplist: nodes with a score and bytes, in ascending order of (score, bytes by memcmp, a prefix
 * first), with ranks. The order under large sorted sets; a table beside it (value/zset.h) finds
 * nodes by their bytes.
 *
 * A node is one allocation, and its address, that of the score, is what everybody points to:
 *
 *   bytes            field
 *   16 * (height-1)  links of levels height-1 .. 1: next and span
 *   8                score
 *   8, 8             prev, next (level 0)
 *   4, 1             length of the bytes, height
 *   n                bytes
 *
 * Invariants: (1) level i holds exactly the nodes of height > i, in order; (2) a link's span is the
 * distance of ranks between its owner and its target, where the head has rank -1 and the end of the
 * list rank `count`; level 0 needs none, it is always 1; (3) prev of the first node is NULL; (4) no
 * two nodes are equal in score and bytes; (5) no score is NaN. Heights are random: one node in four
 * is higher than the level below, 32 at most. Nodes are 16-byte aligned (the table's tags). State:
 * that of its owner. */
#ifndef DS_SKIPLIST_H
#define DS_SKIPLIST_H

#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SKIPLIST_MAX_HEIGHT 32
/* Longest bytes of a node. */
#define SKIPLIST_MAX_BYTES ((size_t)UINT32_MAX)

struct skiplist_node {
    double score;
    struct skiplist_node *prev, *next;
    uint32_t len;
    uint8_t height;
    char bytes[];
};

struct skiplist {
    struct skiplist_node *head; /* a node without score and bytes, of full height */
    struct skiplist_node *tail; /* the last node, NULL when empty */
    uint64_t count;
    unsigned levels; /* levels in use, at least 1 */
};

/* Where a node is or would be: on each level in use the last node before it, and that one's rank +
 * 1 (the head: 0). */
struct skiplist_path {
    struct skiplist_node *pred[SKIPLIST_MAX_HEIGHT];
    uint64_t rank[SKIPLIST_MAX_HEIGHT];
};

static inline struct slice skiplist_bytes(const struct skiplist_node *n)
{
    return slice_of(n->bytes, n->len);
}
static inline struct skiplist_node *skiplist_first(const struct skiplist *s)
{
    return s->head->next;
}

/* An empty list; allocates its head. */
void skiplist_init(struct skiplist *s);
/* Frees the list and every node. */
void skiplist_deinit(struct skiplist *s);

/* A node that is in no list yet, with a random height. `bytes` (at most SKIPLIST_MAX_BYTES) are
 * copied. */
struct skiplist_node *skiplist_node_create(double score, struct slice bytes);
/* Frees a node that is in no list. */
void skiplist_node_destroy(struct skiplist_node *n);
/* Bytes of the node's block. */
size_t skiplist_node_memory_bytes(const struct skiplist_node *n);

/* Puts a node in; no equal one is there. */
void skiplist_insert(struct skiplist *s, struct skiplist_node *n);
/* Takes a node of this list out; it is the caller's then. */
void skiplist_remove(struct skiplist *s, struct skiplist_node *n);
/* Gives a node of this list another score and its place. */
void skiplist_move(struct skiplist *s, struct skiplist_node *n, double score);
/* Fills an empty list with `count` nodes that are in ascending order, in linear time. */
void skiplist_load(struct skiplist *s, struct skiplist_node *const *nodes, uint64_t count);
/* The same bit by bit: begins with an empty list, which nothing else may change meanwhile; each
 * call puts `count` more nodes behind those before them. */
void skiplist_filling_begin(struct skiplist_path *end, struct skiplist *s);
void skiplist_fill(struct skiplist *s, struct skiplist_path *end,
                   struct skiplist_node *const *nodes, uint64_t count);
/* Takes out the nodes of ranks start .. start+count-1 (all there), giving each to `release`. */
void skiplist_remove_ranks(struct skiplist *s, uint64_t start, uint64_t count,
                           void (*release)(struct skiplist_node *n, void *context), void *context);

/* The rank of a node of this list: how many are before it. */
uint64_t skiplist_rank(const struct skiplist *s, const struct skiplist_node *n);
/* The node of a rank below count. */
struct skiplist_node *skiplist_at(const struct skiplist *s, uint64_t rank);
/* The rank of the first node for which `before` says no (count when there is none). `before` is
 * monotone: yes for a prefix of the list, no from there on; where it is not, the answer is some
 * rank. */
typedef bool (*skiplist_before_fn)(const struct skiplist_node *n, const void *context);
uint64_t skiplist_partition(const struct skiplist *s, skiplist_before_fn before,
                            const void *context);

/* Bytes of the list without its nodes. */
size_t skiplist_memory_bytes(const struct skiplist *s);
/* Aborts when an invariant does not hold (tests, DEBUG). Walks everything. */
void skiplist_check(const struct skiplist *s);

#endif
