/* See active_dot_bytes.h. */
#include "repl/active_dot_bytes.h"

#include "base/mem.h"

#include <string.h>

#define COUNT_BYTES 4

void active_table_put(const struct active_origins *o, struct buf *out)
{
    active_put(out, o->count - 1, COUNT_BYTES);
    for (uint32_t i = 1; i < o->count; i++) {
        buf_append(out, (const char *)o->rows[i].id.node, ACTIVE_NODE_BYTES);
        active_put(out, o->rows[i].id.epoch, 8);
        active_put(out, o->rows[i].position, 8);
    }
}

void active_table_deinit(struct active_table *t)
{
    mem_free(t->ours);
    mem_free(t->positions);
    *t = (struct active_table){0};
}

/* Enters the i-th origin; false when that cannot be. */
static bool take_row(struct active_table *t, struct active_origins *o, bool *taken, uint32_t i,
                     const char *at)
{
    struct active_origin_id id = {.epoch = active_get(at + ACTIVE_NODE_BYTES, 8)};
    memcpy(id.node, at, ACTIVE_NODE_BYTES);
    t->ours[i] = active_origins_enter(o, &id);
    t->positions[i] = active_get(at + ACTIVE_NODE_BYTES + 8, 8);
    if (t->ours[i] == 0 || taken[t->ours[i]] || t->positions[i] > ACTIVE_SEQUENCE_MAX) {
        return false;
    }
    taken[t->ours[i]] = true;
    return true;
}

bool active_table_get(struct active_table *t, struct active_origins *o, struct slice bytes)
{
    uint64_t told = bytes.len < COUNT_BYTES ? UINT64_MAX : active_get(bytes.ptr, COUNT_BYTES);
    if (told > ACTIVE_ORIGINS_MAX || bytes.len != COUNT_BYTES + told * ACTIVE_POSITION_BYTES) {
        return false;
    }
    t->count = (uint32_t)told + 1;
    t->ours = mem_calloc(t->count, sizeof(*t->ours));
    t->positions = mem_calloc(t->count, sizeof(*t->positions));
    bool *taken = mem_calloc(ACTIVE_ORIGINS_MAX + 1, sizeof(*taken));
    bool good = true;
    for (uint32_t i = 1; good && i < t->count; i++) {
        good = take_row(t, o, taken, i,
                        bytes.ptr + COUNT_BYTES + (size_t)(i - 1) * ACTIVE_POSITION_BYTES);
    }
    mem_free(taken);
    if (!good) {
        active_table_deinit(t);
    }
    return good;
}

static void put_number(char *out, uint64_t number)
{
    for (int i = 0; i < 8; i++) {
        out[i] = (char)(number >> (8 * i));
    }
}

void active_dot_put(struct active_dot dot, char out[ACTIVE_DOT_BYTES])
{
    put_number(out, dot.stamp);
    put_number(out + 8, dot.place);
}

bool active_dot_get(const struct active_table *t, struct slice bytes, struct active_dot *dot)
{
    if (bytes.len != ACTIVE_DOT_BYTES) {
        return false;
    }
    struct active_dot read = {active_get(bytes.ptr, 8), active_get(bytes.ptr + 8, 8)};
    uint16_t index = active_dot_origin(read);
    uint64_t sequence = active_dot_sequence(read);
    if (read.stamp == 0 || index == 0 || index >= t->count || sequence == 0 ||
        sequence > t->positions[index]) {
        return false;
    }
    *dot = active_dot_of(read.stamp, t->ours[index], sequence);
    return true;
}
