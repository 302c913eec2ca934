/* A quicklist: a doubly linked list of nodes, the encoding of lists that have outgrown one
 * listpack. State: that of its owner. Verbs that take a const list change nothing and may run
 * beside one another.
 *
 * Invariants, which quicklist_check asserts:
 *  1. A node holds either one or more elements in a listpack, or one element that is too large for
 * a node as plain bytes. No node is empty; the list's count is the sum of theirs.
 *  2. A listpack of two or more elements keeps the limits the list was made with: bytes (4, 8, 16,
 * 32 or 64 KiB), or a number of elements within 8 KiB. (One that was handed in whole may be larger;
 * nothing is added to it then.)
 *  3. With a compression depth d > 0 the first d and the last d nodes are not compressed; the nodes
 * between may be (LZF), where it saves something. Without, none is.
 *
 * Reading a compressed node decompresses it into a block of the cursor's own, since readers share
 * the list; changing one puts the decompressed bytes in its place and compresses it again
 * afterwards. */
#ifndef DS_QUICKLIST_H
#define DS_QUICKLIST_H

#include "base/slice.h"
#include "ds/listpack.h"

#include <stdbool.h>
#include <stdint.h>

struct quicklist;
struct quicklist_node;

/* What one node may hold, as list-max-listpack-size says it: `fill` -1 to -5 are 4, 8, 16, 32 and
 * 64 KiB (below: 64), else a number of elements (0 is taken as 1), which together have 8 KiB at
 * most. */
struct quicklist_limits {
    uint32_t bytes;
    uint32_t count; /* UINT32_MAX: no limit */
};
struct quicklist_limits quicklist_limits_of(int64_t fill);

/* A new empty list; `depth` nodes at each end stay uncompressed, 0 compresses none. */
struct quicklist *quicklist_create(int64_t fill, uint32_t depth);
void quicklist_destroy(struct quicklist *q);
/* A deep copy. */
struct quicklist *quicklist_copy(const struct quicklist *q);
/* Appends a listpack with one or more elements as a node, whatever its size. */
void quicklist_append_listpack(struct quicklist *q, unsigned char *lp_take);
/* The bytes of the only node when that is a listpack, 0 otherwise. */
size_t quicklist_single_bytes(const struct quicklist *q);
/* Ends a list for which quicklist_single_bytes is not 0: its listpack, owned by the caller. */
unsigned char *quicklist_take_listpack(struct quicklist *q_take);

/* Number of elements. */
uint64_t quicklist_count(const struct quicklist *q);
/* Number of nodes. */
uint64_t quicklist_node_count(const struct quicklist *q);
/* Bytes allocated, from the first `samples` nodes (0: all) and their average for the rest. */
size_t quicklist_memory(const struct quicklist *q, size_t samples);

/* Changes. Indexes are within the list; `element` must not lie in it. */
void quicklist_push(struct quicklist *q, struct slice element, bool at_tail);
/* Removes the element at an end of a list that is not empty. */
void quicklist_pop(struct quicklist *q, bool at_tail);
/* Inserts before the element at `index`; the count itself appends. */
void quicklist_insert(struct quicklist *q, uint64_t index, struct slice element);
void quicklist_replace(struct quicklist *q, uint64_t index, struct slice element);
void quicklist_remove_range(struct quicklist *q, uint64_t start, uint64_t count);
/* Removes up to `max` elements equal to `element`, from the tail or the head on; returns how many.
 */
uint64_t quicklist_remove_equal(struct quicklist *q, struct slice element, uint64_t max,
                                bool from_tail);

/* The same in a bare listpack, which may move. */
unsigned char *quicklist_remove_equal_listpack(unsigned char *lp, struct slice element,
                                               uint64_t max, bool from_tail, uint64_t *removed);

/* A walk over a list or a bare listpack. Valid while it does not change. */
struct quicklist_cursor {
    const struct quicklist_node *node; /* NULL on a bare listpack */
    unsigned char *lp;                 /* the listpack; NULL on a plain node */
    unsigned char *at;                 /* the element; NULL at the end */
    unsigned char *scratch;            /* decompressed bytes, owned */
    bool backward;
    bool started;
    char text[LISTPACK_TEXT_BYTES];
};

/* Opens a walk that starts with the element at `index` (none when it is not within); to be closed.
 */
void quicklist_cursor_open(struct quicklist_cursor *c, const struct quicklist *q, uint64_t index,
                           bool backward);
void quicklist_cursor_open_listpack(struct quicklist_cursor *c, unsigned char *lp, uint64_t index,
                                    bool backward);
void quicklist_cursor_close(struct quicklist_cursor *c);
/* Goes on to the next node; false at the end of the list. For quicklist_cursor_next. */
bool quicklist_cursor_next_node(struct quicklist_cursor *c);
/* Goes to the next element, the first time to that at `index`; false at the end. */
static inline bool quicklist_cursor_next(struct quicklist_cursor *c)
{
    if (!c->started) {
        c->started = true;
        return c->at != NULL;
    }
    if (c->at && c->lp) {
        c->at = c->backward ? listpack_prev(c->lp, c->at) : listpack_next(c->lp, c->at);
        if (likely(c->at != NULL)) {
            return true;
        }
    }
    return quicklist_cursor_next_node(c);
}
/* The element: a view, valid until the cursor moves. */
struct slice quicklist_cursor_get(struct quicklist_cursor *c);
/* True when the element equals `bytes`. */
bool quicklist_cursor_equals(const struct quicklist_cursor *c, struct slice bytes);

/* The test seam of DEBUG QUICKLIST-PACKED-THRESHOLD: elements of at least so many bytes get plain
 * nodes; 0: only those too large for a node. World state. */
void quicklist_set_packed_threshold(size_t bytes);

/* What DEBUG OBJECT tells. */
struct quicklist_figures {
    uint64_t nodes, compressed_nodes;
    uint64_t bytes; /* of all nodes, not compressed */
    int64_t fill;   /* as list-max-listpack-size says it */
    uint32_t depth; /* of what stays uncompressed; 0: nothing is compressed */
};
struct quicklist_figures quicklist_figures(const struct quicklist *q);
/* Appends lines that tell of each node, and of each element in it where asked (DEBUG). */
void quicklist_describe(const struct quicklist *q, bool elements, struct buf *out);

/* Aborts when an invariant does not hold. */
void quicklist_check(const struct quicklist *q);

#endif
