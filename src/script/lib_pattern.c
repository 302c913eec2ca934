/* See lib_pattern.h.
 *
 * A matcher walks pattern and subject together. What may be tried in more than one way (captures
 * and repetitions) calls the matcher for the rest of the pattern; all else is a loop. */
#include "script/lib_pattern.h"

#include "script/lib_priv.h"

#include <ctype.h>
#include <string.h>

/* Nested tries; each is some hundred bytes of C stack. */
#define DEPTH_MAX 200

/* Instead of a capture's length. */
enum { CAPTURE_OPEN = -1, CAPTURE_POSITION = -2 };

static const char *match_rest(struct pattern_match *m, const char *s, const char *p);

/* ---- single characters ---- */

/* %a and its like; an unknown letter stands for itself. */
static bool in_class(int c, int class_letter)
{
    bool in;
    switch (tolower(class_letter)) {
    case 'a':
        in = isalpha(c);
        break;
    case 'c':
        in = iscntrl(c);
        break;
    case 'd':
        in = isdigit(c);
        break;
    case 'l':
        in = islower(c);
        break;
    case 'p':
        in = ispunct(c);
        break;
    case 's':
        in = isspace(c);
        break;
    case 'u':
        in = isupper(c);
        break;
    case 'w':
        in = isalnum(c);
        break;
    case 'x':
        in = isxdigit(c);
        break;
    case 'z':
        in = c == 0;
        break;
    default:
        return class_letter == c;
    }
    return isupper(class_letter) ? !in : in;
}

/* The byte at p, or 0 at the end of the pattern. */
static inline int peek(const struct pattern_match *m, const char *p)
{
    return p < m->pattern_end ? (unsigned char)*p : 0;
}

/* The end of the set that begins at `p` (its bracket): behind the closing bracket, which stands for
 * itself as the first character. */
static const char *set_end(struct pattern_match *m, const char *p)
{
    p++;
    if (peek(m, p) == '^') {
        p++;
    }
    for (bool first = true;; first = false) {
        if (p >= m->pattern_end) {
            luaL_error(m->L, "malformed pattern (missing ']')");
        }
        if (*p == ']' && !first) {
            return p + 1;
        }
        if (*p++ == '%' && p < m->pattern_end) {
            p++;
        }
    }
}

/* The end of the single-character item at `p`. */
static const char *item_end(struct pattern_match *m, const char *p)
{
    if (*p == '[') {
        return set_end(m, p);
    }
    if (*p != '%') {
        return p + 1;
    }
    if (p + 1 >= m->pattern_end) {
        luaL_error(m->L, "malformed pattern (ends with '%%')");
    }
    return p + 2;
}

/* Is `c` in the set [p, end)? `end` is behind the closing bracket. */
static bool in_set(int c, const char *p, const char *end)
{
    const char *last = end - 1;
    bool found_means = true;
    p++;
    if (*p == '^') {
        found_means = false;
        p++;
    }
    while (p < last) {
        if (*p == '%' && p + 1 < last) {
            if (in_class(c, (unsigned char)p[1])) {
                return found_means;
            }
            p += 2;
        } else if (p[1] == '-' && p + 2 < last) {
            if ((unsigned char)p[0] <= c && c <= (unsigned char)p[2]) {
                return found_means;
            }
            p += 3;
        } else {
            if ((unsigned char)*p == c) {
                return found_means;
            }
            p++;
        }
    }
    return !found_means;
}

/* Does the item [p, end) match the character at `s`? */
static bool item_matches(struct pattern_match *m, const char *s, const char *p, const char *end)
{
    lib_step(m->L, &m->steps);
    if (s >= m->subject_end) {
        return false;
    }
    int c = (unsigned char)*s;
    switch (*p) {
    case '.':
        return true;
    case '%':
        return in_class(c, (unsigned char)p[1]);
    case '[':
        return in_set(c, p, end);
    default:
        return (unsigned char)*p == c;
    }
}

