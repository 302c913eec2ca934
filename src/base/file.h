/* What every file of ours needs that is to be whole on the disk: all of a write, and the sync of
 * what stands at a path. Errors are errno values, 0 is success. State: none; the calling thread may
 * wait for the disk. Safe in a signal handler and in a forked child. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include "base/compiler.h"
#include "base/slice.h"

/* Writes all bytes at the descriptor's place: goes on after a short write and after a signal. After
 * a fault some of them may have been written. The descriptor waits (no O_NONBLOCK). */
int file_write_all(int fd, struct slice bytes) MUST_CHECK;
/* Syncs the content of the file at `path`, whoever wrote it. */
int file_sync(const char *path) MUST_CHECK;
/* Syncs the names in the directory at `path`: what was made, renamed and removed in it stays so. */
int file_sync_directory(const char *path) MUST_CHECK;

#endif
