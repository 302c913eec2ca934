/* See chain.h. */
#include "repl/chain.h"

#include "base/mem.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

static_assert(sizeof(struct chain_block) <= 16 * 1024, "one size class");

static _Atomic size_t block_count;

static struct chain_block *create_block(uint64_t start, uint32_t references)
{
    struct chain_block *b = mem_alloc(sizeof(*b));
    atomic_init(&b->next, NULL);
    atomic_init(&b->references, references);
    atomic_init(&b->used, 0);
    b->start = start;
    atomic_fetch_add_explicit(&block_count, 1, memory_order_relaxed);
    return b;
}

static void acquire(struct chain_block *b)
{
    atomic_fetch_add_explicit(&b->references, 1, memory_order_relaxed);
}

static void release(struct chain_block *b)
{
    /* Acquire and release: who frees it comes after all who have read it. */
    while (b && atomic_fetch_sub_explicit(&b->references, 1, memory_order_acq_rel) == 1) {
        struct chain_block *next = atomic_load_explicit(&b->next, memory_order_relaxed);
        mem_free(b);
        atomic_fetch_sub_explicit(&block_count, 1, memory_order_relaxed);
        b = next;
    }
}

size_t chain_memory_bytes(void)
{
    return atomic_load_explicit(&block_count, memory_order_relaxed) * sizeof(struct chain_block);
}

void chain_init(struct chain *c, uint64_t start)
{
    c->last = create_block(start, 1);
    c->end = start;
}

void chain_deinit(struct chain *c)
{
    release(c->last);
    c->last = NULL;
}

/* A block behind the last one, which is full. */
static void add_block(struct chain *c)
{
    struct chain_block *full = c->last;
    c->last = create_block(c->end, 2); /* the block before, and the writer */
    /* Release: who follows the pointer sees the block made. */
    atomic_store_explicit(&full->next, c->last, memory_order_release);
    release(full);
}

void chain_append(struct chain *c, struct slice bytes)
{
    while (bytes.len > 0) {
        uint32_t used = atomic_load_explicit(&c->last->used, memory_order_relaxed);
        if (used == CHAIN_BLOCK_BYTES) {
            add_block(c);
            used = 0;
        }
        size_t room = CHAIN_BLOCK_BYTES - used, take = bytes.len < room ? bytes.len : room;
        memcpy(c->last->bytes + used, bytes.ptr, take);
        /* Release: pairs with the load in `readable`; who sees the count sees the bytes. */
        atomic_store_explicit(&c->last->used, used + (uint32_t)take, memory_order_release);
        c->end += take;
        bytes = slice_of(bytes.ptr + take, bytes.len - take);
    }
}

void chain_reader_at_end(struct chain_reader *r, const struct chain *c)
{
    r->block = c->last;
    r->position = c->end;
    acquire(r->block);
}

void chain_reader_at(struct chain_reader *r, const struct chain_reader *from, uint64_t position)
{
    struct chain_block *b = from->block;
    assert(position >= b->start);
    while (position > b->start + CHAIN_BLOCK_BYTES) {
        b = atomic_load_explicit(&b->next, memory_order_acquire);
        assert(b);
    }
    acquire(b);
    r->block = b;
    r->position = position;
}

static uint32_t readable(const struct chain_block *b)
{
    return atomic_load_explicit(&b->used, memory_order_acquire);
}

int chain_reader_vectors(const struct chain_reader *r, struct iovec *vectors, int max)
{
    int count = 0;
    struct chain_block *b = r->block;
    uint64_t skip = r->position - b->start;
    while (b && count < max) {
        uint32_t used = readable(b);
        assert(skip <= used);
        if (used > skip) {
            vectors[count++] = (struct iovec){b->bytes + skip, used - (size_t)skip};
        }
        if (used < CHAIN_BLOCK_BYTES) {
            break;
        }
        b = atomic_load_explicit(&b->next, memory_order_acquire);
        skip = 0;
    }
    return count;
}

void chain_reader_advance(struct chain_reader *r, uint64_t bytes)
{
    r->position += bytes;
    while (r->position - r->block->start >= CHAIN_BLOCK_BYTES) {
        struct chain_block *full = r->block;
        struct chain_block *next = atomic_load_explicit(&full->next, memory_order_acquire);
        if (!next) {
            assert(r->position - full->start == CHAIN_BLOCK_BYTES);
            return; /* stands at the end of a full block that has none behind it yet */
        }
        acquire(next);
        r->block = next;
        release(full);
    }
}

void chain_reader_drop(struct chain_reader *r)
{
    release(r->block);
    r->block = NULL;
}
