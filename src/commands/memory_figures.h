/* Memory by purpose: what MEMORY STATS, MEMORY DOCTOR and INFO's memory section tell. State: the
 * start-up figure and the hook are written at boot, before threads start; everything else is
 * computed when asked. */
#ifndef COMMANDS_MEMORY_FIGURES_H
#define COMMANDS_MEMORY_FIGURES_H

#include "base/mem.h"
#include "keyspace/lock.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Sizes are bytes. */
struct memory_figures {
    size_t used, peak, rss;
    size_t startup;  /* in use when the server had started, before any data */
    size_t clients;  /* buffers and bookkeeping of clients */
    size_t backlog;  /* the replication stream, as far as the backlog keeps it by itself */
    size_t replicas; /* what of the stream, and of transfers, is there for replicas only */
    size_t aof;      /* what the AOF's file has not got yet */
    size_t scripts, functions; /* what is kept of them */
    size_t tables;             /* the databases' tables, without entries */
    size_t overhead;           /* startup and all of these */
    size_t dataset;            /* the rest: entries and what hangs off them */
    uint64_t keys;
    struct mem_stats allocator;
};

/* Boot, when everything is set up: what is in use from here on is the data's doing. */
void memory_figures_note_startup(void);
/* Boot: who can tell what others hold (any thread, no lock needed), into the fields that are named
 * after them. Without it they are 0. */
void memory_figures_set_source(void (*tell)(struct memory_figures *f));
/* Fills `f`. Visits the keyspace (lock.h) for the sizes of the tables. */
void memory_figures_collect(struct memory_figures *f);
/* The same, but that what the allocator and the system tell at some cost (allocator, rss) may be as
 * old as MEMORY_SAMPLE_MS. */
void memory_figures_collect_lately(struct memory_figures *f);
#define MEMORY_SAMPLE_MS 100
/* Of the machine, in bytes, as old as that; false where the system does not tell. */
bool memory_figures_of_machine(uint64_t *total, uint64_t *available);

/* part / whole, 0 for an empty whole. */
double memory_ratio(size_t part, size_t whole);
/* a - b as a signed number. */
int64_t memory_excess(size_t a, size_t b);
/* Percent of what was allocated since start-up that is data. */
double memory_dataset_percent(const struct memory_figures *f);
/* Percent of the peak that is in use now. */
double memory_peak_percent(const struct memory_figures *f);

#endif
