/* What the files of the radix tree share: the node. State: none of its own. */
#ifndef DS_RADIX_PRIV_H
#define DS_RADIX_PRIV_H

#include "base/compiler.h"
#include "ds/radix.h"

#include <assert.h>
#include <string.h>

/* Room for children, by shape. Up to 48 they are an array in the order of their
 * bytes. */
static const uint16_t radix_capacities[] = {0, 2, 4, 8, 16, 32, 48, 256};
#define RADIX_SHAPE_FULL 7

/* The block goes on with: the children's pointers (capacity); when full a bitmap of 256, else
 * their bytes (capacity); the prefix. */
struct radix_node {
    struct radix_node *parent;
    void *value; /* NULL: this is no key */
    uint32_t prefix_len;
    uint16_t child_count;
    uint8_t shape;
    uint8_t byte; /* that branches off at the parent */
    struct radix_node *child[];
};

static_assert(sizeof(struct radix_node) == 24, "the head of a node is 24 bytes");

static inline size_t radix_capacity(const struct radix_node *n)
{
    return radix_capacities[n->shape];
}

static inline size_t radix_index_bytes(uint8_t shape)
{
    return shape == RADIX_SHAPE_FULL ? 32 : radix_capacities[shape];
}

static inline unsigned char *radix_sorted_bytes(const struct radix_node *n)
{
    return (unsigned char *)&n->child[radix_capacity(n)];
}

static inline uint64_t *radix_bitmap(const struct radix_node *n)
{
    return (uint64_t *)(uintptr_t)&n->child[radix_capacities[RADIX_SHAPE_FULL]];
}

static inline char *radix_prefix(const struct radix_node *n)
{
    return (char *)&n->child[radix_capacity(n)] + radix_index_bytes(n->shape);
}

static inline struct slice radix_prefix_slice(const struct radix_node *n)
{
    return slice_of(radix_prefix(n), n->prefix_len);
}

/* How many of the sorted children have a byte less than `byte`. */
static inline unsigned radix_sorted_rank(const struct radix_node *n, unsigned byte)
{
    const unsigned char *bytes = radix_sorted_bytes(n);
    unsigned low = 0, high = n->child_count;
    while (low < high) {
        unsigned middle = (low + high) / 2;
        if (bytes[middle] < byte) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* The place of the child that branches off with `byte`, NULL when there is none. */
static inline struct radix_node **radix_find_child(const struct radix_node *n, unsigned char byte)
{
    struct radix_node **children = (struct radix_node **)n->child;
    if (unlikely(n->shape == RADIX_SHAPE_FULL)) {
        return children[byte] ? &children[byte] : NULL;
    }
    unsigned i = radix_sorted_rank(n, byte);
    return i < n->child_count && radix_sorted_bytes(n)[i] == byte ? &children[i] : NULL;
}

/* The child with the smallest byte that is at least `from` (256: none). */
struct radix_node *radix_child_from(const struct radix_node *n, unsigned from);
/* The child with the greatest byte that is less than `limit` (256: of all). */
struct radix_node *radix_child_below(const struct radix_node *n, unsigned limit);

/* How many bytes `a` and `b` begin with in common. */
static inline size_t radix_common_bytes(struct slice a, struct slice b)
{
    size_t shorter = a.len < b.len ? a.len : b.len, i = 0;
    while (i < shorter && a.ptr[i] == b.ptr[i]) {
        i++;
    }
    return i;
}

#endif
