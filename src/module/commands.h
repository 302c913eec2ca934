/* Commands of modules. State: world. */
#ifndef MODULE_COMMANDS_H
#define MODULE_COMMANDS_H

#include "module/run.h"

/* Takes out all commands of a module. World. */
void commands_remove(struct module *m) REQUIRES(gil);

#endif
