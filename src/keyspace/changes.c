/* See changes.h. */
#include "keyspace/changes.h"

#include "keyspace/db.h"
#include "keyspace/event.h"

#include <assert.h>
#include <stdatomic.h>

/* A power of two: 2 KiB of counters. */
#define COUNTERS 256

static struct {
    /* Changed under the lock in either mode, read in exclusive mode: the lock orders a reader's
     * beginning before the first write after it. */
    _Atomic uint32_t lookers;
    uint64_t all; /* changes of whole databases */
    uint64_t counters[COUNTERS];
} state;

static uint64_t *counter_of(const struct db *db, uint64_t hash)
{
    return &state.counters[(hash + (uint64_t)db->id) & (COUNTERS - 1)];
}

static void on_change(struct db *db, struct slice name)
{
    keyspace_assert_exclusive();
    if (likely(atomic_load_explicit(&state.lookers, memory_order_relaxed) == 0)) {
        return;
    }
    if (!name.ptr) {
        state.all++;
    } else {
        ++*counter_of(db, hash_slice(name));
    }
}

void changes_setup(void)
{
    event_add_change_listener(on_change);
}

void changes_begin(void)
{
    atomic_fetch_add_explicit(&state.lookers, 1, memory_order_relaxed);
}

void changes_end(void)
{
    uint32_t before = atomic_fetch_sub_explicit(&state.lookers, 1, memory_order_relaxed);
    assert(before > 0);
    (void)before;
}

uint64_t changes_count(const struct db *db, const struct key *key)
{
    return state.all + *counter_of(db, key->hash);
}
