/* The radix tree: see radix.h for the invariants. A node is one block whose shape (room for
 * children, length of the prefix) is fixed; what needs another shape is rebuilt as a new block in
 * its place. Walking is in radix_walk.c. */
#include "ds/radix.h"

#include "base/mem.h"
#include "ds/radix_priv.h"

/* Keys of removals by cursor that need no block of memory. */
#define KEY_ON_STACK 64

static inline size_t block_bytes(uint8_t shape, size_t prefix_len)
{
    size_t size = sizeof(struct radix_node) +
                  radix_capacities[shape] * sizeof(struct radix_node *) + radix_index_bytes(shape) +
                  prefix_len;
    return (size + 15) & ~(size_t)15;
}

/* The smallest shape with room for `count` children. */
static uint8_t shape_for(unsigned count)
{
    uint8_t shape = 0;
    while (radix_capacities[shape] < count) {
        shape++;
    }
    return shape;
}

/* ---- children ---- */

/* Makes `child` one of n's, which has room and none with that byte. */
static void put_child(struct radix_node *n, unsigned char byte, struct radix_node *child)
{
    assert(n->child_count < radix_capacity(n));
    child->parent = n;
    child->byte = byte;
    if (n->shape == RADIX_SHAPE_FULL) {
        n->child[byte] = child;
        radix_bitmap(n)[byte / 64] |= (uint64_t)1 << byte % 64;
    } else {
        unsigned i = radix_sorted_rank(n, byte), after = n->child_count - i;
        unsigned char *bytes = radix_sorted_bytes(n);
        memmove(&n->child[i + 1], &n->child[i], after * sizeof(n->child[0]));
        memmove(&bytes[i + 1], &bytes[i], after);
        n->child[i] = child;
        bytes[i] = byte;
    }
    n->child_count++;
}

static void drop_child(struct radix_node *n, unsigned char byte)
{
    struct radix_node **place = radix_find_child(n, byte);
    assert(place);
    n->child_count--;
    if (n->shape == RADIX_SHAPE_FULL) {
        *place = NULL;
        radix_bitmap(n)[byte / 64] &= ~((uint64_t)1 << byte % 64);
        return;
    }
    unsigned i = (unsigned)(place - n->child), after = n->child_count - i;
    unsigned char *bytes = radix_sorted_bytes(n);
    memmove(&n->child[i], &n->child[i + 1], after * sizeof(n->child[0]));
    memmove(&bytes[i], &bytes[i + 1], after);
}

/* ---- nodes ---- */

/* A node without children and value; its prefix is the caller's to fill. */
static struct radix_node *create_node(struct radix *r, uint8_t shape, size_t prefix_len)
{
    size_t size = block_bytes(shape, prefix_len);
    struct radix_node *n = mem_alloc(size);
    assert(prefix_len <= RADIX_MAX_KEY_BYTES);
    *n = (struct radix_node){.shape = shape, .prefix_len = (uint32_t)prefix_len};
    if (shape == RADIX_SHAPE_FULL) {
        memset(n->child, 0,
               radix_capacities[shape] * sizeof(n->child[0]) + radix_index_bytes(shape));
    }
    r->node_count++;
    r->prefix_count += prefix_len > 0;
    r->bytes += size;
    return n;
}

/* Copies `bytes` into n's prefix from `offset` on. */
static void set_prefix(struct radix_node *n, size_t offset, struct slice bytes)
{
    assert(offset + bytes.len <= n->prefix_len);
    if (bytes.len > 0) {
        memcpy(radix_prefix(n) + offset, bytes.ptr, bytes.len);
    }
}

/* A node without children that has a value. */
static struct radix_node *create_leaf(struct radix *r, struct slice prefix, void *value)
{
    struct radix_node *n = create_node(r, 0, prefix.len);
    set_prefix(n, 0, prefix);
    n->value = value;
    return n;
}

static void free_node(struct radix *r, struct radix_node *n)
{
    size_t size = block_bytes(n->shape, n->prefix_len);
    assert(r->node_count > 0 && r->bytes >= size);
    r->node_count--;
    r->prefix_count -= n->prefix_len > 0;
    r->bytes -= size;
    mem_free_sized(n, size);
}

