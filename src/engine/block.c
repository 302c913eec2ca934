/* See block.h: what handlers use. */
#include "engine/block.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/num.h"
#include "engine/parked.h"
#include "keyspace/waiting.h"

#include <assert.h>
#include <math.h>

bool call_may_block(const struct call *c)
{
    return c->retry || c->awaited || (!c->nested && c->session->owner && !c->session->internal);
}

static void drop_state(const struct block *b)
{
    if (b->state) {
        (b->destroy_state ? b->destroy_state : mem_free)(b->state);
    }
}

void call_block(struct call *c, const struct block *b)
{
    assert(call_may_block(c) && c->cmd->flags & CMD_MAY_WAIT && !c->waits);
    assert(c->dirty == 0 || c->held >= ACCESS_EXCLUSIVE);
    assert(b->event.ptr || (b->keys && b->key_count > 0) ||
           (b->first_key >= 0 && b->key_count > 0 && b->key_count <= c->key_count - b->first_key));
    if (c->retry) {
        assert(!b->state);
        c->waits = true;
    } else if (c->held == ACCESS_SHARED) {
        drop_state(b);
        call_need_exclusive(c);
    } else {
        assert(c->held >= ACCESS_EXCLUSIVE && b->timeout_ms >= 0);
        c->parked = parked_create(c, b);
        c->waits = true;
    }
}

void call_event(struct slice event)
{
    waiting_note_change(db_at(0), event);
}

void *call_block_state(const struct call *c)
{
    assert(c->retry);
    return parked_state(c->parked);
}

/* ---- time-outs ---- */

static bool check_timeout(struct call *c, int64_t timeout_ms)
{
    if (timeout_ms < 0) {
        reply_error(c->reply, "ERR timeout is negative");
    } else if (timeout_ms > INT64_MAX - c->now_ms) {
        reply_error(c->reply, "ERR timeout is out of range");
    } else {
        return true;
    }
    return false;
}

bool call_arg_timeout_s(struct call *c, int i, int64_t *timeout_ms)
{
    long double value;
    if (!num_parse_long_double(c->argv[i], &value)) {
        reply_error(c->reply, "ERR timeout is not a float or out of range");
        return false;
    }
    value *= 1000;
    /* 2^63: the bounds of what the integer takes. */
    if (value >= 0x1p63L) {
        reply_error(c->reply, "ERR timeout is out of range");
        return false;
    }
    *timeout_ms = value < -0x1p62L ? -1 : (int64_t)ceill(value);
    return check_timeout(c, *timeout_ms);
}

bool call_arg_timeout_ms(struct call *c, int i, int64_t *timeout_ms)
{
    return call_arg_i64_error(c, i, timeout_ms, "ERR timeout is not an integer or out of range") &&
           check_timeout(c, *timeout_ms);
}
