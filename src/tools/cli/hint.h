/* What may follow on a line that is being typed: hints behind the cursor, and completions.
 *
 * State: none; the table of commands is given. */
#ifndef TOOLS_CLI_HINT_H
#define TOOLS_CLI_HINT_H

#include <stddef.h>

#include "tools/cli/docs.h"
#include "tools/common/text.h"
#include "tools/common/words.h"

/* Appends the arguments that line[0, len) still lacks, with a leading blank where the line does
 * not end in one. Appends nothing when the line is no known command or is complete. */
void hint_append(struct text *out, const struct docs *d, const char *line, size_t len);

/* Adds whole lines that line[0, len) may be completed to: command names, help topics, fixed words
 * among the arguments. */
void hint_complete(struct words *out, const struct docs *d, const char *line, size_t len);

#endif