/* Puts `n` where `old` is in the tree. */
static void take_place(struct radix *r, const struct radix_node *old, struct radix_node *n)
{
    n->parent = old->parent;
    n->byte = old->byte;
    if (old->parent) {
        *radix_find_child(old->parent, old->byte) = n;
    } else {
        r->root = n;
    }
}

/* A node like `old` in its place, with another shape and a prefix of `prefix_len` bytes, which the
 * caller fills. `old` is in no tree any more, and the caller's to free. */
static struct radix_node *replace(struct radix *r, struct radix_node *old, uint8_t shape,
                                  size_t prefix_len)
{
    struct radix_node *n = create_node(r, shape, prefix_len);
    n->value = old->value;
    take_place(r, old, n);
    for (struct radix_node *c = radix_child_from(old, 0); c;
         c = radix_child_from(old, c->byte + 1u)) {
        put_child(n, c->byte, c);
    }
    return n;
}

/* The same with a prefix that may lie in `old`, which is freed. */
static struct radix_node *rebuild(struct radix *r, struct radix_node *old, uint8_t shape,
                                  struct slice prefix)
{
    struct radix_node *n = replace(r, old, shape, prefix.len);
    set_prefix(n, 0, prefix);
    free_node(r, old);
    return n;
}

/* Gives `n` a child that holds `rest` of a key, whose first byte branches off. */
static void add_leaf(struct radix *r, struct radix_node *n, struct slice rest, void *value)
{
    if (n->child_count == radix_capacity(n)) {
        n = rebuild(r, n, shape_for(n->child_count + 1u), radix_prefix_slice(n));
    }
    put_child(n, (unsigned char)rest.ptr[0],
              create_leaf(r, slice_of(rest.ptr + 1, rest.len - 1), value));
}

/* Puts a node before `n` that takes the first `common` bytes of its prefix. Returns that node. */
static struct radix_node *split(struct radix *r, struct radix_node *n, size_t common)
{
    struct slice prefix = radix_prefix_slice(n);
    assert(common < prefix.len);
    unsigned char byte = (unsigned char)prefix.ptr[common];
    struct radix_node *front = create_node(r, shape_for(2), common);
    set_prefix(front, 0, slice_of(prefix.ptr, common));
    n = rebuild(r, n, n->shape, slice_of(prefix.ptr + common + 1, prefix.len - common - 1));
    take_place(r, n, front);
    put_child(front, byte, n);
    return front;
}

/* ---- keys ---- */

void radix_init(struct radix *r)
{
    *r = (struct radix){.root = NULL};
}

/* The node that stands for `key`, a key or not; NULL when there is none. */
static struct radix_node *find_node(const struct radix *r, struct slice key)
{
    struct radix_node *n = r->root;
    while (n) {
        size_t len = n->prefix_len;
        if (key.len < len || (len > 0 && memcmp(radix_prefix(n), key.ptr, len) != 0)) {
            return NULL;
        }
        if (key.len == len) {
            return n;
        }
        struct radix_node **place = radix_find_child(n, (unsigned char)key.ptr[len]);
        key = slice_of(key.ptr + len + 1, key.len - len - 1);
        n = place ? *place : NULL;
    }
    return NULL;
}

void *radix_find(const struct radix *r, struct slice key)
{
    const struct radix_node *n = find_node(r, key);
    return n ? n->value : NULL;
}

/* Puts the key whose `rest` begins with n's prefix or leaves it, at or below `n`. */
static void insert_at(struct radix *r, struct radix_node *n, struct slice rest, size_t common,
                      void *value)
{
    if (common < n->prefix_len) {
        n = split(r, n, common);
    }
    if (common == rest.len) {
        n->value = value;
    } else {
        add_leaf(r, n, slice_of(rest.ptr + common, rest.len - common), value);
    }
    r->count++;
}

void *radix_insert(struct radix *r, struct slice key, void *value)
{
    struct radix_node *n = r->root;
    assert(value && key.len <= RADIX_MAX_KEY_BYTES);
    if (!n) {
        r->root = create_leaf(r, key, value);
        r->count = 1;
        return NULL;
    }
    for (;;) {
        size_t common = radix_common_bytes(radix_prefix_slice(n), key);
        if (common == n->prefix_len && common == key.len && n->value) {
            return n->value;
        }
        struct radix_node **place = NULL;
        if (common == n->prefix_len && common < key.len) {
            place = radix_find_child(n, (unsigned char)key.ptr[common]);
        }
        if (!place) {
            insert_at(r, n, key, common, value);
            return NULL;
        }
        key = slice_of(key.ptr + common + 1, key.len - common - 1);
        n = *place;
    }
}

