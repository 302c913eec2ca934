/* See libraries.h: what is written, and making it so. libraries_rows.c has the rows. */
#include "active/libraries.h"

#include "active/libraries_priv.h"
#include "base/log.h"
#include "base/mem.h"
#include "engine/function_store.h"
#include "engine/propagate.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct libraries *libraries_create(struct origins *o)
{
    struct libraries *l = mem_calloc(1, sizeof(*l));
    l->origins = o;
    return l;
}

static void free_library(struct library_said *s)
{
    mem_free(s->name);
    mem_free(s->source);
    mem_free(s);
}

void libraries_destroy(struct libraries **libraries)
{
    struct libraries *l = *libraries;
    *libraries = NULL;
    if (l) {
        for (size_t i = 0; i < l->count; i++) {
            free_library(l->all[i]);
        }
        mem_free(l->all);
        mem_free(l);
    }
}

void libraries_watch(struct libraries *l, libraries_changed_fn changed, void *context)
{
    l->changed = changed;
    l->context = context;
}

bool libraries_are_unsettled(const struct libraries *l)
{
    return l->unsettled;
}

/* ---- what is written ---- */

int library_word_compare(const struct origins *o, const struct library_word *a,
                         const struct library_word *b)
{
    int order = origins_compare(o, a->dot, b->dot);
    return order ? order : (a->number > b->number) - (a->number < b->number);
}

struct library_said *libraries_find(const struct libraries *l, struct slice name)
{
    for (size_t i = 0; i < l->count; i++) {
        if (slice_equal(slice_of(l->all[i]->name, l->all[i]->name_len), name)) {
            return l->all[i];
        }
    }
    return NULL;
}

struct library_said *libraries_add(struct libraries *l, struct slice name)
{
    struct library_said *s = mem_calloc(1, sizeof(*s));
    s->name = mem_dup(name.ptr, name.len);
    s->name_len = name.len;
    if (l->count == l->capacity) {
        l->capacity = l->capacity ? 2 * l->capacity : 8;
        l->all = mem_realloc(l->all, l->capacity * sizeof(struct library_said *));
    }
    l->all[l->count++] = s;
    return s;
}

static void forget(struct libraries *l, size_t i)
{
    free_library(l->all[i]);
    l->all[i] = l->all[--l->count];
}

void library_set_source(struct library_said *s, struct slice source)
{
    mem_free(s->source);
    s->source = source.len > 0 ? mem_dup(source.ptr, source.len) : NULL;
    s->source_len = source.len;
}

static struct slice source_of(const struct library_said *s)
{
    return slice_of(s->source, s->source_len);
}

static void say_gone(struct library_said *s, const struct library_word *at)
{
    s->at = *at;
    s->kind = LIBRARY_GONE;
    library_set_source(s, SLICE(""));
}

static void note_flush(struct libraries *l, const struct library_word *at, bool is_run)
{
    if (library_word_compare(l->origins, at, &l->flushed) <= 0) {
        return;
    }
    l->flushed = *at;
    l->flush_changed = !is_run;
    for (size_t i = 0; i < l->count; i++) {
        struct library_said *s = l->all[i];
        if (library_word_compare(l->origins, &s->at, at) < 0) {
            bool was_there = s->kind != LIBRARY_GONE;
            say_gone(s, at);
            s->unsettled = s->unsettled || (was_there && !is_run);
        }
    }
    l->unsettled = l->unsettled || !is_run;
}

/* Of two that no node has written the same one has to stand everywhere. */
static bool is_later(const struct libraries *l, const struct library_said *s,
                     const struct library_word *at, struct slice source)
    REQUIRES_SHARED(keyspace_lock);
static bool is_later(const struct libraries *l, const struct library_said *s,
                     const struct library_word *at, struct slice source)
{
    int order = library_word_compare(l->origins, at, &s->at);
    if (order != 0 || at->dot.stamp != 0 || s->kind == LIBRARY_GONE) {
        return order > 0;
    }
    struct slice ours = source_of(s);
    size_t index = function_store_find(slice_of(s->name, s->name_len));
    if (s->kind == LIBRARY_LOADED && !s->unsettled && index != SIZE_MAX) {
        ours = function_store_code(index);
    }
    int bytes = memcmp(source.ptr, ours.ptr, source.len < ours.len ? source.len : ours.len);
    return bytes > 0 || (bytes == 0 && source.len > ours.len);
}

