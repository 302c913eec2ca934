/* See hash.h. */
#include "value/hash.h"

#include "base/hash.h"
#include "base/mem.h"
#include "ds/table.h"
#include "value/hash_element.h"
#include "value/hash_priv.h"
#include "value/member_ttl.h"

#include <openssl/sha.h>

/* The table's cursors have 48 bits; a greater one is behind its end. */
#define CURSOR_END ((uint64_t)1 << 48)

static struct {
    int64_t max_fields, max_text_bytes;
} settings = {512, 64};

static uint64_t element_hash(const void *entry)
{
    return hash_slice(hash_element_field(entry));
}

static inline bool element_match(const void *entry, const void *key)
{
    const struct slice *field = key;
    return slice_equal(hash_element_field(entry), *field);
}

static inline struct hash_element *table_get(const struct table *t, struct slice field)
{
    uintptr_t *slot = table_find(t, hash_slice(field), element_match, &field);
    return slot ? table_entry(*slot) : NULL;
}

uint64_t hash_len(const struct entry *e)
{
    assert(entry_type(e) == VALUE_HASH);
    return hash_is_packed(e) ? pairs_count(hash_packed(e)) : hash_table(e)->count;
}

/* ---- reading ---- */

static inline void view_element(const struct hash_element *el, struct hash_text *value)
{
    value->bytes = hash_element_value(el);
    value->blob = hash_element_blob(el);
}

bool hash_get(const struct entry *e, struct slice field, struct hash_text *value)
{
    if (hash_is_packed(e)) {
        const unsigned char *at = pairs_find(hash_packed(e), field);
        if (!at) {
            return false;
        }
        value->bytes = pairs_value(at, value->scratch);
        value->blob = NULL;
        return true;
    }
    const struct hash_element *el = table_get(hash_table(e), field);
    if (!el) {
        return false;
    }
    view_element(el, value);
    return true;
}

bool hash_has(const struct entry *e, struct slice field)
{
    return hash_is_packed(e) ? pairs_find(hash_packed(e), field) != NULL
                             : table_get(hash_table(e), field) != NULL;
}

/* The field at `at` with its value; returns where the next field is. */
static inline const unsigned char *view_packed(const unsigned char *p, const unsigned char *at,
                                               struct hash_item *item)
{
    item->at = at;
    item->field = pairs_field(at, item->field_scratch);
    item->value.bytes = pairs_value(at, item->value.scratch);
    item->value.blob = NULL;
    return pairs_next(p, at);
}

void hash_item_at(const struct entry *e, const void *place, struct hash_item *item)
{
    if (hash_is_packed(e)) {
        view_packed(hash_packed(e), place, item);
        return;
    }
    item->at = place;
    item->field = hash_element_field(place);
    view_element(place, &item->value);
}

static void each_packed(const unsigned char *p, hash_visit_fn visit, void *context)
{
    struct hash_item item;
    const unsigned char *at = pairs_first(p);
    while (at) {
        at = view_packed(p, at, &item);
        visit(&item, context);
    }
}

struct each_context {
    hash_visit_fn visit;
    void *context;
    uint64_t visited;
};

static void each_slot(uintptr_t *slot, void *context)
{
    struct each_context *each = context;
    struct hash_item item;
    item.at = table_entry(*slot);
    item.field = hash_element_field(item.at);
    view_element(item.at, &item.value);
    each->visit(&item, each->context);
    each->visited++;
}

void hash_each(const struct entry *e, hash_visit_fn visit, void *context)
{
    hash_scan(e, 0, UINT64_MAX, visit, context);
}

uint64_t hash_scan(const struct entry *e, uint64_t cursor, uint64_t count, hash_visit_fn visit,
                   void *context)
{
    if (hash_is_packed(e)) {
        each_packed(hash_packed(e), visit, context);
        return 0;
    }
    if (cursor >= CURSOR_END) {
        return 0;
    }
    struct each_context each = {visit, context, 0};
    do {
        cursor = table_scan(hash_table(e), cursor, each_slot, &each);
    } while (cursor != 0 && each.visited < count);
    return cursor;
}

/* ---- writing ---- */

