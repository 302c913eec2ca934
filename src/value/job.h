/* A job: a script with the times at which it is to run (KEYDB.CRON), TYPE "cron". The value never
 * changes: who wants other terms makes another one. When it runs follows from its terms and the
 * clock alone, so that nothing need be stored when it has: a job that repeats runs at its start and
 * a whole number of intervals, one that does not at its start and one interval. It runs in the
 * database where its key is, with the rights of the user who made it.
 *
 * A job that is made so late that its first time has passed runs at once, as KeyDB's do; one that
 * repeats then counts from that run, which its maker sees to (job_terms_catch_up). One that comes
 * out of a file or from another server has had its runs: its next time counts.
 *
 * State: keyspace. Making one needs no lock. */
#ifndef VALUE_JOB_H
#define VALUE_JOB_H

#include "value/entry.h"

#include <stdbool.h>
#include <stdint.h>

/* Times and intervals are within so many milliseconds, so that their sums are numbers. */
#define JOB_TIME_MAX_MS ((int64_t)1 << 60)

struct job_terms {
    bool single; /* runs once, then its key goes */
    int64_t start_ms, interval_ms;
    struct slice user, script;
    const struct slice *words; /* KEYS, then ARGV */
    uint32_t key_count, word_count;
};

/* A place for who keeps jobs in order of time (keyspace/schedule.h). */
struct job {
    struct job_terms terms;
    struct scheduled *scheduled; /* NULL: in no database */
    int64_t due_ms;              /* in none: when it is to run next; 0: as its terms say */
    size_t bytes;
};

extern const struct value_ops job_ops;

/* False when the times are none that a job can have. */
bool job_times_are_valid(int64_t start_ms, int64_t interval_ms);
/* Terms that are made now: where they repeat and their first time has passed, this moment becomes
 * it. */
void job_terms_catch_up(struct job_terms *terms, int64_t now_ms);
/* A new entry without expiry; the terms, whose times are valid, are copied. */
struct entry *job_create(struct slice key, const struct job_terms *terms);
/* The job of such an entry. */
struct job *job_of(const struct entry *e);
/* When it is to run next, as of now: the first of its times after `now_ms`, or, of one that does
 * not repeat, its only one. */
int64_t job_next_ms(const struct job *job, int64_t now_ms);

#endif
