/* The hash type: fields with values. Small hashes are packed (ds/pairs.h), in the entry's own block
 * where that costs no more, others a table whose entries hold a field with its value each
 * (hash_element.h). OBJECT ENCODING calls the packed ones listpack. They become a table, and never
 * the other way round, when they get more fields than hash-max-listpack-entries, a field or value
 * longer than hash-max-listpack-value, or when they would pass one of the caps below.
 *
 * State: keyspace. Verbs that change a hash need the lock in exclusive mode, the others in shared
 * mode. Verbs that take a `struct entry **` may move the entry: the caller puts the new one where
 * the old one was (db_moved). A hash that lost its last field is the caller's to delete. */
#ifndef VALUE_HASH_H
#define VALUE_HASH_H

#include "base/option.h"
#include "ds/pairs.h"
#include "value/entry.h"

#include <stdbool.h>
#include <stdint.h>

extern const struct value_ops hash_ops;
/* hash-max-listpack-entries and hash-max-listpack-value, with their old ziplist names. */
extern const struct option hash_options[];

/* Caps of packed hashes, whatever the options say: looking for a field walks them, and an insertion
 * moves what is behind. Either takes less than 100 microseconds within them. */
#define HASH_PACKED_MAX_FIELDS 8192
#define HASH_PACKED_MAX_BYTES PAIRS_MAX_BYTES

/* A field's value as readers see it: valid while the lock is held and the hash unchanged. */
struct hash_text {
    struct slice bytes;
    struct blob *blob; /* holds the bytes whole, where there is one (borrowed); else NULL */
    char scratch[PAIRS_TEXT_BYTES];
};

/* A field with its value, in the same way. */
struct hash_item {
    struct slice field;
    struct hash_text value;
    const void *at; /* its place, for hash_item_at */
    char field_scratch[PAIRS_TEXT_BYTES];
};

typedef void (*hash_visit_fn)(const struct hash_item *item, void *context);

/* A new hash without fields, ready for `count` texts (fields and values in turn): setting those
 * does not move it. Without lock. */
struct entry *hash_create(struct slice key, const struct slice *texts, size_t count);

/* Number of fields. */
uint64_t hash_len(const struct entry *e);
/* Finds a field: true and its value, or false. */
bool hash_get(const struct entry *e, struct slice field, struct hash_text *value);
/* True when the field is there. */
bool hash_has(const struct entry *e, struct slice field);
/* Visits every field once; `visit` changes nothing. A packed hash's fields come in the order of
 * their first setting. */
void hash_each(const struct entry *e, hash_visit_fn visit, void *context);

/* Announces that `count` texts (fields and values in turn) will be set: makes the hash a table at
 * once where they would make it one anyway. */
void hash_prepare(struct entry **e, const struct slice *texts, size_t count);
/* Sets a field; true when it is new. Neither slice lies in this hash. `blob` is NULL or holds the
 * value whole: a long value then is a reference to it. A field that was there loses its deadline
 * (member_ttl.h). */
bool hash_set(struct entry **e, struct slice field, struct slice value, struct blob *blob);
/* The same, short of blobs, for a value that is changed rather than replaced: the field keeps its
 * deadline. */
bool hash_change(struct entry **e, struct slice field, struct slice value);
/* Removes a field with its deadline; false when it was not there. The entry stays where it is. */
bool hash_delete(struct entry *e, struct slice field);
/* After fields were removed: gives back what the entry has too much. */
void hash_fit(struct entry **e);

/* Visits fields from `cursor` on (0 starts; 2^48 and more is behind the end) until about `count`
 * were visited, and returns the next cursor, 0 at the end. A field that is there throughout a full
 * walk is visited exactly once while the hash is a table, whatever is set or removed meanwhile. A
 * packed hash is visited whole, whatever the cursor. */
uint64_t hash_scan(const struct entry *e, uint64_t cursor, uint64_t count, hash_visit_fn visit,
                   void *context);

/* Draws `count` random places of a hash that is not empty: each field equally likely each time. */
void hash_draw(const struct entry *e, const void **places, size_t count);
/* Draws `count` (at most hash_len) different ones. Their order is no random one. */
void hash_draw_distinct(const struct entry *e, const void **places, size_t count);
/* What is at a place. */
void hash_item_at(const struct entry *e, const void *place, struct hash_item *item);

/* Aborts when the encoding's invariants do not hold (tests, DEBUG). Walks everything. */
void hash_check(const struct entry *e);

#endif
