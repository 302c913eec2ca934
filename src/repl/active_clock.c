/* See active_clock.h. */
#include "repl/active_clock.h"

#include "base/clock.h"

static int64_t wall_ms(const struct active_clock *c)
{
    int64_t now = c->wall_ms ? c->wall_ms(c->context) : clock_wall_ms();
    return now > 0 ? now : 0;
}

static uint64_t now_stamp(const struct active_clock *c)
{
    return (uint64_t)wall_ms(c) << ACTIVE_STAMP_COUNTER_BITS;
}

uint64_t active_clock_next(struct active_clock *c)
{
    uint64_t now = now_stamp(c);
    c->last = now > c->last ? now : c->last + 1;
    return c->last;
}

uint64_t active_clock_tell(struct active_clock *c)
{
    uint64_t now = now_stamp(c);
    if (now > c->last) {
        c->last = now;
    }
    return c->last;
}

bool active_clock_see(struct active_clock *c, uint64_t stamp)
{
    if (active_stamp_ms(stamp) > wall_ms(c) + ACTIVE_CLOCK_AHEAD_MAX_MS) {
        return false;
    }
    if (stamp > c->last) {
        c->last = stamp;
    }
    return true;
}

int64_t active_clock_ms(const struct active_clock *c)
{
    int64_t now = wall_ms(c), last = active_stamp_ms(c->last);
    return now > last ? now : last;
}
