/* See module.h. */
#include "value/module.h"

#include "base/mem.h"

#include <string.h>

/* What the entry's pointer points to. */
struct module_value {
    struct module_kind *kind;
    void *value;
    bool is_dropped;
};

_Thread_local int module_value_db = -1;

static struct module_kind *kinds;

/* ---- ids ---- */

/* The characters of names, each at its number. */
static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
#define CHARACTER_BITS 6
static_assert(sizeof(alphabet) == (1 << CHARACTER_BITS) + 1, "a character's number has six bits");
static_assert(MODULE_NAME_CHARS * CHARACTER_BITS + MODULE_VERSION_BITS == 64, "an id has 64 bits");

uint64_t module_kind_id(struct slice name, int version)
{
    uint64_t id = 0;
    if (name.len != MODULE_NAME_CHARS || version < 0 || version > MODULE_VERSION_MAX) {
        return 0;
    }
    for (size_t i = 0; i < name.len; i++) {
        const char *at = memchr(alphabet, name.ptr[i], sizeof(alphabet) - 1);
        if (!at) {
            return 0;
        }
        id = id << CHARACTER_BITS | (uint64_t)(at - alphabet);
    }
    return id << MODULE_VERSION_BITS | (uint64_t)version;
}

void module_id_name(uint64_t id, char name[MODULE_NAME_CHARS + 1])
{
    id >>= MODULE_VERSION_BITS;
    for (int i = MODULE_NAME_CHARS - 1; i >= 0; i--) {
        name[i] = alphabet[id & ((1 << CHARACTER_BITS) - 1)];
        id >>= CHARACTER_BITS;
    }
    name[MODULE_NAME_CHARS] = '\0';
}

int module_id_version(uint64_t id)
{
    return (int)(id & MODULE_VERSION_MAX);
}

/* ---- kinds ---- */

void module_kind_add(struct module_kind *k)
{
    assert(!module_kind_find(k->id) && k->ops);
    struct module_kind **link = &kinds;
    while (*link) {
        link = &(*link)->next;
    }
    k->next = NULL;
    *link = k;
}

void module_kind_remove(struct module_kind *k)
{
    struct module_kind **link = &kinds;
    assert(k->values == 0);
    while (*link != k) {
        assert(*link);
        link = &(*link)->next;
    }
    *link = k->next;
}

const struct module_kind *module_kind_first(void)
{
    return kinds;
}

struct module_kind *module_kind_find(uint64_t id)
{
    struct module_kind *k = kinds;
    while (k && k->id >> MODULE_VERSION_BITS != id >> MODULE_VERSION_BITS) {
        k = k->next;
    }
    return k;
}

struct module_kind *module_kind_find_name(struct slice name)
{
    struct module_kind *k = kinds;
    while (k && !slice_equal_nocase(name, k->name)) {
        k = k->next;
    }
    return k;
}

/* ---- values ---- */

static struct module_value *value_of(const struct entry *e)
{
    assert(entry_type(e) == VALUE_MODULE && entry_encoding(e) == ENCODING_MODULE);
    return entry_pointer(e);
}

static struct module_place place_of(const struct entry *e)
{
    return (struct module_place){entry_key(e), module_value_db};
}

static struct module_value *make(struct module_kind *k, void *value_take)
{
    struct module_value *v = mem_alloc(sizeof(*v));
    *v = (struct module_value){.kind = k, .value = value_take};
    atomic_fetch_add_explicit(&k->values, 1, memory_order_relaxed);
    return v;
}

struct entry *module_value_create(struct slice key, struct module_kind *k, void *value_take)
{
    return entry_create_pointer(key, VALUE_MODULE, ENCODING_MODULE, make(k, value_take),
                                ENTRY_NO_EXPIRY);
}

struct module_kind *module_value_kind(const struct entry *e)
{
    return value_of(e)->kind;
}

void *module_value_get(const struct entry *e)
{
    return value_of(e)->value;
}

void *module_value_exchange(struct entry *e, void *value_take)
{
    struct module_value *v = value_of(e);
    void *old = v->value;
    v->value = value_take;
    return old;
}

struct entry *module_value_copy(const struct entry *e, int from_db, struct slice key, int to_db,
                                int64_t expiry_ms)
{
    const struct module_value *v = value_of(e);
    struct module_kind *k = v->kind;
    struct module_place from = {entry_key(e), from_db}, to = {key, to_db};
    void *copy = k->copies ? k->ops->copy(k, from, to, v->value) : NULL;
    return copy ? entry_create_pointer(key, VALUE_MODULE, ENCODING_MODULE, make(k, copy), expiry_ms)
                : NULL;
}

void module_value_unlinked(const struct entry *e, int db)
{
    const struct module_value *v = value_of(e);
    if (v->kind->unlinks) {
        v->kind->ops->unlink(v->kind, (struct module_place){entry_key(e), db}, v->value);
    }
}

/* Frees the module's part. After the last word with the kind the kind may go. */
static void free_value(struct module_value *v)
{
    if (!v->is_dropped) {
        v->kind->ops->destroy(v->kind, v->value);
        v->is_dropped = true;
        atomic_fetch_sub_explicit(&v->kind->values, 1, memory_order_release);
    }
}

void module_value_drop(struct entry *e)
{
    free_value(value_of(e));
}

/* ---- operations ---- */

static void destroy(struct entry *e)
{
    struct module_value *v = value_of(e);
    free_value(v);
    mem_free(v);
}

static size_t memory(const struct entry *e, size_t samples)
{
    const struct module_value *v = value_of(e);
    return mem_size_class(sizeof(*v)) +
           v->kind->ops->memory(v->kind, place_of(e), v->value, samples);
}

static size_t free_effort(const struct entry *e)
{
    const struct module_value *v = value_of(e);
    return v->kind->ops->free_effort(v->kind, place_of(e), v->value);
}

static const char *encoding_name(const struct entry *e)
{
    (void)e;
    return "raw";
}

static void digest(const struct entry *e, uint8_t result[20])
{
    const struct module_value *v = value_of(e);
    memset(result, 0, 20);
    v->kind->ops->digest(v->kind, place_of(e), v->value, result);
}

/* Without copy: module_value_copy has more to tell. Without name: the kind's (value_type_name). */
const struct value_ops module_value_ops = {.destroy = destroy,
                                           .memory = memory,
                                           .free_effort = free_effort,
                                           .encoding = encoding_name,
                                           .digest = digest};
