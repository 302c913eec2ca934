/* The script that runs, as the others see it: what it is, how to end it, and that it takes long.
 *
 * From the moment when it has run for longer than busy-reply-threshold until its end the gate
 * (gate.h) refuses what others ask, and waits for the keyspace lock are given up
 * (keyspace_try_exclusive). The thread that runs it serves its own clients meanwhile, out of the
 * script's hook (busy_serve).
 *
 *   IDLE --begin--> RUNNING --threshold--> BUSY --end--> IDLE
 *                      \----- end, killed ------------->/
 *
 * What may run beside it and needs the keyspace all the same (WATCH) visits it: the thread that
 * runs the script does it between two of the script's instructions (busy_run_within).
 *
 * State: behind a leaf lock; flags that the hook asks for are atomic. */
#ifndef ENGINE_BUSY_H
#define ENGINE_BUSY_H

#include "base/option.h"
#include "engine/call.h"

enum busy_kind { BUSY_SCRIPT, BUSY_FUNCTION, BUSY_MODULE };

/* ---- for who runs scripts, under the keyspace lock in exclusive mode ---- */

/* A script begins and ends, or a module's command that is ready to be interrupted; name and the
 * call's arguments are borrowed until the end. What begins within another one is a part of it. */
void busy_begin(enum busy_kind kind, struct slice name, const struct call *c);
void busy_end(void);
/* Whether one has begun; whether one of those that have is a script. Exclusive mode. */
bool busy_has_begun(void);
bool busy_has_script(void);
/* Whether it may be a function's, which is a part of the data set. */
bool busy_has_function(void);
/* It is about to write for the first time: from now on nobody may end it. False when somebody has
 * already. */
bool busy_note_write(void) MUST_CHECK;
/* True when it has to end at once, however it defends itself. Cheap. */
bool busy_is_killed(void);
/* Looks at the clock, and serves the thread's clients when the script takes long. To be called
 * every millisecond or so. */
void busy_poll(void);
/* busy-reply-threshold in milliseconds; 0: there is none. */
int64_t busy_threshold_ms(void);
/* In a forked child that runs a script: nobody is kept waiting by it, however long it takes. */
void busy_be_alone(void);
/* True when it was ended because the server ends: what it has done is not told to logs. */
bool busy_is_at_end(void);

/* ---- for others ---- */

/* SCRIPT KILL and FUNCTION KILL: replies. */
void busy_kill(struct call *c, enum busy_kind kind);
/* Runs it under the keyspace lock in exclusive mode: that of the caller, or of a script that takes
 * long, whose thread calls it while the caller sleeps; so it must not look at what is the thread's
 * own. The caller holds nothing, unless its own script is the one that takes long: then it holds
 * the lock already. Not at all beside a script that was ended for the server's end: nothing is
 * served then any more. */
void busy_run_within(void (*run)(void *argument), void *argument);
/* SHUTDOWN NOSAVE beside a script that takes long: it ends, whatever it has done, and nothing is
 * served any more. False when there is no such script. */
bool busy_end_for_shutdown(void);
/* FUNCTION STATS' first part: the function that runs, or null. */
void busy_reply_running(struct reply *reply);

/* Boot: what serves the clients of the calling thread while its script runs; it neither waits nor
 * takes the keyspace lock. */
void busy_set_server(void (*serve)(void));

/* busy-reply-threshold (lua-time-limit). */
extern const struct option busy_options[];

#endif
