/* Following a primary: the thread that connects to it, fetches its data set, and applies its
 * stream.
 *
 *   NOBODY --follow_set--> CONNECT --socket--> HANDSHAKE --PSYNC--> SYNC --loaded--> CONNECTED
 *                             ^                    `--+CONTINUE-------------------->   |
 *                             `----------- the link breaks, a second later ------------'
 *
 * Whom we follow changes while the world stands; the thread looks before it applies anything, so
 * that nothing of a former primary is applied after that. State: whom is world; the thread's own
 * otherwise; what INFO shows is atomic. */
#ifndef REPL_FOLLOW_H
#define REPL_FOLLOW_H

#include "base/buf.h"
#include "base/option.h"
#include "engine/gil.h"

#include <stdbool.h>
#include <stdint.h>

/* Boot. */
void follow_setup(void);
/* Boot's end, and its reverse: follows whom the configuration names. */
void follow_start(void);
void follow_stop(void);
/* From now on we follow that server, or nobody (host NULL). False: we did so already. */
bool follow_set(struct slice host, int port) REQUIRES(gil);
bool follow_nobody(void) REQUIRES(gil);
/* A server that was an active replica, which has a list of its own, and is none any more: what the
 * configuration named is not followed. */
void follow_forget(void) REQUIRES(gil);

/* Whether the configuration names a primary, or REPLICAOF did. The GIL is held. */
bool follow_is_wanted(void);
/* Whether we follow somebody; whether the link stands and the data are the primary's. Any thread.
 */
bool follow_is_replica(void);
bool follow_is_connected(void);
/* Our own replicas are to ask again: the history is another one now. */
void follow_dismiss_replicas(void);
/* INFO replication's lines about it, the role first. No lock. */
void follow_write_info(struct buf *out);
/* For ROLE: whom, and a word for how the link does. World. */
const char *follow_host(void) REQUIRES(gil);
int follow_port(void) REQUIRES(gil);
const char *follow_state_word(void);

/* Settings: world, but for what changes only at boot. */
struct follow_settings {
    char *host; /* NULL: nobody; world */
    int64_t port;
    char *user, *password;
    bool read_only, serve_stale, announced, lazy_flush;
    int64_t quorum; /* replica-quorum: that many primaries must be there, -1: all */
    int diskless_load;
    int64_t priority;
    char *announce_ip;
    int64_t announce_port;
};
extern struct follow_settings follow_settings;
/* replicaof, masterauth, replica-read-only and so on. */
extern const struct option follow_options[];

#endif
