/* Pauses: requests wait until a time. There are reasons to pause that know nothing of each other;
 * what holds is the strongest and the longest of them. State: one atomic word, written under the
 * GIL or by the cron; each reason's wish is world; clients that wait are their threads'. */
#ifndef NET_PAUSE_H
#define NET_PAUSE_H

#include "net/server_thread.h"

/* True when the call has to wait now. A refused call does not: its error is replied at once. */
bool pause_applies(const struct call *c, int64_t now_ms);
enum pause_reason { PAUSE_COMMAND, PAUSE_SHUTDOWN, PAUSE_FAILOVER, PAUSE_REASONS };
/* Until somebody ends it. */
#define PAUSE_NO_END_MS INT64_MAX
/* World: pauses all commands, or writes only, until `until_ms` (wall clock); a pause of this reason
 * that is stronger or longer stays. */
void pause_start(enum pause_reason reason, bool all_commands, int64_t until_ms) REQUIRES(gil);
/* World: ends that reason's pause; waiting clients go on if there is no other one. */
void pause_end(enum pause_reason reason) REQUIRES(gil);
/* Cron: lets clients go on when the time has come. */
void pause_cron(int64_t wall_ms);
/* For INFO: paused reason/actions; until when (0: not paused). */
int64_t pause_until_ms(bool *all_commands);
/* Makes the client wait with this request (deep copy). Its thread. */
void pause_hold(struct client *c, const struct request *request);
/* The client will not wait any more: it goes on, or is closed. Harmless when it does not wait. Its
 * thread. */
void pause_forget(struct client *c);
/* Number of clients that wait. */
uint64_t pause_waiting(void);

#endif
