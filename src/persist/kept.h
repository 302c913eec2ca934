/* The data set that is there, kept aside (keyspace/db.h) while another is loaded in its place or
 * looked at before it is added: DEBUG RELOAD, DEBUG LOADAOF. Whatever comes of that, what was there
 * can be had back whole: keys, their access clocks and jobs, libraries of functions. State:
 * keyspace's, while the world stands. */
#ifndef PERSIST_KEPT_H
#define PERSIST_KEPT_H

#include "base/buf.h"
#include "engine/gil.h"
#include "keyspace/lock.h"

#include <stdbool.h>

/* False when a data set stands aside already: one that is being loaded from a primary. World. */
bool kept_may_begin(void);

/* Takes all keys and libraries out of sight: the databases are empty then. World. */
void kept_begin(void) EXCLUDES(keyspace_lock);
/* Forgets what came meanwhile, and has back what was there. World. */
void kept_restore(void) EXCLUDES(keyspace_lock);
/* What came stays. World. */
void kept_drop(void) EXCLUDES(keyspace_lock);

/* Adds the keys and libraries that were loaded aside to those that are there; with `replace` they
 * take the place of such of the same name. False with the reason appended, and nothing changed,
 * when one cannot be added. What is aside is empty then, in any case to be closed by kept_drop.
 * World. */
bool kept_add_aside(bool replace, struct buf *error) MUST_CHECK EXCLUDES(keyspace_lock);

#endif
