/* One file of an AOF, read record by record as the server's loader reads it: an RDB part at its
 * start if there is one, commands, and lines that begin with #. What is between MULTI and EXEC
 * counts only as a whole. Reports on stdout in the shape of redis-check-aof's output; cuts the file
 * where that is wished. State: none. */
#ifndef TOOLS_CHECK_AOF_CHECK_H
#define TOOLS_CHECK_AOF_CHECK_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stdint.h>

enum check_result {
    CHECK_VALID,
    CHECK_EMPTY,
    CHECK_FIXED,       /* cut at its first fault */
    CHECK_CUT_TO_TIME, /* cut before the first time that is later than the one wished */
    CHECK_BAD,         /* told; the file is as it was */
};

struct check_wish {
    bool fix;     /* cut at the first fault, if the user on stdin agrees */
    bool to_time; /* cut behind `time_s`, seconds since 1970 */
    int64_t time_s;
};

/* Checks the file at `path`, which messages call `name`. Only with `last` may it be cut: records of
 * other files follow otherwise. */
enum check_result check_file(const char *path, const char *name, bool last,
                             const struct check_wish *wish) MUST_CHECK;

/* True when the file begins as an RDB file does. */
bool check_is_rdb(int fd);

#endif
