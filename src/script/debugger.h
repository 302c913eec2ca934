/* The script debugger: SCRIPT DEBUG, and the session that an EVAL of such a connection is then.
 *
 *   SCRIPT DEBUG YES|SYNC ... EVAL --begin--> STOPPED at a line --step, continue--> RUNS
 *                                                ^                                   |  |
 *                                                `-- a line, breakpoint, time-out ---'  |
 *                                                     reply, connection closed <-- end -'
 *
 * In a session the client sends arrays of words (debugger_input.h), one request at a time, and gets
 * an array of status lines for each; so at each stop, and at the end, where the last line is
 * "<endsession>" and the script's reply follows. The words are those of Redis's debugger
 * (debugger_words.c).
 *
 * YES: the session is that of a forked child (engine/fork_child.h, CHILD_DEBUGGER), which holds the
 * keyspace lock of its own copy of the data set for good, so that nothing that the script does
 * stays. The parent lets go of the connection and serves on; it only knows the children's pids,
 * ends them when it ends, and has DEBUGGER_SESSIONS_MAX at most. SYNC: the client's server thread
 * itself waits for the words, holding the keyspace lock in exclusive mode as every script does; to
 * the others it is a script that takes long (engine/busy.h): they get BUSY after
 * busy-reply-threshold, and SCRIPT KILL ends it. What it has changed stays.
 *
 * A client that leaves: the child ends; in SYNC the script goes on to its end without stops, as in
 * Redis, since half of what it writes would be worse; so it does when the server is asked to end.
 *
 * An EVAL in a transaction, or amid a pipeline, is refused while the connection debugs: Redis mixes
 * up the replies. Functions are not debugged. RESET leaves the mode, as Redis's does.
 *
 * What a session holds is bounded: a request (debugger_input.h), lines that wait to be sent and
 * each of them (debugger_priv.h), breakpoints. A peer that takes no bytes for DEBUGGER_SEND_MS has
 * left.
 *
 * State: a session is of the thread that runs its script, under the keyspace lock; pids are atomic.
 */
#ifndef SCRIPT_DEBUGGER_H
#define SCRIPT_DEBUGGER_H

#include "engine/call.h"

#include <lua.h>

#define DEBUGGER_SESSIONS_MAX 32

struct debugger;

/* SCRIPT DEBUG: what the caller's next EVALs are. Replies. */
void debugger_switch(struct call *c);
/* An EVAL of a session that debugs begins. NULL: there is no session here: an error is replied, or
 * a child has it. */
struct debugger *debugger_begin(struct call *c) MUST_CHECK REQUIRES(keyspace_lock);
/* The call has replied: tells the client so, and ends the session; a child ends by this. */
void debugger_end(struct debugger *d_take);

/* ---- for run.c and api.c: while the session's script runs ---- */

/* Sets the hook of the session's interpreter in place of run.c's; it polls as that one does. */
void debugger_attach(struct debugger *d, lua_State *L);
/* A command of the script is about to run, and what it replied (ended). */
void debugger_note_command(struct debugger *d, const struct call *n);
void debugger_note_reply(struct debugger *d, const struct reply *reply);
/* An error that the script is given, without the code ERR. */
void debugger_note_error(struct debugger *d, struct slice text);
/* The same of one that is a reply, of a command or of the script's making; without its sign. */
void debugger_note_error_reply(struct debugger *d, struct slice text);
/* redis.breakpoint(): the next line stops. */
void debugger_stop_soon(struct debugger *d);
/* redis.debug(...): all values on the stack become one line. */
void debugger_tell_values(struct debugger *d, lua_State *L);

/* Boot, and its reverse, which ends what children there are. */
void debugger_setup(void);
void debugger_teardown(void);

#endif
