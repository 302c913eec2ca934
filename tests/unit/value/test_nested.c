/* Nested hashes: random ones against a flat model, hostile depth and width, copies and digests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/rand.h"
#include "value/nested.h"

#include <stdio.h>
#include <string.h>

#define NAMES_MAX 4
#define PATHS_MAX 400

/* ---- The model: leaves by their whole path, "/a/b/c" ---- */

struct model_leaf {
    char path[64];
    char value[16];
};

static struct model_leaf model[PATHS_MAX];
static size_t model_count;

/* True when `path` is `prefix` or leads below it. */
static bool is_below(const char *path, const char *prefix)
{
    size_t len = strlen(prefix);
    return strncmp(path, prefix, len) == 0 && (path[len] == '\0' || path[len] == '/');
}

static enum nested_set model_set(const char *path, const char *value)
{
    enum nested_set outcome = NESTED_ADDED;
    for (size_t i = 0; i < model_count; i++) {
        if (strcmp(model[i].path, path) != 0 && is_below(path, model[i].path)) {
            return NESTED_BLOCKED;
        }
    }
    for (size_t i = 0; i < model_count;) {
        if (is_below(model[i].path, path)) {
            model[i] = model[--model_count];
            outcome = NESTED_REPLACED;
        } else {
            i++;
        }
    }
    assert_true(model_count < PATHS_MAX);
    snprintf(model[model_count].path, sizeof(model[0].path), "%s", path);
    snprintf(model[model_count].value, sizeof(model[0].value), "%s", value);
    model_count++;
    return outcome;
}

static bool model_has(const char *path, struct slice value)
{
    for (size_t i = 0; i < model_count; i++) {
        if (strcmp(model[i].path, path) == 0) {
            return slice_equal(value, slice_cstr(model[i].value));
        }
    }
    return false;
}

/* ---- Helpers ---- */

static struct nested_leaf string_leaf(const struct slice *s)
{
    return (struct nested_leaf){.kind = NESTED_STRING, .strings = s, .count = 1};
}

static void assert_same_as_model(const struct entry *e)
{
    struct nested_walk w;
    char path[64] = "";
    size_t ends[NAMES_MAX + 1] = {0}; /* of the path at each depth */
    size_t leaves = 0;
    nested_check(e);
    for (nested_walk_begin(&w, nested_find(e, NULL, 0)); w.step != NESTED_STEP_DONE;
         nested_walk_next(&w)) {
        if (w.depth > 0 && w.step != NESTED_STEP_MAP_END) {
            struct slice name = nested_name(w.node);
            size_t at = ends[w.depth - 1];
            int len = snprintf(path + at, sizeof(path) - at, "/%.*s", (int)name.len, name.ptr);
            ends[w.depth] = at + (size_t)len;
        }
        if (w.step == NESTED_STEP_LEAF) {
            size_t offset = 0;
            assert_true(model_has(path, nested_string_at(w.node, &offset)));
            leaves++;
        }
    }
    assert_int_equal(leaves, model_count);
}

static void assert_same_digest(const struct entry *a, const struct entry *b, bool same)
{
    uint8_t x[20], y[20];
    nested_ops.digest(a, x);
    nested_ops.digest(b, y);
    assert_int_equal(memcmp(x, y, sizeof(x)) == 0, same);
}

/* ---- Tests ---- */

static void random_path(unsigned names_in_use, struct slice *names, unsigned *depth, char *text)
{
    static char letters[40][4];
    size_t at = 0;
    *depth = 1 + (unsigned)rand_below(NAMES_MAX);
    for (unsigned i = 0; i < *depth; i++) {
        uint64_t letter = rand_below(names_in_use);
        int len = snprintf(letters[letter], sizeof(letters[0]), "n%d", (int)letter);
        names[i] = slice_of(letters[letter], (size_t)len);
        at += (size_t)snprintf(text + at, 64 - at, "/%s", letters[letter]);
    }
}

static void random_round(unsigned names_in_use)
{
    struct entry *e = NULL;
    model_count = 0;
    for (int step = 0; step < 200; step++) {
        struct slice names[NAMES_MAX];
        unsigned depth;
        char text[64], value[16];
        random_path(names_in_use, names, &depth, text);
        snprintf(value, sizeof(value), "v%d", step);
        struct slice content = slice_cstr(value);
        struct nested_leaf leaf = string_leaf(&content);
        enum nested_set expected = model_set(text, value);
        if (!e) {
            e = nested_create(SLICE("key"), names, depth, &leaf);
            continue;
        }
        struct entry *replaced;
        assert_int_equal(nested_set(e, names, depth, &leaf, &replaced), expected);
        assert_int_equal(replaced != NULL, expected == NESTED_REPLACED);
        if (replaced) {
            nested_check(replaced);
            entry_destroy(&replaced);
        }
        if (step % 20 == 0) {
            assert_same_as_model(e);
        }
    }
    assert_same_as_model(e);
    struct entry *twin = entry_copy(e, SLICE("twin"), ENTRY_NO_EXPIRY);
    assert_same_as_model(twin);
    assert_same_digest(e, twin, true);
    assert_int_equal(nested_ops.memory(e, 0), nested_ops.memory(twin, 0));
    assert_int_equal(nested_ops.free_effort(e), nested_ops.free_effort(twin));
    entry_destroy(&e);
    assert_same_as_model(twin);
    entry_destroy(&twin);
}

static void test_against_model(void **state)
{
    (void)state;
    for (int round = 0; round < 60; round++) {
        random_round(2 + (unsigned)round % 39);
    }
}

