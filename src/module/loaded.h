/* The modules that are loaded. State: world; awake threads may read. */
#ifndef MODULE_LOADED_H
#define MODULE_LOADED_H

#include "base/buf.h"
#include "base/slice.h"
#include "module/api.h"

#include <stdbool.h>

struct module_command;
struct module_config;
struct reply;

struct module {
    char *name; /* NULL until RedisModule_Init has told it; owned, as all here */
    int version, api_version;
    char *path;
    struct slice *args; /* one block */
    int arg_count;
    void *library;            /* dlopen's */
    _Atomic int options;      /* SetModuleOptions */
    bool loading;             /* its OnLoad runs */
    struct buf fault;         /* what that could not register, last; empty: nothing */
    unsigned running;         /* calls into it that have not returned; keyspace lock, exclusive */
    unsigned blocked;         /* clients that it has blocked; the same */
    unsigned timers;          /* that have not fired; the same */
    RedisModuleInfoFunc info; /* adds its sections to INFO; NULL: it has none */
    uint32_t categories;      /* that it has added */
    struct module_config *configs; /* its options, in order of registration */
    bool loading_configs;          /* LoadConfigs runs */
    struct module_command **commands;
    unsigned command_count;
    struct module *next; /* in order of loading */
};

/* The first one, NULL: there is none. */
const struct module *loaded_first(void);
/* By name, in its case; NULL: none. */
struct module *loaded_find(struct slice name);
/* Puts it at the end of the list; takes it out. */
void loaded_add(struct module *m);
void loaded_remove(struct module *m);
/* Its OnLoad does not get what it wants to register: `why` that is so, for who is told that it has
 * refused. */
void loaded_note_fault(struct module *m, const char *what, const char *name, const char *why);
/* Why a name that is there is not given once more. */
extern const char loaded_is_taken[];
/* True when all of them have said REDISMODULE_OPTIONS_HANDLE_REPL_ASYNC_LOAD. Awake. */
bool loaded_allow_load_aside(void);
/* What others see of them: MODULE LIST, HELLO; INFO's section. Awake. */
void loaded_reply(struct reply *r);
void loaded_append_info(struct buf *out);

#endif
