/* MODULE and `loadmodule` (admin.c); what the server takes of them is in module.h. */
#ifndef MODULE_ADMIN_H
#define MODULE_ADMIN_H

/* Forgets the configured lines. */
void admin_teardown(void);

#endif
