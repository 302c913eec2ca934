/* Payloads of DUMP: a value with the version of its form and a checksum (dump.c). State: the
 * thread's, one value that is kept. */
#ifndef PERSIST_PAYLOAD_H
#define PERSIST_PAYLOAD_H

#include "base/buf.h"
#include "value/entry.h"

enum payload_read {
    PAYLOAD_FINE,
    PAYLOAD_FOREIGN, /* too new a version, or not the checksum */
    PAYLOAD_DAMAGED, /* nothing that a value of ours could be */
};

/* Checksums, of RDB files as well, are taken for right (DEBUG SET-SKIP-CHECKSUM-VALIDATION). World
 * state. */
extern bool payload_trusts_checksums;

/* Appends the payload of a value. The keyspace lock is held, or the entry is in no database. */
void payload_write(struct buf *out, const struct entry *e);
/* Makes a new entry without expiry under `key` of a payload, of which nothing is believed. *e is
 * NULL unless it is fine. */
enum payload_read payload_read(struct slice payload, struct slice key, struct entry **e) MUST_CHECK;
/* The same of a payload's part before version and checksum. */
enum payload_read payload_read_value(struct slice bytes, struct slice key,
                                     struct entry **e) MUST_CHECK;
/* Whether payload_read would make an entry. The first one that is found fine is kept, for the next
 * payload_read of these very bytes under this key on this thread: code of modules that reads their
 * values runs once. payload_drop ends that, before the bytes go; nothing to do when none is kept.
 */
bool payload_check(struct slice payload, struct slice key) MUST_CHECK;
void payload_drop(void);

#endif
