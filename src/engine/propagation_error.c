/* See propagation_error.h. */
#include "engine/propagation_error.h"

#include "base/log.h"

#include <stdlib.h>

enum behavior { BEHAVIOR_IGNORE, BEHAVIOR_PANIC, BEHAVIOR_PANIC_ON_REPLICAS };

/* Of the command's name and of the error's text in the log. */
#define NAME_BYTES 64
#define ERROR_BYTES 256

static int behavior;

static int shown(struct slice text, size_t most)
{
    return (int)(text.len < most ? text.len : most);
}

void propagation_error_note(bool from_primary, struct slice command, struct slice error)
{
    if (behavior == BEHAVIOR_IGNORE || (behavior == BEHAVIOR_PANIC_ON_REPLICAS && !from_primary)) {
        return;
    }
    log_warning("propagation-error-behavior ends the server: %.*s, told by %s, failed here: %.*s",
                shown(command, NAME_BYTES), command.ptr,
                from_primary ? "the primary" : "the append-only file", shown(error, ERROR_BYTES),
                error.ptr);
    abort();
}

static const struct option_enum behaviors[] = {{"ignore", BEHAVIOR_IGNORE},
                                               {"panic", BEHAVIOR_PANIC},
                                               {"panic-on-replicas", BEHAVIOR_PANIC_ON_REPLICAS},
                                               {NULL, 0}};

const struct option propagation_error_options[] = {
    {.name = "propagation-error-behavior",
     .type = OPTION_ENUM,
     .target = &behavior,
     .initial = "ignore",
     .enum_names = behaviors},
    {.name = NULL},
};
