/* A node's files: what dots.h asks for and tells, answered by the node, or while its files are
 * loaded, before it is there, by its past. State: set at boot and in exclusive mode. */
#ifndef REPL_ACTIVE_FILES_H
#define REPL_ACTIVE_FILES_H

#include "keyspace/lock.h"
#include "repl/active_node.h"
#include "repl/active_past.h"

/* Boot of an active replica, before files are loaded. */
void active_files_setup(void);
/* What is loaded from now on is told to this past (NULL: to nobody). */
void active_files_load_into(struct active_past *past);
/* The files are this node's from now on (NULL: nobody's); not within a unit. */
void active_files_attach(struct active_node *node) REQUIRES(keyspace_lock);

/* ops of dots.h, for tests that put something between. */
extern const struct dots_ops active_files_ops;

#endif
