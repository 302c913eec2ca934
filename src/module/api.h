/* The table of functions that modules find by name. A subject's file implements its functions,
 * static, and exports a table of them; api.c joins the tables. Each implementation's type is
 * checked against the list that modules are compiled with. A function that is in no table is
 * unknown to modules, which find NULL. State: immutable after boot.
 *
 * Who may be called when (DESIGN.md, "Locks"): all functions need the keyspace lock in exclusive
 * mode, which the module has whenever the server calls it, but for those whose files say
 * otherwise. */
#ifndef MODULE_API_H
#define MODULE_API_H

#define KEYDBMODULE_SERVER 1
typedef long long mstime_t; /* milliseconds */
typedef long long ustime_t; /* microseconds */
#include "module/keydbmodule.h"

#include <stddef.h>

typedef void (*api_pointer)(void);

/* A row; tables end with a row whose name is NULL. */
struct api_function {
    const char *name; /* without RedisModule_ */
    api_pointer function;
};

/* api_Alloc_fn and so on: the types of all functions. */
#define API_TYPE(returns, name, parameters) typedef returns api_##name##_fn parameters;
KEYDBMODULE_FUNCTIONS(API_TYPE)
#undef API_TYPE

/* A row for `implementation`, which does not compile when its type is not that of the function. */
#define API(name, implementation)                                                                  \
    {                                                                                              \
#name, _Generic((implementation), api_##name##_fn * : (api_pointer)(implementation))       \
    }

extern const struct api_function context_functions[];
extern const struct api_function context_flag_functions[];
extern const struct api_function memory_functions[];
extern const struct api_function service_functions[];
extern const struct api_function string_functions[];
extern const struct api_function string_number_functions[];
extern const struct api_function reply_functions[];
extern const struct api_function command_functions[];
extern const struct api_function command_info_functions[];
extern const struct api_function command_key_functions[];
extern const struct api_function call_functions[];
extern const struct api_function call_reply_functions[];
extern const struct api_function replicate_functions[];
extern const struct api_function key_functions[];
extern const struct api_function key_time_functions[];
extern const struct api_function dataset_functions[];
extern const struct api_function key_string_functions[];
extern const struct api_function key_list_functions[];
extern const struct api_function key_zset_functions[];
extern const struct api_function key_zset_range_functions[];
extern const struct api_function key_hash_functions[];
extern const struct api_function key_stream_functions[];
extern const struct api_function info_functions[];
extern const struct api_function server_info_functions[];
extern const struct api_function user_functions[];
extern const struct api_function fork_functions[];
extern const struct api_function config_functions[];
extern const struct api_function client_functions[];
extern const struct api_function filter_functions[];
extern const struct api_function auth_functions[];
extern const struct api_function promise_functions[];
extern const struct api_function message_functions[];
extern const struct api_function cluster_functions[];
extern const struct api_function dict_functions[];
extern const struct api_function shared_functions[];
extern const struct api_function type_functions[];
extern const struct api_function type_io_functions[];
extern const struct api_function type_string_functions[];
extern const struct api_function digest_functions[];
extern const struct api_function scan_functions[];
extern const struct api_function defrag_functions[];
extern const struct api_function file_functions[];
extern const struct api_function blocked_functions[];
extern const struct api_function blocked_fact_functions[];
extern const struct api_function thread_functions[];
extern const struct api_function timer_functions[];
extern const struct api_function event_loop_functions[];
extern const struct api_function key_event_functions[];
extern const struct api_function server_event_functions[];

/* Joins the tables, and its reverse. Aborts on a double name. Boot. */
void api_setup(void);
void api_teardown(void);
/* The function of that name, with RedisModule_ before it; NULL: there is none. */
api_pointer api_find(const char *name);
/* What the first word of each context points to: stores the function, REDISMODULE_ERR when there is
 * none. */
int api_get(const char *name, void *pointer);
/* In order of names; index < api_count(). */
unsigned api_count(void);
const struct api_function *api_at(unsigned index);

#endif
