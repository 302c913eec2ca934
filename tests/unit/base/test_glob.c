/* The glob matcher: base/glob.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/glob.h"
#include "base/rand.h"

#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static bool matches(const char *pattern, const char *text)
{
    return glob_match(slice_cstr(pattern), slice_cstr(text), false);
}

static bool matches_nocase(const char *pattern, const char *text)
{
    return glob_match(slice_cstr(pattern), slice_cstr(text), true);
}

static void test_well_formed_patterns(void **state)
{
    (void)state;
    assert_true(matches("", ""));
    assert_true(matches("*", "anything"));
    assert_true(matches("a*c", "abbbc"));
    assert_true(matches("a*c", "ac"));
    assert_true(matches("a**", "a"));
    assert_true(matches("*a*b*", "xxaxxbxx"));
    assert_true(matches("h?llo", "hello"));
    assert_true(matches("h[ae]llo", "hallo"));
    assert_true(matches("h[^e]llo", "hallo"));
    assert_true(matches("h[a-c]llo", "hbllo"));
    assert_true(matches("a\\*b", "a*b"));
    assert_true(matches("*aab", "aaaab"));
    assert_true(matches("*ab*ab", "abab"));
    assert_false(matches("", "a"));
    assert_false(matches("a", ""));
    assert_false(matches("h?llo", "hllo"));
    assert_false(matches("h[^e]llo", "hello"));
    assert_false(matches("a\\*b", "axb"));
    assert_false(matches("a*c", "abcd"));
    assert_false(matches("*ab*ab", "xab"));
    assert_false(matches("a*a", "a"));
    assert_true(glob_match(slice_of("a\0*", 3), slice_of("a\0b", 3), false));
    assert_false(glob_match(slice_of("a\0*", 3), slice_of("axb", 3), false));
}

/* Each row was asked of redis-server 7.0.15 with KEYS over one-byte keys. */
static void test_malformed_patterns_as_redis_reads_them(void **state)
{
    (void)state;
    static const char keys[] = "a]^[\\-bA_";
    static const struct {
        const char *pattern, *found;
    } rows[] = {
        {"[", ""},
        {"[^", "a]^[\\-bA_"},
        {"[]", ""},
        {"[^]", "a]^[\\-bA_"},
        {"[a", "a"},
        {"[^a", "]^[\\-bA_"},
        {"[a-", "a-"},
        {"[a-]", "a]^_"},
        {"[a-]b", "a]^b_"},
        {"[]-a]", ""},
        {"\\", "\\"},
        {"\\\\", "\\"},
        {"[\\]", "]"},
        {"[\\]]", "]"},
        {"[\\", "\\"},
        {"[b-a]", "ab"},
        {"[^^]", "a][\\-bA_"},
        {"[a^]", "a^"},
        {"*[", ""},
        {"*[^", "a]^[\\-bA_"},
        {"[\\a-b]", "-ab"},
        {"[a-\\]]", ""},
        {"a[", ""},
        {"a*[", ""},
        {"a\\", ""},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        for (const char *key = keys; *key != '\0'; key++) {
            bool expected = strchr(rows[i].found, *key) != NULL;
            assert_true(glob_match(slice_cstr(rows[i].pattern), slice_of(key, 1), false) ==
                        expected);
        }
    }
    /* Stars want a text, as PSUBSCRIBE * and the empty channel show. */
    assert_false(matches("*", ""));
    assert_false(matches("**", ""));
    assert_false(matches("?", ""));
}

/* As the oracle: the bytes of a range are signed, so "[a-\xff]" runs from -1 to 'a'. */
static void test_ranges_are_signed(void **state)
{
    (void)state;
    unsigned low = 0, high = 0;
    for (int c = 0; c < 256; c++) {
        char byte = (char)c;
        low += glob_match(slice_cstr("[a-\xff]"), slice_of(&byte, 1), false);
        high += glob_match(slice_cstr("[\xf0-\xff]"), slice_of(&byte, 1), false);
    }
    assert_int_equal(low, 99);
    assert_int_equal(high, 16);
}

/* Asked of the oracle with CONFIG GET, which ignores case. */
static void test_nocase(void **state)
{
    (void)state;
    assert_true(matches_nocase("HZ", "hz"));
    assert_true(matches_nocase("[H]z", "hz"));
    assert_true(matches_nocase("[G-I]z", "hz"));
    assert_true(matches_nocase("[A-z]z", "hz"));
    assert_true(matches_nocase("h[^\\Z]", "hz"));
    assert_true(matches_nocase("*Z", "hz"));
    assert_true(matches_nocase("*H*z", "hz"));
    assert_false(matches_nocase("[\\H]z", "hz"));
    assert_false(matches_nocase("[a-Z]z", "hz"));
    assert_false(matches_nocase("[I-g]z", "hz"));
    assert_false(matches_nocase("h[^Z]", "hz"));
    assert_false(matches("HZ", "hz"));
}

