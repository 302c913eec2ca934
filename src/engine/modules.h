/* The seam to modules (module/): what the layers below show of them. State: set at boot. */
#ifndef ENGINE_MODULES_H
#define ENGINE_MODULES_H

#include "resp/reply.h"

/* Replies the modules that are loaded, as MODULE LIST and HELLO do. Awake. */
void modules_reply_list(struct reply *r);
/* The name of the module whose code the calling thread runs, or that has called the command that it
 * runs; its path while it is being loaded. NULL: none. For the report of a crash. */
extern _Thread_local const char *modules_running;
/* False while a module is loaded that has not said that a data set may be loaded beside the one
 * that is there (repl-diskless-load swapdb). Awake. */
bool modules_allow_load_aside(void);
/* Boot: who can tell. Without them (NULL) there are no modules. */
void modules_set_list(void (*reply_list)(struct reply *r));
void modules_set_allow_load_aside(bool (*allow)(void));

#endif
