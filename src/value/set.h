/* The set type: distinct byte strings. Small sets are packed: an intset while all members are
 * integers, a listpack while few and short; larger ones are a table whose elements are one
 * allocation each, or none where they are short. Which, and when one becomes another, follows
 * set-max-intset-entries, set-max-listpack-entries and set-max-listpack-value as in Redis 7.2. A
 * set never goes back to a smaller encoding, and is never empty in a database: who removes the last
 * member deletes the key. State: keyspace. A set's entry does not move. */
#ifndef VALUE_SET_H
#define VALUE_SET_H

#include "base/hash.h"
#include "base/option.h"
#include "ds/table.h"
#include "value/entry.h"

extern const struct value_ops set_ops;

/* What may become known about a member, so that nothing is computed twice. */
enum set_member_fact {
    SET_MEMBER_BYTES = 1 << 0,
    SET_MEMBER_HASH = 1 << 1,
    SET_MEMBER_INTEGER = 1 << 2, /* `integer` is the member */
    SET_MEMBER_TEXT = 1 << 3,    /* is no integer */
};

/* A member as verbs take and give it. Initialised by set_member_init or by a verb that shows
 * members; not to be copied (its bytes may stand in it). Read through the functions below. */
struct set_member {
    unsigned facts;
    struct slice bytes; /* borrowed */
    uint64_t hash;
    int64_t integer;
    char text[24];
};

static inline void set_member_init(struct set_member *m, struct slice bytes)
{
    m->facts = SET_MEMBER_BYTES;
    m->bytes = bytes;
}
static inline void set_member_init_integer(struct set_member *m, int64_t value)
{
    m->facts = SET_MEMBER_INTEGER;
    m->integer = value;
}
/* The member's bytes; valid while `m` and the set it comes from are unchanged (they may stand in
 * `m`). */
struct slice set_member_format(struct set_member *m);
static inline struct slice set_member_bytes(struct set_member *m)
{
    return likely(m->facts & SET_MEMBER_BYTES) ? m->bytes : set_member_format(m);
}
static inline uint64_t set_member_hash(struct set_member *m)
{
    if (!(m->facts & SET_MEMBER_HASH)) {
        m->hash = hash_slice(set_member_bytes(m));
        m->facts |= SET_MEMBER_HASH;
    }
    return m->hash;
}

/* ---- verbs; those that change need the exclusive lock, or a set that is in no database yet ----
 */

/* A new entry with an empty set that is to get about `expected` members, the first of them `first`
 * (NULL: not known yet). */
struct entry *set_create(struct slice key, struct set_member *first, uint64_t expected,
                         int64_t expiry_ms);
/* Tells that about `more` members come: a packed set that could not even hold those becomes a table
 * at once. */
void set_expect(struct entry *e, uint64_t more);
/* Adds; false when it was there. */
bool set_add(struct entry *e, struct set_member *m);
/* Adds one that is known not to be there, without a look. */
void set_add_new(struct entry *e, struct set_member *m);
/* Removes, with its deadline (member_ttl.h); false when it was not there. The set may be empty
 * afterwards. */
bool set_remove(struct entry *e, struct set_member *m);
bool set_contains(const struct entry *e, struct set_member *m);
uint64_t set_count(const struct entry *e);

/* ---- looking at members ---- */

/* A walk over all members, each once; void after any change to the set. */
struct set_walk {
    const struct entry *set;
    enum encoding encoding;
    uint32_t index;          /* intset: of the next member; table: of the bucket in its row */
    const unsigned char *at; /* listpack: the next element */
    const struct table *table;
    size_t row;
    const struct table_bucket *bucket;
    unsigned present; /* slots of the bucket not shown yet */
};
void set_walk_begin(struct set_walk *w, const struct entry *e);
/* The next member; false at the end. */
bool set_walk_next(struct set_walk *w, struct set_member *m);

typedef void (*set_visit_fn)(struct set_member *m, void *context);
/* Shows about `count` members from `cursor` on (0 starts) and returns the next cursor, 0 at the
 * end. What is there throughout a whole walk is shown exactly once. Packed sets are shown whole. */
uint64_t set_scan(const struct entry *e, uint64_t cursor, uint64_t count, set_visit_fn visit,
                  void *context);
/* True when set_scan gives a packed set whole. */
static inline bool set_is_packed(const struct entry *e)
{
    return entry_encoding(e) != ENCODING_TABLE;
}

/* A random member of a set that is not empty. */
void set_random(const struct entry *e, struct set_member *m);
/* Shows `count` <= set_count() different random members. */
void set_sample(const struct entry *e, uint64_t count, set_visit_fn visit, void *context);
/* Shows `count` random members, each drawn from all; the set is not empty. */
void set_draw(const struct entry *e, uint64_t count, set_visit_fn visit, void *context);

/* set-max-intset-entries, set-max-listpack-entries, set-max-listpack-value. */
extern const struct option set_options[];

#endif
