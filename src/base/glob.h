/* Glob patterns of KEYS, SCAN MATCH, PSUBSCRIBE, CONFIG GET: * ? [abc] [^a-z] \x. Pure functions.
 * The matcher is iterative, and its work is bounded by pattern length times text length, whatever
 * the pattern (CVE-2022-36021 class). */
#ifndef BASE_GLOB_H
#define BASE_GLOB_H

#include "base/slice.h"

/* True when the whole of `text` matches `pattern`. With `nocase` ASCII letters match in either
 * case. Semantics of malformed patterns (open class, trailing backslash) are those of Redis 7.2. As
 * there, an empty `text` matches only an empty pattern, not "*": KEYS, SCAN and the like know "*"
 * beforehand. */
bool glob_match(struct slice pattern, struct slice text, bool nocase);
/* True when it cannot match (case counts), for `text` begins otherwise than all that it could
 * match: cheap, and of most names enough. */
static inline bool glob_begins_otherwise(struct slice pattern, struct slice text)
{
    for (size_t i = 0; i < pattern.len; i++) {
        char c = pattern.ptr[i];
        if (c == '*' || c == '?' || c == '[' || c == '\\') {
            return false;
        }
        if (i == text.len || text.ptr[i] != c) {
            return true;
        }
    }
    return text.len != pattern.len;
}

/* True when `pattern` has no special character, so that it can only match itself. */
bool glob_is_literal(struct slice pattern);

#endif
