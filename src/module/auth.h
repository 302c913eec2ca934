/* Clients that modules authenticate. See auth.c. */
#ifndef MODULE_AUTH_H
#define MODULE_AUTH_H

#include "module/loaded.h"

/* Boot, and its reverse, when no client is left. */
void module_auth_setup(void);
void module_auth_teardown(void);
/* The module goes: it is told nothing more. World. */
void module_auth_withdraw(const struct module *m);

#endif
