/* The slow log: the last commands that took longer than a threshold. State: behind a leaf lock. */
#ifndef ENGINE_SLOWLOG_H
#define ENGINE_SLOWLOG_H

#include "base/option.h"
#include "engine/call.h"

/* Notes the call when it took long enough (arguments are trimmed to 32, each to 128 bytes). No lock
 * held. */
void slowlog_note(const struct call *c, uint64_t duration_us, int64_t wall_s);
/* True when a duration is worth slowlog_note (cheap pre-check). */
bool slowlog_wants(uint64_t duration_us);
/* An entry as it is shown; slices live for the call that gets it. */
struct slowlog_view {
    uint64_t id, duration_us;
    int64_t wall_s;
    struct slice peer, name;
    int argc;
    const struct slice *argv;
};
/* Calls `visit` for up to `count` entries (-1: all), the newest first, without a lock; returns how
 * many they were. Any thread. */
uint64_t slowlog_each(int64_t count, void (*visit)(const struct slowlog_view *entry, void *context),
                      void *context);
/* Replies up to `count` entries (-1: all), the newest first. */
void slowlog_reply(struct reply *r, int64_t count);
uint64_t slowlog_len(void);
void slowlog_reset(void);
/* slowlog-log-slower-than, slowlog-max-len. */
extern const struct option slowlog_options[];

#endif
