/* Entries that have come in below the position of a consumer group (a peer's, stream_insert), or
 * that its position has passed by without anybody being given them (a peer's group did not have
 * them): nobody has got them, and somebody is to. They are pending at a consumer of this name,
 * never delivered, so that files, DUMP and replicas have them like others; it is there while it has
 * some. An entry that is not there any more is none of them. State: as stream_group.h, all X. */
#ifndef VALUE_STREAM_UNDELIVERED_H
#define VALUE_STREAM_UNDELIVERED_H

#include "value/stream.h"
#include "value/stream_group.h"

#define STREAM_UNDELIVERED "(undelivered)"

/* The consumer that has them; NULL when the group has none. */
struct stream_consumer *stream_undelivered(const struct stream_group *g);
/* An entry has come in: it is undelivered for each group that is beyond it, and where it is not
 * pending; true when there is such a group. */
bool stream_undelivered_note(struct radix *groups, struct stream_id id);
/* The group's position was `from`, and what it has been given since is pending: the other entries
 * up to its position are undelivered. */
void stream_undelivered_pass(const struct entry *e, struct stream_group *g, struct stream_id from);
/* The entry with this ID is gone; all before this one are (0-0: all). */
void stream_undelivered_gone(struct radix *groups, struct stream_id id);
void stream_undelivered_trimmed(struct radix *groups, struct stream_id first_id);
/* Some may have gone from the consumer by other ways: it goes when it has none left. */
void stream_undelivered_tidy(struct stream_group *g);

#endif
