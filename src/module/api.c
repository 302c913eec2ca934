/* See api.h. */
#include "module/api.h"

#include "base/compiler.h"
#include "base/log.h"
#include "base/mem.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const char prefix[] = "RedisModule_";

static const struct api_function *const tables[] = {
    context_functions,      memory_functions,         service_functions,
    string_functions,       string_number_functions,  reply_functions,
    command_functions,      command_info_functions,   command_key_functions,
    call_functions,         call_reply_functions,     replicate_functions,
    key_functions,          key_time_functions,       dataset_functions,
    key_string_functions,   shared_functions,         dict_functions,
    cluster_functions,      message_functions,        context_flag_functions,
    blocked_functions,      blocked_fact_functions,   thread_functions,
    timer_functions,        event_loop_functions,     key_event_functions,
    server_event_functions, type_functions,           type_io_functions,
    type_string_functions,  digest_functions,         scan_functions,
    defrag_functions,       file_functions,           key_list_functions,
    key_zset_functions,     key_zset_range_functions, key_hash_functions,
    key_stream_functions,   info_functions,           server_info_functions,
    user_functions,         fork_functions,           config_functions,
    client_functions,       filter_functions,         auth_functions,
    promise_functions,
};
#define TABLE_COUNT (sizeof(tables) / sizeof(tables[0]))

static struct {
    struct api_function *sorted;
    unsigned count;
} all;

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct api_function *)a)->name, ((const struct api_function *)b)->name);
}

void api_setup(void)
{
    for (size_t t = 0; t < TABLE_COUNT; t++) {
        unsigned more = 0;
        while (tables[t][more].name) {
            more++;
        }
        all.sorted = mem_realloc(all.sorted, (all.count + more) * sizeof(*all.sorted));
        memcpy(all.sorted + all.count, tables[t], more * sizeof(*all.sorted));
        all.count += more;
    }
    qsort(all.sorted, all.count, sizeof(*all.sorted), compare);
    for (unsigned i = 1; i < all.count; i++) {
        if (compare(&all.sorted[i - 1], &all.sorted[i]) == 0) {
            log_warning("Functions for modules: %s stands in two tables", all.sorted[i].name);
            abort();
        }
    }
}

void api_teardown(void)
{
    mem_free(all.sorted);
    all.sorted = NULL;
    all.count = 0;
}

api_pointer api_find(const char *name)
{
    if (all.count == 0 || strncmp(name, prefix, sizeof(prefix) - 1) != 0) {
        return NULL;
    }
    struct api_function wanted = {.name = name + sizeof(prefix) - 1};
    const struct api_function *found =
        bsearch(&wanted, all.sorted, all.count, sizeof(*all.sorted), compare);
    return found ? found->function : NULL;
}

int api_get(const char *name, void *pointer)
{
    api_pointer function = api_find(name);
    if (!function) { /* good modules look; of the others the log says this much */
        log_verbose("A module asks for %s, which the interface does not have", name);
        return REDISMODULE_ERR;
    }
    memcpy(pointer, &function, sizeof(function));
    return REDISMODULE_OK;
}

unsigned api_count(void)
{
    return all.count;
}

const struct api_function *api_at(unsigned index)
{
    return &all.sorted[index];
}
