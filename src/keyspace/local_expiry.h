/* Expiries that clients of a writable replica have set. On a replica nothing expires by itself
 * (expire_set_elsewhere), since the primary tells what is gone; but of what was written at the
 * replica the primary knows nothing. So the replica keeps the names of such keys, and the sweep
 * looks at those alone. A name stays while its key has an expiry (members with deadlines) and until
 * the primary gives it another one; it goes with its database's content (FLUSHALL, a full transfer)
 * and with SWAPDB to the other database. What is loaded from a file has no names: a local key that
 * comes out of one stays hidden, as in Redis, until the next full transfer or the promotion.
 *
 * Of members only the key is noted, not which of them: where a client has given one a deadline, all
 * that are due go, which is what a reader of the key does as well (db.h).
 *
 * State: keyspace; the count is atomic. */
#ifndef KEYSPACE_LOCAL_EXPIRY_H
#define KEYSPACE_LOCAL_EXPIRY_H

#include "keyspace/db.h"

/* What of a key a client of this replica has set: bits beside the name's pointer in its slot. */
#define LOCAL_EXPIRY_KEY ((uintptr_t)1)
#define LOCAL_EXPIRY_MEMBERS ((uintptr_t)2)

/* The calling thread has set (`what`) such expiries of the key, while another server decides about
 * expiry: notes the name, or forgets the key's own expiry where it is that server that has set it
 * (expire_frozen: its stream is applied). */
void local_expiry_note(struct db *db, const struct key *key, uintptr_t what)
    REQUIRES(keyspace_lock);
/* Forgets the names of a database whose content goes; they are freed in the background. */
void local_expiry_forget(struct db *db) REQUIRES(keyspace_lock);
/* Frees what all `count` databases have. Teardown. */
void local_expiry_free(struct db *dbs, int count);
/* Removes what is due of such keys, in holds of about 100 microseconds, until it has been through
 * all names or the time is `end_us` (monotonic). True when it has more to do at once. */
bool local_expiry_sweep(int64_t now_ms, uint64_t end_us) EXCLUDES(keyspace_lock);
/* How many names are kept, of all databases (INFO's slave_expires_tracked_keys). Any thread. */
uint64_t local_expiry_count(void);

#endif
