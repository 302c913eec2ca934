/* See quicklist.h: what looks at a quicklist and changes nothing of it. */
#include "ds/quicklist_priv.h"

#include "base/mem.h"

#include <assert.h>

uint64_t quicklist_count(const struct quicklist *q)
{
    return q->count;
}

uint64_t quicklist_node_count(const struct quicklist *q)
{
    return q->nodes;
}

size_t quicklist_single_bytes(const struct quicklist *q)
{
    return q->nodes == 1 && !q->head->plain ? q->head->bytes : 0;
}

size_t quicklist_memory(const struct quicklist *q, size_t samples)
{
    size_t bytes = 0, seen = 0;
    for (const struct quicklist_node *n = q->head; n && (samples == 0 || seen < samples);
         n = n->next) {
        bytes += mem_usable_size(n) + mem_usable_size(n->data);
        seen++;
    }
    double average = seen > 0 ? (double)bytes / (double)seen : 0;
    return mem_usable_size(q) + (seen == q->nodes ? bytes : (size_t)(average * (double)q->nodes));
}

struct quicklist *quicklist_copy(const struct quicklist *q)
{
    struct quicklist *copy = mem_alloc(sizeof(*copy));
    *copy = *q;
    copy->head = copy->tail = NULL;
    for (const struct quicklist_node *n = q->head; n; n = n->next) {
        struct quicklist_node *mine = quicklist_node_copy(n);
        mine->prev = copy->tail;
        *(copy->tail ? &copy->tail->next : &copy->head) = mine;
        copy->tail = mine;
    }
    return copy;
}

/* ---- Walks ---- */

/* Enters the node, at its element `offset` (negative from its end). */
static void enter(struct quicklist_cursor *c, const struct quicklist_node *n, int64_t offset)
{
    mem_free(c->scratch);
    c->scratch = n->packed ? quicklist_node_decompressed(n) : NULL;
    unsigned char *raw = c->scratch ? c->scratch : n->data;
    c->node = n;
    c->lp = n->plain ? NULL : raw;
    c->at = n->plain ? raw : listpack_seek(raw, offset);
}

void quicklist_cursor_open(struct quicklist_cursor *c, const struct quicklist *q, uint64_t index,
                           bool backward)
{
    c->node = NULL;
    c->lp = c->at = c->scratch = NULL;
    c->backward = backward;
    c->started = false;
    if (index >= q->count) {
        return;
    }
    const struct quicklist_node *n;
    if (index < q->count / 2) {
        for (n = q->head; index >= n->count; n = n->next) {
            index -= n->count;
        }
        enter(c, n, (int64_t)index);
    } else {
        uint64_t left = q->count - index;
        for (n = q->tail; left > n->count; n = n->prev) {
            left -= n->count;
        }
        enter(c, n, -(int64_t)left);
    }
}

void quicklist_cursor_open_listpack(struct quicklist_cursor *c, unsigned char *lp, uint64_t index,
                                    bool backward)
{
    c->node = NULL;
    c->lp = lp;
    c->scratch = NULL;
    c->backward = backward;
    c->started = false;
    c->at = index <= INT64_MAX ? listpack_seek(lp, (int64_t)index) : NULL;
}

void quicklist_cursor_close(struct quicklist_cursor *c)
{
    mem_free(c->scratch);
    c->scratch = NULL;
    c->at = c->lp = NULL;
    c->node = NULL;
}

bool quicklist_cursor_next_node(struct quicklist_cursor *c)
{
    const struct quicklist_node *n = !c->node ? NULL : c->backward ? c->node->prev : c->node->next;
    if (!n) {
        quicklist_cursor_close(c);
        return false;
    }
    enter(c, n, c->backward ? -1 : 0);
    return true;
}

struct slice quicklist_cursor_get(struct quicklist_cursor *c)
{
    assert(c->started && c->at);
    if (likely(c->lp != NULL)) {
        return listpack_get(c->at, c->text);
    }
    return slice_of((const char *)c->at, c->node->bytes);
}

bool quicklist_cursor_equals(const struct quicklist_cursor *c, struct slice bytes)
{
    assert(c->started && c->at);
    if (likely(c->lp != NULL)) {
        return listpack_equals(c->at, bytes);
    }
    return slice_equal(slice_of((const char *)c->at, c->node->bytes), bytes);
}

/* ---- Check ---- */

static void check_node(const struct quicklist *q, const struct quicklist_node *n, bool outer)
{
    assert(n->count > 0 && (!n->plain || n->count == 1));
    assert(!n->packed || (!outer && q->depth > 0 && n->packed < n->bytes));
    assert(n->plain || n->count == 1 || n->bytes <= q->limits.bytes || q->foreign);
    assert(n->plain || n->count <= q->limits.count || q->foreign);
    unsigned char *scratch = n->packed ? quicklist_node_decompressed(n) : NULL;
    if (!n->plain) {
        const unsigned char *lp = scratch ? scratch : n->data;
        assert(listpack_bytes(lp) == n->bytes && listpack_count(lp) == n->count);
        bool valid = listpack_validate(lp, n->bytes, NULL, NULL);
        assert(valid);
        (void)valid;
    }
    mem_free(scratch);
    (void)q;
    (void)outer;
}

void quicklist_check(const struct quicklist *q)
{
    uint64_t count = 0, nodes = 0;
    const struct quicklist_node *prev = NULL;
    for (const struct quicklist_node *n = q->head; n; prev = n, n = n->next) {
        assert(n->prev == prev);
        check_node(q, n, nodes < q->depth || q->nodes - nodes <= q->depth);
        count += n->count;
        nodes++;
    }
    assert(q->tail == prev && count == q->count && nodes == q->nodes);
}
