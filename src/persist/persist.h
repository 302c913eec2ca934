/* What this folder offers to the server: tables of commands. State: immutable. */
#ifndef PERSIST_PERSIST_H
#define PERSIST_PERSIST_H

#include "engine/command.h"

extern const struct command_row dump_commands[]; /* DUMP, RESTORE */
extern const struct command_row aof_commands[];  /* BGREWRITEAOF */
extern const struct command_row save_commands[]; /* SAVE, BGSAVE, LASTSAVE */

#endif
