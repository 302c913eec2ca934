/* The `help` command of the prompt. State: none; the table of commands is given. */
#ifndef TOOLS_CLI_HELP_H
#define TOOLS_CLI_HELP_H

#include "tools/cli/docs.h"
#include "tools/common/text.h"
#include "tools/common/words.h"

/* Whether the first word asks for help: "help" or "?". */
bool help_is_asked(const struct words *line);

/* Appends what `line` (help_is_asked()) asks for: the general text, a @group, or every command
 * whose name starts with the words that follow. */
void help_append(struct text *out, const struct words *line, const struct docs *d);

#endif
