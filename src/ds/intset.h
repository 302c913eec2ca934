/* An intset: a sorted array of distinct integers, as wide as the widest needs. The encoding of
 * small sets of integers. The bytes are those of Redis's intset: u32 width in bytes (2, 4, 8) | u32
 * count | values, little-endian, ascending. State: that of its owner. One allocation of mem.h;
 * verbs that change it may move it. */
#ifndef DS_INTSET_H
#define DS_INTSET_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct intset {
    uint32_t width;
    uint32_t count;
    char values[];
};

/* A new empty set. */
struct intset *intset_create(void);
void intset_destroy(struct intset *s);
struct intset *intset_copy(const struct intset *s);
/* Adds; *added says whether it is new. */
struct intset *intset_add(struct intset *s, int64_t value, bool *added);
/* Removes; *removed says whether it was there. */
struct intset *intset_remove(struct intset *s, int64_t value, bool *removed);
bool intset_contains(const struct intset *s, int64_t value);
/* The value at `index` < count, ascending. */
int64_t intset_at(const struct intset *s, uint32_t index);
/* A random member; the set is not empty. */
int64_t intset_random(const struct intset *s);
/* Bytes of the format (header included). */
size_t intset_bytes(const struct intset *s);
/* Checks foreign bytes: width, count against `size`, ascending order. */
bool intset_validate(const void *bytes, size_t size) MUST_CHECK;

#endif
