/* Filters of requests that modules register. State: keyspace. */
#ifndef MODULE_FILTERS_H
#define MODULE_FILTERS_H

#include "module/loaded.h"

/* Boot, and its reverse. */
void filters_setup(void);
void filters_teardown(void);
/* The module goes. World, and no other thread looks. */
void filters_withdraw(const struct module *m);
/* How many it has. Awake. */
unsigned filters_count(const struct module *m);

#endif
