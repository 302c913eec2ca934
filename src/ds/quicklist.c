/* See quicklist.h. Walks and sizes are in quicklist_read.c, nodes and their compression in
 * quicklist_node.c. */
#include "ds/quicklist_priv.h"

#include "base/mem.h"

#include <assert.h>

/* Nodes that are limited by a number of elements keep to this all the same. */
#define COUNTED_NODE_BYTES 8192

static size_t packed_threshold;

void quicklist_set_packed_threshold(size_t bytes)
{
    packed_threshold = bytes;
}

struct quicklist_limits quicklist_limits_of(int64_t fill)
{
    if (fill >= 0) {
        uint32_t count = fill == 0 ? 1 : fill < UINT32_MAX ? (uint32_t)fill : UINT32_MAX - 1;
        return (struct quicklist_limits){COUNTED_NODE_BYTES, count};
    }
    int64_t class = fill < -5 ? 5 : -fill;
    return (struct quicklist_limits){(uint32_t)2048 << class, UINT32_MAX};
}

struct quicklist *quicklist_create(int64_t fill, uint32_t depth)
{
    struct quicklist *q = mem_calloc(1, sizeof(*q));
    q->limits = quicklist_limits_of(fill);
    q->depth = depth;
    return q;
}

void quicklist_destroy(struct quicklist *q)
{
    struct quicklist_node *next;
    for (struct quicklist_node *n = q->head; n; n = next) {
        next = n->next;
        quicklist_node_destroy(n);
    }
    mem_free_sized(q, sizeof(*q));
}

/* ---- Nodes of the list ---- */

/* Bytes that an element of `len` bytes takes in a listpack at most: its length before it, and all
 * of that backwards. */
static inline size_t element_bytes(size_t len)
{
    size_t forth = len + (len < 64 ? 1 : len < 4096 ? 2 : 5);
    return forth + (forth < 128 ? 1 : forth < 16384 ? 2 : forth < 2097152 ? 3 : 5);
}

static inline bool is_large(const struct quicklist *q, size_t len)
{
    return LISTPACK_HEADER_BYTES + 1 + element_bytes(len) > q->limits.bytes ||
           unlikely(packed_threshold > 0 && len >= packed_threshold);
}

/* True when an element of `len` bytes can be added to the node. */
static inline bool has_room(const struct quicklist *q, const struct quicklist_node *n, size_t len)
{
    return !n->plain && n->count < q->limits.count &&
           n->bytes + element_bytes(len) <= q->limits.bytes && !is_large(q, len);
}

/* Links `n` behind `before` (NULL: as head). */
static void link_after(struct quicklist *q, struct quicklist_node *before, struct quicklist_node *n)
{
    struct quicklist_node *after = before ? before->next : q->head;
    n->prev = before;
    n->next = after;
    *(before ? &before->next : &q->head) = n;
    *(after ? &after->prev : &q->tail) = n;
    q->nodes++;
    q->count += n->count;
}

static void unlink_node(struct quicklist *q, struct quicklist_node *n)
{
    *(n->prev ? &n->prev->next : &q->head) = n->next;
    *(n->next ? &n->next->prev : &q->tail) = n->prev;
    q->nodes--;
    q->count -= n->count;
    quicklist_node_destroy(n);
}

/* Holds invariant 3 again after nodes have come or gone: the outer nodes are opened, the outermost
 * of the inner ones compressed; those further in have been already. */
static void settle(struct quicklist *q)
{
    if (likely(q->depth == 0)) {
        return;
    }
    struct quicklist_node *front = q->head, *back = q->tail;
    for (uint32_t i = 0; i < q->depth && front; i++) {
        quicklist_node_open(front);
        quicklist_node_open(back);
        if (front == back || front->next == back) {
            return;
        }
        front = front->next;
        back = back->prev;
    }
    if (front) {
        quicklist_node_compress(front);
        quicklist_node_compress(back);
    }
}

/* Gives the listpack of a changed node back. */
static void update(struct quicklist *q, struct quicklist_node *n, unsigned char *lp)
{
    q->count -= n->count;
    quicklist_node_set(n, lp);
    q->count += n->count;
}

/* The node that holds the element at `index`, and how many of its elements come before. */
static struct quicklist_node *find_node(const struct quicklist *q, uint64_t index, uint32_t *offset)
{
    struct quicklist_node *n;
    assert(index < q->count);
    if (index < q->count / 2) {
        for (n = q->head; index >= n->count; n = n->next) {
            index -= n->count;
        }
    } else {
        uint64_t left = q->count - index;
        for (n = q->tail; left > n->count; n = n->prev) {
            left -= n->count;
        }
        index = n->count - left;
    }
    *offset = (uint32_t)index;
    return n;
}

/* ---- The ends ---- */

/* Adds to an open node at its end. */
static inline void extend(struct quicklist *q, struct quicklist_node *n, struct slice element,
                          bool at_tail)
{
    n->data = at_tail ? listpack_append(n->data, element) : listpack_prepend(n->data, element);
    n->bytes = listpack_bytes(n->data);
    n->count++;
    q->count++;
}

