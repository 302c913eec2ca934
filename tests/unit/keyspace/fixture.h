/* What the keyspace's tests share: a process with databases, and a record of what listeners were
 * told. */
#ifndef UNIT_KEYSPACE_FIXTURE_H
#define UNIT_KEYSPACE_FIXTURE_H

#include "base/option.h"
#include "keyspace/db.h"

#include <stdbool.h>
#include <stdint.h>

/* Group setup and teardown: slot of the main thread, initial options, the recording listeners. */
int fixture_enter(void **state);
int fixture_leave(void **state);

/* Sets one option of a table by its name; fails the test when it is refused. */
void fixture_set_option(const struct option *table, const char *name, const char *value);

/* What was told since the last call: "event@db:key " for events, "!db:key " for changes ("!db:* "
 * for a whole database), in order. Valid until the next call. */
const char *fixture_told(void);

/* Opens a key for writing / reads it; the caller holds the lock. */
struct keyref fixture_open(struct db *db, const char *key, int64_t now_ms);
struct entry *fixture_read(struct db *db, const char *key, int64_t now_ms);
/* Takes the lock, sets the key to `value`, releases it. */
void fixture_set(struct db *db, const char *key, const char *value, int64_t expiry_ms,
                 int64_t now_ms);
/* Takes the lock and checks all databases. */
void fixture_check(void);

#endif
