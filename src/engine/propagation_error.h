/* What happens when a command fails that a primary or the append-only file has told: it worked
 * there, so what is here is no longer the same. State: world. */
#ifndef ENGINE_PROPAGATION_ERROR_H
#define ENGINE_PROPAGATION_ERROR_H

#include "base/option.h"
#include "base/slice.h"

#include <stdbool.h>

/* Notes such an error. Ends the process (abort) where propagation-error-behavior wants that. */
void propagation_error_note(bool from_primary, struct slice command, struct slice error);

/* propagation-error-behavior. */
extern const struct option propagation_error_options[];

#endif
