/* recent.h: a SHA1 from memory is the one that a digest gives, whichever texts share a place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/hash.h"
#include "script/api.h"
#include "script/recent.h"

#include <stdio.h>
#include <string.h>

/* More than there are places. */
#define TEXTS (RECENT_TEXTS * 4)

static void check(struct slice text)
{
    char expected[RECENT_SHA_CHARS], sha[RECENT_SHA_CHARS];
    api_sha1_hex(text.ptr, text.len, expected);
    for (int i = 0; i < 2; i++) {
        memset(sha, 0, sizeof(sha));
        recent_sha1(text, sha);
        assert_memory_equal(sha, expected, sizeof(sha));
    }
}

static void test_texts_that_share_places(void **state)
{
    char text[32];
    (void)state;
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < TEXTS; i++) {
            int len = snprintf(text, sizeof(text), "return %d", i);
            check(slice_of(text, (size_t)len));
        }
    }
    recent_forget();
    check(SLICE("return 1"));
    recent_forget();
}

static void test_lengths(void **state)
{
    static char text[RECENT_TEXT_MAX_BYTES + 2];
    (void)state;
    memset(text, 'x', sizeof(text));
    check(SLICE(""));
    for (size_t len = RECENT_TEXT_MAX_BYTES - 1; len <= sizeof(text); len++) {
        check(slice_of(text, len));
    }
    text[0] = '\0';
    check(slice_of(text, 7));
    text[5] = 'y';
    check(slice_of(text, 7));
    recent_forget();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts_that_share_places),
        cmocka_unit_test(test_lengths),
    };
    hash_set_secret(1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
