/* What a module says of its commands beside their names: arity, keys, documentation. State: world.
 */
#ifndef MODULE_COMMAND_INFO_H
#define MODULE_COMMAND_INFO_H

#include "module/run.h"

/* Frees what was said; the command itself is gone already, or goes. */
void command_info_clear(struct module_command *c);

#endif
