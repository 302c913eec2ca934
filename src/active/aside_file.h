/* The files in which peers' data sets stand aside until they are merged (full_sync_receive.h):
 * temp-full-sync-<epoch>-<number>.keys, in the working directory. The append-only file names the
 * one that is being merged, and may say so on the disk for longer than in memory; so no name is
 * used twice: the node's epochs are never used twice, and each numbers its files.
 *
 * State: the last number, atomic. */
#ifndef ACTIVE_ASIDE_FILE_H
#define ACTIVE_ASIDE_FILE_H

#include "base/compiler.h"
#include "base/slice.h"

#include <stdint.h>

/* Of a name, with its NUL. */
#define ASIDE_NAME_BYTES 64

/* A new, empty file and its name: a descriptor for reading and writing, or -1 with errno set. Any
 * thread. */
int aside_file_create(uint64_t epoch, char name[ASIDE_NAME_BYTES]) MUST_CHECK;
/* One of an earlier life, by a name that some file told; likewise. EINVAL: it is no such name. */
int aside_file_open(struct slice told, char name[ASIDE_NAME_BYTES]) MUST_CHECK;
/* It is there, whole, after a crash: 0 or an errno. */
int aside_file_sync(const char *name) MUST_CHECK;
void aside_file_remove(const char *name);
/* Boot, before the first is made: removes those of earlier lives but this one (empty: all). */
void aside_file_remove_others(struct slice kept);

#endif
