/* What save.c and its options share. State: world. */
#ifndef PERSIST_SAVE_PRIV_H
#define PERSIST_SAVE_PRIV_H

#include "persist/load.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* After so many seconds, if there were so many changes. */
struct save_point {
    int64_t seconds;
    uint64_t changes;
};

#define SAVE_MAX_POINTS 64

struct save_settings {
    struct save_point points[SAVE_MAX_POINTS];
    size_t point_count;
    char *file_name;
    bool stop_writes;
};
extern struct save_settings save_settings;

/* The RDB file as what is loaded at the start (load.h). */
extern const struct load_source save_load_source;

/* What is in memory is what is on disk: no changes to be saved are left (after loading). */
void save_forget_changes(void);
/* Refuses writes, or lets them in again, as the last result and the settings want it. */
void save_judge_writes(void);

#endif
