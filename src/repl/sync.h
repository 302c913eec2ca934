/* The sync thread: what replication does beside the commands. It has data sets transferred to
 * replicas that need one, says signs of life in the stream, closes replicas that are silent, judges
 * min-replicas-to-write, and forgets the backlog that nobody wants any more. It sleeps while there
 * are no replicas and no backlog.
 *
 * State: its own; settings are world. */
#ifndef REPL_SYNC_H
#define REPL_SYNC_H

#include "base/option.h"

#include <stdbool.h>
#include <stdint.h>

struct sync_settings {
    bool diskless, disable_nodelay;
    int64_t diskless_delay_s, diskless_max_replicas;
    int64_t ping_period_s, timeout_s, backlog_ttl_s;
    int64_t min_replicas, min_replicas_max_lag_s;
};
extern struct sync_settings sync_settings;

/* After boot, when server threads run; and before they end: no transfer is left. */
void sync_start(void);
void sync_stop(void);
/* Something has changed: a replica came or went, a setting. Any thread. */
void sync_wake(void);
/* An option's `apply` that makes it work at once. */
bool sync_apply(const struct option *option, const char **error);
/* Judges min-replicas-to-write now: a setting, or our role, is another one. Awake: the sync thread,
 * or world. */
void sync_judge(void);
/* Replicas, and active peers that pull from us, that are well by min-replicas-max-lag. Any thread.
 */
int sync_good_replicas(void);

#endif
