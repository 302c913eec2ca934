/* THE place where the server forks while it has threads: a child that writes out the data set as it
 * is now (RDB, AOF rewrite, what replicas and peers are sent), from its fork to its end; or one
 * that goes on with a script that is debugged.
 *
 * The caller holds the keyspace lock, so what the child sees is one state of the data. Of all
 * threads the child has only the one that forked, so a leaf lock that another thread held at the
 * time of the fork would never be let go of there. Instead of taking them all before the fork, the
 * child does not take any: it logs nothing, frees nothing of the server's, runs no command, and
 * ends by _exit. Debug builds abort a child that takes a lock (base/lock.h). malloc works there
 * because the allocator prepares for forks. The child dies with the server, so that no file of an
 * earlier life replaces a later one's, and has none of its descriptors.
 *
 * Who forked it keeps its pid, 0 when it has none, and asks for its end, by one thread at a time. A
 * child of which the system knows nothing any more (somebody else waited for it, or the server was
 * started with SIGCHLD ignored) has ended too, and not well.
 *
 * CHILD_DEBUGGER and CHILD_MODULE differ: they run commands. So does a child that writes an RDB or
 * AOF file while modules have asked to be told there that it does, or have types, whose values they
 * write (fork_child_runs). All leaf locks
 * are taken over its fork, in the order of ranks (base/lock.h), so it finds none held and nothing
 * behind them half changed; it holds what its thread held, the keyspace lock in exclusive mode.
 * What leads out of it is cut: logs, messages to other threads, monitors, the clients that a long
 * script serves. Of OpenSSL it may use what takes no lock that is shared by connections: records of
 * one that is established. A module's child has no sockets at all.
 *
 * State: immutable after boot. */
#ifndef ENGINE_FORK_CHILD_H
#define ENGINE_FORK_CHILD_H

#include "base/compiler.h"
#include "keyspace/lock.h"

#include <stdbool.h>

/* What the child is for. */
enum child_kind {
    CHILD_SAVE,
    CHILD_AOF_REWRITE,
    CHILD_TRANSFER,
    CHILD_FULL_SYNC,
    CHILD_MODULE, /* a module's, which runs the module's code */
    CHILD_DEBUGGER,
    CHILD_KINDS
};

/* Whether such a child runs commands: its fork needs the exclusive mode then. */
bool fork_child_runs(enum child_kind kind);

/* For `keep` below: all that is no socket stays open (pipes between a module and its child). */
#define FORK_CHILD_KEEP_FILES (-2)

/* In the parent the child's pid, or -1 with errno set; in the child 0. One that runs commands
 * needs the exclusive mode. Descriptor `keep` and those below 3 stay open in the child (-1: none to
 * keep; or FORK_CHILD_KEEP_FILES). */
int fork_child(enum child_kind kind, int keep) MUST_CHECK REQUIRES_SHARED(keyspace_lock);
/* In the child: ends it. `error` (0 or an errno) is what the parent finds in child_end. */
void fork_child_exit(int error) NORETURN;

/* How a child ended. */
struct child_end {
    int error;  /* 0: well; else its errno, EINTR where a signal ended it */
    int signal; /* that ended it; 0 */
};
/* Any thread; true once, when it has ended by now: *pid is 0 then. False too where *pid is 0. */
bool fork_child_has_ended(int *pid, struct child_end *end) MUST_CHECK;
/* The same, for one that is about to end: waits. */
struct child_end fork_child_wait(int *pid);
/* Ends it, and waits until it is gone: it may be about to put a file in place. Nothing where *pid
 * is 0. *pid is 0 then. Any child of this process. */
void fork_child_kill(int *pid);
/* For the log: why it did not end well. */
const char *fork_child_why(struct child_end end);

/* Microseconds that the last fork took the server, as INFO shows it; 0 before the first one and
 * since the statistics were reset. Any thread. */
uint64_t fork_child_latest_us(void);
void fork_child_reset_stats(void);
/* Whether a module's child runs, for INFO: told by who forked it, asked by any thread. */
void fork_child_note_module(bool runs);
bool fork_child_module_runs(void);
/* True in such a child. */
bool fork_child_is_here(void);
/* Boot: `begin` is called in each child before anything else happens there. It may do what a child
 * may: no lock, no memory of the server's freed. */
void fork_child_set_begin(void (*begin)(enum child_kind kind));

#endif
