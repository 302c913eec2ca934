/* The window's effects in the order in which they came, and by the hash of their key.
 *
 *   segment [ effect effect ... ]  heads[hash] -> the newest of that hash; each effect -> the one
 * before it
 *
 * Putting in writes at the end and to one head; taking out touches nothing but the effect itself,
 * and a segment goes when all of its effects have. Nothing is ever moved or hashed anew, so no
 * write pays for what is there. A key is looked for in each segment, which grow with what is in
 * them: few.
 *
 * State: the window's. */
#ifndef ACTIVE_WINDOW_INDEX_H
#define ACTIVE_WINDOW_INDEX_H

#include "active/effect.h"
#include "active/origins.h"
#include "active/unit.h"

#include <stdbool.h>
#include <stddef.h>

struct window_effect {
    struct unit *unit;            /* as long as it is here; NULL: taken out */
    struct version_vector *cover; /* of a state, else NULL; ours */
    uint64_t hash;
    uint64_t latest; /* no effect that came before it, nor it, has a later stamp */
    uint64_t members;
    uint32_t before; /* private */
    uint32_t db;
    uint32_t name_at, name_len; /* in the unit's bytes */
    uint32_t number, offset;    /* of the command in the unit */
    struct effect effect;
    bool hidden; /* a state that nobody sees: window_add_state */
};

/* Private. */
struct window_segment {
    uint64_t base; /* number of its first effect */
    uint32_t capacity, used, here;
    uint16_t *heads; /* by the hash's last bits: place of the newest, from 1; 0: none */
    struct window_effect effects[];
};

/* Zero: empty. */
struct window_index {
    struct window_segment **segments; /* from the oldest */
    uint32_t count, capacity;
    uint64_t next; /* number of the effect that comes next: they are numbered from 0 */
    uint64_t here; /* effects that are not taken out */
    uint32_t gone; /* segments of which nothing is here any more */
    uint64_t latest;
};

/* Frees what it holds. */
void window_index_deinit(struct window_index *x);
/* Whether there is room for one more; has it made. */
static inline bool window_index_has_room(const struct window_index *x);
void window_index_make_room(struct window_index *x);
/* A new effect of that hash and stamp, for which there is room, otherwise zero, for the caller to
 * fill; it counts as here when its unit is set. */
static inline struct window_effect *window_index_add(struct window_index *x, uint64_t hash,
                                                     uint64_t stamp);
/* The effect of that number; NULL when it is not here any more. */
const struct window_effect *window_index_at(const struct window_index *x, uint64_t number);
/* The same, which is here, for the window to change. */
struct window_effect *window_index_open(struct window_index *x, uint64_t number);
/* Takes the effect of that number out, which is here, and frees its cover; what it was is good
 * until the next one is put in, but for its unit and cover. */
const struct window_effect *window_index_remove(struct window_index *x, uint64_t number);
/* Frees segments of which nothing is here any more. The effects' addresses are good until then. */
void window_index_trim(struct window_index *x);
/* The first effect that is here from *number on, which becomes its number; NULL: there is none. */
const struct window_effect *window_index_from(const struct window_index *x, uint64_t *number);

static inline bool window_index_has_room(const struct window_index *x)
{
    return x->count > 0 && x->segments[x->count - 1]->used < x->segments[x->count - 1]->capacity;
}

static inline struct window_effect *window_index_add(struct window_index *x, uint64_t hash,
                                                     uint64_t stamp)
{
    struct window_segment *s = x->segments[x->count - 1];
    uint16_t *head = &s->heads[hash & (s->capacity - 1)];
    struct window_effect *added = &s->effects[s->used];
    x->latest = stamp > x->latest ? stamp : x->latest;
    *added = (struct window_effect){.hash = hash, .latest = x->latest, .before = *head};
    *head = (uint16_t)++s->used;
    s->here++;
    x->here++;
    x->next++;
    return added;
}

/* Brings where the next effect of that hash will be put in towards the cache. */
static inline void window_index_expect(const struct window_index *x, uint64_t hash)
{
    if (likely(x->count > 0)) {
        const struct window_segment *s = x->segments[x->count - 1];
        __builtin_prefetch(&s->heads[hash & (s->capacity - 1)], 1);
    }
}

/* A walk through the effects of a hash that are here, from the last that came. */
struct window_walk {
    const struct window_index *index;
    uint64_t hash;
    uint32_t segment; /* the one that is looked at, counted from 1 */
    uint32_t at;      /* where in it, counted from 1; 0: the next segment's turn */
};
struct window_walk window_walk_begin(const struct window_index *x, uint64_t hash);
/* The next one; NULL at the end. */
const struct window_effect *window_walk_next(struct window_walk *walk);

#endif
