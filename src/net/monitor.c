/* See monitor.h. */
#include "net/monitor.h"

#include "base/lock.h"
#include "base/mem.h"
#include "engine/execute.h"
#include "engine/redact.h"
#include "net/output.h"

#include <assert.h>
#include <stdatomic.h>

/* A line on its way to monitors: one for all threads, the last one frees it. Immutable while
 * shared. */
struct monitor_line {
    _Atomic uint32_t references;
    struct buf text;
};

/* Monitors of all threads. The lock orders changes of the count with what the engine is told about
 * it. */
static struct {
    struct lock lock;
    uint32_t count;
} monitors = {.lock = LOCK_INIT(LOCK_RANK_MONITOR, "monitors")};

static void count_monitors(int change)
{
    lock_acquire(&monitors.lock);
    monitors.count = (uint32_t)((int)monitors.count + change);
    call_set_observed(monitors.count > 0);
    lock_release(&monitors.lock);
}

void monitor_add(struct client *c)
{
    struct server_thread *t = c->thread;
    assert(t == server_thread_self() && !(c->flags & CLIENT_MONITOR));
    c->flags |= CLIENT_MONITOR;
    c->monitor_next = t->monitors;
    t->monitors = c;
    atomic_fetch_add_explicit(&t->monitor_count, 1, memory_order_relaxed);
    count_monitors(1);
}

void monitor_remove(struct client *c)
{
    if (!(c->flags & CLIENT_MONITOR)) {
        return;
    }
    struct client **link = &c->thread->monitors;
    while (*link != c) {
        assert(*link);
        link = &(*link)->monitor_next;
    }
    *link = c->monitor_next;
    c->monitor_next = NULL;
    c->flags &= ~(uint32_t)CLIENT_MONITOR;
    atomic_fetch_sub_explicit(&c->thread->monitor_count, 1, memory_order_relaxed);
    count_monitors(-1);
}

/* ---- lines ---- */

static void release_line(struct monitor_line *line)
{
    /* Acquire and release: who frees it comes after all who have read it. */
    if (atomic_fetch_sub_explicit(&line->references, 1, memory_order_acq_rel) == 1) {
        buf_deinit(&line->text);
        mem_free(line);
    }
}

static void deliver_line(struct server_thread *t, void *argument)
{
    struct monitor_line *line = argument;
    for (struct client *c = t->monitors; c; c = c->monitor_next) {
        if (!(c->flags & (CLIENT_CLOSE_ASAP | CLIENT_CLOSE_AFTER_REPLY | CLIENT_REPLY_OFF))) {
            output_bytes(c, buf_slice(&line->text));
        }
    }
    release_line(line);
}

static void append_peer(struct buf *out, const struct session *s)
{
    const struct client *c = client_of(s);
    if (!c || !(c->flags & CLIENT_UNIX)) {
        buf_append_cstr(out, s->peer);
        return;
    }
    size_t len = strlen(s->peer);
    if (len >= 2 && memcmp(s->peer + len - 2, ":0", 2) == 0) {
        len -= 2;
    }
    buf_append_cstr(out, "unix:");
    buf_append(out, s->peer, len);
}

static void format_line(struct buf *out, const struct call *call, int64_t wall_us)
{
    buf_printf(out, "+%lld.%06lld [%d ", (long long)(wall_us / 1000000),
               (long long)(wall_us % 1000000), call->session->db_index);
    if (call->nested && call->session->script) {
        buf_append_cstr(out, "lua");
    } else {
        append_peer(out, call->session);
    }
    buf_append_char(out, ']');
    for (int i = 0; i < call->argc; i++) {
        buf_append_char(out, ' ');
        buf_append_quoted(out, call_argument_is_sensitive(call, i) ? SLICE(REDACTED_TEXT)
                                                                   : call->argv[i]);
    }
    buf_append(out, "\r\n", 2);
}

/* The engine's observer: before each call, on the thread that runs it. Posted at once, so that a
 * monitor has the line before anybody can have seen the call's reply and acted on it. */
static void observe(const struct call *call, int64_t wall_us)
{
    if (call->cmd->flags & CMD_ADMIN) {
        return; /* may carry secrets that nobody marked */
    }
    struct monitor_line *line = mem_calloc(1, sizeof(*line));
    format_line(&line->text, call, wall_us);
    atomic_store_explicit(&line->references, 1, memory_order_relaxed);
    for (int i = 0; i < server_thread_count(); i++) {
        struct server_thread *t = server_thread_at(i);
        if (atomic_load_explicit(&t->monitor_count, memory_order_relaxed) > 0) {
            atomic_fetch_add_explicit(&line->references, 1, memory_order_relaxed);
            server_thread_post(t, deliver_line, line);
        }
    }
    release_line(line);
}

void monitor_setup(void)
{
    call_set_observer(observe);
}
