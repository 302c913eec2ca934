/* See sender.h. */
#include "active/sender.h"

#include "base/mem.h"
#include "base/num.h"
#include "active/earlier_lives.h"
#include "active/frame.h"

#include <string.h>

#define WORDS_EACH 3
/* What is sent next is asked for so many units ahead. */
#define PREFETCH 8

/* What was sent comes to him or ends the link: so nothing is ever sent twice, even to who left for
 * another link and is back. */
static void hear_one(struct sender_row *row, const struct sender_saying *said)
{
    row->has = said->position > row->has ? said->position : row->has;
    if (said->position > row->sent) {
        row->sent = said->position;
    }
    row->asked = said->requested;
}

static struct sender_saying *find_unknown(const struct sender *s, const struct origin_id *id)
{
    for (uint32_t i = 0; i < s->unknown_count; i++) {
        const struct origin_id *its = &s->unknown[i].id;
        if (its->epoch == id->epoch && memcmp(its->node, id->node, sizeof(id->node)) == 0) {
            return &s->unknown[i];
        }
    }
    return NULL;
}

/* Rows for origins that we have learnt of since: what the peer has said of them, or nothing, and
 * then nobody has asked for those. */
static void follow_table(struct sender *s, const struct origins *o)
{
    if (s->count < o->count) {
        s->rows = mem_realloc(s->rows, o->count * sizeof(*s->rows));
        for (; s->count < o->count; s->count++) {
            struct sender_saying *said = find_unknown(s, &o->rows[s->count].id);
            s->rows[s->count] = (struct sender_row){.told = UINT64_MAX};
            if (said) {
                hear_one(&s->rows[s->count], said);
                *said = s->unknown[--s->unknown_count];
            }
        }
    }
}

/* The peer lacks some of that life, and does not want it from us. */
static inline bool holds_later_lives(const struct sender *s, const struct origins *o, uint32_t i)
{
    const struct sender_row *row = &s->rows[i];
    return o->rows[i].superseded && !row->asked && row->sent < o->rows[i].position;
}

static inline bool is_told(const struct sender *s, const struct origins *o, uint32_t i)
{
    return s->forwards || memcmp(o->rows[i].id.node, s->own, ORIGIN_NODE_BYTES) == 0;
}

/* Decides which are requested. */
static void hold_later_lives(struct sender *s, const struct origins *o)
{
    bool holds = false;
    follow_table(s, o);
    for (uint32_t i = 1; i < s->count; i++) {
        s->rows[i].requested = s->rows[i].asked && is_told(s, o, i);
        holds = holds || holds_later_lives(s, o, i);
    }
    if (likely(!holds)) {
        return;
    }
    const struct origin **lives = earlier_lives_order(o);
    for (uint32_t i = 0; i < o->count - 1; i++) {
        uint32_t index = (uint32_t)(lives[i] - o->rows);
        holds = holds && !earlier_lives_is_first(lives, i);
        s->rows[index].requested = s->rows[index].requested && !holds;
        holds = holds || holds_later_lives(s, o, index);
    }
    mem_free(lives);
}

void sender_init(struct sender *s, const struct origins *o)
{
    *s = (struct sender){.forwards = true};
    follow_table(s, o);
    for (uint32_t i = 1; i < s->count; i++) {
        s->rows[i].asked = true;
    }
}

void sender_set_forwards(struct sender *s, bool forwards, const uint8_t own[ORIGIN_NODE_BYTES])
{
    s->forwards = forwards;
    memcpy(s->own, own, sizeof(s->own));
}

void sender_tells_causes(struct sender *s, const uint8_t peer[ORIGIN_NODE_BYTES])
{
    memcpy(s->peer, peer, sizeof(s->peer));
}

void sender_deinit(struct sender *s)
{
    mem_free(s->rows);
    mem_free(s->unknown);
    *s = (struct sender){0};
}

/* ---- what the peer says ---- */

static bool parse_saying(const struct slice *words, struct sender_saying *said)
{
    uint64_t requested;
    if (!origin_parse(words[0], &said->id) || !num_parse_u64(words[1], &said->position) ||
        said->position > ORIGIN_SEQUENCE_MAX || !num_parse_u64(words[2], &requested) ||
        requested > 1) {
        return false;
    }
    said->requested = requested == 1;
    return true;
}

static void keep(struct sender *s, const struct sender_saying *said)
{
    struct sender_saying *there = find_unknown(s, &said->id);
    if (there) {
        *there = *said;
    } else if (s->unknown_count < SENDER_UNKNOWN_MAX) {
        s->unknown = mem_realloc(s->unknown, (s->unknown_count + 1) * sizeof(*s->unknown));
        s->unknown[s->unknown_count++] = *said;
    }
}

