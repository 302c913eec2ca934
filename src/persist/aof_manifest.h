/* The manifest of a multi-part AOF: which files it has, in which order. The form is Redis 7's, one
 * line a file:
 *
 *   file <name> seq <number> type <b|i|h>
 *
 * b: the base, at most one, an RDB file or commands; i: increments, commands, to be replayed in
 * order of their numbers behind it; h: history, files that nobody needs and that are to be deleted.
 * Lines that begin with # are comments. Names are quoted where they must be. Ours begin with the
 * comment "# crc64 <16 digits>", the checksum of what follows: a line that is lost, or an i that
 * became an h, would cost data that nobody misses. Without it (Redis writes none) nothing is
 * checked.
 *
 * State: a value of its owner's. The text is foreign: nothing of it is believed. */
#ifndef PERSIST_AOF_MANIFEST_H
#define PERSIST_AOF_MANIFEST_H

#include "base/buf.h"
#include "base/compiler.h"

#include <stdbool.h>
#include <stdint.h>

enum aof_kind { AOF_BASE = 'b', AOF_INCREMENT = 'i', AOF_HISTORY = 'h' };

/* Longest line of a manifest, and most files that one names. */
#define AOF_MANIFEST_LINE_BYTES 1024
#define AOF_MANIFEST_MAX_FILES 65536

struct aof_file {
    char *name; /* without directory */
    int64_t seq;
    enum aof_kind kind;
};

struct aof_manifest {
    struct aof_file *files; /* the base, then increments, then history */
    int count, capacity;
    int64_t base_seq, increment_seq; /* of the newest ones, 0 without */
};

/* Frees what it holds; an empty one is left. */
void aof_manifest_deinit(struct aof_manifest *m);
/* Reads a manifest's text into an empty manifest. False, and why in *error (lives forever) with the
 * line (from 1) in *line, when it is none: *m is empty then. */
bool aof_manifest_parse(struct aof_manifest *m, struct slice text, const char **error,
                        int *line) MUST_CHECK;
/* Appends the text. */
void aof_manifest_format(const struct aof_manifest *m, struct buf *out);
/* A copy into an empty manifest. */
void aof_manifest_copy(struct aof_manifest *to, const struct aof_manifest *from);

/* The base, or NULL. */
const struct aof_file *aof_manifest_base(const struct aof_manifest *m);
/* The i-th increment, NULL behind the last; how many there are. */
const struct aof_file *aof_manifest_increment(const struct aof_manifest *m, int i);
int aof_manifest_increments(const struct aof_manifest *m);
/* Adds a file, behind those of its kind; a base takes the place of the one before, which becomes
 * history. */
void aof_manifest_add(struct aof_manifest *m, struct slice name, int64_t seq, enum aof_kind kind);
/* Makes history of all increments but the last `keep`. */
void aof_manifest_retire(struct aof_manifest *m, int keep);
/* Forgets the history. */
void aof_manifest_forget_history(struct aof_manifest *m);
/* Names of new files, with the next number: "<stem>.<seq>.base.rdb", ".base.aof", ".incr.aof". */
void aof_manifest_next_base(const struct aof_manifest *m, const char *stem, bool rdb,
                            struct buf *name);
void aof_manifest_next_increment(const struct aof_manifest *m, const char *stem, struct buf *name);

#endif
