/* See set.h: encodings, their changes, and the type's row of operations. Random members are in
 * set_draw.c. */
#include "value/set.h"

#include "base/num.h"
#include "ds/intset.h"
#include "ds/listpack.h"
#include "value/member_ttl.h"
#include "value/set_priv.h"

#include <openssl/sha.h>

/* Above these no option lifts a packed set: adding to it is linear in its size. */
#define INTSET_ENTRIES_CAP ((int64_t)1 << 20)
#define LISTPACK_ENTRIES_CAP ((int64_t)1 << 16)
#define LISTPACK_VALUE_CAP ((int64_t)64 * 1024)
#define LISTPACK_BYTES_CAP ((size_t)16 * 1024 * 1024)

static struct {
    int64_t intset_entries, listpack_entries, listpack_value;
} limits = {512, 128, 64};

static inline uint64_t capped(int64_t limit, int64_t cap)
{
    return (uint64_t)(limit < cap ? limit : cap);
}
static inline uint64_t max_intset_entries(void)
{
    return capped(limits.intset_entries, INTSET_ENTRIES_CAP);
}
static inline uint64_t max_listpack_entries(void)
{
    return capped(limits.listpack_entries, LISTPACK_ENTRIES_CAP);
}
static inline uint64_t max_listpack_value(void)
{
    return capped(limits.listpack_value, LISTPACK_VALUE_CAP);
}

/* ---- members ---- */

struct slice set_member_format(struct set_member *m)
{
    assert(m->facts & SET_MEMBER_INTEGER);
    m->bytes = slice_of(m->text, num_format_i64(m->text, m->integer));
    m->facts |= SET_MEMBER_BYTES;
    return m->bytes;
}

static inline bool member_integer(struct set_member *m, int64_t *value)
{
    if (!(m->facts & (SET_MEMBER_INTEGER | SET_MEMBER_TEXT))) {
        bool numeric = m->bytes.len < NUM_I64_MAX_CHARS && num_parse_i64(m->bytes, &m->integer);
        m->facts |= numeric ? SET_MEMBER_INTEGER : SET_MEMBER_TEXT;
    }
    *value = m->integer;
    return m->facts & SET_MEMBER_INTEGER;
}

void set_member_of_packed(struct set_member *m, const unsigned char *at)
{
    int64_t value;
    if (listpack_get_integer(at, &value)) {
        set_member_init_integer(m, value);
    } else {
        set_member_init(m, listpack_get(at, NULL));
        m->facts |= SET_MEMBER_TEXT;
    }
}

/* ---- the table ---- */

/* A member looked for: where it would stand in a slot, `word` is that. */
struct wanted {
    struct slice bytes;
    uintptr_t word;
};

static uint64_t element_hash(const void *entry)
{
    char text[8];
    return hash_slice(set_element_bytes(entry, text));
}

static bool element_matches(const void *entry, const void *key)
{
    const struct wanted *w = key;
    if (w->word != 0 || set_element_is_inline(entry)) {
        return (uintptr_t)entry == w->word;
    }
    return slice_equal(set_element_bytes(entry, NULL), w->bytes);
}

static void release_element(void *entry, void *context)
{
    (void)context;
    set_element_destroy(entry);
}

static struct table *create_table(void)
{
    struct table *t = mem_alloc(sizeof(*t));
    table_init(t, element_hash);
    return t;
}

static void destroy_table(struct table *t)
{
    table_deinit(t, release_element, NULL);
    mem_free_sized(t, sizeof(*t));
}

static inline uintptr_t *find_element(const struct table *t, struct set_member *m)
{
    struct slice bytes = set_member_bytes(m);
    struct wanted w = {bytes, set_element_word(bytes)};
    return table_find(t, set_member_hash(m), element_matches, &w);
}

/* The member is not there. */
static inline void insert_element(struct table *t, struct set_member *m)
{
    table_insert(t, set_member_hash(m), set_element_create(set_member_bytes(m)));
}

