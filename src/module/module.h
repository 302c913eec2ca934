/* What this folder gives to the server: commands, options, loading. See README.md. */
#ifndef MODULE_MODULE_H
#define MODULE_MODULE_H

#include "base/buf.h"
#include "base/option.h"
#include "engine/command.h"

#include <stdbool.h>

/* MODULE; loadmodule. */
extern const struct command_row module_commands[];
extern const struct option module_options[];

/* Boot, before modules are loaded; and its reverse, when no other thread is left and the databases
 * are gone, whose values modules free: they are not asked, and stay in the process. */
void module_setup(void);
void module_teardown(void);
/* Before that, and before parked calls are torn down, when no client is left: calls of modules that
 * still wait end without a reply. */
void module_end_calls(void);
/* The main thread's loop is there, before modules are loaded; and ends: nothing of modules runs in
 * it any more. Main thread. */
struct event_base;
void module_start(struct event_base *base);
void module_stop(void);
/* Loads what the configuration names, in its order. False, with the reason logged, when one of them
 * cannot be: the server must not start. Boot, or whenever the world is the caller's alone. */
bool module_load_configured(void) MUST_CHECK;
/* Until that is over. */
bool module_is_startup(void);
/* Boot: who knows whether the link to the primary stands, for GetContextFlags. Any thread. */
void module_set_link(bool (*is_up)(void));
/* Boot: who ends the history of the data set, and begins another one: replicas fetch everything. In
 * the world. */
void module_set_history(void (*begin)(void));
/* INFO's lines of the modules that are loaded. Awake. */
void module_append_info(struct buf *out);

#endif
