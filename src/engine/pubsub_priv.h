/* What the files of the registry share (see pubsub.h). For pubsub.c and pubsub_publish.c only. */
#ifndef ENGINE_PUBSUB_PRIV_H
#define ENGINE_PUBSUB_PRIV_H

#include "base/lock.h"
#include "ds/table.h"
#include "engine/pubsub.h"

/* A channel or a pattern that somebody subscribes to. */
struct topic {
    uint64_t hash;
    uint64_t receivers;    /* bit i: receiver i has subscribers */
    uint64_t subscribers;  /* of all receivers */
    _Atomic uint32_t refs; /* the registry's, and those of lists of patterns */
    enum pubsub_kind kind;
    size_t index; /* of a pattern, in registry.patterns */
    size_t len;
    char name[];
};

/* The patterns of a moment. */
struct pattern_list {
    _Atomic uint32_t refs;
    uint64_t generation;
    size_t count;
    struct topic *patterns[];
};

struct queue {
    struct pubsub_message *first, **last;
    _Atomic size_t cost;
};

struct pubsub_registry {
    const struct pubsub_delivery *delivery; /* immutable after boot */
    int receiver_count;
    _Atomic uint64_t topics;            /* all kinds: 0 when nobody listens to anything */
    _Atomic uint64_t pattern_receivers; /* bit i: receiver i has patterns; written under the lock */
    struct lock lock;                   /* guards what follows */
    struct table table;
    uint64_t names[PUBSUB_KIND_COUNT];
    struct topic **patterns;
    size_t pattern_capacity;
    uint64_t pattern_subscribers;
    uint64_t patterns_of[PUBSUB_RECEIVERS_MAX]; /* names, by receiver */
    uint64_t generation;                        /* of the patterns */
    struct pattern_list *list;                  /* of this generation, or NULL */
    struct queue queues[PUBSUB_RECEIVERS_MAX];
};

extern struct pubsub_registry pubsub_registry;

static inline struct slice topic_name(const struct topic *t)
{
    return slice_of(t->name, t->len);
}

/* The topic of that name, or NULL. */
struct topic *pubsub_find_topic(enum pubsub_kind kind, uint64_t hash, struct slice name)
    REQUIRES(pubsub_registry.lock);
/* One reference less. */
void pubsub_release_patterns(struct pattern_list *list);
/* The keyspace's listener: publishes an event. */
void pubsub_on_event(const char *event, int db, struct slice key, unsigned mask);

#endif