/* ---- changes of encoding ---- */

static void destroy_value(void *pointer, enum encoding encoding)
{
    if (encoding == ENCODING_TABLE) {
        destroy_table(pointer);
    } else if (encoding == ENCODING_LISTPACK) {
        listpack_destroy(pointer);
    } else {
        intset_destroy(pointer);
    }
}

static void change_encoding(struct entry *e, enum encoding encoding, void *pointer_take)
{
    destroy_value(entry_pointer(e), entry_encoding(e));
    entry_set_pointer(e, pointer_take);
    entry_set_encoding(e, encoding);
}

static void convert_to_table(struct entry *e)
{
    struct table *t = create_table();
    struct set_walk w;
    struct set_member m;
    set_walk_begin(&w, e);
    while (set_walk_next(&w, &m)) {
        insert_element(t, &m);
    }
    change_encoding(e, ENCODING_TABLE, t);
}

static void convert_to_listpack(struct entry *e)
{
    const struct intset *s = entry_pointer(e);
    unsigned char *lp = listpack_create(0);
    for (uint32_t i = 0; i < s->count; i++) {
        lp = listpack_append_integer(lp, intset_at(s, i));
    }
    change_encoding(e, ENCODING_LISTPACK, lp);
}

/* True when the intset and a text of `len` bytes behind it may be a listpack. */
static bool intset_fits_listpack(const struct intset *s, size_t len)
{
    char text[NUM_I64_MAX_CHARS];
    size_t longest = 0;
    if (s->count > 0) {
        size_t first = num_format_i64(text, intset_at(s, 0));
        size_t last = num_format_i64(text, intset_at(s, s->count - 1));
        longest = first > last ? first : last;
    }
    return s->count < max_listpack_entries() && len <= max_listpack_value() &&
           longest <= max_listpack_value();
}

struct entry *set_create(struct slice key, struct set_member *first, uint64_t expected,
                         int64_t expiry_ms)
{
    int64_t value;
    if ((!first || member_integer(first, &value)) && expected <= max_intset_entries()) {
        return entry_create_pointer(key, VALUE_SET, ENCODING_INTSET, intset_create(), expiry_ms);
    }
    if (expected <= max_listpack_entries()) {
        return entry_create_pointer(key, VALUE_SET, ENCODING_LISTPACK, listpack_create(0),
                                    expiry_ms);
    }
    return entry_create_pointer(key, VALUE_SET, ENCODING_TABLE, create_table(), expiry_ms);
}

void set_expect(struct entry *e, uint64_t more)
{
    enum encoding encoding = entry_encoding(e);
    if ((encoding == ENCODING_LISTPACK && more > max_listpack_entries()) ||
        (encoding == ENCODING_INTSET && more > max_intset_entries())) {
        convert_to_table(e);
    }
}

/* ---- one member ---- */

static bool add_to_table(struct entry *e, struct set_member *m)
{
    struct table *t = entry_pointer(e);
    if (find_element(t, m)) {
        return false;
    }
    insert_element(t, m);
    return true;
}

static inline unsigned char *find_packed(const unsigned char *lp, struct set_member *m)
{
    return listpack_find(lp, listpack_first(lp), set_member_bytes(m), 0);
}

/* The member is not there. */
static void append_to_listpack(struct entry *e, struct set_member *m)
{
    unsigned char *lp = entry_pointer(e);
    struct slice bytes = set_member_bytes(m);
    if (listpack_count(lp) < max_listpack_entries() && bytes.len <= max_listpack_value() &&
        listpack_bytes(lp) + bytes.len <= LISTPACK_BYTES_CAP) {
        entry_set_pointer(e, listpack_append(lp, bytes));
        return;
    }
    convert_to_table(e);
    insert_element(entry_pointer(e), m);
}

static bool add_to_listpack(struct entry *e, struct set_member *m)
{
    if (find_packed(entry_pointer(e), m)) {
        return false;
    }
    append_to_listpack(e, m);
    return true;
}

