/* The sections that modules add to INFO: "modname" and "modname_section", their fields with the
 * module's name before each. State: the callbacks are world state (struct module). */
#ifndef MODULE_INFO_H
#define MODULE_INFO_H

#include "engine/info.h"

/* Whether modules have sections, and their writing: all for "modules" and "everything", else those
 * that the words name, a module's all by its name. */
extern const struct info_guests module_info_guests;

#endif
