/* What a module tells in words of its own, as far as peers of an active replica are concerned: they
 * need not have the module, and put each write where its time belongs, so they are told what the
 * keys of those words are in the end, each as a whole. What is called with '!' they are told like
 * any call. State: the context's. */
#ifndef MODULE_REPLICATE_H
#define MODULE_REPLICATE_H

#include "module/context.h"

/* The context's unit is at its end: tells peers what has become of those keys. */
void replicate_keys(RedisModuleCtx *ctx) REQUIRES(keyspace_lock);

#endif
