/* How families and samples are written; for this folder's exposition*.c. */
#ifndef METRICS_EXPOSITION_PRIV_H
#define METRICS_EXPOSITION_PRIV_H

#include "metrics/exposition.h"

/* Begins a family: `name` as a counter is called in Prometheus's format, `type` "counter", "gauge",
 * "histogram" or "summary", `help` and `more` (may be NULL) its text. */
void exposition_family(struct exposition *x, const char *name, const char *type, const char *help,
                       const char *more);
/* Begins a sample of a counter, or of anything else: its name, and `suffix` behind it. */
void exposition_sample(struct exposition *x, const char *name, bool is_counter, const char *suffix);
/* A label of the sample that was begun; `first` opens the brackets. */
void exposition_label(struct exposition *x, const char *name, struct slice text, bool first);
/* The end of a sample: its value, and before it the closing bracket if there were labels. */
void exposition_value(struct exposition *x, bool had_labels, struct slice value);
void exposition_value_u64(struct exposition *x, bool had_labels, uint64_t value);
/* The same with six decimals. */
void exposition_value_fixed(struct exposition *x, bool had_labels, double value);

#endif
