/* CLIENT PAUSE: requests wait until a time. State: one atomic word, written under the GIL or by the
 * cron; clients that wait are their threads'. */
#ifndef NET_PAUSE_H
#define NET_PAUSE_H

#include "net/server_thread.h"

/* True when the call has to wait now. A refused call does not: its error is replied at once. */
bool pause_applies(const struct call *c, int64_t now_ms);
/* World: pauses all commands, or writes only, until `until_ms` (wall clock); a pause that is
 * stronger or longer stays. */
void pause_start(bool all_commands, int64_t until_ms) REQUIRES(gil);
/* World: ends it and lets waiting clients go on. */
void pause_end(void) REQUIRES(gil);
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
