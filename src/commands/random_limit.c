/* See random_limit.h. */
#include "commands/random_limit.h"

static int64_t most = INT64_MAX; /* until the options are registered */

/* What frames an element in a reply. */
#define FRAME_BYTES 16
/* What a reference is counted as: a count that threads share, two pieces of the reply, and later as
 * many buffers of a system call. */
#define REFERENCE_BYTES 1024

static void refuse(struct call *c)
{
    reply_error(c->reply, "ERR value is out of range");
}

bool random_limit_allows(struct call *c, int64_t count)
{
    if (count <= most && count >= -most) {
        return true;
    }
    refuse(c);
    return false;
}

bool random_repeats_begin(struct random_repeats *r, struct call *c, uint64_t count)
{
    *r = (struct random_repeats){.call = c, .mark = reply_mark(c->reply)};
    r->refused = count > RANDOM_REPEATS_MAX;
    if (r->refused) {
        refuse(c);
    }
    return !r->refused;
}

bool random_repeats_take(struct random_repeats *r, size_t bytes, const struct blob *blob)
{
    r->bytes += FRAME_BYTES + (blob ? REFERENCE_BYTES : bytes);
    if (!r->refused && unlikely(r->bytes > RANDOM_REPEATS_BYTES)) {
        r->refused = true;
        reply_rewind(r->call->reply, r->mark);
        refuse(r->call);
    }
    return !r->refused;
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
