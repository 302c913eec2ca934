/* See limits.h. */
#include "resp/limits.h"

int64_t resp_max_bulk_bytes = 512 << 20;

const struct option resp_options[] = {
    {.name = "proto-max-bulk-len",
     .type = OPTION_MEMORY,
     .target = &resp_max_bulk_bytes,
     .initial = "512mb",
     .min = 1024 * 1024,
     .max = INT64_MAX},
    {.name = NULL},
};
