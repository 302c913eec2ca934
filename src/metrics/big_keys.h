/* A walk over all keys that remembers the largest: as SCAN and MEMORY USAGE would find them, in
 * short holds of the keyspace lock in shared mode, at most half of the time and for
 * BIG_KEYS_MAX_S seconds. One walk at a time; what it found stays until the next one.
 *
 *   none --start--> walking --all seen, or the time is up--> done --start--> walking
 *
 * State: the HTTP thread's. */
#ifndef METRICS_BIG_KEYS_H
#define METRICS_BIG_KEYS_H

#include "base/buf.h"

#define BIG_KEYS_SHOWN 32
#define BIG_KEYS_MAX_S 120

/* Begins a walk, unless one goes on. The HTTP thread, awake. */
void big_keys_start(void);
/* Appends an object: "state" ("none", "walking", "done", "stopped" by the bound), "seen" and
 * "total" numbers of keys, "keys": the largest first, each with "db", "key", "type", "bytes" (an
 * estimate, as MEMORY USAGE's). The HTTP thread. */
void big_keys_write(struct buf *out);
/* Forgets everything. The thread has ended. */
void big_keys_teardown(void);

#endif
