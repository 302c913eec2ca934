/* Strings as runs of bytes that commands change in place: what the bitmap and the HyperLogLog
 * commands share. State: none of its own. */
#ifndef COMMANDS_STRING_BYTES_H
#define COMMANDS_STRING_BYTES_H

#include "engine/call.h"

/* Makes the opened string `len` bytes long (zeros beyond its old end; a missing key is created) and
 * writable, and returns where its bytes are, valid until the database is changed. NULL, with an
 * error replied and nothing changed, when there is no memory. Announces nothing but what db_put
 * does. */
uint8_t *string_bytes_open(struct call *c, struct keyref *ref, size_t len) REQUIRES(keyspace_lock);
/* Makes the blob the value of the opened key, whatever was there; without expiry, and never as an
 * integer. */
void string_bytes_put(struct keyref *ref, struct blob *blob_take) REQUIRES(keyspace_lock);
/* Replies that there is no memory for a string of the length asked for. */
void string_bytes_reply_no_memory(struct call *c);

#endif
