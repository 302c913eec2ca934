/* Spikes: how long single steps took that may keep clients waiting, for whoever watches them
 * (engine/latency.h). Where nobody does, a step pays one load. State: atomic; the listener is set
 * at boot. */
#ifndef BASE_SPIKE_H
#define BASE_SPIKE_H

#include <stdint.h>

/* Boot: what is told of steps of so many milliseconds and more (spike_watch), on any thread and
 * under any lock that ranks before the listener's own. */
void spike_set_listener(void (*listener)(const char *event, uint64_t duration_ms));
/* From now on such steps are told; 0: none. */
void spike_watch(uint64_t threshold_ms);

/* Before a step: what spike_end is given. */
uint64_t spike_begin(void);
/* After it; `event` is a name that lives forever. */
void spike_end(const char *event, uint64_t begin);

#endif
