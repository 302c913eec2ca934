/* The things keydb-cli does besides running commands: --eval, --scan, --stat, --latency,
 * --latency-history, --pipe. One file each.
 *
 * State: the session's. Each returns the program's exit status; those that never end by themselves
 * return when the connection fails. Failures are reported on standard error. */
#ifndef TOOLS_CLI_MODES_H
#define TOOLS_CLI_MODES_H

#include "tools/cli/session.h"

/* Replaces the words on the command line by EVAL with the script in the file of --eval, and the
 * words before and after a lone comma as its keys and arguments. False: the file cannot be read. */
bool mode_eval_prepare(const struct options *o, struct words *command);

/* Prints the keys that SCAN finds. */
int mode_scan(struct session *s);

/* Prints a row of figures out of INFO every second, or every -i seconds. */
int mode_stat(struct session *s);

/* Measures how long PING takes. */
int mode_latency(struct session *s);

/* Sends standard input as it is, and counts the replies. */
int mode_pipe(struct session *s);

#endif
