/* Requests as modules spell them: a command's name, a format with a letter for each argument, and
 * the arguments. For Call, Replicate and EmitAOF.
 *
 *   c  const char *, to its NUL          l  long long
 *   s  RedisModuleString *               v  RedisModuleString **, size_t: so many arguments
 *   b  const char *, size_t
 *
 * Other letters say how it is meant (enum words_flag). State: none. */
#ifndef MODULE_WORDS_H
#define MODULE_WORDS_H

#include "base/arena.h"
#include "base/compiler.h"
#include "base/slice.h"

#include <stdarg.h>
#include <stdbool.h>

enum words_flag {
    WORDS_REPLICATE = 1 << 0,   /* ! */
    WORDS_NO_AOF = 1 << 1,      /* A */
    WORDS_NO_REPLICAS = 1 << 2, /* R */
    WORDS_RESP3 = 1 << 3,       /* 3 */
    WORDS_RESP_AUTO = 1 << 4,   /* 0: as the caller speaks */
    WORDS_CHECK_USER = 1 << 5,  /* C */
    WORDS_SCRIPT_MODE = 1 << 6, /* S */
    WORDS_NO_WRITES = 1 << 7,   /* W */
    WORDS_DENY_OOM = 1 << 8,    /* M */
    WORDS_ERRORS = 1 << 9,      /* E: why it does not run is an error reply */
    WORDS_DRY_RUN = 1 << 10,    /* D: only whether it would run; why not is an error reply */
    WORDS_MAY_WAIT = 1 << 11,   /* K: it may wait; there is a promise then */
};

struct words {
    struct slice *argv; /* argv[0] is the name; slices into the arguments, or the arena */
    int argc;
    unsigned flags; /* enum words_flag */
};

/* False when a letter is unknown. */
bool words_parse(struct words *w, struct arena *arena, const char *name, const char *format,
                 va_list arguments) MUST_CHECK;

#endif
