/* Values of modules (VALUE_MODULE): of a kind that a module has made known, and a pointer that only
 * the module understands. What can be done with one its code knows, which is reached through the
 * table that the kind brings: this layer calls, and knows nobody above it.
 *
 * Modules' code runs alone: all that calls it needs the keyspace lock in exclusive mode, marked X,
 * but for destroying, which sees to that itself. Who reads in shared mode comes again
 * (call_read_alone). A value is owned by its entry. State: the list of kinds is the world's; values
 * are the keyspace's. */
#ifndef VALUE_MODULE_H
#define VALUE_MODULE_H

#include "value/entry.h"

/* A kind's name: so many characters of 64 (MODULE_KIND_ALPHABET). Its id, as files have it: six
 * bits for each of them, the first one highest, then MODULE_VERSION_BITS of the version of its
 * encoding. */
#define MODULE_NAME_CHARS 9
#define MODULE_VERSION_BITS 10
#define MODULE_VERSION_MAX ((1 << MODULE_VERSION_BITS) - 1)

/* Where a value is, as its module may ask. */
struct module_place {
    struct slice key; /* ptr NULL: nobody knows */
    int db;           /* -1: nobody knows */
};

struct module_kind;

struct module_kind_ops {
    void (*destroy)(const struct module_kind *k, void *value); /* any thread, any lock or none */
    void *(*copy)(const struct module_kind *k, struct module_place from, struct module_place to,
                  const void *value); /* X; NULL: it could not */
    size_t (*memory)(const struct module_kind *k, struct module_place at, const void *value,
                     size_t samples); /* X */
    size_t (*free_effort)(const struct module_kind *k, struct module_place at,
                          const void *value);                                               /* X */
    void (*unlink)(const struct module_kind *k, struct module_place at, const void *value); /* X */
    void (*digest)(const struct module_kind *k, struct module_place at, void *value,
                   uint8_t digest[20]); /* X; `digest` is zero before */
};

struct module_kind {
    const struct module_kind_ops *ops;
    uint64_t id;
    char name[MODULE_NAME_CHARS + 1];
    bool copies, unlinks;     /* it has that operation */
    _Atomic uint64_t values;  /* that there are, in databases or elsewhere */
    struct module_kind *next; /* in the list of kinds */
};

extern const struct value_ops module_value_ops;

/* ---- ids ---- */

/* The id of a kind; 0 when the name or the version is none that a kind can have. */
uint64_t module_kind_id(struct slice name, int version);
/* The name, with a NUL, and the version of an id. */
void module_id_name(uint64_t id, char name[MODULE_NAME_CHARS + 1]);
int module_id_version(uint64_t id);

/* ---- kinds ---- */

/* Makes it known, behind those that are; its name is nobody else's. World. */
void module_kind_add(struct module_kind *k);
/* Nobody finds it any more; it has no values. World. */
void module_kind_remove(struct module_kind *k);
/* The first one of the list, NULL: there is none. Awake. */
const struct module_kind *module_kind_first(void);
/* By id, whatever the version; by name, whatever the case. NULL: none. Awake. */
struct module_kind *module_kind_find(uint64_t id);
struct module_kind *module_kind_find_name(struct slice name);

/* ---- values ---- */

/* A new entry without expiry. */
struct entry *module_value_create(struct slice key, struct module_kind *k, void *value_take);
/* Of an entry that has one. The module may change what the value points to. */
struct module_kind *module_value_kind(const struct entry *e);
void *module_value_get(const struct entry *e);
/* Puts another value of the same kind there; the old one is the caller's. X. */
void *module_value_exchange(struct entry *e, void *value_take);
/* A copy under another key; NULL when the module cannot. X. */
struct entry *module_value_copy(const struct entry *e, int from_db, struct slice key, int to_db,
                                int64_t expiry_ms);
/* The module is told that the key goes: its entry will be destroyed, or has gone elsewhere. X. */
void module_value_unlinked(const struct entry *e, int db);
/* The value goes now, the entry, which is in no database any more, later. X. */
void module_value_drop(struct entry *e);

/* The database of the values whose operations this thread calls; -1: unknown. Set by who knows, and
 * set back. */
extern _Thread_local int module_value_db;

#endif
