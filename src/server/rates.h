/* What happened per second lately: a cron job looks at the counters ten times a second and keeps
 * the last sixteen looks. State: the looks belong to the cron's thread, the rates are atomic. */
#ifndef SERVER_RATES_H
#define SERVER_RATES_H

#include "engine/cron.h"

#include <stdint.h>

enum rate {
    RATE_COMMANDS,
    RATE_INPUT_BYTES,
    RATE_OUTPUT_BYTES,
    RATE_REPL_INPUT_BYTES,
    RATE_REPL_OUTPUT_BYTES,
    RATE_TURNS,
    RATE_AWAKE_US,     /* CPU time of the process */
    RATE_LOCK_WAIT_NS, /* nanoseconds waited in a second by all threads: 1e9 is one thread waiting
                          all the time */
    RATE_COUNT
};

extern const struct cron_job rates_job;

/* Events per second over the last 1.6 s. Any thread. */
double rates_get(enum rate which);
/* Microseconds of CPU time that the process has used. Any thread. */
uint64_t rates_awake_us(void);
/* Microseconds of CPU time that the main thread had used when it last looked at the rates. Any
 * thread. */
uint64_t rates_main_thread_user_us(void);
uint64_t rates_main_thread_sys_us(void);
/* Nanoseconds that threads have waited for the keyspace lock since they started. Any thread. */
uint64_t rates_lock_wait_ns(void);

#endif
