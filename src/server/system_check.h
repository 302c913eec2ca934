/* What the machine could do better for a server of this kind: warnings at start, and
 * --check-system. */
#ifndef SERVER_SYSTEM_CHECK_H
#define SERVER_SYSTEM_CHECK_H

#include <stdbool.h>
#include <stdint.h>

/* Logs a warning for each setting that hurts: memory overcommit, transparent huge pages, a short
 * accept queue. */
void system_check_warn(int64_t tcp_backlog);
/* Switches transparent huge pages off for this process (prctl). */
void system_check_disable_thp(void);
/* --check-system: prints each check with its result; true when all are fine. */
bool system_check_print(void);

#endif
