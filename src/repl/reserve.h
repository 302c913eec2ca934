/* A stream's part on disk (repl-backlog-disk-reserve): the last bytes of a chain (chain.h), many
 * more than memory keeps, in a file of fixed size that is written round and round
 * (reserve_file.h). So who was away for hours goes on where he was.
 *
 *     begin           written      end
 *       |  in the file   | queue    |     what is kept, without gaps
 *
 * The writer appends to its chain and says so (reserve_note): no more, nothing is copied, and it
 * never waits for the disk. A thread of the reserve's own follows the chain as one of its readers,
 * and writes each block once it is full; until then the bytes are read from the chain.
 *
 *   MAKING --the file is there--> READY --a fault of the disk, or of what is read--> BROKEN
 *      ^                                                                               |
 *      +------------------------------ RESERVE_RETRY_MS -------------------------------+
 *
 * A fault costs what is kept and nothing else: who wants it is told that it is not there. So does a
 * disk that falls behind by more than RESERVE_QUEUE_BYTES: that much memory it may take beside the
 * chain's own. What is read is checked, so it is what was written, or it is not kept.
 *
 * State: reserve_follow, _note and _leave are the chain's writer's side (one at a time); the rest
 * is behind the reserve's leaf lock, and for any thread. */
#ifndef REPL_RESERVE_H
#define REPL_RESERVE_H

#include "base/compiler.h"
#include "repl/chain.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A smaller one is made so large. */
#define RESERVE_LEAST_BYTES ((uint64_t)1024 * 1024)
/* The most that waits to be written (a replica's default output limit: one value of that size comes
 * through). */
#define RESERVE_QUEUE_BYTES ((uint64_t)256 * 1024 * 1024)
/* After a fault the file is made anew so much later. */
#define RESERVE_RETRY_MS 60000

struct reserve;

/* A reserve of so many bytes in the working directory, which follows nothing yet; `name`: of the
 * file for a moment, and in the log. NULL, logged: it has no thread. */
struct reserve *reserve_create(const char *name, uint64_t bytes) MUST_CHECK;
/* Waits for its thread; nobody reads any more. Nulls the caller's pointer, which may be NULL. */
void reserve_destroy(struct reserve **r);

/* Forgets what is kept; from the chain's end on its bytes are kept. */
void reserve_follow(struct reserve *r, const struct chain *c);
/* Something has been appended to the chain that is followed. */
void reserve_note(struct reserve *r, const struct chain *c);
/* Whoever comes from now on finds nothing kept from before the chain's end; who has a place already
 * reads on. */
void reserve_hide(struct reserve *r, const struct chain *c);
/* Forgets what is kept, and follows nothing. */
void reserve_leave(struct reserve *r);

/* A place in what is kept; that it is of another stream's life is found out. */
struct reserve_place {
    uint64_t life;
    uint64_t position; /* offset of the next byte */
};

/* The place of that offset; false when it is not kept. The end is. */
bool reserve_place_at(struct reserve *r, uint64_t position, struct reserve_place *place) MUST_CHECK;
/* Whether the place is of the life that is followed now, kept or not. */
bool reserve_is_of_now(struct reserve *r, const struct reserve_place *place);
/* The next bytes at the place, which goes behind them, at most `max`: their number, 0 at the end,
 * -1 when they are not kept (any more). Waits for the disk: the caller holds no lock. */
ssize_t reserve_read(struct reserve *r, struct reserve_place *place, char *into,
                     size_t max) MUST_CHECK;

enum reserve_state { RESERVE_MAKING, RESERVE_READY, RESERVE_BROKEN };

struct reserve_facts {
    enum reserve_state state;
    uint64_t size_bytes; /* of the file */
    uint64_t begin, end; /* offsets of what is kept, for who comes */
    uint64_t queued_bytes;
    uint64_t faults; /* how often what was kept has been given up */
};
/* How it is just now. */
void reserve_look(struct reserve *r, struct reserve_facts *facts);
/* "making", "ready" or "broken". */
const char *reserve_state_word(enum reserve_state state);

#endif
