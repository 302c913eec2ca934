/* Ending the server: who wants it says so here; the main thread does it in order. State: atomic. */
#ifndef ENGINE_SHUTDOWN_H
#define ENGINE_SHUTDOWN_H

#include "base/option.h"

#include <stdbool.h>
#include <stdint.h>

enum shutdown_flag {
    SHUTDOWN_SAVE = 1 << 0,
    SHUTDOWN_NOSAVE = 1 << 1,
    SHUTDOWN_NOW = 1 << 2,
    SHUTDOWN_FORCE = 1 << 3,
    SHUTDOWN_READY = 1 << 4, /* what must be saved before was (snapshot.h) */
};

/* Asks the main thread to end the server. Any thread, also a signal handler. */
void shutdown_request(unsigned flags);
/* The request is off: the server goes on. Main thread. */
void shutdown_withdraw(void);
/* True once somebody asked; the flags he gave. */
bool shutdown_requested(unsigned *flags);
/* Readable when somebody asked: for the main thread's wait. */
int shutdown_event_fd(void);
/* Boot. */
void shutdown_setup(void);

/* shutdown-timeout: seconds that the end may wait for replicas to have everything. World state, as
 * all options are. */
extern int64_t shutdown_timeout_s;
extern const struct option shutdown_options[];

#endif
