/* A whole data set on a link of active replicas (DESIGN.md, "Merge"): records, of one
 * moment of the sender. Numbers are little endian.
 *
 *   8  length of what follows     1  kind, in this order: N ..., H, L ..., K ..., E
 *   N  (before H, any number of them) nothing: the sender is alive
 *   H  1 version (1), 8 clock, n positions: 4 number, then each: 16 node id, 8 epoch, 8 sequence
 *   L  n what is said of a library of functions, a row of it alone (libraries.h)
 *   K  2 database, 8 stamp, 2 handle, 6 sequence, 8 deadline (0: none), 4 length of its name, the
 *      name, n the value as RESTORE takes it, deadlines of members included
 *   E  8 number of K
 *
 * A handle is the place of an origin in H, from 1; stamp, handle and sequence are all 0 for a key
 * without a dot. Decoding believes no length before it is checked, as soon as the kind is there,
 * and shows borrowed bytes. Pure functions. */
#ifndef ACTIVE_FULL_SYNC_RECORD_H
#define ACTIVE_FULL_SYNC_RECORD_H

#include "base/buf.h"
#include "active/frame.h"

#define FULL_SYNC_RECORD_VERSION 1
#define FULL_SYNC_RECORD_HEAD_BYTES 9
/* Of a K's length field. A value may be longer than a frame: nothing but the disk bounds what comes
 * aside. Nothing is allocated for what a length says, only for the bytes that have come. */
#define FULL_SYNC_RECORD_MAX_BYTES (UINT64_C(1) << 36)
/* A library is a text that somebody wrote. */
#define FULL_SYNC_LIBRARY_MAX_BYTES ((size_t)16 << 20)
/* A K before its name. */
#define FULL_SYNC_KEY_HEAD_BYTES 30

struct full_sync_record {
    char kind;              /* 'N', 'H', 'L', 'K' or 'E' */
    uint64_t clock;         /* H */
    struct slice positions; /* H; version_vector_decode */
    struct slice library;   /* L */
    int db;                 /* K */
    uint16_t handle;
    uint64_t sequence, stamp;
    int64_t deadline_ms;
    struct slice key, payload;
    uint64_t keys; /* E */
};

/* Appends a record: the fields of its kind. */
void full_sync_record_put(struct buf *out, const struct full_sync_record *r);
/* The first record in `data`; as frame_next. */
enum frame_result full_sync_record_next(struct slice data, struct full_sync_record *r,
                                        size_t *consumed, const char **error);

#endif
