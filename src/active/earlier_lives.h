/* What somebody is taken to know, where a data set is merged (DESIGN.md, "Merge"): a write that he
 * has says that he has all that it was made on, but where he lacks some of it and has run it all
 * the same. Of one thing that can be told: what a node writes in a later life was made on what it
 * had from the earlier ones.
 *
 * State: keyspace (shared mode is enough); vectors are their owners'. */
#ifndef ACTIVE_EARLIER_LIVES_H
#define ACTIVE_EARLIER_LIVES_H

#include "active/origins.h"

/* `known` is left without the writes of each life of a node, of whose earlier lives `other` has
 * more. It has a place for each origin. */
void earlier_lives_forget(const struct origins *o, struct version_vector *known,
                          const struct version_vector *other);

#endif
