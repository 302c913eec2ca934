/* Descriptors that modules have watched, and callbacks that they post: all run on the main thread
 * with the keyspace lock (main_loop.h). What is watched is keyspace state; the loop follows by a
 * job, since only its thread may touch it. */
#include "module/event_loop.h"

#include "base/log.h"
#include "base/mem.h"
#include "module/api.h"
#include "module/main_loop.h"

#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <stdbool.h>
#include <stddef.h>

#define BOTH (REDISMODULE_EVENTLOOP_READABLE | REDISMODULE_EVENTLOOP_WRITABLE)

struct handler {
    RedisModuleEventLoopFunc function;
    void *data;
};

/* One descriptor; on the list while it is watched, or the loop has not followed yet. */
struct watched {
    struct main_job follow;
    bool following; /* it is under way */
    int fd, mask;
    struct handler readable, writable;
    struct event *event; /* the main thread's */
    int event_mask;      /* that it was added with */
    struct watched *next;
};

static struct watched *all;

static struct watched *find(int fd)
{
    for (struct watched *w = all; w; w = w->next) {
        if (w->fd == fd) {
            return w;
        }
    }
    return NULL;
}

static void destroy(struct watched *w)
{
    struct watched **link = &all;
    while (*link != w) {
        assert(*link);
        link = &(*link)->next;
    }
    *link = w->next;
    mem_free(w);
}

/* ---- the main thread's side ---- */

static void on_event(evutil_socket_t fd, short what, void *arg) NO_THREAD_SAFETY_ANALYSIS
{
    struct watched *w = arg;
    if (!main_loop_begin_hold()) {
        return; /* it is ready still, and told again */
    }
    /* The module may have ended the one or the other since, and does so in its callbacks. */
    if (what & EV_READ && w->mask & REDISMODULE_EVENTLOOP_READABLE) {
        w->readable.function((int)fd, w->readable.data, REDISMODULE_EVENTLOOP_READABLE);
    }
    if (what & EV_WRITE && w->mask & REDISMODULE_EVENTLOOP_WRITABLE) {
        w->writable.function((int)fd, w->writable.data, REDISMODULE_EVENTLOOP_WRITABLE);
    }
    main_loop_end_hold();
}

static short event_bits(int mask)
{
    return (short)(EV_PERSIST | (mask & REDISMODULE_EVENTLOOP_READABLE ? EV_READ : 0) |
                   (mask & REDISMODULE_EVENTLOOP_WRITABLE ? EV_WRITE : 0));
}

static void run_follow(struct main_job *job, bool alive)
{
    struct watched *w = (struct watched *)((char *)job - offsetof(struct watched, follow));
    w->following = false;
    if (alive && w->mask != w->event_mask && main_loop_base()) {
        if (w->event) {
            event_free(w->event);
            w->event = NULL;
        }
        if (w->mask) {
            w->event = event_new(main_loop_base(), w->fd, event_bits(w->mask), on_event, w);
            if (event_add(w->event, NULL) != 0) { /* a file, or closed */
                log_warning("A module wants descriptor %d to be watched, which cannot be", w->fd);
            }
        }
        w->event_mask = w->mask;
    }
    if (!w->mask && !w->event) {
        destroy(w);
    }
}

static void follow(struct watched *w)
{
    if (!w->following) {
        w->following = true;
        main_loop_post(&w->follow);
    }
}

/* ---- for modules ---- */

static int refuse(int error)
{
    errno = error;
    return REDISMODULE_ERR;
}

static int rm_add(int fd, int mask, RedisModuleEventLoopFunc function, void *data)
{
    keyspace_assert_exclusive();
    if (fd < 0) {
        return refuse(ERANGE);
    }
    if (!function || mask & ~BOTH) {
        return refuse(EINVAL);
    }
    struct watched *w = find(fd);
    if (!w) {
        w = mem_calloc(1, sizeof(*w));
        w->follow.run = run_follow;
        w->fd = fd;
        w->next = all;
        all = w;
    }
    if (mask & REDISMODULE_EVENTLOOP_READABLE) {
        w->readable = (struct handler){function, data};
    }
    if (mask & REDISMODULE_EVENTLOOP_WRITABLE) {
        w->writable = (struct handler){function, data};
    }
    w->mask |= mask;
    follow(w);
    return REDISMODULE_OK;
}

/* The descriptor may be closed, and its number used anew, before the loop has followed: the kernel
 * has forgotten it by then, and nothing is called for it meanwhile. */
static int rm_del(int fd, int mask)
{
    keyspace_assert_exclusive();
    if (fd < 0) {
        return refuse(ERANGE);
    }
    if (mask & ~BOTH) {
        return refuse(EINVAL);
    }
    struct watched *w = find(fd);
    if (w) {
        w->mask &= ~mask;
        w->event_mask |= ~BOTH; /* taken out and put in anew, should it be another file by then */
        follow(w);
    }
    return REDISMODULE_OK;
}

struct one_shot {
    struct main_job job; /* first */
    RedisModuleEventLoopOneShotFunc function;
    void *data;
};

static void run_one_shot(struct main_job *job, bool alive)
{
    struct one_shot *o = (struct one_shot *)job;
    if (alive) {
        o->function(o->data);
    }
    mem_free(o);
}

/* Any thread, with and without the lock. */
static int rm_add_one_shot(RedisModuleEventLoopOneShotFunc function, void *data)
{
    if (!function) {
        return refuse(EINVAL);
    }
    struct one_shot *o = mem_alloc(sizeof(*o));
    *o = (struct one_shot){.job = {.run = run_one_shot}, .function = function, .data = data};
    main_loop_post(&o->job);
    return REDISMODULE_OK;
}

const struct api_function event_loop_functions[] = {
    API(EventLoopAdd, rm_add),
    API(EventLoopDel, rm_del),
    API(EventLoopAddOneShot, rm_add_one_shot),
    {NULL, NULL},
};

void event_loop_stop(void)
{
    for (struct watched *w = all; w; w = w->next) {
        if (w->event) {
            event_free(w->event);
            w->event = NULL;
        }
    }
}

void event_loop_teardown(void)
{
    while (all) {
        destroy(all);
    }
}
