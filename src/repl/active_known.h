/* A set of names of keys, by 128 bits of hash each: which keys of a data set were there. Two names
 * that are taken for one would need some 10^18 keys. It never grows while it is added to, so that
 * adding takes no time. State: that of its owner. */
#ifndef REPL_ACTIVE_KNOWN_H
#define REPL_ACTIVE_KNOWN_H

#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

struct active_known_print {
    uint64_t a, b; /* both 0: free */
};

struct active_known {
    struct active_known_print *slots;
    uint64_t count, capacity; /* a power of two */
};

/* Room for so many names: 32 to 64 bytes each, which the kernel gives as they are used. */
void active_known_init(struct active_known *k, uint64_t names);
void active_known_deinit(struct active_known *k);
/* Adds it; false when it was there. */
bool active_known_add(struct active_known *k, int db, struct slice name);
bool active_known_has(const struct active_known *k, int db, struct slice name);

#endif
