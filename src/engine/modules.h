/* The seam to modules (module/): what the layers below show of them. State: set at boot. */
#ifndef ENGINE_MODULES_H
#define ENGINE_MODULES_H

#include "base/compiler.h"
#include "keyspace/lock.h"
#include "resp/reply.h"

#include <stdatomic.h>
#include <stdint.h>

/* Replies the modules that are loaded, as MODULE LIST and HELLO do. Awake. */
void modules_reply_list(struct reply *r);
/* The name of the module whose code the calling thread runs, or that has called the command that it
 * runs; its path while it is being loaded. NULL: none. For the report of a crash. */
extern _Thread_local const char *modules_running;
/* False while a module is loaded that has not said that a data set may be loaded beside the one
 * that is there (repl-diskless-load swapdb). Awake. */
bool modules_allow_load_aside(void);
/* Modules listen to what happens to keys: a call that runs in exclusive mode is a unit then, and
 * before its end they are told of it, and do what that makes them do. Keyspace. */
extern bool modules_listen;
/* A module has types of values, which its code writes, also in children. From then on; changed in
 * the world. */
extern bool modules_have_types;
/* Tells them; `last`: nothing of the unit is to come, so what they have put off until then is done
 * as well. */
void modules_tell(bool last) REQUIRES(keyspace_lock);
/* Boot: who tells them. */
void modules_set_teller(void (*tell)(bool last));
/* What happens to the server, as modules may ask to be told: the interface's numbers. Parts are the
 * interface's sub-events. */
enum modules_topic {
    MODULES_ROLE = 0, /* now a PRIMARY 0, a REPLICA 1 of `name`, port `first`; `ids`, `offsets` of
                         this history and the one before */
    MODULES_PERSISTENCE = 1, /* in the child that writes: RDB_START 0, AOF_START 1; in the server
                                itself: SYNC_RDB_START 2, SYNC_AOF_START 5; in either: ENDED 3,
                                FAILED 4 */
    MODULES_FLUSH = 2,   /* START 0, END 1: `first` is the database, -1 all; `second`: not lazily */
    MODULES_LOADING = 3, /* RDB_START 0, AOF_START 1, REPL_START 2, ENDED 3, FAILED 4 */
    MODULES_CLIENT = 4, /* CONNECTED 0, DISCONNECTED 1: `session`, `first` bits of modules_client */
    MODULES_SHUTDOWN = 5,    /* 0: the server ends, everything is saved */
    MODULES_REPLICA = 6,     /* one of ours: ONLINE 0, OFFLINE 1 */
    MODULES_LINK = 7,        /* to the primary: UP 0, DOWN 1 */
    MODULES_CRON = 8,        /* 0; `first`: how many times a second */
    MODULES_MODULE = 9,      /* LOADED 0, UNLOADED 1: `name`, `first` its version */
    MODULES_PROGRESS = 10,   /* of loading an RDB 0, an AOF 1: `first` of 1024, -1: unknown */
    MODULES_SWAPDB = 11,     /* 0: `first` and `second` have changed places */
    MODULES_FORK_CHILD = 13, /* BORN 0, DIED 1 */
    MODULES_ASYNC_LOAD = 14, /* STARTED 0, ABORTED 1, COMPLETED 2: from a primary, while what is
                                there is served */
    MODULES_EVENT_LOOP = 15, /* a server thread is about to sleep 0, is awake again 1 */
    MODULES_CONFIG = 16,     /* 0: `first` options, `names` */
    MODULES_KEY = 17,        /* goes: keyspace/event.h tells */
    MODULES_TOPICS,
};

struct session;

/* What a client is beyond its session: the interface's bits. */
enum modules_client {
    MODULES_CLIENT_TLS = 1 << 0,
    MODULES_CLIENT_BLOCKED = 1 << 2,
    MODULES_CLIENT_UNIX = 1 << 4,
};

struct modules_facts {
    int first, second;
    const struct session *session;
    const char *name;
    const char **names;
    const char *ids[2];
    uint64_t offsets[2];
};

/* Bits of the topics that somebody has asked for. Written in exclusive mode, read by anyone. */
extern _Atomic uint32_t modules_topics;
/* Tells it; takes the keyspace lock unless the calling thread has it. Awake, no leaf lock held, and
 * no handler half way through a change. */
void modules_tell_news(enum modules_topic topic, unsigned part, const struct modules_facts *facts);
static inline bool modules_want(enum modules_topic topic)
{
    return unlikely(atomic_load_explicit(&modules_topics, memory_order_relaxed) & 1u << topic);
}
static inline void modules_news(enum modules_topic topic, unsigned part,
                                const struct modules_facts *facts)
{
    if (modules_want(topic)) {
        modules_tell_news(topic, part, facts);
    }
}
/* Tells what has no facts a little later, on the main thread, in the order in which it happened:
 * for who is amid something, or holds a lock. Any thread. */
void modules_tell_news_later(enum modules_topic topic, unsigned part);
static inline void modules_news_later(enum modules_topic topic, unsigned part)
{
    if (modules_want(topic)) {
        modules_tell_news_later(topic, part);
    }
}
/* Boot: who tells it, with the lock; and who sees to it that it is told later. */
void modules_set_reporter(void (*report)(enum modules_topic topic, unsigned part,
                                         const struct modules_facts *facts),
                          void (*report_later)(enum modules_topic topic, unsigned part));
/* Boot: who can tell. Without them (NULL) there are no modules. */
void modules_set_list(void (*reply_list)(struct reply *r));
void modules_set_allow_load_aside(bool (*allow)(void));

#endif
