/* See origins.h. The table is short (a row for each start of each node) and searched from
 * its end, where the origins that write now stand; links translate by handles, not by search. */
#include "active/origins.h"

#include "base/mem.h"

#include <assert.h>
#include <string.h>

static_assert(sizeof(struct dot) == 16, "what ENTRY_STAMPED has room for");

#define FIRST_CAPACITY 8

void origins_init(struct origins *o)
{
    o->capacity = FIRST_CAPACITY;
    o->rows = mem_calloc(o->capacity, sizeof(*o->rows));
    o->count = 1;
    o->room = UINT32_MAX;
}

void origins_deinit(struct origins *o)
{
    mem_free(o->rows);
    o->rows = NULL;
    o->count = o->capacity = 0;
}

static bool same_node(const struct origin_id *a, const struct origin_id *b)
{
    return memcmp(a->node, b->node, ORIGIN_NODE_BYTES) == 0;
}

uint16_t origins_find(const struct origins *o, const struct origin_id *id)
{
    for (uint32_t i = o->count - 1; i > 0; i--) {
        if (o->rows[i].id.epoch == id->epoch && same_node(&o->rows[i].id, id)) {
            return (uint16_t)i;
        }
    }
    return 0;
}

/* Only a node's latest epoch counts for stability. */
static void supersede(struct origins *o, struct origin *added)
{
    for (uint32_t i = 1; i < o->count; i++) {
        struct origin *row = &o->rows[i];
        if (row != added && same_node(&row->id, &added->id)) {
            if (row->id.epoch < added->id.epoch) {
                row->superseded = true;
            } else {
                added->superseded = true;
            }
        }
    }
}

void origins_bound(struct origins *o)
{
    o->room = ORIGINS_BURST;
}

void origins_allow(struct origins *o)
{
    o->room += o->room < ORIGINS_BURST;
}

static bool has_room(const struct origins *o)
{
    return o->room == UINT32_MAX ? o->count <= ORIGINS_MAX
                                 : o->room > 0 && o->count <= ORIGINS_MAX - ORIGINS_OWN;
}

uint16_t origins_enter(struct origins *o, const struct origin_id *id)
{
    uint16_t found = origins_find(o, id);
    if (found || !has_room(o)) {
        return found;
    }
    o->room -= o->room != UINT32_MAX;
    if (o->count == o->capacity) {
        o->capacity *= 2;
        o->rows = mem_realloc(o->rows, o->capacity * sizeof(*o->rows));
    }
    struct origin *row = &o->rows[o->count++];
    *row = (struct origin){.id = *id};
    supersede(o, row);
    return (uint16_t)(o->count - 1);
}

enum origin_arrival origins_arrival(const struct origins *o, uint16_t index, uint64_t sequence)
{
    assert(index > 0 && index < o->count);
    uint64_t position = o->rows[index].position;
    if (sequence <= position) {
        return ORIGIN_DUPLICATE;
    }
    return sequence == position + 1 ? ORIGIN_NEXT : ORIGIN_GAP;
}

void origins_advance(struct origins *o, uint16_t index, uint64_t sequence)
{
    assert(index > 0 && index < o->count && sequence <= ORIGIN_SEQUENCE_MAX);
    if (sequence > o->rows[index].position) {
        o->rows[index].position = sequence;
    }
}

void origins_hear(struct origins *o, uint16_t index, uint64_t clock, uint64_t seen)
{
    assert(index > 0 && index < o->count);
    struct origin *row = &o->rows[index];
    row->clock = clock > row->clock ? clock : row->clock;
    row->seen = seen > row->seen ? seen : row->seen;
}

uint64_t origins_seen(const struct origins *o)
{
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 1; i < o->count; i++) {
        const struct origin *row = &o->rows[i];
        if ((!row->superseded || row->told > row->position) && row->clock < least) {
            least = row->clock;
        }
    }
    return least == UINT64_MAX ? 0 : least;
}

uint64_t origins_stable(const struct origins *o)
{
    uint64_t least = origins_seen(o);
    for (uint32_t i = 1; i < o->count; i++) {
        if (!o->rows[i].superseded && o->rows[i].seen < least) {
            least = o->rows[i].seen;
        }
    }
    return least;
}

int origins_compare_places(const struct origins *o, struct dot a, struct dot b)
{
    uint16_t from_a = dot_origin(a), from_b = dot_origin(b);
    if (from_a != from_b) {
        const struct origin_id *id_a = &o->rows[from_a].id, *id_b = &o->rows[from_b].id;
        int order = memcmp(id_a->node, id_b->node, ORIGIN_NODE_BYTES);
        return order ? order : id_a->epoch < id_b->epoch ? -1 : 1;
    }
    return (a.place > b.place) - (a.place < b.place);
}

