/* See nested.h. A node is one block with its name; its leaf or its map hangs off it, so that a
 * leaf that is replaced leaves all links alone. */
#include "value/nested.h"

#include "base/buf.h"
#include "base/hash.h"
#include "base/mem.h"
#include "ds/table.h"

#include <openssl/sha.h>

/* Children that are found by looking at each; a map with more has a table of them. */
#define UNINDEXED_MAX 16
#define DIGEST_BYTES SHA_DIGEST_LENGTH

/* A leaf's strings, one behind the other, each after its length in eight bytes. */
struct leaf {
    uint64_t count;
    size_t bytes; /* of `body` */
    char body[];
};

struct map {
    struct nested_node *first, *last;
    uint64_t count;     /* children */
    uint64_t nodes;     /* all below */
    struct table index; /* by name, with more than UNINDEXED_MAX children */
};

struct nested_node {
    struct nested_node *parent, *previous, *next;
    enum nested_kind kind;
    union {
        struct leaf *leaf;
        struct map *map;
    };
    size_t name_len;
    char name[];
};

/* ---- Nodes ---- */

static struct nested_node *root_of(const struct entry *e)
{
    assert(entry_type(e) == VALUE_NESTED && entry_encoding(e) == ENCODING_NESTED);
    return entry_pointer(e);
}

enum nested_kind nested_kind(const struct nested_node *n)
{
    return n->kind;
}

struct slice nested_name(const struct nested_node *n)
{
    return slice_of(n->name, n->name_len);
}

uint64_t nested_count(const struct nested_node *n)
{
    return n->kind == NESTED_MAP ? n->map->count : n->leaf->count;
}

struct slice nested_string_at(const struct nested_node *n, size_t *offset)
{
    uint64_t len;
    assert(n->kind != NESTED_MAP && *offset < n->leaf->bytes);
    const char *at = n->leaf->body + *offset;
    memcpy(&len, at, sizeof(len));
    *offset += sizeof(len) + len;
    assert(*offset <= n->leaf->bytes);
    return slice_of(at + sizeof(len), len);
}

static inline void copy_bytes(char *to, struct slice from)
{
    if (from.len > 0) {
        memcpy(to, from.ptr, from.len);
    }
}

static size_t leaf_block_bytes(size_t bytes)
{
    return sizeof(struct leaf) + bytes;
}

static struct leaf *leaf_create(const struct nested_leaf *content)
{
    size_t bytes = 0;
    assert(content->count > 0 && (content->kind == NESTED_LIST || content->count == 1));
    for (size_t i = 0; i < content->count; i++) {
        bytes += sizeof(uint64_t) + content->strings[i].len;
    }
    struct leaf *leaf = mem_alloc(leaf_block_bytes(bytes));
    char *at = leaf->body;
    leaf->count = content->count;
    leaf->bytes = bytes;
    for (size_t i = 0; i < content->count; i++) {
        uint64_t len = content->strings[i].len;
        memcpy(at, &len, sizeof(len));
        copy_bytes(at + sizeof(len), content->strings[i]);
        at += sizeof(len) + len;
    }
    return leaf;
}

static struct leaf *leaf_copy(const struct leaf *from)
{
    struct leaf *leaf = mem_alloc(leaf_block_bytes(from->bytes));
    memcpy(leaf, from, leaf_block_bytes(from->bytes));
    return leaf;
}

static void leaf_destroy(struct leaf *leaf)
{
    mem_free_sized(leaf, leaf_block_bytes(leaf->bytes));
}

/* A node without parent; a map has no children yet, a leaf's content is the caller's to set. */
static struct nested_node *node_create(struct slice name, enum nested_kind kind)
{
    struct nested_node *n = mem_alloc(sizeof(*n) + name.len);
    *n = (struct nested_node){.kind = kind, .name_len = name.len};
    copy_bytes(n->name, name);
    if (kind == NESTED_MAP) {
        n->map = mem_calloc(1, sizeof(*n->map));
    }
    return n;
}

/* Frees what the node holds; a map's children are gone already. */
static void node_drop_content(struct nested_node *n)
{
    if (n->kind != NESTED_MAP) {
        leaf_destroy(n->leaf);
        return;
    }
    if (n->map->index.rows) {
        table_deinit(&n->map->index, NULL, NULL);
    }
    mem_free_sized(n->map, sizeof(*n->map));
}

static void node_destroy(struct nested_node *n)
{
    node_drop_content(n);
    mem_free_sized(n, sizeof(*n) + n->name_len);
}

