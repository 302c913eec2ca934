/* See membership.h. */
#include "active/membership.h"

#include "base/crc.h"
#include "base/mem.h"

#include <string.h>

/* The same on every node: no secret is in it. (Finalizer of splitmix64, public domain.) */
static uint64_t mix(uint64_t x)
{
    x ^= x >> 30;
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    x ^= x >> 27;
    x *= UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static uint64_t weight_of(const uint8_t node[ORIGIN_NODE_BYTES])
{
    return mix(crc64(1, node, ORIGIN_NODE_BYTES));
}

void membership_init(struct membership *m, const uint8_t self[ORIGIN_NODE_BYTES])
{
    *m = (struct membership){.weight = weight_of(self)};
    memcpy(m->self, self, sizeof(m->self));
}

void membership_deinit(struct membership *m)
{
    mem_free(m->others);
    *m = (struct membership){.others = NULL};
}

static struct member *find(const struct membership *m, const uint8_t node[ORIGIN_NODE_BYTES])
{
    for (uint32_t i = 0; i < m->count; i++) {
        if (memcmp(m->others[i].node, node, ORIGIN_NODE_BYTES) == 0) {
            return &m->others[i];
        }
    }
    return NULL;
}

static struct member *find_or_add(struct membership *m, const uint8_t node[ORIGIN_NODE_BYTES])
{
    struct member *there = find(m, node);
    if (there) {
        return there;
    }
    if (m->count == m->capacity) {
        m->capacity = m->capacity ? 2 * m->capacity : 4;
        m->others = mem_realloc(m->others, m->capacity * sizeof(*m->others));
    }
    struct member *added = &m->others[m->count++];
    *added = (struct member){.weight = weight_of(node)};
    memcpy(added->node, node, ORIGIN_NODE_BYTES);
    return added;
}

void membership_hear(struct membership *m, const uint8_t node[ORIGIN_NODE_BYTES], int64_t now_ms)
{
    if (memcmp(node, m->self, ORIGIN_NODE_BYTES) != 0) {
        find_or_add(m, node)->heard_ms = now_ms;
    }
}

void membership_told(struct membership *m, const uint8_t node[ORIGIN_NODE_BYTES], uint64_t view,
                     int64_t now_ms)
{
    if (memcmp(node, m->self, ORIGIN_NODE_BYTES) != 0) {
        struct member *other = find_or_add(m, node);
        other->told = view;
        other->heard_ms = now_ms;
    }
}

void membership_reborn(struct membership *m, const uint8_t node[ORIGIN_NODE_BYTES])
{
    struct member *other = find(m, node);
    if (other) {
        other->told = 0;
        m->tells = true;
    }
}

bool membership_look(struct membership *m, bool willing, int64_t now_ms)
{
    uint64_t view = m->weight;
    for (uint32_t i = 0; i < m->count; i++) {
        struct member *other = &m->others[i];
        other->in_view = willing && other->told != 0 && now_ms - other->heard_ms < MEMBER_SILENT_MS;
        view += other->in_view ? other->weight : 0; /* in any order */
    }
    view = !willing ? 0 : view ? view : 1;
    bool tells = m->tells || view != m->view;
    if (view != m->view) {
        m->view = view;
        m->since_ms = now_ms;
    }
    m->tells = false;
    return tells;
}

bool membership_is_settled(const struct membership *m)
{
    for (uint32_t i = 0; i < m->count; i++) {
        if (m->others[i].in_view && m->others[i].told != m->view) {
            return false;
        }
    }
    return m->view != 0;
}

bool membership_is_home(const struct membership *m, int db, struct slice key, int64_t now_ms)
{
    if (!membership_is_settled(m)) {
        return m->view != 0 && now_ms - m->since_ms >= MEMBERSHIP_UNSETTLED_MS;
    }
    /* Highest random weight: few keys change their home when a node comes or goes. */
    uint64_t salt = mix(crc64((uint64_t)db, key.ptr, key.len));
    uint64_t own = mix(salt ^ m->weight);
    for (uint32_t i = 0; i < m->count; i++) {
        const struct member *other = &m->others[i];
        uint64_t its = other->in_view ? mix(salt ^ other->weight) : 0;
        if (its > own ||
            (its == own && other->in_view && memcmp(other->node, m->self, ORIGIN_NODE_BYTES) > 0)) {
            return false;
        }
    }
    return true;
}

bool membership_has(const struct membership *m, const uint8_t node[ORIGIN_NODE_BYTES])
{
    const struct member *other = find(m, node);
    return other && other->in_view;
}
