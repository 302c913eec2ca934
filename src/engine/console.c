/* See console.h. */
#include "engine/console.h"

static const struct console_ops *console_ops;

void console_set_ops(const struct console_ops *ops)
{
    console_ops = ops;
}

/* Sessions without owner are no client's. */
static bool is_clients(const struct call *c)
{
    return console_ops && c->session->owner && !c->nested;
}

bool console_is_caught_up(const struct call *c)
{
    return is_clients(c) && console_ops->is_caught_up(c);
}

bool console_is_free(const struct call *c)
{
    return is_clients(c) && console_ops->is_free(c);
}

int console_fd(const struct call *c)
{
    return console_ops->fd(c->session);
}

ssize_t console_read(const struct call *c, char *bytes, size_t room, int wait_ms)
{
    return console_ops->read(c->session, bytes, room, wait_ms);
}

ssize_t console_write(const struct call *c, struct slice bytes, int wait_ms)
{
    return console_ops->write(c->session, bytes, wait_ms);
}

bool console_is_flushed(const struct call *c)
{
    return console_ops->is_flushed(c->session);
}

void console_leave(const struct call *c)
{
    console_ops->leave(c->session);
}

void console_end(const struct call *c)
{
    console_ops->end(c->session);
}
