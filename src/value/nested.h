/* The nested hash type (KeyDB's): a tree of names whose leaves are strings or lists of strings.
 *
 * Invariants, which nested_check asserts: a map has at least one child; the names of a map's
 * children are distinct and not empty; no node is deeper than NESTED_MAX_DEPTH below the root;
 * every node knows its parent, and a map how many nodes are below it. Children stand in the order
 * in which they were first set. The root may be a leaf.
 *
 * Nothing here recurses: walks go by the nodes' links, whatever the shape of the tree.
 *
 * State: keyspace. Verbs that change need the exclusive lock or an entry that is in no database,
 * the others shared mode. The entry never moves. */
#ifndef VALUE_NESTED_H
#define VALUE_NESTED_H

#include "value/entry.h"

#include <stdbool.h>
#include <stdint.h>

/* Names on the way from the root to a leaf, at most: readers of replies and of JSON nest as deep.
 */
#define NESTED_MAX_DEPTH 127

extern const struct value_ops nested_ops;

struct nested_node;

enum nested_kind { NESTED_STRING, NESTED_LIST, NESTED_MAP };

/* What a leaf is to hold: one string, or a list of at least one. */
struct nested_leaf {
    enum nested_kind kind; /* not NESTED_MAP */
    const struct slice *strings;
    size_t count;
};

enum nested_set {
    NESTED_ADDED,
    NESTED_REPLACED,
    NESTED_BLOCKED, /* a leaf stands on the way; nothing was changed */
};

/* A new entry with a leaf at names[0..depth-1] below the root. Without lock. */
struct entry *nested_create(struct slice key, const struct slice *names, unsigned depth,
                            const struct nested_leaf *leaf);
/* Puts a leaf there, making the maps on the way. What stood there is replaced, a map with all that
 * is below it: that comes back in `*replaced_give`, an entry without key that the caller frees
 * (outside the lock), else NULL. */
enum nested_set nested_set(struct entry *e, const struct slice *names, unsigned depth,
                           const struct nested_leaf *leaf, struct entry **replaced_give);
/* The node there, the root for depth 0; NULL when there is none. Valid while nothing changes. */
const struct nested_node *nested_find(const struct entry *e, const struct slice *names,
                                      unsigned depth);

/* What the node is. */
enum nested_kind nested_kind(const struct nested_node *n);
/* The name in its map; empty for the root. */
struct slice nested_name(const struct nested_node *n);
/* Children of a map, or strings of a leaf. */
uint64_t nested_count(const struct nested_node *n);
/* The string of a leaf at `*offset`, which moves to the next; 0 is the first's. */
struct slice nested_string_at(const struct nested_node *n, size_t *offset);

/* A walk over a node and all below it, parents before and after their children. */
enum nested_step { NESTED_STEP_LEAF, NESTED_STEP_MAP, NESTED_STEP_MAP_END, NESTED_STEP_DONE };
struct nested_walk {
    const struct nested_node *top;
    const struct nested_node *node; /* what the step is about */
    enum nested_step step;
    unsigned depth; /* of the node below `top` */
};
/* Takes the first step. */
void nested_walk_begin(struct nested_walk *w, const struct nested_node *top);
/* Takes the next one. */
void nested_walk_next(struct nested_walk *w);
/* True when the step's node has a sibling before it. */
bool nested_walk_follows(const struct nested_walk *w);

/* Aborts when an invariant does not hold (tests, DEBUG). */
void nested_check(const struct entry *e);

#endif
