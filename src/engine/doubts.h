/* Calls of which it is not known beforehand that they need the world. Commands of modules ask for
 * it now and then, amid the call. Amid a transaction or script that began without, that is too
 * late: an EXEC with a call in its queue that may ask, and a script that may come to such a call,
 * run in the world from their start. State: each with its function. */
#ifndef ENGINE_DOUBTS_H
#define ENGINE_DOUBTS_H

#include "engine/call.h"

/* Who knows which commands may ask (module/), while there are some (else NULL); to be called again
 * when there are others. World, or boot. */
void doubts_set(bool (*may_ask)(const struct command *c));
/* Whether calls of the command may need the world, or do. Awake. */
bool doubts_command(const struct command *c);
/* Whether the call may: of such a command, or of such a script. Awake. */
bool doubts_call(const struct call *c);

/* Of a script (the call that runs it) it is noted whether it has called such a command, by the
 * second word: text, SHA1, or name of a function. Of those of which nothing is noted it is asked
 * whether their text or arguments name one. Some are taken for others, or forgotten. Any thread. */
void doubts_note_script(const struct call *c, bool asks);
bool doubts_script(const struct call *c);

/* The calling thread has stopped the world for a script or a transaction, which can go on without
 * it, holding the keyspace lock. */
void doubts_set_spare(bool spare);
bool doubts_is_spare(void);
/* What runs there takes long: the world goes on, if it was so; nothing else is done otherwise. The
 * keyspace lock is held in exclusive mode, and is kept by who has stopped the world, who finds that
 * it has not got it any more (gil_has_world). */
void doubts_give_back(void);

#endif
