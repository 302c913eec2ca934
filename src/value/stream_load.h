/* Making a stream of nodes that come from outside, as they stand in files and payloads: every
 * length, number and ID is checked before anything is believed. State: that of its owner; the
 * stream is in no database yet. */
#ifndef VALUE_STREAM_LOAD_H
#define VALUE_STREAM_LOAD_H

#include "value/stream.h"

/* Puts a copy of a node behind those that are there; false when its bytes are no node, or one whose
 * entries do not all stand behind what is there. Deleted entries may stand in any order: Redis
 * before 7.2 lets XSETID go back behind them. The stream's length, first_id and last_id follow.
 */
bool stream_load_node(struct entry *e, struct stream_id master, struct slice listpack) MUST_CHECK;
/* After the last node: the facts that come from outside too. False when they contradict the
 * entries. */
bool stream_load_facts(struct entry *e, uint64_t length, struct stream_id last_id,
                       struct stream_id max_deleted_id, uint64_t entries_added) MUST_CHECK;

#endif
