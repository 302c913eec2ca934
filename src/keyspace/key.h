/* A key as a request names it: borrowed bytes and their hash, computed once, before the lock. */
#ifndef KEYSPACE_KEY_H
#define KEYSPACE_KEY_H

#include "base/hash.h"
#include "base/slice.h"

struct key {
    struct slice name;
    uint64_t hash;
};

static inline struct key key_of(struct slice name)
{
    return (struct key){name, hash_slice(name)};
}

#endif
