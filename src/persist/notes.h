/* Notes: what travels with the data set's files and is no key: which history the data are, and how
 * much of it (the replication above this layer tells it and wants it back). Names and short values.
 *
 *   in an RDB file   AUX fields before the first key, of the data in the file
 *   in an AOF        AUX fields of an RDB base, and lines of their own, of the data up to there:
 *
 *     "#AUX:" name "=" value (" " name "=" value)* CR LF
 *
 * Redis reads over such lines. A line is whole or torn off with the end of the file: notes of one
 * moment never stand in two lines. In a log a note holds while no command follows it: then nobody
 * knows any more how far the data are. So a file can only say too little, never too much.
 *
 *   begin of a load --take ...--> known --a command is replayed: outdate--> nothing known
 *                                   `------the load at the start ends well: accept
 *
 * State: set at boot; the loading thread's otherwise. */
#ifndef PERSIST_NOTES_H
#define PERSIST_NOTES_H

#include "base/buf.h"
#include "keyspace/lock.h"

/* Takes one note; a value is text without blanks, at most NOTES_VALUE_BYTES long. */
typedef void (*notes_put)(const char *name, struct slice value, void *context);
#define NOTES_VALUE_BYTES 128

struct notes_ops {
    /* Puts what is to be noted of the data as they are now. Shared mode; for a child as well. */
    void (*tell)(notes_put put, void *context);
    /* A note of a file that is being loaded; foreign text. False: of no meaning here. */
    bool (*take)(struct slice name, struct slice value);
    /* The data have gone on from what was noted. */
    void (*outdate)(void);
    /* The load at the start has ended well: what was noted is what the data are. Before anybody
     * writes; no lock is held. */
    void (*accept)(void);
};

/* Boot. */
void notes_set_ops(const struct notes_ops *ops);
/* See notes_ops; nothing happens when none are set. */
void notes_tell(notes_put put, void *context) REQUIRES_SHARED(keyspace_lock);
bool notes_take(struct slice name, struct slice value);
void notes_outdate(void);
void notes_accept(void) EXCLUDES(keyspace_lock);

/* The notes as a line of a log; nothing when there are none. */
void notes_format_line(struct buf *out) REQUIRES_SHARED(keyspace_lock);
/* A line of a log, without # and its end: takes the notes that it holds, which are the only ones
 * then. Another kind of line is none of them. */
void notes_take_line(struct slice line);

#endif
