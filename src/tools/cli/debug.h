/* A session of the script debugger: SCRIPT DEBUG YES or SYNC, and then EVAL. Until its last line,
 * "<endsession>", the server takes the debugger's words and answers with arrays of lines; behind it
 * come the script's reply and the end of the connection.
 *
 * State: the conversation's (session.h: debugs_eval, debugging, debug_ended). */
#ifndef TOOLS_CLI_DEBUG_H
#define TOOLS_CLI_DEBUG_H

#include "tools/cli/session.h"
#include "tools/common/reply.h"

/* Before a command is sent: SCRIPT DEBUG says what the next EVAL is, EVAL begins a session. */
void debug_note_command(struct session *s, const struct words *command);

/* "eval CODE" and "e CODE" as two words, whatever quotes there are in the code; false, with nothing
 * to release, where the line is something else. */
bool debug_split_code(const struct text *line, struct words *out);

/* Appends a reply of the debugger, in colours where the terminal has some, and takes note of its
 * last line: from then on replies are printed for people. */
void debug_format(struct session *s, struct text *out, const struct reply *reply);

/* The session is over, debug_ended: prints the script's reply, says so, and connects anew. */
void debug_end(struct session *s);

#endif
