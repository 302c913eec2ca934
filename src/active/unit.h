/* A unit: one write as it travels, its commands in one allocation, shared by the logs and the
 * window; small ones stand in blocks together. The commands are a request's bytes:
 * "*2\r\n$3\r\nDEL\r\n$1\r\nk\r\n"...; SELECT stands where the database changes, and is not one of
 * them. State: immutable but for the count, which is keyspace's (exclusive mode). */
#ifndef ACTIVE_UNIT_H
#define ACTIVE_UNIT_H

#include "base/buf.h"
#include "base/compiler.h"
#include "base/slice.h"
#include "active/origins.h"

#include <stdbool.h>
#include <stdint.h>

struct unit {
    uint32_t references;
    uint16_t db; /* of its first command */
    /* Ours, and what it did hangs on what was there: those that it may be a consequence of are told
     * before it (sender.h). Set before it is in a log. */
    bool has_causes;
    bool is_large; /* stands in for a write that is told to nobody (large_writes.h) */
    uint32_t len;
    uint32_t place; /* private: in its block; 0: it has none */
    struct dot dot;
    char bytes[];
};

#define UNIT_FEW_WORDS 8
/* A command of a unit. `argv` lives until the next one, slices as long as the unit. It is not
 * copied. */
struct unit_command {
    int db;
    uint32_t number; /* in its unit, from 0 */
    uint32_t offset; /* where it begins, in the unit's bytes */
    int argc;
    struct slice *argv;
    uint32_t end;                     /* private: behind it */
    int capacity;                     /* private */
    struct slice few[UNIT_FEW_WORDS]; /* private: argv, unless there are more */
};

/* NULL when `commands` are not one or more whole commands; a reference of the caller's. */
struct unit *unit_create(struct dot dot, int db, struct slice commands) MUST_CHECK;
/* The same of commands that were written down here: they are, and only debug builds look. */
struct unit *unit_create_sound(struct dot dot, int db, struct slice commands);
static inline struct unit *unit_acquire(struct unit *u);
static inline void unit_release(struct unit *u);
void unit_free(struct unit *u); /* private: nobody has it */
static inline struct unit *unit_acquire(struct unit *u)
{
    u->references++;
    return u;
}
static inline void unit_release(struct unit *u)
{
    if (u && --u->references == 0) {
        unit_free(u);
    }
}

/* From now on about so many bytes of units are kept, which says how large the blocks may be that
 * small ones stand in: a 64th part. Exclusive mode, or boot. */
void unit_keep(size_t bytes_max);
/* Of what is kept of units up to a bound so much goes at a time when that is reached, so that not
 * every write has to look: a sixty-fourth part, not more than is done in some milliseconds; nothing
 * of a small bound. */
size_t unit_spare(size_t bytes_max);

/* A word of a command that is written down, behind "*" and the number of its words. */
void unit_put_word(struct buf *out, struct slice word);
void unit_put_number(struct buf *out, uint64_t number);

/* Before the first command. */
static inline struct unit_command unit_command_before(const struct unit *u)
{
    struct unit_command c; /* `few` is read only where it was written */
    c.db = u->db;
    c.number = UINT32_MAX;
    c.offset = c.end = 0;
    c.argc = c.capacity = 0;
    c.argv = NULL;
    return c;
}
/* Goes to the next command; false, and everything freed, when there is none. Who stops before calls
 * unit_command_end. */
static inline bool unit_command_next(const struct unit *u, struct unit_command *c);
/* What nearly all units are: SET key value and nothing else. *c is read then as by
 * unit_command_next, with nothing to end; else it is anything. */
bool unit_is_set(const struct unit *u, struct unit_command *c);
/* Reads the one command at `offset` again, where its first reading found it. */
void unit_command_at(const struct unit *u, uint32_t offset, struct unit_command *c);
void unit_command_end(struct unit_command *c);
bool unit_command_read(const struct unit *u, struct unit_command *c); /* what is at c->end */
static inline bool unit_command_next(const struct unit *u, struct unit_command *c)
{
    if (c->end < u->len) {
        return unit_command_read(u, c);
    }
    unit_command_end(c);
    return false;
}
/* Ends it, and gives its words to the caller, who frees them (mem_free). */
struct slice *unit_command_take(struct unit_command *c) MUST_CHECK;
/* The words of the first of some commands, which may be longer than a unit, go to c->argv, and the
 * slice behind it; false when there is no whole one. `c` is zero at first; unit_command_end. */
bool unit_take_words(struct slice *commands, struct unit_command *c) MUST_CHECK;

#endif
