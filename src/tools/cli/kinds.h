/* What is known of each type of value while the keyspace is walked over: how many keys have it,
 * what they sum up to, and which is the biggest.
 *
 * State: plain value, owned by the mode that walks. The six types that every server has come first
 * and are there from the start; others (modules' types, nested hashes) are added as they are met.
 * Bounds: KINDS_MAX types, names of at most KIND_NAME_MAX bytes, printable and without
 * blanks: who names more is no server.
 * Sums stop at the largest number. */
#ifndef TOOLS_CLI_KINDS_H
#define TOOLS_CLI_KINDS_H

#include <stdbool.h>
#include <stddef.h>

#define KINDS_MAX 256
#define KIND_NAME_MAX 64

/* One measure of a type's keys. */
struct measure {
    unsigned long long sum;
    unsigned long long biggest; /* 0: of none */
    char *biggest_name;         /* NULL: of none; a zero byte follows */
    size_t biggest_len;
};

struct kind {
    char name[KIND_NAME_MAX + 1];
    const char *command; /* tells the length of a key; NULL: there is none */
    const char *unit;    /* of that length */
    unsigned long long keys;
    struct measure length;
    struct measure memory;
};

struct kinds {
    struct kind *list[KINDS_MAX];
    size_t count;
};

/* Only the six types, no keys. */
void kinds_init(struct kinds *k);
void kinds_deinit(struct kinds *k);

/* The type with that name, added where it is new. NULL when the bounds forbid it. */
struct kind *kinds_find(struct kinds *k, const char *name, size_t len);

/* Counts a key. Whether it is the biggest so far. */
bool measure_add(struct measure *m, unsigned long long size, const char *name, size_t len);

/* a + b, or the largest number. */
unsigned long long sum_bounded(unsigned long long a, unsigned long long b);

#endif
