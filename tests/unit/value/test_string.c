/* Strings and blobs: value/string.h, value/blob.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/mem.h"
#include "base/thread.h"
#include "value/string.h"

#include <stdio.h>
#include <string.h>

static char bytes[100000];

static int fill_bytes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (char)(i * 31 + i / 253 + 1);
    }
    return 0;
}

static void assert_content(const struct entry *e, const char *expected, size_t len)
{
    char scratch[STRING_VIEW_BYTES];
    struct slice view = string_view(e, scratch);
    assert_int_equal(view.len, len);
    assert_int_equal(string_len(e), len);
    assert_memory_equal(view.ptr, expected, len);
}

static struct entry *create(const char *text)
{
    return string_create(SLICE("key"), slice_cstr(text), ENTRY_NO_EXPIRY);
}

static const char *encoding_name(const struct entry *e)
{
    return string_ops.encoding(e);
}

/* ---- encodings ---- */

static void test_integers_are_encoded_only_when_canonical(void **state)
{
    (void)state;
    static const char *const integers[] = {
        "0", "1", "-1", "10", "9223372036854775807", "-9223372036854775808"};
    static const char *const others[] = {"",
                                         "-",
                                         "-0",
                                         "00",
                                         "01",
                                         "+1",
                                         " 1",
                                         "1 ",
                                         "1.0",
                                         "0x10",
                                         "9223372036854775808",
                                         "-9223372036854775809",
                                         "123456789012345678901",
                                         "1a",
                                         "1e3"};
    for (size_t i = 0; i < sizeof(integers) / sizeof(integers[0]); i++) {
        struct entry *e = create(integers[i]);
        int64_t number;
        assert_int_equal(entry_encoding(e), ENCODING_INTEGER);
        assert_string_equal(encoding_name(e), "int");
        assert_content(e, integers[i], strlen(integers[i]));
        assert_true(string_get_integer(e, &number));
        assert_true(number == entry_integer(e));
        entry_destroy(&e);
    }
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        struct entry *e = create(others[i]);
        int64_t number = 77;
        assert_int_equal(entry_encoding(e), ENCODING_EMBEDDED);
        assert_content(e, others[i], strlen(others[i]));
        assert_false(string_get_integer(e, &number));
        assert_true(number == 77);
        entry_destroy(&e);
    }
}

static void test_names_of_encodings(void **state)
{
    (void)state;
    struct entry *e = string_create(SLICE("k"), slice_of(bytes, 44), ENTRY_NO_EXPIRY);
    assert_string_equal(encoding_name(e), "embstr");
    entry_destroy(&e);
    e = string_create(SLICE("k"), slice_of(bytes, 45), ENTRY_NO_EXPIRY);
    assert_string_equal(encoding_name(e), "raw");
    entry_destroy(&e);
    e = string_create(SLICE("k"), slice_of(bytes, 5000), ENTRY_NO_EXPIRY);
    assert_string_equal(encoding_name(e), "raw");
    entry_destroy(&e);
    e = create("123");
    assert_non_null(string_make_writable(&e, 3));
    assert_string_equal(encoding_name(e), "raw");
    int64_t number;
    assert_true(string_get_integer(e, &number));
    assert_true(number == 123);
    entry_destroy(&e);
}

static void test_long_strings_are_in_a_blob(void **state)
{
    (void)state;
    struct entry *e = string_create(SLICE("k"), slice_of(bytes, ENTRY_EMBEDDED_MAX), 5);
    assert_null(string_blob(e));
    entry_destroy(&e);
    e = string_create(SLICE("k"), slice_of(bytes, ENTRY_EMBEDDED_MAX + 1), 5);
    assert_non_null(string_blob(e));
    assert_content(e, bytes, ENTRY_EMBEDDED_MAX + 1);
    int64_t number;
    assert_false(string_get_integer(e, &number));
    entry_destroy(&e);
}

