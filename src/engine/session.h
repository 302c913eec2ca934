/* A session: who is calling, as commands see it. A client has one; so will scripts, the AOF loader,
 * links to primaries. State: thread-owned (its client's thread); `world` commands may read others'
 * under the GIL. */
#ifndef ENGINE_SESSION_H
#define ENGINE_SESSION_H

#include "base/slice.h"
#include "keyspace/watching.h"

#include <stdbool.h>
#include <stdint.h>

struct acl_user;
struct script_run;

/* SCRIPT DEBUG: what becomes of the session's scripts (script/debugger.h). */
enum script_debug { DEBUG_NOT, DEBUG_FORKED, DEBUG_IN_SYNC };

struct session {
    uint64_t id; /* unique, never reused */
    int db_index;
    int proto; /* 2 or 3 */
    bool authenticated;
    bool no_touch;                   /* CLIENT NO-TOUCH */
    bool muted;                      /* CLIENT REPLY OFF */
    bool in_transaction;             /* MULTI has come, and neither EXEC nor DISCARD */
    bool user_is_watched;            /* somebody is told when it ceases to be its user's (auth.h) */
    bool internal;                   /* not a client's: exempt from client-only rules */
    uint8_t script_debug;            /* enum script_debug */
    uint32_t subscriptions;          /* to channels, patterns and shard channels */
    unsigned tracking;               /* client-side caching: enum tracking_flag */
    char *name;                      /* CLIENT SETNAME, NULL when unset; owned */
    char *lib_name, *lib_ver;        /* CLIENT SETINFO; owned */
    const struct acl_user *acl;      /* who it is (acl.h); never NULL */
    const char *user;                /* that user's name */
    struct transaction *transaction; /* MULTI's queue (transaction.h), or NULL */
    const struct execution *execution;  /* the EXEC that is running, or NULL */
    const struct script_run *script;    /* the script that runs its nested calls, or NULL */
    struct watch_set watches;           /* WATCH */
    const struct command *last_command; /* the last one prepared, for CLIENT LIST */
    char peer[128]; /* "ip:port", "[ip6]:port" or "path:0", for MONITOR, SLOWLOG, CLIENT LIST */
    void *owner;    /* the client, for net/'s own commands; NULL for internal sessions */
};

/* A session in database 0, RESP2, authenticated when no password is set. */
void session_init(struct session *s, uint64_t id);
void session_deinit(struct session *s) EXCLUDES(keyspace_lock);
/* The same of one that is not a client's: a log's replay, a link. Its user may do everything and is
 * nobody's; it is exempt from rules for clients. */
void session_init_internal(struct session *s);
/* RESET's part: database, protocol, name, authentication as at the start. */
void session_reset(struct session *s);
/* Sets or clears (empty) the name; false when it has blanks or unprintable bytes. */
bool session_set_name(struct session *s, struct slice name);
/* A new id. Any thread. */
uint64_t session_next_id(void);

#endif
