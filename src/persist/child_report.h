/* What a forked child that writes the data set tells the server of its progress: how many keys it
 * has written and how much memory the two no longer share. One page that both map; there is one
 * child at a time. State: atomic. */
#ifndef PERSIST_CHILD_REPORT_H
#define PERSIST_CHILD_REPORT_H

#include "base/compiler.h"

#include <stdint.h>

/* Maps the page. Boot. */
void child_report_setup(void);
void child_report_teardown(void);
/* Before a fork: what the child will write, and nothing done yet. */
void child_report_begin(uint64_t total_keys);
/* In the child: from now on it measures its memory, too. */
void child_report_enter(void);
/* So many more keys are written. In the child, about once a second, it also measures its memory.
 * Safe in a forked child; does no more than count elsewhere. */
void child_report_keys(uint64_t more);
/* In the child, at its end: measures its memory a last time. */
void child_report_leave(void);

struct child_figures {
    uint64_t keys_done, keys_total;
    uint64_t cow_bytes, cow_peak_bytes; /* memory that was copied because one of the two wrote */
    int64_t cow_measured_ms;            /* Unix; 0: not yet */
};
/* What the last child has told. Any thread. */
struct child_figures child_report_read(void);

#endif
