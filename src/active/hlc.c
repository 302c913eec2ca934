/* See hlc.h. */
#include "active/hlc.h"

#include "base/clock.h"

static int64_t wall_ms(const struct hlc *c)
{
    int64_t now = c->wall_ms ? c->wall_ms(c->context) : clock_wall_ms();
    return now > 0 ? now : 0;
}

static uint64_t now_stamp(const struct hlc *c)
{
    return (uint64_t)wall_ms(c) << HLC_COUNTER_BITS;
}

uint64_t hlc_next(struct hlc *c)
{
    uint64_t now = now_stamp(c);
    c->last = now > c->last ? now : c->last + 1;
    return c->last;
}

uint64_t hlc_tell(struct hlc *c)
{
    uint64_t now = now_stamp(c);
    if (now > c->last) {
        c->last = now;
    }
    return c->last;
}

bool hlc_see(struct hlc *c, uint64_t stamp)
{
    if (hlc_stamp_ms(stamp) > wall_ms(c) + HLC_AHEAD_MAX_MS) {
        return false;
    }
    if (stamp > c->last) {
        c->last = stamp;
    }
    return true;
}

int64_t hlc_ms(const struct hlc *c)
{
    int64_t now = wall_ms(c), last = hlc_stamp_ms(c->last);
    return now > last ? now : last;
}
