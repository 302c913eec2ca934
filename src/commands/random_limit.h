/* max-rand-count: how many random elements a client may ask for at once. State: world. */
#ifndef COMMANDS_RANDOM_LIMIT_H
#define COMMANDS_RANDOM_LIMIT_H

#include "engine/call.h"

#include "base/option.h"

/* True when `count` (negative: with repetitions) is within the limit; else the error is replied. */
bool random_limit_allows(struct call *c, int64_t count) MUST_CHECK;

extern const struct option random_limit_options[];

#endif
