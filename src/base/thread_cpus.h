/* Which cores threads and child processes may run on, by what they do. State: the lists are world
 * state and hold from the start; the cores that the process began with are immutable after boot. */
#ifndef BASE_THREAD_CPUS_H
#define BASE_THREAD_CPUS_H

#include "base/option.h"
#include "base/slice.h"

#include <sched.h>

enum thread_work {
    THREAD_WORK_SERVER,      /* the main thread and those that serve clients */
    THREAD_WORK_BACKGROUND,  /* all other threads */
    THREAD_WORK_AOF_REWRITE, /* the child that rewrites the append-only file */
    THREAD_WORK_SAVE,        /* the child that saves or sends the data set */
    THREAD_WORK_COUNT
};

/* Reads a list as taskset(1) takes it: cores and ranges with commas between, a range with an
 * optional step ("0,2-5,8-15:2"). False when it is none, or names a core beyond CPU_SETSIZE. */
bool thread_cpus_parse(struct slice list, cpu_set_t *cores) MUST_CHECK;
/* Confines the calling thread (and what it starts) to the list of that work; without one to the
 * cores that the process began with, where it could be confined to others. Returns an errno value.
 * Also for forked children: takes no lock and allocates nothing. */
int thread_cpus_confine(enum thread_work work);
/* The cores for a new thread of that work; false when it can have those of its starter. */
bool thread_cpus_of(enum thread_work work, cpu_set_t *cores);
/* Notes the cores that the process may use. Boot, before any thread is confined. */
void thread_cpus_setup(void);
/* Frees the lists. */
void thread_cpus_teardown(void);

/* server_cpulist, bio_cpulist, aof_rewrite_cpulist, bgsave_cpulist. */
extern const struct option thread_cpus_options[];

#endif
