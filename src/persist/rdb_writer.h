/* Writing RDB bytes, into memory or through it into a file. A fault of the file is kept, and
 * nothing more is written then. State: that of its owner. */
#ifndef PERSIST_RDB_WRITER_H
#define PERSIST_RDB_WRITER_H

#include "base/buf.h"
#include "base/compiler.h"

#include <stdbool.h>
#include <stdint.h>

struct rdb_writer {
    struct buf out;   /* not in the file yet; everything, without a file */
    uint64_t written; /* bytes in the file */
    uint64_t crc;     /* of those, when checksum */
    uint64_t synced;  /* of written, when sync_often */
    int fd;           /* -1: memory only */
    int error;        /* errno of the first write that failed, else 0 */
    bool compress;    /* strings by LZF where that makes them shorter */
    bool checksum;
    bool sync_often; /* the file goes to the disk piece by piece, not all at its end */
};

/* Writes into memory, or with `fd` >= 0 into a file (borrowed). */
void rdb_writer_init(struct rdb_writer *w, int fd, bool compress, bool checksum);
void rdb_writer_deinit(struct rdb_writer *w);
/* Bytes as they are. */
void rdb_write(struct rdb_writer *w, const void *bytes, size_t len);
void rdb_write_byte(struct rdb_writer *w, unsigned byte);
/* A number in the form of lengths; numbers of fixed width, little-endian. */
void rdb_write_len(struct rdb_writer *w, uint64_t len);
void rdb_write_u64(struct rdb_writer *w, uint64_t value);
void rdb_write_double(struct rdb_writer *w, double value);
/* A string in its shortest form. */
void rdb_write_string(struct rdb_writer *w, struct slice s);
/* Hands everything to the file; false when it or an earlier write failed (errno in w->error). */
bool rdb_writer_flush(struct rdb_writer *w) MUST_CHECK;

#endif
