/* See hlc.h. */
#include "active/hlc.h"

#include "base/clock.h"

static int64_t wall_ms(const struct hlc *c)
{
    int64_t now = c->wall_ms ? c->wall_ms(c->context) : clock_wall_ms();
    return now > 0 ? now : 0;
}

/* A clock that nobody sets. */
static int64_t mono_ms(const struct hlc *c)
{
    return c->wall_ms ? wall_ms(c) : (int64_t)(clock_mono_us() / 1000);
}

/* The group's time, as far as is known. */
static __attribute__((noinline)) int64_t group_ms(const struct hlc *c)
{
    int64_t now = wall_ms(c);
    if (c->ahead_ms == 0) {
        return now;
    }
    int64_t passed = mono_ms(c) - c->heard_mono_ms;
    int64_t ahead = c->ahead_ms + (passed > 0 ? clock_slowed(passed) : 0);
    return ahead > now ? ahead : now;
}

void hlc_begin_hold(struct hlc *c)
{
    if (c->hold_ms == 0) {
        c->hold_ms = group_ms(c);
    }
}

void hlc_end_hold(struct hlc *c)
{
    c->hold_ms = 0;
}

static int64_t moment_ms(const struct hlc *c)
{
    return c->hold_ms ? c->hold_ms : group_ms(c);
}

static uint64_t stamp_of(int64_t ms)
{
    return (uint64_t)ms << HLC_COUNTER_BITS;
}

uint64_t hlc_next(struct hlc *c)
{
    uint64_t now = stamp_of(moment_ms(c));
    c->last = now > c->last ? now : (c->last | 1) + 1;
    return c->last;
}

uint64_t hlc_next_state(struct hlc *c)
{
    uint64_t now = stamp_of(moment_ms(c));
    c->last = (now > c->last ? now : c->last + 1) | 1;
    return c->last;
}

uint64_t hlc_tell(struct hlc *c)
{
    uint64_t now = stamp_of(group_ms(c));
    if (now > c->last) {
        c->last = now;
    }
    return c->last;
}

static void hear(struct hlc *c, uint64_t stamp)
{
    if (hlc_stamp_ms(stamp) > group_ms(c)) {
        c->ahead_ms = hlc_stamp_ms(stamp);
        c->heard_mono_ms = mono_ms(c);
    }
}

void hlc_go_on(struct hlc *c)
{
    hear(c, c->last);
}

bool hlc_see(struct hlc *c, uint64_t stamp)
{
    if (c->hold_ms == 0 || hlc_stamp_ms(stamp) > c->hold_ms) { /* else it is not ahead */
        if (hlc_stamp_ms(stamp) > wall_ms(c) + HLC_AHEAD_MAX_MS) {
            return false;
        }
        hear(c, stamp);
        c->hold_ms = c->hold_ms ? hlc_stamp_ms(stamp) : 0;
    }
    if (stamp > c->last) {
        c->last = stamp;
    }
    return true;
}

int64_t hlc_ms(const struct hlc *c)
{
    int64_t now = group_ms(c), last = hlc_stamp_ms(c->last);
    return now > last ? now : last;
}

int64_t hlc_hold_ms(const struct hlc *c)
{
    int64_t now = moment_ms(c), last = hlc_stamp_ms(c->last);
    return now > last ? now : last;
}

int64_t hlc_ahead_ms(const struct hlc *c)
{
    return hlc_ms(c) - wall_ms(c);
}
