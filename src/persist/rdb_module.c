/* See rdb_module.h. */
#include "persist/rdb_module.h"

#include "persist/rdb_format.h"
#include "persist/rdb_value_priv.h"

#include <assert.h>
#include <stdio.h>

static const struct rdb_module_ops *ops;
bool rdb_module_skips;

void rdb_module_set_ops(const struct rdb_module_ops *o)
{
    ops = o;
}

/* ---- faults ---- */

/* A reader keeps texts that live forever: the thread's last one does until its next. */
static _Thread_local char fault[160];

/* Fails, naming the module's type. */
static bool fail_of(struct rdb_reader *r, uint64_t id, const char *what)
{
    char name[MODULE_NAME_CHARS + 1];
    module_id_name(id, name);
    if (!r->error) {
        snprintf(fault, sizeof(fault), "%s of the type '%s' of a module%s", what, name,
                 module_kind_find(id) ? "" : " that is not loaded");
    }
    return rdb_fail(r, fault);
}

/* ---- content ---- */

/* Reads an item and writes it again, in the form that takes least work to read. */
static bool copy_item(struct rdb_reader *r, uint64_t kind, struct rdb_writer *w, struct buf *text)
{
    char bytes[8];
    uint64_t number;
    size_t len = kind == RDB_MODULE_FLOAT ? 4 : 8;
    rdb_write_len(w, kind);
    switch (kind) {
    case RDB_MODULE_SIGNED:
    case RDB_MODULE_UNSIGNED:
        if (!rdb_read_len(r, &number)) {
            return false;
        }
        rdb_write_len(w, number);
        return true;
    case RDB_MODULE_FLOAT:
    case RDB_MODULE_DOUBLE:
        if (!rdb_read(r, bytes, len)) {
            return false;
        }
        rdb_write(w, bytes, len);
        return true;
    case RDB_MODULE_STRING:
        if (!rdb_read_string(r, text)) {
            return false;
        }
        rdb_write_string(w, buf_slice(text));
        return true;
    default:
        return rdb_fail(r, "a module's datum of unknown kind");
    }
}

/* Reads a content with its end. The items are w's, which the caller ends; or nobody's. */
static bool read_items(struct rdb_reader *r, struct rdb_writer *w)
{
    struct buf text = {0};
    uint64_t kind;
    bool ok;
    for (;;) {
        ok = rdb_read_len(r, &kind);
        if (!ok || kind == RDB_MODULE_END) {
            break;
        }
        ok = copy_item(r, kind, w, &text);
        if (!ok) {
            break;
        }
        if (rdb_module_skips) {
            buf_clear(&w->out);
        }
    }
    buf_deinit(&text);
    return ok;
}

/* ---- values ---- */

void rdb_save_module(struct rdb_writer *w, const struct entry *e)
{
    struct module_kind *k = module_value_kind(e);
    assert(ops);
    rdb_write_len(w, k->id);
    ops->save(k, (struct module_place){entry_key(e), module_value_db}, module_value_get(e), w);
    rdb_write_len(w, RDB_MODULE_END);
}

static bool load_value(struct rdb_reader *r, uint64_t id, struct slice items, struct slice key,
                       struct entry **e)
{
    struct module_kind *k = module_kind_find(id);
    void *value;
    if (!ops->load(k, module_id_version(id), (struct module_place){key, module_value_db}, items,
                   &value)) {
        return fail_of(r, id, "a value that the module refuses,");
    }
    *e = module_value_create(key, k, value);
    return true;
}

bool rdb_load_module(struct rdb_reader *r, unsigned type, struct slice key, struct entry **e)
{
    uint64_t id;
    struct rdb_writer w;
    (void)type;
    if (!rdb_read_len(r, &id)) {
        return false;
    }
    bool is_known = ops && module_kind_find(id);
    if (!is_known && !rdb_module_skips) {
        return fail_of(r, id, "a value");
    }
    rdb_writer_init(&w, -1, false, false);
    bool ok = read_items(r, &w) && (!is_known || load_value(r, id, buf_slice(&w.out), key, e));
    rdb_writer_deinit(&w);
    return ok;
}

enum rdb_module_emitted rdb_module_emit(const struct entry *e, rdb_module_put put, void *context)
{
    assert(ops);
    return ops->emit(module_value_kind(e), (struct module_place){entry_key(e), module_value_db},
                     module_value_get(e), put, context);
}

/* ---- payloads ---- */

bool rdb_module_is_payload(struct slice payload)
{
    return payload.len > 0 && (unsigned char)payload.ptr[0] == RDB_MODULE;
}

const char *rdb_module_payload_fault(struct slice payload)
{
    struct rdb_reader r;
    uint64_t id = 0;
    char name[MODULE_NAME_CHARS + 1];
    rdb_reader_init(&r, slice_of(payload.ptr + 1, payload.len - 1));
    bool has_id = rdb_read_len(&r, &id);
    rdb_reader_deinit(&r);
    module_id_name(id, name);
    snprintf(fault, sizeof(fault), "a value of %s%s%s, which no module here takes",
             has_id ? "the modules' type '" : "a module", has_id ? name : "", has_id ? "'" : "");
    return fault;
}

/* ---- aux data ---- */

const char *rdb_module_untold_data(void)
{
    const struct module_kind *k = module_kind_first();
    while (k && !(ops && ops->has_aux(k))) {
        k = k->next;
    }
    if (k) {
        snprintf(fault, sizeof(fault),
                 "the module of the type '%s' has data that are no keys, which active replicas "
                 "cannot be told",
                 k->name);
    }
    return k ? fault : NULL;
}

void rdb_module_save_aux(struct rdb_writer *w, enum rdb_module_when when)
{
    if (!ops) {
        return;
    }
    for (const struct module_kind *k = module_kind_first(); k; k = k->next) {
        struct rdb_writer items;
        rdb_writer_init(&items, -1, w->compress, false);
        if (ops->save_aux(k, when, &items)) {
            rdb_write_byte(w, RDB_OP_MODULE_AUX);
            rdb_write_len(w, k->id);
            rdb_write_len(w, RDB_MODULE_UNSIGNED);
            rdb_write_len(w, when);
            rdb_write(w, items.out.data, items.out.len);
            rdb_write_len(w, RDB_MODULE_END);
        }
        rdb_writer_deinit(&items);
    }
}

bool rdb_module_load_aux(struct rdb_reader *r)
{
    uint64_t id, kind, when;
    struct rdb_writer w;
    if (!rdb_read_len(r, &id) || !rdb_read_len(r, &kind) || !rdb_read_len(r, &when)) {
        return false;
    }
    if (kind != RDB_MODULE_UNSIGNED ||
        (when != RDB_MODULE_BEFORE_KEYS && when != RDB_MODULE_AFTER_KEYS)) {
        return rdb_fail(r, "a module's data that are damaged");
    }
    const struct module_kind *k = ops ? module_kind_find(id) : NULL;
    if (!k && !rdb_module_skips) {
        return fail_of(r, id, "data");
    }
    rdb_writer_init(&w, -1, false, false);
    bool ok = read_items(r, &w);
    if (ok && k) {
        ok = ops->load_aux(k, module_id_version(id), (enum rdb_module_when)when,
                           buf_slice(&w.out)) ||
             fail_of(r, id, "data that the module refuses,");
    }
    rdb_writer_deinit(&w);
    return ok;
}
