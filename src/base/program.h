/* The name that a program was called by.
 *
 * A keydb-x that is called redis-x, through a link, speaks of itself as redis-x and tells the
 * version of Redis that it stands for: so scripts that call Redis's programs get the answers they
 * look for.
 *
 * State: written once by main, before there are threads; read by anybody from then on. */
#ifndef BASE_PROGRAM_H
#define BASE_PROGRAM_H

#include <stdbool.h>

/* What main begins with. `own` is the program's own name, "keydb-x"; `called` is argv[0], which may
 * be NULL. Both are copied, and cut after 63 bytes. */
void program_setup(const char *own, const char *called);

/* "redis-x" where it was called so, else its own name. */
const char *program_name(void);

/* The last part of the path that it was called by. */
const char *program_called(void);

/* Whether it was called redis-x. */
bool program_is_redis(void);

/* KEYDB_VERSION; called redis-x, REDIS_COMPAT_VERSION. */
const char *program_version(void);

#endif