void quicklist_push(struct quicklist *q, struct slice element, bool at_tail)
{
    struct quicklist_node *n = at_tail ? q->tail : q->head;
    if (likely(n && has_room(q, n, element.len))) {
        extend(q, n, element, at_tail);
        return;
    }
    if (n && !n->plain) {
        n->data = listpack_shrink(n->data);
    }
    struct quicklist_node *fresh = quicklist_node_of_element(element, is_large(q, element.len));
    link_after(q, at_tail ? q->tail : NULL, fresh);
    settle(q);
}

void quicklist_pop(struct quicklist *q, bool at_tail)
{
    struct quicklist_node *n = at_tail ? q->tail : q->head;
    assert(n);
    if (n->count == 1) {
        unlink_node(q, n);
        settle(q);
        return;
    }
    unsigned char *at = at_tail ? listpack_last(n->data) : listpack_first(n->data);
    n->data = listpack_remove(n->data, &at);
    n->bytes = listpack_bytes(n->data);
    n->count--;
    q->count--;
}

void quicklist_append_listpack(struct quicklist *q, unsigned char *lp_take)
{
    assert(listpack_count(lp_take) > 0);
    q->foreign = q->foreign || listpack_bytes(lp_take) > q->limits.bytes ||
                 listpack_count(lp_take) > q->limits.count;
    link_after(q, q->tail, quicklist_node_of_listpack(lp_take));
    settle(q);
}

unsigned char *quicklist_take_listpack(struct quicklist *q_take)
{
    struct quicklist_node *n = q_take->head;
    assert(n && n == q_take->tail && !n->plain);
    quicklist_node_open(n);
    unsigned char *lp = n->data;
    mem_free_sized(n, sizeof(*n));
    mem_free_sized(q_take, sizeof(*q_take));
    return lp;
}

/* ---- Anywhere ---- */

/* Joins `b` to its neighbour `a` before it if one node may hold both; true then, and `b` is gone.
 */
static bool merge(struct quicklist *q, struct quicklist_node *a, struct quicklist_node *b)
{
    if (!a || !b || a->plain || b->plain ||
        a->bytes + b->bytes - LISTPACK_HEADER_BYTES - 1 > q->limits.bytes ||
        (uint64_t)a->count + b->count > q->limits.count) {
        return false;
    }
    bool a_was = quicklist_node_open(a);
    bool b_was = quicklist_node_open(b);
    unsigned char *right = listpack_copy(b->data);
    unlink_node(q, b);
    update(q, a, listpack_join(a->data, right));
    if (a_was || b_was) {
        quicklist_node_compress(a);
    }
    return true;
}

/* Cuts an open node before its element `offset`, which is not its first. Returns the new second
 * part. */
static struct quicklist_node *split(struct quicklist *q, struct quicklist_node *n, uint32_t offset)
{
    assert(!n->plain && offset > 0 && offset < n->count);
    uint32_t rest = n->count - offset;
    unsigned char *right = listpack_remove_range(listpack_copy(n->data), 0, offset);
    update(q, n, listpack_shrink(listpack_remove_range(n->data, offset, rest)));
    struct quicklist_node *second = quicklist_node_of_listpack(listpack_shrink(right));
    link_after(q, n, second);
    return second;
}

/* Inserts an element between two nodes (`before` NULL: at the head), in one of them if there is
 * room. */
static void insert_between(struct quicklist *q, struct quicklist_node *before, struct slice element)
{
    struct quicklist_node *after = before ? before->next : q->head;
    struct quicklist_node *n = before && has_room(q, before, element.len) ? before
                               : after && has_room(q, after, element.len) ? after
                                                                          : NULL;
    if (n) {
        bool was_compressed = quicklist_node_open(n);
        extend(q, n, element, n == before);
        if (was_compressed) {
            quicklist_node_compress(n);
        }
        return;
    }
    link_after(q, before, quicklist_node_of_element(element, is_large(q, element.len)));
}

/* Inserts inside a node that has no room: its parts may have some, or join their neighbours. */
static void insert_splitting(struct quicklist *q, struct quicklist_node *n, uint32_t offset,
                             struct slice element)
{
    bool was_compressed = quicklist_node_open(n);
    struct quicklist_node *second = split(q, n, offset);
    insert_between(q, n, element);
    struct quicklist_node *after = second->next, *before = n->prev;
    if (was_compressed) {
        quicklist_node_compress(n);
        quicklist_node_compress(second);
    }
    merge(q, second, after);
    merge(q, before, n);
}

void quicklist_insert(struct quicklist *q, uint64_t index, struct slice element)
{
    uint32_t offset;
    assert(index <= q->count);
    if (index == 0 || index == q->count) {
        quicklist_push(q, element, index == q->count);
        return;
    }
    struct quicklist_node *n = find_node(q, index, &offset);
    if (offset > 0 && has_room(q, n, element.len)) {
        bool was_compressed = quicklist_node_open(n);
        unsigned char *at = listpack_seek(n->data, offset);
        update(q, n, listpack_insert(n->data, &at, element, false));
        if (was_compressed) {
            quicklist_node_compress(n);
        }
        return;
    }
    if (offset == 0) {
        insert_between(q, n->prev, element);
    } else {
        insert_splitting(q, n, offset, element);
    }
    settle(q);
}