static void test_inline_view(void **state)
{
    (void)state;
    struct slice view = slice_of("untouched", 9);
    struct entry *e = create("12");
    assert_false(string_inline_view(e, &view));
    entry_destroy(&e);
    e = string_create(SLICE("k"), slice_of(bytes, ENTRY_EMBEDDED_MAX + 1), ENTRY_NO_EXPIRY);
    assert_false(string_inline_view(e, &view));
    assert_int_equal(view.len, 9);
    entry_destroy(&e);
    e = string_create(slice_of(bytes, 300), slice_of(bytes + 7, ENTRY_EMBEDDED_MAX), 5);
    assert_true(string_inline_view(e, &view));
    assert_int_equal(view.len, ENTRY_EMBEDDED_MAX);
    assert_memory_equal(view.ptr, bytes + 7, view.len);
    entry_destroy(&e);
}

static void test_from_a_blob(void **state)
{
    (void)state;
    /* Long: the very blob. Short, or a number: its best encoding, and the reference is given back.
     */
    struct blob *blob = blob_create_copy(slice_of(bytes, 2000));
    struct blob *mine = blob_acquire(blob);
    struct entry *e = string_create_blob(SLICE("k"), blob, 7);
    assert_ptr_equal(string_blob(e), mine);
    assert_true(entry_expiry_ms(e) == 7);
    assert_false(blob_is_exclusive(mine));
    entry_destroy(&e);
    assert_true(blob_is_exclusive(mine));
    blob_release(&mine);

    blob = blob_create_copy(SLICE("12345"));
    mine = blob_acquire(blob);
    e = string_create_blob(SLICE("k"), blob, ENTRY_NO_EXPIRY);
    assert_int_equal(entry_encoding(e), ENCODING_INTEGER);
    assert_true(blob_is_exclusive(mine));
    blob_release(&mine);
    entry_destroy(&e);
}

/* ---- writing in place ---- */

/* The model: the string as an array. */
static void write_and_compare(struct entry **e, char *model, size_t *model_len, size_t len,
                              char mark)
{
    char *at = string_make_writable(e, len);
    assert_non_null(at);
    if (len > *model_len) {
        memset(model + *model_len, 0, len - *model_len);
    }
    *model_len = len;
    assert_content(*e, model, len);
    if (len > 0) {
        at[len - 1] = model[len - 1] = mark;
        at[len / 2] = model[len / 2] = (char)(mark + 1);
    }
    assert_content(*e, model, len);
    assert_true((*e)->flags & ENTRY_RAW);
    assert_int_equal(entry_clock(*e), 0x4242);
    assert_true(entry_expiry_ms(*e) == 31);
    assert_memory_equal(entry_key(*e).ptr, "key", 3);
}

static void test_writable_grows_and_shrinks(void **state)
{
    (void)state;
    static char model[sizeof(bytes)];
    static const char *const starts[] = {"", "12", "-9223372036854775808", "some text"};
    static const size_t lengths[] = {0,    1,    40,   41,   44, 45, 3,  100,   1023,  1024, 1000,
                                     1025, 5000, 5001, 1024, 10, 0,  64, 70000, 90000, 2,    1100};
    for (size_t s = 0; s < sizeof(starts) / sizeof(starts[0]); s++) {
        size_t model_len = strlen(starts[s]);
        memcpy(model, starts[s], model_len);
        struct entry *e = string_create(SLICE("key"), slice_cstr(starts[s]), 31);
        entry_set_clock(e, 0x4242);
        for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
            write_and_compare(&e, model, &model_len, lengths[i], (char)('a' + i));
        }
        entry_destroy(&e);
    }
}

/* Appending a byte at a time does not copy everything each time. */
static void test_appending_moves_seldom(void **state)
{
    (void)state;
    struct entry *e = create("");
    const void *before = NULL;
    int moves = 0;
    for (size_t len = 1; len <= 60000; len++) {
        char *at = string_make_writable(&e, len);
        assert_non_null(at);
        at[len - 1] = bytes[len - 1];
        if (len > ENTRY_EMBEDDED_MAX && string_blob(e)->capacity != (size_t)before) {
            before = (const void *)string_blob(e)->capacity;
            moves++;
        }
    }
    assert_content(e, bytes, 60000);
    assert_true(moves < 30);
    entry_destroy(&e);
}

