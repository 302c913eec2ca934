/* What may follow on a line: see hint.h.
 *
 * The arguments of a command are matched against the words behind its name. Optional arguments
 * that stand together may come in any order, each once; a required one closes all before it. The
 * match is greedy and never goes back: a hint may be imperfect, it must be quick and calm. However
 * the server describes its commands, a match ends after HINT_STEPS_MAX steps. */
#include "tools/cli/hint.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Tries of an argument at a word. The longest line that makes sense takes a few hundred. */
#define HINT_STEPS_MAX 20000

/* The words typed so far; `pos` is the next one to be matched. */
struct typed {
    const struct words *words;
    size_t pos;
    int *steps; /* left, counted down by all matches of the same line */
};

static bool left(const struct typed *t)
{
    return t->pos < t->words->count;
}

static bool match_args(const struct doc_arg *args, size_t count, struct typed *t,
                       struct text *rest);

static bool has_token(const struct doc_arg *arg)
{
    return arg->token != NULL && arg->token[0] != '\0';
}

/* Matches one repetition behind its token. */
static bool match_core(const struct doc_arg *arg, struct typed *t, struct text *rest)
{
    switch (arg->kind) {
    case DOC_ARG_VALUE:
        if (!left(t)) {
            text_append_string(rest, arg->label);
            return true;
        }
        t->pos++;
        return true;
    case DOC_ARG_TOKEN:
        return true; /* the token was all */
    case DOC_ARG_BLOCK:
        return match_args(arg->parts, arg->part_count, t, rest);
    case DOC_ARG_ONEOF:
        break;
    }
    return false;
}

static bool match_arg(const struct doc_arg *arg, struct typed *t, struct text *rest, bool by_token);

/* One of the alternatives: first those that begin with a fixed word, then the free ones. */
static bool match_oneof(const struct doc_arg *arg, struct typed *t, struct text *rest,
                        bool by_token)
{
    for (size_t i = 0; i < arg->part_count; i++) {
        if (match_arg(&arg->parts[i], t, rest, true)) {
            return true;
        }
    }
    for (size_t i = 0; i < arg->part_count && !by_token; i++) {
        if (match_arg(&arg->parts[i], t, rest, false)) {
            return true;
        }
    }
    return false;
}

/* Matches the argument once at the next word. `by_token`: only if that word is its fixed word.
 * On success at least one word is used up, and `rest` holds what of the argument is missing. */
static bool match_arg(const struct doc_arg *arg, struct typed *t, struct text *rest, bool by_token)
{
    if (!left(t) || *t->steps <= 0) {
        return false;
    }
    (*t->steps)--;
    struct typed before = *t;
    if (has_token(arg)) {
        if (!words_is(t->words, t->pos, arg->token)) {
            return false;
        }
        t->pos++;
        by_token = false; /* that was it: what follows is free */
        if (!left(t) && arg->kind != DOC_ARG_TOKEN) {
            struct doc_arg bare = *arg;
            bare.token = NULL;
            bare.optional = false;
            docs_append_arg(rest, &bare);
            return true;
        }
    } else if (arg->kind == DOC_ARG_TOKEN || (by_token && arg->kind == DOC_ARG_VALUE)) {
        return false;
    } else if (by_token && arg->kind == DOC_ARG_BLOCK) {
        struct text ignored;
        text_init(&ignored);
        struct typed probe = *t;
        bool starts = arg->part_count > 0 && match_arg(&arg->parts[0], &probe, &ignored, true);
        text_deinit(&ignored);
        if (!starts) {
            return false;
        }
    }
    bool matched =
        arg->kind == DOC_ARG_ONEOF ? match_oneof(arg, t, rest, by_token) : match_core(arg, t, rest);
    if (!matched || t->pos == before.pos) {
        *t = before;
        return false;
    }
    return true;
}

/* As match_arg(), with repetitions. `after`: the arguments behind this one, whose fixed words end
 * a list of free values. */
static bool match_repeated(const struct doc_arg *arg, const struct doc_arg *after, size_t count,
                           struct typed *t, struct text *rest, bool by_token)
{
    if (!match_arg(arg, t, rest, by_token)) {
        return false;
    }
    struct doc_arg again = *arg;
    again.optional = false;
    if (!arg->multiple_token) {
        again.token = NULL;
    }
    while (arg->multiple && rest->len == 0 && left(t)) {
        struct text ignored;
        text_init(&ignored);
        struct typed probe = *t;
        bool other = false;
        for (size_t i = 0; i < count && !other; i++) {
            other = match_arg(&after[i], &probe, &ignored, true);
        }
        text_deinit(&ignored);
        if (other || !match_arg(&again, t, rest, false)) {
            break;
        }
    }
    if (arg->multiple && rest->len == 0 && !left(t)) {
        again.multiple = false;
        text_append_char(rest, '[');
        docs_append_arg(rest, &again);
        text_append_string(rest, " ...]");
    }
    return true;
}

/* Finds an argument, among the optional ones that may stand here and the required one behind them,
 * that takes the next word. Returns its index, or `count`. */
