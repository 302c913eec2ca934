/* What puts back that which a call took, for a client that is not there any more. Pure. */
#ifndef ACTIVE_DELIVERY_BACK_H
#define ACTIVE_DELIVERY_BACK_H

#include "base/buf.h"
#include "base/compiler.h"
#include "base/slice.h"

/* Appends the words of those writes ("$5\r\nLPUSH\r\n..."), before each how many words it has, and
 * returns how many words there are: 0 when nothing is to be put back (BLMOVE has put it somewhere;
 * an error). What XREADGROUP gave is claimed for those that nobody was given
 * (value/stream_undelivered.h). `reply` is that of the call, in RESP2 or RESP3. */
int delivery_put_back(int argc, const struct slice *argv, struct slice reply, struct buf *out);
/* Takes the first of those words off the text; false when it does not begin with one. */
bool delivery_back_next(struct slice *text, struct slice *word) MUST_CHECK;
/* How many words the text is; 0: it is none, or not made of them alone. */
uint64_t delivery_back_count(struct slice text);
/* True when the words may be such a write: a peer says so. */
bool delivery_is_back(int argc, const struct slice *argv);

#endif