/* Frees a node and all below it: children first, and a map as soon as its last child is freed. */
static void tree_destroy(struct nested_node *top)
{
    struct nested_node *n = top;
    while (n) {
        if (n->kind == NESTED_MAP && n->map->first) {
            struct nested_node *child = n->map->first;
            n->map->first = NULL;
            n = child;
            continue;
        }
        struct nested_node *next = n == top ? NULL : n->next ? n->next : n->parent;
        node_destroy(n);
        n = next;
    }
}

/* Nodes of the tree under `n`, itself included. */
static uint64_t tree_nodes(const struct nested_node *n)
{
    return 1 + (n->kind == NESTED_MAP ? n->map->nodes : 0);
}

/* ---- Maps ---- */

static uint64_t hash_node(const void *entry)
{
    return hash_slice(nested_name(entry));
}

static bool node_matches(const void *entry, const void *key)
{
    return slice_equal(nested_name(entry), *(const struct slice *)key);
}

static struct nested_node *map_find(const struct map *m, struct slice name)
{
    if (m->index.rows) {
        uintptr_t *slot = table_find(&m->index, hash_slice(name), node_matches, &name);
        return slot ? table_entry(*slot) : NULL;
    }
    for (struct nested_node *n = m->first; n; n = n->next) {
        if (slice_equal(nested_name(n), name)) {
            return n;
        }
    }
    return NULL;
}

static void map_index(struct map *m)
{
    table_init(&m->index, hash_node);
    for (struct nested_node *n = m->first; n; n = n->next) {
        table_insert(&m->index, hash_node(n), (uintptr_t)n);
    }
}

/* Adds a child behind the others. Counts of nodes are the caller's to raise. */
static void map_append(struct nested_node *parent, struct nested_node *child)
{
    struct map *m = parent->map;
    assert(parent->kind == NESTED_MAP && !child->parent);
    child->parent = parent;
    child->previous = m->last;
    if (m->last) {
        m->last->next = child;
    } else {
        m->first = child;
    }
    m->last = child;
    m->count++;
    if (m->index.rows) {
        table_insert(&m->index, hash_node(child), (uintptr_t)child);
    } else if (m->count > UNINDEXED_MAX) {
        map_index(m);
    }
}

/* Raises the count of nodes of all maps that hold `n`. */
static void count_nodes(struct nested_node *n, uint64_t more)
{
    for (n = n->parent; n; n = n->parent) {
        n->map->nodes += more;
    }
}

/* ---- Setting and finding ---- */

/* The deepest node that is there on the way, and how many names lead to it. */
static struct nested_node *descend(struct nested_node *n, const struct slice *names, unsigned depth,
                                   unsigned *reached)
{
    *reached = 0;
    while (*reached < depth && n->kind == NESTED_MAP) {
        struct nested_node *child = map_find(n->map, names[*reached]);
        if (!child) {
            break;
        }
        n = child;
        ++*reached;
    }
    return n;
}

static struct nested_node *leaf_node(struct slice name, const struct nested_leaf *leaf)
{
    struct nested_node *n = node_create(name, leaf->kind);
    n->leaf = leaf_create(leaf);
    return n;
}

/* Adds names[0..count-1] below the map `n`, one below the other, the last one with the leaf. */
static void add_below(struct nested_node *n, const struct slice *names, unsigned count,
                      const struct nested_leaf *leaf)
{
    assert(count > 0);
    for (unsigned i = 0; i < count; i++) {
        bool last = i == count - 1;
        struct nested_node *child =
            last ? leaf_node(names[i], leaf) : node_create(names[i], NESTED_MAP);
        map_append(n, child);
        count_nodes(child, 1);
        n = child;
    }
}

struct entry *nested_create(struct slice key, const struct slice *names, unsigned depth,
                            const struct nested_leaf *leaf)
{
    struct slice none = SLICE("");
    assert(depth <= NESTED_MAX_DEPTH);
    struct nested_node *root = depth > 0 ? node_create(none, NESTED_MAP) : leaf_node(none, leaf);
    if (depth > 0) {
        add_below(root, names, depth, leaf);
    }
    return entry_create_pointer(key, VALUE_NESTED, ENCODING_NESTED, root, ENTRY_NO_EXPIRY);
}

/* Puts `fresh`, of the same name, in the place of `n`, which stands alone then with all that is
 * below it. */
static void take_place(struct nested_node *fresh, struct nested_node *n)
{
    struct map *m = n->parent->map;
    struct slice name = nested_name(n);
    fresh->parent = n->parent;
    fresh->previous = n->previous;
    fresh->next = n->next;
    *(n->previous ? &n->previous->next : &m->first) = fresh;
    *(n->next ? &n->next->previous : &m->last) = fresh;
    if (m->index.rows) {
        uintptr_t *slot = table_find(&m->index, hash_slice(name), node_matches, &name);
        assert(slot && table_entry(*slot) == n);
        table_set_slot(slot, (uintptr_t)fresh);
    }
    n->parent = n->previous = n->next = NULL;
}