static bool add_to_intset(struct entry *e, struct set_member *m)
{
    struct intset *s = entry_pointer(e);
    int64_t value;
    bool added;
    if (member_integer(m, &value)) {
        s = intset_add(s, value, &added);
        entry_set_pointer(e, s);
        if (added && s->count > max_intset_entries()) {
            convert_to_table(e);
        }
        return added;
    }
    if (intset_fits_listpack(s, set_member_bytes(m).len)) {
        convert_to_listpack(e);
        entry_set_pointer(e, listpack_append(entry_pointer(e), set_member_bytes(m)));
        return true;
    }
    convert_to_table(e);
    insert_element(entry_pointer(e), m);
    return true;
}

bool set_add(struct entry *e, struct set_member *m)
{
    enum encoding encoding = entry_encoding(e);
    assert(entry_type(e) == VALUE_SET);
    if (likely(encoding == ENCODING_TABLE)) {
        return add_to_table(e, m);
    }
    return encoding == ENCODING_LISTPACK ? add_to_listpack(e, m) : add_to_intset(e, m);
}

void set_add_new(struct entry *e, struct set_member *m)
{
    enum encoding encoding = entry_encoding(e);
    assert(entry_type(e) == VALUE_SET);
    if (likely(encoding == ENCODING_TABLE)) {
        insert_element(entry_pointer(e), m);
    } else if (encoding == ENCODING_LISTPACK) {
        append_to_listpack(e, m);
    } else {
        bool added = add_to_intset(e, m);
        assert(added);
        (void)added;
    }
}

bool set_remove(struct entry *e, struct set_member *m)
{
    enum encoding encoding = entry_encoding(e);
    assert(entry_type(e) == VALUE_SET);
    if (member_ttl_any(e)) {
        member_ttl_drop(e, set_member_bytes(m));
    }
    if (likely(encoding == ENCODING_TABLE)) {
        struct table *t = entry_pointer(e);
        uintptr_t *slot = find_element(t, m);
        if (slot) {
            set_element_destroy(table_entry(table_remove(t, set_member_hash(m), slot)));
        }
        return slot != NULL;
    }
    if (encoding == ENCODING_LISTPACK) {
        unsigned char *lp = entry_pointer(e);
        unsigned char *at = find_packed(lp, m);
        if (at) {
            entry_set_pointer(e, listpack_remove(lp, &at));
            return true;
        }
        return false;
    }
    int64_t value;
    bool removed = false;
    if (member_integer(m, &value)) {
        entry_set_pointer(e, intset_remove(entry_pointer(e), value, &removed));
    }
    return removed;
}

bool set_contains(const struct entry *e, struct set_member *m)
{
    enum encoding encoding = entry_encoding(e);
    assert(entry_type(e) == VALUE_SET);
    if (likely(encoding == ENCODING_TABLE)) {
        return find_element(entry_pointer(e), m) != NULL;
    }
    if (encoding == ENCODING_LISTPACK) {
        return find_packed(entry_pointer(e), m) != NULL;
    }
    int64_t value;
    return member_integer(m, &value) && intset_contains(entry_pointer(e), value);
}

uint64_t set_count(const struct entry *e)
{
    enum encoding encoding = entry_encoding(e);
    assert(entry_type(e) == VALUE_SET);
    if (encoding == ENCODING_TABLE) {
        return ((const struct table *)entry_pointer(e))->count;
    }
    return encoding == ENCODING_LISTPACK ? listpack_count(entry_pointer(e))
                                         : ((const struct intset *)entry_pointer(e))->count;
}

/* ---- the table of operations ---- */

static void destroy(struct entry *e)
{
    destroy_value(entry_pointer(e), entry_encoding(e));
}

