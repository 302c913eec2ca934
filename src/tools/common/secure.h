/* TLS for the tools' connections: plaintext above, a connected socket below.
 *
 * As redis-cli does, it checks who has signed the server's certificate, not which host it names.
 * State: a context is immutable and may serve several threads; a connection is one thread's.
 * SIGPIPE has to be ignored. */
#ifndef TOOLS_COMMON_SECURE_H
#define TOOLS_COMMON_SECURE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* What the command line asks for; NULL where it does not say. */
struct secure_wish {
    bool wanted;
    bool insecure; /* any certificate will do */
    const char *sni, *ca_file, *ca_dir, *cert_file, *key_file, *ciphers, *ciphersuites;
};

struct secure_context;
struct secure;

/* Room for the reason of a failure. */
#define SECURE_ERROR_BYTES 256

/* If `option` (as on the command line) is one of TLS: notes its value, which must outlive the wish,
 * and returns true. */
bool secure_wish_take(struct secure_wish *wish, const char *option, const char *value);

/* What connections are made with; NULL with error[0, SECURE_ERROR_BYTES) filled when files or names
 * are no good. The wish may go afterwards. */
struct secure_context *secure_context_create(const struct secure_wish *wish, char *error);
/* Frees it and nulls the pointer; NULL is fine. */
void secure_context_destroy(struct secure_context **context);

/* Begins TLS on a connected socket, which becomes non-blocking and stays the caller's. NULL without
 * memory. */
struct secure *secure_create(struct secure_context *context, int fd);
/* Says goodbye, frees, and nulls the pointer; NULL is fine. */
void secure_destroy(struct secure **s);

enum secure_greeting { SECURE_DONE, SECURE_READS, SECURE_WRITES, SECURE_FAILED };
/* The next step of the handshake: done, waits for the socket to be readable or writable, or failed
 * with `error` filled. */
enum secure_greeting secure_greet(struct secure *s, char *error);

/* As recv and send on a non-blocking socket: bytes, 0 at the end of the stream, or -1 with errno
 * (EPROTO: the peer breaks the rules). A send that failed with EAGAIN is repeated with the same
 * bytes, or more behind them. */
ssize_t secure_recv(struct secure *s, void *bytes, size_t room);
ssize_t secure_send(struct secure *s, const void *bytes, size_t len);
/* Whether there is something to receive that the socket does not tell of. */
bool secure_pending(const struct secure *s);

#endif
