/* A set of names of keys, by 128 bits of hash each: which keys of a data set were there. Two names
 * that are taken for one would need some 10^18 keys. It never grows while it is added to, so that
 * adding takes no time. State: that of its owner. */
#ifndef ACTIVE_KNOWN_KEYS_H
#define ACTIVE_KNOWN_KEYS_H

#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

struct known_keys_print {
    uint64_t a, b; /* both 0: free */
};

struct known_keys {
    struct known_keys_print *slots;
    uint64_t count, capacity; /* a power of two */
};

/* Room for so many names: 32 to 64 bytes each, which the kernel gives as they are used. */
void known_keys_init(struct known_keys *k, uint64_t names);
void known_keys_deinit(struct known_keys *k);
/* Adds it; false when it was there. */
bool known_keys_add(struct known_keys *k, int db, struct slice name);
bool known_keys_has(const struct known_keys *k, int db, struct slice name);

#endif
