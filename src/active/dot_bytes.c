/* See dot_bytes.h. */
#include "active/dot_bytes.h"

#include "base/mem.h"

#include <string.h>

#define COUNT_BYTES 4

void dot_table_put(const struct origins *o, struct buf *out)
{
    le_put(out, o->count - 1, COUNT_BYTES);
    for (uint32_t i = 1; i < o->count; i++) {
        buf_append(out, (const char *)o->rows[i].id.node, ORIGIN_NODE_BYTES);
        le_put(out, o->rows[i].id.epoch, 8);
        le_put(out, o->rows[i].position, 8);
    }
}

void dot_table_deinit(struct dot_table *t)
{
    mem_free(t->ours);
    mem_free(t->positions);
    *t = (struct dot_table){0};
}

/* Enters the i-th origin; false when that cannot be. */
static bool take_row(struct dot_table *t, struct origins *o, bool *taken, uint32_t i,
                     const char *at)
{
    struct origin_id id = {.epoch = le_get(at + ORIGIN_NODE_BYTES, 8)};
    memcpy(id.node, at, ORIGIN_NODE_BYTES);
    t->ours[i] = origins_enter(o, &id);
    t->positions[i] = le_get(at + ORIGIN_NODE_BYTES + 8, 8);
    if (t->ours[i] == 0 || taken[t->ours[i]] || t->positions[i] > ORIGIN_SEQUENCE_MAX) {
        return false;
    }
    taken[t->ours[i]] = true;
    return true;
}

bool dot_table_get(struct dot_table *t, struct origins *o, struct slice bytes)
{
    uint64_t told = bytes.len < COUNT_BYTES ? UINT64_MAX : le_get(bytes.ptr, COUNT_BYTES);
    if (told > ORIGINS_MAX || bytes.len != COUNT_BYTES + told * VERSION_VECTOR_ROW_BYTES) {
        return false;
    }
    t->count = (uint32_t)told + 1;
    t->ours = mem_calloc(t->count, sizeof(*t->ours));
    t->positions = mem_calloc(t->count, sizeof(*t->positions));
    bool *taken = mem_calloc(ORIGINS_MAX + 1, sizeof(*taken));
    bool good = true;
    for (uint32_t i = 1; good && i < t->count; i++) {
        good = take_row(t, o, taken, i,
                        bytes.ptr + COUNT_BYTES + (size_t)(i - 1) * VERSION_VECTOR_ROW_BYTES);
    }
    mem_free(taken);
    if (!good) {
        dot_table_deinit(t);
    }
    return good;
}

static void put_number(char *out, uint64_t number)
{
    for (int i = 0; i < 8; i++) {
        out[i] = (char)(number >> (8 * i));
    }
}

void dot_put(struct dot dot, char out[DOT_BYTES])
{
    put_number(out, dot.stamp);
    put_number(out + 8, dot.place);
}

bool dot_get(const struct dot_table *t, struct slice bytes, struct dot *dot)
{
    if (bytes.len != DOT_BYTES) {
        return false;
    }
    struct dot read = {le_get(bytes.ptr, 8), le_get(bytes.ptr + 8, 8)};
    uint16_t index = dot_origin(read);
    uint64_t sequence = dot_sequence(read);
    if (read.stamp == 0 || index == 0 || index >= t->count || sequence == 0 ||
        sequence > t->positions[index]) {
        return false;
    }
    *dot = dot_of(read.stamp, t->ours[index], sequence);
    return true;
}
