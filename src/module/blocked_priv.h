/* The handle of a blocked client, for blocked.c, blocked_facts.c and auth.c. See blocked.h. */
#ifndef MODULE_BLOCKED_PRIV_H
#define MODULE_BLOCKED_PRIV_H

#include "module/blocked.h"
#include "module/main_loop.h"

/* "module-" and a number of 64 bits. */
#define EVENT_NAME_BYTES 32

struct RedisModuleBlockedClient {
    struct main_job unblock, end; /* UnblockClient; the parked call is freed */
    struct module *module;
    RedisModuleCmdFunc reply_callback, timeout_callback;
    RedisModuleAuthCallback auth_callback; /* instead, of a client that is to be let in (auth.c) */
    void (*free_private)(RedisModuleCtx *, void *);
    RedisModuleDisconnectFunc disconnect_callback;
    void *private_data;     /* the module's own to change, as Redis has it */
    RedisModuleCtx *making; /* the command's context, until it has returned */
    int64_t timeout_ms;
    char event[EVENT_NAME_BYTES]; /* its own */
    RedisModuleString **names;    /* of keys, held; NULL: none */
    struct key *keys;
    int key_count, db_index;
    bool when_deleted;
    int users;             /* the module, the parked call */
    bool unblocked;        /* UnblockClient has been worked off */
    bool answered;         /* a callback has run, or nobody waited */
    bool settled;          /* so the parked call's use has ended, and its end is none */
    bool gone;             /* the client went before that, or was told that its time is over */
    _Atomic bool asked;    /* UnblockClient has been called */
    _Atomic uint32_t refs; /* memory: the users together, and each context */
    uint64_t client_id;
    struct reply reply; /* of threads */
    uint64_t measure_begin;
    _Atomic uint64_t measured_ticks;
};

/* A handle whose users are yet to be told. */
RedisModuleBlockedClient *blocked_create(RedisModuleCtx *ctx, RedisModuleCmdFunc reply,
                                         RedisModuleCmdFunc timeout,
                                         void (*free_private)(RedisModuleCtx *, void *),
                                         long long timeout_ms) REQUIRES(keyspace_lock);
/* The command of the context has blocked its client, which waits when it has returned. */
void blocked_begin_wait(RedisModuleCtx *ctx, RedisModuleBlockedClient *b) REQUIRES(keyspace_lock);
/* Nobody waits: the module has its handle all the same, which it unblocks as any other. */
void blocked_begin_idle(RedisModuleBlockedClient *b) REQUIRES(keyspace_lock);
/* The client has its answer: the parked call's use ends here, in the hold, so that no other one is
 * needed for it. The memory is the call's still. */
void blocked_settle(RedisModuleBlockedClient *b) REQUIRES(keyspace_lock);
/* The parked call's destroy_state: on the client's thread, without a lock, after the hold in which
 * its reply was made. */
void blocked_drop_wait(void *client);

#endif
