/* Union, intersection and difference of sorted sets, and of sets, whose members have score 1: a
 * walk over some inputs whose members are looked up in others, into a draft. It can stop between
 * two members and go on later, as long as no input has changed (keyspace/changes.h). An input given
 * twice is two. State: owned by the call. SLICES.md says when the lock is released in between. */
#ifndef COMMANDS_ZSETS_OPERATION_H
#define COMMANDS_ZSETS_OPERATION_H

#include "value/set.h"
#include "value/zset.h"

enum zsets_operation_kind { ZSETS_UNION, ZSETS_INTER, ZSETS_DIFF };
enum zsets_aggregate { ZSETS_SUM, ZSETS_MIN, ZSETS_MAX };

struct zsets_input {
    const struct entry *entry; /* NULL: empty */
    bool is_set;
    double weight;
    uint64_t count;
    int place; /* in the request */
};

/* What is wanted. */
struct zsets_request {
    enum zsets_operation_kind kind;
    enum zsets_aggregate aggregate;
    bool counting;  /* how many of an intersection only */
    uint64_t limit; /* of those; 0: none */
};

struct zsets_operation {
    struct zsets_request request;
    struct zset_draft draft; /* the result; not in order yet */
    uint64_t found;          /* counting */
    int count;
    struct zsets_input *inputs; /* in the order of the request; then as it needs them */
    /* Below: its own. */
    bool begun, walking;
    int at; /* the input being walked */
    struct zset_cursor cursor;
    struct set_walk walk;
};

/* An operation on `count` inputs (at least one): the values of keys, NULL where one is missing, and
 * their weights (NULL: 1 each). False, with nothing to free, when one is of another type. */
bool zsets_operation_init(struct zsets_operation *o, const struct zsets_request *request,
                          struct entry *const *values, const double *weights, int count) MUST_CHECK;
/* Says anew what is wanted (of the same kind), and how inputs weigh, before it runs. */
void zsets_operation_want(struct zsets_operation *o, const struct zsets_request *request,
                          const double *weights);
void zsets_operation_deinit(struct zsets_operation *o);
/* About how many members will be walked over or looked up. Before it runs. */
uint64_t zsets_operation_work(const struct zsets_operation *o);
/* Runs it for about `steps` members of the inputs walked over; true at the end, or when the draft
 * is lost. */
bool zsets_operation_run(struct zsets_operation *o, uint64_t steps) MUST_CHECK;

#endif
