/* See words.h. */
#include "module/words.h"

#include "base/num.h"
#include "module/text.h"

#include <assert.h>
#include <string.h>

static const struct {
    char letter;
    unsigned flag;
} flags[] = {
    {'!', WORDS_REPLICATE},   {'A', WORDS_NO_AOF},    {'R', WORDS_NO_REPLICAS},
    {'3', WORDS_RESP3},       {'0', WORDS_RESP_AUTO}, {'C', WORDS_CHECK_USER},
    {'S', WORDS_SCRIPT_MODE}, {'W', WORDS_NO_WRITES}, {'M', WORDS_DENY_OOM},
    {'E', WORDS_ERRORS},      {'D', WORDS_DRY_RUN},   {'K', WORDS_MAY_WAIT},
};

static unsigned flag_of(char letter)
{
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
        if (flags[i].letter == letter) {
            return flags[i].flag;
        }
    }
    return 0;
}

static void add(struct words *w, const char *bytes, size_t len)
{
    w->argv[w->argc++] = slice_of(bytes, len);
}

static void add_number(struct words *w, struct arena *arena, long long number)
{
    char *text = arena_alloc(arena, NUM_I64_MAX_CHARS);
    add(w, text, num_format_i64(text, number));
}

/* An array of arguments: the vector is made anew, with room for it and `more` others. */
static void add_many(struct words *w, struct arena *arena, RedisModuleString **strings,
                     size_t count, size_t more)
{
    struct slice *larger = arena_alloc(arena, ((size_t)w->argc + count + more) * sizeof(*larger));
    memcpy(larger, w->argv, (size_t)w->argc * sizeof(*larger));
    w->argv = larger;
    for (size_t i = 0; i < count; i++) {
        w->argv[w->argc++] = text_slice(strings[i]);
    }
}

bool words_parse(struct words *w, struct arena *arena, const char *name, const char *format,
                 va_list arguments)
{
    *w = (struct words){.argv = arena_alloc(arena, (strlen(format) + 1) * sizeof(*w->argv))};
    add(w, name, strlen(name));
    for (const char *at = format; *at; at++) {
        if (*at == 'c') {
            const char *text = va_arg(arguments, const char *);
            add(w, text, strlen(text));
        } else if (*at == 's') {
            struct slice text = text_slice(va_arg(arguments, RedisModuleString *));
            add(w, text.ptr, text.len);
        } else if (*at == 'b') {
            const char *bytes = va_arg(arguments, const char *);
            add(w, bytes, va_arg(arguments, size_t));
        } else if (*at == 'l') {
            add_number(w, arena, va_arg(arguments, long long));
        } else if (*at == 'v') {
            RedisModuleString **strings = va_arg(arguments, RedisModuleString **);
            add_many(w, arena, strings, va_arg(arguments, size_t), strlen(at));
        } else if (flag_of(*at)) {
            w->flags |= flag_of(*at);
        } else {
            return false;
        }
    }
    return true;
}
