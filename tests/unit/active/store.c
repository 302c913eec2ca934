/* See store.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "store.h"

#include "engine/function_store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD "#!lua name="

static struct store *used;

static struct slice name_in(const char *code)
{
    const char *name = code + strlen(HEAD);
    return slice_of(name, strcspn(name, " "));
}

static size_t find(const struct store *s, struct slice name)
{
    size_t i = 0;
    while (i < s->count && !slice_equal(name_in(s->codes[i]), name)) {
        i++;
    }
    return i;
}

/* Functions are single letters. */
static bool shares_function(const char *a, const char *b)
{
    const char *functions = strchr(a + strlen(HEAD), ' '), *others = strchr(b + strlen(HEAD), ' ');
    for (; functions && *functions; functions++) {
        if (*functions != ' ' && others && strchr(others, *functions)) {
            return true;
        }
    }
    return false;
}

bool store_load(struct store *s, struct slice code)
{
    char text[STORE_CODE_BYTES];
    assert_true(code.len < sizeof(text));
    snprintf(text, sizeof(text), "%.*s", (int)code.len, code.ptr);
    size_t at = find(s, name_in(text));
    for (size_t i = 0; i < s->count; i++) {
        if (i != at && shares_function(s->codes[i], text)) {
            return false;
        }
    }
    assert_true(at < STORE_LIBRARIES_MAX);
    snprintf(s->codes[at], STORE_CODE_BYTES, "%s", text);
    s->count += at == s->count;
    s->loads++;
    return true;
}

bool store_delete(struct store *s, struct slice name)
{
    size_t at = find(s, name);
    if (at == s->count) {
        return false;
    }
    memmove(s->codes[at], s->codes[s->count - 1], STORE_CODE_BYTES);
    s->count--;
    return true;
}

void store_flush(struct store *s)
{
    s->count = 0;
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

const char *store_text(const struct store *s)
{
    static char text[STORE_LIBRARIES_MAX * STORE_CODE_BYTES + 1];
    const char *sorted[STORE_LIBRARIES_MAX];
    size_t len = 0;
    for (size_t i = 0; i < s->count; i++) {
        sorted[i] = s->codes[i];
    }
    qsort(sorted, s->count, sizeof(sorted[0]), compare);
    text[0] = '\0';
    for (size_t i = 0; i < s->count; i++) {
        len += (size_t)snprintf(text + len, sizeof(text) - len, i ? " %s" : "%s", sorted[i]);
    }
    return text;
}

/* ---- what the engine asks ---- */

static size_t used_count(void)
{
    return used->count;
}

static struct slice used_code(size_t index)
{
    return slice_cstr(used->codes[index]);
}

static struct slice used_name(size_t index)
{
    return name_in(used->codes[index]);
}

static bool name_of(struct slice code, struct buf *name)
{
    char text[STORE_CODE_BYTES];
    snprintf(text, sizeof(text), "%.*s", (int)code.len, code.ptr);
    bool good = strncmp(text, HEAD, strlen(HEAD)) == 0 && name_in(text).len > 0;
    if (good) {
        buf_append_slice(name, name_in(text));
    }
    return good;
}

static bool used_load(struct slice code, bool replace, struct buf *error)
{
    assert_true(replace);
    bool good = store_load(used, code);
    if (!good) {
        buf_append_cstr(error, "a function in common");
    }
    return good;
}

static void used_flush(void)
{
    store_flush(used);
}

static bool used_remove(struct slice name)
{
    return store_delete(used, name);
}

void store_use(struct store *s)
{
    static const struct function_store_ops ops = {.count = used_count,
                                                  .code = used_code,
                                                  .load = used_load,
                                                  .flush = used_flush,
                                                  .name = used_name,
                                                  .name_of = name_of,
                                                  .remove = used_remove};
    used = s;
    function_store_set_ops(s ? &ops : NULL);
}
