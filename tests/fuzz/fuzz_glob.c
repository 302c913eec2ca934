/* Glob patterns (base/glob.h) under arbitrary bytes: pattern, a byte 0xff, text. Oracles: a table
 * of all pairs of positions for patterns without classes; a text whose bytes are all escaped
 * matches that text only; a literal pattern matches itself only. */
#include "base/buf.h"
#include "base/glob.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define REFERENCE_MAX 60

static int lower(char c)
{
    return c >= 'A' && c <= 'Z' ? c + 32 : c;
}

static bool same(char a, char b, bool nocase)
{
    return a == b || (nocase && lower(a) == lower(b));
}

/* can[i][k]: the pattern from i on matches the text from k on. */
static bool reference_match(struct slice pattern, struct slice text, bool nocase)
{
    static bool can[REFERENCE_MAX + 2][REFERENCE_MAX + 1];
    if (text.len == 0) {
        return pattern.len == 0;
    }
    for (size_t i = pattern.len + 1; i-- > 0;) {
        for (size_t k = text.len + 1; k-- > 0;) {
            bool more = k < text.len;
            if (i == pattern.len) {
                can[i][k] = !more;
            } else if (pattern.ptr[i] == '*') {
                can[i][k] = can[i + 1][k] || (more && can[i][k + 1]);
            } else if (pattern.ptr[i] == '?') {
                can[i][k] = more && can[i + 1][k + 1];
            } else {
                size_t at = pattern.ptr[i] == '\\' && i + 1 < pattern.len ? i + 1 : i;
                can[i][k] =
                    more && same(pattern.ptr[at], text.ptr[k], nocase) && can[at + 1][k + 1];
            }
        }
    }
    return can[0][0];
}

static void require(bool holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "glob: %s\n", what);
        abort();
    }
}

static void check_escaped(struct slice text, struct slice other)
{
    struct buf escaped = {0};
    for (size_t i = 0; i < text.len; i++) {
        buf_append_char(&escaped, '\\');
        buf_append_char(&escaped, text.ptr[i]);
    }
    require(glob_match(buf_slice(&escaped), text, false), "an escaped text matches itself");
    require(glob_match(buf_slice(&escaped), other, false) == slice_equal(text, other),
            "an escaped text matches nothing else");
    buf_deinit(&escaped);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    const uint8_t *cut = len > 0 ? memchr(bytes, 0xff, len) : NULL;
    if (!cut) {
        return 0;
    }
    struct slice pattern = slice_of((const char *)bytes, (size_t)(cut - bytes));
    struct slice text = slice_of((const char *)cut + 1, len - pattern.len - 1);
    for (int nocase = 0; nocase < 2; nocase++) {
        bool got = glob_match(pattern, text, nocase);
        if (pattern.len <= REFERENCE_MAX && text.len <= REFERENCE_MAX &&
            !memchr(bytes, '[', pattern.len)) {
            require(got == reference_match(pattern, text, nocase), "differs from the reference");
        }
    }
    if (glob_is_literal(pattern)) {
        require(glob_match(pattern, pattern, false), "a literal matches itself");
        require(glob_match(pattern, text, false) == slice_equal(pattern, text),
                "a literal matches itself only");
    }
    check_escaped(text, pattern);
    check_escaped(pattern, text);
    return 0;
}
