/* See sources.h. */
#include "active/sources.h"

#include "base/mem.h"
#include "base/num.h"

#include <string.h>

#define NOBODY (-1)

void sources_init(struct sources *w)
{
    *w = (struct sources){0};
}

void sources_deinit(struct sources *w)
{
    mem_free(w->rows);
    *w = (struct sources){0};
}

static void follow_table(struct sources *w, const struct origins *o)
{
    if (w->count < o->count) {
        w->rows = mem_realloc(w->rows, o->count * sizeof(*w->rows));
        for (; w->count < o->count; w->count++) {
            w->rows[w->count] = (struct source_row){.link = NOBODY};
        }
    }
}

/* What a choice is made from. */
struct choice {
    const struct source_link *links;
    int count;
    const struct origin *origin;
    uint16_t index;
    int64_t now_ms;
};

static bool is_up(const struct choice *c, int link)
{
    return link >= 0 && link < c->count && c->links[link].up;
}

static bool is_direct(const struct choice *c, int link)
{
    return memcmp(c->links[link].node, c->origin->id.node, ORIGIN_NODE_BYTES) == 0;
}

static bool is_lively(const struct choice *c, int link)
{
    return is_up(c, link) &&
           (c->links[link].busy || c->now_ms - c->links[link].heard_ms < SOURCE_SILENT_MS);
}

static uint64_t told(const struct choice *c, int link)
{
    return receiver_position(c->links[link].take, c->index);
}

/* Of two lively links: the further one, of equal ones the direct one, else the first. */
static bool is_better(const struct choice *c, int link, int than)
{
    if (told(c, link) != told(c, than)) {
        return told(c, link) > told(c, than);
    }
    return is_direct(c, link) && !is_direct(c, than);
}

static int best_link(const struct choice *c)
{
    int best = NOBODY;
    for (int l = 0; l < c->count; l++) {
        if (is_lively(c, l) && (best == NOBODY || is_better(c, l, best))) {
            best = l;
        }
    }
    return best;
}

/* A lively link to the node itself that lacks nothing of what we have; NOBODY without one. */
static int direct_link(const struct choice *c)
{
    for (int l = 0; l < c->count; l++) {
        if (is_lively(c, l) && is_direct(c, l) && told(c, l) >= c->origin->position) {
            return l;
        }
    }
    return NOBODY;
}

/* The current link brings nothing, though there is something: for a while, or it never has, and was
 * the only one there (it has what it has by us, as in a chain). */
static bool is_stalled(const struct choice *c, const struct source_row *row, int best)
{
    bool never = !is_direct(c, row->link) && !receiver_brings(c->links[row->link].take, c->index);
    return (never || c->now_ms - row->moved_ms >= SOURCE_STALLED_MS) &&
           told(c, best) > c->origin->position && told(c, row->link) <= c->origin->position;
}

static int choose(const struct choice *c, const struct source_row *row, int best)
{
    int direct = direct_link(c);
    if (is_up(c, row->link) && c->links[row->link].busy) {
        return direct != NOBODY ? direct : row->link;
    }
    if (best == NOBODY) {
        return is_up(c, row->link) ? row->link : NOBODY;
    }
    if (!is_lively(c, row->link) || is_stalled(c, row, best)) {
        return best;
    }
    return direct != NOBODY ? direct : row->link;
}

bool sources_choose(struct sources *w, struct origins *o, uint16_t self,
                    const struct source_link *links, int count, int64_t now_ms)
{
    bool changed = false;
    follow_table(w, o);
    for (uint32_t i = 1; i < w->count; i++) {
        struct source_row *row = &w->rows[i];
        struct choice c = {links, count, &o->rows[i], (uint16_t)i, now_ms};
        if (row->position != c.origin->position) {
            row->position = c.origin->position;
            row->moved_ms = row->still_ms = now_ms;
        }
        int best = best_link(&c);
        uint64_t most = best == NOBODY ? 0 : told(&c, best);
        row->still_ms = most > row->position && row->still_ms ? row->still_ms : now_ms;
        o->rows[i].told = now_ms - row->still_ms < SOURCE_GIVEN_UP_MS ? most : row->position;
        int link = i == self ? NOBODY : choose(&c, row, best);
        if (link != row->link) {
            row->link = link;
            row->moved_ms = now_ms;
            changed = true;
        }
    }
    return changed;
}

void sources_prefer(struct sources *w, const struct origins *o, const struct source_link *links,
                    int count, int link, int64_t now_ms)
{
    follow_table(w, o);
    for (uint32_t i = 1; i < w->count; i++) {
        struct source_row *row = &w->rows[i];
        struct choice c = {links, count, &o->rows[i], (uint16_t)i, now_ms};
        if (is_lively(&c, link) &&
            !(is_lively(&c, row->link) &&
              (is_direct(&c, row->link) || receiver_brings(links[row->link].take, c.index)))) {
            row->link = link;
            row->moved_ms = now_ms;
        }
    }
}

bool sources_from(const struct sources *w, uint16_t origin, int link)
{
    return origin < w->count && w->rows[origin].link == link;
}

static void put_word(struct buf *out, const char *word, size_t len)
{
    buf_printf(out, "$%zu\r\n", len);
    buf_append(out, word, len);
    buf_append_cstr(out, "\r\n");
}

static void put_origin(const struct origin *origin, bool requested, struct buf *out)
{
    char text[ORIGIN_CHARS], number[NUM_I64_MAX_CHARS];
    origin_format(&origin->id, text);
    put_word(out, text, sizeof(text));
    put_word(out, number, num_format_u64(number, origin->position));
    put_word(out, requested ? "1" : "0", 1);
}

void source_told_deinit(struct source_told *t)
{
    mem_free(t->rows);
    *t = (struct source_told){0};
}

int sources_put_words(const struct sources *w, const struct origins *o, int link,
                      struct source_told *told, struct buf *out)
{
    int words = 0;
    if (told->count < o->count) {
        told->rows = mem_realloc(told->rows, o->count * sizeof(*told->rows));
        memset(told->rows + told->count, 0, (o->count - told->count) * sizeof(*told->rows));
        told->count = o->count;
    }
    for (uint32_t i = 1; i < o->count; i++) {
        bool requested = sources_from(w, (uint16_t)i, link);
        uint64_t news = 2 * o->rows[i].position + requested + 1;
        if (told->rows[i] != news) {
            told->rows[i] = news;
            put_origin(&o->rows[i], requested, out);
            words += 3;
        }
    }
    return words;
}
