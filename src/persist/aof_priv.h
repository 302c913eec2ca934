/* What the files of the AOF share. State: world. */
#ifndef PERSIST_AOF_PRIV_H
#define PERSIST_AOF_PRIV_H

#include "engine/gil.h"
#include "keyspace/lock.h"
#include "persist/aof_manifest.h"

#include <stdbool.h>
#include <stdint.h>

struct aof_settings {
    bool enabled; /* appendonly */
    char *file_name, *dir_name;
    int sync; /* enum aof_sync */
    bool no_sync_on_rewrite, load_truncated, rdb_preamble, timestamps;
    bool keeps_history; /* aof-disable-auto-gc */
    int64_t rewrite_percentage, rewrite_min_bytes;
};
extern struct aof_settings aof_settings;

enum aof_stage { AOF_OFF, AOF_WAITING, AOF_ON };

struct aof_state {
    _Atomic int stage; /* enum aof_stage */
    struct aof_manifest manifest;
    bool known;                    /* the manifest is that of the directory */
    bool unusable;                 /* it cannot be loaded */
    _Atomic int child;             /* the rewriting process, 0 without one */
    _Atomic bool scheduled;        /* a rewrite is to begin */
    _Atomic uint64_t base_bytes;   /* of all files after the last rewrite, or at the start */
    _Atomic uint64_t closed_bytes; /* of all files but the one that grows */
};
extern struct aof_state aof_state;

/* Changes the stage, and what follows from it. */
void aof_set_stage(enum aof_stage stage);
/* From now on commands go into this open file; -1: nowhere. */
void aof_log_into(int fd_take, uint64_t size_bytes) REQUIRES(keyspace_lock);
/* Has the manifest of files that are there from an earlier run, if it is not known yet: their names
 * are not free. False, logged, when it is damaged. */
bool aof_read_manifest(void) MUST_CHECK;
/* Adds a new, empty increment to the manifest (in memory), opened; 0 or an errno. */
int aof_add_increment(struct aof_manifest *m, int *fd) MUST_CHECK;
/* Writes a base, in the form that the options want, into the open file, and syncs it; 0 or an
 * errno. In a child as well. */
int aof_write_base(int fd) MUST_CHECK;
/* The log goes off: what there is of it is written. */
void aof_turn_off(void);
/* Ends a rewrite that runs. */
void aof_kill_child(void);
/* While WAITING, with a whole data set: writes the base that is missing now, on the calling thread,
 * instead of a child. False, logged, when that failed. */
bool aof_complete(void) MUST_CHECK REQUIRES(gil) EXCLUDES(keyspace_lock);
/* The cron job of rewrites, and INFO. */
void aof_rewrite_setup(void);

/* appendonly was changed by CONFIG SET: turns the log on or off. False with *error. */
bool aof_apply_enabled(const char **error);
/* appendfsync was changed. */
void aof_apply_sync(void);
/* Writes all databases as commands into the open file, and syncs it; 0, or an errno. In a child as
 * well. */
int aof_write_commands(int fd, int64_t now_ms) REQUIRES_SHARED(keyspace_lock);

#endif
