/* COMMAND DOCS for one command: summary, history, arguments, subcommands. Reads immutable tables
 * only. */
#ifndef COMMANDS_INTROSPECT_DOCS_H
#define COMMANDS_INTROSPECT_DOCS_H

#include "engine/command.h"
#include "resp/reply.h"

/* Replies full name and documentation of a command: two elements of a map. */
void docs_reply_command(struct reply *r, const struct command *cmd);

#endif
