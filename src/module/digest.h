/* DEBUG DIGEST's part of modules' values. */
#ifndef MODULE_DIGEST_H
#define MODULE_DIGEST_H

#include "value/module.h"

/* What the module's method makes of the value; zeros without one. Exclusive mode. */
void digest_value(const struct module_kind *k, struct module_place at, void *value,
                  uint8_t digest[20]);

#endif
