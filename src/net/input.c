/* See input.h. */
#include "net/input.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/stats.h"
#include "engine/transaction.h"
#include "net/audit.h"
#include "net/client_memory.h"
#include "net/listener.h"
#include "net/output.h"
#include "net/sys.h"
#include "net/tls.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <sys/socket.h>

/* Most bytes of one recv into a large bulk: a turn stays short for the others. */
#define BIG_RECV_BYTES ((size_t)1024 * 1024)
/* A client whose large bulk is under way wakes its thread only when this much more of it is there:
 * taking every few kilobytes at once makes TCP send in small pieces, which costs the sender twice
 * the CPU time (measured with 500 kB values: 0.55 of the oracle's SETs a second without, 1.2 with;
 * 128 KiB gain half of that). */
#define BIG_LOW_WATER_BYTES ((size_t)512 * 1024)

/* More than a TLS connection ever has read ahead: a record and the library's buffer. */
#define TLS_AHEAD_BYTES ((size_t)64 * 1024)
/* Steps of handshakes of one turn: each may cost a signature, and others wait meanwhile. */
#define GREETING_STEPS_A_TURN 8

void input_keep_rest(struct client *c)
{
    if (c->fresh.len > 0) {
        buf_append_slice(&c->pending, c->fresh);
        c->fresh = slice_of(NULL, 0);
    } else if (c->pending_pos > 0) {
        buf_consume(&c->pending, c->pending_pos);
        c->pending_pos = 0;
        if (c->pending.len == 0) {
            buf_deinit(&c->pending);
        }
    }
}

/* How much must be there before the socket counts as readable. A bulk that ends sooner is not
 * waited for longer than itself. */
static void set_low_water(struct client *c)
{
    size_t missing = c->parser.big ? parser_big_missing(&c->parser) : 1;
    if (c->flags & CLIENT_TLS) {
        /* Of what is missing this much may be here already, not decrypted yet. */
        missing = missing > TLS_AHEAD_BYTES ? missing - TLS_AHEAD_BYTES : 1;
    }
    int wanted = (int)(missing < BIG_LOW_WATER_BYTES ? missing : BIG_LOW_WATER_BYTES);
    wanted = wanted > 0 ? wanted : 1;
    if (wanted != c->low_water_bytes &&
        setsockopt(c->fd, SOL_SOCKET, SO_RCVLOWAT, &wanted, sizeof(wanted)) == 0) {
        c->low_water_bytes = wanted;
    }
}

void input_keep_for_big(struct client *c)
{
    size_t parsed = c->parser.position;
    if (c->pending.len > c->pending_pos) {
        c->pending.len = c->pending_pos + parsed;
    } else {
        buf_append_slice(&c->pending, slice_of(c->fresh.ptr, parsed));
        c->fresh = slice_of(NULL, 0);
    }
    set_low_water(c);
}

/* Where the next recv goes, and how much; NULL when there is no room now, or never for a client
 * that is marked for closing then. */
static ALWAYS_INLINE char *choose_target(struct server_thread *t, struct client *c, size_t *room)
{
    if (parser_big_missing(&c->parser) > 0) {
        char *target = parser_big_reserve(&c->parser, room);
        if (!target) {
            log_warning("Closing client %s: no memory for its request", c->session.peer);
            client_close_asap(c);
        } else if (*room > BIG_RECV_BYTES) {
            *room = BIG_RECV_BYTES;
        }
        return target;
    }
    if (INPUT_BUFFER_BYTES - t->input_used < INPUT_CHUNK_BYTES) {
        return NULL;
    }
    *room = INPUT_CHUNK_BYTES;
    return t->input + t->input_used;
}

bool input_check_limit(struct client *c)
{
    size_t limit = (size_t)net_settings.query_buffer_limit_bytes;
    size_t bytes = c->pending.len + parser_memory_bytes(&c->parser);
    if (likely(bytes + transaction_bytes(&c->session) <= limit) || c->flags & CLIENT_CLOSE_ASAP) {
        return true;
    }
    log_warning("Closing client %s: its query buffer passed client-query-buffer-limit",
                c->session.peer);
    stats_add(STAT_QUERY_LIMIT_CLOSED, 1);
    client_close_asap(c);
    return false;
}