bool sender_hear(struct sender *s, const struct origins *o, int argc, const struct slice *argv)
{
    struct sender_saying said;
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
            uint16_t origin = origins_find(o, &said.id);
            if (origin) {
                hear_one(&s->rows[origin], &said);
            } else {
                keep(s, &said);
            }
        }
    }
    return true;
}

void sender_skip(struct sender *s, const struct origins *o, const struct version_vector *positions)
{
    follow_table(s, o);
    for (uint32_t i = 1; i < positions->count; i++) {
        if (positions->sequence[i] > s->rows[i].sent) {
            s->rows[i].sent = positions->sequence[i];
        }
    }
}

/* ---- writes ---- */

bool sender_possible(struct sender *s, const struct origins *o, const struct origin_log *log)
{
    return sender_possible_after(s, o, log, &(struct version_vector){.count = 0});
}

bool sender_possible_after(struct sender *s, const struct origins *o, const struct origin_log *log,
                           const struct version_vector *positions)
{
    hold_later_lives(s, o);
    for (uint32_t i = 1; i < s->count; i++) {
        uint64_t sent = version_vector_at(positions, i);
        sent = sent > s->rows[i].sent ? sent : s->rows[i].sent;
        if (s->rows[i].requested &&
            !origin_log_keeps_after(log, (uint16_t)i, sent, o->rows[i].position)) {
            return false;
        }
    }
    return true;
}

bool sender_has_all(struct sender *s, const struct origins *o, const struct origin_log *log)
{
    hold_later_lives(s, o);
    for (uint32_t i = 1; i < s->count; i++) {
        const struct sender_row *row = &s->rows[i];
        if (row->requested &&
            !origin_log_has_after(log, (uint16_t)i, row->sent, o->rows[i].position)) {
            return false;
        }
    }
    return true;
}

/* Names the origin before its handle is used. */
static inline void name_origin(struct sender *s, const struct origins *o, uint32_t index,
                               struct buf *out)
{
    if (unlikely(!s->rows[index].named)) {
        frame_put_origin(out, (uint16_t)index, &o->rows[index].id);
        s->rows[index].named = true;
    }
}

/* The last write of an origin before that stamp, from the row's last one on, as far as it is kept.
 */
static uint64_t last_before(const struct sender_row *row, const struct origins *o, uint32_t index,
                            const struct origin_log *log, uint64_t stamp)
{
    uint64_t last = row->before > row->has ? row->before : row->has;
    while (last < o->rows[index].position) {
        const struct unit *u = origin_log_find(log, (uint16_t)index, last + 1);
        if (!u || u->dot.stamp >= stamp) {
            break;
        }
        last++;
    }
    return last;
}

/* What was earlier than our write `u`, of those who write to the peer by other ways. */
static __attribute__((noinline)) void send_causes(struct sender *s, const struct origins *o,
                                                  const struct origin_log *log, struct dot dot,
                                                  struct buf *out)
{
    struct frame_clock *causes = mem_alloc(s->count * sizeof(*causes));
    uint32_t count = 0;
    for (uint32_t i = 1; i < s->count; i++) {
        struct sender_row *row = &s->rows[i];
        if (i == dot_origin(dot) || row->requested || o->rows[i].superseded ||
            memcmp(o->rows[i].id.node, s->peer, ORIGIN_NODE_BYTES) == 0) {
            continue; /* what is requested of us comes in the order of stamps */
        }
        uint64_t last = last_before(row, o, i, log, dot.stamp);
        if (last > row->before && last > row->has) {
            name_origin(s, o, i, out);
            causes[count++] = (struct frame_clock){.handle = (uint16_t)i, .position = last};
        }
        row->before = last;
    }
    if (count > 0) {
        frame_put_causes(out, causes, count);
    }
    mem_free(causes);
}

static ALWAYS_INLINE void put(struct sender *s, const struct origins *o,
                              const struct origin_log *log, const struct log_record *write,
                              struct buf *out)
{
    uint16_t origin = dot_origin(write->dot);
    if (write->has_causes) {
        send_causes(s, o, log, write->dot, out);
    }
    name_origin(s, o, origin, out);
    frame_put_write(out, origin, dot_sequence(write->dot), write->dot.stamp, write->db,
                    write->commands);
    s->rows[origin].sent = dot_sequence(write->dot);
}

void sender_put(struct sender *s, const struct origins *o, const struct origin_log *log,
                const struct log_record *write, struct buf *out)
{
    put(s, o, log, write, out);
}

static ALWAYS_INLINE void put_unit(struct sender *s, const struct origins *o,
                                   const struct origin_log *log, const struct unit *u,
                                   struct buf *out)
{
    put(s, o, log, &(struct log_record){u->dot, u->db, u->has_causes, slice_of(u->bytes, u->len)},
        out);
}

