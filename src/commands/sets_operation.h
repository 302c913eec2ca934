/* Intersection, union and difference of sets: a walk over some sets whose members are looked up in
 * others, giving what passes to a sink. It can stop between two members and go on later, as long as
 * no set has changed (keyspace/changes.h). State: owned by the call.
 * SLICES.md says when the lock is released in between. */
#ifndef COMMANDS_SETS_OPERATION_H
#define COMMANDS_SETS_OPERATION_H

#include "commands/gathered.h"
#include "commands/sets_index.h"
#include "value/set.h"

enum sets_operation_kind { SETS_INTER, SETS_UNION, SETS_DIFF };

/* Where members go: into a set, to the reply, or nowhere but into the count. */
struct sets_sink {
    struct entry *into;
    struct reply *reply;       /* at once */
    struct gathered *gathered; /* later */
    uint64_t count;
    uint64_t limit; /* stops there; UINT64_MAX: none */
    bool lost;      /* there was no memory for all: the result is not whole */
};

/* Sets that need no allocation for their list. */
#define SETS_INLINE 16

/* A bit for each hash of so many times 64: what is not marked is new. Enough for a packed set,
 * whose members are dear to look for. */
#define SETS_SEEN_WORDS 16

struct sets_operation {
    enum sets_operation_kind kind;
    struct entry **sets; /* in the order of the request, NULL for missing keys; then as it needs
                            them */
    int count;
    struct sets_sink sink;
    /* Below: its own. */
    bool begun;
    bool filtering;           /* DIFF: gathering what the others have of the first */
    bool walking;             /* `walk` is in a set */
    int at;                   /* that set's number */
    struct entry *own;        /* a set of its own, that lasts as long as it */
    struct sets_index *index; /* sets that are small and packed: what some of them have */
    unsigned until_look;      /* members until the next look at the clock */
    uint64_t begin_ticks;     /* of this run */
    uint64_t budget_ns;       /* and how long it may take; 0: any time */
    uint64_t seen_bits[SETS_SEEN_WORDS]; /* UNION: of the members that it has */
    struct set_walk walk;
    struct entry *room[SETS_INLINE];
};

/* An operation on `count` sets (at least one), which the caller fills into o->sets. */
void sets_operation_init(struct sets_operation *o, enum sets_operation_kind kind, int count);
/* Frees all but what the sink leads to. */
void sets_operation_deinit(struct sets_operation *o);
/* About how many members will be walked over or looked up. Before it runs. */
uint64_t sets_operation_work(const struct sets_operation *o);
/* Runs it, for `budget_ns` at least (0: to its end) unless it ends before; true at the end. Sets
 * that are packed are not stopped within. */
bool sets_operation_run(struct sets_operation *o, uint64_t budget_ns);

#endif
