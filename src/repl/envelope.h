/* What an active replica of KeyDB tells its replicas: each command, PING and MULTI too, in an
 * envelope of its own,
 *
 *   RREPLAY uuid command [database [mvcc]]
 *
 * uuid     36 characters: who sends it, a process of KeyDB
 * command  the bytes of one whole request, which is an envelope again where the sender passes on
 *          what he was told; at most 64 of them
 * database a decimal number; what is not told is that of the envelope around it, or 0
 * mvcc     a decimal number, milliseconds since 1970 times 2^20 and a counter: rises with each
 *          message of a sender, and never goes back while his process lives
 *
 * So (uuid, mvcc) of the innermost one names a message, whichever way it came, and the outermost
 * mvcc says when the one who is followed had run it. Facts: what KeyDB 6.3.4 sends. State: none
 * here but for struct envelope_authors, its owner's. */
#ifndef REPL_ENVELOPE_H
#define REPL_ENVELOPE_H

#include "base/arena.h"
#include "base/compiler.h"
#include "base/slice.h"
#include "resp/parser.h"

#include <stdbool.h>
#include <stdint.h>

#define ENVELOPE_UUID_CHARS 36
#define ENVELOPE_DEPTH_MAX 64

struct envelope {
    struct request request; /* the command within all of them; words in the outer request's bytes */
    struct slice author;    /* uuid of who ran it first */
    uint64_t number;        /* his mvcc of it; 0: not told */
    int64_t sent_ms;        /* when the one who sends it had run it, by his clock; 0: not told */
    int db;
};

/* True for an envelope, whole or not. */
bool envelope_is(const struct request *request);
/* Opens all of them; NULL, or what is wrong. Databases are those below `dbs`. The parser is at the
 * start of a request, before and after. */
const char *envelope_open(const struct request *outer, int dbs, struct parser *parser,
                          struct arena *arena, struct envelope *e) MUST_CHECK;
/* The command's name, in any case. */
bool envelope_has(const struct envelope *e, const char *name);

/* How far each author is. The one who has been silent longest is forgotten for a new one. */
#define ENVELOPE_AUTHORS_MAX 64
struct envelope_authors {
    int count;
    struct {
        char uuid[ENVELOPE_UUID_CHARS];
        uint64_t number;
    } rows[ENVELOPE_AUTHORS_MAX];
};
/* False for a message that has come before, by whatever way. */
bool envelope_is_news(const struct envelope_authors *authors, const struct envelope *e);
/* It has been heard. */
void envelope_note(struct envelope_authors *authors, const struct envelope *e);

#endif
