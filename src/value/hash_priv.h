/* What hangs off a hash's entry, for the files of this type only (hash.c, hash_draw.c). State:
 * keyspace. */
#ifndef VALUE_HASH_PRIV_H
#define VALUE_HASH_PRIV_H

#include "ds/pairs.h"
#include "ds/table.h"
#include "value/hash.h"

/* True for packed pairs, false for a table. */
static inline bool hash_is_packed(const struct entry *e)
{
    return entry_encoding(e) == ENCODING_LISTPACK;
}

/* Its pairs, in the entry's own block or in one of their own. */
static inline unsigned char *hash_packed(const struct entry *e)
{
    assert(hash_is_packed(e));
    return e->flags & ENTRY_EXTERNAL ? entry_pointer(e) : (unsigned char *)entry_payload(e);
}

/* Its entries are struct hash_element, without tags. */
static inline struct table *hash_table(const struct entry *e)
{
    assert(entry_encoding(e) == ENCODING_TABLE);
    return entry_pointer(e);
}

#endif
