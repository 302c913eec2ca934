/* See safe_offset.h. */
#include "repl/safe_offset.h"

#include "engine/commit.h"
#include "repl/backlog.h"

static struct {
    uint32_t log_changes; /* of the log that the rest is about */
    bool any;             /* `safe` is known */
    bool noted;           /* a pair waits */
    uint64_t safe, offset, position;
} state;

bool safe_offset_has_news(void)
{
    return state.noted && commit_is_on_disk(state.position);
}

static void take_news(void)
{
    if (safe_offset_has_news()) {
        state.safe = state.offset;
        state.any = true;
        state.noted = false;
    }
}

bool safe_offset_get(uint64_t *offset)
{
    uint32_t changes = atomic_load(&commit.log_changes);
    uint64_t now = backlog_offset();
    if (changes != state.log_changes || (state.any && now < state.safe)) {
        state.log_changes = changes;
        state.any = state.noted = false;
    }
    take_news();
    if (!state.noted && (!state.any || now > state.safe)) {
        state.offset = now;
        state.position = commit_appended();
        state.noted = true;
        take_news();
    }
    *offset = state.safe;
    return state.any;
}
