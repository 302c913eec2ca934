/* Ways in which the server as a whole sheds clients: under too much load
 * (overload-protect-percent), and before a soft end (engine/shutdown.h). State: world; what the
 * cron remembers is its thread's. */
#ifndef NET_OVERLOAD_H
#define NET_OVERLOAD_H

#include "base/option.h"

#include <stdint.h>

/* Cron, once a second: looks every ten seconds (while the cron is eager each time) how much CPU
 * time the process has taken; above overload-protect-percent of a core for each server thread some
 * ordinary clients are closed. */
void overload_cron(int64_t wall_ms);
/* Cron: ends the server when it was asked to softly and nobody but replicas is connected any more.
 */
void overload_end_softly(int64_t wall_ms);

extern const struct option overload_options[];

#endif
