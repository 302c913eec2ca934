/* Clients as access control sees them: a table of callbacks for engine/acl.h. */
#ifndef NET_CLIENT_ACL_H
#define NET_CLIENT_ACL_H

/* Boot. */
void client_acl_setup(void);

#endif
