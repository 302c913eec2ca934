/* Replication as the server sees it. State: none of its own; see README.md. */
#ifndef REPL_REPL_H
#define REPL_REPL_H

#include "base/option.h"
#include "engine/command.h"

extern const struct command_row repl_commands[], wait_aof_commands[];
extern const struct option repl_options[];

/* Boot and its reverse: the log of the stream, INFO's section. After propagate_setup. */
void repl_setup(void);
void repl_teardown(void);
/* When the server threads run, and before they end. */
void repl_start(void);
void repl_stop(void);

#endif
