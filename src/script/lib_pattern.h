/* Lua 5.1's patterns (manual, 5.4.1) with what that version lacks: a bound on recursion, and a call
 * of the state's hook while a match takes long. A NUL ends a pattern, as it does in Lua 5.1.
 *
 * State: none; a matcher lies on its caller's stack and points into strings that the caller holds.
 */
#ifndef SCRIPT_LIB_PATTERN_H
#define SCRIPT_LIB_PATTERN_H

#include <lua.h>
#include <stddef.h>
#include <stdint.h>

#define PATTERN_CAPTURES_MAX 32

struct pattern_match {
    lua_State *L;
    const char *subject;
    const char *subject_end;
    const char *pattern_end;
    int level; /* captures begun */
    int depth;
    uint32_t steps;
    struct {
        const char *start;
        ptrdiff_t len; /* or one of the marks in lib_pattern.c */
    } capture[PATTERN_CAPTURES_MAX];
};

/* Prepares for matches of a pattern in a subject. Returns the pattern's start. */
const char *pattern_init(struct pattern_match *m, lua_State *L, const char *subject,
                         size_t subject_len, const char *pattern);
/* Matches exactly at `at`: returns the end of what matched, or NULL. Raises "malformed pattern ..."
 * and the like, and what the hook raises. */
const char *pattern_match_at(struct pattern_match *m, const char *at, const char *pattern);
/* Pushes capture `index` of a match, counted from 0; index 0 of a pattern without captures is all
 * of it. */
void pattern_push_capture(struct pattern_match *m, int index, const char *start, const char *end);
/* Pushes all captures and returns their number. A pattern without captures gives the whole match
 * when `start` is not NULL. */
int pattern_push_captures(struct pattern_match *m, const char *start, const char *end);

#endif