/* What of its requests waits for more is this much by now. */
static void note_held(struct server_thread *t, const struct client *c)
{
    server_thread_note_recent(t, &t->recent_input,
                              c->pending.capacity + parser_memory_bytes(&c->parser));
}

/* Takes `len` received bytes over; returns whether there is something to parse. */
static ALWAYS_INLINE bool take(struct server_thread *t, struct client *c, const char *target,
                               size_t len)
{
    if (c->parser.big && parser_big_missing(&c->parser) > 0) {
        c->parser.big->len += len;
        note_held(t, c);
        set_low_water(c);
        return input_check_limit(c) && parser_big_missing(&c->parser) == 0;
    }
    if (c->pending.len > 0) {
        /* Copied, not received there: room for a whole recv in each half-finished request would be
         * most of its memory. */
        buf_append(&c->pending, target, len);
        note_held(t, c);
        return input_check_limit(c);
    }
    c->fresh = slice_of(target, len);
    /* Requests are parsed in place: the next client's bytes begin on a line of their own. */
    t->input_used += (len + CACHE_LINE_BYTES - 1) & ~(size_t)(CACHE_LINE_BYTES - 1);
    return true;
}

void input_receive_later(struct server_thread *t, struct client *c)
{
    if (c->flags & (CLIENT_ON_UNREAD_LIST | CLIENT_CLOSE_ASAP)) {
        return;
    }
    if (t->unread_count == t->unread_capacity) {
        t->unread_capacity = t->unread_capacity ? 2 * t->unread_capacity : 16;
        t->unread = mem_realloc(t->unread, t->unread_capacity * sizeof(struct client *));
    }
    t->unread[t->unread_count++] = c;
    c->flags |= CLIENT_ON_UNREAD_LIST;
}

/* The peer sends no more; it may still read. What it has sent is answered before it is closed, but
 * who waits for others has gone. */
static void end_of_input(struct server_thread *t, struct client *c)
{
    c->flags |= CLIENT_PEER_CLOSED;
    if (c->flags & CLIENT_ON_READY_LIST) {
        input_receive_later(t, c); /* it is not parsed yet */
    } else if (c->flags & (CLIENT_SUSPENDED | CLIENT_COMMITTING)) {
        return; /* looked at again when its reply is there */
    } else if (output_is_empty(c) || c->session.subscriptions > 0 ||
               c->flags & (CLIENT_BLOCKED | CLIENT_PAUSED | CLIENT_MONITOR | CLIENT_FED)) {
        client_close_asap(c);
    } else {
        c->flags |= CLIENT_CLOSE_AFTER_REPLY;
    }
}

/* What a read into `target` has brought: `got` as recv returns it. */
static ALWAYS_INLINE void received(struct server_thread *t, struct client *c, const char *target,
                                   size_t room, ssize_t got)
{
    stats_add(STAT_READS, 1);
    if (likely(got > 0)) {
        stats_add(STAT_NET_INPUT_BYTES, (uint64_t)got);
        c->net_in_bytes += (uint64_t)got;
        c->active_s = t->mono_s;
        bool parses = take(t, c, target, (size_t)got);
        if (client_memory_is_limited()) {
            client_memory_note(c);
        }
        if (parses) {
            server_thread_make_ready(t, c);
        }
        if (unlikely((size_t)got == room || !parses || c->flags & CLIENT_PEER_CLOSED)) {
            input_receive_later(t, c);
        }
    } else if (got < 0 && errno == EINTR) {
        input_receive_later(t, c);
    } else if (got == 0) {
        end_of_input(t, c);
    } else if (errno != EAGAIN) {
        client_close_asap(c);
    }
}

/* One read of plaintext, like a recv: -1 with EAGAIN when nothing is there, 0 at the end. */
static ssize_t receive_decrypted(struct server_thread *t, struct client *c, char *target,
                                 size_t room)
{
    enum tls_status status;
    size_t got = tls_receive(c->tls, target, room, &status);
    if (tls_unsent(c->tls)) {
        output_flush(c); /* what the protocol has answered by itself */
    }
    if (status == TLS_MORE || (status == TLS_ENDED && got > 0)) {
        input_receive_later(t, c);
    }
    if (got > 0 || status == TLS_ENDED) {
        return (ssize_t)got;
    }
    errno = EAGAIN;
    return -1;
}

/* A client that is to be closed once its replies are sent: what it still says is read and
 * forgotten. */