void libraries_note(struct libraries *l, const struct library_word *at, struct slice name,
                    struct slice source, bool is_run)
{
    if (name.len == 0) {
        note_flush(l, at, is_run);
        return;
    }
    struct library_said *s = libraries_find(l, name);
    if (library_word_compare(l->origins, at, &l->flushed) < 0 ||
        (s && !is_later(l, s, at, source))) {
        return;
    }
    s = s ? s : libraries_add(l, name);
    say_gone(s, at);
    if (source.len > 0) {
        s->kind = LIBRARY_LOADED;
    }
    if (!is_run) {
        library_set_source(s, source);
    }
    s->unsettled = !is_run;
    l->unsettled = l->unsettled || !is_run;
}

/* What is gone by the last word about all needs no word of its own; nor what went longest ago. */
static void forget_old(struct libraries *l)
{
    size_t gone = 0, oldest = 0;
    for (size_t i = l->count; i-- > 0;) {
        const struct library_said *s = l->all[i];
        if (s->kind != LIBRARY_GONE) {
            continue;
        }
        if (library_word_compare(l->origins, &s->at, &l->flushed) <= 0) {
            forget(l, i);
        } else {
            gone++;
        }
    }
    while (gone > LIBRARIES_GONE_MAX) {
        const struct library_word *least = NULL;
        for (size_t i = 0; i < l->count; i++) {
            const struct library_said *s = l->all[i];
            if (s->kind == LIBRARY_GONE &&
                (!least || library_word_compare(l->origins, &s->at, least) < 0)) {
                least = &s->at;
                oldest = i;
            }
        }
        forget(l, oldest);
        gone--;
    }
}

/* ---- words ---- */

bool libraries_is_word(int argc, const struct slice *argv)
{
    struct buf name = {0};
    bool good = argc == 2 && slice_equal_nocase(argv[1], "flush");
    if (argc == 3) {
        good = slice_equal_nocase(argv[1], "delete") && argv[2].len > 0;
    } else if (argc == 4) {
        good = slice_equal_nocase(argv[1], "load") && slice_equal_nocase(argv[2], "replace") &&
               function_store_name_of(argv[3], &name);
    }
    buf_deinit(&name);
    return good;
}

void library_word_read(int argc, const struct slice *argv, struct buf *name, struct slice *source)
{
    *source = SLICE("");
    if (argc == 3) {
        buf_append_slice(name, argv[2]);
    } else if (argc == 4 && function_store_name_of(argv[3], name)) {
        *source = argv[3];
    }
}

static void hear(struct libraries *l, const struct library_word *at, int argc,
                 const struct slice *argv, bool is_run) REQUIRES(keyspace_lock);
static void hear(struct libraries *l, const struct library_word *at, int argc,
                 const struct slice *argv, bool is_run)
{
    struct buf name = {0};
    struct slice source;
    library_word_read(argc, argv, &name, &source);
    libraries_note(l, at, buf_slice(&name), source, is_run);
    buf_deinit(&name);
}

void libraries_hear(struct libraries *l, struct library_word at, int argc, const struct slice *argv)
{
    hear(l, &at, argc, argv, false);
}

void libraries_heard_own(struct libraries *l, struct library_word at, int argc,
                         const struct slice *argv)
{
    hear(l, &at, argc, argv, true);
    for (size_t i = 0; i < l->count; i++) {
        /* One that was hidden may be back with this. */
        l->unsettled = l->unsettled || l->all[i]->kind == LIBRARY_HIDDEN;
    }
    if (!l->unsettled) {
        forget_old(l);
    }
}

/* ---- making it so ---- */

static void tell(const struct db *db, int argc, const struct slice *argv) REQUIRES(keyspace_lock)
{
    if (propagate_on) {
        propagate_command(db, argc, argv);
    }
}

static void unload(const struct library_said *s, const struct db *db) REQUIRES(keyspace_lock)
{
    struct slice name = slice_of(s->name, s->name_len);
    if (function_store_remove(name)) {
        tell(db, 3, (const struct slice[]){SLICE("FUNCTION"), SLICE("DELETE"), name});
    }
}

