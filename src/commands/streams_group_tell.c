/* What consumer groups did, as commands for the logs (engine/propagate.h): reading and claiming
 * depend on the clock and on who waited, so the result is told. */
#include "commands/streams_group_priv.h"
#include "commands/streams_priv.h"
#include "value/stream_undelivered.h"

void streams_gift_end(struct call *c, struct streams_gift *gift)
{
    struct propagate_draft d = {0};
    char text[STREAM_ID_TEXT_BYTES];
    if (gift->ids.count == 0) {
        return;
    }
    if (unlikely(propagate_peers)) {
        streams_tell_peers_pending(
            c,
            &(struct streams_pending_told){.key = gift->key,
                                           .group = gift->group,
                                           .consumer = &gift->consumer,
                                           .last_id = gift->g->last_id,
                                           .delivered_ms = gift->delivered_ms,
                                           .deliveries = gift->deliveries},
            &gift->ids);
    }
    propagate_add(&d, SLICE("XCLAIM"));
    propagate_add(&d, gift->key);
    propagate_add(&d, gift->group);
    propagate_add(&d, gift->consumer);
    propagate_add(&d, SLICE("0"));
    propagate_add_draft(&d, &gift->ids);
    propagate_add(&d, SLICE("TIME"));
    propagate_add_number(&d, gift->delivered_ms);
    propagate_add(&d, SLICE("RETRYCOUNT"));
    propagate_add_number(&d, gift->deliveries);
    propagate_add(&d, SLICE("FORCE"));
    propagate_add(&d, SLICE("JUSTID"));
    propagate_add(&d, SLICE("LASTID"));
    propagate_add(&d, stream_id_format(gift->g->last_id, text));
    propagate_draft_instead(c, &d);
}

void streams_tell_peers_read(struct call *c, struct streams_gift *read)
{
    struct propagate_draft d = {0};
    if (read->ids.count == 0) {
        return;
    }
    streams_tell_peers_pending(c,
                               &(struct streams_pending_told){.key = read->key,
                                                              .group = read->group,
                                                              .consumer = &read->consumer,
                                                              .last_id = read->g->last_id,
                                                              .delivered_ms = c->now_ms,
                                                              .deliveries = 1},
                               &read->ids);
    propagate_add(&d, SLICE("XACK"));
    propagate_add(&d, read->key);
    propagate_add(&d, read->group);
    propagate_add_draft(&d, &read->ids);
    propagate_draft_to_peers(c, &d);
}

void streams_gift_add(struct call *c, struct streams_gift *gift, const struct stream_pending *p)
{
    char text[STREAM_ID_TEXT_BYTES];
    if (p->delivered_ms != gift->delivered_ms || p->deliveries != gift->deliveries) {
        streams_gift_end(c, gift);
        gift->delivered_ms = p->delivered_ms;
        gift->deliveries = p->deliveries;
    }
    propagate_add(&gift->ids, stream_id_format(p->id, text));
}

void streams_propagate_consumer(struct call *c, struct slice key, const struct stream_group *g,
                                struct slice consumer)
{
    struct slice group = stream_group_name(g);
    if (unlikely(propagate_peers)) {
        streams_tell_peers_pending(
            c,
            &(struct streams_pending_told){.key = key,
                                           .group = group,
                                           .consumer = &consumer,
                                           .last_id = STREAM_ID_MIN}, /* nothing was read by it */
            NULL);
    }
    PROPAGATE(c, SLICE("XGROUP"), SLICE("CREATECONSUMER"), key, group, consumer);
}

void streams_propagate_position(struct call *c, struct slice key, const struct stream_group *g,
                                bool peers_know)
{
    char id[STREAM_ID_TEXT_BYTES], read[PROPAGATE_NUMBER_BYTES];
    struct slice group = stream_group_name(g);
    if (unlikely(propagate_peers) && !peers_know) {
        streams_tell_peers_pending(
            c, &(struct streams_pending_told){.key = key, .group = group, .last_id = g->last_id},
            NULL);
    }
    PROPAGATE(c, SLICE("XGROUP"), SLICE("SETID"), key, group, stream_id_format(g->last_id, id),
              SLICE("ENTRIESREAD"), propagate_number(g->entries_read, read));
}

void streams_propagate_lost(struct call *c, struct slice key, struct slice group,
                            struct stream_id id)
{
    char text[STREAM_ID_TEXT_BYTES];
    struct slice words[] = {SLICE("XACK"), key, group, stream_id_format(id, text)};
    if (unlikely(propagate_peers)) {
        propagate_tell_peers(c, 4, words);
    }
    propagate_instead(c, 4, words);
}

void streams_propagate_undelivered(struct call *c, const struct keyref *ref, struct stream_id id)
{
    struct radix_cursor at = radix_first(stream_groups(ref->entry));
    for (; radix_cursor_valid(&at); radix_cursor_next(&at)) {
        struct stream_group *g = stream_group_at(&at);
        const struct stream_pending *p = stream_pending_find(g, id);
        if (p && p->consumer == stream_undelivered(g)) {
            char text[STREAM_ID_TEXT_BYTES], then[PROPAGATE_NUMBER_BYTES];
            PROPAGATE(c, SLICE("XCLAIM"), ref->key.name, stream_group_name(g),
                      SLICE(STREAM_UNDELIVERED), SLICE("0"), stream_id_format(id, text),
                      SLICE("TIME"), propagate_number(p->delivered_ms, then), SLICE("RETRYCOUNT"),
                      SLICE("0"), SLICE("FORCE"), SLICE("JUSTID"));
        }
    }
}
