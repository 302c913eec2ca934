/* Options that files made for Redis or KeyDB hold and that decide nothing here: those that have
 * nothing to switch in this design, and those of features that do not exist yet. Of the latter only
 * the value that leaves the feature off is taken; any other is refused by name. keydb.conf says of
 * each which it is. State: world, as all options are; nobody but CONFIG GET reads it. */
#ifndef SERVER_COMPAT_OPTIONS_H
#define SERVER_COMPAT_OPTIONS_H

#include "base/option.h"

/* Nothing to switch: any value that is legal is kept and shown. */
extern const struct option inert_options[];
/* The feature does not exist. */
extern const struct option absent_options[];

/* Frees the texts. */
void compat_options_teardown(void);

#endif