/* Puts a leaf in the place of `n`, which is given away. */
static struct entry *replace(struct entry *e, struct nested_node *n, const struct nested_leaf *leaf)
{
    struct nested_node *fresh = leaf_node(nested_name(n), leaf);
    if (n->parent) {
        count_nodes(n, 1 - tree_nodes(n));
        take_place(fresh, n);
    } else {
        entry_set_pointer(e, fresh);
    }
    return entry_create_pointer(SLICE(""), VALUE_NESTED, ENCODING_NESTED, n, ENTRY_NO_EXPIRY);
}

enum nested_set nested_set(struct entry *e, const struct slice *names, unsigned depth,
                           const struct nested_leaf *leaf, struct entry **replaced_give)
{
    unsigned reached;
    assert(depth <= NESTED_MAX_DEPTH);
    struct nested_node *n = descend(root_of(e), names, depth, &reached);
    *replaced_give = NULL;
    if (reached == depth) {
        *replaced_give = replace(e, n, leaf);
        return NESTED_REPLACED;
    }
    if (n->kind != NESTED_MAP) {
        return NESTED_BLOCKED;
    }
    add_below(n, names + reached, depth - reached, leaf);
    return NESTED_ADDED;
}

const struct nested_node *nested_find(const struct entry *e, const struct slice *names,
                                      unsigned depth)
{
    unsigned reached;
    const struct nested_node *n = descend(root_of(e), names, depth, &reached);
    return reached == depth ? n : NULL;
}

/* ---- Walking ---- */

static enum nested_step arrive(const struct nested_node *n)
{
    return n->kind == NESTED_MAP ? NESTED_STEP_MAP : NESTED_STEP_LEAF;
}

void nested_walk_begin(struct nested_walk *w, const struct nested_node *top)
{
    *w = (struct nested_walk){.top = top, .node = top, .step = arrive(top)};
}

void nested_walk_next(struct nested_walk *w)
{
    const struct nested_node *n = w->node;
    assert(w->step != NESTED_STEP_DONE);
    if (w->step == NESTED_STEP_MAP) {
        assert(n->map->first);
        w->node = n->map->first;
        w->step = arrive(w->node);
        w->depth++;
    } else if (n == w->top) {
        w->step = NESTED_STEP_DONE;
    } else if (n->next) {
        w->node = n->next;
        w->step = arrive(w->node);
    } else {
        w->node = n->parent;
        w->step = NESTED_STEP_MAP_END;
        w->depth--;
    }
}

bool nested_walk_follows(const struct nested_walk *w)
{
    return w->node != w->top && w->node->previous;
}

/* ---- Operations of the type ---- */

static void destroy(struct entry *e)
{
    tree_destroy(root_of(e));
}

static struct nested_node *node_copy(const struct nested_node *from)
{
    struct nested_node *n = node_create(nested_name(from), from->kind);
    if (from->kind == NESTED_MAP) {
        n->map->nodes = from->map->nodes;
    } else {
        n->leaf = leaf_copy(from->leaf);
    }
    return n;
}

static void *copy(const struct entry *e)
{
    struct nested_walk w;
    struct nested_node *top = NULL, *open = NULL; /* the map that is being filled */
    for (nested_walk_begin(&w, root_of(e)); w.step != NESTED_STEP_DONE; nested_walk_next(&w)) {
        if (w.step == NESTED_STEP_MAP_END) {
            open = open->parent;
            continue;
        }
        struct nested_node *n = node_copy(w.node);
        if (open) {
            map_append(open, n);
        } else {
            top = n;
        }
        open = w.step == NESTED_STEP_MAP ? n : open;
    }
    return top;
}

/* With the node's share of the index that it stands in, so that a few nodes tell of all. */
static double node_bytes(const struct nested_node *n)
{
    size_t bytes = mem_good_size(sizeof(*n) + n->name_len);
    bytes += n->kind == NESTED_MAP ? mem_good_size(sizeof(*n->map))
                                   : mem_good_size(leaf_block_bytes(n->leaf->bytes));
    const struct map *m = n->parent ? n->parent->map : NULL;
    double share =
        m && m->index.rows ? (double)table_memory_bytes(&m->index) / (double)m->count : 0;
    return (double)bytes + share;
}

