/* See figures.h. */
#include "metrics/figures.h"

#include "base/mem.h"
#include "engine/info.h"
#include "keyspace/lock.h"

/* How long we wait for whoever holds the keys before we do without them: longer than any hold but
 * a script's. */
#define PATIENCE_MS 1000

/* ---- asking ---- */

/* True when nobody holds the keys for long. Who begins to do so a moment later is waited for, as
 * INFO waits. */
static bool keys_are_free(void)
{
    if (!keyspace_try_shared_for(PATIENCE_MS)) {
        return false;
    }
    keyspace_unlock_shared();
    return true;
}

void figures_collect(struct figures *f)
{
    static const struct slice everything[] = {{"everything", 10}};
    /* Those whose writers take no keyspace lock. */
    static const struct slice without_keys[] = {
        {"server", 6},        {"clients", 7},     {"stats", 5},         {"cpu", 3},
        {"commandstats", 12}, {"errorstats", 10}, {"latencystats", 12}, {"threads", 7},
    };
    f->whole = keys_are_free();
    if (f->whole) {
        info_write(&f->text, everything, 1);
    } else {
        info_write(&f->text, without_keys, sizeof(without_keys) / sizeof(without_keys[0]));
    }
    figures_cut(f);
}

/* ---- cutting ---- */

static void add(struct figures *f, const struct figure *item)
{
    if (f->count == f->capacity) {
        f->capacity = f->capacity ? 2 * f->capacity : 256;
        f->items = mem_realloc(f->items, f->capacity * sizeof(*f->items));
    }
    f->items[f->count++] = *item;
}

/* The colon between name and value. An error's code may have colons of its own. */
static const char *find_colon(struct slice line)
{
    static const char error_prefix[] = "errorstat_";
    size_t prefix = sizeof(error_prefix) - 1;
    if (line.len > prefix && memcmp(line.ptr, error_prefix, prefix) == 0) {
        return memrchr(line.ptr, ':', line.len);
    }
    return memchr(line.ptr, ':', line.len);
}

void figures_cut(struct figures *f)
{
    struct slice rest = buf_slice(&f->text), section = SLICE("");
    while (rest.len > 0) {
        const char *end = memchr(rest.ptr, '\n', rest.len);
        size_t len = end ? (size_t)(end - rest.ptr) : rest.len;
        struct slice line = slice_of(rest.ptr, len);
        rest = slice_of(rest.ptr + len + (end != NULL), rest.len - len - (end != NULL));
        line.len -= line.len > 0 && line.ptr[line.len - 1] == '\r';
        const char *colon = line.len > 0 ? find_colon(line) : NULL;
        if (line.len > 2 && line.ptr[0] == '#') {
            section = slice_of(line.ptr + 2, line.len - 2);
        } else if (colon) {
            size_t name = (size_t)(colon - line.ptr);
            struct figure item = {.section = section,
                                  .name = slice_of(line.ptr, name),
                                  .value = slice_of(colon + 1, line.len - name - 1)};
            add(f, &item);
        }
    }
}

const struct figure *figures_find(const struct figures *f, const char *section, struct slice name,
                                  unsigned *hint)
{
    unsigned start = hint ? *hint : 0;
    for (unsigned i = 0; i < f->count; i++) {
        unsigned at = (start + i) % f->count;
        const struct figure *item = &f->items[at];
        if (slice_equal(item->name, name) && slice_equal_nocase(item->section, section)) {
            if (hint) {
                *hint = at;
            }
            return item;
        }
    }
    return NULL;
}

bool figures_next_part(struct slice *value, struct slice *name, struct slice *part)
{
    if (value->len == 0) {
        return false;
    }
    const char *comma = memchr(value->ptr, ',', value->len);
    size_t len = comma ? (size_t)(comma - value->ptr) : value->len;
    const char *equals = memchr(value->ptr, '=', len);
    size_t name_len = equals ? (size_t)(equals - value->ptr) : len;
    *name = slice_of(value->ptr, name_len);
    *part = slice_of(value->ptr + name_len + (equals != NULL), len - name_len - (equals != NULL));
    size_t used = len + (comma != NULL);
    *value = slice_of(value->ptr + used, value->len - used);
    return true;
}

bool figures_part(struct slice value, struct slice name, struct slice *part)
{
    struct slice key;
    while (figures_next_part(&value, &key, part)) {
        if (slice_equal(key, name)) {
            return true;
        }
    }
    return false;
}

void figures_deinit(struct figures *f)
{
    buf_deinit(&f->text);
    mem_free(f->items);
    *f = (struct figures){.count = 0};
}
