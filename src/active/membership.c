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

void membership_init(struct membership *m, const uint8_t self[ORIGIN_NODE_BYTES], uint64_t entry)
{
    *m = (struct membership){.weight = weight_of(self), .entry = entry, .enters = true};
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
                     uint64_t entry, int64_t now_ms)
{
    if (memcmp(node, m->self, ORIGIN_NODE_BYTES) != 0) {
        struct member *other = find_or_add(m, node);
        other->told = view;
        other->entry = entry;
        other->heard_ms = now_ms;
        m->tells = m->tells || view == 0;
        m->found = m->found || (view != 0 && view == m->wide);
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

void membership_missed(struct membership *m)
{
    for (uint32_t i = 0; i < m->count; i++) {
        m->others[i].told = 0;
    }
    m->view = 0;
    m->missed = true;
}

/* A member's part in a view's name. */
static uint64_t part(uint64_t weight, uint64_t entry)
{
    return mix(weight ^ mix(entry));
}

/* The view of nobody else. */
static uint64_t own_view(const struct membership *m)
{
    uint64_t view = part(m->weight, m->entry);
    return view ? view : 1;
}

/* Marks who is in the view, and returns its name. */
static uint64_t find_wide(const struct membership *m, int64_t now_ms)
{
    bool guided = !m->enters;
    uint64_t view = own_view(m);
    for (uint32_t i = 0; i < m->count && !guided; i++) {
        guided = m->others[i].told != 0 && now_ms - m->others[i].heard_ms < MEMBER_SILENT_MS;
    }
    for (uint32_t i = 0; i < m->count; i++) {
        struct member *other = &m->others[i];
        other->in_view =
            (other->told != 0 || !guided) && now_ms - other->heard_ms < MEMBER_SILENT_MS;
        view += other->in_view ? part(other->weight, other->entry) : 0; /* in any order */
    }
    return view ? view : 1;
}

static void nobody_else(const struct membership *m)
{
    for (uint32_t i = 0; i < m->count; i++) {
        m->others[i].in_view = false;
    }
}

/* Whether all who are marked have told it. */
static bool all_told(const struct membership *m, uint64_t view)
{
    for (uint32_t i = 0; i < m->count; i++) {
        if (m->others[i].in_view && m->others[i].told != view) {
            return false;
        }
    }
    return true;
}

/* The view of who takes part. */
static uint64_t find_view(struct membership *m, int64_t now_ms)
{
    uint64_t wide = find_wide(m, now_ms);
    if (wide != m->wide || (m->alone && m->found)) {
        m->wide = wide;
        m->since_ms = now_ms;
        m->alone = false;
    }
    m->found = false;
    if (!m->alone && all_told(m, wide)) {
        m->since_ms = now_ms;
    } else if (!m->alone && now_ms - m->since_ms >= MEMBERSHIP_UNSETTLED_MS) {
        m->alone = true;
        m->alone_ms = now_ms;
    }
    if (!m->alone) {
        return wide;
    }
    nobody_else(m);
    return own_view(m);
}

bool membership_look(struct membership *m, bool willing, int64_t now_ms)
{
    uint64_t before = m->view;
    bool again = willing ? m->tells : m->missed; /* who takes no part has nothing to tell again */
    if (willing) {
        m->view = find_view(m, now_ms);
    } else {
        nobody_else(m);
        m->entry += before != 0 || m->missed;
        m->view = m->wide = 0;
        m->alone = false;
        m->enters = true;
        m->missed = false;
    }
    for (uint32_t i = 0; i < m->count; i++) {
        m->others[i].heard = now_ms - m->others[i].heard_ms < MEMBER_SILENT_MS;
    }
    m->is_silent = m->alone && now_ms - m->alone_ms >= MEMBER_SILENT_MS;
    m->enters = m->enters && !membership_is_settled(m);
    m->tells = false;
    return again || m->view != before;
}

bool membership_is_settled(const struct membership *m)
{
    return m->view != 0 && (m->alone ? m->is_silent : all_told(m, m->view));
}

bool membership_is_home(const struct membership *m, int db, struct slice key)
{
    if (!membership_is_settled(m)) {
        return false;
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

bool membership_hears(const struct membership *m, const uint8_t node[ORIGIN_NODE_BYTES])
{
    const struct member *other = find(m, node);
    return other && other->heard;
}

bool membership_has(const struct membership *m, const uint8_t node[ORIGIN_NODE_BYTES])
{
    const struct member *other = find(m, node);
    return other && other->in_view;
}

uint64_t membership_told_by(const struct membership *m, const uint8_t node[ORIGIN_NODE_BYTES])
{
    const struct member *other = find(m, node);
    return other ? other->told : 0;
}
