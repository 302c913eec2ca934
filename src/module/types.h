/* Types of values that modules make: what RedisModuleType points to, a kind of the value layer with
 * its module's methods. A method runs with the keyspace lock in exclusive mode, but for rdb_save
 * and aux_save in a child, and for free in the background (DESIGN.md, "Locks"). State: world. */
#ifndef MODULE_TYPES_H
#define MODULE_TYPES_H

#include "module/context.h"
#include "value/module.h"

struct RedisModuleType {
    struct module_kind kind; /* first */
    struct module *module;
    RedisModuleTypeMethods methods; /* those that its version does not know are NULL */
};

/* Who uses a type's method to compute something may be asked for keys and databases by it. */
struct RedisModuleKeyOptCtx {
    struct module_place from, to;
    RedisModuleString *from_key, *to_key; /* made when asked for */
};

static inline const RedisModuleType *type_of_kind(const struct module_kind *k)
{
    return (const RedisModuleType *)(const void *)k;
}

/* The types' operations, for values. */
extern const struct module_kind_ops type_kind_ops;
/* One of its methods is about to run on this thread, and has run: for the report of a crash. */
const char *type_enter(const RedisModuleType *t);
void type_leave(const char *outer);
/* Frees a value by its module's method. */
void type_free_value(const RedisModuleType *t, void *value);

/* True when the module has types: it cannot be unloaded, as in Redis. */
bool types_are_there(const struct module *m);
/* Takes back its types. False when there are values of them: they stay, and so must its code. */
bool types_withdraw(struct module *m);
/* The same at the end, when the databases are gone. */
void types_forget(const struct module *m);

#endif
