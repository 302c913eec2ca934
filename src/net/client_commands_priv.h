/* CLIENT's subcommands that have files of their own, and what those share: the text of one client,
 * and the kinds of clients that LIST and KILL select. For the client_*.c files only. */
#ifndef NET_CLIENT_COMMANDS_PRIV_H
#define NET_CLIENT_COMMANDS_PRIV_H

#include "net/client.h"

/* Kinds of clients. The link to our primary is no client, but has that kind (upstream.h). */
enum client_kind {
    CLIENT_KIND_NORMAL,
    CLIENT_KIND_REPLICA,
    CLIENT_KIND_PRIMARY,
    CLIENT_KIND_PUBSUB,
};

/* The kind that argument `i` names; false with the error replied. */
bool client_kind_parse(struct call *c, int i, enum client_kind *kind) MUST_CHECK;
/* The kind of a client. */
enum client_kind client_kind_of(const struct client *c);

/* The local address of the client's connection ("ip:port", "[ip]:port", "path:0"; "?:0" when the
 * system does not tell), which never changes: the system is asked once. The client's. Owner's
 * thread, or world. */
const char *client_local_addr(struct client *c);
/* Appends the client's line of CLIENT LIST with its line feed. `running` is the command that it is
 * just running, or NULL; now_s monotonic. Owner's thread, or world. */
void client_append_line(struct buf *out, struct client *c, const struct command *running,
                        uint64_t now_s);

/* CLIENT INFO. Own session. */
void client_info_command(struct call *c);
/* CLIENT LIST. World. */
void client_list_command(struct call *c) REQUIRES(gil);
/* CLIENT TRACKING (world), CACHING, GETREDIR, TRACKINGINFO. */
void client_tracking_command(struct call *c) REQUIRES(gil);
void client_caching_command(struct call *c);
void client_getredir_command(struct call *c);
void client_trackinginfo_command(struct call *c);
/* CLIENT KILL. World. */
void client_kill_command(struct call *c) REQUIRES(gil);

#endif
