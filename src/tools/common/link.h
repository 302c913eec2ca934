/* A connection to a server, used one command at a time or as a pipeline.
 *
 * Owns: the socket and the reader behind it. State: one thread's. Blocking: every call waits in
 * poll(), so that a signal or a time-out ends the wait.
 * Failure: calls return an enum link_status; after anything but LINK_OK, LINK_TIMEOUT and
 * LINK_INTERRUPTED the connection is of no further use and is to be closed. link_error() gives
 * the reason as text for the user. */
#ifndef TOOLS_COMMON_LINK_H
#define TOOLS_COMMON_LINK_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

#include "tools/common/reply.h"
#include "tools/common/secure.h"
#include "tools/common/words.h"

struct link;

enum link_status {
    LINK_OK,
    LINK_TIMEOUT,     /* nothing came in time; waiting again is fine */
    LINK_INTERRUPTED, /* the flag given to link_set_interrupt() was raised */
    LINK_CLOSED,      /* the server closed the connection */
    LINK_IO,          /* a system call failed */
    LINK_PROTOCOL,    /* the server sent something that is not RESP */
};

/* Room for the reason why a connection could not be made. */
#define LINK_ERROR_BYTES 256

/* Connects over TCP to a host name or address (port 1-65535) or to a Unix socket. Returns NULL and
 * fills error[0, LINK_ERROR_BYTES) when it cannot. timeout_ms 0 waits as long as the system does.
 * TCP connections get keep-alive probes after keepalive_s seconds, 0 for none. */
struct link *link_connect_tcp(const char *host, int port, int timeout_ms, int keepalive_s,
                              char *error);
struct link *link_connect_unix(const char *path, int timeout_ms, char *error);

/* Has everything from now on go through TLS: the handshake is waited for. False with error[0,
 * LINK_ERROR_BYTES) filled: the link is of no further use. The context must outlive it. */
bool link_secure(struct link *l, struct secure_context *context, char *error);

/* Closes and frees, and nulls the pointer. A NULL link is fine. */
void link_destroy(struct link **l);

/* From now on waits end with LINK_INTERRUPTED once *flag is not 0. A signal handler sets it (one
 * installed without SA_RESTART); whoever starts the next wait clears it. NULL: never. */
void link_set_interrupt(struct link *l, const volatile sig_atomic_t *flag);

/* Sends a command made of `count` arguments (>= 1), any bytes. Returns when all of it is with the
 * kernel. */
enum link_status link_send(struct link *l, const struct word *args, size_t count);

/* Sends bytes as they are. Answers that come meanwhile are taken in, to be read later. */
enum link_status link_send_bytes(struct link *l, const void *data, size_t len);

/* Reads the next reply, pushes included. timeout_ms -1 waits forever, 0 takes only what is there.
 * On LINK_OK the caller owns *out (reply_destroy()); else *out is NULL. */
enum link_status link_read(struct link *l, int timeout_ms, struct reply **out);

/* For what is no reply: waits as link_read() does and receives some bytes more; what has been
 * received and belongs to no reply that was read, *len bytes, valid until the next call; and using
 * `count` of them up. */
enum link_status link_more(struct link *l, int timeout_ms);
const char *link_peek(const struct link *l, size_t *len);
void link_skip(struct link *l, size_t count);

/* As recv and send on the socket, without waiting (-1 with EAGAIN); for callers that poll
 * link_socket() themselves. Where link_pending() says so there is more to receive than the socket
 * tells of. */
ssize_t link_receive_some(struct link *l, void *bytes, size_t room);
ssize_t link_send_some(struct link *l, const void *bytes, size_t len);
bool link_pending(const struct link *l);

/* The reason for the last status that was not LINK_OK. */
const char *link_error(const struct link *l);

/* The socket, for poll(). It stays the link's. */
int link_socket(const struct link *l);

#endif
