/* The list type: elements in order, each a string. One listpack while small
 * (list-max-listpack-size), else a quicklist; the change back comes when a single node is down to
 * half the limit, so that a list at the limit does not change at every step. The bounds hold for
 * what is created or converted from then on. State: keyspace. No verb moves the entry. A list with
 * no element exists only within a command. */
#ifndef VALUE_LIST_H
#define VALUE_LIST_H

#include "base/option.h"
#include "ds/quicklist.h"
#include "value/entry.h"

extern const struct value_ops list_ops;
/* list-max-listpack-size and list-compress-depth. */
extern const struct option list_options[];

enum list_end { LIST_HEAD, LIST_TAIL };

/* A new list without elements. Without lock. */
struct entry *list_create(struct slice key, int64_t expiry_ms);

/* ---- Shared mode ---- */

/* Number of elements. */
uint64_t list_count(const struct entry *e);

/* The quicklist of a list that has one, else NULL (DEBUG). */
const struct quicklist *list_quicklist(const struct entry *e);

/* A walk. Valid while the list does not change; to be closed. */
struct list_cursor {
    struct quicklist_cursor inner;
};
/* Opens a walk that starts with the element at `index` (none when it is not within) and goes
 * towards the tail or, backward, towards the head. */
void list_cursor_open(struct list_cursor *c, const struct entry *e, uint64_t index, bool backward);
/* Goes to the next element, the first time to that at `index`; false at the end. */
static inline bool list_cursor_next(struct list_cursor *c)
{
    return quicklist_cursor_next(&c->inner);
}
/* The element; valid until the cursor moves or is closed. */
static inline struct slice list_cursor_get(struct list_cursor *c)
{
    return quicklist_cursor_get(&c->inner);
}
static inline bool list_cursor_equals(const struct list_cursor *c, struct slice bytes)
{
    return quicklist_cursor_equals(&c->inner, bytes);
}
static inline void list_cursor_close(struct list_cursor *c)
{
    quicklist_cursor_close(&c->inner);
}

/* ---- Exclusive mode. Elements must not lie in the list itself ---- */

/* Adds the elements one after the other at an end. */
void list_push(struct entry *e, enum list_end end, const struct slice *elements, size_t count);
/* Removes the element at an end; there is one. */
void list_pop(struct entry *e, enum list_end end);
/* Inserts before the element at `index`; the count itself appends. */
void list_insert(struct entry *e, uint64_t index, struct slice element);
/* Replaces the element at `index`. */
void list_replace(struct entry *e, uint64_t index, struct slice element);
/* Removes `count` elements from `start` on; they are there. */
void list_remove_range(struct entry *e, uint64_t start, uint64_t count);
/* Removes up to `max` elements equal to `element`, starting at `end`; returns how many. */
uint64_t list_remove_equal(struct entry *e, struct slice element, uint64_t max, enum list_end end);
/* After elements were removed or replaced: the small encoding if the list fits it again. */
void list_shrink(struct entry *e);

#endif
