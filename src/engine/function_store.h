/* The seam between who has libraries of functions (script/) and who writes and reads whole data
 * sets (persist/, repl/): libraries are part of a data set, though no key. State: the operations
 * are set at boot; what they touch is keyspace state. */
#ifndef ENGINE_FUNCTION_STORE_H
#define ENGINE_FUNCTION_STORE_H

#include "base/buf.h"
#include "keyspace/lock.h"

#include <stdbool.h>
#include <stddef.h>

struct function_store_ops {
    size_t (*count)(void);
    struct slice (*code)(size_t index);
    bool (*load)(struct slice code, bool replace, struct buf *error);
    void (*flush)(void);
    bool (*replace)(const struct slice *codes, size_t count, struct buf *error);
    struct slice (*name)(size_t index);
    bool (*name_of)(struct slice code, struct buf *name);
    bool (*remove)(struct slice name);
};

/* Boot; NULL takes them back. Without them there are no libraries, and none can be loaded. */
void function_store_set_ops(const struct function_store_ops *ops);

/* How many libraries there are, and the source of each (borrowed), always in the same order. For a
 * child as well. */
size_t function_store_count(void) REQUIRES_SHARED(keyspace_lock);
struct slice function_store_code(size_t index) REQUIRES_SHARED(keyspace_lock);
/* The name of each, and the index of the one of that name; SIZE_MAX: there is none. */
struct slice function_store_name(size_t index) REQUIRES_SHARED(keyspace_lock);
size_t function_store_find(struct slice name) REQUIRES_SHARED(keyspace_lock);
/* Appends the name that a source gives itself; false when it gives none. Runs nothing. */
bool function_store_name_of(struct slice code, struct buf *name) MUST_CHECK;
/* Deletes the library of that name; false when there is none. */
bool function_store_remove(struct slice name) REQUIRES(keyspace_lock);
/* Adds a library out of a file, with `replace` in place of one of its name; false with the error's
 * text appended when it does not compile or run, or one of its names is taken. */
bool function_store_load(struct slice code, bool replace, struct buf *error) MUST_CHECK
    REQUIRES(keyspace_lock);
/* Forgets all, before another data set is loaded. FLUSHALL does not: libraries are no keys. */
void function_store_flush(void) REQUIRES(keyspace_lock);

/* ---- a data set aside (keyspace/db.h): the thread's that loads it ---- */

/* Notes the source of a library of it. */
void function_store_note_aside(struct slice code);
/* What was noted takes the place of all libraries; false with the error's text appended, and all as
 * it was, when one cannot be loaded. */
bool function_store_take_aside(struct buf *error) MUST_CHECK REQUIRES(keyspace_lock);
/* What was noted is added to the libraries that are there, with `replace` in place of those of the
 * same name; false as above. */
bool function_store_add_aside(bool replace, struct buf *error) MUST_CHECK REQUIRES(keyspace_lock);
/* Forgets what was noted. */
void function_store_drop_aside(void);

#endif
