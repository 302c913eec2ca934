/* base/field: lines of INFO beside what printf makes of the same values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/field.h"

#include <math.h>
#include <stdio.h>

static void check(struct buf *out, const char *expected)
{
    assert_string_equal(buf_cstr(out), expected);
    buf_clear(out);
}

static void test_lines(void **state)
{
    (void)state;
    struct buf out = {0};
    field_text(&out, "name", "text");
    field_u64(&out, "most", UINT64_MAX);
    field_i64(&out, "least", INT64_MIN);
    field_fixed(&out, "ratio", 1.0 / 3, 2);
    check(&out, "name:text\r\nmost:18446744073709551615\r\nleast:-9223372036854775808\r\n"
                "ratio:0.33\r\n");
    field_part_text(&out, "a", "=");
    field_part_i64(&out, "", -1);
    field_part_u64(&out, ",b=", 2);
    field_part_fixed(&out, ",c=", 0, 3);
    check(&out, "a=-1,b=2,c=0.000");
    buf_deinit(&out);
}

static void test_fixed(void **state)
{
    (void)state;
    static const double values[] = {0,    0.004, 0.006, -0.26, 1,   99.999,  123456.789,
                                    1e15, -3e9,  1e18,  1e300, 0.1, 7.0 / 8, INFINITY};
    struct buf out = {0};
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        for (unsigned decimals = 0; decimals <= 6; decimals += decimals ? 2 : 1) {
            char expected[400];
            if (fmod(fabs(values[i]) * pow(10, decimals), 1) == 0.5) {
                continue; /* printf rounds halves to even */
            }
            snprintf(expected, sizeof(expected), "%.*f", (int)decimals, values[i]);
            field_part_fixed(&out, "", values[i], decimals);
            check(&out, expected);
        }
    }
    buf_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_fixed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
