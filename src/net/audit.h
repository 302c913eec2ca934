/* The audit log (tls-auditlog-blocklist): once the list has a name, every command of a client that
 * came by TLS is told in the server's log with its keys, unless a name of the client's certificate
 * is on the list. State: a flag of the client. Costs nothing of those who are not audited. */
#ifndef NET_AUDIT_H
#define NET_AUDIT_H

#include "net/client.h"

/* Decides whether the client is audited: sets or clears CLIENT_AUDITED. After its TLS handshake.
 * Owner's thread, or world. */
void audit_choose(struct client *c);
/* The same for all clients: the list has changed. World. */
void audit_choose_all(void);
/* Tells of requests of an audited client that are about to run, or to be refused: names of commands
 * and keys, never other arguments. Owner's thread, no lock of the keyspace: writes to the log. */
void audit_tell(const struct client *c, const struct call *calls, int count);

#endif
