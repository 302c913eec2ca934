/* Options of modules: "name.option" in CONFIG, keydb.conf and MODULE LOADEX CONFIG. The value is
 * the module's, which is asked and told through its callbacks. State: world; the callbacks run with
 * the keyspace lock in exclusive mode. */
#ifndef MODULE_CONFIGS_H
#define MODULE_CONFIGS_H

#include "base/buf.h"
#include "module/loaded.h"

/* After OnLoad: true when the module has had its options set, or has none; else it must be taken
 * out again (LoadConfigs is missing). */
bool configs_are_loaded(const struct module *m);
/* Forgets the module's options; whoever CONFIG SETs one is told that it is unknown. World; or at
 * the end, when the module is not asked any more. */
void configs_withdraw(struct module *m);
void configs_forget(struct module *m);

#endif
