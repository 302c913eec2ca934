/* See left_states.h. Open addressing, without deletions: what is stable goes when it is built anew.
 */
#include "active/left_states.h"

#include "base/mem.h"

#define FIRST_CAPACITY 64

static struct left_state *slot_of(const struct left_states *s, uint64_t hash)
{
    uint64_t at = hash;
    for (;; at++) {
        struct left_state *slot = &s->slots[at & (s->capacity - 1)];
        if (slot->stamp == 0 || slot->hash == hash) {
            return slot;
        }
    }
}

void left_states_deinit(struct left_states *s)
{
    mem_free(s->slots);
    *s = (struct left_states){0};
}

/* Anew, without those up to the floor. */
static void rebuild(struct left_states *s, uint32_t capacity)
{
    struct left_states grown = {mem_calloc(capacity, sizeof(*s->slots)), 0, capacity, s->floor};
    for (uint32_t i = 0; i < s->capacity; i++) {
        if (s->slots[i].stamp > s->floor) {
            *slot_of(&grown, s->slots[i].hash) = s->slots[i];
            grown.count++;
        }
    }
    mem_free(s->slots);
    *s = grown;
}

static void make_room(struct left_states *s)
{
    if (s->count < LEFT_STATES_MAX) {
        rebuild(s, s->capacity ? 2 * s->capacity : FIRST_CAPACITY);
        return;
    }
    for (uint32_t i = 0; i < s->capacity; i++) {
        s->floor = s->slots[i].stamp > s->floor ? s->slots[i].stamp : s->floor;
    }
    rebuild(s, FIRST_CAPACITY);
}

void left_states_note(struct left_states *s, uint64_t hash, uint64_t stamp)
{
    if (stamp <= s->floor) {
        return;
    }
    if (2 * (s->count + 1) > s->capacity) {
        make_room(s);
    }
    struct left_state *slot = slot_of(s, hash);
    s->count += slot->stamp == 0;
    slot->hash = hash;
    slot->stamp = stamp > slot->stamp ? stamp : slot->stamp;
}

void left_states_forget(struct left_states *s, uint64_t stable)
{
    bool any = false;
    if (s->count == 0) {
        return;
    }
    for (uint32_t i = 0; i < s->capacity && !any; i++) {
        any = s->slots[i].stamp > stable;
    }
    s->floor = stable > s->floor ? stable : s->floor;
    if (!any) {
        uint64_t floor = s->floor;
        left_states_deinit(s);
        s->floor = floor;
    }
}

bool left_states_had(const struct left_states *s, uint64_t hash, uint64_t stamp)
{
    return stamp <= s->floor || (s->count > 0 && slot_of(s, hash)->stamp >= stamp);
}
