/* See stream_lag.h. */
#include "value/stream_lag.h"

#include <assert.h>

/* True when an entry that came after `from`, or that one itself, and not before all that are there
 * now, was deleted: how many entries stand behind `from` is not to be told by counting. */
static bool has_tombstone(const struct stream_facts *facts, struct stream_id from)
{
    return facts->length > 0 && !stream_id_is_zero(facts->max_deleted_id) &&
           stream_id_compare(facts->max_deleted_id, facts->first_id) >= 0 &&
           stream_id_compare(facts->max_deleted_id, from) >= 0;
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
    if (to_first > 0 || has_tombstone(facts, facts->first_id)) {
        return STREAM_READ_UNKNOWN;
    }
    /* All that are there now came in a row, the last ones of all: those before them are the rest.
     */
    uint64_t before = facts->entries_added - facts->length;
    return (int64_t)(to_first == 0 ? before + 1 : before);
}

bool stream_group_lag(const struct stream_facts *facts, const struct stream_group *g, int64_t *lag)
{
    int64_t added = (int64_t)facts->entries_added;
    int64_t read = g->entries_read;
    if (added == 0) {
        *lag = 0;
        return true;
    }
    if (read == STREAM_READ_UNKNOWN || has_tombstone(facts, g->last_id)) {
        read = stream_rank(facts, g->last_id);
    }
    *lag = (int64_t)((uint64_t)added - (uint64_t)read);
    return read != STREAM_READ_UNKNOWN;
}

void stream_group_advance(const struct stream_facts *facts, struct stream_group *g,
                          struct stream_id id)
{
    assert(stream_id_compare(id, g->last_id) > 0);
    if (g->entries_read != STREAM_READ_UNKNOWN && !has_tombstone(facts, id)) {
        g->entries_read += g->entries_read < INT64_MAX;
    } else if (facts->entries_added > 0) {
        g->entries_read = stream_rank(facts, id);
    }
    g->last_id = id;
}
