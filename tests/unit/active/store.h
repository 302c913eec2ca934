/* Libraries of functions without an interpreter: a source is "#!lua name=NAME FUNCTION...", and two
 * libraries with a function in common do not go together. Each node of a process can have its own.
 */
#ifndef TESTS_UNIT_ACTIVE_STORE_H
#define TESTS_UNIT_ACTIVE_STORE_H

#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>

#define STORE_LIBRARIES_MAX 16
#define STORE_CODE_BYTES 64

struct store {
    char codes[STORE_LIBRARIES_MAX][STORE_CODE_BYTES];
    size_t count;
    int loads; /* so far */
};

/* The process's libraries are those of `s` from now on; NULL: it has none. */
void store_use(struct store *s);
/* What a client's FUNCTION LOAD REPLACE, DELETE and FLUSH do; false: refused. */
bool store_load(struct store *s, struct slice code);
bool store_delete(struct store *s, struct slice name);
void store_flush(struct store *s);
/* Its sources, sorted, one behind the other with blanks between; until the next call. */
const char *store_text(const struct store *s);

#endif
