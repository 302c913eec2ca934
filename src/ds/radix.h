/* A radix tree: byte strings of any length, in memcmp order (a proper prefix comes first), each
 * with a value that is a pointer and not NULL. Under streams (nodes and pending entries by ID,
 * groups and consumers by name).
 *
 * A node stands for a byte string: that of its parent, the byte that branches off there, and the
 * node's own prefix (path compression). It has a value when that string is a key. Children are a
 * sorted array of up to 48, or all 256 with a bitmap.
 *
 * Invariants: (1) a node without value has at least two children, so there are fewer than twice as
 * many nodes as keys; (2) children stand in ascending order of their byte, each knows its parent
 * and its byte, so nothing here recurses, however deep the keys make the tree; (3) the empty tree
 * has no node. State: that of its owner. */
#ifndef DS_RADIX_H
#define DS_RADIX_H

#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Longest key: a node's prefix length has 32 bits. */
#define RADIX_MAX_KEY_BYTES ((size_t)UINT32_MAX)

struct radix_node;

struct radix {
    struct radix_node *root; /* NULL when empty */
    uint64_t count;          /* keys */
    uint64_t node_count;
    uint64_t prefix_count; /* nodes whose prefix is not empty */
    size_t bytes;          /* that the nodes asked the allocator for, in its steps of 16 */
};

/* An empty tree; allocates nothing. */
void radix_init(struct radix *r);
/* Frees the nodes; the tree is empty then. `release` (may be NULL) gets every value, in order. */
void radix_deinit(struct radix *r, void (*release)(void *value, void *context), void *context);

/* The value of a key, NULL when it is not there. */
void *radix_find(const struct radix *r, struct slice key);
/* Puts a key (at most RADIX_MAX_KEY_BYTES, copied) in with `value` and returns NULL; where the key
 * is there already it keeps its value, which is returned. */
void *radix_insert(struct radix *r, struct slice key, void *value);
/* Takes a key out and returns its value, NULL when it was not there. */
void *radix_remove(struct radix *r, struct slice key);

/* ---- Walking ---- A cursor is on a key or nowhere. It is void after any insertion or removal. */
struct radix_cursor {
    struct radix_node *node; /* NULL: nowhere */
};

enum radix_seek {
    RADIX_LESS,
    RADIX_LESS_EQUAL, /* the last key that is not greater */
    RADIX_EQUAL,
    RADIX_GREATER_EQUAL, /* the first key that is not less */
    RADIX_GREATER,
};

/* A cursor on the first or last key. */
struct radix_cursor radix_first(const struct radix *r);
struct radix_cursor radix_last(const struct radix *r);
/* A cursor on the key nearest to `key` in the relation asked for. */
struct radix_cursor radix_seek(const struct radix *r, enum radix_seek how, struct slice key);
static inline bool radix_cursor_valid(const struct radix_cursor *c)
{
    return c->node != NULL;
}
/* The following or preceding key; nowhere after the ends. The cursor is on a key. */
void radix_cursor_next(struct radix_cursor *c);
void radix_cursor_prev(struct radix_cursor *c);
/* The value, and another one instead (no cursor becomes void). */
void *radix_cursor_value(const struct radix_cursor *c);
void radix_cursor_set_value(struct radix_cursor *c, void *value);
/* Length of the key; and its bytes, copied to `out`, which holds as many. */
size_t radix_cursor_key_bytes(const struct radix_cursor *c);
void radix_cursor_copy_key(const struct radix_cursor *c, char *out);
/* Takes the cursor's key out and returns its value; the cursor is on the following key then. */
void *radix_remove_at(struct radix *r, struct radix_cursor *c);

/* Bytes of the tree's own memory, without the struct. */
static inline size_t radix_memory_bytes(const struct radix *r)
{
    return r->bytes;
}
/* Aborts when an invariant does not hold (tests, DEBUG). Walks everything. */
void radix_check(const struct radix *r);

#endif
