/* Categories of commands: those that there are, and those that modules add. See command.h. */
#include "engine/command.h"

#include "base/mem.h"

#include <string.h>

/* A bit of command.categories each. */
#define CATEGORY_MAX 32

/* NULL-terminated. State: world. */
static const char *names[CATEGORY_MAX + 1] = {
    "keyspace",   "read",        "write",     "set",         "sortedset", "list",
    "hash",       "string",      "bitmap",    "hyperloglog", "geo",       "stream",
    "pubsub",     "admin",       "fast",      "slow",        "blocking",  "dangerous",
    "connection", "transaction", "scripting", "replication",
};
const char *const *const command_category_names = (const char *const *)names;

/* Those of modules, and of them the ones whose module has gone. */
static uint32_t added, idle;

uint32_t command_category_of(struct slice name)
{
    for (unsigned i = 0; names[i] != NULL; i++) {
        if (slice_equal_nocase(name, names[i])) {
            return (uint32_t)1 << i;
        }
    }
    return 0;
}

uint32_t command_category_add(const char *name, bool *taken)
{
    uint32_t category = command_category_of(slice_cstr(name));
    *taken = category & ~idle;
    if (category) {
        uint32_t again = category & idle;
        idle &= ~again;
        return again;
    }
    unsigned i = 0;
    while (names[i]) {
        i++;
    }
    if (i == CATEGORY_MAX) {
        return 0;
    }
    names[i] = mem_dup(name, strlen(name));
    added |= (uint32_t)1 << i;
    return (uint32_t)1 << i;
}

void command_category_give_back(uint32_t categories)
{
    idle |= categories & added;
}

void command_category_teardown(void)
{
    for (unsigned i = 0; i < CATEGORY_MAX; i++) {
        if (added >> i & 1) {
            mem_free((char *)names[i]);
            names[i] = NULL;
        }
    }
    added = idle = 0;
}
