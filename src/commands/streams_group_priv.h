/* What the command files of stream consumer groups share. */
#ifndef COMMANDS_STREAMS_GROUP_PRIV_H
#define COMMANDS_STREAMS_GROUP_PRIV_H

#include "engine/call.h"
#include "engine/propagate.h"
#include "value/stream.h"
#include "value/stream_group.h"

#include <limits.h>

/* The consumer of argument `i` as one that asks for entries: made when it is not there (with its
 * event), and seen now. NULL with the error replied when the name is too long. */
struct stream_consumer *streams_asking_consumer(struct call *c, const struct keyref *ref,
                                                struct stream_group *g, int i)
    REQUIRES(keyspace_lock);
/* What a consumer was given, on its way to the logs (engine/propagate.h) as XCLAIMs that give it
 * the same: entries that follow one another with the same time and number of deliveries share one.
 * Only while propagate_on, in a unit. */
struct streams_gift {
    struct slice key, group, consumer;
    const struct stream_group *g;
    struct propagate_draft ids; /* of the next XCLAIM */
    int64_t delivered_ms, deliveries;
};
/* One entry more: the pending one as it is now. */
void streams_gift_add(struct call *c, struct streams_gift *gift, const struct stream_pending *p)
    REQUIRES(keyspace_lock);
/* Sends what was not yet sent. */
void streams_gift_end(struct call *c, struct streams_gift *gift) REQUIRES(keyspace_lock);
/* Tells peers of entries that were given and need not be acknowledged, the gift's `ids`: as if they
 * had been at once. Of a position alone a peer could not know which of those before it were given,
 * and which had not come there yet. Empties `ids`. */
void streams_tell_peers_read(struct call *c, struct streams_gift *read) REQUIRES(keyspace_lock);
/* Propagates that a consumer is there, and how far the group has read; peers have had the latter
 * from what it was given, if it was. */
void streams_propagate_consumer(struct call *c, struct slice key, const struct stream_group *g,
                                struct slice consumer) REQUIRES(keyspace_lock);
void streams_propagate_position(struct call *c, struct slice key, const struct stream_group *g,
                                bool peers_know) REQUIRES(keyspace_lock);
/* Propagates that an entry is pending no more. */
void streams_propagate_lost(struct call *c, struct slice key, struct slice group,
                            struct stream_id id) REQUIRES(keyspace_lock);

/* What peers are told of a group (streams_peers.c): it has read up to last_id at least; the
 * consumer (NULL: nobody) is there and has the entries of `ids` (NULL: none) pending. Only while
 * propagate_peers. */
struct streams_pending_told {
    struct slice key, group;
    const struct slice *consumer;
    struct stream_id last_id;
    int64_t delivered_ms, deliveries;
};
void streams_tell_peers_pending(struct call *c, const struct streams_pending_told *told,
                                const struct propagate_draft *ids) REQUIRES(keyspace_lock);

/* Tells of a change to groups, which is none to the key: WATCH and tracking do not care. */
void streams_group_changed(struct call *c, const struct keyref *ref, const char *event)
    REQUIRES(keyspace_lock);
/* True when argument `i` may be the name of a group or consumer; else the error is replied. */
bool streams_arg_name(struct call *c, int i) MUST_CHECK;
/* Replies "-NOGROUP No such key ... or consumer group ...", `where` behind it. */
void streams_reply_no_group(struct call *c, struct slice key, struct slice group,
                            const char *where);
/* Replies "-NOGROUP No such consumer group ... for key name ...". */
void streams_reply_no_such_group(struct call *c, struct slice group, struct slice key);
/* The pending entry's age, never negative, as replies show it. */
static inline int64_t streams_idle_ms(const struct call *c, int64_t then_ms)
{
    return c->now_ms > then_ms ? c->now_ms - then_ms : 0;
}
/* True when it was delivered at least `min_idle_ms` (not negative) ago. */
static inline bool streams_is_idle(const struct call *c, int64_t delivered_ms, int64_t min_idle_ms)
{
    return min_idle_ms == 0 || c->now_ms - delivered_ms >= min_idle_ms;
}

/* Finds the entries of ascending IDs in one walk, as long as they are close to one another. Zero to
 * start with; void after a change of the stream's entries. */
struct streams_follower {
    struct stream_cursor walk;
    bool started, ended;
};
/* True when the entry is there: the walk is on it. No later ID is less. */
bool streams_follow(struct streams_follower *f, const struct entry *e, struct stream_id id);

/* How much of a name an error repeats (longer ones would make replies as large as requests). */
#define STREAMS_ECHO_MAX (64 * 1024)
static inline int streams_echo_len(struct slice name)
{
    return name.len > STREAMS_ECHO_MAX ? STREAMS_ECHO_MAX : (int)name.len;
}

#endif