static inline int64_t min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline bool text_may_be_packed(struct slice text)
{
    return text.len <= (uint64_t)settings.max_text_bytes && text.len <= HASH_PACKED_MAX_BYTES;
}

static inline uint64_t packed_fields_max(void)
{
    return (uint64_t)min_i64(settings.max_fields, HASH_PACKED_MAX_FIELDS);
}

/* True when texts (fields and values in turn) that are all set in a hash may leave it packed. */
static bool texts_may_be_packed(const struct slice *texts, size_t count)
{
    if (count / 2 > packed_fields_max()) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (!text_may_be_packed(texts[i])) {
            return false;
        }
    }
    return true;
}

static struct table *create_table(void)
{
    struct table *t = mem_alloc(sizeof(*t));
    table_init(t, element_hash);
    return t;
}

struct entry *hash_create(struct slice key, const struct slice *texts, size_t count)
{
    if (!texts_may_be_packed(texts, count)) {
        return entry_create_pointer(key, VALUE_HASH, ENCODING_TABLE, create_table(),
                                    ENTRY_NO_EXPIRY);
    }
    size_t bytes = PAIRS_HEADER_BYTES;
    for (size_t i = 0; i + 1 < count; i += 2) {
        bytes += pairs_pair_bytes(texts[i], texts[i + 1]);
    }
    bytes = bytes < HASH_PACKED_MAX_BYTES ? bytes : HASH_PACKED_MAX_BYTES;
    struct entry *e =
        entry_embeds(key, ENTRY_NO_EXPIRY, bytes)
            ? entry_create_payload(key, VALUE_HASH, ENCODING_LISTPACK, bytes, ENTRY_NO_EXPIRY)
            : entry_create_pointer(key, VALUE_HASH, ENCODING_LISTPACK, mem_alloc(bytes),
                                   ENTRY_NO_EXPIRY);
    pairs_init(hash_packed(e));
    return e;
}

/* Makes a table of packed pairs. */
static void convert(struct entry **e)
{
    unsigned char *p = hash_packed(*e);
    void *own_block = (*e)->flags & ENTRY_EXTERNAL ? p : NULL;
    struct table *t = create_table();
    struct hash_item item;
    for (const unsigned char *at = pairs_first(p); at;) {
        at = view_packed(p, at, &item);
        struct hash_element *el = hash_element_create(item.field, item.value.bytes, NULL);
        table_insert(t, hash_slice(item.field), (uintptr_t)el);
    }
    *e = entry_with_pointer(*e, ENCODING_TABLE, t);
    mem_free(own_block);
}

void hash_prepare(struct entry **e, const struct slice *texts, size_t count)
{
    if (hash_is_packed(*e) && !texts_may_be_packed(texts, count)) {
        convert(e);
    }
}

/* Moves the pairs to where `bytes` of them cost least. */
static void place(struct entry **e, size_t bytes)
{
    unsigned char *p = hash_packed(*e);
    bool external = (*e)->flags & ENTRY_EXTERNAL;
    if (!member_ttl_any(*e) && entry_embeds(entry_key(*e), entry_expiry_ms(*e), bytes)) {
        *e = entry_with_room(*e, bytes);
        if (external) {
            memcpy(entry_payload(*e), p, pairs_bytes(p));
            mem_free(p);
        }
    } else if (external) {
        entry_set_pointer(*e, mem_realloc(p, bytes));
    } else {
        unsigned char *block = memcpy(mem_alloc(bytes), p, pairs_bytes(p));
        *e = entry_with_pointer(*e, ENCODING_LISTPACK, block);
    }
}

static inline size_t packed_room(const struct entry *e)
{
    return e->flags & ENTRY_EXTERNAL ? mem_usable_size(entry_pointer(e)) : entry_payload_room(e);
}

static bool set_in_table(struct table *t, struct slice field, struct slice value, struct blob *blob)
{
    uint64_t hash = hash_slice(field);
    uintptr_t *slot = table_find(t, hash, element_match, &field);
    if (slot) {
        *slot = (uintptr_t)hash_element_store(table_entry(*slot), value, blob);
        return false;
    }
    table_insert(t, hash, (uintptr_t)hash_element_create(field, value, blob));
    return true;
}