static void receive_nothing(struct server_thread *t, struct client *c)
{
    char forgotten[4096];
    ssize_t got = c->flags & CLIENT_TLS ? receive_decrypted(t, c, forgotten, sizeof(forgotten))
                                        : sys_recv(c->fd, forgotten, sizeof(forgotten));
    if (got > 0 || (got < 0 && errno == EINTR)) {
        input_receive_later(t, c);
    } else if (got == 0) {
        end_of_input(t, c);
    } else if (errno != EAGAIN) {
        client_close_asap(c);
    }
}

/* A connection that failed in its handshake; told in the log, once a second at most. */
static void refuse_greeting(struct client *c, const char *why)
{
    static _Atomic uint64_t told_at_s;
    uint64_t now_s = c->thread->mono_s + 1;
    if (atomic_exchange(&told_at_s, now_s) != now_s) {
        log_warning("TLS: client %s is not let in: %s", c->session.peer, why);
    }
    stats_add(STAT_REJECTED, 1);
    client_close_asap(c);
}

/* Goes on with the handshake of a client. */
static void greet(struct server_thread *t, struct client *c)
{
    char why[TLS_WHY_MAX];
    if (t->greeting_steps == GREETING_STEPS_A_TURN) {
        input_receive_later(t, c);
        return;
    }
    t->greeting_steps++;
    enum tls_status status = tls_greet(c->tls, why);
    if (status == TLS_ENDED) {
        refuse_greeting(c, why);
        return;
    }
    if (status == TLS_DONE) {
        c->flags &= ~(uint32_t)CLIENT_GREETING;
        audit_choose(c);
        const char *denial = listener_denial(c->flags & CLIENT_LOCAL);
        if (denial) {
            output_bytes(c, slice_cstr(denial));
            c->flags |= CLIENT_CLOSE_AFTER_REPLY;
        }
        input_receive_later(t, c); /* requests may have come with the end of the handshake */
    }
    output_flush(c);
}

/* What a client's input is, other than requests: TLS, or nothing any more. */
static __attribute__((noinline)) void receive_otherwise(struct server_thread *t, struct client *c)
{
    if (c->flags & CLIENT_IN_BATCH) {
        input_receive_later(t, c);
    } else if (c->flags & CLIENT_GREETING) {
        greet(t, c);
    } else if (c->flags & CLIENT_CLOSE_AFTER_REPLY) {
        receive_nothing(t, c);
    } else {
        size_t room;
        char *target = c->fresh.len > 0 ? NULL : choose_target(t, c, &room);
        if (target) {
            received(t, c, target, room, receive_decrypted(t, c, target, room));
        } else {
            input_receive_later(t, c);
        }
    }
}

void input_receive(struct server_thread *t, struct client *c)
{
    size_t room;
    if (unlikely(c->flags & (CLIENT_CLOSE_AFTER_REPLY | CLIENT_TLS | CLIENT_IN_BATCH))) {
        receive_otherwise(t, c);
        return;
    }
    /* What came before in this loop is not parsed yet, or there is no room for more. */
    char *target = c->fresh.len > 0 ? NULL : choose_target(t, c, &room);
    if (unlikely(!target)) {
        input_receive_later(t, c);
        return;
    }
    received(t, c, target, room, sys_recv(c->fd, target, room));
}

void input_receive_unread(struct server_thread *t)
{
    uint32_t count = t->unread_count;
    t->greeting_steps = 0; /* who found them used up is on this list */
    for (uint32_t i = 0; i < count; i++) {
        struct client *c = t->unread[i];
        c->flags &= ~(uint32_t)CLIENT_ON_UNREAD_LIST;
        if (!(c->flags & CLIENT_CLOSE_ASAP)) {
            input_receive(t, c); /* may put it behind the others again */
        }
    }
    t->unread_count -= count;
    memmove(t->unread, t->unread + count, t->unread_count * sizeof(struct client *));
}

void input_forget(struct server_thread *t, struct client *c)
{
    if (c->flags & CLIENT_ON_UNREAD_LIST) {
        uint32_t i = 0;
        while (t->unread[i] != c) {
            i++;
            assert(i < t->unread_count);
        }
        t->unread[i] = t->unread[--t->unread_count];
        c->flags &= ~(uint32_t)CLIENT_ON_UNREAD_LIST;
    }
}
