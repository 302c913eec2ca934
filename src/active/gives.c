/* See gives.h. */
#include "active/gives.h"

#include "base/mem.h"
#include "active/delivery_back.h"

#include <assert.h>
#include <string.h>

static size_t bytes_of(const struct give *give)
{
    return sizeof(*give) + give->back.len;
}

void gives_deinit(struct gives *g)
{
    while (g->count > 0) {
        gives_drop(g);
    }
    mem_free(g->rows);
    *g = (struct gives){.rows = NULL};
}

/* Room for one more: what is gone at the front is room first. */
static void make_room(struct gives *g)
{
    if (g->first + g->count < g->capacity) {
        return;
    }
    if (g->first > g->count) {
        memmove(g->rows, g->rows + g->first, g->count * sizeof(*g->rows));
        g->first = 0;
    } else {
        g->capacity = g->capacity ? 2 * g->capacity : 16;
        g->rows = mem_realloc(g->rows, g->capacity * sizeof(*g->rows));
    }
}

void gives_add(struct gives *g, const struct give *give)
{
    char *back = mem_alloc(give->back.len);
    make_room(g);
    struct give *added = &g->rows[g->first + g->count++];
    *added = *give;
    memcpy(back, give->back.ptr, give->back.len);
    added->back = slice_of(back, give->back.len);
    g->bytes += bytes_of(added);
    while (g->bytes > GIVES_BYTES && g->count > 1) {
        gives_drop(g);
    }
}

const struct give *gives_at(const struct gives *g, size_t i)
{
    assert(i < g->count);
    return &g->rows[g->first + i];
}

/* It has nothing to put back any more; what it had is the caller's. */
static struct slice empty(struct gives *g, struct give *give)
{
    struct slice back = give->back;
    g->bytes -= back.len;
    give->words = 0;
    give->back = slice_of(NULL, 0);
    return back;
}

void gives_clear(struct gives *g, size_t i)
{
    assert(i < g->count);
    mem_free((char *)empty(g, &g->rows[g->first + i]).ptr);
}

/* Its place is the caller's to close. */
static void forget(struct gives *g, struct give *give)
{
    g->bytes -= bytes_of(give);
    mem_free((char *)give->back.ptr);
}

void gives_drop(struct gives *g)
{
    assert(g->count > 0);
    forget(g, &g->rows[g->first]);
    g->first++;
    g->count--;
}

bool gives_take_missed(struct gives *g, const uint8_t node[ORIGIN_NODE_BYTES], uint64_t epoch,
                       uint64_t from, uint64_t upto, size_t *left, struct give *taken)
{
    while (*left > 0) {
        struct give *give = &g->rows[g->first + --*left];
        if (give->words > 0 && give->epoch == epoch && give->number > from &&
            give->number <= upto && memcmp(give->node, node, ORIGIN_NODE_BYTES) == 0) {
            *taken = *give;
            taken->back = empty(g, give);
            return true;
        }
    }
    return false;
}

/* ---- in files ---- */

#define ROW_HEAD_BYTES (ORIGIN_NODE_BYTES + 3 * 8 + 3 * 4)

void gives_put_row(const struct give *give, struct buf *out)
{
    buf_append(out, (const char *)give->node, sizeof(give->node));
    le_put(out, give->epoch, 8);
    le_put(out, give->number, 8);
    le_put(out, give->stamp, 8);
    le_put(out, (uint64_t)give->db, 4);
    le_put(out, (uint64_t)give->words, 4);
    le_put(out, give->back.len, 4);
    buf_append_slice(out, give->back);
}

bool gives_next_row(struct slice *rows, struct give *give)
{
    if (rows->len < ROW_HEAD_BYTES) {
        return false;
    }
    const char *at = rows->ptr + ORIGIN_NODE_BYTES;
    *give = (struct give){
        .epoch = le_get(at, 8), .number = le_get(at + 8, 8), .stamp = le_get(at + 16, 8)};
    memcpy(give->node, rows->ptr, sizeof(give->node));
    uint64_t db = le_get(at + 24, 4), words = le_get(at + 28, 4), len = le_get(at + 32, 4);
    if (db > INT32_MAX || words > INT32_MAX || len > rows->len - ROW_HEAD_BYTES) {
        return false;
    }
    give->db = (int)db;
    give->words = (int)words;
    give->back = slice_of(rows->ptr + ROW_HEAD_BYTES, len);
    *rows = slice_of(give->back.ptr + len, rows->len - ROW_HEAD_BYTES - len);
    return give->number > 0 && words > 0 && delivery_back_count(give->back) == words;
}

void gives_put_heard(const uint8_t node[ORIGIN_NODE_BYTES], uint64_t stamp, struct buf *out)
{
    buf_append(out, (const char *)node, ORIGIN_NODE_BYTES);
    le_put(out, stamp, 8);
}

bool gives_hear_row(struct gives *g, struct slice row)
{
    if (row.len != ORIGIN_NODE_BYTES + 8) {
        return false;
    }
    uint64_t stamp = le_get(row.ptr + ORIGIN_NODE_BYTES, 8);
    size_t left = 0;
    for (size_t i = 0; i < g->count; i++) {
        struct give *give = &g->rows[g->first + i];
        bool heard = give->stamp <= stamp && memcmp(give->node, row.ptr, ORIGIN_NODE_BYTES) == 0;
        if (heard || give->words == 0) {
            forget(g, give);
        } else {
            g->rows[g->first + left++] = *give;
        }
    }
    g->count = left;
    return true;
}
