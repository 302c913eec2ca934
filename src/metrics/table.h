/* Which field of INFO is which metric. Names are those of the redis_exporter that most dashboards
 * are made for, where that has the field; further ones begin with redis_ for Redis's fields and
 * keydb_ for our own. State: immutable table. */
#ifndef METRICS_TABLE_H
#define METRICS_TABLE_H

#include <stdbool.h>

enum metric_type { METRIC_GAUGE, METRIC_COUNTER };

/* What a sample's value is. */
enum metric_value {
    VALUE_AS_IS,  /* the number, without a percent sign behind it */
    VALUE_MILLI,  /* the number, times 1/1000 */
    VALUE_MICRO,  /* 1/1000000 */
    VALUE_NANO,   /* 1/1000000000 */
    VALUE_GOOD,   /* 1 for "ok", "up" and "ready", else 0 */
    VALUE_ALWAYS, /* 1: the labels are what is told */
};

#define METRIC_LABELS_MAX 12

struct metric_label {
    const char *name;
    /* Where its text is from: NULL: the field's name behind the row's `field`; "=x": part x of the
     * value; "*": the field's whole name; else the field of that name in any section. */
    const char *from;
};

struct metric_row {
    const char *section; /* of INFO, lower case */
    const char *field;   /* its name, or how the names of such fields begin */
    const char *part;    /* the part of the value that counts; NULL: all of it */
    bool open;           /* every field whose name begins so */
    bool numbered;       /* every one whose name goes on with digits and ends there */
    const char *name;    /* of the metric; of a counter with its _total, if it has one */
    enum metric_type type;
    enum metric_value value;
    struct metric_label labels[METRIC_LABELS_MAX]; /* name NULL ends them */
};

/* Rows of one section follow one another; a row without section ends the table. */
extern const struct metric_row metric_rows[];

#endif
