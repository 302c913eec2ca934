/* Consumer groups of streams. A group knows how far it has read (last_id), which entries were
 * delivered and not acknowledged (pending), and to which consumer each went.
 *
 * Invariants: (1) a pending entry is in its group's set, and its ID in that of exactly one
 * consumer, which is one of this group's; (2) neither set holds others, so the group's count is the
 * sum of the consumers'; (3) nothing here knows the stream's entries: a pending one may be deleted
 * there. Groups and consumers stand in the order of their names, pending entries in that of their
 * IDs. State: keyspace; what changes needs exclusive mode (marked X). */
#ifndef VALUE_STREAM_GROUP_H
#define VALUE_STREAM_GROUP_H

#include "base/compiler.h"
#include "base/slice.h"
#include "ds/radix.h"
#include "ds/sorted.h"
#include "value/stream_id.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Longest name of a group or consumer. */
#define STREAM_NAME_MAX_BYTES ((size_t)512 << 20)
/* entries_read of a group that cannot tell. */
#define STREAM_READ_UNKNOWN ((int64_t)-1)
/* active_ms of a consumer that never got an entry. */
#define STREAM_NEVER ((int64_t)-1)

struct stream_consumer {
    int64_t seen_ms;       /* last attempt to get entries */
    int64_t active_ms;     /* last one that got some; STREAM_NEVER */
    struct sorted pending; /* IDs */
    size_t name_len;
    char name[];
};

/* A record of the group's set: stays where it is until an entry becomes pending or is no more. */
struct stream_pending {
    struct stream_id id; /* the set's key */
    struct stream_consumer *consumer;
    int64_t delivered_ms; /* last delivery */
    int64_t deliveries;   /* 0 .. INT64_MAX, where it stays */
};

struct stream_group {
    struct stream_id last_id; /* last delivered */
    int64_t entries_read;     /* or STREAM_READ_UNKNOWN */
    struct sorted pending;    /* struct stream_pending */
    struct radix consumers;
    size_t name_len;
    char name[];
};

static inline struct slice stream_group_name(const struct stream_group *g)
{
    return slice_of(g->name, g->name_len);
}
static inline struct slice stream_consumer_name(const struct stream_consumer *c)
{
    return slice_of(c->name, c->name_len);
}

/* ---- Groups, in the tree that belongs to the stream ---- */

/* The group of that name, or NULL. */
struct stream_group *stream_group_find(const struct radix *groups, struct slice name);
/* A new group, which has read up to `last_id`; NULL when the name is taken. X */
struct stream_group *stream_group_add(struct radix *groups, struct slice name,
                                      struct stream_id last_id, int64_t entries_read);
/* Takes a group out, which is the caller's then; NULL when there is none of that name. X */
struct stream_group *stream_group_take(struct radix *groups, struct slice name);
/* Puts one that was taken out into another tree, which has none of its name. X */
void stream_group_put(struct radix *groups, struct stream_group *g_take);
/* The group that a cursor of the tree is on. */
static inline struct stream_group *stream_group_at(const struct radix_cursor *at)
{
    return radix_cursor_value(at);
}

/* ---- Consumers ---- */

/* The consumer of that name, or NULL. */
struct stream_consumer *stream_consumer_find(const struct stream_group *g, struct slice name);
/* A new consumer, seen at `now_ms` and never active; NULL when the name is taken. X */
struct stream_consumer *stream_consumer_add(struct stream_group *g, struct slice name,
                                            int64_t now_ms);
/* Removes and frees a consumer of this group with its pending entries; returns their number. X */
uint64_t stream_consumer_remove(struct stream_group *g, struct stream_consumer *c);
/* The consumer that a cursor of the group's `consumers` is on. */
static inline struct stream_consumer *stream_consumer_at(const struct radix_cursor *at)
{
    return radix_cursor_value(at);
}

/* ---- Pending entries ---- */

/* The pending entry of that ID, or NULL. */
struct stream_pending *stream_pending_find(const struct stream_group *g, struct stream_id id);
/* On a pending entry of a group or of one of its consumers, or nowhere. Void when an entry becomes
 * pending or is no more, other than through it; a consumer's also when one is moved. */
struct stream_pending_cursor {
    const struct stream_group *group;
    const struct sorted *set;
    struct sorted_cursor at;
};
/* On the first one of the group, or only of a consumer (NULL: all), whose ID is not less than `id`.
 */
struct stream_pending_cursor stream_pending_seek(const struct stream_group *g,
                                                 const struct stream_consumer *only,
                                                 struct stream_id id);
/* On the group's last one. */
struct stream_pending_cursor stream_pending_last(const struct stream_group *g);
static inline bool stream_pending_valid(const struct stream_pending_cursor *at)
{
    return sorted_cursor_valid(&at->at);
}
static inline void stream_pending_next(struct stream_pending_cursor *at)
{
    sorted_cursor_next(&at->at);
}
/* The pending entry that the cursor is on. */
struct stream_pending *stream_pending_at(const struct stream_pending_cursor *at);
/* An entry goes to `c`, delivered at `now_ms`: pending there with `deliveries`, also where it was
 * pending before, whosever it was. X */
struct stream_pending *stream_pending_give(struct stream_group *g, struct stream_consumer *c,
                                           struct stream_id id, int64_t now_ms, int64_t deliveries);
/* Another consumer of the group has it from now on. X */
void stream_pending_move(struct stream_pending *p, struct stream_consumer *to);
/* One more delivery. X */
void stream_pending_count_delivery(struct stream_pending *p);
/* Takes an entry out; false when it is not pending. X */
bool stream_pending_remove(struct stream_group *g, struct stream_id id);
/* Takes the entry out that a cursor of this group (not of a consumer) is on, which goes to the
 * following one. X */
void stream_pending_remove_at(struct stream_group *g, struct stream_pending_cursor *at);

/* ---- What the stream's operations need (value/type.h) ---- */

/* Frees all groups; the tree is empty then. The stream is unlinked, or X. */
void stream_groups_destroy(struct radix *groups);
/* Deep copies of all groups into an empty tree. */
void stream_groups_copy(const struct radix *groups, struct radix *copy);
/* Bytes of all that belongs to the groups, looking at `samples` of each kind (0 = all). */
size_t stream_groups_memory(const struct radix *groups, size_t samples);
/* Allocations to free. */
size_t stream_groups_free_effort(const struct radix *groups);
/* Adds the groups' part to a stream's digest: names, positions and pending entries with their
 * times; not when a consumer was seen. Nothing where there is no group. */
void stream_groups_digest(const struct radix *groups, uint8_t digest[20]);

/* Aborts when an invariant does not hold (tests, DEBUG). Walks everything. */
void stream_groups_check(const struct radix *groups);

#endif
