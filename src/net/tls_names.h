/* The names of a certificate against a list of patterns (tls-allowlist, tls-auditlog-blocklist).
 * State: none. */
#ifndef NET_TLS_NAMES_H
#define NET_TLS_NAMES_H

#include "base/buf.h"

#include <stdbool.h>

struct x509_st; /* OpenSSL's X509 */

/* Whether a common name or an alternative name (DNS, e-mail, URI, IP address) of the certificate
 * matches one of the glob patterns; DNS names and patterns in any case. A name that holds a NUL
 * byte matches nothing. */
bool tls_names_match(const struct x509_st *certificate, char *const *patterns, int count);
/* Appends the certificate's common name, or without one its first alternative name of those kinds
 * (no IP address); nothing when it has none. As it is: any bytes. */
void tls_names_append(const struct x509_st *certificate, struct buf *out);

#endif
