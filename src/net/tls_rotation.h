/* tls-rotation: certificates, keys and authorities whose files change are read anew by themselves,
 * for the connections to come; those that exist stay as they are. State: of the main thread.
 * Failures are told in the log, once for each state of the files. */
#ifndef NET_TLS_ROTATION_H
#define NET_TLS_ROTATION_H

#include <stdint.h>

/* Milliseconds between two looks at the files. What is found changed is read when the next look
 * finds it as it was: who replaces certificate and key replaces one after the other. */
#define TLS_ROTATION_PERIOD_MS 1000

/* One look (engine/cron.h). Main thread, the GIL held in shared mode. */
void tls_rotation_cron(int64_t wall_ms);

#endif
