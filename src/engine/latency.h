/* The latency monitor: for each named event the last 160 spikes over `latency-monitor-threshold`.
 * State: behind a leaf lock. */
#ifndef ENGINE_LATENCY_H
#define ENGINE_LATENCY_H

#include "base/option.h"
#include "base/slice.h"
#include "resp/reply.h"

/* Notes a spike of `event` ("command", "fast-command", "expire-cycle" ...) if it reaches the
 * threshold. */
void latency_note(const char *event, uint64_t duration_ms, int64_t wall_s);
/* True when the monitor is on and the duration reaches its threshold. */
bool latency_wants(uint64_t duration_ms);
/* LATENCY LATEST, HISTORY, RESET (names; none: all; returns how many), GRAPH, DOCTOR. */
void latency_reply_latest(struct reply *r);
void latency_reply_history(struct reply *r, struct slice event);
int64_t latency_reset(const struct slice *events, int count);
/* Appends an ASCII graph; false when there are no samples. */
bool latency_graph(struct slice event, int64_t now_s, struct buf *out);
void latency_doctor(int64_t now_s, struct buf *out);
/* latency-monitor-threshold. */
extern const struct option latency_options[];

#endif
