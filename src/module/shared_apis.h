/* What modules offer one another: functions by names of their own. State: under a leaf lock, since
 * INFO reads what a module's command may change. Modules themselves go in the world only. */
#ifndef MODULE_SHARED_APIS_H
#define MODULE_SHARED_APIS_H

#include "module/loaded.h"

/* Whether another module uses what this one offers. */
bool shared_apis_are_used(const struct module *m);
/* Takes back what it offers, and what it uses. */
void shared_apis_withdraw(struct module *m);
/* INFO's lists of names: whom it uses; who uses it. */
void shared_apis_append_used(struct buf *out, const struct module *m);
void shared_apis_append_users(struct buf *out, const struct module *m);

#endif
