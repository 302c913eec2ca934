/* Types of values and the one table of operations on them. A new type is a row here and a file
 * beside; nobody else switches over types or encodings. State: immutable table. */
#ifndef VALUE_TYPE_H
#define VALUE_TYPE_H

#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct entry;
struct buf;
struct table;

enum value_type {
    VALUE_STRING = 0,
    VALUE_LIST = 1,
    VALUE_SET = 2,
    VALUE_ZSET = 3,
    VALUE_HASH = 4,
    VALUE_STREAM = 6,
    VALUE_NESTED = 7, /* KeyDB's nested hash */
    VALUE_CRON = 8,   /* KeyDB's scheduled script: job.h */
    VALUE_MODULE = 9, /* module.h */
    VALUE_TYPE_COUNT = 16,
};

/* Operations on the value of an entry. All need the keyspace lock: those marked X in exclusive
 * mode, the rest in shared mode. */
struct value_ops {
    const char *name; /* what TYPE replies; NULL: it depends on the value (value_type_name) */
    void (*destroy)(struct entry *e);     /* X or unlinked entry: frees what hangs off the entry */
    void *(*copy)(const struct entry *e); /* a deep copy of what hangs off, for COPY; NULL: the
                                             type has its own way */
    size_t (*memory)(const struct entry *e, size_t samples); /* bytes that hang off the entry */
    size_t (*free_effort)(
        const struct entry *e); /* allocations to free; decides about lazy freeing */
    const char *(*encoding)(const struct entry *e); /* what OBJECT ENCODING replies */
    void (*digest)(const struct entry *e,
                   uint8_t digest[20]); /* DEBUG DIGEST's part of the value: a SHA-1 of the content,
                                           whatever the encoding */
    const struct table *(*table)(const struct entry *e); /* the table under the value, NULL when
                                                            there is none now; NULL: never */
    /* Appends lines on how a listpack or a quicklist is kept, of a quicklist's elements as well
     * where asked (DEBUG); NULL for types that have neither. */
    void (*describe)(const struct entry *e, bool elements, struct buf *out);
    /* Of types whose members may have deadlines of their own (member_ttl.h), else NULL: */
    uint64_t (*count)(const struct entry *e);                /* members */
    bool (*has)(const struct entry *e, struct slice member); /* is it there? */
    bool (*remove)(struct entry *e, struct slice member);    /* X: takes it out; false when it
                                                                was not there */
};

/* A row for each type, defined in the type's file; NULL for types that do not exist yet. */
extern const struct value_ops *const value_ops_of[VALUE_TYPE_COUNT];

/* What TYPE replies of the entry. */
const char *value_type_name(const struct entry *e);

#endif
