/* See radix.h: seeking and walking. */
#include "ds/radix.h"

#include "ds/radix_priv.h"

struct radix_node *radix_child_from(const struct radix_node *n, unsigned from)
{
    if (n->shape != RADIX_SHAPE_FULL) {
        unsigned i = radix_sorted_rank(n, from);
        return i < n->child_count ? n->child[i] : NULL;
    }
    const uint64_t *bits = radix_bitmap(n);
    for (unsigned word = from / 64; word < 4; word++) {
        uint64_t left = bits[word] & (word == from / 64 ? ~(uint64_t)0 << from % 64 : ~(uint64_t)0);
        if (left) {
            return n->child[word * 64 + (unsigned)__builtin_ctzll(left)];
        }
    }
    return NULL;
}

struct radix_node *radix_child_below(const struct radix_node *n, unsigned limit)
{
    if (n->shape != RADIX_SHAPE_FULL) {
        unsigned i = radix_sorted_rank(n, limit);
        return i > 0 ? n->child[i - 1] : NULL;
    }
    const uint64_t *bits = radix_bitmap(n);
    for (unsigned word = 4; word-- > 0;) {
        uint64_t left = limit >= (word + 1) * 64 ? ~(uint64_t)0
                        : limit <= word * 64     ? 0
                                                 : ((uint64_t)1 << (limit - word * 64)) - 1;
        left &= bits[word];
        if (left) {
            return n->child[word * 64 + 63 - (unsigned)__builtin_clzll(left)];
        }
    }
    return NULL;
}

/* The first key at or below `n`. */
static struct radix_node *lowest(struct radix_node *n)
{
    while (!n->value) {
        n = radix_child_from(n, 0);
    }
    return n;
}

/* The last key at or below `n`. */
static struct radix_node *highest(struct radix_node *n)
{
    while (n->child_count > 0) {
        n = radix_child_below(n, 256);
    }
    return n;
}

/* The first key behind all that are at or below `n`. */
static struct radix_node *behind(struct radix_node *n)
{
    for (; n->parent; n = n->parent) {
        struct radix_node *next = radix_child_from(n->parent, n->byte + 1u);
        if (next) {
            return lowest(next);
        }
    }
    return NULL;
}

/* The last key before all that are at or below `n`. */
static struct radix_node *ahead(struct radix_node *n)
{
    for (; n->parent; n = n->parent) {
        struct radix_node *next = radix_child_below(n->parent, n->byte);
        if (next) {
            return highest(next);
        }
        if (n->parent->value) {
            return n->parent;
        }
    }
    return NULL;
}

struct radix_cursor radix_first(const struct radix *r)
{
    return (struct radix_cursor){r->root ? lowest(r->root) : NULL};
}

struct radix_cursor radix_last(const struct radix *r)
{
    return (struct radix_cursor){r->root ? highest(r->root) : NULL};
}

void radix_cursor_next(struct radix_cursor *c)
{
    struct radix_node *child = radix_child_from(c->node, 0);
    c->node = child ? lowest(child) : behind(c->node);
}

void radix_cursor_prev(struct radix_cursor *c)
{
    c->node = ahead(c->node);
}

/* The key nearest to one that is not there: below `n`, `key` branches off (from a child's place or
 * within the prefix), so that all of n's keys are before it, behind it, or on both sides. */
static struct radix_node *near(struct radix_node *n, struct slice rest, size_t common, bool up)
{
    if (common < n->prefix_len) {
        bool key_is_less = common == rest.len ||
                           (unsigned char)rest.ptr[common] < (unsigned char)radix_prefix(n)[common];
        if (key_is_less) {
            return up ? lowest(n) : ahead(n);
        }
        return up ? behind(n) : highest(n);
    }
    unsigned byte = (unsigned char)rest.ptr[common];
    struct radix_node *side = up ? radix_child_from(n, byte + 1) : radix_child_below(n, byte);
    if (side) {
        return up ? lowest(side) : highest(side);
    }
    if (up) {
        return behind(n);
    }
    return n->value ? n : ahead(n);
}

/* `n` stands for the key itself. */
static struct radix_node *seek_at(struct radix_node *n, enum radix_seek how)
{
    struct radix_node *child;
    if (n->value && how != RADIX_LESS && how != RADIX_GREATER) {
        return n;
    }
    switch (how) {
    case RADIX_EQUAL:
        return NULL;
    case RADIX_LESS:
    case RADIX_LESS_EQUAL:
        return ahead(n);
    case RADIX_GREATER:
    case RADIX_GREATER_EQUAL:
    default:
        child = radix_child_from(n, 0);
        return child ? lowest(child) : behind(n);
    }
}

struct radix_cursor radix_seek(const struct radix *r, enum radix_seek how, struct slice key)
{
    struct radix_cursor c = {NULL};
    struct radix_node *n = r->root;
    while (n) {
        size_t common = radix_common_bytes(radix_prefix_slice(n), key);
        if (common == n->prefix_len && common == key.len) {
            c.node = seek_at(n, how);
            return c;
        }
        struct radix_node **place = NULL;
        if (common == n->prefix_len) {
            place = radix_find_child(n, (unsigned char)key.ptr[common]);
        }
        if (!place) {
            c.node = how == RADIX_EQUAL ? NULL : near(n, key, common, how >= RADIX_GREATER_EQUAL);
            return c;
        }
        key = slice_of(key.ptr + common + 1, key.len - common - 1);
        n = *place;
    }
    return c;
}

void *radix_cursor_value(const struct radix_cursor *c)
{
    assert(c->node->value);
    return c->node->value;
}

void radix_cursor_set_value(struct radix_cursor *c, void *value)
{
    assert(c->node->value && value);
    c->node->value = value;
}

size_t radix_cursor_key_bytes(const struct radix_cursor *c)
{
    size_t bytes = c->node->prefix_len;
    for (const struct radix_node *n = c->node; n->parent; n = n->parent) {
        bytes += 1 + (size_t)n->parent->prefix_len;
    }
    return bytes;
}

void radix_cursor_copy_key(const struct radix_cursor *c, char *out)
{
    char *at = out + radix_cursor_key_bytes(c);
    for (const struct radix_node *n = c->node; n; n = n->parent) {
        at -= n->prefix_len;
        memcpy(at, radix_prefix(n), n->prefix_len);
        if (n->parent) {
            *--at = (char)n->byte;
        }
    }
    assert(at == out);
}
