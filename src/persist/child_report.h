/* What a forked child that writes the data set tells the server of its progress: how many keys it
 * has written and how much memory the two no longer share. One page that both map, with a place for
 * each kind of child: of a kind there is one at a time. State: atomic. */
#ifndef PERSIST_CHILD_REPORT_H
#define PERSIST_CHILD_REPORT_H

#include "engine/fork_child.h"

#include <stdint.h>

/* Maps the page. Boot. */
void child_report_setup(void);
void child_report_teardown(void);
/* fork_child, of a child that is to write all keys there are, and tells from then on; it tells
 * modules as well, which may change what it writes (fork_child_runs: in exclusive mode then). */
int child_report_fork(enum child_kind kind, int keep) MUST_CHECK REQUIRES_SHARED(keyspace_lock);
/* So many more keys are written. In a child that tells; about once a second it also measures its
 * memory. Elsewhere nothing. */
void child_report_keys(uint64_t more);
/* In such a child: tells how it went, measures its memory a last time and ends it
 * (fork_child_exit). */
void child_report_exit(int error) NORETURN;

struct child_figures {
    uint64_t keys_done, keys_total;
    uint64_t cow_bytes, cow_peak_bytes; /* memory that was copied because one of the two wrote */
    int64_t cow_measured_ms;            /* Unix; 0: not yet */
};
/* What the last child of that kind has told. Any thread. */
struct child_figures child_report_read(enum child_kind kind);

#endif
