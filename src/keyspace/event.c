/* See event.h. */
#include "keyspace/event.h"

#include "keyspace/waiting.h"

#include <assert.h>

#define LISTENERS_MAX 8

static struct {
    event_listener events[LISTENERS_MAX];
    change_listener changes[LISTENERS_MAX];
    int event_count, change_count;
    unsigned mask; /* notify-keyspace-events */
    unsigned watched;
    event_watcher watcher;
} state;

void event_add_listener(event_listener listener)
{
    assert(state.event_count < LISTENERS_MAX);
    state.events[state.event_count++] = listener;
}

void event_add_change_listener(change_listener listener)
{
    assert(state.change_count < LISTENERS_MAX);
    state.changes[state.change_count++] = listener;
}

void event_notify(enum event_class class, const char *event, int db, struct slice key)
{
    if (unlikely(state.watched & class)) {
        state.watcher(class, event, db, key);
    }
    if (state.mask & class) {
        for (int i = 0; i < state.event_count; i++) {
            state.events[i](event, db, key, state.mask);
        }
    }
}

event_going_watcher event_watches_going;

void event_set_going_watcher(event_going_watcher watcher)
{
    event_watches_going = watcher;
}

void event_set_watcher(unsigned classes, event_watcher watcher)
{
    state.watched = classes;
    state.watcher = watcher;
}

unsigned event_mask(void)
{
    return state.mask;
}

void event_key_changed(struct db *db, struct slice key)
{
    waiting_note_change(db, key);
    for (int i = 0; i < state.change_count; i++) {
        state.changes[i](db, key);
    }
}

bool event_is_published(void)
{
    return state.mask & (EVENT_KEYSPACE | EVENT_KEYEVENT);
}

bool event_wants_misses(void)
{
    return (state.mask | state.watched) & EVENT_KEY_MISS;
}

/* ---- notify-keyspace-events: letters; A stands for all classes but m and n ---- */

static const struct {
    char letter;
    unsigned mask;
} letters[] = {
    {'g', EVENT_GENERIC},  {'$', EVENT_STRING}, {'l', EVENT_LIST},     {'s', EVENT_SET},
    {'h', EVENT_HASH},     {'z', EVENT_ZSET},   {'x', EVENT_EXPIRED},  {'e', EVENT_EVICTED},
    {'t', EVENT_STREAM},   {'d', EVENT_MODULE}, {'K', EVENT_KEYSPACE}, {'E', EVENT_KEYEVENT},
    {'m', EVENT_KEY_MISS}, {'n', EVENT_NEW},
};

#define EVENT_ALL                                                                                  \
    (EVENT_GENERIC | EVENT_STRING | EVENT_LIST | EVENT_SET | EVENT_HASH | EVENT_ZSET |             \
     EVENT_EXPIRED | EVENT_EVICTED | EVENT_STREAM | EVENT_MODULE)
#define LETTER_COUNT (sizeof(letters) / sizeof(letters[0]))

static unsigned mask_of_letter(char letter)
{
    for (size_t i = 0; i < LETTER_COUNT; i++) {
        if (letters[i].letter == letter) {
            return letters[i].mask;
        }
    }
    return letter == 'A' ? EVENT_ALL : 0;
}

static bool parse_mask(const struct option *option, const struct slice *words, int count,
                       const char **error)
{
    (void)option;
    unsigned mask = 0;
    for (size_t i = 0; count == 1 && i < words[0].len; i++) {
        unsigned bit = mask_of_letter(words[0].ptr[i]);
        if (!bit) {
            *error = "Invalid event class character. Use 'Ag$lshzxeKEtmdn'.";
            return false;
        }
        mask |= bit;
    }
    state.mask = mask;
    return true;
}

static void format_mask(const struct option *option, struct buf *out)
{
    (void)option;
    bool all = (state.mask & EVENT_ALL) == EVENT_ALL;
    if (all) {
        buf_append_char(out, 'A');
    }
    for (size_t i = 0; i < LETTER_COUNT; i++) {
        unsigned mask = letters[i].mask;
        if (state.mask & mask && !(all && EVENT_ALL & mask)) {
            buf_append_char(out, letters[i].letter);
        }
    }
}

const struct option event_options[] = {
    {.name = "notify-keyspace-events",
     .type = OPTION_CUSTOM,
     .initial = "",
     .parse = parse_mask,
     .format = format_mask},
    {.name = NULL},
};
