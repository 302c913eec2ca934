/* Values and data of modules in RDB bytes: what is written can be read, what is damaged or nobody's
 * is refused by name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/mem.h"
#include "persist/rdb_format.h"
#include "persist/rdb_module.h"
#include "persist/rdb_value.h"

#include <string.h>

/* ---- a kind whose values are their items ---- */

static struct buf aux_read;
static unsigned aux_when;
static bool refuses;

static void destroy(const struct module_kind *k, void *value)
{
    (void)k;
    buf_deinit(value);
    mem_free(value);
}

static const struct module_kind_ops kind_ops = {.destroy = destroy};

static void save(const struct module_kind *k, struct module_place at, void *value,
                 struct rdb_writer *w)
{
    const struct buf *items = value;
    (void)k;
    assert_true(slice_equal(at.key, SLICE("key")));
    rdb_write(w, items->data, items->len);
}

static bool load(const struct module_kind *k, int version, struct module_place at,
                 struct slice items, void **value)
{
    (void)k;
    assert_int_equal(version, 3);
    assert_true(slice_equal(at.key, SLICE("key")));
    if (refuses) {
        return false;
    }
    struct buf *copy = mem_calloc(1, sizeof(*copy));
    buf_append_slice(copy, items);
    *value = copy;
    return true;
}

static bool save_aux(const struct module_kind *k, enum rdb_module_when when, struct rdb_writer *w)
{
    (void)k;
    if (when == RDB_MODULE_BEFORE_KEYS) {
        return false;
    }
    rdb_write_len(w, RDB_MODULE_STRING);
    rdb_write_string(w, SLICE("behind"));
    return true;
}

static bool load_aux(const struct module_kind *k, int version, enum rdb_module_when when,
                     struct slice items)
{
    (void)k;
    assert_int_equal(version, 3);
    aux_when = when;
    buf_clear(&aux_read);
    buf_append_slice(&aux_read, items);
    return !refuses;
}

static const struct rdb_module_ops ops = {
    .save = save, .load = load, .save_aux = save_aux, .load_aux = load_aux};
static struct module_kind kind = {.ops = &kind_ops, .name = "testboxes"};

static int setup(void **state)
{
    (void)state;
    kind.id = module_kind_id(SLICE("testboxes"), 3);
    refuses = false;
    module_kind_add(&kind);
    rdb_module_set_ops(&ops);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    module_kind_remove(&kind);
    rdb_module_set_ops(NULL);
    buf_deinit(&aux_read);
    return 0;
}

/* One item of each kind. */
static void write_items(struct rdb_writer *w)
{
    rdb_write_len(w, RDB_MODULE_SIGNED);
    rdb_write_len(w, UINT64_MAX);
    rdb_write_len(w, RDB_MODULE_UNSIGNED);
    rdb_write_len(w, 7);
    rdb_write_len(w, RDB_MODULE_FLOAT);
    rdb_write(w, "abcd", 4);
    rdb_write_len(w, RDB_MODULE_DOUBLE);
    rdb_write_double(w, 1.5);
    rdb_write_len(w, RDB_MODULE_STRING);
    rdb_write_string(w, SLICE("text"));
}

/* The bytes of an entry with these items, without the type's number. */
static void write_value(struct rdb_writer *w)
{
    rdb_writer_init(w, -1, false, false);
    rdb_write_len(w, kind.id);
    write_items(w);
    rdb_write_len(w, RDB_MODULE_END);
}

static const char *read_value(struct slice bytes, struct entry **e)
{
    struct rdb_reader r;
    rdb_reader_init(&r, bytes);
    bool ok = rdb_load_value(&r, RDB_MODULE, SLICE("key"), e);
    assert_true(ok == !r.error);
    return r.error;
}

static void test_there_and_back(void **state)
{
    (void)state;
    struct rdb_writer w, again;
    struct entry *e;
    write_value(&w);
    assert_null(read_value(buf_slice(&w.out), &e));
    assert_int_equal(rdb_value_type(e), RDB_MODULE);
    rdb_writer_init(&again, -1, false, false);
    rdb_save_value(&again, e);
    assert_true(slice_equal(buf_slice(&w.out), buf_slice(&again.out)));
    rdb_writer_deinit(&again);
    entry_destroy(&e);
    for (size_t cut = 0; cut < w.out.len; cut++) {
        assert_non_null(read_value(slice_of(w.out.data, cut), &e));
    }
    assert_int_equal(kind.values, 0);
    rdb_writer_deinit(&w);
}

static void test_refused(void **state)
{
    (void)state;
    struct rdb_writer w;
    struct entry *e;
    write_value(&w);
    refuses = true;
    assert_string_equal(read_value(buf_slice(&w.out), &e),
                        "a value that the module refuses, of the type 'testboxes' of a module");
    module_kind_remove(&kind);
    assert_string_equal(read_value(buf_slice(&w.out), &e),
                        "a value of the type 'testboxes' of a module that is not loaded");
    rdb_module_skips = true;
    assert_null(read_value(buf_slice(&w.out), &e));
    assert_null(e);
    rdb_module_skips = false;
    module_kind_add(&kind);
    w.out.data[9] = 6; /* behind the id's nine bytes: the first item's kind */
    assert_string_equal(read_value(buf_slice(&w.out), &e), "a module's datum of unknown kind");
    rdb_writer_deinit(&w);
}

static void test_aux(void **state)
{
    (void)state;
    struct rdb_writer w;
    struct rdb_reader r;
    unsigned opcode;
    rdb_writer_init(&w, -1, false, false);
    rdb_module_save_aux(&w, RDB_MODULE_BEFORE_KEYS);
    assert_int_equal(w.out.len, 0);
    rdb_module_save_aux(&w, RDB_MODULE_AFTER_KEYS);
    rdb_reader_init(&r, buf_slice(&w.out));
    assert_true(rdb_read_byte(&r, &opcode) && opcode == RDB_OP_MODULE_AUX);
    assert_true(rdb_module_load_aux(&r));
    assert_int_equal(aux_when, RDB_MODULE_AFTER_KEYS);
    assert_true(slice_equal(buf_slice(&aux_read), SLICE("\5\6behind")));
    assert_true(rdb_left(&r) == 0);
    refuses = true;
    rdb_reader_init(&r, slice_of(w.out.data + 1, w.out.len - 1));
    assert_false(rdb_module_load_aux(&r));
    assert_string_equal(r.error,
                        "data that the module refuses, of the type 'testboxes' of a module");
    for (size_t cut = 1; cut < w.out.len; cut++) {
        rdb_reader_init(&r, slice_of(w.out.data + 1, cut - 1));
        assert_false(rdb_module_load_aux(&r));
    }
    rdb_writer_deinit(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_there_and_back, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_aux, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
