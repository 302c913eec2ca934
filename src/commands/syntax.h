/* The argument notation of command rows, taken apart: "key value [NX|XX] [EX seconds|PX
 * milliseconds]" becomes the tree that COMMAND DOCS replies and that command line clients make
 * their hints from. Pure functions.
 *
 *   notation             meaning
 *   word                 a value; its type follows from its name
 *   WORD                 a token; before a value it is that value's token
 *   WORD a b             a block with a token
 *   [x]                  optional
 *   <x|y>                one of them
 *   [WORD x|y]           the token stands before the choice when x is a token or nothing else has
 * one a b [a b ...]        repeated; with the token inside, the token is repeated as well */
#ifndef COMMANDS_SYNTAX_H
#define COMMANDS_SYNTAX_H

#include "engine/command.h"

/* The largest command (CLIENT KILL) has fewer than half of it. */
#define SYNTAX_MAX_NODES 96
#define SYNTAX_NAME_BYTES 48

enum syntax_flag {
    SYNTAX_OPTIONAL = 1 << 0,
    SYNTAX_MULTIPLE = 1 << 1,
    SYNTAX_MULTIPLE_TOKEN = 1 << 2,
};

struct syntax_node {
    char name[SYNTAX_NAME_BYTES]; /* NUL-terminated */
    const char *type;   /* "key", "string", "integer" ... "oneof", "block", "pure-token" */
    struct slice token; /* as written; len 0: none */
    unsigned flags;     /* enum syntax_flag */
    int key_spec;       /* index of the key spec, -1 for what is no key */
    int child, next;    /* indexes into the tree's nodes, -1 for none */
    struct slice text;  /* its own notation, the token included */
};

struct syntax_tree {
    struct syntax_node nodes[SYNTAX_MAX_NODES];
    int count;
    int first; /* of the top level, -1 when there are no arguments */
};

/* Builds the tree of a command's arguments; slices point into its row. False when the notation is
 * malformed or too large. */
bool syntax_parse(const struct command *cmd, struct syntax_tree *tree);

#endif
