/* What happens to keys, told to whoever has asked: named events for notify-keyspace-events, and
 * bare changes for WATCH and client-side caching. Listeners are registered at boot, run under the
 * keyspace lock in exclusive mode on the writer's thread, in order of registration, and only move
 * messages. State: the listener list is immutable after boot; the event mask is world state. */
#ifndef KEYSPACE_EVENT_H
#define KEYSPACE_EVENT_H

#include "base/option.h"
#include "base/slice.h"
#include "keyspace/lock.h"

#include <stdint.h>

struct db;

/* Classes of events: the letters of notify-keyspace-events. */
enum event_class {
    EVENT_GENERIC = 1 << 0,   /* g */
    EVENT_STRING = 1 << 1,    /* $ */
    EVENT_LIST = 1 << 2,      /* l */
    EVENT_SET = 1 << 3,       /* s */
    EVENT_HASH = 1 << 4,      /* h */
    EVENT_ZSET = 1 << 5,      /* z */
    EVENT_EXPIRED = 1 << 6,   /* x */
    EVENT_EVICTED = 1 << 7,   /* e */
    EVENT_STREAM = 1 << 8,    /* t */
    EVENT_KEY_MISS = 1 << 9,  /* m */
    EVENT_MODULE = 1 << 10,   /* d */
    EVENT_NEW = 1 << 11,      /* n */
    EVENT_KEYSPACE = 1 << 12, /* K */
    EVENT_KEYEVENT = 1 << 13, /* E */
    EVENT_LOADED = 1 << 14,   /* for the watcher alone */
};

typedef void (*event_listener)(const char *event, int db, struct slice key, unsigned mask);
typedef void (*change_listener)(struct db *db, struct slice key);

/* Boot only. A change listener gets an empty key (ptr NULL) when a whole database changed. */
void event_add_listener(event_listener listener);
void event_add_change_listener(change_listener listener);

/* Tells that `event` ("set", "del", "expired" ...) of `class` happened to `key`. Cheap when the
 * class is off. */
void event_notify(enum event_class class, const char *event, int db, struct slice key)
    REQUIRES(keyspace_lock);
/* Modules listen too: one watcher, told before all listeners of events of its classes, whatever
 * notify-keyspace-events says. It runs amid a change, so it notes and does nothing else. 0 and
 * NULL: nobody. */
typedef void (*event_watcher)(enum event_class class, const char *event, int db, struct slice key);
void event_set_watcher(unsigned classes, event_watcher watcher) REQUIRES(keyspace_lock);
/* Modules look at keys whose values go, while they are still there. One watcher, which is told amid
 * the change: it looks, at any key, but changes nothing. NULL: nobody. */
enum event_going { GOING_DELETED, GOING_EXPIRED, GOING_EVICTED, GOING_OVERWRITTEN };
typedef void (*event_going_watcher)(enum event_going how, const struct db *db, struct slice key);
extern event_going_watcher event_watches_going; /* set by the function below */
void event_set_going_watcher(event_going_watcher watcher) REQUIRES(keyspace_lock);
/* The key's value goes. Those that are taken out of the database are told of by db_take; whoever
 * puts a value of his own in the place of another one tells himself. Flushing does not tell. */
static inline void event_key_goes(enum event_going how, const struct db *db, struct slice key)
    REQUIRES(keyspace_lock);
static inline void event_key_goes(enum event_going how, const struct db *db, struct slice key)
{
    if (unlikely(event_watches_going != NULL)) {
        event_watches_going(how, db, key);
    }
}
/* What notify-keyspace-events says: bits of event_class. */
unsigned event_mask(void);
/* Tells that the key's value or existence changed. */
void event_key_changed(struct db *db, struct slice key) REQUIRES(keyspace_lock);
/* True while notify-keyspace-events has events published (K, E). */
bool event_is_published(void);
/* True when misses are to be told (class m): a shared-mode reader then notes the miss for later. */
bool event_wants_misses(void);

/* The option notify-keyspace-events. */
extern const struct option event_options[];

#endif
