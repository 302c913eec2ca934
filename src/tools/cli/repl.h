/* The prompt, and commands read from standard input line by line.
 *
 * State: while it runs, on the stack; the session is the caller's. */
#ifndef TOOLS_CLI_REPL_H
#define TOOLS_CLI_REPL_H

#include "tools/cli/session.h"
#include "tools/common/words.h"

/* Runs until `quit`, `exit` or the end of the input. Returns the program's exit status. */
int repl_run(struct session *s);

/* The same while a session of the script debugger is on, which --ldb has begun. True: it is to
 * begin anew (`restart`). */
bool repl_debug(struct session *s);

/* Prints what a `help` command asks for, with the help of the server's COMMAND DOCS where needed.
 * Connects when it must. Returns the program's exit status. */
int repl_help(struct session *s, const struct words *line);

#endif
