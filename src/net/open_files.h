/* How many clients the system's limit of open files leaves room for. State: the process's limit. */
#ifndef NET_OPEN_FILES_H
#define NET_OPEN_FILES_H

#include <stdint.h>

/* Raises the limit of open files to what so many clients need, or as far as it may go. Returns how
 * many clients fit then: `clients`, or fewer (1 at least). Boot, or world. */
int64_t open_files_fit(int64_t clients);
/* Sets descriptors aside that are not clients'. Boot, before net_setup(). */
void open_files_reserve(unsigned count);
/* The limit in force; 0 when the system does not tell. */
uint64_t open_files_limit(void);

#endif
