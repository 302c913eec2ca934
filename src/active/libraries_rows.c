/* What is written about libraries, as rows of files and data sets. See libraries.h. */
#include "active/libraries_priv.h"

#include "base/mem.h"
#include "engine/function_store.h"

#include <string.h>

/* Before its name. */
#define ROW_HEAD_BYTES (1 + ORIGIN_NODE_BYTES + 8 + 8 + 8 + 4 + 4)

/* ---- bytes ---- */

void library_put_row(const struct origins *o, const struct library_word *at, char kind,
                     struct slice name, struct slice source, struct buf *out)
{
    struct origin_id id = {.epoch = 0};
    if (at->dot.stamp != 0) {
        id = origins_at(o, dot_origin(at->dot))->id;
    }
    buf_append_char(out, kind);
    buf_append(out, (const char *)id.node, sizeof(id.node));
    le_put(out, id.epoch, 8);
    le_put(out, dot_sequence(at->dot), 8);
    le_put(out, at->dot.stamp, 8);
    le_put(out, at->number, 4);
    le_put(out, name.len, 4);
    buf_append_slice(out, name);
    le_put(out, source.len, 4);
    buf_append_slice(out, source);
}

void library_put_said(const struct libraries *l, const struct library_said *s, struct slice source,
                      struct buf *out)
{
    char kind = s->kind == LIBRARY_GONE ? 'G' : 'L';
    if (s->kind == LIBRARY_HIDDEN) {
        source = slice_of(s->source, s->source_len);
    }
    library_put_row(l->origins, &s->at, source.len > 0 ? 'S' : kind, slice_of(s->name, s->name_len),
                    source, out);
}

void libraries_put_word(const struct origins *o, struct library_word at, int argc,
                        const struct slice *argv, struct buf *out)
{
    struct buf name = {0};
    struct slice source;
    library_word_read(argc, argv, &name, &source);
    library_put_row(o, &at, source.len > 0 ? 'L' : 'G', buf_slice(&name), SLICE(""), out);
    buf_deinit(&name);
}

/* A dot of nobody is all 0, and only of something that is there. */
static bool is_plain(const struct library_row *row)
{
    if (row->kind != 'G' && row->kind != 'L' && row->kind != 'S') {
        return false;
    }
    if ((row->kind == 'S') != (row->source.len > 0) || (row->name.len == 0 && row->kind != 'G')) {
        return false;
    }
    if (row->stamp == 0) {
        return row->kind != 'G' && row->sequence == 0 && row->number == 0;
    }
    return row->sequence > 0 && row->sequence <= ORIGIN_SEQUENCE_MAX;
}

bool library_row_next(struct slice *rows, struct library_row *row)
{
    const char *at = rows->ptr, *end = rows->ptr + rows->len;
    if (rows->len < ROW_HEAD_BYTES) {
        return false;
    }
    *row = (struct library_row){.kind = at[0]};
    memcpy(row->id.node, at + 1, ORIGIN_NODE_BYTES);
    at += 1 + ORIGIN_NODE_BYTES;
    row->id.epoch = le_get(at, 8);
    row->sequence = le_get(at + 8, 8);
    row->stamp = le_get(at + 16, 8);
    row->number = (uint32_t)le_get(at + 24, 4);
    uint64_t len = le_get(at + 28, 4);
    at += 32;
    if (len > (uint64_t)(end - at) || (uint64_t)(end - at) - len < 4) {
        return false;
    }
    row->name = slice_of(at, len);
    at += len;
    len = le_get(at, 4);
    at += 4;
    if (len > (uint64_t)(end - at)) {
        return false;
    }
    row->source = slice_of(at, len);
    at += len;
    *rows = slice_of(at, (size_t)(end - at));
    return is_plain(row);
}

/* ---- telling ---- */

void libraries_each(const struct libraries *l, bool with_sources, libraries_changed_fn visit,
                    void *context)
{
    struct buf row = {0};
    if (l->flushed.dot.stamp != 0) {
        library_put_row(l->origins, &l->flushed, 'G', SLICE(""), SLICE(""), &row);
        visit(buf_slice(&row), context);
    }
    for (size_t i = 0; i < l->count; i++) {
        const struct library_said *s = l->all[i];
        size_t index = SIZE_MAX;
        if (with_sources && s->kind == LIBRARY_LOADED) {
            index = function_store_find(slice_of(s->name, s->name_len));
        }
        buf_clear(&row);
        library_put_said(l, s, index == SIZE_MAX ? SLICE("") : function_store_code(index), &row);
        visit(buf_slice(&row), context);
    }
    buf_deinit(&row);
}

/* ---- taking ---- */

/* False: there is no room for its origin. */
static bool word_of(struct libraries *l, const struct library_row *row, struct library_word *at)
{
    uint16_t index = row->stamp ? origins_enter(l->origins, &row->id) : 0;
    *at = (struct library_word){dot_of(row->stamp, index, row->sequence), row->number};
    return index != 0 || row->stamp == 0;
}

bool libraries_merge(struct libraries *l, struct slice bytes)
{
    struct library_row row;
    struct library_word at;
    if (!library_row_next(&bytes, &row) || row.kind == 'L' || !word_of(l, &row, &at)) {
        return false;
    }
    libraries_note(l, &at, row.name, row.source, false);
    return true;
}

/* A row of our own files, which have the libraries that are loaded. */
static void restore(struct libraries *l, const struct library_row *row)
{
    struct library_word at;
    struct library_said *s = libraries_find(l, row->name);
    if (!word_of(l, row, &at)) {
        return;
    }
    if (row->name.len == 0) {
        l->flushed = at;
        for (size_t i = 0; i < l->count; i++) {
            if (library_word_compare(l->origins, &l->all[i]->at, &at) < 0) {
                l->all[i]->kind = LIBRARY_GONE;
                l->all[i]->at = at;
                library_set_source(l->all[i], SLICE(""));
            }
        }
        return;
    }
    if (s && library_word_compare(l->origins, &at, &s->at) < 0) {
        return;
    }
    s = s ? s : libraries_add(l, row->name);
    s->at = at;
    s->kind = row->kind == 'G' ? LIBRARY_GONE : row->kind == 'L' ? LIBRARY_LOADED : LIBRARY_HIDDEN;
    library_set_source(s, row->source);
}

void libraries_restore(struct libraries *l, struct slice rows)
{
    struct library_row row;
    keyspace_assert_exclusive();
    while (library_row_next(&rows, &row)) {
        restore(l, &row);
    }
    for (size_t i = 0; i < l->count; i++) {
        struct library_said *s = l->all[i];
        bool is_there = function_store_find(slice_of(s->name, s->name_len)) != SIZE_MAX;
        /* A file that somebody has changed: what is there counts. */
        if (is_there != (s->kind == LIBRARY_LOADED)) {
            s->kind = is_there ? LIBRARY_LOADED : s->source ? LIBRARY_HIDDEN : LIBRARY_GONE;
        }
        if (is_there) {
            library_set_source(s, SLICE(""));
        }
    }
    for (size_t i = 0; i < function_store_count(); i++) {
        if (!libraries_find(l, function_store_name(i))) {
            libraries_add(l, function_store_name(i))->kind = LIBRARY_LOADED;
        }
    }
}
