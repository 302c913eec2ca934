/* See doubts.h. */
#include "engine/doubts.h"

#include "base/hash.h"
#include "engine/gil.h"

#include <stdatomic.h>

#define WORD_MAX 128 /* no command has a longer name */
/* Notes: each in the one place that its hash gives it. The lowest bit says what is noted. */
#define PLACES 1024
#define ASKS ((uint64_t)1)

static bool (*may_ask)(const struct command *c);
static _Atomic uint64_t notes[PLACES];

void doubts_set(bool (*asks)(const struct command *c))
{
    may_ask = asks;
    for (int i = 0; i < PLACES; i++) {
        atomic_store_explicit(&notes[i], 0, memory_order_relaxed);
    }
}

bool doubts_command(const struct command *c)
{
    return c->flags & CMD_WORLD || (may_ask && may_ask(c));
}

static _Thread_local bool is_spare;

void doubts_set_spare(bool spare)
{
    is_spare = spare;
}

bool doubts_is_spare(void)
{
    return is_spare;
}

void doubts_give_back(void) NO_THREAD_SAFETY_ANALYSIS
{
    if (is_spare) {
        is_spare = false;
        gil_keep_awake();
    }
}

/* ---- scripts ---- */

/* Of containers it is not asked which subcommand is meant. */
static bool is_doubtful(struct slice word)
{
    const struct command *c = word.len > 0 && word.len <= WORD_MAX ? command_find(word) : NULL;
    return c && c->flags & CMD_MODULE && (c->subcommands || doubts_command(c));
}

/* Whether a string of the text is such a command's name. */
static bool mentions(struct slice text)
{
    size_t begin = 0; /* behind the last quote */
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == '\'' || text.ptr[i] == '"') {
            if (is_doubtful(slice_of(text.ptr + begin, i - begin))) {
                return true;
            }
            begin = i + 1;
        }
    }
    return false;
}

static bool names_some(const struct call *c)
{
    for (int i = 3; i < c->argc; i++) {
        if (is_doubtful(c->argv[i])) {
            return true;
        }
    }
    return mentions(c->argv[1]);
}

static uint64_t hash_of(const struct call *c)
{
    return hash_bytes(c->argv[1].ptr, c->argv[1].len) & ~ASKS;
}

static _Atomic uint64_t *place_of(uint64_t hash)
{
    return &notes[hash / 2 % PLACES];
}

void doubts_note_script(const struct call *c, bool asks)
{
    uint64_t hash = hash_of(c);
    atomic_store_explicit(place_of(hash), asks ? hash | ASKS : hash, memory_order_relaxed);
}

bool doubts_script(const struct call *c)
{
    if (likely(!may_ask)) {
        return false;
    }
    uint64_t hash = hash_of(c);
    uint64_t note = atomic_load_explicit(place_of(hash), memory_order_relaxed);
    if (likely((note & ~ASKS) == hash)) {
        return note & ASKS;
    }
    if (names_some(c)) {
        return true;
    }
    doubts_note_script(c, false);
    return false;
}

bool doubts_call(const struct call *c)
{
    bool is_script = c->cmd->categories & CATEGORY_SCRIPTING && !c->cmd->parent && c->argc > 2;
    return doubts_command(c->cmd) || (is_script && doubts_script(c));
}
