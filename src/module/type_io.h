/* RedisModuleIO: what a type's methods write values to, and read them from. A value that is read is
 * in memory, whole and in form (persist/rdb_module.h); what a module may still find is another kind
 * of datum than the one it asks for, or none. That is an error: the value is refused. A module that
 * has not said that it handles errors (REDISMODULE_OPTIONS_HANDLE_IO_ERRORS) gets zeros and empty
 * strings then instead of NULL; Redis ends the process at that point. State: that of who reads or
 * writes. */
#ifndef MODULE_TYPE_IO_H
#define MODULE_TYPE_IO_H

#include "base/arena.h"
#include "module/types.h"
#include "persist/rdb_module.h"

struct RedisModuleIO {
    struct rdb_writer *w; /* it is written; else NULL */
    struct rdb_reader *r; /* it is read; else NULL */
    rdb_module_put put;   /* it tells commands; else NULL */
    void *put_context;
    const RedisModuleType *type;
    struct module_place at;
    RedisModuleString *key; /* made when asked for */
    RedisModuleCtx ctx;     /* made when asked for */
    bool has_ctx, failed;
    const char *outer; /* what ran before */
};

/* One of the type's methods is about to use it, and has. */
void io_begin(RedisModuleIO *io, const RedisModuleType *t, struct module_place at);
void io_end(RedisModuleIO *io);
/* Has the module write the value's items; false when it failed. Has it read them, all of them where
 * `whole` is wanted; NULL when it failed; exclusive mode. */
bool io_save(const RedisModuleType *t, struct module_place at, void *value, struct rdb_writer *w);
void *io_load(const RedisModuleType *t, int version, struct module_place at, struct slice items,
              bool whole);

/* Boot, and its reverse: files know how modules' values are written and read. */
void io_setup(void);
void io_teardown(void);

#endif