/* ---- positions ---- */

static struct version_vector *create_cover(uint32_t count)
{
    struct version_vector *c = mem_calloc(1, sizeof(*c) + count * sizeof(c->sequence[0]));
    c->count = count;
    return c;
}

struct version_vector *version_vector_create(const struct origins *o)
{
    struct version_vector *c = create_cover(o->count);
    for (uint32_t i = 1; i < o->count; i++) {
        c->sequence[i] = o->rows[i].position;
    }
    return c;
}

void le_put(struct buf *out, uint64_t number, int bytes)
{
    for (int i = 0; i < bytes; i++) {
        buf_append_char(out, (char)(number >> (8 * i)));
    }
}

uint64_t le_get(const char *at, int bytes)
{
    uint64_t number = 0;
    for (int i = 0; i < bytes; i++) {
        number |= (uint64_t)(unsigned char)at[i] << (8 * i);
    }
    return number;
}

void version_vector_encode(const struct origins *o, const struct version_vector *c, struct buf *out)
{
    uint32_t told = 0;
    for (uint32_t i = 1; i < c->count; i++) {
        told += c->sequence[i] > 0;
    }
    le_put(out, told, 4);
    for (uint32_t i = 1; i < c->count; i++) {
        if (c->sequence[i] > 0) {
            buf_append(out, (const char *)o->rows[i].id.node, ORIGIN_NODE_BYTES);
            le_put(out, o->rows[i].id.epoch, 8);
            le_put(out, c->sequence[i], 8);
        }
    }
}

static void parse_position(const char *at, struct origin_id *id, uint64_t *sequence)
{
    memcpy(id->node, at, ORIGIN_NODE_BYTES);
    id->epoch = le_get(at + ORIGIN_NODE_BYTES, 8);
    *sequence = le_get(at + ORIGIN_NODE_BYTES + 8, 8);
}

struct version_vector *version_vector_decode(struct origins *o, struct slice bytes)
{
    struct origin_id id;
    uint64_t sequence;
    if (bytes.len < 4) {
        return NULL;
    }
    uint64_t told = le_get(bytes.ptr, 4);
    if (told > ORIGINS_MAX || bytes.len != 4 + told * VERSION_VECTOR_ROW_BYTES) {
        return NULL;
    }
    for (uint64_t i = 0; i < told; i++) {
        parse_position(bytes.ptr + 4 + i * VERSION_VECTOR_ROW_BYTES, &id, &sequence);
        if (sequence > ORIGIN_SEQUENCE_MAX || !origins_enter(o, &id)) {
            return NULL;
        }
    }
    struct version_vector *c = create_cover(o->count);
    for (uint64_t i = 0; i < told; i++) {
        parse_position(bytes.ptr + 4 + i * VERSION_VECTOR_ROW_BYTES, &id, &sequence);
        c->sequence[origins_find(o, &id)] = sequence;
    }
    return c;
}

static const char digits[] = "0123456789abcdef";

void origin_format(const struct origin_id *id, char *out)
{
    uint8_t bytes[ORIGIN_CHARS / 2];
    memcpy(bytes, id->node, ORIGIN_NODE_BYTES);
    for (int i = 0; i < 8; i++) {
        bytes[ORIGIN_NODE_BYTES + i] = (uint8_t)(id->epoch >> (56 - 8 * i));
    }
    for (size_t i = 0; i < sizeof(bytes); i++) {
        out[2 * i] = digits[bytes[i] >> 4];
        out[2 * i + 1] = digits[bytes[i] & 15];
    }
}

bool origin_parse(struct slice text, struct origin_id *id)
{
    uint8_t bytes[ORIGIN_CHARS / 2] = {0};
    if (text.len != ORIGIN_CHARS) {
        return false;
    }
    for (size_t i = 0; i < ORIGIN_CHARS; i++) {
        const char *found = text.ptr[i] ? strchr(digits, text.ptr[i]) : NULL;
        if (!found) {
            return false;
        }
        bytes[i / 2] = (uint8_t)(bytes[i / 2] << 4 | (found - digits));
    }
    memcpy(id->node, bytes, ORIGIN_NODE_BYTES);
    id->epoch = 0;
    for (int i = 0; i < 8; i++) {
        id->epoch = id->epoch << 8 | bytes[ORIGIN_NODE_BYTES + i];
    }
    return true;
}
