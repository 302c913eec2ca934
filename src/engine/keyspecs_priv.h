/* Key specifications: parsing and summarising, for the registry only (command.c). Pure functions.
 */
#ifndef ENGINE_KEYSPECS_PRIV_H
#define ENGINE_KEYSPECS_PRIV_H

#include "base/compiler.h"
#include "engine/command.h"

/* Parses a row's notation into c->specs and c->spec_count: specs joined by ';', each
 * "begin/find/flags" with begin  iN (index N) | kw:WORD@N (after WORD, searched from N; negative:
 * backwards from the end) | ? find   rLAST,STEP,LIMIT (range; LAST counts from begin, negative:
 * from the end) | nINDEX,FIRST,STEP (a count, then keys; both count from begin) | ? flags  joined
 * by '+' On a fault returns false and says why. */
bool keyspecs_parse(const char *text, struct command *c, const char **error) MUST_CHECK;
/* Derives from the specs: simple_keys, first_key, last_key, key_step, CMD_MOVABLE_KEYS and
 * find_keys. */
void keyspecs_summarise(struct command *c);

#endif
