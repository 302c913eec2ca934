/* What the registry (command.c) offers to commands that come and go (command_modules.c). State: as
 * the registry: immutable but while the world stands. */
#ifndef ENGINE_COMMAND_PRIV_H
#define ENGINE_COMMAND_PRIV_H

#include "base/compiler.h"
#include "engine/command.h"

/* Takes over what c->row says: handler, flags, categories, keys. False with *error when the keys
 * are malformed. */
bool command_fill(struct command *c, const char **error) MUST_CHECK;
/* The next id; fewer than COMMAND_ID_MAX are in use. */
void command_give_id(struct command *c);
/* The command with its id stands here now. */
void command_moved(struct command *c);
/* Clients know it from now on; or no more. */
void command_list_add(const struct command *c);
void command_list_remove(const struct command *c);

#endif
