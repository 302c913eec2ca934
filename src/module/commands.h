/* Commands of modules. State: world. */
#ifndef MODULE_COMMANDS_H
#define MODULE_COMMANDS_H

#include "module/run.h"

/* Takes out all commands of a module. World. */
void commands_remove(struct module *m) REQUIRES(gil);
/* Frees what is kept of them, at the end of the process: nobody runs, or asks about, any command.
 */
void commands_forget(struct module *m);

#endif
