/* Ending the server: who wants it says so here; the main thread does it in order.
 *
 *   asked --shutdown_wait_begin: replicas lack something--> WAITING --they have it, or time is up:
 *     |                                                      |    shutdown_request(SHUTDOWN_WAITED)
 *     |                                        shutdown_wait_end (ABORT; saving failed)      |
 *     `-----------> the end <----------------------------------------------------------------'
 *
 * State: atomic; the waiter and the last things are set at boot. */
#ifndef ENGINE_SHUTDOWN_H
#define ENGINE_SHUTDOWN_H

#include "base/option.h"
#include "engine/gil.h"

#include <stdbool.h>
#include <stdint.h>

enum shutdown_flag {
    SHUTDOWN_SAVE = 1 << 0,
    SHUTDOWN_NOSAVE = 1 << 1,
    SHUTDOWN_NOW = 1 << 2,
    SHUTDOWN_FORCE = 1 << 3,
    SHUTDOWN_READY = 1 << 4,  /* what must be saved before was (snapshot.h) */
    SHUTDOWN_WAITED = 1 << 5, /* replicas were waited for */
    SHUTDOWN_AGAIN = 1 << 6,  /* the program is run anew then */
};

/* Asks the main thread to end the server. Any thread, also a signal handler. */
void shutdown_request(unsigned flags);
/* Softly: the server goes on for those who are connected, takes nobody new, fails PING so that load
 * balancers look elsewhere, and ends with these flags when the last client has gone (net/ sees to
 * that). Any thread. */
void shutdown_request_soft(unsigned flags);
/* True since then, with the flags. */
bool shutdown_is_soft(unsigned *flags);
/* Calls it off; false when there is nothing to call off. */
bool shutdown_withdraw_soft(void);
/* Takes the request, soft ones too, which is off then; its flags. False when there is none. Main
 * thread. */
bool shutdown_take(unsigned *flags);
/* True once somebody asked; the flags he gave. */
bool shutdown_requested(unsigned *flags);
/* Ends the process here and now, for who cannot be ended otherwise: a module's command that takes
 * long, beside which somebody has said NOSAVE. What the logs were told is in the file; nothing else
 * of an orderly end is done. With the keyspace lock in exclusive mode. */
_Noreturn void shutdown_at_once(void);
/* Boot: who does what is to be done then. */
void shutdown_set_at_once(void (*last_things)(void));
/* Readable when somebody asked: for the main thread's wait. */
int shutdown_event_fd(void);
/* Boot. */
void shutdown_setup(void);

/* Who waits for replicas: replication. */
struct shutdown_waiter {
    bool (*begin)(unsigned flags);
    bool (*end)(void);
    int64_t (*left_ms)(void);
};
void shutdown_set_waiter(const struct shutdown_waiter *waiter);
/* The end was asked for. True: it has to wait; the request comes again by itself, with
 * SHUTDOWN_WAITED. Writes wait from now on in either case. */
bool shutdown_wait_begin(unsigned flags) REQUIRES(gil);
/* There will be no end after all. False: there was nobody waiting for it. */
bool shutdown_wait_end(void) REQUIRES(gil);
/* The event (block.h) that the waiter raises then. */
#define SHUTDOWN_CALLED_OFF ((struct slice){"\0shutdown:called-off", 20})
/* Milliseconds that are left of the wait at most, -1 without one. Any thread. */
int64_t shutdown_wait_left_ms(void);

/* shutdown-timeout: seconds that the end may wait for replicas to have everything. World state, as
 * all options are. */
extern int64_t shutdown_timeout_s;
/* soft-shutdown: signals ask softly. Atomic: a signal is heard while others have the world. */
bool shutdown_signals_softly(void);
extern const struct option shutdown_options[];

#endif
