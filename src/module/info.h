/* The sections that modules add to INFO: "modname" and "modname_section", their fields with the
 * module's name before each. State: the callbacks are world state (struct module). */
#ifndef MODULE_INFO_H
#define MODULE_INFO_H

#include "base/buf.h"
#include "base/slice.h"

#include <stdbool.h>

/* Has the modules append their sections: all for "modules" and "everything", else those that the
 * words name, a module's all by its name. `first`: no section stands before them. Awake. Nothing is
 * appended where the calling thread holds the keyspace lock in shared mode, since modules run in
 * exclusive mode. */
void info_append_modules(struct buf *out, const struct slice *words, int count, bool first);

#endif
