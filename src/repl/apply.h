/* The primary's stream, applied here: whole commands are run in its name, and what is done counts
 * as ours (backlog_forward), so that our own replicas and a later resync go on from there. A
 * transaction whose end has not come yet is not done: after a cut it comes again, whole.
 *
 * State: the following thread's. */
#ifndef REPL_APPLY_H
#define REPL_APPLY_H

#include "base/slice.h"
#include "engine/gil.h"

#include <stdbool.h>
#include <stdint.h>

/* The thread begins and ends. */
void apply_setup(void);
void apply_teardown(void);
/* A new connection: what had come but was not done is forgotten; for database 0 first. */
void apply_reset(void);
/* The stream's commands are for this database, until it says otherwise. */
void apply_select(int db);
int apply_db(void);

/* Bytes have come; kept until they are whole commands. */
void apply_take(struct slice bytes);
enum apply_result {
    APPLY_IDLE,   /* nothing whole is left */
    APPLY_MORE,   /* call again: others go first */
    APPLY_BROKEN, /* logged: no such thing can be in a stream */
};
/* Applies some of it, in one bounded hold. The GIL is held in shared mode. */
enum apply_result apply_some(void);
/* True, once, when the primary has asked how far we are. */
bool apply_asked(void);

#endif
