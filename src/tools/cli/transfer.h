/* Asking a server for its data set as a replica does: REPLCONF, SYNC, and receiving it.
 *
 * State: the session's connection, which is a replication link from transfer_begin() on. Failures
 * are told on standard error, as is each request. */
#ifndef TOOLS_CLI_TRANSFER_H
#define TOOLS_CLI_TRANSFER_H

#include "tools/cli/payload.h"
#include "tools/cli/session.h"

/* REPLCONF with an option. Whether the server has taken it; a refusal is told and leaves the
 * connection usable (s->link), else it is gone. */
bool transfer_configure(struct session *s, const char *option, const char *value);

/* Sends SYNC and waits for the line before the data set. True: payload_deinit() ends *out. */
bool transfer_begin(struct session *s, struct payload *out);

/* Receives the data set into `sink`. Behind it the connection holds what comes next. False: the
 * connection or the sink failed; neither is reported. */
bool transfer_receive(struct session *s, struct payload *p, payload_sink *sink, void *context);

#endif
