/* One connection's TLS: plaintext above, a non-blocking socket below, no call waits. What the
 * socket does not take of a finished record is kept here and goes first (tls_flush). State: of the
 * connection's thread; it moves with the client.
 *
 *   GREETING --tls_greet: TLS_DONE--> OPEN --any: TLS_ENDED--> BROKEN
 *
 * Failures are a status: TLS_ENDED means that the connection is over, by either side or by a fault
 * of the peer, and is to be closed. */
#ifndef NET_TLS_H
#define NET_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

struct buf;
struct tls;

enum tls_status {
    TLS_DONE,  /* nothing is left to do; for input: until the socket is readable again */
    TLS_WAITS, /* the socket has to become readable or, with tls_unsent(), writable first */
    TLS_MORE,  /* there is, or may be, more: no event will tell */
    TLS_ENDED,
};

/* Seconds that a peer has for the handshake. */
#define TLS_GREETING_MAX_S 10
/* Longest text of tls_greet(). */
#define TLS_WHY_MAX 256

/* Begins the accepting side on a connected, non-blocking socket that stays the caller's; NULL when
 * no context is in force or memory is short. World or main thread. */
struct tls *tls_create(int fd);
/* Begins the opening side, of a link to another server, whose certificate must be of an authority
 * that we trust. tls_attach gives it its connected socket before anything else. World state is
 * read: the GIL is held in some mode. */
struct tls *tls_create_link(void);
void tls_attach(struct tls *tls, int fd);
/* Says goodbye to the peer, as far as that needs no waiting, and frees it. NULL is fine. */
void tls_destroy(struct tls **tls);

/* The connection goes on in another process, which has a copy of all of this: nothing is said to
 * the peer any more. */
void tls_leave(struct tls *tls);

/* The next step of the handshake: TLS_DONE, TLS_WAITS or TLS_ENDED, then with a text in
 * `why`[TLS_WHY_MAX]. The peer's name has to be in tls-allowlist. */
enum tls_status tls_greet(struct tls *tls, char *why);
/* Connections of all threads that have not been greeted yet. Any thread. */
uint32_t tls_greeting_count(void);

/* Takes up to `room` bytes of plaintext; how many is returned, and *status says how it ended:
 * TLS_DONE, TLS_MORE (the room is full), TLS_WAITS (output has to go first) or TLS_ENDED. */
size_t tls_receive(struct tls *tls, char *bytes, size_t room, enum tls_status *status);
/* Sends as writev does, and like it takes a part, or nothing (-1 with EAGAIN) when the socket is
 * full; any other errno: the connection is over. One call takes a bounded number of bytes: with
 * less than all taken and nothing unsent, tls_unsent() false, the socket may still have room. */
ssize_t tls_send(struct tls *tls, const struct iovec *vectors, int count);
/* Sends what is kept: TLS_DONE when nothing is left, TLS_WAITS or TLS_ENDED. */
enum tls_status tls_flush(struct tls *tls);
/* Whether something is kept for the socket. */
bool tls_unsent(const struct tls *tls);
/* Whether nothing is kept in either direction: it may change threads. */
bool tls_is_quiet(const struct tls *tls);
/* Bytes of memory that it holds beside the library's own. */
size_t tls_memory_bytes(const struct tls *tls);
/* The peer's certificate, borrowed; NULL when it has shown none. */
struct x509_st; /* OpenSSL's X509 */
const struct x509_st *tls_certificate(const struct tls *tls);
/* Appends it as PEM; false when the peer has shown none. */
bool tls_append_certificate(const struct tls *tls, struct buf *out);
/* Frees what all connections share. Boot's reverse. */
void tls_teardown(void);

#endif