static bool set_packed(struct entry **e, struct slice field, struct slice value)
{
    struct pairs_change change;
    pairs_plan_set(hash_packed(*e), field, value, &change);
    if (unlikely(change.bytes_after > HASH_PACKED_MAX_BYTES)) {
        convert(e);
        return set_in_table(hash_table(*e), field, value, NULL);
    }
    if (change.bytes_after > packed_room(*e)) {
        place(e, change.bytes_after);
    }
    pairs_apply(hash_packed(*e), &change);
    if (unlikely(hash_len(*e) > packed_fields_max()) && change.is_new) {
        convert(e);
    }
    return change.is_new;
}

static inline bool store(struct entry **e, struct slice field, struct slice value,
                         struct blob *blob)
{
    assert(entry_type(*e) == VALUE_HASH);
    if (hash_is_packed(*e)) {
        if (likely(text_may_be_packed(field) && text_may_be_packed(value))) {
            return set_packed(e, field, value);
        }
        convert(e);
    }
    return set_in_table(hash_table(*e), field, value, blob);
}

static bool delete_packed(struct entry *e, struct slice field)
{
    unsigned char *p = hash_packed(e);
    unsigned char *at = pairs_find(p, field);
    if (at) {
        pairs_remove(p, at);
    }
    return at != NULL;
}

void hash_fit(struct entry **e)
{
    if (hash_is_packed(*e)) {
        size_t bytes = pairs_bytes(hash_packed(*e));
        if (bytes < packed_room(*e) / 2) {
            place(e, bytes);
        }
    }
}

bool hash_set(struct entry **e, struct slice field, struct slice value, struct blob *blob)
{
    bool fresh = store(e, field, value, blob);
    if (!fresh) {
        member_ttl_forget(*e, field);
    }
    return fresh;
}

bool hash_change(struct entry **e, struct slice field, struct slice value)
{
    return store(e, field, value, NULL);
}

bool hash_delete(struct entry *e, struct slice field)
{
    member_ttl_forget(e, field);
    if (hash_is_packed(e)) {
        return delete_packed(e, field);
    }
    struct table *t = hash_table(e);
    uint64_t hash = hash_slice(field);
    uintptr_t *slot = table_find(t, hash, element_match, &field);
    if (!slot) {
        return false;
    }
    struct hash_element *el = table_entry(table_remove(t, hash, slot));
    hash_element_destroy(&el);
    return true;
}

/* ---- the table of operations ---- */

static void release_element(void *entry, void *context)
{
    (void)context;
    struct hash_element *el = entry;
    hash_element_destroy(&el);
}

static void destroy(struct entry *e)
{
    if (hash_is_packed(e)) {
        mem_free(entry_pointer(e));
        return;
    }
    struct table *t = hash_table(e);
    table_deinit(t, release_element, NULL);
    mem_free(t);
}

static void copy_slot(uintptr_t *slot, void *context)
{
    const struct hash_element *el = table_entry(*slot);
    table_insert(context, element_hash(el), (uintptr_t)hash_element_copy(el));
}

static void *copy(const struct entry *e)
{
    if (hash_is_packed(e)) {
        size_t bytes = pairs_bytes(entry_pointer(e));
        return memcpy(mem_alloc(bytes), entry_pointer(e), bytes);
    }
    struct table *t = create_table();
    uint64_t cursor = 0;
    do {
        cursor = table_scan(hash_table(e), cursor, copy_slot, t);
    } while (cursor != 0);
    return t;
}

struct size_context {
    size_t bytes;
    uint64_t seen;
};

static void add_size(uintptr_t *slot, void *context)
{
    struct size_context *size = context;
    size->bytes += hash_element_memory_bytes(table_entry(*slot));
    size->seen++;
}

static size_t memory(const struct entry *e, size_t samples)
{
    if (hash_is_packed(e)) {
        return e->flags & ENTRY_EXTERNAL ? mem_usable_size(entry_pointer(e)) : 0;
    }
    const struct table *t = hash_table(e);
    struct size_context size = {0, 0};
    uint64_t cursor = 0;
    do {
        cursor = table_scan(t, cursor, add_size, &size);
    } while (cursor != 0 && (samples == 0 || size.seen < samples));
    size_t elements =
        size.seen ? (size_t)((double)size.bytes / (double)size.seen * (double)t->count) : 0;
    return mem_good_size(sizeof(*t)) + table_memory_bytes(t) + elements;
}

