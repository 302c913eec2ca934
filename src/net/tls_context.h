/* What new TLS connections are made with: certificates, keys, ciphers, as the settings say when a
 * context is built. A context in force is never changed: new settings make a new one, and
 * connections keep the one that they were made with. State: world. Failures are told in the log. */
#ifndef NET_TLS_CONTEXT_H
#define NET_TLS_CONTEXT_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stdint.h>

struct ssl_ctx_st; /* OpenSSL's SSL_CTX */

/* Builds what connections are to be made with from now on, from the settings and the files that
 * they name, beside what is in force; tls_context_settle() decides. False when something of it is
 * wrong. With tls-port 0 and without tls-replication nothing is built, and nothing is checked,
 * before that changes. World; or the main thread with the GIL held in shared mode, which keeps the
 * world's callers out. */
bool tls_context_renew(void) MUST_CHECK;
/* The same, but only where nothing has been built that fits the settings. */
bool tls_context_prepare(void) MUST_CHECK;
/* Puts what was built since the last call into force (world only), or drops it; nothing built: does
 * nothing. */
void tls_context_settle(bool accepted);
/* Frees all. Connections may outlive it. */
void tls_context_teardown(void);

/* What the files that the settings name look like from outside (inode, size, times), as a number;
 * another one when one of them has been changed or replaced. Reads no content. */
uint64_t tls_context_look_at_files(void);
/* That number as it was when what is in force was built. */
uint64_t tls_context_files(void);

/* For connections that we accept; NULL before the first settling. */
struct ssl_ctx_st *tls_context_server(void);
/* For links that we open: tls-client-cert-file, or the server's certificate without it. */
struct ssl_ctx_st *tls_context_client(void);

#endif
