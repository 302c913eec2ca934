/* The glob matcher.
 *
 * A pattern is a row of segments with stars between them. Each element of a segment (a plain byte,
 * an escaped byte, ?, a class) takes exactly one byte of text, so a segment's length in text is
 * known before it is tried: the first segment stands at the text's start, the last one at its end,
 * and each one between is best placed at its leftmost fit. Nothing is ever tried again once it is
 * placed. */
#include "base/glob.h"

#include <assert.h>

struct glob_segment {
    const char *start, *end; /* pattern bytes; end is a star or the pattern's end */
    size_t elements;         /* bytes of text it takes */
    bool literal;            /* plain bytes only */
};

static int glob_fold(int c)
{
    return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c;
}

/* Redis compares the bytes of a range as signed characters, swaps its ends where they are out of
 * order, and folds case only after that. */
static bool glob_in_range(int low, int high, int c, bool nocase)
{
    if (low > high) {
        int swapped = low;
        low = high;
        high = swapped;
    }
    if (nocase) {
        low = glob_fold(low);
        high = glob_fold(high);
        c = glob_fold(c);
    }
    return c >= low && c <= high;
}

/* Matches `c` against the class that opens at `p` and returns where it ends. A class that nobody
 * closes ends with the pattern; "[]" holds nothing and "[^]" everything; an escaped byte never
 * folds case. */
static const char *glob_class(const char *p, const char *end, signed char c, bool nocase, bool *hit)
{
    assert(p < end && *p == '[');
    p++;
    bool negated = p < end && *p == '^';
    if (negated) {
        p++;
    }
    bool found = false;
    while (p < end && *p != ']') {
        if (*p == '\\' && end - p >= 2) {
            found |= (signed char)p[1] == c;
            p += 2;
        } else if (end - p >= 3 && p[1] == '-') {
            found |= glob_in_range((signed char)p[0], (signed char)p[2], c, nocase);
            p += 3;
        } else {
            found |= nocase ? glob_fold((signed char)*p) == glob_fold(c) : (signed char)*p == c;
            p++;
        }
    }
    *hit = found != negated;
    return p < end ? p + 1 : end;
}

/* Matches `c` against the element at `p` and returns where the next one starts. */
static const char *glob_element(const char *p, const char *end, signed char c, bool nocase,
                                bool *hit)
{
    assert(p < end && *p != '*');
    if (*p == '?') {
        *hit = true;
        return p + 1;
    }
    if (*p == '[') {
        return glob_class(p, end, c, nocase, hit);
    }
    if (*p == '\\' && end - p >= 2) {
        p++;
    }
    *hit = nocase ? glob_fold((signed char)*p) == glob_fold(c) : (signed char)*p == c;
    return p + 1;
}

static bool glob_is_special(char c)
{
    return c == '*' || c == '?' || c == '[' || c == '\\';
}

/* Reads the segment that starts at `p`. */
static struct glob_segment glob_read_segment(const char *p, const char *end)
{
    struct glob_segment segment = {.start = p, .elements = 0, .literal = true};
    while (p < end && *p != '*') {
        bool ignored;
        segment.literal &= !glob_is_special(*p);
        p = glob_element(p, end, 0, false, &ignored);
        segment.elements++;
    }
    segment.end = p;
    return segment;
}

/* True when the segment stands at `text`, which has at least segment->elements bytes. */
static bool glob_segment_at(const struct glob_segment *segment, const char *text, bool nocase)
{
    if (segment->literal && !nocase) {
        return memcmp(segment->start, text, segment->elements) == 0;
    }
    const char *p = segment->start;
    bool hit = true;
    while (p < segment->end && hit) {
        p = glob_element(p, segment->end, (signed char)*text++, nocase, &hit);
    }
    return hit;
}

/* Below this many bytes a search from first byte to first byte beats memmem(). */
#define GLOB_SHORT_BYTES 16

/* The leftmost place of a segment of plain bytes in [text, end), or NULL. */
static const char *glob_find_literal(const struct glob_segment *segment, const char *text,
                                     const char *end)
{
    if (segment->elements >= GLOB_SHORT_BYTES) {
        return memmem(text, (size_t)(end - text), segment->start, segment->elements);
    }
    while ((size_t)(end - text) >= segment->elements) {
        size_t places = (size_t)(end - text) - segment->elements + 1;
        text = memchr(text, *segment->start, places);
        if (text == NULL || memcmp(text, segment->start, segment->elements) == 0) {
            return text;
        }
        text++;
    }
    return NULL;
}

/* The leftmost place of the segment in [text, end), or NULL. */
static const char *glob_find_segment(const struct glob_segment *segment, const char *text,
                                     const char *end, bool nocase)
{
    if (segment->literal && !nocase) {
        return glob_find_literal(segment, text, end);
    }
    for (; (size_t)(end - text) >= segment->elements; text++) {
        if (glob_segment_at(segment, text, nocase)) {
            return text;
        }
    }
    return NULL;
}

bool glob_match(struct slice pattern, struct slice text, bool nocase)
{
    if (pattern.len == 0 || text.len == 0) {
        return pattern.len == text.len; /* as in Redis, no star matches an empty text */
    }
    const char *pattern_end = pattern.ptr + pattern.len;
    const char *p = pattern.ptr, *t = text.ptr, *text_end = text.ptr + text.len;
    /* Most texts differ from most patterns in their first bytes. */
    for (; !nocase && p < pattern_end && !glob_is_special(*p); p++, t++) {
        if (t == text_end || *p != *t) {
            return false;
        }
    }
    struct glob_segment segment = glob_read_segment(p, pattern_end);
    if (segment.elements > (size_t)(text_end - t) || !glob_segment_at(&segment, t, nocase)) {
        return false;
    }
    t += segment.elements;
    if (segment.end == pattern_end) {
        return t == text_end;
    }
    for (;;) {
        p = segment.end;
        while (p < pattern_end && *p == '*') {
            p++;
        }
        if (p == pattern_end) {
            return true;
        }
        segment = glob_read_segment(p, pattern_end);
        if (segment.elements > (size_t)(text_end - t)) {
            return false;
        }
        if (segment.end == pattern_end) {
            return glob_segment_at(&segment, text_end - segment.elements, nocase);
        }
        t = glob_find_segment(&segment, t, text_end, nocase);
        if (t == NULL) {
            return false;
        }
        t += segment.elements;
    }
}

bool glob_is_literal(struct slice pattern)
{
    for (size_t i = 0; i < pattern.len; i++) {
        if (glob_is_special(pattern.ptr[i])) {
            return false;
        }
    }
    return true;
}