/* Joins `n`, which is no key, with its only child, in one node that takes its place. */
static void join_child(struct radix *r, struct radix_node *n)
{
    struct radix_node *child = radix_child_from(n, 0);
    char byte = (char)child->byte;
    size_t front = n->prefix_len;
    assert(!n->value && n->child_count == 1);
    struct radix_node *joined = replace(r, child, child->shape, front + 1 + child->prefix_len);
    set_prefix(joined, 0, radix_prefix_slice(n));
    set_prefix(joined, front, slice_of(&byte, 1));
    set_prefix(joined, front + 1, radix_prefix_slice(child));
    take_place(r, n, joined);
    free_node(r, child);
    free_node(r, n);
}

/* Restores invariant 1 and the shape after `n` lost its value or a child. */
static void tidy_node(struct radix *r, struct radix_node *n)
{
    if (!n->value && n->child_count == 1) {
        join_child(r, n);
    } else if (n->shape > 0 && n->child_count <= radix_capacities[n->shape - 1] / 2) {
        rebuild(r, n, shape_for(n->child_count), radix_prefix_slice(n));
    }
}

static void *remove_node(struct radix *r, struct radix_node *n)
{
    void *value = n->value;
    struct radix_node *parent = n->parent;
    n->value = NULL;
    r->count--;
    if (n->child_count > 0) {
        tidy_node(r, n);
        return value;
    }
    if (parent) {
        drop_child(parent, n->byte);
        tidy_node(r, parent);
    } else {
        r->root = NULL;
    }
    free_node(r, n);
    return value;
}

void *radix_remove(struct radix *r, struct slice key)
{
    struct radix_node *n = find_node(r, key);
    return n && n->value ? remove_node(r, n) : NULL;
}

void *radix_remove_at(struct radix *r, struct radix_cursor *c)
{
    char few[KEY_ON_STACK];
    size_t len = radix_cursor_key_bytes(c);
    char *key = len <= sizeof(few) ? few : mem_alloc(len);
    radix_cursor_copy_key(c, key);
    void *value = remove_node(r, c->node);
    *c = radix_seek(r, RADIX_GREATER, slice_of(key, len));
    if (key != few) {
        mem_free(key);
    }
    return value;
}

/* ---- all of it ---- */

void radix_deinit(struct radix *r, void (*release)(void *value, void *context), void *context)
{
    struct radix_node *n = r->root;
    /* Down to the first child that is left, up when there is none. */
    while (n) {
        struct radix_node *child = radix_child_from(n, 0);
        if (n->value && release) {
            release(n->value, context);
        }
        n->value = NULL;
        if (child) {
            n = child;
            continue;
        }
        struct radix_node *parent = n->parent;
        if (parent) {
            drop_child(parent, n->byte);
        }
        free_node(r, n);
        n = parent;
    }
    assert(r->node_count == 0 && r->bytes == 0);
    radix_init(r);
}

static void check_node(const struct radix_node *n)
{
    unsigned children = 0;
    int before = -1;
    assert(n->shape <= RADIX_SHAPE_FULL && n->child_count <= radix_capacity(n));
    assert(n->value || n->child_count >= 2);
    for (struct radix_node *c = radix_child_from(n, 0); c; c = radix_child_from(n, c->byte + 1u)) {
        assert(c->parent == n && c->byte > before && *radix_find_child(n, c->byte) == c);
        before = c->byte;
        children++;
    }
    assert(children == n->child_count);
}

void radix_check(const struct radix *r)
{
    uint64_t nodes = 0, prefixes = 0, keys = 0;
    size_t bytes = 0;
    const struct radix_node *n = r->root;
    assert(!n || !n->parent);
    while (n) {
        check_node(n);
        nodes++;
        prefixes += n->prefix_len > 0;
        keys += n->value != NULL;
        bytes += block_bytes(n->shape, n->prefix_len);
        const struct radix_node *next = radix_child_from(n, 0);
        while (!next && n->parent) {
            next = radix_child_from(n->parent, n->byte + 1u);
            n = n->parent;
        }
        n = next;
    }
    assert(nodes == r->node_count && prefixes == r->prefix_count && keys == r->count &&
           bytes == r->bytes);
}
