/* Which members some packed sets have, so that an operation on small sets need not search a
 * listpack for each of them: a chained hash table over the members where they stand.
 *
 * State: owned by the call. A member that was added is borrowed from its set, which must be packed
 * and must not change while the index is used. */
#ifndef COMMANDS_SETS_INDEX_H
#define COMMANDS_SETS_INDEX_H

#include "value/set.h"

/* So many members at most. */
#define SETS_INDEX_MEMBERS 512

struct sets_index;

/* Without any member; about 16 KiB. */
struct sets_index *sets_index_create(void);
/* Its reverse. */
void sets_index_destroy(struct sets_index *index);
/* Whether it has the member, which comes from a packed set too. */
bool sets_index_has(const struct sets_index *index, struct set_member *m);
/* Adds; false when it was there. */
bool sets_index_add(struct sets_index *index, struct set_member *m);

#endif
