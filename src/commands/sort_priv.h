/* What the parts of SORT share: patterns that name other keys (sort_keys.c), and the order of
 * elements (sort_order.c). State: the collation is world state, all else belongs to the call. */
#ifndef COMMANDS_SORT_PRIV_H
#define COMMANDS_SORT_PRIV_H

#include "base/arena.h"
#include "engine/call.h"
#include "value/hash.h"
#include "value/string.h"

/* ---- Patterns: an argument of BY and GET ---- */

enum sort_pattern_kind {
    SORT_PATTERN_NOTHING, /* has no '*': names no key */
    SORT_PATTERN_ELEMENT, /* "#": the element itself */
    SORT_PATTERN_STRING,  /* "w_*": the string at that key */
    SORT_PATTERN_FIELD,   /* "w_*->f": field f of the hash at that key */
};

struct sort_pattern {
    enum sort_pattern_kind kind;
    struct slice prefix, suffix; /* of the key, around the element */
    struct slice field;
};

/* What a pattern led to. Views of the keyspace, or of `scratch`: valid while the lock is held. */
struct sort_found {
    struct slice bytes;
    struct blob *blob; /* holds the bytes whole where there is one (borrowed); else NULL */
    char scratch[STRING_VIEW_BYTES > PAIRS_TEXT_BYTES ? STRING_VIEW_BYTES : PAIRS_TEXT_BYTES];
};

/* Takes an argument apart. The result's slices lie in it. */
struct sort_pattern sort_pattern_parse(struct slice text);
/* What the pattern leads to for an element; false when that is nothing: the key or field is
 * missing or of another type. `name` is room for the key's name. Counts as an access to the key. */
bool sort_pattern_read(struct call *c, const struct sort_pattern *p, struct slice element,
                       struct buf *name, struct sort_found *found) REQUIRES_SHARED(keyspace_lock);

/* ---- Order ---- */

struct sort_item {
    struct slice bytes;
    union {
        double score;
        struct slice weight; /* ptr NULL: none, which comes before all others */
    };
    uint64_t place; /* in the source */
};

/* How to sort. */
struct sort_order {
    const struct sort_pattern *by; /* NULL: the elements themselves */
    bool alpha;                    /* by text, else by number */
    bool descending;
    bool collate;   /* text in the order of locale-collate, else bytewise */
    bool unordered; /* the source has no order of its own: what weighs the same goes by bytes */
};

/* Gives each item its weight; false when one of them had to be a number and is none. What has to
 * be kept is kept in `arena`. */
bool sort_weigh(struct call *c, const struct sort_order *order, struct sort_item *items,
                uint64_t count, struct arena *arena) REQUIRES_SHARED(keyspace_lock);
/* Puts those items in order that belong at start .. start+wanted-1; what stands elsewhere is
 * unspecified. */
void sort_items(const struct sort_order *order, struct sort_item *items, uint64_t count,
                uint64_t start, uint64_t wanted);

#endif
