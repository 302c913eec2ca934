/* Which history the data are, and how much of it, in files: a replica that is started again goes on
 * where its files end, and so do the replicas of a primary that is started again.
 *
 *   repl-id         40 hex digits: the history
 *   repl-offset     bytes of it that the data have
 *   repl-stream-db  the database that the stream is for behind them
 *
 * These are the names and the meaning of Redis, whose RDB files have the same fields, so they are
 * understood both ways. Notes are made only while the backlog is on: otherwise nobody knows the
 * offset. persist/notes.h says where they stand and when they are void.
 *
 * After a start as a replica the history goes on under its id. A primary takes a new one, and what
 * was loaded is its second id: writes that were lost with a crash may have gone to replicas under
 * the old id, so nothing new may ever be said under that.
 *
 * State: the loading thread's until it is accepted; the backlog's (backlog.h) from there. */
#ifndef REPL_IDENTITY_H
#define REPL_IDENTITY_H

/* Boot: the notes' operations. */
void identity_setup(void);

#endif
