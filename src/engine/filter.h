/* The seam to filters of requests (module/): who may change what a client, a script or a module has
 * asked for, before its command is found. State: whether there are any is atomic; the rest is set
 * at boot. */
#ifndef ENGINE_FILTER_H
#define ENGINE_FILTER_H

#include "base/arena.h"
#include "engine/session.h"
#include "resp/parser.h"

#include <stdatomic.h>

extern _Atomic bool filter_any;

/* Hot: whether requests are to be filtered. */
static inline bool filter_wanted(void)
{
    return unlikely(atomic_load_explicit(&filter_any, memory_order_relaxed));
}
/* Has the request, at least one argument, changed: its arguments then live in the arena or, where
 * the request came with blobs, in such that are its own; it has one argument at least all the same.
 * `s` is who asks. With the keyspace lock in exclusive mode, or not at all: it is taken then. */
void filter_request(const struct session *s, struct request *request, struct arena *arena);
/* Boot: who does that. NULL: nobody. */
typedef void (*filter_fn)(const struct session *s, struct request *request, struct arena *arena);
void filter_set(filter_fn filter);

#endif