/* Of the next writes of all requested origins the one with the least stamp, and the one behind it
 * of another origin, or NULL; NULL when nothing is to be sent, or (*lost) when one is not kept. */
static const struct unit *next_unit(const struct sender *s, const struct origins *o,
                                    const struct origin_log *log, const struct unit **behind,
                                    bool *lost)
{
    const struct unit *next = NULL;
    *behind = NULL;
    for (uint32_t i = 1; i < s->count; i++) {
        const struct sender_row *row = &s->rows[i];
        if (!row->requested || row->sent >= o->rows[i].position) {
            continue;
        }
        const struct unit *u = origin_log_find(log, (uint16_t)i, row->sent + 1);
        if (!u) {
            *lost = true;
            return NULL;
        }
        if (!next || origins_compare(o, u->dot, next->dot) < 0) {
            *behind = next;
            next = u;
        } else if (!*behind || origins_compare(o, u->dot, (*behind)->dot) < 0) {
            *behind = u;
        }
    }
    return next;
}

/* Sends the origin's writes from this one on, as far as they come before that of another one. */
static void send_run(struct sender *s, const struct origins *o, const struct origin_log *log,
                     const struct unit *u, const struct unit *behind, size_t end, struct buf *out)
{
    uint64_t count, i = 0;
    struct unit *const *run = origin_log_run(log, dot_origin(u->dot), dot_sequence(u->dot), &count);
    do {
        if (i + PREFETCH < count) {
            __builtin_prefetch(run[i + PREFETCH]);
        }
        put_unit(s, o, log, run[i++], out);
    } while (i < count && out->len < end &&
             (!behind || origins_compare(o, run[i]->dot, behind->dot) < 0));
}

bool sender_some(struct sender *s, const struct origins *o, const struct origin_log *log,
                 size_t bytes_max, struct buf *out)
{
    size_t end = out->len + bytes_max;
    bool lost = false;
    hold_later_lives(s, o);
    while (out->len < end) {
        const struct unit *behind, *u = next_unit(s, o, log, &behind, &lost);
        if (!u) {
            break;
        }
        send_run(s, o, log, u, behind, end, out);
    }
    return !lost;
}

/* What comes before the data set, of an origin; NULL: nothing, or it is not kept. */
static const struct unit *unit_before(const struct sender *s, const struct origins *o,
                                      const struct origin_log *log, uint32_t i, uint64_t upto)
{
    const struct sender_row *row = &s->rows[i];
    if (row->sent >= upto || memcmp(o->rows[i].id.node, s->peer, ORIGIN_NODE_BYTES) == 0) {
        return NULL;
    }
    return origin_log_find(log, (uint16_t)i, row->sent + 1);
}

void sender_before(struct sender *s, const struct origins *o, const struct origin_log *log,
                   const struct version_vector *moment, size_t bytes_max, struct buf *out)
{
    size_t end = out->len + bytes_max;
    const struct unit *next = NULL;
    follow_table(s, o);
    do {
        next = NULL;
        for (uint32_t i = 1; i < s->count; i++) {
            const struct unit *u = unit_before(s, o, log, i, version_vector_at(moment, i));
            next = u && (!next || origins_compare(o, u->dot, next->dot) < 0) ? u : next;
        }
        if (next) {
            put_unit(s, o, log, next, out);
        }
    } while (next && out->len < end);
}

/* ---- clocks ---- */

/* Whether the peer is told how far that origin is; not a name that somebody has told, and no more.
 */
static bool has_clock(const struct sender *s, const struct origins *o, uint32_t i)
{
    const struct origin *row = &o->rows[i];
    return (row->position != 0 || row->clock != 0 || row->seen != 0) && is_told(s, o, i);
}

bool sender_has_news(const struct sender *s, const struct origins *o)
{
    for (uint32_t i = 1; i < s->count; i++) {
        if (!o->rows[i].superseded && has_clock(s, o, i) &&
            s->rows[i].told != o->rows[i].position) {
            return true;
        }
    }
    return false;
}

void sender_clocks(struct sender *s, const struct origins *o, struct buf *out)
{
    follow_table(s, o);
    struct frame_clock *clocks = mem_alloc(s->count * sizeof(*clocks));
    uint32_t count = 0;
    for (uint32_t i = 1; i < s->count; i++) {
        const struct origin *origin = &o->rows[i];
        if (!has_clock(s, o, i) || (origin->superseded && s->rows[i].told == origin->position)) {
            continue;
        }
        name_origin(s, o, i, out);
        s->rows[i].told = origin->position;
        clocks[count++] =
            (struct frame_clock){(uint16_t)i, origin->position, origin->clock, origin->seen};
    }
    frame_put_clocks(out, clocks, count);
    mem_free(clocks);
}