/* A reply, or a copy of the key, still holds the old bytes. */
static void test_a_shared_blob_is_copied_before_writing(void **state)
{
    (void)state;
    static const size_t lengths[] = {1000, 2000, 3000, 0};
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        struct entry *e = string_create(SLICE("k"), slice_of(bytes, 2000), ENTRY_NO_EXPIRY);
        struct blob *held = blob_acquire(string_blob(e));
        struct entry *copy = entry_copy(e, SLICE("c"), ENTRY_NO_EXPIRY);
        char *at = string_make_writable(&e, lengths[i]);
        assert_non_null(at);
        assert_ptr_not_equal(string_blob(e), held);
        memset(at, 'x', lengths[i]);
        assert_int_equal(held->len, 2000);
        assert_memory_equal(held->bytes, bytes, 2000);
        assert_content(copy, bytes, 2000);
        entry_destroy(&e);
        entry_destroy(&copy);
        assert_true(blob_is_exclusive(held));
        blob_release(&held);
    }
}

/* Without memory the string stays as it was, and may be written later. */
static void test_writable_without_memory(void **state)
{
    (void)state;
    static const size_t old_lengths[] = {10, 2000};
    for (size_t i = 0; i < 2; i++) {
        for (int shared = 0; shared < 2; shared++) {
            struct entry *e =
                string_create(SLICE("k"), slice_of(bytes, old_lengths[i]), ENTRY_NO_EXPIRY);
            struct entry *copy = shared ? entry_copy(e, SLICE("c"), 1) : NULL;
            mem_fail_after(1);
            assert_null(string_make_writable(&e, 5000));
            mem_fail_after(0);
            assert_content(e, bytes, old_lengths[i]);
            assert_null(string_make_writable(&e, (size_t)1 << 50));
            assert_content(e, bytes, old_lengths[i]);
            assert_non_null(string_make_writable(&e, 5000));
            entry_destroy(&e);
            entry_destroy(&copy);
        }
    }
}

/* A string is lengthened, cut and overwritten at random while the allocator refuses at random: it
 * is what the model says after each step, whether that succeeded or not. */
static void test_changes_without_memory_as_model(void **state)
{
    (void)state;
    static char model[70000];
    struct entry *e = string_create(SLICE("k"), SLICE("start"), ENTRY_NO_EXPIRY), *copy = NULL;
    size_t len = 5;
    unsigned refused = 0;
    uint32_t random = 12345;
    memcpy(model, "start", len);
    for (unsigned i = 0; i < 3000; i++) {
        random = random * 1664525u + 1013904223u;
        size_t wanted = random >> 8 & 1 ? (random >> 16) % 3000 : (random >> 9) % sizeof(model);
        bool refuse = (random >> 5 & 3) == 0;
        if (i % 7 == 0) {
            /* A blob that is shared must be replaced. */
            entry_destroy(&copy);
            copy = entry_copy(e, SLICE("c"), ENTRY_NO_EXPIRY);
        }
        mem_fail_after(refuse ? 1 : 0);
        char *at = string_make_writable(&e, wanted);
        mem_fail_after(0);
        refused += at == NULL;
        assert_true(at || refuse);
        if (at) {
            memset(model + (wanted < len ? wanted : len), 0, wanted < len ? 0 : wanted - len);
            len = wanted;
            if (len > 0) {
                model[i % len] = at[i % len] = (char)i;
            }
        }
        assert_content(e, model, len);
    }
    assert_true(refused > 50);
    entry_destroy(&copy);
    entry_destroy(&e);
}

/* ---- the other operations ---- */

static void test_digest_is_of_the_content(void **state)
{
    (void)state;
    /* printf 123 | sha1sum */
    static const char expected[] = "40bd001563085fc35165329ea1ff5c5ecbdbbeef";
    struct entry *integer = create("123"), *raw = create("123");
    assert_non_null(string_make_writable(&raw, 3));
    const struct entry *both[] = {integer, raw};
    for (int i = 0; i < 2; i++) {
        uint8_t sum[20];
        char text[41];
        string_ops.digest(both[i], sum);
        for (int k = 0; k < 20; k++) {
            snprintf(text + 2 * k, 3, "%02x", sum[k]);
        }
        assert_string_equal(text, expected);
    }
    entry_destroy(&integer);
    entry_destroy(&raw);
}

