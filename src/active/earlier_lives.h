/* The lives of nodes, one after the other. And what somebody is taken to know, where a data set is
 * merged (DESIGN.md, "Merge"): a write that he has says that he has all that it was made on, but
 * where he lacks some of it and has run it all the same. Of one thing that can be told: what a node
 * writes in a later life was made on what it had from the earlier ones.
 *
 * State: keyspace (shared mode is enough); vectors are their owners'. */
#ifndef ACTIVE_EARLIER_LIVES_H
#define ACTIVE_EARLIER_LIVES_H

#include "base/compiler.h"
#include "active/origins.h"

#include <stdbool.h>
#include <stdint.h>

/* All origins of the table, a node's lives together and in their order. The caller's (mem_free);
 * valid until the table changes. */
const struct origin **earlier_lives_order(const struct origins *o) MUST_CHECK;
/* Whether the i-th of those is the first life of its node. */
bool earlier_lives_is_first(const struct origin *const *lives, uint32_t i);
/* `known` is left without the writes of each life of a node, of whose earlier lives `other` has
 * more. It has a place for each origin. */
void earlier_lives_forget(const struct origins *o, struct version_vector *known,
                          const struct version_vector *other);

#endif
