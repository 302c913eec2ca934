/* Replies of commands that a module has called: RESP in a block of their own, taken apart level by
 * level as the module asks. State: the module's that holds them. */
#ifndef MODULE_CALL_REPLIES_H
#define MODULE_CALL_REPLIES_H

#include "base/slice.h"
#include "module/api.h"
#include "resp/reply.h"

struct promise;

/* A copy of an ended reply. Owned by the module, or its context. */
RedisModuleCallReply *call_reply_create(RedisModuleCtx *ctx, const struct reply *r);
/* The same of an error ("ERR ..."). */
RedisModuleCallReply *call_reply_create_error(RedisModuleCtx *ctx, struct slice text);
/* A promise of one, with a reference to it. */
RedisModuleCallReply *call_reply_create_promise(RedisModuleCtx *ctx, struct promise *p_take);
/* The promise; NULL: it is another reply. Borrowed. */
struct promise *call_reply_promise(const RedisModuleCallReply *reply);
/* The reply as RESP; nothing of a promise. Borrowed. */
struct slice call_reply_bytes(const RedisModuleCallReply *reply);

#endif
