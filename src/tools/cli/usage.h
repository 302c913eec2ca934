/* The text behind --help. State: none. */
#ifndef TOOLS_CLI_USAGE_H
#define TOOLS_CLI_USAGE_H

/* Prints it to standard output. */
void cli_usage_print(void);

#endif
