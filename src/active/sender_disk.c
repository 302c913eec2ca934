/* See sender_disk.h. */
#include "active/sender_disk.h"

#include <assert.h>

bool sender_disk_begin(struct sender_disk *d, const struct sender *s, const struct origins *o,
                       const struct origin_log *log)
{
    struct log_reserve *reserve = origin_log_reserve(log);
    assert(!d->on && d->raw.len == 0);
    for (uint32_t i = 1; reserve && i < s->count; i++) {
        const struct sender_row *row = &s->rows[i];
        struct reserve_place place;
        if (!row->requested ||
            origin_log_has_after(log, (uint16_t)i, row->sent, o->rows[i].position)) {
            continue;
        }
        if (!log_reserve_find(reserve, (uint16_t)i, row->sent + 1, &place)) {
            d->on = false;
            return false;
        }
        if (!d->on || place.position < d->place.position) {
            d->place = place;
        }
        d->on = true;
    }
    d->at_end = false;
    return d->on;
}

bool sender_disk_read(struct sender_disk *d, struct log_reserve *reserve)
{
    if (d->fresh) {
        return true;
    }
    int got = log_reserve_read(reserve, &d->place, &d->raw);
    d->fresh = true;
    d->at_end = got == 0;
    return got >= 0;
}

/* What the peer has, or takes from somebody else, is passed over. */
static bool is_next(const struct sender *s, const struct log_record *record)
{
    uint16_t origin = dot_origin(record->dot);
    return origin < s->count && s->rows[origin].requested &&
           dot_sequence(record->dot) == s->rows[origin].sent + 1;
}

bool sender_disk_some(struct sender_disk *d, struct sender *s, const struct origins *o,
                      const struct origin_log *log, struct buf *out)
{
    struct slice raw = buf_slice(&d->raw);
    struct log_record record;
    bool all = sender_has_all(s, o, log); /* and the table is followed */
    d->fresh = false;
    while (!all && log_record_take(&raw, &record)) {
        if (is_next(s, &record)) {
            sender_put(s, o, log, &record, out);
            all = sender_has_all(s, o, log);
        }
    }
    buf_consume(&d->raw, d->raw.len - raw.len);
    if (all) {
        sender_disk_deinit(d);
        return true;
    }
    /* Since it was read something may have come. */
    if (!d->at_end || log_reserve_end(origin_log_reserve(log)) > d->place.position) {
        return true;
    }
    /* What is requested since we began may stand before that. It stands there, so this ends. */
    sender_disk_deinit(d);
    return sender_disk_begin(d, s, o, log);
}

void sender_disk_deinit(struct sender_disk *d)
{
    buf_deinit(&d->raw);
    *d = (struct sender_disk){0};
}
