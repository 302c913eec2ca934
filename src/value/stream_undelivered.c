/* See stream_undelivered.h. */
#include "value/stream_undelivered.h"

#include <assert.h>

struct stream_consumer *stream_undelivered(const struct stream_group *g)
{
    return stream_consumer_find(g, SLICE(STREAM_UNDELIVERED));
}

/* The same on every node: its times are those of the ID. */
static void add(struct stream_group *g, struct stream_id id)
{
    int64_t then_ms = (int64_t)(id.ms & INT64_MAX);
    struct stream_consumer *c = stream_undelivered(g);
    if (!c) {
        c = stream_consumer_add(g, SLICE(STREAM_UNDELIVERED), then_ms);
    }
    stream_pending_give(g, c, id, then_ms, 0);
}

bool stream_undelivered_note(struct radix *groups, struct stream_id id)
{
    bool found = false;
    struct radix_cursor at = radix_first(groups);
    for (; radix_cursor_valid(&at); radix_cursor_next(&at)) {
        struct stream_group *g = stream_group_at(&at);
        if (stream_id_compare(g->last_id, id) >= 0 && !stream_pending_find(g, id)) {
            add(g, id);
            found = true;
        }
    }
    return found;
}

void stream_undelivered_pass(const struct entry *e, struct stream_group *g, struct stream_id from)
{
    struct stream_cursor walk;
    if (stream_id_compare(from, g->last_id) >= 0 || !stream_id_increment(&from)) {
        return;
    }
    stream_walk(&walk, e, from, g->last_id, false);
    while (stream_walk_next(&walk)) {
        if (!stream_pending_find(g, walk.id)) {
            add(g, walk.id);
        }
    }
}

void stream_undelivered_tidy(struct stream_group *g)
{
    struct stream_consumer *c = stream_undelivered(g);
    if (c && c->pending.count == 0) {
        stream_consumer_remove(g, c);
    }
}

void stream_undelivered_gone(struct radix *groups, struct stream_id id)
{
    struct radix_cursor at = radix_first(groups);
    for (; radix_cursor_valid(&at); radix_cursor_next(&at)) {
        struct stream_group *g = stream_group_at(&at);
        struct stream_consumer *c = stream_undelivered(g);
        const struct stream_pending *p = c ? stream_pending_find(g, id) : NULL;
        if (p && p->consumer == c) {
            stream_pending_remove(g, id);
            stream_undelivered_tidy(g);
        }
    }
}

void stream_undelivered_trimmed(struct radix *groups, struct stream_id first_id)
{
    struct radix_cursor at = radix_first(groups);
    for (; radix_cursor_valid(&at); radix_cursor_next(&at)) {
        struct stream_group *g = stream_group_at(&at);
        const struct stream_consumer *c = stream_undelivered(g);
        while (c && c->pending.count > 0) {
            struct stream_pending_cursor first = stream_pending_seek(g, c, STREAM_ID_MIN);
            struct stream_id id = stream_pending_at(&first)->id;
            if (!stream_id_is_zero(first_id) && stream_id_compare(id, first_id) >= 0) {
                break;
            }
            stream_pending_remove(g, id);
        }
        stream_undelivered_tidy(g);
    }
}
