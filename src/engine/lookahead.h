/* Looking ahead: which members of large collections the calls of a batch are about to look up, and
 * the lines of memory that this will take, asked for together before the first of the calls runs.
 * Without it each member costs a row of cache misses that wait for one another; DESIGN, 2 and 5.
 *
 * A command says where its members stand in its row (command_row.members). That is a hint and no
 * more: nothing that depends on it may be wrong when it is. A look-ahead
 *  - runs under the keyspace lock, in either mode, begun and ended within one hold and before
 *    anything in it changes: what it follows lives that long. Nothing that it has found is kept:
 *    the calls look everything up anew, as keys may be gone, moved or of another type by then;
 *  - changes nothing: no access clock, no figures, no note of an expired key, which it looks at
 *    like at any other;
 *  - takes the type from the entry that it finds, not from the command.
 * State: on the stack of a server thread. */
#ifndef ENGINE_LOOKAHEAD_H
#define ENGINE_LOOKAHEAD_H

#include "ds/table_ahead.h"
#include "engine/call.h"

/* Members of a batch that are looked at, and of one call: the lines of all of them fit the second
 * cache level beside everything else. */
#define LOOKAHEAD_MAX 256
#define LOOKAHEAD_CALL_MAX 8

struct lookahead {
    struct table_ahead lookups[LOOKAHEAD_MAX];
    int count;
    int tables; /* times that the table changed from one lookup to the next */
    /* The key seen last and its table (NULL: none): neighbours often go to the same. */
    const struct db *db;
    const struct key *key;
    const struct table *table;
};

static inline void lookahead_begin(struct lookahead *a)
{
    a->count = a->tables = 0;
    a->key = NULL;
    a->table = NULL;
}
/* Notes the members of a prepared call. False when there is no room for more. */
bool lookahead_add(struct lookahead *a, const struct call *call) REQUIRES_SHARED(keyspace_lock);
/* Brings what was noted towards the cache, which ends the look-ahead. */
void lookahead_fetch(struct lookahead *a) REQUIRES_SHARED(keyspace_lock);

#endif
