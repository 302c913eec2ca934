/* Limits of the protocol that users set. State: world. */
#ifndef RESP_LIMITS_H
#define RESP_LIMITS_H

#include "base/option.h"

/* Longest bulk string, and longest string value (proto-max-bulk-len). */
extern int64_t resp_max_bulk_bytes;

extern const struct option resp_options[];

#endif
