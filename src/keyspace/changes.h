/* Whether keys have changed meanwhile: for a reader that works in several holds on what must be as
 * of one moment. It notes the counts of its keys when it begins, looks whether they are the same in
 * each hold, and begins anew where they are not. As long as they are, the keys' entries are where
 * they were, with the same content.
 *
 * What counts is what WATCH goes by (event_key_changed). Keys share counters by their hash, so that
 * another key's change may look like one. Nothing is counted while nobody looks: a write pays one
 * test. State: the counters are keyspace state, the number of lookers is atomic. */
#ifndef KEYSPACE_CHANGES_H
#define KEYSPACE_CHANGES_H

#include "keyspace/key.h"
#include "keyspace/lock.h"

#include <stdint.h>

struct db;

/* Boot: listens to changes. */
void changes_setup(void);

/* From this hold on changes are counted, until changes_end(), for which no lock is needed. May be
 * nested, by different threads too. */
void changes_begin(void) REQUIRES_SHARED(keyspace_lock);
void changes_end(void);
/* A number that is another one after the key, or its whole database, has changed. Between begin and
 * end. */
uint64_t changes_count(const struct db *db, const struct key *key) REQUIRES_SHARED(keyspace_lock);

#endif
