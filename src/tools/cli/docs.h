/* What the server tells about its commands (COMMAND DOCS), for help, hints and completion.
 *
 * Owns: all strings and argument trees. State: built once, then only read.
 * A server that does not know COMMAND DOCS (before Redis 7) at least tells the names (COMMAND). */
#ifndef TOOLS_CLI_DOCS_H
#define TOOLS_CLI_DOCS_H

#include <stdbool.h>
#include <stddef.h>

#include "tools/common/reply.h"
#include "tools/common/text.h"
#include "tools/common/words.h"

enum doc_arg_kind {
    DOC_ARG_VALUE, /* one word the user chooses */
    DOC_ARG_TOKEN, /* one fixed word */
    DOC_ARG_ONEOF, /* one of `parts` */
    DOC_ARG_BLOCK, /* all of `parts`, in order */
};

struct doc_arg {
    enum doc_arg_kind kind;
    char *label; /* how the value is shown, never NULL */
    char *token; /* fixed word: before the value, or (TOKEN) all there is; NULL: none */
    bool optional;
    bool multiple;
    bool multiple_token; /* each repetition has its own token */
    struct doc_arg *parts;
    size_t part_count;
};

struct doc_command {
    char *name; /* upper case, "CLIENT KILL" */
    size_t name_words;
    char *summary; /* "" where the server does not say */
    char *since;
    char *group;
    struct doc_arg *args;
    size_t arg_count;
};

struct docs {
    struct doc_command *commands; /* by name */
    size_t command_count;
    const char **groups; /* by name, each once; the strings are the commands' */
    size_t group_count;
};

/* Builds the table from the reply to COMMAND DOCS, RESP2 or RESP3; what does not look as expected
 * is left out. */
void docs_build(struct docs *d, const struct reply *reply);

/* Builds a table of names alone from the reply to COMMAND: an array of arrays that each start
 * with a name. */
void docs_build_names(struct docs *d, const struct reply *reply);

/* Frees everything and leaves an empty table. */
void docs_deinit(struct docs *d);

/* The command whose name's words are the first words of `line`, the longest such name; NULL when
 * there is none. */
const struct doc_command *docs_find(const struct docs *d, const struct words *line);

/* Appends one argument, or all of a command's with blanks between them, as help shows them:
 * "key value [NX|XX] [EX seconds]". */
void docs_append_arg(struct text *out, const struct doc_arg *arg);
void docs_append_args(struct text *out, const struct doc_arg *args, size_t count);

#endif
