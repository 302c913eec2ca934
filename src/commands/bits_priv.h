/* What the handlers of the bitmap family share. State: none of its own. */
#ifndef COMMANDS_BITS_PRIV_H
#define COMMANDS_BITS_PRIV_H

#include "engine/call.h"

/* Argument `arg` as the position of a bit in a string that may exist. With a `width` other than 0
 * "#n" is the position of the n-th field of that width. False with the error replied. */
bool bits_parse_offset(struct call *c, int arg, unsigned width, uint64_t *offset) MUST_CHECK;
/* Bytes that the opened string must have so that the bit is in it: no less than it has. */
size_t bits_len_for(const struct keyref *ref, uint64_t last_bit) REQUIRES_SHARED(keyspace_lock);

#endif
