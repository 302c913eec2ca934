/* Hot keys: those whose writes in the window are found by the members that they name as well, so
 * that a late one meets what matters to it and not all that is behind it (merge_hot.c).
 *
 *   key -> member -> its plain writes, the last that came first
 *
 * A plain write is one that does to each of its members what it says, whatever else there is: of
 * class assign or add without deadlines; a push to an end of a list, or the taking of an element.
 * What groups of a stream have pending is found by the entry alone. Of all other writes a key has
 * only the latest stamps. Members are told apart by 64 bits of the keyed hash: two with the same
 * would pass for one, which nobody can bring about.
 *
 * A key becomes hot when a late write wants it (window_hot), which reads all that the window has of
 * it, once; from then on each write is added. What leaves the window is not taken out here: whoever
 * looks wants what is behind a stamp above the window's floor, and all of that is in the window.
 * The rest is dropped when there is no room. Where there is none for all keys' writes together, a
 * key's table begins anew behind its last write: what came before is as if it were not plain. A key
 * is dropped whole when all of its writes have left, or when nobody has wanted anything of it for
 * long. Of nine keys that want the same eight places the one that was not wanted for longest goes.
 *
 * State: the window's. */
#ifndef ACTIVE_HOT_KEYS_H
#define ACTIVE_HOT_KEYS_H

#include "base/buf.h"
#include "active/origins.h"
#include "active/window_index.h"

#include <stdbool.h>
#include <stdint.h>

enum hot_does {
    HOT_GIVES = 1 << 0, /* the member is what this says; an element more */
    HOT_TAKES = 1 << 1, /* the member is gone; an element less */
    HOT_ADDS = 1 << 2,
    HOT_LEFT = 1 << 3, /* beside one of these: at a list's head */
};
#define HOT_KINDS 3 /* the first ones */

/* A plain write, once for each member that it names. */
struct hot_write {
    const struct window_effect *effect; /* good while the stamp is above the window's floor */
    uint64_t stamp;
    uint64_t member; /* its hash */
    /* Of each kind: none that came before it, nor it, has a later stamp; 0: there was none. */
    uint64_t latest[HOT_KINDS];
    uint32_t before; /* private */
    uint32_t walk;   /* for who walks: the last walk that met it */
    unsigned does;   /* enum hot_does */
};

struct hot_key {
    /* All plain writes behind `other` are of that type. */
    enum effect_type type;
    /* The latest stamps, 0 for none: of what is not plain or of another type; of whole writes; of
     * what goes by its deadline. */
    uint64_t other, whole, expires;
    uint64_t inexact;                  /* the same of EFFECT_INEXACT */
    const struct window_effect *state; /* the last state; good as hot_write.effect is */
    struct dot state_dot;              /* its; {0, 0}: there was none */
    struct dot last;                   /* of all writes */
    /* For who puts late ones in (merge_hot.c): until then none is begun from a base, nor
     * all behind one looked at, and few elements of a list are moved for one. */
    int64_t fold_after_ms, lift_after_ms;
    uint32_t walks;
    uint32_t idle; /* writes that came since it was wanted */
    /* private */
    uint64_t wanted; /* when: hot_keys.wants of that moment */
    uint64_t hash;
    uint32_t db;
    struct buf name;
    struct hot_write *writes; /* in the order in which they came */
    uint32_t count, capacity;
    uint32_t *heads; /* by the member's hash: place of the newest, from 1; 0: none */
    uint32_t heads_capacity, members;
};

/* Zero: none. */
struct hot_keys {
    struct hot_key **slots; /* NULL: none yet */
    uint32_t count;
    uint64_t wants;  /* how often a key was wanted */
    uint64_t writes; /* that there is room for in all tables together */
};

/* True for an effect that is plain. */
bool hot_is_plain(const struct effect *effect);
/* The hash by which a member is known. */
uint64_t hot_member(struct slice member);

/* Frees what it holds, and leaves it zero. */
void hot_keys_deinit(struct hot_keys *h);
/* The key with that hash and name; NULL: it is not hot. */
struct hot_key *hot_keys_find(const struct hot_keys *h, uint64_t hash, uint32_t db,
                              struct slice name);
/* Makes it hot, without a write so far; it is wanted. */
struct hot_key *hot_keys_make(struct hot_keys *h, uint64_t hash, uint32_t db, struct slice name);
/* Somebody wants something of it. */
void hot_keys_want(struct hot_keys *h, struct hot_key *k);
/* Drops it. */
void hot_keys_drop(struct hot_keys *h, struct hot_key *k);
/* Drops those without a write above the floor. */
void hot_keys_forget(struct hot_keys *h, uint64_t floor);
/* True when nobody wanted it for long: to be dropped. */
bool hot_key_is_cold(const struct hot_key *k);

/* What a table's writes may cost: those up to the floor may go, and so may all where there would be
 * room for more than so many in all tables (beyond the least that each has). */
struct hot_room {
    uint64_t floor, writes_max;
};
/* A write of it that has come into the window, with its words. */
void hot_key_add(struct hot_keys *h, struct hot_key *k, const struct origins *o,
                 const struct window_effect *effect, const struct slice *argv,
                 struct hot_room room);
/* The last that came of the plain writes that name the member (hot_member; that of the empty slice
 * for those that name none); NULL: there is none. */
struct hot_write *hot_key_named(const struct hot_key *k, uint64_t member);
/* The one that came before it. */
struct hot_write *hot_key_before(const struct hot_key *k, const struct hot_write *write);

#endif
