/* Which nodes share the work of serving those who wait for keys (blocked pops), and which of them
 * serves a key: its home. Each element goes to one of all who wait, because only the home gives,
 * and because a home hands over before another one begins.
 *
 * A node's view is the set of nodes that it has heard of lately, itself included, as far as they
 * take part. It tells its view by a unit of its own, which everybody gets in order with its other
 * writes: so who has heard that a node is in a view has all that the node gave away before. A view
 * is settled when all of its members have told it. Only then a home, which each member finds out by
 * itself from the key's name, gives anything (the scheme is that of virtual synchrony's views, made
 * small: no flush is needed, for units come in order). Nodes that are cut off from one another
 * settle on views of their own, and each side gives what it has.
 *
 * Who takes no part yet (it listens first, or a data set is being merged) is left out by those who
 * do: when it enters, its view has them, and is not settled before they have told the same one. Of
 * two that enter at once each must not leave out the other. So whoever enters, until its view is
 * settled for the first time, has all in it that it hears, unless it hears somebody who takes part
 * already: that one is in both their views, and cannot tell two at once.
 *
 * Who has missed words of others (a data set came in their place) tells that it takes no part, and
 * enters again; whoever hears of a node that takes none tells its view once more. Each time that a
 * node enters is an entry of its own, with a number that views are made of: one that was told when
 * it was in before is another view, also where it has the same nodes.
 *
 * Pure: no clock, no messages. State: keyspace. */
#ifndef ACTIVE_MEMBERSHIP_H
#define ACTIVE_MEMBERSHIP_H

#include "base/compiler.h"
#include "base/slice.h"
#include "active/origins.h"

#include <stdbool.h>
#include <stdint.h>

/* A node of whom nothing new was heard for so long is away (as in sources.h). */
#define MEMBER_SILENT_MS 3000
/* A view that is not settled for so long never will be: somebody is heard who does not hear us. The
 * node tells a view of its own then, and gives alone once nobody can have missed that any more,
 * MEMBER_SILENT_MS later; until the others change, or somebody tells the view that was given up. */
#define MEMBERSHIP_UNSETTLED_MS 10000

struct member {
    uint8_t node[ORIGIN_NODE_BYTES];
    uint64_t weight; /* of its id */
    uint64_t told;   /* the view that it told last; 0: it takes no part, or is not known to */
    uint64_t entry;  /* its number, as it told it */
    int64_t heard_ms;
    bool in_view;
    bool heard; /* lately, as of the last look */
};

/* Monotonic milliseconds everywhere. */
struct membership {
    uint8_t self[ORIGIN_NODE_BYTES];
    uint64_t weight;
    struct member *others;
    uint32_t count, capacity;
    uint64_t entry;        /* ours, or the next one while we take no part */
    uint64_t view;         /* never 0 but while we take no part */
    uint64_t wide;         /* what it would be, were we not alone */
    int64_t since_ms;      /* when it began, or was settled last */
    int64_t alone_ms;      /* since when we are alone */
    bool alone, is_silent; /* the wide one was given up; for long enough to give */
    bool found;            /* while we were alone somebody has told the wide one */
    bool enters;           /* no view has been settled since we took no part */
    bool tells;            /* again, though it is the same: somebody cannot know it any more */
    bool missed;           /* that we take no part is to be told, for we do not know theirs */
};

/* Takes no part, and knows nobody. The entry is above those of former lives. */
void membership_init(struct membership *m, const uint8_t self[ORIGIN_NODE_BYTES], uint64_t entry);
void membership_deinit(struct membership *m);
/* Something new of that node has come, by whatever way. */
void membership_hear(struct membership *m, const uint8_t node[ORIGIN_NODE_BYTES], int64_t now_ms);
/* The node has told its view (0: it takes no part any more, and knows of no views). */
void membership_told(struct membership *m, const uint8_t node[ORIGIN_NODE_BYTES], uint64_t view,
                     uint64_t entry, int64_t now_ms);
/* The node has begun a new life, in which it has told nothing yet. */
void membership_reborn(struct membership *m, const uint8_t node[ORIGIN_NODE_BYTES]);
/* Words of others have been missed: what they have told is not known any more. From this moment on
 * we are no home. The caller looks with `willing` false in the same hold, and tells that. */
void membership_missed(struct membership *m);
/* Finds out the view; `willing`: we take part (no data set is being merged). True when it is to be
 * told: the caller tells m->view and m->entry by a unit in the same hold. */
bool membership_look(struct membership *m, bool willing, int64_t now_ms) MUST_CHECK;
/* Whether all members have told the view. */
bool membership_is_settled(const struct membership *m);
/* Whether this node may give what is at the key now. */
bool membership_is_home(const struct membership *m, int db, struct slice key);
/* Whether the node was heard lately when the view was found out last. Of one that was not,
 * something may come before the next look: what it wrote then may be given by itself already, and
 * what it says of that is on its way, so nothing is to be given here until that look (but alone).
 */
bool membership_hears(const struct membership *m, const uint8_t node[ORIGIN_NODE_BYTES]);
/* Whether the node is a member of the view: what is given away may go to it. */
bool membership_has(const struct membership *m, const uint8_t node[ORIGIN_NODE_BYTES]);
/* The view that the node has told last; 0: none that we know of. Where it is not 0, no word that
 * the node told before it is missing. */
uint64_t membership_told_by(const struct membership *m, const uint8_t node[ORIGIN_NODE_BYTES]);

#endif
