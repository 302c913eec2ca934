/* The end of the server waits for its replicas, and active peers that pull from it: writes wait,
 * the stream is quiet, and the end comes when all replicas have everything, or after
 * shutdown-timeout. So a restart finds them where the files end (identity.h), and who takes over
 * has every write that was confirmed.
 *
 *   NONE --begin: there are replicas--> WAITING --they have it, time is up, SHUTDOWN NOW--> LEAVING
 *    ^                                     |                                                 |
 *    `------------- end: ABORT ------------'------------------ end: saving failed -----------'
 *
 * State: world; the deadline is atomic. */
#ifndef REPL_DEPARTURE_H
#define REPL_DEPARTURE_H

#include "engine/gil.h"

/* Boot: who waits (engine/shutdown.h). */
void departure_setup(void);
/* The sync thread's: whether the wait is over. The GIL is held in shared mode. */
void departure_tick(void);

#endif
