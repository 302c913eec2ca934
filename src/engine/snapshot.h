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

#include <stdbool.h>

struct snapshot_ops {
    /* Saves before the server ends, if the flags (engine/shutdown.h) and the save points want it.
     * False (logged) when that failed and the flags do not force the end. */
    bool (*before_exit)(unsigned flags);
    /* Saves (unless told not to), forgets all keys and loads them again. False, logged, with
     * nothing changed, when saving failed. When loading fails the process ends. */
    bool (*reload)(bool save);
    /* Forgets all keys and loads the append-only file. False, with nothing changed, when there is
     * none. When loading fails the process ends. */
    bool (*reload_log)(void);
};

/* Boot. */
void snapshot_set_ops(const struct snapshot_ops *ops);
/* What is set; there is something from boot on. World. */
const struct snapshot_ops *snapshot_ops(void);

#endif
