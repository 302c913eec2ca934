/* How many random elements a client may ask for at once: as many as max-rand-count says; and with a
 * negative count, which may ask for any number of elements of a collection however small, as many
 * as one hold of the lock should be long for. State: world. */
#ifndef COMMANDS_RANDOM_LIMIT_H
#define COMMANDS_RANDOM_LIMIT_H

#include "engine/call.h"

#include "base/option.h"

/* True when `count` (negative: with repetitions) is within the limit; else the error is replied. */
bool random_limit_allows(struct call *c, int64_t count) MUST_CHECK;

/* Most elements of a reply in which they may repeat, and most bytes copied into it. */
#define RANDOM_REPEATS_MAX (1 << 19)
#define RANDOM_REPEATS_BYTES ((size_t)32 << 20)
/* Elements drawn at a time. */
#define RANDOM_REPEATS_STEP 1024

/* A reply of elements that may repeat. */
struct random_repeats {
    struct call *call;
    struct reply_mark mark;
    size_t bytes; /* copied */
    bool refused;
};

/* Begins such a reply of `count` elements (a field and its value are two). False when they are too
 * many, and the error is replied. */
bool random_repeats_begin(struct random_repeats *r, struct call *c, uint64_t count) MUST_CHECK;
/* One element : its bytes are about to be copied into the reply, or where the reply
 * refers to its `blob` not. False when that is too much in all: what was replied is taken back
 * then, once, and the error stands in its place; so for all that follow. */
bool random_repeats_take(struct random_repeats *r, size_t bytes,
                         const struct blob *blob) MUST_CHECK;

extern const struct option random_limit_options[];

#endif
