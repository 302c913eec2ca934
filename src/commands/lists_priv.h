/* What the handlers of the list family share. State: none of its own. */
#ifndef COMMANDS_LISTS_PRIV_H
#define COMMANDS_LISTS_PRIV_H

#include "engine/call.h"
#include "value/list.h"

/* Replies `count` elements as an array, from the one at `index` towards the tail or, backward, the
 * head. They are there. */
void lists_reply_elements(struct call *c, const struct entry *e, uint64_t index, uint64_t count,
                          bool backward) REQUIRES_SHARED(keyspace_lock);

/* Announces that elements of the opened list were removed: `event`, and the end of the key where
 * nothing is left of it (ref->entry is NULL then). */
void lists_removed(struct call *c, struct keyref *ref, const char *event) REQUIRES(keyspace_lock);

/* Reads argument `i` as LEFT or RIGHT; false with a syntax error replied. */
bool lists_arg_end(struct call *c, int i, enum list_end *end) MUST_CHECK;
/* Reads LMPOP's arguments from the number of keys, argument `i`, on; false with the error replied.
 */
bool lists_parse_mpop(struct call *c, int i, enum list_end *end, int64_t *max) MUST_CHECK;

/* Replies the element at an end of the opened list, which is there, and removes it. */
void lists_pop_one(struct call *c, struct keyref *ref, enum list_end end) REQUIRES(keyspace_lock);
/* Replies up to `max` elements from an end of it as an array, and removes them. */
void lists_pop_many(struct call *c, struct keyref *ref, enum list_end end, uint64_t max)
    REQUIRES(keyspace_lock);
/* Replies an element of the opened list, which is there, and moves it to the call's second key; or
 * replies WRONGTYPE. */
void lists_move(struct call *c, struct keyref *source, enum list_end from, enum list_end to)
    REQUIRES(keyspace_lock);

#endif
