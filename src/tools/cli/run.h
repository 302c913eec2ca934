/* Runs one command: sends it, prints what comes back, stays with it while it streams.
 *
 * State: the session's. */
#ifndef TOOLS_CLI_RUN_H
#define TOOLS_CLI_RUN_H

#include "tools/cli/session.h"

enum run_result {
    RUN_OK,
    RUN_ERROR_REPLY, /* done, and the server's answer was an error */
    RUN_INTERRUPTED, /* Ctrl-C ended the wait; there is a new connection, if possible */
    RUN_FAILED,      /* no connection, or it broke: reported on standard error */
};

/* Runs `command` (at least one word), connecting first where there is no connection.
 * `errors_apart`: an error reply goes to standard error, as it is (-e). */
enum run_result run_command(struct session *s, const struct words *command, bool errors_apart);

/* Runs it as often as `times` says (negative: until stopped), with the pause of -i after each
 * time. Stops early on RUN_FAILED and RUN_INTERRUPTED, and on an error reply if `errors_apart`. */
enum run_result run_repeatedly(struct session *s, const struct words *command, long long times,
                               bool errors_apart);

/* Prints messages until the subscriptions end, the connection does, Ctrl-C is hit (which closes
 * the connection and connects again) or, at a prompt, a key waits to be read. `confirm`: a command
 * that subscribes has been sent and its first answer is still to come; an answer that does not
 * confirm it ends the listening. */
enum run_result run_listen(struct session *s, bool confirm);

/* Reads one more reply, which nothing was sent for, and prints it: the script's, behind the last
 * line of its debugger. */
enum run_result run_last_reply(struct session *s);

#endif