static size_t match_next(const struct doc_arg *args, size_t count, const bool *done, size_t from,
                         struct typed *t, struct text *rest)
{
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = from; i < count; i++) {
            bool by_token = pass == 0;
            if (!done[i] &&
                match_repeated(&args[i], args + i + 1, count - i - 1, t, rest, by_token)) {
                return i;
            }
            if (!done[i] && !args[i].optional) {
                break;
            }
        }
    }
    return count;
}

/* Matches as many words as it can; `rest` gets what is missing. True when at least one matched,
 * or nothing was there to be matched. */
static bool match_args(const struct doc_arg *args, size_t count, struct typed *t, struct text *rest)
{
    bool *done = tool_calloc(count, sizeof(*done));
    size_t from = 0;
    bool any = !left(t);
    struct text partial;
    text_init(&partial);
    while (left(t) && from < count) {
        text_clear(&partial);
        size_t i = match_next(args, count, done, from, t, &partial);
        if (i == count) {
            break;
        }
        any = true;
        done[i] = true;
        if (!args[i].optional) {
            from = i + 1;
        }
    }
    text_append(rest, partial.data, partial.len);
    for (size_t i = from; i < count; i++) {
        if (!done[i]) {
            text_append_string(rest, rest->len > 0 ? " " : "");
            docs_append_arg(rest, &args[i]);
        }
    }
    text_deinit(&partial);
    free(done);
    return any;
}

static bool is_number(const struct word *word)
{
    for (size_t i = 0; i < word->len; i++) {
        if (!isdigit((unsigned char)word->data[i])) {
            return false;
        }
    }
    return word->len > 0;
}

void hint_append(struct text *out, const struct docs *d, const char *line, size_t len)
{
    struct words words;
    bool open_word;
    words_split_partial(line, len, &words, &open_word);
    if (words.count > 1 && is_number(&words.list[0])) {
        words_drop_first(&words, 1); /* "5 set ...": how often */
    }
    const struct doc_command *c = docs_find(d, &words);
    if (c != NULL) {
        int steps = HINT_STEPS_MAX;
        struct typed t = {&words, c->name_words, &steps};
        struct text rest;
        text_init(&rest);
        (void)match_args(c->args, c->arg_count, &t, &rest);
        if (rest.len > 0) {
            text_append_string(out, open_word ? " " : "");
            text_append(out, rest.data, rest.len);
        }
        text_deinit(&rest);
    }
    words_deinit(&words);
}

/* ---- completion ---- */

/* Adds prefix + name when `name` starts with typed[0, len). */
static void add_if_starts(struct words *out, const char *prefix, size_t prefix_len,
                          const char *name, const char *typed, size_t len)
{
    if (strlen(name) < len || strncasecmp(name, typed, len) != 0) {
        return;
    }
    struct text line;
    text_init(&line);
    text_append(&line, prefix, prefix_len);
    text_append_string(&line, name);
    words_add(out, line.data, line.len);
    text_deinit(&line);
}

static void complete_help(struct words *out, const struct docs *d, const char *line, size_t len)
{
    size_t at = 4;
    while (at < len && line[at] == ' ') {
        at++;
    }
    for (size_t i = 0; i < d->group_count; i++) {
        struct text group;
        text_init(&group);
        text_append_format(&group, "@%s", d->groups[i]);
        add_if_starts(out, line, at, group.data, line + at, len - at);
        text_deinit(&group);
    }
    for (size_t i = 0; i < d->command_count; i++) {
        add_if_starts(out, line, at, d->commands[i].name, line + at, len - at);
    }
}

static void complete_tokens(struct words *out, const struct doc_arg *args, size_t count,
                            const char *line, size_t at, size_t len)
{
    for (size_t i = 0; i < count; i++) {
        if (has_token(&args[i])) {
            add_if_starts(out, line, at, args[i].token, line + at, len - at);
        }
        complete_tokens(out, args[i].parts, args[i].part_count, line, at, len);
    }
}

/* The last word, typed without quotes, may be the start of a fixed word. */
static void complete_argument(struct words *out, const struct docs *d, const char *line, size_t len)
{
    size_t at = len;
    while (at > 0 && line[at - 1] != ' ') {
        at--;
        if (line[at] == '"' || line[at] == '\'') {
            return;
        }
    }
    if (at == len || at == 0) {
        return;
    }
    struct words words;
    bool open_word;
    words_split_partial(line, at, &words, &open_word);
    const struct doc_command *c = open_word ? NULL : docs_find(d, &words); /* open: in quotes */
    words_deinit(&words);
    if (c != NULL) {
        complete_tokens(out, c->args, c->arg_count, line, at, len);
    }
}

void hint_complete(struct words *out, const struct docs *d, const char *line, size_t len)
{
    if (len >= 5 && strncasecmp(line, "help ", 5) == 0) {
        complete_help(out, d, line, len);
        return;
    }
    if (len == 0) {
        return;
    }
    for (size_t i = 0; i < d->command_count; i++) {
        add_if_starts(out, "", 0, d->commands[i].name, line, len);
    }
    if (out->count == 0) {
        complete_argument(out, d, line, len);
    }
}
