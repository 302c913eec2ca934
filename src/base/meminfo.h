/* How much memory the machine has, as /proc/meminfo says. State: none. */
#ifndef BASE_MEMINFO_H
#define BASE_MEMINFO_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stdint.h>

/* All of it, and what new programs could have without swapping. False when the system does not say.
 */
bool meminfo_read(uint64_t *total_bytes, uint64_t *available_bytes) MUST_CHECK;

#endif