static void test_root_leaf(void **state)
{
    (void)state;
    struct slice one = SLICE("one"), names[] = {SLICE("a")};
    struct nested_leaf leaf = string_leaf(&one);
    struct entry *replaced, *e = nested_create(SLICE("k"), NULL, 0, &leaf);
    nested_check(e);
    assert_int_equal(nested_set(e, names, 1, &leaf, &replaced), NESTED_BLOCKED);
    assert_null(replaced);
    assert_int_equal(nested_set(e, NULL, 0, &leaf, &replaced), NESTED_REPLACED);
    entry_destroy(&replaced);
    assert_null(nested_find(e, names, 1));
    assert_int_equal(nested_kind(nested_find(e, NULL, 0)), NESTED_STRING);
    entry_destroy(&e);
}

static void test_lists(void **state)
{
    (void)state;
    struct slice strings[] = {SLICE("x"), SLICE(""), SLICE("a\0b")};
    struct slice names[] = {SLICE("n")};
    struct nested_leaf list = {.kind = NESTED_LIST, .strings = strings, .count = 3};
    struct entry *e = nested_create(SLICE("k"), names, 1, &list);
    const struct nested_node *n = nested_find(e, names, 1);
    size_t offset = 0;
    nested_check(e);
    assert_int_equal(nested_kind(n), NESTED_LIST);
    assert_int_equal(nested_count(n), 3);
    for (int i = 0; i < 3; i++) {
        assert_true(slice_equal(nested_string_at(n, &offset), strings[i]));
    }
    /* One string is not the list of it. */
    struct nested_leaf single = {.kind = NESTED_LIST, .strings = strings, .count = 1};
    struct nested_leaf string = string_leaf(strings);
    struct entry *a = nested_create(SLICE("k"), names, 1, &single);
    struct entry *b = nested_create(SLICE("k"), names, 1, &string);
    assert_same_digest(a, b, false);
    entry_destroy(&a);
    entry_destroy(&b);
    entry_destroy(&e);
}

/* As deep as it goes, with a fork at every level; all operations take it. */
static void test_depth(void **state)
{
    (void)state;
    struct slice names[NESTED_MAX_DEPTH], value = SLICE("v"), fork = SLICE("fork");
    struct nested_leaf leaf = string_leaf(&value);
    struct entry *replaced;
    for (int i = 0; i < NESTED_MAX_DEPTH; i++) {
        names[i] = SLICE("n");
    }
    struct entry *e = nested_create(SLICE("k"), names, NESTED_MAX_DEPTH, &leaf);
    for (int i = 0; i < NESTED_MAX_DEPTH; i++) {
        names[i] = fork;
        assert_int_equal(nested_set(e, names, (unsigned)i + 1, &leaf, &replaced), NESTED_ADDED);
        names[i] = SLICE("n");
    }
    nested_check(e);
    assert_int_equal(nested_ops.free_effort(e), 2 * (1 + 2 * NESTED_MAX_DEPTH));
    struct entry *twin = entry_copy(e, SLICE("k"), ENTRY_NO_EXPIRY);
    nested_check(twin);
    assert_same_digest(e, twin, true);
    assert_int_equal(nested_set(e, names, 1, &leaf, &replaced), NESTED_REPLACED);
    nested_check(replaced);
    nested_check(e);
    assert_int_equal(nested_ops.free_effort(e), 2 * 3);
    assert_same_digest(e, twin, false);
    entry_destroy(&replaced);
    entry_destroy(&e);
    entry_destroy(&twin);
}

/* A wide map, in two orders: equal digests, and every name is found. */
static void test_width(void **state)
{
    (void)state;
    enum { WIDE = 5000 };
    struct entry *up = NULL, *down = NULL, *replaced;
    for (int i = 0; i < WIDE; i++) {
        char a[16], b[16];
        struct slice x = slice_of(a, (size_t)snprintf(a, sizeof(a), "%d", i));
        struct slice y = slice_of(b, (size_t)snprintf(b, sizeof(b), "%d", WIDE - 1 - i));
        struct nested_leaf leaf_x = string_leaf(&x), leaf_y = string_leaf(&y);
        if (i == 0) {
            up = nested_create(SLICE("k"), &x, 1, &leaf_x);
            down = nested_create(SLICE("k"), &y, 1, &leaf_y);
        } else {
            assert_int_equal(nested_set(up, &x, 1, &leaf_x, &replaced), NESTED_ADDED);
            assert_int_equal(nested_set(down, &y, 1, &leaf_y, &replaced), NESTED_ADDED);
        }
    }
    nested_check(up);
    nested_check(down);
    assert_same_digest(up, down, true);
    struct slice some = SLICE("1234"), other = SLICE("other");
    struct nested_leaf leaf = string_leaf(&other);
    assert_int_equal(nested_set(up, &some, 1, &leaf, &replaced), NESTED_REPLACED);
    nested_check(up);
    assert_same_digest(up, down, false);
    entry_destroy(&replaced);
    size_t all = nested_ops.memory(down, 0), part = nested_ops.memory(down, 100);
    assert_true(part > all / 2 && part < all * 2);
    entry_destroy(&up);
    entry_destroy(&down);
}

static int setup(void **state)
{
    (void)state;
    hash_set_secret(1);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_model), cmocka_unit_test(test_root_leaf),
        cmocka_unit_test(test_lists),         cmocka_unit_test(test_depth),
        cmocka_unit_test(test_width),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
