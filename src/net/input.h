/* A client's input: one recv an event, into the thread's buffer where the client has nothing
 * unparsed, else behind what it has, or straight into a large bulk's blob. State: thread-owned. */
#ifndef NET_INPUT_H
#define NET_INPUT_H

#include "net/server_thread.h"

#include <assert.h>

/* Does one recv for a client whose socket has become readable; puts it on the ready list when there
 * is something to parse. When the socket may hold more (the recv got all it asked for, or there was
 * no room for one), the client goes on the thread's list of unread ones, since no event will come
 * for what is there already. At the end of the stream the client is closed, once it has all replies
 * to what it had sent before. */
void input_receive(struct server_thread *t, struct client *c);
/* Puts the client on that list. So does the turn with one that was sent nothing in answer to what
 * was read: a reset that came together with the bytes shows at the next call for the socket only,
 * whether a recv or a send; and with one whose stream has ended, to close it when it has its
 * replies. */
void input_receive_later(struct server_thread *t, struct client *c);
/* Once a turn: one more recv for each client on that list. */
void input_receive_unread(struct server_thread *t);
/* Takes the client off that list. */
void input_forget(struct server_thread *t, struct client *c);
/* The unparsed bytes. */
static inline struct slice input_bytes(const struct client *c)
{
    if (unlikely(c->pending.len > c->pending_pos)) {
        return slice_of(c->pending.data + c->pending_pos, c->pending.len - c->pending_pos);
    }
    return c->fresh;
}
/* Marks the first `count` of them parsed; returns how many are left. */
static inline size_t input_consume(struct client *c, size_t count)
{
    assert(count <= input_bytes(c).len);
    if (unlikely(c->pending.len > c->pending_pos)) {
        c->pending_pos += count;
        return input_bytes(c).len;
    }
    c->fresh.ptr += count;
    c->fresh.len -= count;
    return c->fresh.len;
}
/* Keeps what is unparsed beyond this turn. */
void input_keep_rest(struct client *c);
/* Closes a client whose requests that have not been run (unparsed, half parsed, or queued by MULTI)
 * have become too many bytes; returns whether it may stay. */
bool input_check_limit(struct client *c);
/* The parser reads a bulk by itself: keeps the request's parsed bytes, drops the rest. */
void input_keep_for_big(struct client *c);

#endif
