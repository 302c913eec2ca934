/* Sockets: opening listening ones, preparing connected ones, and their addresses as text. State:
 * none. */
#ifndef NET_SOCKET_H
#define NET_SOCKET_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Longest text of an address: "path:0" or "[ipv6%scope]:port". */
#define SOCKET_ADDRESS_MAX 128

/* A non-blocking listening TCP socket on `address` ("*" any IPv4, "::*" any IPv6, or an IP); -1
 * with errno set. `mark` is set with SO_MARK unless 0. `beside_own`: sockets of this process that
 * listen on the same port, let in by socket_share_port(), do not stand in the way. */
int socket_listen_tcp(const char *address, int port, int backlog, uint32_t mark,
                      bool beside_own) MUST_CHECK;
/* Lets a further socket listen where `fd` does, as "127.0.0.1" beside "*" is for the system, or no
 * longer. */
void socket_share_port(int fd, bool shared);
/* The same on a Unix path, whose old file is removed; its permissions are `mode` from the first
 * moment (0: by umask). Boot only: changes the umask for a moment. */
int socket_listen_unix(const char *path, int mode, int backlog) MUST_CHECK;
/* The port a TCP socket is bound to. */
int socket_local_port(int fd);
/* Prepares an accepted TCP connection: no delay, keep-alive probes after `keepalive_s` (0: none),
 * mark (0: as it is). Or the socket that listens: connections that come later inherit it. */
void socket_prepare_tcp(int fd, int keepalive_s, uint32_t mark);
/* Accepts a connection, which does not block; -1 with errno set. Writes the peer's address (the
 * path of a Unix socket) as below, and whether it is on this machine. */
int socket_accept(int listening, char *peer, bool *local) MUST_CHECK;
/* Whether small pieces are sent at once, or joined for a moment. */
void socket_set_delay(int fd, bool delay);
/* Writes "ip:port" of the peer / of our end; true when the peer is a loopback address. `out` holds
 * SOCKET_ADDRESS_MAX. */
bool socket_peer(int fd, char *out);
bool socket_local(int fd, char *out);

#endif
