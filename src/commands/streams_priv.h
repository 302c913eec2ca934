/* What the files of the stream family share. State: none of its own. */
#ifndef COMMANDS_STREAMS_PRIV_H
#define COMMANDS_STREAMS_PRIV_H

#include "engine/call.h"
#include "engine/propagate.h"
#include "engine/session.h"
#include "value/stream.h"

struct stream_group;

/* Argument `i` as an ID ("ms-seq", or "ms" with `missing_seq`); false with the error replied. */
bool streams_arg_id(struct call *c, int i, uint64_t missing_seq, struct stream_id *id) MUST_CHECK;
/* Argument `i` as the timeout of BLOCK; false with the error replied. Scripts may not ask for it:
 * unlike other commands that wait, which only never do in them, these are refused, as in Redis. */
bool streams_arg_block(struct call *c, int i, int64_t *timeout_ms) MUST_CHECK;
/* Replies that an ID is none. */
void streams_reply_bad_id(struct call *c);
/* An argument as a bound of a range: "-", "+", an ID, or "(" before an ID, which is not in the
 * range then. Incomplete IDs are taken as the lowest (start) or highest (end) there is. False with
 * the error replied. */
bool streams_arg_start(struct call *c, int i, struct stream_id *id) MUST_CHECK;
bool streams_arg_end(struct call *c, int i, struct stream_id *id) MUST_CHECK;

/* Replies an ID as a bulk string. */
void streams_reply_id(struct reply *r, struct stream_id id);
/* Replies the entry the walk is on: its ID and its pairs. */
void streams_reply_entry(struct reply *r, struct stream_cursor *entry);
/* Replies an array of the next `count` entries of a walk (0: all); returns how many there were. */
uint64_t streams_reply_entries(struct reply *r, struct stream_cursor *walk, uint64_t count);
/* Replies the first or last entry of a stream, null when it has none. */
void streams_reply_edge(struct reply *r, const struct entry *e, bool last);

/* ---- for peers (streams_peers.c) ---- */

/* Whether this server is an active replica, or repeats what one may have told: then groups may have
 * entries that nobody was given (value/stream_undelivered.h). Only an active replica finds new
 * ones; who repeats is told of them. */
static inline bool streams_are_shared(const struct call *c)
{
    return unlikely(stream_id_tag != 0 || c->session->internal);
}
/* An entry that was added, where its ID belongs. Only while propagate_peers. */
void streams_tell_peers_entry(struct call *c, struct slice key, struct stream_id id,
                              const struct slice *words, int count) REQUIRES(keyspace_lock);
/* An entry that was added and told as XADD: tells the other logs which groups have it undelivered,
 * as XCLAIM. Only while propagate_on. */
void streams_propagate_undelivered(struct call *c, const struct keyref *ref, struct stream_id id)
    REQUIRES(keyspace_lock);
/* Whoever waits for entries of the group is to look again when it has undelivered ones. */
void streams_wake_for_undelivered(const struct keyref *ref, const struct stream_group *g)
    REQUIRES(keyspace_lock);
/* IDs of what a command has taken out, which is all that peers are told of it: "name key [group] id
 * ...". Nothing while propagate_peers is false. */
struct streams_gone {
    struct slice name, key;
    const struct slice *group; /* NULL: none */
    struct propagate_draft draft;
};
void streams_gone_add(struct streams_gone *gone, struct stream_id id);
void streams_gone_end(struct call *c, struct streams_gone *gone) REQUIRES(keyspace_lock);

#endif
