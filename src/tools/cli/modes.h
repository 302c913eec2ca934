/* The things keydb-cli does besides running commands. One file each.
 *
 * State: the session's. Each returns the program's exit status; those that never end by themselves
 * return when the connection fails. Failures are reported on standard error. */
#ifndef TOOLS_CLI_MODES_H
#define TOOLS_CLI_MODES_H

#include "tools/cli/session.h"

/* Replaces the words on the command line by EVAL with the script in the file of --eval, and the
 * words before and after a lone comma as its keys and arguments. False: the file cannot be read. */
bool mode_eval_prepare(const struct options *o, struct words *command);

/* The same script under the server's debugger (--ldb), as often as the user lets it begin anew. */
int mode_ldb(struct session *s);

/* Prints the keys that SCAN finds. */
int mode_scan(struct session *s);

/* Prints a row of figures out of INFO every second, or every -i seconds. */
int mode_stat(struct session *s);

/* Measures how long PING takes. */
int mode_latency(struct session *s);

/* The same, each period a row of coloured cells, one for each band of latency. */
int mode_latency_dist(struct session *s);

/* How long a busy process on this machine is kept from running. Asks no server. */
int mode_intrinsic_latency(struct session *s);

/* Fills a cache with keys of which few are asked for often, and tells how many it still has. */
int mode_lru_test(struct session *s);

/* Fetches the data set, or its functions only, into a file. */
int mode_rdb(struct session *s);

/* Prints the commands that the server sends to its replicas. */
int mode_replica(struct session *s);

/* Walks over all keys: which have the most elements (--bigkeys) or take the most memory
 * (--memkeys), of each type; which are read most; both sizes, and how they are distributed. Ctrl-C
 * ends the walk, not the report. */
int mode_bigkeys(struct session *s);
int mode_hotkeys(struct session *s);
int mode_keystats(struct session *s);

/* Sends standard input as it is, and counts the replies. */
int mode_pipe(struct session *s);

#endif
