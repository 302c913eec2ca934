/* See arena.h. A request too large for an ordinary chunk gets a chunk of its own, which a reset
 * frees; it stands behind the current chunk, whose free room stays in use. */
#include "base/arena.h"

#include "base/mem.h"

#include <assert.h>

struct arena_chunk {
    struct arena_chunk *next;
    size_t bytes;
    char data[];
};

void arena_init(struct arena *a, size_t chunk_bytes)
{
    assert(chunk_bytes >= 64);
    *a = (struct arena){.chunk_bytes = chunk_bytes};
}

void *arena_alloc_chunk(struct arena *a, size_t size)
{
    size_t bytes = size > a->chunk_bytes ? size : a->chunk_bytes;
    struct arena_chunk *chunk = mem_alloc(sizeof(*chunk) + bytes);
    chunk->bytes = bytes;
    if (size > a->chunk_bytes && a->chunks) {
        chunk->next = a->chunks->next;
        a->chunks->next = chunk;
        return chunk->data;
    }
    chunk->next = a->chunks;
    a->chunks = chunk;
    a->pos = chunk->data + size;
    a->end = chunk->data + bytes;
    return chunk->data;
}

void arena_reset(struct arena *a)
{
    struct arena_chunk *kept = NULL;
    while (a->chunks) {
        struct arena_chunk *chunk = a->chunks;
        a->chunks = chunk->next;
        if (!kept && chunk->bytes == a->chunk_bytes) {
            kept = chunk;
        } else {
            mem_free(chunk);
        }
    }
    a->chunks = kept;
    a->pos = kept ? kept->data : NULL;
    a->end = kept ? kept->data + kept->bytes : NULL;
    if (kept) {
        kept->next = NULL;
    }
}

void arena_deinit(struct arena *a)
{
    while (a->chunks) {
        struct arena_chunk *chunk = a->chunks;
        a->chunks = chunk->next;
        mem_free(chunk);
    }
    a->pos = a->end = NULL;
}