/* The simplest matcher there is, for patterns of letters, * and ?. */
static bool simple_match(const char *p, size_t plen, const char *t, size_t tlen)
{
    if (plen == 0) {
        return tlen == 0;
    }
    if (*p == '*') {
        return simple_match(p + 1, plen - 1, t, tlen) ||
               (tlen > 0 && simple_match(p, plen, t + 1, tlen - 1));
    }
    return tlen > 0 && (*p == '?' || *p == *t) && simple_match(p + 1, plen - 1, t + 1, tlen - 1);
}

static void test_agrees_with_a_simple_matcher(void **state)
{
    (void)state;
    unsigned found = 0;
    for (int i = 0; i < 200000; i++) {
        char pattern[8], text[10];
        size_t plen = rand_below(sizeof(pattern) + 1), tlen = 1 + rand_below(sizeof(text));
        for (size_t j = 0; j < plen; j++) {
            pattern[j] = "ab*?*a"[rand_below(6)];
        }
        for (size_t j = 0; j < tlen; j++) {
            text[j] = "ab"[rand_below(2)];
        }
        bool expected = simple_match(pattern, plen, text, tlen);
        assert_true(glob_match(slice_of(pattern, plen), slice_of(text, tlen), i % 2) == expected);
        assert_false(expected &&
                     glob_begins_otherwise(slice_of(pattern, plen), slice_of(text, tlen)));
        found += expected;
    }
    assert_in_range(found, 1000, 199000);
}

/* What cannot match is told by its beginning: of names with another prefix, and of nothing else. */
static void test_other_beginnings(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *text;
        bool other;
    } rows[] = {{"user:*", "user:1", false},
                {"user:*", "user:", false},
                {"user:*", "user", true},
                {"user:*", "used", true},
                {"*", "anything", false},
                {"?a", "ba", false},
                {"[a]b", "xb", false},
                {"\\*", "*", false},
                {"abc", "abc", false},
                {"abc", "abcd", true},
                {"abc", "ab", true},
                {"", "", false},
                {"", "a", true},
                {"a*", "", true},
                {"A*", "a", true}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_true(glob_begins_otherwise(slice_cstr(rows[i].pattern), slice_cstr(rows[i].text)) ==
                    rows[i].other);
    }
}

/* Patterns that take exponential or quadratic time elsewhere; a hang is the failure. */
static void test_hostile_patterns_end(void **state)
{
    (void)state;
    size_t len = 1 << 20;
    char *pattern = malloc(len), *text = malloc(len);
    memset(text, 'a', len);
    for (size_t i = 0; i < len; i++) {
        pattern[i] = i % 2 ? '*' : 'a';
    }
    pattern[len - 1] = 'b';
    assert_false(glob_match(slice_of(pattern, len), slice_of(text, len), false));
    assert_false(glob_match(slice_of(pattern, len), slice_of(text, len), true));
    memset(pattern, '*', len);
    assert_true(glob_match(slice_of(pattern, len), slice_of(text, len), false));
    memset(pattern, '[', len);
    assert_false(glob_match(slice_of(pattern, len), slice_of(text, len), false));
    /* One long literal segment between two stars. */
    memset(pattern, 'a', len);
    pattern[0] = '*';
    pattern[len / 2] = 'b';
    pattern[len / 2 + 1] = '*';
    assert_false(glob_match(slice_of(pattern, len / 2 + 2), slice_of(text, len), false));
    free(pattern);
    free(text);
}

static void test_literals(void **state)
{
    (void)state;
    assert_true(glob_is_literal(SLICE("")));
    assert_true(glob_is_literal(SLICE("key:{1}-]^")));
    assert_false(glob_is_literal(SLICE("a*")));
    assert_false(glob_is_literal(SLICE("?")));
    assert_false(glob_is_literal(SLICE("a[")));
    assert_false(glob_is_literal(SLICE("a\\")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_well_formed_patterns),
        cmocka_unit_test(test_malformed_patterns_as_redis_reads_them),
        cmocka_unit_test(test_ranges_are_signed),
        cmocka_unit_test(test_nocase),
        cmocka_unit_test(test_agrees_with_a_simple_matcher),
        cmocka_unit_test(test_other_beginnings),
        cmocka_unit_test(test_hostile_patterns_end),
        cmocka_unit_test(test_literals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
