/* What the handlers of the sorted set family share. State: none of its own. */
#ifndef COMMANDS_ZSETS_PRIV_H
#define COMMANDS_ZSETS_PRIV_H

#include "engine/call.h"
#include "value/zset.h"

/* Replies `count` members from the cursor on, with their scores where asked. `nested`: each pair is
 * an array of its own; zsets_nested says so for what RESP3 nests. */
void zsets_reply_members(struct call *c, struct zset_cursor *at, uint64_t count, bool with_scores,
                         bool nested) REQUIRES_SHARED(keyspace_lock);
static inline bool zsets_nested(const struct call *c, bool with_scores)
{
    return with_scores && c->reply->proto >= 3;
}
/* Announces `event` for `changes` members taken away, and deletes the key when none is left. */
/* Peers: the members of these ranks, from `start` to before `stop`, are about to go. Only while
 * propagate_peers. */
void zsets_tell_peers(struct call *c, const struct keyref *ref, uint64_t start, uint64_t stop)
    REQUIRES(keyspace_lock);
void zsets_removed(struct call *c, struct keyref *ref, uint64_t changes, const char *event)
    REQUIRES(keyspace_lock);
/* Makes the sorted draft the value of the k-th key, whatever was there, or deletes that when the
 * draft is empty; replies the number of members. The draft is empty afterwards. A lost draft
 * changes nothing, and zsets_reply_lost is the reply. */
void zsets_reply_lost(struct call *c);
void zsets_store(struct call *c, int k, struct zset_draft *d, const char *event)
    REQUIRES(keyspace_lock);

/* Reads ZMPOP's arguments from the number of keys, argument `i`, on; false with the error replied.
 */
bool zsets_parse_mpop(struct call *c, int i, bool *highest, int64_t *count) MUST_CHECK;
/* Replies and removes the `count` lowest or highest members (at most all) of the opened set, which
 * has some. */
void zsets_pop_members(struct call *c, struct keyref *ref, uint64_t count, bool highest,
                       bool nested) REQUIRES(keyspace_lock);
/* The same of one, whose member and score are two replies. */
void zsets_pop_one(struct call *c, struct keyref *ref, bool highest) REQUIRES(keyspace_lock);

#endif