static bool load(struct library_said *s, const struct db *db, struct buf *error)
    REQUIRES(keyspace_lock);
static bool load(struct library_said *s, const struct db *db, struct buf *error)
{
    if (!function_store_load(source_of(s), true, error)) {
        return false;
    }
    tell(db, 4,
         (const struct slice[]){SLICE("FUNCTION"), SLICE("LOAD"), SLICE("REPLACE"), source_of(s)});
    library_set_source(s, SLICE(""));
    s->kind = LIBRARY_LOADED;
    return true;
}

/* Each for itself; false when one cannot be loaded beside the others, or could be now. */
static bool settle_each(struct libraries *l, const struct db *db) REQUIRES(keyspace_lock)
{
    bool fine = true;
    struct buf error = {0};
    for (size_t i = 0; i < l->count && fine; i++) {
        fine = l->all[i]->kind != LIBRARY_HIDDEN;
    }
    for (size_t i = 0; i < l->count && fine; i++) {
        if (l->all[i]->unsettled && l->all[i]->kind == LIBRARY_GONE) {
            unload(l->all[i], db);
        }
    }
    for (size_t i = 0; i < l->count && fine; i++) {
        struct library_said *s = l->all[i];
        fine = !s->unsettled || s->kind == LIBRARY_GONE || load(s, db, &error);
    }
    buf_deinit(&error);
    return fine;
}

struct ranked {
    const struct origins *origins;
    struct library_said *said;
};

static int by_last_word(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    int order = library_word_compare(x->origins, &y->said->at, &x->said->at);
    if (order != 0) {
        return order;
    }
    size_t len = x->said->name_len < y->said->name_len ? x->said->name_len : y->said->name_len;
    order = memcmp(x->said->name, y->said->name, len);
    return order
               ? order
               : (x->said->name_len > y->said->name_len) - (x->said->name_len < y->said->name_len);
}

/* All anew, from the last word down. */
static void settle_all(struct libraries *l, const struct db *db) REQUIRES(keyspace_lock)
{
    struct ranked *order = mem_alloc((l->count + 1) * sizeof(*order));
    size_t count = 0;
    for (size_t i = 0; i < l->count; i++) {
        struct library_said *s = l->all[i];
        size_t index = function_store_find(slice_of(s->name, s->name_len));
        if (s->kind != LIBRARY_GONE && !s->source && index != SIZE_MAX) {
            library_set_source(s, function_store_code(index));
        }
        if (s->kind != LIBRARY_GONE) {
            order[count++] = (struct ranked){l->origins, s};
        }
    }
    qsort(order, count, sizeof(*order), by_last_word);
    function_store_flush();
    tell(db, 2, (const struct slice[]){SLICE("FUNCTION"), SLICE("FLUSH")});
    for (size_t i = 0; i < count; i++) {
        struct buf error = {0};
        struct library_said *s = order[i].said;
        bool was_hidden = s->kind == LIBRARY_HIDDEN;
        s->unsettled = true;
        if (!load(s, db, &error)) {
            s->kind = LIBRARY_HIDDEN;
        }
        if (s->kind == LIBRARY_HIDDEN && !was_hidden) {
            log_warning("The library %.*s is hidden, for it does not go with a later one: %s",
                        (int)s->name_len, s->name, buf_cstr(&error));
        }
        buf_deinit(&error);
    }
    mem_free(order);
}

static void tell_changes(struct libraries *l)
{
    struct buf row = {0};
    if (l->flush_changed && l->changed) {
        library_put_row(l->origins, &l->flushed, 'G', SLICE(""), SLICE(""), &row);
        l->changed(buf_slice(&row), l->context);
    }
    for (size_t i = 0; i < l->count; i++) {
        if (l->all[i]->unsettled && l->changed) {
            buf_clear(&row);
            library_put_said(l, l->all[i], SLICE(""), &row);
            l->changed(buf_slice(&row), l->context);
        }
        l->all[i]->unsettled = false;
    }
    l->flush_changed = l->unsettled = false;
    buf_deinit(&row);
}

void libraries_settle(struct libraries *l, const struct db *db)
{
    keyspace_assert_exclusive();
    if (l->unsettled) {
        if (!settle_each(l, db)) {
            settle_all(l, db);
        }
        tell_changes(l);
        forget_old(l);
    }
}
