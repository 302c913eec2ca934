/* See random_limit.h. */
#include "commands/random_limit.h"

static int64_t most = INT64_MAX; /* until the options are registered */

bool random_limit_allows(struct call *c, int64_t count)
{
    if (count <= most && count >= -most) {
        return true;
    }
    reply_error(c->reply, "ERR value is out of range");
    return false;
}

const struct option random_limit_options[] = {
    {.name = "max-rand-count",
     .type = OPTION_INT,
     .target = &most,
     .initial = "9223372036854775807",
     .min = 0,
     .max = INT64_MAX},
    {.name = NULL},
};
