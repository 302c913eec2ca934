/* What the files of sorted sets share. State: none of its own. */
#ifndef VALUE_ZSET_PRIV_H
#define VALUE_ZSET_PRIV_H

#include "ds/table.h"
#include "value/zset.h"

/* A large sorted set. The table's entries are the list's nodes; the list owns them. */
struct zset {
    struct table members;
    struct skiplist list;
};

/* A large sorted set without members. */
struct zset *zset_large_create(void);
/* Frees it with its members. */
void zset_large_destroy(struct zset *z);
/* Initialises a table of nodes by their bytes. */
void zset_index_init(struct table *index);
/* The slot of the node with these bytes, NULL when there is none. */
uintptr_t *zset_index_find(const struct table *index, struct slice member, uint64_t hash);
/* True when a set of that many members, the longest of that length, `bytes` in all, is kept as a
 * listpack. */
bool zset_is_small(uint64_t count, size_t longest_bytes, size_t bytes);
/* Appends a member and its score to a listpack; the order is the caller's business. */
unsigned char *zset_listpack_append(unsigned char *lp, struct slice member, double score);

#endif
