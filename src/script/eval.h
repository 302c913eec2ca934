/* EVAL's scripts: the cache of them by SHA1, in an interpreter of their own. State: keyspace. */
#ifndef SCRIPT_EVAL_H
#define SCRIPT_EVAL_H

#include "engine/call.h"
#include "script/script.h"

/* Boot, and its reverse. */
void eval_setup(void);
void eval_teardown(void);
/* Adds the cache's figures. Any thread. */
void eval_add_figures(struct script_figures *figures);

/* EVAL, EVALSHA and their _RO forms. */
void eval_run(struct call *c, bool by_sha, bool read_only) REQUIRES(keyspace_lock);
/* What the script of an EVAL, or its kin by SHA1, says of itself (enum script_flag):
 * SCRIPT_UNDECLARED also where it is not known, or not valid. */
unsigned eval_flags(const struct call *c, bool by_sha) REQUIRES(keyspace_lock);
/* SCRIPT LOAD: replies the SHA1. */
void eval_load(struct call *c, struct slice script) REQUIRES(keyspace_lock);
/* True when the script of that SHA1 (any case) is there. */
bool eval_exists(struct slice sha) REQUIRES(keyspace_lock);
/* SCRIPT FLUSH: forgets all scripts. */
void eval_flush(void) REQUIRES(keyspace_lock);

#endif
