/* Requests that a client has sent and that wait to be looked at, or looked at again: before what
 * its input holds, the first one first. The one that a pause has come upon (pause.h); those that
 * were parsed for a batch and did not run in it after all. State: thread-owned. */
#ifndef NET_HELD_H
#define NET_HELD_H

#include "net/client.h"

/* A deep copy of a request. */
struct held_request {
    struct request request;
    struct held_request *next;
    uint64_t order; /* pause.c's */
    char bytes[];
};

/* Has a copy of the request looked at before all others of the client. */
void held_put_first(struct client *c, const struct request *request);
/* Takes the first one; the client has some. The caller releases the request (parser_release), and
 * frees the block, with mem_free, when nothing points into it any more. */
struct held_request *held_take(struct client *c) MUST_CHECK;
/* Frees all of them. */
void held_forget(struct client *c);
/* Bytes of their blocks, and of their arguments. */
size_t held_memory_bytes(const struct client *c);
size_t held_argument_bytes(const struct client *c);

#endif
