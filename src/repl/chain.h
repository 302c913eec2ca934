/* A byte stream in memory with one writer and any number of readers, none of whom waits or copies:
 * blocks of fixed size, each filled once, in order, and never changed after.
 *
 *   first -> [start | used | bytes ...] -> [...] -> last (being filled)
 *
 * Invariants: a block's bytes below `used` never change; `next` is set once, when the block is
 * full, before anything is written behind it. A block is kept alive by who points to it: the block
 * before it, the writer (the last one), and readers (where they stand). When the last of those
 * lets go, it is freed, and lets go of the one behind it. So a chain that nobody but its slowest
 * reader needs any more goes away behind him, block by block.
 *
 * State: the writer's side belongs to one writer at a time (for the backlog: the keyspace lock in
 * exclusive mode); `used`, `next` and the counts are atomic; a reader is its owner's. */
#ifndef REPL_CHAIN_H
#define REPL_CHAIN_H

#include "base/compiler.h"
#include "base/slice.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/* Bytes of a block: with its head one size class of the allocator. */
#define CHAIN_BLOCK_BYTES (16 * 1024 - 32)

struct chain_block {
    _Atomic(struct chain_block *) next;
    uint64_t start; /* offset of its first byte in the stream */
    _Atomic uint32_t references;
    _Atomic uint32_t used;
    char bytes[CHAIN_BLOCK_BYTES];
};

/* The writer's end. */
struct chain {
    struct chain_block *last;
    uint64_t end; /* offset behind the last byte */
};

/* A place in the stream; block NULL: none. */
struct chain_reader {
    struct chain_block *block;
    uint64_t position; /* offset of the next byte */
};

/* A chain without bytes, whose next byte has offset `start`. */
void chain_init(struct chain *c, uint64_t start);
/* The writer lets go; readers go on with what is there. */
void chain_deinit(struct chain *c);
void chain_append(struct chain *c, struct slice bytes);

/* Memory of all blocks of all chains. Any thread. */
size_t chain_memory_bytes(void);

/* A reader at the end of the chain. The writer's side. */
void chain_reader_at_end(struct chain_reader *r, const struct chain *c);
/* A reader where another one stands or behind that, at `position`, which is not beyond the end. The
 * caller holds what keeps `from` still. */
void chain_reader_at(struct chain_reader *r, const struct chain_reader *from, uint64_t position);
/* What can be read now, as vectors, at most `max`; their number. */
int chain_reader_vectors(const struct chain_reader *r, struct iovec *vectors, int max);
/* Goes on by `bytes`, of what chain_reader_vectors has shown. */
void chain_reader_advance(struct chain_reader *r, uint64_t bytes);
/* Lets go; harmless on one that is nowhere. */
void chain_reader_drop(struct chain_reader *r);

#endif
