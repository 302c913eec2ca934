/* What the files of streams share: the stream itself and a node's master. State: none of its own.
 */
#ifndef VALUE_STREAM_PRIV_H
#define VALUE_STREAM_PRIV_H

#include "ds/listpack.h"
#include "value/stream.h"

#define STREAM_FLAG_DELETED 1
#define STREAM_FLAG_SAME_FIELDS 2

struct stream {
    struct stream_facts facts;
    struct radix nodes;       /* listpacks by master ID */
    struct radix groups;      /* by name */
    struct radix_cursor tail; /* on the last node; nowhere when there is none */
    struct stream_id tail_id; /* its master ID */
};

/* A node's master, taken apart. */
struct stream_master {
    uint64_t count, deleted; /* entries there, and marked as deleted */
    uint64_t field_count;
    unsigned char *first_field; /* or the terminator, when there is none */
    unsigned char *terminator;
};
/* Reads only the numbers. */
void stream_master_read(const unsigned char *lp, struct stream_master *m);
/* Finds the terminator as well. */
void stream_master_read_fields(const unsigned char *lp, struct stream_master *m);

/* The ID of a node's last entry, deleted or not. */
struct stream_id stream_node_last_id(const struct radix_cursor *node);

/* Writes the master's first two numbers. */
unsigned char *stream_set_counts(unsigned char *lp, const struct stream_master *m);
/* Finds the last node, after nodes have come or gone. */
void stream_renew_tail(struct stream *s);

/* stream-node-max-bytes and -entries as they are set; 0: no limit but the caps. */
struct stream_limits {
    int64_t node_bytes, node_entries;
};
extern struct stream_limits stream_limits;

static inline struct stream *stream_of(const struct entry *e)
{
    assert(entry_type(e) == VALUE_STREAM);
    return entry_pointer(e);
}

/* An integer of a node; everything there but fields and values is one. */
static inline int64_t stream_integer(const unsigned char *at)
{
    return listpack_take_integer(&at);
}

#endif
