/* What writing and reading files share. State: see rdb_file.h. */
#ifndef PERSIST_RDB_FILE_PRIV_H
#define PERSIST_RDB_FILE_PRIV_H

#include "persist/rdb_file.h"

#include <stddef.h>

/* The libraries that are kept: how many, and the source of each (borrowed). */
size_t rdb_file_library_count(void);
struct slice rdb_file_library(size_t index);

#endif
