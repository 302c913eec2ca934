/* Keys of which this node has seen that others may see them differently, and for which it will tell
 * its state: when the key has had no further conflict for a moment, so that a burst gets one
 * answer, or after a second. States have a pace, for those of many keys at once (MERGE) would push
 * one another out of the logs before anybody has read them. They are kept in the files: a node that
 * forgot one in a crash would leave the key different for ever. State: keyspace (exclusive mode).
 */
#ifndef ACTIVE_CONFLICTS_H
#define ACTIVE_CONFLICTS_H

#include "base/buf.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONFLICT_QUIET_MS 100
#define CONFLICT_MAX_MS 1000
/* Who has lost something waits for one who has it: so long after all have heard of it, and so long
 * at most. */
#define CONFLICT_PATIENCE_MS 3000
#define CONFLICT_WAIT_MAX_MS 60000
/* Who has a state that covers what is not here yet waits for that so long. */
#define CONFLICT_CAUSES_MS 10000

struct conflicts;

#define CONFLICT_PACE_MS 100

/* Without any; so many bytes of states are told each tenth of a second (0: no pace). `seed` is
 * another one on each node: states that cross one another again and again, each of which finds that
 * the other node has let go of something, would not end by themselves. */
struct conflicts *conflicts_create(size_t pace_bytes, uint64_t seed);
/* Another pace from now on. What was told and is not paid for takes no longer by a worse one, and
 * less time by a better one: a large state that was told while readers were late does not hold up
 * others for longer than they are. */
void conflicts_set_pace(struct conflicts *d, size_t pace_bytes, int64_t now_ms);
/* Who reads has had all but little of what was told: for so long at most (CONFLICT_MAX_MS) what is
 * not paid for holds up others, though it be a state that is larger than all that is kept. */
void conflicts_was_read(struct conflicts *d);
/* Frees it and nulls the caller's pointer. */
void conflicts_destroy(struct conflicts **d);
/* Hears of each change: a key is in conflict from now on (or by another state), or not any more. */
typedef void (*conflicts_changed_fn)(int db, struct slice key, uint64_t state_stamp, bool pending,
                                     void *context);
void conflicts_watch(struct conflicts *d, conflicts_changed_fn changed, void *context);
/* A conflict of the key, at a time that never goes back. `state_stamp`: of a state that others may
 * have taken and this node could not; else 0. */
void conflicts_note(struct conflicts *d, int db, struct slice key, uint64_t state_stamp,
                    int64_t now_ms);
/* The same, of a key that somebody has with the same content, as far as is known: a digest will do
 * to tell him, unless there is another conflict of it. */
void conflicts_note_same(struct conflicts *d, int db, struct slice key, int64_t now_ms);
/* The key, which is in conflict, may have lost something by the write with this stamp that somebody
 * else has: he is to be heard first, who tells it when he has seen that write. */
void conflicts_wait(struct conflicts *d, int db, struct slice key, uint64_t stamp, int64_t now_ms);
/* What settles the key's conflict is here, and waits for something that is to come: its state is
 * not told for a while (CONFLICT_CAUSES_MS). Once a conflict. */
void conflicts_put_off(struct conflicts *d, int db, struct slice key, int64_t now_ms);
/* It cannot settle it, as has turned out. */
void conflicts_put_off_no_more(struct conflicts *d, int db, struct slice key, int64_t now_ms);
/* All nodes have seen the writes up to this stamp (origins_stable). */
void conflicts_all_seen(struct conflicts *d, uint64_t stamp);
/* The content is exact again from a state or whole write with this stamp on: nobody can see the key
 * differently, unless he begins from a later state. */
void conflicts_resolve(struct conflicts *d, int db, struct slice key, uint64_t stamp);
bool conflicts_has(const struct conflicts *d, int db, struct slice key);
/* The state's stamp that was noted for a pending one; 0 without. */
uint64_t conflicts_stamp(const struct conflicts *d, int db, struct slice key);
size_t conflicts_count(const struct conflicts *d);
/* Takes a key out whose time has come: its state is to be told now; *same: or its digest. False
 * when there is none, or the pace forbids one. The name goes to `key`, which is cleared first. */
bool conflicts_take_due(struct conflicts *d, int64_t now_ms, int *db, struct buf *key, bool *same);
/* A state of so many bytes was told. */
void conflicts_told(struct conflicts *d, size_t bytes, int64_t now_ms);
typedef void (*conflicts_visit_fn)(int db, struct slice key, void *context);
/* All pending ones, in no order; `visit` changes nothing here. */
void conflicts_each(const struct conflicts *d, conflicts_visit_fn visit, void *context);

#endif