/* ---- repetitions ---- */

static const char *match_longest(struct pattern_match *m, const char *s, const char *p,
                                 const char *end, size_t at_least)
{
    size_t count = 0;
    while (item_matches(m, s + count, p, end)) {
        count++;
    }
    for (;; count--) {
        if (count < at_least) {
            return NULL;
        }
        const char *r = match_rest(m, s + count, end + 1);
        if (r || count == 0) {
            return r;
        }
    }
}

static const char *match_shortest(struct pattern_match *m, const char *s, const char *p,
                                  const char *end)
{
    for (;; s++) {
        const char *r = match_rest(m, s, end + 1);
        if (r) {
            return r;
        }
        if (!item_matches(m, s, p, end)) {
            return NULL;
        }
    }
}

/* ---- captures ---- */

static const char *match_open(struct pattern_match *m, const char *s, const char *p)
{
    bool position = peek(m, p + 1) == ')';
    if (m->level >= PATTERN_CAPTURES_MAX) {
        luaL_error(m->L, "too many captures");
    }
    m->capture[m->level].start = s;
    m->capture[m->level].len = position ? CAPTURE_POSITION : CAPTURE_OPEN;
    m->level++;
    const char *r = match_rest(m, s, p + (position ? 2 : 1));
    if (!r) {
        m->level--;
    }
    return r;
}

static const char *match_close(struct pattern_match *m, const char *s, const char *p)
{
    int open = m->level - 1;
    while (open >= 0 && m->capture[open].len != CAPTURE_OPEN) {
        open--;
    }
    if (open < 0) {
        luaL_error(m->L, "invalid pattern capture");
    }
    m->capture[open].len = s - m->capture[open].start;
    const char *r = match_rest(m, s, p + 1);
    if (!r) {
        m->capture[open].len = CAPTURE_OPEN;
    }
    return r;
}

/* %1 to %9: behind the same bytes once more, or NULL. */
static const char *match_again(struct pattern_match *m, const char *s, int digit)
{
    int index = digit - '1';
    if (index < 0 || index >= m->level || m->capture[index].len == CAPTURE_OPEN) {
        luaL_error(m->L, "invalid capture index");
    }
    /* A position is as long as no bytes could be: it never comes again. */
    size_t len = (size_t)m->capture[index].len;
    if ((size_t)(m->subject_end - s) < len || memcmp(m->capture[index].start, s, len) != 0) {
        return NULL;
    }
    return s + len;
}

/* ---- %b and %f ---- */

/* %bxy at `p`, the x: behind the balanced part, or NULL. */
static const char *match_balanced(struct pattern_match *m, const char *s, const char *p)
{
    if (p + 1 >= m->pattern_end) {
        luaL_error(m->L, "unbalanced pattern");
    }
    if (s >= m->subject_end || *s != p[0]) {
        return NULL;
    }
    size_t open = 1;
    while (++s < m->subject_end) {
        lib_step(m->L, &m->steps);
        if (*s == p[1]) {
            if (--open == 0) {
                return s + 1;
            }
        } else if (*s == p[0]) {
            open++;
        }
    }
    return NULL;
}

/* %f[set] with `p` at the bracket: is `s` between a character out of the set and one in it? The
 * subject has NULs around it. */
static bool at_frontier(struct pattern_match *m, const char *s, const char *p, const char *end)
{
    int before = s == m->subject ? 0 : (unsigned char)s[-1];
    int behind = s == m->subject_end ? 0 : (unsigned char)*s;
    return !in_set(before, p, end) && in_set(behind, p, end);
}

/* ---- the walk ---- */

/* Where the walk goes on: in the subject (NULL: no match) and in the pattern. `done` says that the
 * rest of the pattern has been matched as well. */
struct place {
    const char *s;
    const char *p;
    bool done;
};