/* ---- blobs ---- */

static void test_blob_basics(void **state)
{
    (void)state;
    struct blob *b = blob_try_create(100);
    assert_non_null(b);
    assert_int_equal(b->len, 0);
    assert_true(b->capacity >= 100);
    memcpy(b->bytes, bytes, 100);
    b->len = 100;
    b = blob_try_grow(b, 50);
    assert_int_equal(b->len, 100);
    b = blob_try_grow(b, 5000);
    assert_non_null(b);
    assert_true(b->capacity >= 5000);
    assert_memory_equal(b->bytes, bytes, 100);
    assert_null(blob_try_grow(b, SIZE_MAX - 10));
    b = blob_try_reserve(b, 100); /* also down to what it holds */
    assert_non_null(b);
    assert_int_equal(b->capacity, 100);
    assert_memory_equal(b->bytes, bytes, 100);
    b = blob_try_reserve(b, 300);
    assert_int_equal(b->capacity, 300);
    assert_null(blob_try_create(SIZE_MAX - 10));
    assert_true(blob_is_exclusive(b));
    struct blob *other = blob_acquire(b);
    assert_false(blob_is_exclusive(b));
    blob_release(&other);
    assert_null(other);
    assert_true(blob_is_exclusive(b));
    blob_release(&b);
    blob_release(&b); /* NULL is fine */
    b = blob_create_copy(slice_of(bytes, 0));
    assert_int_equal(blob_slice(b).len, 0);
    blob_release(&b);
}

#define SHARERS 4
#define SHARED_BLOBS 3000

struct sharer {
    struct blob **blobs;
    uint64_t sum;
};

/* Reads each blob, takes and gives back further references, and drops its own; whoever is last
 * frees. */
static void *share(void *arg)
{
    struct sharer *s = arg;
    thread_enter("sharer");
    for (int i = 0; i < SHARED_BLOBS; i++) {
        struct blob *b = s->blobs[i];
        struct blob *more = blob_acquire(b);
        s->sum += (unsigned char)more->bytes[i % 20];
        blob_release(&more);
        if (blob_is_exclusive(b)) {
            b->bytes[0] = 'w'; /* nobody else can see it any more */
        }
        blob_release(&b);
    }
    thread_leave();
    return NULL;
}

static void test_blobs_are_counted_across_threads(void **state)
{
    (void)state;
    static struct blob *blobs[SHARED_BLOBS];
    struct sharer sharers[SHARERS];
    pthread_t threads[SHARERS];
    uint64_t expected = 0;
    for (int i = 0; i < SHARED_BLOBS; i++) {
        blobs[i] = blob_create_copy(slice_of(bytes + 1, 20));
        expected += (unsigned char)blobs[i]->bytes[i % 20];
        for (int k = 1; k < SHARERS; k++) {
            blob_acquire(blobs[i]);
        }
    }
    for (int i = 0; i < SHARERS; i++) {
        sharers[i] = (struct sharer){blobs, 0};
        assert_int_equal(thread_start(&threads[i], share, &sharers[i]), 0);
    }
    for (int i = 0; i < SHARERS; i++) {
        pthread_join(threads[i], NULL);
        /* Only the last owner wrote, after its own read. */
        assert_int_equal(sharers[i].sum, expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_integers_are_encoded_only_when_canonical),
        cmocka_unit_test(test_names_of_encodings),
        cmocka_unit_test(test_long_strings_are_in_a_blob),
        cmocka_unit_test(test_inline_view),
        cmocka_unit_test(test_from_a_blob),
        cmocka_unit_test(test_writable_grows_and_shrinks),
        cmocka_unit_test(test_appending_moves_seldom),
        cmocka_unit_test(test_a_shared_blob_is_copied_before_writing),
        cmocka_unit_test(test_writable_without_memory),
        cmocka_unit_test(test_changes_without_memory_as_model),
        cmocka_unit_test(test_digest_is_of_the_content),
        cmocka_unit_test(test_blob_basics),
        cmocka_unit_test(test_blobs_are_counted_across_threads),
    };
    return cmocka_run_group_tests(tests, fill_bytes, NULL);
}
