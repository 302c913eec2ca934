/* Module code that the server calls: a command that runs, a command that is asked for its keys. */
#ifndef MODULE_RUN_H
#define MODULE_RUN_H

#include "engine/call.h"
#include "module/context.h"

#include <stdatomic.h>

/* A command of a module, what RedisModuleCommand points to. State: world. */
struct module_command {
    struct module *module;
    RedisModuleCmdFunc function; /* NULL: a container */
    uint16_t id;                 /* of its struct command, which may move */
    struct command_row row;      /* texts are owned */
    struct command_extra extra;
    RedisModuleCommandArg *arguments; /* owned, NULL-terminated; NULL: none */
    bool has_info;                    /* SetCommandInfo was there */
    bool tells_keys, tells_channels;  /* getkeys-api, getchannels-api */
    _Atomic unsigned expected;        /* so many calls to come may well block their client */
    _Atomic bool tried;               /* it has run where the world was to be had */
    _Atomic bool is_barrier;          /* it makes its callers other users: what stands behind it is
                                         looked at when it has run */
};

static inline struct module_command *run_command_of(const struct command *c)
{
    return c->extra ? c->extra->owner : NULL;
}

/* The handler of all commands of modules. Exclusive mode, or the world, in which it takes the
 * keyspace lock itself. */
void run_command(struct call *c);
/* Whether the command has blocked a client lately (command_row.may_wait). */
bool run_may_wait(const struct call *c);
/* The handler of a command that only has subcommands, when none of them was meant. */
void run_container(struct call *c);
/* Finds keys by asking the module (command_extra.find_keys). With the lock in exclusive mode or
 * not at all, which is taken then. */
int run_find_keys(const struct command *c, const struct slice *argv, int argc,
                  struct key_place *places, int max);
/* The same of channels (command_extra.find_channels). */
int run_find_channels(const struct command *c, const struct slice *argv, int argc,
                      struct key_place *places, int max);
/* command_row.is_barrier of commands of modules. */
bool run_is_barrier(const struct call *c);
/* The command has made its caller another user; of commands of modules only. */
void run_note_barrier(const struct command *c);
/* For doubts_set: nothing is known of one that was not tried yet. */
bool run_may_need_world(const struct command *c);
/* The command has asked for the world where that was not to be had: nothing is known of it again.
 */
void run_note_refused(const struct command *c);
/* The command has called one that needs the world: from now on it runs in the world itself. */
void run_want_world(const struct command *c);

/* Where a module says that its keys are. */
struct key_request {
    struct key_place *places; /* room for `max` */
    int max, count, argc;
    bool channels; /* it is asked for channels, which are told as keys that are none */
};

#endif
