/* Loading and unloading of modules. State: world. */
#ifndef MODULE_LOADER_H
#define MODULE_LOADER_H

#include "engine/gil.h"
#include "module/loaded.h"

/* Loads the library and runs its OnLoad. On a fault nothing is left of it, and `error` has the
 * reason appended (dlerror's words, where it is the library's). The arguments are copied. */
bool loader_load(const char *path, const struct slice *args, int arg_count,
                 struct buf *error) MUST_CHECK REQUIRES(gil);
/* Takes it out: false, with the reason appended, when that cannot be now. */
bool loader_unload(struct slice name, struct buf *error) MUST_CHECK REQUIRES(gil);
/* Frees the records; the libraries stay. */
void loader_teardown(void);

#endif
