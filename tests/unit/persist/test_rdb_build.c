/* Values that files and payloads build while there is little memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/hash.h"
#include "base/mem.h"
#include "persist/rdb_build.h"

#include <string.h>

#define LARGE_BYTES ((size_t)2 << 20)

/* A member that is not to be had ends it: there is no sorted set without it. */
static void test_a_large_member_without_memory(void **state)
{
    struct rdb_build b;
    (void)state;
    char *large = mem_alloc(LARGE_BYTES);
    memset(large, 'x', LARGE_BYTES);
    hash_set_secret(1);
    rdb_build_begin(&b, VALUE_ZSET, SLICE("key"), 2);
    assert_true(rdb_build_add_scored(&b, SLICE("small"), 1));
    mem_fail_above(LARGE_BYTES / 2);
    assert_false(rdb_build_add_scored(&b, slice_of(large, LARGE_BYTES), 2));
    mem_fail_above(SIZE_MAX);
    rdb_build_drop(&b);
    mem_free(large);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_large_member_without_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
