/* The manifest's text: cut anywhere, or with any bit another, it is refused or says the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/mem.h"
#include "persist/aof_manifest.h"

#include <string.h>

static void format_sample(struct buf *text)
{
    struct aof_manifest m = {0};
    aof_manifest_add(&m, SLICE("appendonly.aof.3.base.rdb"), 3, AOF_BASE);
    aof_manifest_add(&m, SLICE("appendonly.aof.2.incr.aof"), 2, AOF_INCREMENT);
    aof_manifest_add(&m, SLICE("appendonly.aof.3.incr.aof"), 3, AOF_INCREMENT);
    aof_manifest_add(&m, SLICE("appendonly.aof.1.incr.aof"), 1, AOF_HISTORY);
    aof_manifest_format(&m, text);
    aof_manifest_deinit(&m);
}

/* Whether the bytes are taken; if so they have to say what the whole text says. */
static bool is_taken(struct slice bytes, const struct buf *whole)
{
    struct aof_manifest m = {0};
    struct buf again = {0};
    const char *error = NULL;
    int line = -1;
    bool taken = aof_manifest_parse(&m, bytes, &error, &line);
    if (taken) {
        aof_manifest_format(&m, &again);
        assert_true(slice_equal(buf_slice(&again), buf_slice(whole)));
    } else {
        assert_non_null(error);
        assert_true(line >= 0);
        assert_int_equal(m.count, 0);
    }
    aof_manifest_deinit(&m);
    buf_deinit(&again);
    return taken;
}

static void test_cut_at_each_byte(void **state)
{
    (void)state;
    struct buf text = {0};
    format_sample(&text);
    for (size_t len = 0; len < text.len; len++) {
        /* Memory of its own, so that a sanitizer sees a look behind the end. */
        char *bytes = mem_dup(text.data, len);
        assert_false(is_taken(slice_of(bytes, len), &text));
        mem_free(bytes);
    }
    assert_true(is_taken(buf_slice(&text), &text));
    buf_deinit(&text);
}

static void test_each_bit_flipped(void **state)
{
    (void)state;
    struct buf text = {0};
    size_t taken = 0, first_line;
    format_sample(&text);
    first_line = strcspn(buf_cstr(&text), "\n");
    for (size_t i = 0; i < text.len * 8; i++) {
        text.data[i / 8] ^= (char)(1 << i % 8);
        char *bytes = mem_dup(text.data, text.len);
        text.data[i / 8] ^= (char)(1 << i % 8);
        if (is_taken(slice_of(bytes, text.len), &text)) {
            taken++;
            assert_true(i / 8 < first_line); /* the word before the checksum */
        }
        mem_free(bytes);
    }
    assert_true(taken < 8 * strlen("# crc64 "));
    buf_deinit(&text);
}

static void test_without_a_checksum(void **state)
{
    (void)state;
    struct buf text = {0};
    format_sample(&text);
    size_t first_line = strcspn(buf_cstr(&text), "\n") + 1;
    assert_true(is_taken(slice_of(text.data + first_line, text.len - first_line), &text));
    buf_deinit(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cut_at_each_byte),
        cmocka_unit_test(test_each_bit_flipped),
        cmocka_unit_test(test_without_a_checksum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
