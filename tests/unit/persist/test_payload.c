/* Payloads: what is checked is kept for who reads it, once, under the same key, until it is
 * dropped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "persist/payload.h"
#include "value/string.h"

#include <string.h>

static struct buf payload_of(const char *text)
{
    struct buf out = {0};
    struct entry *e = string_create(SLICE("k"), slice_cstr(text), ENTRY_NO_EXPIRY);
    payload_write(&out, e);
    entry_destroy(&e);
    return out;
}

/* What a read says of it when its bytes have been spoiled since the check: fine where the value
 * was kept. */
static enum payload_read read_spoiled(struct buf *payload, const char *key)
{
    struct entry *e;
    payload->data[payload->len - 1] ^= 1;
    enum payload_read outcome = payload_read(buf_slice(payload), slice_cstr(key), &e);
    payload->data[payload->len - 1] ^= 1;
    if (e) {
        assert_true(slice_equal(entry_key(e), slice_cstr(key)));
        entry_destroy(&e);
    }
    return outcome;
}

static void test_kept_once(void **state)
{
    (void)state;
    struct buf one = payload_of("some text"), other = payload_of("another text");
    assert_int_equal(read_spoiled(&one, "k"), PAYLOAD_FOREIGN);
    assert_true(payload_check(buf_slice(&one), SLICE("k")));
    assert_int_equal(read_spoiled(&one, "another"), PAYLOAD_FOREIGN);
    assert_int_equal(read_spoiled(&other, "k"), PAYLOAD_FOREIGN);
    assert_int_equal(read_spoiled(&one, "k"), PAYLOAD_FINE);
    assert_int_equal(read_spoiled(&one, "k"), PAYLOAD_FOREIGN);
    buf_deinit(&one);
    buf_deinit(&other);
}

static void test_the_first_is_kept(void **state)
{
    (void)state;
    struct buf one = payload_of("some text"), other = payload_of("another text");
    for (int i = 0; i < 2; i++) {
        assert_true(payload_check(buf_slice(&one), SLICE("k")));
        assert_true(payload_check(buf_slice(&other), SLICE("k")));
    }
    assert_int_equal(read_spoiled(&other, "k"), PAYLOAD_FOREIGN);
    assert_int_equal(read_spoiled(&one, "k"), PAYLOAD_FINE);
    buf_deinit(&one);
    buf_deinit(&other);
}

static void test_dropped(void **state)
{
    (void)state;
    struct buf one = payload_of("some text");
    payload_drop();
    assert_true(payload_check(buf_slice(&one), SLICE("k")));
    payload_drop();
    assert_int_equal(read_spoiled(&one, "k"), PAYLOAD_FOREIGN);
    assert_false(payload_check(slice_of(one.data, one.len - 1), SLICE("k")));
    assert_false(payload_check(slice_of(one.data, 3), SLICE("k")));
    payload_drop();
    buf_deinit(&one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kept_once),
        cmocka_unit_test(test_the_first_is_kept),
        cmocka_unit_test(test_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