static size_t memory(const struct entry *e, size_t samples)
{
    struct nested_walk w;
    uint64_t looked_at = 0;
    double bytes = 0;
    for (nested_walk_begin(&w, root_of(e)); w.step != NESTED_STEP_DONE; nested_walk_next(&w)) {
        if (w.step != NESTED_STEP_MAP_END) {
            bytes += node_bytes(w.node);
            looked_at++;
        }
        if (looked_at == samples) {
            break;
        }
    }
    return (size_t)(bytes / (double)looked_at * (double)tree_nodes(root_of(e)));
}

static size_t free_effort(const struct entry *e)
{
    return 2 * tree_nodes(root_of(e));
}

static const char *encoding_name(const struct entry *e UNUSED)
{
    return "raw";
}

/* What the digest of a node starts from: the names that lead to it, as a chain of digests. */
struct chain {
    uint8_t sum[NESTED_MAX_DEPTH + 1][DIGEST_BYTES];
    struct buf text; /* what is hashed */
};

/* The sum of the chain at `depth` and of what follows it. */
static void chain_sum(struct chain *c, unsigned depth, struct slice bytes, char kind,
                      uint8_t sum[DIGEST_BYTES])
{
    buf_clear(&c->text);
    buf_append(&c->text, (const char *)c->sum[depth], DIGEST_BYTES);
    buf_append_char(&c->text, kind);
    buf_append_slice(&c->text, bytes);
    SHA1((const unsigned char *)c->text.data, c->text.len, sum);
}

static void add_leaf(struct chain *c, unsigned depth, const struct nested_node *n,
                     uint8_t sum[DIGEST_BYTES])
{
    uint8_t one[DIGEST_BYTES];
    chain_sum(c, depth, slice_of(n->leaf->body, n->leaf->bytes), (char)n->kind, one);
    for (int i = 0; i < DIGEST_BYTES; i++) {
        sum[i] ^= one[i];
    }
}

/* The sums of the leaves with the names that lead to them, combined by xor: no order. */
static void digest(const struct entry *e, uint8_t sum[20])
{
    struct nested_walk w;
    struct chain chain = {0};
    memset(sum, 0, DIGEST_BYTES);
    for (nested_walk_begin(&w, root_of(e)); w.step != NESTED_STEP_DONE; nested_walk_next(&w)) {
        if (w.step != NESTED_STEP_MAP_END && w.depth > 0) {
            chain_sum(&chain, w.depth - 1, nested_name(w.node), (char)NESTED_MAP,
                      chain.sum[w.depth]);
        }
        if (w.step == NESTED_STEP_LEAF) {
            add_leaf(&chain, w.depth, w.node, sum);
        }
    }
    buf_deinit(&chain.text);
}

/* ---- Checking ---- */

static void check_map(const struct nested_node *n)
{
    const struct map *m = n->map;
    uint64_t children = 0, nodes = 0;
    const struct nested_node *previous = NULL;
    for (const struct nested_node *child = m->first; child; child = child->next) {
        assert(child->parent == n && child->previous == previous && child->name_len > 0);
        assert(map_find(m, nested_name(child)) == child);
        previous = child;
        children++;
        nodes += tree_nodes(child);
    }
    assert(children > 0 && children == m->count && nodes == m->nodes && m->last == previous);
    assert((m->index.rows != NULL) == (children > UNINDEXED_MAX));
    if (m->index.rows) {
        assert(m->index.count == children);
        table_check(&m->index);
    }
}

static void check_leaf(const struct nested_node *n)
{
    size_t offset = 0;
    assert(n->leaf->count > 0 && (n->kind == NESTED_LIST || n->leaf->count == 1));
    for (uint64_t i = 0; i < n->leaf->count; i++) {
        (void)nested_string_at(n, &offset);
    }
    assert(offset == n->leaf->bytes);
}

void nested_check(const struct entry *e)
{
    struct nested_walk w;
    assert(!root_of(e)->parent && !root_of(e)->next && !root_of(e)->previous);
    for (nested_walk_begin(&w, root_of(e)); w.step != NESTED_STEP_DONE; nested_walk_next(&w)) {
        assert(w.depth <= NESTED_MAX_DEPTH);
        if (w.step == NESTED_STEP_MAP) {
            check_map(w.node);
        } else if (w.step == NESTED_STEP_LEAF) {
            check_leaf(w.node);
        }
    }
}

/* For DEBUG HTSTATS-KEY: the index of the root. */
static const struct table *table_under(const struct entry *e)
{
    const struct nested_node *root = root_of(e);
    return root->kind == NESTED_MAP && root->map->index.rows ? &root->map->index : NULL;
}

const struct value_ops nested_ops = {
    .name = "nestedhash",
    .destroy = destroy,
    .copy = copy,
    .memory = memory,
    .free_effort = free_effort,
    .encoding = encoding_name,
    .digest = digest,
    .table = table_under,
};
