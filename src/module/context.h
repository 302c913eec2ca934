/* A context: what a module is called with, and on whose behalf it then calls the server. It lives
 * as long as the server's call into the module. State: its thread's; what it reaches is the
 * keyspace's (DESIGN.md, "Locks"). */
#ifndef MODULE_CONTEXT_H
#define MODULE_CONTEXT_H

#include "base/arena.h"
#include "ds/radix.h"
#include "engine/call.h"
#include "module/loaded.h"

struct key_request;
struct auth_question;

/* Why the module is called about a client that it has blocked (blocked.h). */
enum blocked_cause { BLOCKED_NOT, BLOCKED_REPLY, BLOCKED_TIMEOUT, BLOCKED_END };

/* So many things of a kind need no block of their own. */
#define CONTEXT_FEW 8

/* Something that is freed with the context (AutoMemory). */
struct context_owned {
    void *thing;
    void (*destroy)(void *thing);
};

struct RedisModuleCtx {
    int (*get_api)(const char *name, void *pointer); /* first: RedisModule_Init reads it */
    struct module *module;
    const char *outer;      /* modules_running before */
    RedisModuleCtx *around; /* context_current before */
    struct call *call; /* the command that runs; NULL: the module was called for another reason */
    struct session *session; /* the caller's; NULL: nobody's */
    struct reply *reply;     /* where replies go; NULL: nowhere */
    const RedisModuleUser
        *user;             /* whose rights calls check (SetContextUser); NULL: the session's */
    int db_index;          /* without a session */
    enum call_access held; /* ACCESS_EXCLUSIVE, or ACCESS_WORLD: the keyspace lock as well */
    int64_t now_ms;
    bool yields;  /* it has said so, and is one of those that busy.h knows */
    bool alone;   /* without a call, and nobody else's is amid: the world may be stopped */
    bool looks;   /* amid a change: it reads, and changes nothing */
    bool granted; /* asked about an AUTH: it has made the caller a user */
    struct auth_question *question; /* that AUTH, which it may have wait (auth.c); NULL: none */
    bool auto_memory;
    bool in_unit;                /* what it tells the logs is one unit, which is open */
    struct radix keys_for_peers; /* that they are told at its end (replicate.h) */
    struct context_owned *owned; /* `few_owned`, or a block */
    unsigned owned_count, owned_capacity;
    struct arena pool; /* PoolAlloc, and what calls need */
    uint32_t *lengths; /* replies whose lengths are told later, the innermost last; `few_lengths`,
                          or a block */
    unsigned length_count, length_capacity;
    RedisModuleBlockedClient *blocks;  /* the client that this command has blocked, or NULL */
    RedisModuleBlockedClient *blocked; /* the blocked client that it is about, or NULL */
    enum blocked_cause cause;
    RedisModuleString *ready_key;    /* why the client may go on; NULL: no key */
    uint64_t client_id;              /* without a session */
    struct key_request *key_request; /* it is asked where its command's keys are; else NULL */
    struct context_owned few_owned[CONTEXT_FEW]; /* not set to zero, as what follows */
    uint32_t few_lengths[CONTEXT_FEW];
};

/* A context for a command, and for any other reason; held is what the caller holds. Until its end
 * the module is not unloaded. */
void context_begin_call(RedisModuleCtx *ctx, struct module *m, struct call *c)
    REQUIRES(keyspace_lock);
void context_begin(RedisModuleCtx *ctx, struct module *m, enum call_access held)
    REQUIRES(keyspace_lock);
/* The same at a time that is known, in exclusive mode. */
void context_begin_at(RedisModuleCtx *ctx, struct module *m, int64_t now_ms)
    REQUIRES(keyspace_lock);
/* Frees what the context looks after, and ends the unit of what it has told. Of a command, a timer
 * or a thread it may let go of the lock for a moment before that (users_settle). */
void context_end(RedisModuleCtx *ctx) REQUIRES(keyspace_lock);

/* A context that outlives calls, on the heap: of no call, with m (NULL: nobody's). Any thread,
 * without the lock; and its reverse, when nothing is owned any more. */
void context_init_detached(RedisModuleCtx *ctx, struct module *m);
void context_deinit_detached(RedisModuleCtx *ctx);
/* Its thread has taken the lock, and is about to let go of it: what was told is a unit. */
void context_enter(RedisModuleCtx *ctx) REQUIRES(keyspace_lock);
void context_leave(RedisModuleCtx *ctx) REQUIRES(keyspace_lock);
/* Frees what AutoMemory looks after. With the lock where that may be keys. */
void context_free_owned(RedisModuleCtx *ctx);
/* The innermost context of the calling thread, for functions that are not told theirs; NULL: none.
 */
RedisModuleCtx *context_current(void);

/* Notes an aggregate whose length will be told later: reply_deferred's handle. */
void context_note_length(RedisModuleCtx *ctx, uint32_t handle);
/* Where AutoMemory is on the thing is freed with the context, unless it is disowned before. */
void context_own(RedisModuleCtx *ctx, void *thing, void (*destroy)(void *thing));
/* False when the context did not own it. */
bool context_disown(RedisModuleCtx *ctx, const void *thing);
/* The number of the database that is selected. */
int context_db(const RedisModuleCtx *ctx);
/* From here on what the module tells the logs is one unit. */
void context_begin_unit(RedisModuleCtx *ctx);
/* The unit that is open, if one is, ends here. */
void context_end_unit(RedisModuleCtx *ctx) REQUIRES(keyspace_lock);

#endif
