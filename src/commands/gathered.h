/* Bulk strings gathered for a reply whose head is known only later: copies, as they go over the
 * wire, in blobs that the reply then refers to. State: the owner's. */
#ifndef COMMANDS_GATHERED_H
#define COMMANDS_GATHERED_H

#include "base/compiler.h"
#include "resp/reply.h"
#include "value/blob.h"

#include <stdbool.h>

/* All zero is an empty one. */
struct gathered {
    struct blob **blobs;
    size_t blob_count, blob_capacity;
    uint64_t count; /* strings */
};

/* Adds a string; false when there is no memory, with nothing added. */
bool gathered_add(struct gathered *g, struct slice text) MUST_CHECK;
/* The same of bytes that are RESP already; they do not count as a string. */
bool gathered_add_raw(struct gathered *g, struct slice bytes) MUST_CHECK;
/* Replies the strings, without a head. */
void gathered_reply(struct reply *r, const struct gathered *g);
/* Frees all; it is empty then. */
void gathered_deinit(struct gathered *g);

#endif
