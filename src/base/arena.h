/* A bump arena: memory for what lives as long as one turn (argument vectors, keys, calls). Reset
 * keeps the first chunk. State: thread-owned. Never fails (mem.h). */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

struct arena_chunk;

struct arena {
    char *pos, *end;            /* free room of the current chunk */
    struct arena_chunk *chunks; /* current chunk first */
    size_t chunk_bytes;         /* size of an ordinary chunk */
};

/* Prepares an arena whose ordinary chunks have `chunk_bytes`; allocates nothing yet. */
void arena_init(struct arena *a, size_t chunk_bytes);
/* Frees everything. */
void arena_deinit(struct arena *a);
/* Takes back all allocations at once; keeps one ordinary chunk. */
void arena_reset(struct arena *a);
/* The slow way of arena_alloc. */
void *arena_alloc_chunk(struct arena *a, size_t size);

/* `size` bytes (0 is taken as 1), 8-byte aligned, valid until the next reset. Never NULL. */
static inline void *arena_alloc(struct arena *a, size_t size)
{
    assert(size <= SIZE_MAX / 2);
    size = (size + !size + 7) & ~(size_t)7;
    if ((size_t)(a->end - a->pos) < size) {
        return arena_alloc_chunk(a, size);
    }
    void *result = a->pos;
    a->pos += size;
    return result;
}

#endif
