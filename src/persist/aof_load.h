/* Replaying one file of an AOF: an RDB file, commands, or an RDB file with commands behind it. The
 * commands run as the server's own (session_init_internal), and nothing expires by itself meanwhile
 * (expire_frozen). What stands between MULTI and EXEC is run only when EXEC is there.
 *
 * The GIL is held in shared mode; the keyspace lock is taken for short holds, and load_step
 * (load.h) is called between them. State: none of its own. */
#ifndef PERSIST_AOF_LOAD_H
#define PERSIST_AOF_LOAD_H

#include "keyspace/lock.h"

#include <stdbool.h>
#include <stdint.h>

enum aof_load_result {
    AOF_LOAD_FINE,
    AOF_LOAD_EMPTY,
    AOF_LOAD_MISSING,
    AOF_LOAD_TORN,    /* it ends within a command or transaction: `whole` bytes are good */
    AOF_LOAD_BAD,     /* see error */
    AOF_LOAD_STOPPED, /* load_step said so */
};

struct aof_load {
    uint64_t bytes;    /* of the file */
    uint64_t whole;    /* up to the end of the last whole record */
    uint64_t commands; /* run */
    uint64_t failed;   /* of those, which replied an error */
    char error[320];
};

/* Replays file `name` of the current directory; `done_bytes` is what was read of files before it,
 * for load_step. */
enum aof_load_result aof_load_file(const char *name, uint64_t done_bytes, struct aof_load *load)
    EXCLUDES(keyspace_lock);

#endif