/* Replaces within an open listpack if the node then keeps its limits. */
static bool replace_in_place(struct quicklist *q, struct quicklist_node *n, uint32_t offset,
                             struct slice element)
{
    char text[LISTPACK_TEXT_BYTES];
    unsigned char *at = listpack_seek(n->data, offset);
    /* An integer takes no more bytes than its text would, a string just as many: no less than one
     * goes. */
    int64_t integer;
    size_t going =
        listpack_get_integer(at, &integer) ? 2 : element_bytes(listpack_get(at, text).len);
    if (is_large(q, element.len) ||
        n->bytes - going + element_bytes(element.len) > q->limits.bytes) {
        return false;
    }
    update(q, n, listpack_replace(n->data, &at, element));
    return true;
}

/* Puts a node with nothing but `element` in the place of `n`. */
static void replace_node(struct quicklist *q, struct quicklist_node *n, struct slice element)
{
    link_after(q, n, quicklist_node_of_element(element, is_large(q, element.len)));
    unlink_node(q, n);
    settle(q);
}

void quicklist_replace(struct quicklist *q, uint64_t index, struct slice element)
{
    uint32_t offset;
    struct quicklist_node *n = find_node(q, index, &offset);
    if (n->count == 1) {
        bool was_compressed = n->packed > 0;
        struct quicklist_node *before = n->prev;
        replace_node(q, n, element);
        n = before ? before->next : q->head;
        if (was_compressed) {
            quicklist_node_compress(n);
        }
        return;
    }
    bool was_compressed = quicklist_node_open(n);
    bool replaced = replace_in_place(q, n, offset, element);
    if (!replaced) {
        update(q, n, listpack_remove_range(n->data, offset, 1));
    }
    if (was_compressed) {
        quicklist_node_compress(n);
    }
    if (!replaced) {
        quicklist_insert(q, index, element);
    }
}

void quicklist_remove_range(struct quicklist *q, uint64_t start, uint64_t count)
{
    assert(start <= q->count && count <= q->count - start);
    if (count == 0) {
        return;
    }
    uint32_t offset;
    uint64_t nodes = q->nodes;
    struct quicklist_node *next, *n = find_node(q, start, &offset);
    for (; count > 0; n = next, offset = 0) {
        next = n->next;
        uint32_t here = n->count - offset;
        here = count < here ? (uint32_t)count : here;
        count -= here;
        if (here == n->count) {
            unlink_node(q, n);
            continue;
        }
        bool was_compressed = quicklist_node_open(n);
        update(q, n, listpack_remove_range(n->data, offset, here));
        if (was_compressed) {
            quicklist_node_compress(n);
        }
    }
    if (q->nodes != nodes) {
        settle(q);
    }
}

unsigned char *quicklist_remove_equal_listpack(unsigned char *lp, struct slice element,
                                               uint64_t max, bool from_tail, uint64_t *removed)
{
    *removed = 0;
    unsigned char *at = from_tail ? listpack_last(lp) : listpack_first(lp);
    while (at && *removed < max) {
        if (!listpack_equals(at, element)) {
            at = from_tail ? listpack_prev(lp, at) : listpack_next(lp, at);
            continue;
        }
        lp = listpack_remove(lp, &at);
        (*removed)++;
        if (from_tail) {
            /* `at` is the one behind the removed, which has been looked at. */
            at = at ? listpack_prev(lp, at) : listpack_last(lp);
        }
    }
    return lp;
}

/* Removes equal elements of a node, which is gone when nothing is left. A compressed one without a
 * match stays as it is. */
static uint64_t remove_equal_in_node(struct quicklist *q, struct quicklist_node *n,
                                     struct slice element, uint64_t max, bool from_tail)
{
    uint64_t removed;
    bool was_compressed = n->packed > 0;
    unsigned char *raw = was_compressed ? quicklist_node_decompressed(n) : n->data;
    if (n->plain) {
        removed = slice_equal(slice_of((const char *)raw, n->bytes), element);
    } else {
        raw = quicklist_remove_equal_listpack(raw, element, max, from_tail, &removed);
    }
    if (was_compressed) {
        mem_free(removed ? n->data : raw);
        n->packed = removed ? 0 : n->packed;
        n->data = removed ? raw : n->data;
    } else {
        n->data = raw;
    }
    if (removed == n->count) {
        unlink_node(q, n);
    } else if (removed > 0) {
        update(q, n, n->data);
        if (was_compressed) {
            quicklist_node_compress(n);
        }
    }
    return removed;
}

uint64_t quicklist_remove_equal(struct quicklist *q, struct slice element, uint64_t max,
                                bool from_tail)
{
    uint64_t removed = 0, nodes = q->nodes;
    struct quicklist_node *next;
    for (struct quicklist_node *n = from_tail ? q->tail : q->head; n && removed < max; n = next) {
        next = from_tail ? n->prev : n->next;
        removed += remove_equal_in_node(q, n, element, max - removed, from_tail);
    }
    if (q->nodes != nodes) {
        settle(q);
    }
    return removed;
}
