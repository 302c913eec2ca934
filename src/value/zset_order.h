/* The order of sorted sets for many nodes at once: a merge sort that may be done bit by bit. What
 * is compared stands in one array (scores, and eight bytes of each member behind those that all
 * begin with), so that nodes, each of which would be a cache miss, are looked at only where these
 * are equal. State: owned by the draft. */
#ifndef VALUE_ZSET_ORDER_H
#define VALUE_ZSET_ORDER_H

#include "base/compiler.h"
#include "ds/skiplist.h"

struct zset_order;

/* Begins to sort `count` nodes (at least one), all of which begin with the same `shared` bytes.
 * NULL without memory for it. */
struct zset_order *zset_order_create(struct skiplist_node **nodes, uint64_t count,
                                     size_t shared) MUST_CHECK;
/* Sorts them at once, without memory of its own: slowly. */
void zset_order_in_place(struct skiplist_node **nodes, uint64_t count);
/* Goes on for about `steps` looks at a node; true when `nodes` are in order. */
bool zset_order_run(struct zset_order *o, uint64_t steps) MUST_CHECK;
/* The nodes are all there afterwards, in some order. Nulls the caller's pointer, which may be NULL.
 */
void zset_order_destroy(struct zset_order **o);

#endif
