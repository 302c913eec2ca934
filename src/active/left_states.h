/* Of which keys a state has left the window (window.h), and how late the last of them was: so that
 * one that comes knows whether a later one of its own key was here. 16 bytes a key until it is
 * stable, bounded. Keys are told apart by 64 bits of hash: two that are the same may cost a
 * conflict more. State: its owner's. */
#ifndef ACTIVE_LEFT_STATES_H
#define ACTIVE_LEFT_STATES_H

#include <stdbool.h>
#include <stdint.h>

/* Keys that are remembered; beyond it all are taken to have had the last of their states. */
#define LEFT_STATES_MAX ((uint32_t)1 << 20)

struct left_states {
    struct left_state {
        uint64_t hash, stamp; /* stamp 0: free */
    } * slots;
    uint32_t count, capacity; /* a power of two, at most half of it in use */
    uint64_t floor;           /* of no key in particular: states up to this stamp have left */
};

/* Zero: none has left. Frees what it holds. */
void left_states_deinit(struct left_states *s);
/* A state of the key, with this stamp, has left. */
void left_states_note(struct left_states *s, uint64_t hash, uint64_t stamp);
/* Nothing can come any more that is not later than this. */
void left_states_forget(struct left_states *s, uint64_t stable);
/* True when one of the key that was later, or this one, may have left. */
bool left_states_had(const struct left_states *s, uint64_t hash, uint64_t stamp);

#endif
