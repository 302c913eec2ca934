/* See list.h. */
#include "value/list.h"

#include "base/mem.h"

#include <openssl/evp.h>

/* More nodes than this at either end never pay. */
#define COMPRESS_DEPTH_MAX 65535

static struct {
    int64_t max_listpack_size;
    int64_t compress_depth;
} settings = {-2, 0};

static inline bool is_packed(const struct entry *e)
{
    assert(entry_type(e) == VALUE_LIST);
    return entry_encoding(e) == ENCODING_LISTPACK;
}

static inline struct quicklist *quicklist_of(const struct entry *e)
{
    assert(entry_encoding(e) == ENCODING_QUICKLIST);
    return entry_pointer(e);
}

struct entry *list_create(struct slice key, int64_t expiry_ms)
{
    return entry_create_pointer(key, VALUE_LIST, ENCODING_LISTPACK, listpack_create(0), expiry_ms);
}

uint64_t list_count(const struct entry *e)
{
    return is_packed(e) ? listpack_count(entry_pointer(e)) : quicklist_count(quicklist_of(e));
}

const struct quicklist *list_quicklist(const struct entry *e)
{
    return is_packed(e) ? NULL : quicklist_of(e);
}

void list_cursor_open(struct list_cursor *c, const struct entry *e, uint64_t index, bool backward)
{
    if (is_packed(e)) {
        quicklist_cursor_open_listpack(&c->inner, entry_pointer(e), index, backward);
    } else {
        quicklist_cursor_open(&c->inner, quicklist_of(e), index, backward);
    }
}

/* ---- The two encodings ---- */

static struct quicklist *new_quicklist(void)
{
    int64_t depth = settings.compress_depth;
    return quicklist_create(settings.max_listpack_size,
                            (uint32_t)(depth < COMPRESS_DEPTH_MAX ? depth : COMPRESS_DEPTH_MAX));
}

/* Before `count` elements of `bytes` bytes together are added: a listpack that they would lead
 * beyond the limits becomes a quicklist. (Redis counts the bytes of all new elements first, too,
 * and without what the listpack adds to them.) */
static void grow(struct entry *e, size_t bytes, size_t count)
{
    unsigned char *lp = entry_pointer(e);
    struct quicklist_limits limits = quicklist_limits_of(settings.max_listpack_size);
    if (likely(listpack_bytes(lp) + bytes <= limits.bytes &&
               (limits.count == UINT32_MAX || listpack_count(lp) + count <= limits.count))) {
        return;
    }
    struct quicklist *q = new_quicklist();
    if (listpack_count(lp) > 0) {
        quicklist_append_listpack(q, listpack_shrink(lp));
    } else {
        listpack_destroy(lp);
    }
    entry_set_pointer(e, q);
    entry_set_encoding(e, ENCODING_QUICKLIST);
}

void list_shrink(struct entry *e)
{
    if (is_packed(e)) {
        return;
    }
    struct quicklist *q = quicklist_of(e);
    size_t bytes = quicklist_single_bytes(q);
    struct quicklist_limits limits = quicklist_limits_of(settings.max_listpack_size);
    bool fits = limits.count == UINT32_MAX ? bytes <= limits.bytes / 2
                                           : quicklist_count(q) <= limits.count / 2;
    if (bytes == 0 || !fits) {
        return;
    }
    entry_set_pointer(e, listpack_shrink(quicklist_take_listpack(q)));
    entry_set_encoding(e, ENCODING_LISTPACK);
}

/* ---- Changes ---- */

void list_push(struct entry *e, enum list_end end, const struct slice *elements, size_t count)
{
    if (is_packed(e)) {
        size_t bytes = 0;
        for (size_t i = 0; i < count; i++) {
            bytes += elements[i].len;
        }
        grow(e, bytes, count);
    }
    if (!is_packed(e)) {
        struct quicklist *q = quicklist_of(e);
        for (size_t i = 0; i < count; i++) {
            quicklist_push(q, elements[i], end == LIST_TAIL);
        }
        return;
    }
    unsigned char *lp = entry_pointer(e);
    for (size_t i = 0; i < count; i++) {
        lp =
            end == LIST_TAIL ? listpack_append(lp, elements[i]) : listpack_prepend(lp, elements[i]);
    }
    entry_set_pointer(e, lp);
}

void list_pop(struct entry *e, enum list_end end)
{
    if (!is_packed(e)) {
        quicklist_pop(quicklist_of(e), end == LIST_TAIL);
        return;
    }
    unsigned char *lp = entry_pointer(e);
    unsigned char *at = end == LIST_TAIL ? listpack_last(lp) : listpack_first(lp);
    assert(at);
    entry_set_pointer(e, listpack_remove(lp, &at));
}

