/* Checksums: base/crc.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/crc.h"
#include "base/rand.h"

#include <string.h>

static void test_check_values(void **state)
{
    (void)state;
    assert_true(crc64(0, "123456789", 9) == 0xe9c6d914c4b8d9caULL);
    assert_true(crc64(0, "", 0) == 0);
    assert_int_equal(crc16("123456789", 9), 0x31c3);
    assert_int_equal(crc16("", 0), 0);
    /* CLUSTER KEYSLOT foo on the oracle says 12182. */
    assert_int_equal(crc16("foo", 3) & 16383, 12182);
}

/* One bit at a time, straight from the definition. */
static uint64_t bitwise_crc64(const unsigned char *p, size_t len)
{
    uint64_t crc = 0;
    for (size_t i = 0; i < len; i++) {
        for (int bit = 0; bit < 8; bit++) {
            uint64_t carry = (crc >> 63) ^ ((p[i] >> bit) & 1);
            crc = (crc << 1) ^ (carry ? 0xad93d23594c935a9ULL : 0);
        }
    }
    uint64_t reflected = 0;
    for (int bit = 0; bit < 64; bit++) {
        reflected |= ((crc >> bit) & 1) << (63 - bit);
    }
    return reflected;
}

static void test_any_length_and_cut_gives_the_same(void **state)
{
    (void)state;
    unsigned char bytes[80];
    rand_secret(bytes, sizeof(bytes));
    for (size_t len = 0; len <= sizeof(bytes); len++) {
        uint64_t whole = crc64(0, bytes, len);
        assert_true(whole == bitwise_crc64(bytes, len));
        for (size_t cut = 0; cut <= len; cut++) {
            assert_true(crc64(crc64(0, bytes, cut), bytes + cut, len - cut) == whole);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_check_values),
        cmocka_unit_test(test_any_length_and_cut_gives_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