/* One single-character item with what follows it. */
static struct place match_item(struct pattern_match *m, const char *s, const char *p)
{
    const char *end = item_end(m, p);
    switch (peek(m, end)) {
    case '?':
        if (item_matches(m, s, p, end)) {
            const char *r = match_rest(m, s + 1, end + 1);
            if (r) {
                return (struct place){r, NULL, true};
            }
        }
        return (struct place){s, end + 1, false};
    case '*':
        return (struct place){match_longest(m, s, p, end, 0), NULL, true};
    case '+':
        return (struct place){match_longest(m, s, p, end, 1), NULL, true};
    case '-':
        return (struct place){match_shortest(m, s, p, end), NULL, true};
    default:
        return (struct place){item_matches(m, s, p, end) ? s + 1 : NULL, end, false};
    }
}

static struct place match_escape(struct pattern_match *m, const char *s, const char *p)
{
    int letter = peek(m, p + 1);
    if (letter == 'b') {
        return (struct place){match_balanced(m, s, p + 2), p + 4, false};
    }
    if (letter == 'f') {
        p += 2;
        if (peek(m, p) != '[') {
            luaL_error(m->L, "missing '[' after '%%f' in pattern");
        }
        const char *end = set_end(m, p);
        return (struct place){at_frontier(m, s, p, end) ? s : NULL, end, false};
    }
    if (isdigit(letter)) {
        return (struct place){match_again(m, s, letter), p + 2, false};
    }
    return match_item(m, s, p);
}

static struct place match_one(struct pattern_match *m, const char *s, const char *p)
{
    switch (*p) {
    case '(':
        return (struct place){match_open(m, s, p), NULL, true};
    case ')':
        return (struct place){match_close(m, s, p), NULL, true};
    case '%':
        return match_escape(m, s, p);
    case '$':
        if (p + 1 == m->pattern_end) {
            return (struct place){s == m->subject_end ? s : NULL, p + 1, false};
        }
        return match_item(m, s, p);
    default:
        return match_item(m, s, p);
    }
}

static const char *match_rest(struct pattern_match *m, const char *s, const char *p)
{
    if (++m->depth > DEPTH_MAX) {
        luaL_error(m->L, "pattern too complex");
    }
    struct place at = {s, p, false};
    while (at.s && !at.done && at.p < m->pattern_end) {
        at = match_one(m, at.s, at.p);
    }
    m->depth--;
    return at.s;
}

/* ---- public ---- */

const char *pattern_init(struct pattern_match *m, lua_State *L, const char *subject,
                         size_t subject_len, const char *pattern)
{
    m->L = L;
    m->subject = subject;
    m->subject_end = subject + subject_len;
    m->pattern_end = pattern + strlen(pattern);
    m->level = 0;
    m->depth = 0;
    m->steps = 0;
    return pattern;
}

const char *pattern_match_at(struct pattern_match *m, const char *at, const char *pattern)
{
    m->level = 0;
    m->depth = 0;
    return match_rest(m, at, pattern);
}

void pattern_push_capture(struct pattern_match *m, int index, const char *start, const char *end)
{
    if (index >= m->level) {
        if (index != 0) {
            luaL_error(m->L, "invalid capture index");
        }
        lua_pushlstring(m->L, start, (size_t)(end - start));
        return;
    }
    ptrdiff_t len = m->capture[index].len;
    if (len == CAPTURE_OPEN) {
        luaL_error(m->L, "unfinished capture");
    }
    if (len == CAPTURE_POSITION) {
        lua_pushinteger(m->L, m->capture[index].start - m->subject + 1);
    } else {
        lua_pushlstring(m->L, m->capture[index].start, (size_t)len);
    }
}

int pattern_push_captures(struct pattern_match *m, const char *start, const char *end)
{
    int count = m->level == 0 && start ? 1 : m->level;
    luaL_checkstack(m->L, count, "too many captures");
    for (int i = 0; i < count; i++) {
        pattern_push_capture(m, i, start, end);
    }
    return count;
}
