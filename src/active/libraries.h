/* Libraries of functions in a group: of each name the last word stands (its loading, its deletion,
 * the deletion of all), in the one order of writes, however late it comes.
 *
 *   name -> [ dot of its last word, gone or there ]     and the last word about all
 *
 * Names of functions are unique over all libraries. Where two libraries that were loaded on two
 * sides of a cut have a function in common, the later one is loaded and the other is *hidden*: kept
 * here, with its source, and back when the later one goes. So which are loaded is a function of the
 * words that are known, like all else (DESIGN.md): from the last one down, each that goes together
 * with those before it.
 *
 * Words change what is written here; libraries_settle makes the libraries that are loaded
 * (engine/function_store.h) what is written here, in the same hold. A word that one of our clients
 * said has been run when it gets here.
 *
 * State: keyspace (exclusive mode). */
#ifndef ACTIVE_LIBRARIES_H
#define ACTIVE_LIBRARIES_H

#include "active/origins.h"
#include "base/buf.h"
#include "keyspace/db.h"
#include "keyspace/lock.h"

/* Names of which it is known that they are gone; beyond it the oldest word is forgotten, and who
 * has never heard of it brings the library back. */
#define LIBRARIES_GONE_MAX 4096

struct libraries;

/* Where a word stands: its write, and its command there. */
struct library_word {
    struct dot dot;
    uint32_t number;
};

/* None, over those origins. */
struct libraries *libraries_create(struct origins *o);
/* Frees it and nulls the caller's pointer. */
void libraries_destroy(struct libraries **l);

/* Hears of each name of which something else is written now, as a row without a source where the
 * library is loaded; when it is settled. */
typedef void (*libraries_changed_fn)(struct slice row, void *context);
void libraries_watch(struct libraries *l, libraries_changed_fn changed, void *context);

/* True for a form that is told: FUNCTION LOAD REPLACE code, FUNCTION DELETE name, FUNCTION FLUSH.
 */
bool libraries_is_word(int argc, const struct slice *argv) MUST_CHECK;
/* Such a word: a peer's, or one that our client has said and that has been run. */
void libraries_hear(struct libraries *l, struct library_word at, int argc, const struct slice *argv)
    REQUIRES(keyspace_lock);
void libraries_heard_own(struct libraries *l, struct library_word at, int argc,
                         const struct slice *argv) REQUIRES(keyspace_lock);
/* True while something is to be settled. */
bool libraries_are_unsettled(const struct libraries *l);
/* Loads and deletes, and tells it to the logs as writes of this database, within a unit of the
 * door (executor.h). A library that does not go with later ones, or cannot be loaded here, is
 * hidden, with a warning. */
void libraries_settle(struct libraries *l, const struct db *db) REQUIRES(keyspace_lock);

/* ---- rows: in files, and in data sets ----
 *
 *   1  'G' gone, 'L' loaded, 'S' its source is here      16 node id, 8 epoch, 8 sequence
 *   8  stamp, 4 number of its command     4 length of its name, the name
 *   4  length of its source, the source
 *
 * Numbers are little endian. All of the dot is 0: no node has written it. 'G' without a name: all
 * that is older is gone. */

struct library_row {
    char kind;
    struct origin_id id;
    uint64_t sequence, stamp;
    uint32_t number;
    struct slice name, source;
};

/* Takes the first row off the bytes; false when they do not begin with one. */
bool library_row_next(struct slice *rows, struct library_row *row) MUST_CHECK;
/* Appends what a word (libraries_is_word) makes of its library: 'G' or 'L'. */
void libraries_put_word(const struct origins *o, struct library_word at, int argc,
                        const struct slice *argv, struct buf *out);

/* Calls `visit` with a row for all that is written here; with sources (for a peer), or with those
 * of the hidden ones only (for a file that has the others itself). Nothing is unsettled. For a
 * child as well. */
void libraries_each(const struct libraries *l, bool with_sources, libraries_changed_fn visit,
                    void *context) REQUIRES_SHARED(keyspace_lock);
/* What files tell, rows one behind the other in order; the libraries of the files are loaded. Those
 * of which the rows say nothing were written by no node. */
void libraries_restore(struct libraries *l, struct slice rows) REQUIRES(keyspace_lock);
/* A row of a peer's data set, 'G' or 'S': of both words the later one stands. False when it is no
 * such row, or there is no room for its origin. */
bool libraries_merge(struct libraries *l, struct slice row) MUST_CHECK REQUIRES(keyspace_lock);

#endif
