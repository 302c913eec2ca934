/* A sorted set of small records: each of a fixed size, found by a key of two numbers that it begins
 * with. Records stand side by side in blocks, which a radix tree finds by their keys: close to no
 * memory beside the records, where they come in order. Under the pending entries of streams.
 *
 * Invariants: (1) records are in ascending order within a block and over all blocks, no key is
 * there twice; (2) no block is empty; (3) a block's key in the tree is greater than every record of
 * the block before it and, unless it is the first block, not greater than its own first record (the
 * first one takes all that is less). A full block is split; one into which records were only
 * appended stays full, and the next one begins. Blocks grow and shrink with their content. State:
 * that of its owner. */
#ifndef DS_SORTED_H
#define DS_SORTED_H

#include "ds/radix.h"

struct sorted_key {
    uint64_t high, low;
};

/* Most records of a block: with its head it fills a size that the allocator has, for records of 16
 * and 40 bytes. */
#define SORTED_BLOCK_MAX 63
#define SORTED_RECORD_MAX_BYTES 64

struct sorted {
    struct radix blocks;
    uint64_t count;        /* records */
    uint32_t record_bytes; /* the key first */
    uint32_t unused;
    size_t bytes; /* of the blocks, as the allocator was asked */
};

/* An empty set of records of that size (at most SORTED_RECORD_MAX_BYTES, a multiple of 8, with the
 * key); allocates nothing. */
void sorted_init(struct sorted *s, uint32_t record_bytes);
/* Frees all; the set is empty then. */
void sorted_deinit(struct sorted *s);

/* The record of a key, NULL when it is not there. Records are the owner's to change, but for their
 * keys, and stay where they are until the set changes. */
void *sorted_find(const struct sorted *s, struct sorted_key key);
/* The record of a key, which is put there when it was not (*added; only the key is set then). */
void *sorted_insert(struct sorted *s, struct sorted_key key, bool *added);
/* Takes a record out; false when it was not there. */
bool sorted_remove(struct sorted *s, struct sorted_key key);

/* On a record or nowhere; void after any insertion, and any removal but its own. */
struct sorted_cursor {
    struct radix_cursor block;
    unsigned index;
};
/* The first record; the last one; the first one whose key is not less. */
struct sorted_cursor sorted_first(const struct sorted *s);
struct sorted_cursor sorted_last(const struct sorted *s);
struct sorted_cursor sorted_seek(const struct sorted *s, struct sorted_key key);
static inline bool sorted_cursor_valid(const struct sorted_cursor *c)
{
    return radix_cursor_valid(&c->block);
}
/* The record; the cursor is on one. */
void *sorted_cursor_record(const struct sorted *s, const struct sorted_cursor *c);
/* Goes to the following record. */
void sorted_cursor_next(struct sorted_cursor *c);
/* Takes the record out; the cursor is on the following one then. */
void sorted_remove_at(struct sorted *s, struct sorted_cursor *c);

/* Bytes of the set's own memory, without the struct. */
size_t sorted_memory_bytes(const struct sorted *s);
/* Aborts when an invariant does not hold (tests, DEBUG). Walks everything. */
void sorted_check(const struct sorted *s);

#endif