void list_insert(struct entry *e, uint64_t index, struct slice element)
{
    if (is_packed(e)) {
        grow(e, element.len, 1);
    }
    if (!is_packed(e)) {
        quicklist_insert(quicklist_of(e), index, element);
        return;
    }
    unsigned char *lp = entry_pointer(e);
    unsigned char *at = listpack_seek(lp, (int64_t)index);
    entry_set_pointer(e,
                      at ? listpack_insert(lp, &at, element, false) : listpack_append(lp, element));
}

void list_replace(struct entry *e, uint64_t index, struct slice element)
{
    if (is_packed(e)) {
        grow(e, element.len, 1);
    }
    if (!is_packed(e)) {
        quicklist_replace(quicklist_of(e), index, element);
        return;
    }
    unsigned char *lp = entry_pointer(e);
    unsigned char *at = listpack_seek(lp, (int64_t)index);
    assert(at);
    entry_set_pointer(e, listpack_replace(lp, &at, element));
}

void list_remove_range(struct entry *e, uint64_t start, uint64_t count)
{
    assert(start <= list_count(e) && count <= list_count(e) - start);
    if (count == 0) {
        return;
    }
    if (is_packed(e)) {
        entry_set_pointer(e,
                          listpack_remove_range(entry_pointer(e), (int64_t)start, (uint32_t)count));
    } else {
        quicklist_remove_range(quicklist_of(e), start, count);
    }
}

uint64_t list_remove_equal(struct entry *e, struct slice element, uint64_t max, enum list_end end)
{
    if (!is_packed(e)) {
        return quicklist_remove_equal(quicklist_of(e), element, max, end == LIST_TAIL);
    }
    uint64_t removed;
    unsigned char *lp =
        quicklist_remove_equal_listpack(entry_pointer(e), element, max, end == LIST_TAIL, &removed);
    entry_set_pointer(e, lp);
    return removed;
}

/* ---- The table of operations ---- */

static void destroy(struct entry *e)
{
    if (is_packed(e)) {
        listpack_destroy(entry_pointer(e));
    } else {
        quicklist_destroy(quicklist_of(e));
    }
}

static void *copy(const struct entry *e)
{
    if (is_packed(e)) {
        return listpack_copy(entry_pointer(e));
    }
    return quicklist_copy(quicklist_of(e));
}

static size_t memory(const struct entry *e, size_t samples)
{
    return is_packed(e) ? mem_usable_size(entry_pointer(e))
                        : quicklist_memory(quicklist_of(e), samples);
}

static size_t free_effort(const struct entry *e)
{
    return is_packed(e) ? 1 : quicklist_node_count(quicklist_of(e));
}

static const char *encoding(const struct entry *e)
{
    return is_packed(e) ? "listpack" : "quicklist";
}

static void digest(const struct entry *e, uint8_t sum[20])
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    int ok = context && EVP_DigestInit_ex(context, EVP_sha1(), NULL);
    struct list_cursor c;
    list_cursor_open(&c, e, 0, false);
    while (list_cursor_next(&c)) {
        /* Each with its length, so that the borders count. */
        struct slice element = list_cursor_get(&c);
        uint64_t len = element.len;
        ok = ok && EVP_DigestUpdate(context, &len, sizeof(len)) &&
             EVP_DigestUpdate(context, element.ptr, element.len);
    }
    list_cursor_close(&c);
    ok = ok && EVP_DigestFinal_ex(context, sum, NULL);
    assert(ok);
    (void)ok;
    EVP_MD_CTX_free(context);
}

static void describe(const struct entry *e, bool elements, struct buf *out)
{
    if (is_packed(e)) {
        listpack_describe(entry_pointer(e), out);
    } else {
        quicklist_describe(quicklist_of(e), elements, out);
    }
}

const struct value_ops list_ops = {
    .name = "list",
    .destroy = destroy,
    .copy = copy,
    .memory = memory,
    .free_effort = free_effort,
    .encoding = encoding,
    .digest = digest,
    .describe = describe,
};

const struct option list_options[] = {
    {.name = "list-max-listpack-size",
     .alias = "list-max-ziplist-size",
     .type = OPTION_INT,
     .target = &settings.max_listpack_size,
     .initial = "-2",
     .min = INT32_MIN,
     .max = INT32_MAX},
    {.name = "list-compress-depth",
     .type = OPTION_INT,
     .target = &settings.compress_depth,
     .initial = "0",
     .min = 0,
     .max = INT32_MAX},
    {.name = NULL},
};
