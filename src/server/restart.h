/* The process begins anew with the arguments it was started with, under the same pid: DEBUG RESTART
 * after an orderly end, DEBUG CRASH-AND-RECOVER from the middle of everything. execve ends all
 * threads and closes all descriptors but the first three; what it would hand on (signal mask and
 * dispositions, working directory, cores, oom_score_adj) is put back to what the process began
 * with. The delay is slept by the new program, first thing, when nothing of the old one is there
 * any more. State: noted at the start, then immutable; the wish is the main thread's once it is
 * granted. */
#ifndef SERVER_RESTART_H
#define SERVER_RESTART_H

#include <stdbool.h>
#include <stdint.h>

/* First thing in main. Sleeps, and ends what children are left, when this is a restart. */
void restart_setup(int argc, char **argv);
/* True in a process that was restarted: it is in the background already. */
bool restart_was(void);
/* False with *error (a reply's) where the same arguments would not give the same server. */
bool restart_is_possible(const char **error);
/* Begins anew. Returns only when that failed, logged. Any thread. */
void restart_now(int64_t delay_ms);
/* For an orderly end: what is to come after it, and whether there is something. */
void restart_wish(int64_t delay_ms);
void restart_if_wished(void);
void restart_teardown(void);

#endif
