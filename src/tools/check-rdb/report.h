/* What keydb-check-rdb says of an RDB file, and keydb-check-aof of the RDB part of an AOF: read
 * with the server's own reader (persist/rdb_walk.h), told on stdout in the shape of
 * redis-check-rdb's output. State: the options of the values, which setup gives their defaults. */
#ifndef TOOLS_CHECK_RDB_REPORT_H
#define TOOLS_CHECK_RDB_REPORT_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stdint.h>

/* Main thread, once, before anything is read; and its reverse. */
void rdb_report_setup(const char *thread_name);
void rdb_report_teardown(void);

/* Reads the open file of `size` bytes from its start to the end of the RDB part, which is *end, and
 * prints what is there or where it is damaged. False when the server would not load it. */
bool rdb_report_run(int fd, uint64_t size, const char *name, uint64_t *end) MUST_CHECK;

#endif
