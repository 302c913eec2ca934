/* How busy a thread, this process and the machine were between two moments, and whether it would
 * help then to give some of the thread's clients to another. State: none; the clocks are read by
 * whoever asks. */
#ifndef NET_BUSYNESS_H
#define NET_BUSYNESS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* A moment's clocks, to be compared with another's. */
struct busyness {
    uint64_t mono_ns;
    uint64_t thread_ns, process_ns; /* of processor time */
    uint64_t idle_ns;               /* of all cores of the machine; 0: the system does not tell */
};

/* The clocks now, of a thread that runs. */
struct busyness busyness_look(pthread_t thread);
/* True when the thread was short of time between the two moments (it used 40 percent of a core or
 * more) while another core had some (half of one or more): one of the `cores` that this process may
 * use, and one of the machine's. */
bool busyness_would_help(const struct busyness *from, const struct busyness *to, unsigned cores);

#endif