static size_t free_effort(const struct entry *e)
{
    return hash_is_packed(e) ? 1 : hash_table(e)->count;
}

static const char *encoding(const struct entry *e)
{
    return hash_is_packed(e) ? "listpack" : "hashtable";
}

static void sha1_of(struct slice text, unsigned char sum[SHA_DIGEST_LENGTH])
{
    SHA1((const unsigned char *)(text.ptr ? text.ptr : ""), text.len, sum);
}

static void digest_item(const struct hash_item *item, void *context)
{
    unsigned char parts[2 * SHA_DIGEST_LENGTH], sum[SHA_DIGEST_LENGTH];
    unsigned char *total = context;
    sha1_of(item->field, parts);
    sha1_of(item->value.bytes, parts + SHA_DIGEST_LENGTH);
    SHA1(parts, sizeof(parts), sum);
    for (int i = 0; i < SHA_DIGEST_LENGTH; i++) {
        total[i] ^= sum[i];
    }
}

static void digest(const struct entry *e, uint8_t sum[20])
{
    static_assert(SHA_DIGEST_LENGTH == 20, "type.h says so");
    /* Fields are different, so that no two terms are equal and cancel out. */
    unsigned char total[SHA_DIGEST_LENGTH] = {0};
    hash_each(e, digest_item, total);
    SHA1(total, sizeof(total), sum);
}

/* For DEBUG HTSTATS-KEY. */
static const struct table *table_under(const struct entry *e)
{
    return entry_encoding(e) == ENCODING_TABLE ? hash_table(e) : NULL;
}

static void describe(const struct entry *e, bool elements UNUSED, struct buf *out)
{
    pairs_describe(hash_packed(e), out);
}

const struct value_ops hash_ops = {
    .name = "hash",
    .destroy = destroy,
    .copy = copy,
    .memory = memory,
    .free_effort = free_effort,
    .encoding = encoding,
    .digest = digest,
    .table = table_under,
    .count = hash_len,
    .has = hash_has,
    .remove = hash_delete,
    .describe = describe,
};

/* ---- checking ---- */

static void check_slot(uintptr_t *slot, void *context)
{
    (void)context;
    const struct hash_element *el = table_entry(*slot);
    struct blob *blob = hash_element_blob(el);
    assert((el->flags & ~(HASH_ELEMENT_LONG_FIELD | HASH_ELEMENT_BLOB)) == 0);
    assert(!blob || (el->embedded_len == 0 && blob->len > HASH_ELEMENT_EMBEDDED_MAX));
    assert(!(el->flags & HASH_ELEMENT_LONG_FIELD) || hash_element_field(el).len > UINT8_MAX);
    (void)blob;
}

static void check_packed(const unsigned char *p)
{
    struct hash_item item;
    assert(pairs_are_valid(p, pairs_bytes(p)));
    for (const unsigned char *at = pairs_first(p); at;) {
        const unsigned char *here = at;
        at = view_packed(p, at, &item);
        assert(pairs_find(p, item.field) == here);
        (void)here;
    }
}

void hash_check(const struct entry *e)
{
    assert(entry_type(e) == VALUE_HASH);
    member_ttl_check(e);
    if (hash_is_packed(e)) {
        assert(pairs_bytes(hash_packed(e)) <= packed_room(e));
        check_packed(hash_packed(e));
        return;
    }
    uint64_t cursor = 0;
    table_check(hash_table(e));
    do {
        cursor = table_scan(hash_table(e), cursor, check_slot, NULL);
    } while (cursor != 0);
}

const struct option hash_options[] = {
    {.name = "hash-max-listpack-entries",
     .alias = "hash-max-ziplist-entries",
     .type = OPTION_INT,
     .target = &settings.max_fields,
     .initial = "512",
     .min = 0,
     .max = INT64_MAX},
    {.name = "hash-max-listpack-value",
     .alias = "hash-max-ziplist-value",
     .type = OPTION_MEMORY,
     .target = &settings.max_text_bytes,
     .initial = "64",
     .min = 0,
     .max = INT64_MAX},
    {.name = NULL},
};
