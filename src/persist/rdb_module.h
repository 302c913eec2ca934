/* Values and other data of modules in RDB bytes, in the form that Redis has had since 4.0:
 *
 *   value      id | content             (number 7)
 *   aux data   id | 2 | when | content  (opcode 247), before and behind the keys
 *   content    (kind, datum) ... | 0
 *
 * The id is that of value/module.h; it, `when` and the kinds are numbers in the form of lengths.
 * Data by kind: 1, 2 a signed or unsigned number of 64 bits in the form of lengths; 3, 4 a float or
 * double, little-endian; 5 a string.
 *
 * What is read is taken whole before its module sees any of it: the form is checked, then the
 * module reads from memory. So no module meets the end of a file or a connection that breaks, none
 * is called for a value whose module is not there, and its code holds the keyspace lock for no
 * longer than it computes. What it costs is the value's bytes a second time, for that long.
 * State: the table of operations is immutable after boot. */
#ifndef PERSIST_RDB_MODULE_H
#define PERSIST_RDB_MODULE_H

#include "persist/rdb_reader.h"
#include "persist/rdb_writer.h"
#include "value/module.h"

enum rdb_module_item {
    RDB_MODULE_END = 0,
    RDB_MODULE_SIGNED = 1,
    RDB_MODULE_UNSIGNED = 2,
    RDB_MODULE_FLOAT = 3,
    RDB_MODULE_DOUBLE = 4,
    RDB_MODULE_STRING = 5,
};
enum rdb_module_when { RDB_MODULE_BEFORE_KEYS = 1, RDB_MODULE_AFTER_KEYS = 2 };

/* Gets a command that makes a value: count words. */
typedef void (*rdb_module_put)(void *context, int count, const struct slice *words);

/* Its module has no such way; all were told; some were, perhaps, and the rest cannot be. */
enum rdb_module_emitted { RDB_MODULE_HAS_NO_WAY, RDB_MODULE_EMITTED, RDB_MODULE_FAILED };

/* What module/ gives, which calls the modules. */
struct rdb_module_ops {
    /* Writes the items of a value. Nothing is held in a child; else the lock, in exclusive mode or
     * in shared mode with the world. */
    void (*save)(const struct module_kind *k, struct module_place at, void *value,
                 struct rdb_writer *w);
    /* Reads the items of a value, all of them. False when the module cannot. With the keyspace lock
     * in exclusive mode or not at all, which is taken then; so the next ones. */
    bool (*load)(const struct module_kind *k, int version, struct module_place at,
                 struct slice items, void **value);
    /* Writes the items of the kind's data that are no keys, into memory. False: there are none, and
     * nothing is to stand in the file. */
    bool (*save_aux)(const struct module_kind *k, enum rdb_module_when when, struct rdb_writer *w);
    bool (*load_aux)(const struct module_kind *k, int version, enum rdb_module_when when,
                     struct slice items);
    /* Whether it has such data, perhaps. */
    bool (*has_aux)(const struct module_kind *k);
    /* Tells the commands that make the value. */
    enum rdb_module_emitted (*emit)(const struct module_kind *k, struct module_place at,
                                    void *value, rdb_module_put put, void *context);
};

/* Boot; NULL: no modules. */
void rdb_module_set_ops(const struct rdb_module_ops *ops);
/* keydb-check-rdb: values and data whose modules are not there are read over; of such a value no
 * entry comes (rdb_load_value's NULL). */
extern bool rdb_module_skips;

/* Writes all data of modules that belong there. */
void rdb_module_save_aux(struct rdb_writer *w, enum rdb_module_when when);
/* Reads what stands behind the opcode, and the module whose it is takes it. False when there is no
 * such module, or it will not have it. */
bool rdb_module_load_aux(struct rdb_reader *r) MUST_CHECK;
/* Why what modules have cannot be told key by key: one of them has data that are no keys, which
 * only a file has a place for. NULL: it can. Awake; the text lives until the thread's next one. */
const char *rdb_module_untold_data(void);
/* Whether a payload (payload.h) is of a module's value; and what to say of one that was refused,
 * until the thread's next such text. */
bool rdb_module_is_payload(struct slice payload);
const char *rdb_module_payload_fault(struct slice payload);
/* Tells the commands that make the value of the entry. */
enum rdb_module_emitted rdb_module_emit(const struct entry *e, rdb_module_put put, void *context);

#endif
