/* The seam between what saves the data set (persist/) and those who need it done or must know of
 * it: SHUTDOWN, DEBUG RELOAD. State: set at boot.
 *
 * DEBUG RELOAD and DEBUG LOADAOF keep the world standing until all is loaded again: other clients
 * wait and hear nothing of it, where Redis tells them -LOADING. Nobody ever sees a part of the data
 * set, no write can come between the file and what is loaded from it, and the time is bounded by
 * that of one SAVE and one load, for which Redis serves nobody either. Loads that nobody asked for
 * by hand, at the start and of a primary's data set, answer -LOADING (persist/load.h). */
#ifndef ENGINE_SNAPSHOT_H
#define ENGINE_SNAPSHOT_H

#include "engine/gil.h"
#include "keyspace/lock.h"

#include <stdbool.h>
#include <stdint.h>

enum reload_flag {
    RELOAD_NOSAVE = 1 << 0,  /* loads the file that is there */
    RELOAD_NOFLUSH = 1 << 1, /* forgets nothing */
    RELOAD_MERGE = 1 << 2, /* with NOFLUSH: a key of the file takes the place of one that is there;
                              otherwise one key of both is a fault */
};

struct snapshot_ops {
    /* Saves before the server ends, if the flags (engine/shutdown.h) and the save points want it.
     * False (logged) when that failed and the flags do not force the end. */
    bool (*before_exit)(unsigned flags);
    /* Saves, forgets all keys and loads them again, as the flags say. NULL, or an error for the
     * client, logged, with keys and libraries as they were. */
    const char *(*reload)(unsigned flags);
    /* Forgets all keys and loads the append-only file; in the same way. */
    const char *(*reload_log)(void);
    /* FLUSHALL has emptied everything, and the logs have been told: a save that is under way in a
     * child ends without a file, and with save points the empty data set takes the file's place;
     * all before FLUSHALL is answered, within a unit at its end. Exclusive mode, any thread. */
    void (*flushed)(void);
    /* For tests: whether checksums of payloads and RDB files are taken for right unseen (World),
     * and how long each write into the log takes in addition, in microseconds (any thread). */
    void (*trust_checksums)(bool trusted);
    void (*slow_log)(int64_t us);
};

/* Boot. */
void snapshot_set_ops(const struct snapshot_ops *ops);
/* What is set; there is something from boot on. World. */
const struct snapshot_ops *snapshot_ops(void);
/* FLUSHALL: see flushed above; nothing where nobody saves. */
void snapshot_flushed(void) REQUIRES(keyspace_lock);

/* What is in memory is half way between two states, and no file may be made of it: saves and
 * rewrites are put off. `finish`, called with the world standing, brings it to the second one, and
 * is told here (NULL) when there is nothing to finish any more. Exclusive mode, or world. */
void snapshot_set_unfinished(void (*finish)(void)) REQUIRES(keyspace_lock);
/* Any thread; it can begin only in exclusive mode. */
bool snapshot_is_unfinished(void);
/* Who cannot put it off has it finished, however long that takes. */
void snapshot_finish(void) REQUIRES(gil);

#endif
