/* The directory of the AOF (appenddirname, within `dir`): paths in it, and its manifest on disk.
 * What is written here is synced, with the directory, before it is relied on. Errors are errno
 * values, 0 is success. State: none of its own; the calling thread may wait for the disk. */
#ifndef PERSIST_AOF_DIR_H
#define PERSIST_AOF_DIR_H

#include "base/compiler.h"
#include "persist/aof_manifest.h"

/* The path of a file in the directory, valid until the buffer's next use. */
const char *aof_dir_path(struct buf *path, const char *name);
/* Makes the directory unless it is there, durably. */
int aof_dir_create(void) MUST_CHECK;
/* Syncs the directory's entries. */
int aof_dir_sync(void) MUST_CHECK;
/* Reads the manifest: true, with an empty one where there is none. False, logged, when it is
 * damaged or cannot be read. */
bool aof_dir_read_manifest(struct aof_manifest *m) MUST_CHECK;
/* Puts it in place of the one that is there, in one step. The names of the files that it names are
 * durable before it is; their content is the caller's care. */
int aof_dir_write_manifest(const struct aof_manifest *m) MUST_CHECK;
/* A single AOF, as Redis before 7 had it, becomes the base of a manifest in the directory, where
 * there is no other. False, logged, when that cannot be done. */
bool aof_dir_upgrade(struct aof_manifest *m) MUST_CHECK;
/* Deletes the files of the history, which the manifest forgets; not with aof-disable-auto-gc. */
void aof_dir_delete_history(struct aof_manifest *m);
/* What an earlier process left is made durable: the content of the base and the increments, the
 * manifest, and all their names. It may have been killed before it got to do so. */
int aof_dir_sync_all(const struct aof_manifest *m) MUST_CHECK;
/* Bytes of a file in the directory, 0 when it is not there. */
uint64_t aof_dir_file_bytes(const char *name);
/* Bytes of the base and of all increments. */
uint64_t aof_dir_bytes(const struct aof_manifest *m);
/* A new, empty file in the directory, opened for appending; the descriptor, or -1 with errno. */
int aof_dir_create_file(const char *name) MUST_CHECK;

#endif
