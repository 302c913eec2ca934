/* The allocator's report and its named controls (jemalloc's mallctl), for MEMORY MALLOC-STATS and
 * DEBUG. State: the allocator's own. Any thread. Without jemalloc there are neither. */
#ifndef BASE_MEM_DEBUG_H
#define BASE_MEM_DEBUG_H

#include "base/buf.h"
#include "base/compiler.h"

#include <stdbool.h>
#include <stdint.h>

/* Appends the allocator's own report; false when it has none. */
bool mem_report(struct buf *out) MUST_CHECK;
/* Reads the number under `name` into *value and, when `set` is not NULL, stores *set there. Returns
 * 0 or an errno value: ENOENT for an unknown name, EINVAL for one that holds no number, EPERM for
 * one that cannot be set. */
int mem_control_number(const char *name, const int64_t *set, int64_t *value) MUST_CHECK;
/* Points *text to the text under `name`, which lives as long as the process. Only names that are
 * known to hold a text are read, since the allocator would as well hand out a number as a pointer.
 * Returns 0 or ENOENT. */
int mem_control_text(const char *name, const char **text) MUST_CHECK;

#endif
