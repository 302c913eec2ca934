/* A node's files: what dots.h asks for and tells, answered by the node, or while its files are
 * loaded, before it is there, by its past. State: set at boot and in exclusive mode. */
#ifndef ACTIVE_NODE_FILES_H
#define ACTIVE_NODE_FILES_H

#include "keyspace/lock.h"
#include "active/node.h"
#include "active/restored.h"

/* Boot, before files are loaded. */
void node_files_setup(void);
/* What is loaded from now on is told to this past (NULL: to nobody). */
void node_files_load_into(struct restored *past);
/* The files are this node's from now on (NULL: nobody's); not within a unit. */
void node_files_attach(struct node *node) REQUIRES(keyspace_lock);

/* ops of dots.h, for tests that put something between. */
extern const struct dots_ops node_files_ops;

#endif
