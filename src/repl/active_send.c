/* See active_send.h. */
#include "repl/active_send.h"

#include "base/mem.h"
#include "base/num.h"
#include "repl/active_frame.h"

#include <string.h>

#define WORDS_EACH 3

/* Rows for origins that we have learnt of since: nobody has asked for those. */
static void follow_table(struct active_send *s, const struct active_origins *o)
{
    if (s->count < o->count) {
        s->rows = mem_realloc(s->rows, o->count * sizeof(*s->rows));
        for (; s->count < o->count; s->count++) {
            s->rows[s->count] = (struct active_send_row){.told = UINT64_MAX};
        }
    }
}

void active_send_init(struct active_send *s, const struct active_origins *o)
{
    *s = (struct active_send){0};
    follow_table(s, o);
    for (uint32_t i = 1; i < s->count; i++) {
        s->rows[i].wanted = true;
    }
}

void active_send_deinit(struct active_send *s)
{
    mem_free(s->rows);
    *s = (struct active_send){0};
}

/* ---- what the peer says ---- */

struct saying {
    struct active_origin_id id;
    uint64_t position;
    bool wanted;
};

static bool parse_saying(const struct slice *words, struct saying *said)
{
    uint64_t wanted;
    if (!active_origin_parse(words[0], &said->id) || !num_parse_u64(words[1], &said->position) ||
        said->position > ACTIVE_SEQUENCE_MAX || !num_parse_u64(words[2], &wanted) || wanted > 1) {
        return false;
    }
    said->wanted = wanted == 1;
    return true;
}

/* What was sent comes to him or ends the link: so nothing is ever sent twice, even to who left for
 * another link and is back. */
static void hear_one(struct active_send_row *row, const struct saying *said)
{
    row->has = said->position > row->has ? said->position : row->has;
    if (said->position > row->sent) {
        row->sent = said->position;
    }
    row->wanted = said->wanted;
}

bool active_send_hear(struct active_send *s, const struct active_origins *o, int argc,
                      const struct slice *argv)
{
    struct saying said;
    if (argc % WORDS_EACH != 0) {
        return false;
    }
    for (int i = 0; i < argc; i += WORDS_EACH) {
        if (!parse_saying(argv + i, &said)) {
            return false;
        }
    }
    follow_table(s, o);
    for (int i = 0; i < argc; i += WORDS_EACH) {
        if (parse_saying(argv + i, &said)) {
            uint16_t origin = active_origins_find(o, &said.id);
            if (origin) {
                hear_one(&s->rows[origin], &said);
            }
        }
    }
    return true;
}

/* ---- writes ---- */

bool active_send_possible(struct active_send *s, const struct active_origins *o,
                          const struct active_log *log)
{
    follow_table(s, o);
    for (uint32_t i = 1; i < s->count; i++) {
        if (s->rows[i].wanted &&
            !active_log_keeps_after(log, (uint16_t)i, s->rows[i].sent, o->rows[i].position)) {
            return false;
        }
    }
    return true;
}

/* Names the origin before its handle is used. */
static void name_origin(struct active_send *s, const struct active_origins *o, uint32_t index,
                        struct buf *out)
{
    if (!s->rows[index].named) {
        active_frame_put_origin(out, (uint16_t)index, &o->rows[index].id);
        s->rows[index].named = true;
    }
}

static void send_unit(struct active_send *s, const struct active_origins *o,
                      const struct active_unit *u, struct buf *out)
{
    uint16_t origin = active_dot_origin(u->dot);
    name_origin(s, o, origin, out);
    active_frame_put_write(out, origin, active_dot_sequence(u->dot), u->dot.stamp, u->db, u->len);
    buf_append(out, u->bytes, u->len);
    s->rows[origin].sent = active_dot_sequence(u->dot);
}

/* Of the next writes of all wanted origins the one with the least stamp; NULL when nothing is to be
 * sent, or (*lost) when one is not kept. */
static const struct active_unit *next_unit(const struct active_send *s,
                                           const struct active_origins *o,
                                           const struct active_log *log, bool *lost)
{
    const struct active_unit *next = NULL;
    for (uint32_t i = 1; i < s->count; i++) {
        const struct active_send_row *row = &s->rows[i];
        if (!row->wanted || row->sent >= o->rows[i].position) {
            continue;
        }
        const struct active_unit *u = active_log_find(log, (uint16_t)i, row->sent + 1);
        if (!u) {
            *lost = true;
            return NULL;
        }
        if (!next || active_origins_compare(o, u->dot, next->dot) < 0) {
            next = u;
        }
    }
    return next;
}

bool active_send_some(struct active_send *s, const struct active_origins *o,
                      const struct active_log *log, size_t bytes_max, struct buf *out)
{
    size_t end = out->len + bytes_max;
    bool lost = false;
    follow_table(s, o);
    while (out->len < end) {
        const struct active_unit *u = next_unit(s, o, log, &lost);
        if (!u) {
            break;
        }
        send_unit(s, o, u, out);
    }
    return !lost;
}

/* ---- clocks ---- */

void active_send_clocks(struct active_send *s, const struct active_origins *o, struct buf *out)
{
    follow_table(s, o);
    struct active_frame_clock *clocks = mem_alloc(s->count * sizeof(*clocks));
    uint32_t count = 0;
    for (uint32_t i = 1; i < s->count; i++) {
        const struct active_origin *origin = &o->rows[i];
        if (origin->superseded && s->rows[i].told == origin->position) {
            continue;
        }
        name_origin(s, o, i, out);
        s->rows[i].told = origin->position;
        clocks[count++] =
            (struct active_frame_clock){(uint16_t)i, origin->position, origin->clock, origin->seen};
    }
    active_frame_put_clocks(out, clocks, count);
    mem_free(clocks);
}
