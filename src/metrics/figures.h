/* INFO's text, cut into its fields: what all that is told here is made of, so that it is INFO's own
 * collecting that tells it. State: plain values of their owner. */
#ifndef METRICS_FIGURES_H
#define METRICS_FIGURES_H

#include "base/buf.h"
#include "base/compiler.h"

#include <stdbool.h>

struct figure {
    struct slice section; /* as INFO's headline has it: "Clients" */
    struct slice name, value;
};

struct figures {
    struct buf text; /* what the slices point into */
    struct figure *items;
    unsigned count, capacity;
    bool whole; /* false: a script holds the keys for long, and sections that look at them are not
                   there */
};

/* Asks INFO. Waits for the keyspace lock as INFO does, but not for a script that takes long. Any
 * thread with a slot, awake, that holds no lock. */
void figures_collect(struct figures *f);
/* Cuts f->text, which is in INFO's form, into items. */
void figures_cut(struct figures *f);
/* The field of a section (in any case), NULL when it is not there. `hint` (may be NULL) is where
 * the last search ended, from which this one begins. */
const struct figure *figures_find(const struct figures *f, const char *section, struct slice name,
                                  unsigned *hint);
/* The part of a value "a=1,b=2" that has this name; false when there is none. */
bool figures_part(struct slice value, struct slice name, struct slice *part) MUST_CHECK;
/* Cuts the first part off `value`: name and content; false at the end. */
bool figures_next_part(struct slice *value, struct slice *name, struct slice *part) MUST_CHECK;
/* Frees what it holds. */
void figures_deinit(struct figures *f);

#endif
