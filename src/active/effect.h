/* What a told command does to each of its keys, so that a late one can be put where it belongs: the
 * table of classes that DESIGN.md, "Late writes", speaks of. Pure functions over argv. */
#ifndef ACTIVE_EFFECT_H
#define ACTIVE_EFFECT_H

#include "base/compiler.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

enum effect_class {
    EFFECT_ORDER,   /* the result depends on what was there: what is not in the table */
    EFFECT_WHOLE,   /* the key is what this says */
    EFFECT_ASSIGN,  /* each member named is what this says */
    EFFECT_ADD,     /* the one register named changes by so much */
    EFFECT_STATE,   /* KEYDB.STATE, KEYDB.DIGESTS: a node's content of keys that were in conflict */
    EFFECT_FLUSH,   /* whole, for every key of its database, or of all */
    EFFECT_KEYLESS, /* touches no key */
    EFFECT_LIBRARY, /* likewise: libraries of functions (libraries.h) */
    EFFECT_UNTOLD,  /* never told by an active replica: its effects are told in another form */
};

/* Members live in a value of one of these; a key's deadline is a register of keys of any. */
enum effect_type {
    EFFECT_ANY,
    EFFECT_STRING,
    EFFECT_HYPERLOGLOG,
    EFFECT_HASH,
    EFFECT_SET,
    EFFECT_ZSET,
    EFFECT_STREAM,
    EFFECT_LIST, /* of class order: pushes, and taking the element nearest to an end, or all alike
                  */
};

/* What a command of class assign or add, or of a list, does to what it names. */
enum effect_flag {
    EFFECT_GIVES = 1 << 0,   /* it is there afterwards */
    EFFECT_TAKES = 1 << 1,   /* it is gone afterwards */
    EFFECT_DATES = 1 << 2,   /* it gets a deadline, where it is there */
    EFFECT_UNDATES = 1 << 3, /* it has no deadline afterwards */
    EFFECT_EXPIRES = 1 << 4, /* only where it has the deadline that is named */
    EFFECT_LEFT = 1 << 5,    /* at a list's head, not its tail */
    EFFECT_INEXACT = 1 << 6, /* it adds no integer below 2^53: such sums depend on their order */
};

#define EFFECT_OF_ONE_KEY (-1)
/* What one command does to one of its keys. */
struct effect {
    enum effect_class class : 8;
    enum effect_type type : 8;
    uint8_t flags; /* enum effect_flag */
    int8_t values; /* of a command of several keys: words behind each key; else EFFECT_OF_ONE_KEY */
    int key;       /* its index in argv; 0 for EFFECT_FLUSH and those without a key */
    int8_t scope;  /* what its members belong to within the key, as an index in argv; 0: the key */
    /* Members: argv[first], argv[first + step] ..., so many. None: the effects are the key's own.
     */
    int8_t first, step;
    int count;
};

/* What SET key value does, as effect_of has it. */
extern const struct effect effect_of_set;

/* The effect with this number, from 0: a command has one for each of its keys. False when it has
 * none of that number. */
bool effect_of(int argc, const struct slice *argv, int number, struct effect *effect);

/* To walk through all of them: the same, where *effect is of the number before. */
static inline bool effect_walk(int argc, const struct slice *argv, int number,
                               struct effect *effect)
{
    return (number == 0 || effect->values != EFFECT_OF_ONE_KEY) &&
           effect_of(argc, argv, number, effect);
}

/* True for an integer below 2^53: doubles hold each, so sums that are such do not depend on order.
 */
static inline bool effect_is_exact(double number)
{
    return number < 0x1p53 && number > -0x1p53 && number == (double)(int64_t)number;
}

/* Most words of a command for one of several keys. */
#define EFFECT_WORDS 3
/* The command that does this effect alone: argv itself, or words in `words`. Returns its argc. */
int effect_command(const struct effect *effect, int argc, const struct slice *argv,
                   struct slice words[EFFECT_WORDS], const struct slice **command);

/* Empty: it has none. */
static inline struct slice effect_key(const struct effect *p, const struct slice *argv)
{
    return p->key > 0 ? argv[p->key] : slice_of("", 0);
}

static inline struct slice effect_member(const struct effect *p, const struct slice *argv, int i)
{
    return argv[p->first + i * p->step];
}

/* What its members belong to; empty: the key. */
static inline struct slice effect_scope(const struct effect *p, const struct slice *argv)
{
    return p->scope > 0 ? argv[p->scope] : slice_of("", 0);
}

/* True for a state of which only the digest is told. */
static inline bool effect_is_digest(const struct effect *p)
{
    return p->class == EFFECT_STATE && p->values != -1;
}

/* True when the command's class is told by the table, and not by default. Tests. */
bool effect_is_listed(struct slice name);

#endif
