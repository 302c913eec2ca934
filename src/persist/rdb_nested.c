/* See rdb_value_priv.h, and rdb_format.h for the form. */
#include "persist/rdb_format.h"
#include "persist/rdb_value_priv.h"

#include "base/mem.h"
#include "value/nested.h"

/* ---- writing ---- */

static void write_leaf(struct rdb_writer *w, const struct nested_node *leaf)
{
    bool list = nested_kind(leaf) == NESTED_LIST;
    rdb_write_byte(w, list);
    if (list) {
        rdb_write_len(w, nested_count(leaf));
    }
    size_t offset = 0;
    for (uint64_t i = nested_count(leaf); i > 0; i--) {
        rdb_write_string(w, nested_string_at(leaf, &offset));
    }
}

void rdb_save_nested(struct rdb_writer *w, const struct entry *e)
{
    const struct nested_node *root = nested_find(e, NULL, 0);
    struct nested_walk walk;
    uint64_t leaves = 0;
    for (nested_walk_begin(&walk, root); walk.step != NESTED_STEP_DONE; nested_walk_next(&walk)) {
        leaves += walk.step == NESTED_STEP_LEAF;
    }
    rdb_write_len(w, leaves);
    /* names[k]: on the way to the node at hand, k + 1 below the root. */
    struct slice names[NESTED_MAX_DEPTH];
    unsigned shared = 0; /* names in common with the leaf written before */
    for (nested_walk_begin(&walk, root); walk.step != NESTED_STEP_DONE; nested_walk_next(&walk)) {
        unsigned depth = walk.depth;
        if (walk.step == NESTED_STEP_MAP_END) {
            continue;
        }
        assert(depth <= NESTED_MAX_DEPTH);
        if (depth > 0) {
            names[depth - 1] = nested_name(walk.node);
            shared = depth - 1 < shared ? depth - 1 : shared;
        }
        if (walk.step == NESTED_STEP_LEAF) {
            rdb_write_len(w, shared);
            rdb_write_len(w, depth - shared);
            for (unsigned i = shared; i < depth; i++) {
                rdb_write_string(w, names[i]);
            }
            write_leaf(w, walk.node);
            shared = depth;
        }
    }
}

/* ---- reading ---- */

struct nested_loader {
    struct rdb_reader *r;
    struct buf names[NESTED_MAX_DEPTH]; /* of the leaf at hand */
    unsigned depth;
    struct buf text;
    struct buf bytes;   /* of a leaf's strings, one after the other */
    struct buf strings; /* struct slice of each; ptr is an offset until all are there */
};

static bool read_names(struct nested_loader *l)
{
    uint64_t shared, more;
    if (!rdb_read_len(l->r, &shared) || !rdb_read_len(l->r, &more)) {
        return false;
    }
    if (shared > l->depth || more > NESTED_MAX_DEPTH - shared) {
        return rdb_fail(l->r, "a nested hash's path that is damaged");
    }
    l->depth = (unsigned)(shared + more);
    for (unsigned i = (unsigned)shared; i < l->depth; i++) {
        if (!rdb_read_string(l->r, &l->names[i])) {
            return false;
        }
        if (l->names[i].len == 0 || l->names[i].len > UINT32_MAX) {
            return rdb_fail(l->r, "a nested hash's name that must not be");
        }
    }
    return true;
}

static bool read_strings(struct nested_loader *l, struct nested_leaf *leaf)
{
    unsigned kind;
    uint64_t count = 1;
    if (!rdb_read_byte(l->r, &kind) || (kind == 1 && !rdb_read_count(l->r, 1, &count))) {
        return false;
    }
    if (kind > 1 || count == 0) {
        return rdb_fail(l->r, "a nested hash's leaf that is damaged");
    }
    buf_clear(&l->bytes);
    buf_clear(&l->strings);
    for (uint64_t i = 0; i < count; i++) {
        if (!rdb_read_string(l->r, &l->text)) {
            return false;
        }
        if (l->text.len > UINT32_MAX) {
            return rdb_fail(l->r, "a nested hash's string that is too long");
        }
        struct slice s = {(const char *)l->bytes.len, l->text.len};
        buf_append(&l->strings, (const char *)&s, sizeof(s));
        buf_append_slice(&l->bytes, buf_slice(&l->text));
    }
    buf_reserve(&l->bytes, 1);
    struct slice *strings = (struct slice *)(void *)l->strings.data;
    for (uint64_t i = 0; i < count; i++) {
        strings[i].ptr = l->bytes.data + (size_t)strings[i].ptr;
    }
    *leaf = (struct nested_leaf){kind == 1 ? NESTED_LIST : NESTED_STRING, strings, (size_t)count};
    return true;
}

/* Puts a leaf where nothing stands. */
static bool put_leaf(struct nested_loader *l, struct slice key, const struct nested_leaf *leaf,
                     struct entry **e)
{
    struct slice names[NESTED_MAX_DEPTH];
    for (unsigned i = 0; i < l->depth; i++) {
        names[i] = buf_slice(&l->names[i]);
    }
    if (!*e) {
        *e = nested_create(key, names, l->depth, leaf);
        return true;
    }
    struct entry *replaced = NULL;
    bool added = l->depth > 0 && nested_set(*e, names, l->depth, leaf, &replaced) == NESTED_ADDED;
    if (replaced) {
        entry_destroy(&replaced);
    }
    return added || rdb_fail(l->r, "a nested hash with two values at one path");
}

bool rdb_load_nested(struct rdb_reader *r, unsigned type, struct slice key, struct entry **e)
{
    (void)type;
    struct nested_loader *l = mem_calloc(1, sizeof(*l));
    uint64_t leaves;
    struct entry *made = NULL;
    l->r = r;
    bool ok = rdb_read_count(r, 4, &leaves);
    for (; ok && leaves > 0; leaves--) {
        struct nested_leaf leaf;
        ok = read_names(l) && read_strings(l, &leaf) && put_leaf(l, key, &leaf, &made);
    }
    for (unsigned i = 0; i < NESTED_MAX_DEPTH; i++) {
        buf_deinit(&l->names[i]);
    }
    buf_deinit(&l->text);
    buf_deinit(&l->bytes);
    buf_deinit(&l->strings);
    mem_free(l);
    if (!ok && made) {
        entry_destroy(&made);
    }
    *e = made;
    return ok;
}
