/* What a told command does to each of its keys, so that a late one can be put where it belongs: the
 * table of classes that README, "A write that is late", speaks of. Pure functions over argv. */
#ifndef REPL_ACTIVE_CLASS_H
#define REPL_ACTIVE_CLASS_H

#include "base/compiler.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

enum active_class {
    ACTIVE_ORDER,   /* the result depends on what was there: what is not in the table */
    ACTIVE_WHOLE,   /* the key is what this says */
    ACTIVE_ASSIGN,  /* each member named is what this says */
    ACTIVE_ADD,     /* the one register named changes by so much */
    ACTIVE_STATE,   /* KEYDB.STATE: a node's content of a key that was disputed */
    ACTIVE_FLUSH,   /* whole, for every key of its database, or of all */
    ACTIVE_KEYLESS, /* touches no key */
    ACTIVE_UNTOLD,  /* never told by an active replica: its effects are told in another form */
};

/* Members live in a value of one of these; a key's deadline is a register of keys of any. */
enum active_type {
    ACTIVE_ANY,
    ACTIVE_STRING,
    ACTIVE_HYPERLOGLOG,
    ACTIVE_HASH,
    ACTIVE_SET,
    ACTIVE_ZSET,
    ACTIVE_STREAM,
};

/* What a command of class assign or add does to what it names. */
enum active_effect {
    ACTIVE_GIVES = 1 << 0,   /* it is there afterwards */
    ACTIVE_TAKES = 1 << 1,   /* it is gone afterwards */
    ACTIVE_DATES = 1 << 2,   /* it gets a deadline, where it is there */
    ACTIVE_UNDATES = 1 << 3, /* it has no deadline afterwards */
};

/* What one command does to one of its keys. */
struct active_piece {
    enum active_class class;
    enum active_type type;
    unsigned effects; /* enum active_effect */
    int key;          /* its index in argv; 0 for ACTIVE_FLUSH and ACTIVE_KEYLESS */
    int values;       /* of a command of several keys: words behind each key; else -1 */
    /* Members: argv[first], argv[first + step] ..., so many. None: the effects are the key's own.
     */
    int first, step, count;
};

/* The piece with this number, from 0: a command has one for each of its keys. False when it has
 * none of that number. */
bool active_classify(int argc, const struct slice *argv, int number, struct active_piece *piece);

/* Most words of a command for one of several keys. */
#define ACTIVE_PIECE_WORDS 3
/* The command that does this piece alone: argv itself, or words in `words`. Returns its argc. */
int active_piece_command(const struct active_piece *piece, int argc, const struct slice *argv,
                         struct slice words[ACTIVE_PIECE_WORDS], const struct slice **command);

static inline struct slice active_piece_member(const struct active_piece *p,
                                               const struct slice *argv, int i)
{
    return argv[p->first + i * p->step];
}

/* True when the command's class is told by the table, and not by default. Tests. */
bool active_class_is_listed(struct slice name);

#endif
