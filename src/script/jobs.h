/* Jobs (KEYDB.CRON): the thread that runs their scripts when it is time (keyspace/schedule.h), one
 * at a time, as EVAL in the database of the job's key.
 *
 * - Only where the server decides by itself: not on a replica, which gets the effects; on an active
 *   one only the jobs that were made there (made anew elsewhere, a job runs there); not while a
 *   data set is loaded, clients are paused, or writes are refused: what comes due meanwhile runs
 *   behind it, once. A server that was down, or followed another one, does not make up for the
 *   times of jobs that repeat.
 * - With the rights of the user who made the job, as they are when it runs: he needs EVAL and what
 *   the script calls. While there is no such user, or he is off, the job does not run. A job out of
 *   a file of KeyDB has the rights of `default`.
 * - Its effects go to the logs as one transaction; of one that runs once, with the removal of its
 *   key, which goes first: the script may make the job anew.
 * - One that takes long is seen and ended as any script is (SCRIPT KILL); others wait behind it.
 * - A failure is logged, the same one of the same key once a minute.
 *
 * State: the thread's own. */
#ifndef SCRIPT_JOBS_H
#define SCRIPT_JOBS_H

/* Starts the thread, which sleeps while there are no jobs; after loading has begun. */
void jobs_start(void);
/* Ends it, behind the script that it runs. Asleep (without the GIL). */
void jobs_stop(void);

#endif
