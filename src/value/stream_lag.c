/* See stream_lag.h. */
#include "value/stream_lag.h"

#include <assert.h>

/* True when none of the entries from the first that is there up to the last was deleted from among
 * them: their number tells their ranks. */
static bool is_whole(const struct stream_facts *facts)
{
    return stream_id_compare(facts->max_deleted_id, facts->first_id) < 0;
}

int64_t stream_rank(const struct stream_facts *facts, struct stream_id id)
{
    int64_t added = (int64_t)facts->entries_added;
    int to_last = stream_id_compare(id, facts->last_id);
    if (added == 0) {
        return 0;
    }
    if (to_last == 0 || (facts->length == 0 && to_last < 0)) {
        return added;
    }
    if (to_last > 0) {
        return STREAM_READ_UNKNOWN;
    }
    int to_first = stream_id_compare(id, facts->first_id);
    if (to_first > 0 || !is_whole(facts)) {
        return STREAM_READ_UNKNOWN;
    }
    /* All that are there now came in a row, the last ones of all: those before them are the rest.
     */
    uint64_t before = facts->entries_added - facts->length;
    return (int64_t)(to_first == 0 ? before + 1 : before);
}

bool stream_group_lag(const struct stream_facts *facts, const struct stream_group *g, int64_t *lag)
{
    int64_t length = (int64_t)facts->length;
    int to_last = stream_id_compare(g->last_id, facts->last_id);
    int to_first = stream_id_compare(g->last_id, facts->first_id);
    *lag = 0;
    if (length == 0 || to_last == 0) {
        return true;
    }
    if (to_last > 0) {
        return false; /* what will be added may be before the group's place */
    }
    if (to_first <= 0) {
        *lag = length - (to_first == 0);
        return is_whole(facts);
    }
    *lag = (int64_t)facts->entries_added - g->entries_read;
    return g->entries_read != STREAM_READ_UNKNOWN && facts->entries_added < STREAM_ADDED_MAX &&
           stream_id_compare(facts->max_deleted_id, g->last_id) <= 0 && *lag >= 0 && *lag < length;
}

void stream_group_place(const struct stream_facts *facts, struct stream_group *g,
                        struct stream_id id, int64_t entries_read)
{
    int64_t added = (int64_t)facts->entries_added;
    assert(entries_read >= STREAM_READ_UNKNOWN);
    bool beyond = stream_id_compare(id, facts->last_id) > 0;
    g->last_id = id;
    bool unknown = beyond || stream_id_tag != 0;
    g->entries_read = unknown ? STREAM_READ_UNKNOWN : entries_read < added ? entries_read : added;
}

void stream_group_advance(const struct stream_facts *facts, struct stream_group *g,
                          struct stream_id id)
{
    assert(stream_id_compare(id, g->last_id) > 0 && stream_id_compare(id, facts->last_id) <= 0);
    int64_t rank = stream_rank(facts, id);
    /* None went from behind the group's place, so `id` is the next that ever was. */
    bool is_next = stream_id_compare(facts->max_deleted_id, g->last_id) <= 0 &&
                   stream_id_compare(facts->first_id, g->last_id) <= 0;
    if (rank == STREAM_READ_UNKNOWN && is_next && g->entries_read != STREAM_READ_UNKNOWN) {
        rank = g->entries_read + 1;
    }
    stream_group_place(facts, g, id, rank);
}

void stream_groups_forget_counts(const struct stream_facts *facts, const struct radix *groups,
                                 bool all)
{
    struct radix_cursor at = radix_first(groups);
    for (; radix_cursor_valid(&at); radix_cursor_next(&at)) {
        struct stream_group *g = stream_group_at(&at);
        stream_group_place(facts, g, g->last_id, all ? STREAM_READ_UNKNOWN : g->entries_read);
    }
}

void stream_groups_forget_ranks(const struct radix *groups, struct stream_id id)
{
    struct radix_cursor at = radix_first(groups);
    for (; radix_cursor_valid(&at); radix_cursor_next(&at)) {
        struct stream_group *g = stream_group_at(&at);
        if (stream_id_compare(g->last_id, id) >= 0) {
            g->entries_read = STREAM_READ_UNKNOWN;
        }
    }
}
