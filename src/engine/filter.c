/* See filter.h. */
#include "engine/filter.h"

_Atomic bool filter_any;
static filter_fn filter;

void filter_request(const struct session *s, struct request *request, struct arena *arena)
{
    if (filter) {
        filter(s, request, arena);
    }
}

void filter_set(filter_fn run)
{
    filter = run;
    atomic_store_explicit(&filter_any, false, memory_order_relaxed);
}