static void *copy(const struct entry *e)
{
    enum encoding encoding = entry_encoding(e);
    if (encoding == ENCODING_INTSET) {
        return intset_copy(entry_pointer(e));
    }
    if (encoding == ENCODING_LISTPACK) {
        return listpack_copy(entry_pointer(e));
    }
    struct table *t = create_table();
    struct set_walk w;
    struct set_member m;
    set_walk_begin(&w, e);
    while (set_walk_next(&w, &m)) {
        insert_element(t, &m);
    }
    return t;
}

static size_t memory(const struct entry *e, size_t samples)
{
    if (entry_encoding(e) != ENCODING_TABLE) {
        return mem_usable_size(entry_pointer(e));
    }
    const struct table *t = entry_pointer(e);
    struct set_walk w;
    struct set_member m;
    uint64_t looked_at = 0, bytes = 0;
    set_walk_begin(&w, e);
    while ((samples == 0 || looked_at < samples) && set_walk_next(&w, &m)) {
        size_t len = set_member_bytes(&m).len;
        bytes += len > SET_ELEMENT_INLINE_MAX ? mem_good_size(set_element_block_bytes(len)) : 0;
        looked_at++;
    }
    size_t own = mem_good_size(sizeof(*t)) + table_memory_bytes(t);
    return own + (looked_at ? (size_t)((double)bytes / (double)looked_at * (double)t->count) : 0);
}

static size_t free_effort(const struct entry *e)
{
    return entry_encoding(e) == ENCODING_TABLE ? set_count(e) : 1;
}

static const char *encoding_name(const struct entry *e)
{
    enum encoding encoding = entry_encoding(e);
    return encoding == ENCODING_TABLE      ? "hashtable"
           : encoding == ENCODING_LISTPACK ? "listpack"
                                           : "intset";
}

/* The members' sums combined by xor: no order. */
static void digest(const struct entry *e, uint8_t sum[20])
{
    struct set_walk w;
    struct set_member m;
    memset(sum, 0, 20);
    set_walk_begin(&w, e);
    while (set_walk_next(&w, &m)) {
        uint8_t one[20];
        struct slice bytes = set_member_bytes(&m);
        SHA1((const unsigned char *)bytes.ptr, bytes.len, one);
        for (int i = 0; i < 20; i++) {
            sum[i] ^= one[i];
        }
    }
}

static bool has_bytes(const struct entry *e, struct slice bytes)
{
    struct set_member m;
    set_member_init(&m, bytes);
    return set_contains(e, &m);
}

static bool remove_bytes(struct entry *e, struct slice bytes)
{
    struct set_member m;
    set_member_init(&m, bytes);
    return set_remove(e, &m);
}

/* For DEBUG HTSTATS-KEY. */
static const struct table *table_under(const struct entry *e)
{
    return entry_encoding(e) == ENCODING_TABLE ? entry_pointer(e) : NULL;
}

static void describe(const struct entry *e, bool elements UNUSED, struct buf *out)
{
    assert(entry_encoding(e) == ENCODING_LISTPACK);
    listpack_describe(entry_pointer(e), out);
}

const struct value_ops set_ops = {
    .name = "set",
    .destroy = destroy,
    .copy = copy,
    .memory = memory,
    .free_effort = free_effort,
    .encoding = encoding_name,
    .digest = digest,
    .table = table_under,
    .count = set_count,
    .has = has_bytes,
    .remove = remove_bytes,
    .describe = describe,
};

const struct option set_options[] = {
    {.name = "set-max-intset-entries",
     .type = OPTION_INT,
     .target = &limits.intset_entries,
     .initial = "512",
     .min = 0,
     .max = INT64_MAX},
    {.name = "set-max-listpack-entries",
     .type = OPTION_INT,
     .target = &limits.listpack_entries,
     .initial = "128",
     .min = 0,
     .max = INT64_MAX},
    {.name = "set-max-listpack-value",
     .type = OPTION_INT,
     .target = &limits.listpack_value,
     .initial = "64",
     .min = 0,
     .max = INT64_MAX},
    {.name = NULL},
};
