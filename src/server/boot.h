/* The server as an ordered list of setups and its reverse. */
#ifndef SERVER_BOOT_H
#define SERVER_BOOT_H

#include "base/slice.h"

#include <stdbool.h>

/* Before the configuration is read: clocks, secrets, tables of options and commands. */
void boot_prepare(void);
/* Runs the server with the configuration that was loaded, until the end. Returns the exit status.
 */
int boot_run(void);

#endif
