/* The figures that the page at / shows, as JSON. State: none. */
#ifndef METRICS_STATUS_H
#define METRICS_STATUS_H

#include "metrics/access.h"

/* Appends an object:
 *   "at_ms"      wall clock
 *   "whole"      false while a script holds the keys and sections are missing
 *   "info"       sections of INFO by lower-case name, each an object of strings
 *   "latency"    [[nanoseconds, calls], ...]: steps of a histogram of all commands' times, with the
 *                calls of each
 *   "slowlog"    the newest entries, null for who may not see them
 *   "sees_keys"  whether /big-keys.json is for this visitor
 * Awake. */
void status_write(struct buf *out, const struct visitor *v);

#endif
