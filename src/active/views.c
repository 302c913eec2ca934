/* See views.h. */
#include "active/views.h"

#include "base/mem.h"
#include "base/num.h"
#include "ds/radix.h"
#include "active/gives.h"
#include "active/membership.h"
#include "active/unit.h"

#include <inttypes.h>
#include <string.h>

/* How many of the gives are looked at in a tick, beyond the first ones. */
#define GIVES_LOOK 1024

/* Rows of what was missed; beyond it the oldest is not told any more. */
#define MISSED_MAX 64
/* Nodes that have heard of what they were given, of a tick, before that is written down. */
#define HEARD_MAX 16

/* Units of an origin that a data set came in place of: from < number <= upto. */
struct missed {
    uint16_t origin;
    uint64_t from, upto;
};

static struct {
    struct node *node; /* NULL: none */
    struct membership members;
    uint64_t view; /* as of the last look; and whether it was settled */
    bool settled;
    bool held; /* nothing was given because of a stranger, since then */
    int64_t begin_ms;
    uint64_t begin_stamp; /* whoever knows of this life tells later ones */
    uint64_t *heard;      /* by origin's index: what its clock and position were */
    uint32_t heard_count;
    struct radix lives;  /* by node: the index of the origin that it is now */
    size_t gives_looked; /* up to there, in this round */
    struct {
        uint8_t node[ORIGIN_NODE_BYTES];
        uint64_t stamp;
    } gives_heard[HEARD_MAX];
    int gives_heard_count;
    struct missed missed[MISSED_MAX];
    int missed_count;
    uint64_t told_stamp; /* of no earlier unit of ours than that which told the view last */
} it;

/* ---- who gives ---- */

/* Changes whenever something of the origin comes. */
static uint64_t sign_of(const struct origin *o)
{
    return o->clock + o->position;
}

/* Something has come, since the last look, of a node that was not heard then. */
static bool hears_stranger(void) REQUIRES(keyspace_lock);
static bool hears_stranger(void)
{
    const struct origins *o = node_origins(it.node);
    for (uint32_t i = 1; i < o->count; i++) {
        const struct origin *origin = origins_at(o, (uint16_t)i);
        if (i != node_self(it.node) && !origin->superseded &&
            sign_of(origin) != (i < it.heard_count ? it.heard[i] : 0) &&
            !membership_hears(&it.members, origin->id.node)) {
            return true;
        }
    }
    return false;
}

bool views_is_home(int db, struct slice key)
{
    if (!membership_is_home(&it.members, db, key)) {
        return false;
    }
    if (!it.members.alone && hears_stranger()) {
        it.held = true;
        return false;
    }
    return true;
}

bool views_has(const uint8_t node[ORIGIN_NODE_BYTES])
{
    return membership_has(&it.members, node);
}

bool views_know_others(void)
{
    return it.members.count > 0;
}

/* ---- what peers say ---- */

enum views_life views_life_of(uint16_t origin)
{
    const struct origin *o = origins_at(node_origins(it.node), origin);
    struct slice key = slice_of((const char *)o->id.node, ORIGIN_NODE_BYTES);
    uintptr_t known = (uintptr_t)radix_find(&it.lives, key);
    if (o->superseded) {
        return VIEWS_LIFE_OVER;
    }
    if (known == origin) {
        return VIEWS_LIFE_KNOWN;
    }
    if (known) {
        radix_remove(&it.lives, key);
        membership_reborn(&it.members, o->id.node);
    }
    radix_insert(&it.lives, key, (void *)(uintptr_t)origin);
    return known ? VIEWS_LIFE_NEW : VIEWS_LIFE_KNOWN;
}

/* ---- what is given, in files ---- */

static void tell_heard(void)
{
    struct buf row = {0};
    for (int i = 0; i < it.gives_heard_count; i++) {
        buf_clear(&row);
        gives_put_heard(it.gives_heard[i].node, it.gives_heard[i].stamp, &row);
        log_head_say(node_head(it.node), "HEARD", buf_slice(&row));
    }
    it.gives_heard_count = 0;
    buf_deinit(&row);
}

/* It has arrived, or is put back: so is what its node was given before. */
static void note_heard(const struct give *give)
{
    int i = 0;
    while (i < it.gives_heard_count &&
           memcmp(it.gives_heard[i].node, give->node, ORIGIN_NODE_BYTES) != 0) {
        i++;
    }
    if (i == HEARD_MAX) {
        tell_heard();
        i = 0;
    }
    if (i == it.gives_heard_count) {
        memcpy(it.gives_heard[i].node, give->node, ORIGIN_NODE_BYTES);
        it.gives_heard[i].stamp = 0;
        it.gives_heard_count++;
    }
    if (give->stamp > it.gives_heard[i].stamp) {
        it.gives_heard[i].stamp = give->stamp;
    }
}

/* What units of ours gave to a node's clients, which it has missed, is put back: they wait on. */
static void take_back(const uint8_t *node, uint64_t epoch, uint64_t from, uint64_t upto,
                      void (*put_back)(int db, int words, struct slice text))
{
    struct give give;
    struct gives *g = node_gives(it.node);
    size_t left = g->count;
    while (gives_take_missed(g, node, epoch, from, upto, &left, &give)) {
        note_heard(&give);
        put_back(give.db, give.words, give.back);
        mem_free((char *)give.back.ptr);
    }
}

void views_hear(const uint8_t node[ORIGIN_NODE_BYTES], uint64_t stamp, int argc,
                const struct slice *argv, int64_t now_ms,
                void (*put_back)(int db, int words, struct slice text))
{
    uint64_t view, entry, from, upto;
    struct origin_id id;
    if (argc < 3 || !num_parse_u64(argv[1], &view) || !num_parse_u64(argv[2], &entry)) {
        return;
    }
    /* What was told to a life of ours before this one, and comes once more since our files lack it,
     * may have been done then; if not, it is told again, to this one. */
    bool known = stamp <= it.begin_stamp;
    for (int i = 3; !known && i + 2 < argc && i < 3 + 3 * MISSED_MAX; i += 3) {
        if (origin_parse(argv[i], &id) && num_parse_u64(argv[i + 1], &from) &&
            num_parse_u64(argv[i + 2], &upto) &&
            memcmp(id.node, node_id(it.node), ORIGIN_NODE_BYTES) == 0) {
            take_back(node, id.epoch, from, upto, put_back);
        }
    }
    membership_told(&it.members, node, view, entry, now_ms);
}

/* ---- what is given ---- */

void views_gave(const uint8_t node[ORIGIN_NODE_BYTES], int db, int words, struct slice text)
{
    struct buf row = {0};
    struct give give = {.epoch = node_epoch(it.node),
                        .number = local_writes_last(node_own(it.node)),
                        .stamp = node_clock(it.node)->last,
                        .db = db,
                        .words = words,
                        .back = text};
    memcpy(give.node, node, ORIGIN_NODE_BYTES);
    gives_add(node_gives(it.node), &give);
    gives_put_row(&give, &row);
    log_head_say(node_head(it.node), "GAVE", buf_slice(&row));
    buf_deinit(&row);
}

/* Its node has all that we told then: what it has missed of it, it said before. */
static bool has_arrived(const struct give *give)
{
    struct slice node = slice_of((const char *)give->node, ORIGIN_NODE_BYTES);
    uint16_t origin = (uint16_t)(uintptr_t)radix_find(&it.lives, node);
    return origin && membership_told_by(&it.members, give->node) != 0 &&
           origins_at(node_origins(it.node), origin)->seen >= give->stamp;
}

/* A node that is away for good does not keep those of others: else one that comes back without its
 * files, and so has missed all, would have them put back. */
static void forget_gives(void)
{
    struct gives *g = node_gives(it.node);
    for (int n = 0; n < GIVES_LOOK && it.gives_looked < g->count; n++, it.gives_looked++) {
        const struct give *give = gives_at(g, it.gives_looked);
        if (give->words > 0 && has_arrived(give)) {
            note_heard(give);
            gives_clear(g, it.gives_looked);
        }
    }
    while (g->count > 0 && (gives_at(g, 0)->words == 0 || has_arrived(gives_at(g, 0)))) {
        if (gives_at(g, 0)->words > 0) {
            note_heard(gives_at(g, 0));
        }
        gives_drop(g);
        it.gives_looked -= it.gives_looked > 0;
    }
    tell_heard();
    if (it.gives_looked >= g->count) {
        it.gives_looked = 0;
    }
}

/* ---- time ---- */

static void listen(int64_t now_ms)
{
    const struct origins *o = node_origins(it.node);
    bool first = it.heard_count == 0; /* what the files know of somebody is not heard of him */
    if (it.heard_count < o->count) {
        it.heard = mem_realloc(it.heard, o->count * sizeof(*it.heard));
        memset(it.heard + it.heard_count, 0, (o->count - it.heard_count) * sizeof(*it.heard));
        it.heard_count = o->count;
    }
    for (uint32_t i = 1; i < o->count; i++) {
        const struct origin *origin = origins_at(o, (uint16_t)i);
        uint64_t sign = sign_of(origin);
        if (!origin->superseded && sign != it.heard[i]) {
            it.heard[i] = sign;
            if (!first) {
                membership_hear(&it.members, origin->id.node, now_ms);
            }
        }
    }
}

static void put_missed(struct buf *unit, const struct missed *row)
{
    char text[ORIGIN_CHARS];
    origin_format(&origins_at(node_origins(it.node), row->origin)->id, text);
    unit_put_word(unit, slice_of(text, sizeof(text)));
    unit_put_number(unit, row->from);
    unit_put_number(unit, row->upto);
}

static void tell_view(void) REQUIRES(keyspace_lock);
static void tell_view(void)
{
    struct buf unit = {0};
    buf_printf(&unit, "*%d\r\n", 3 + 3 * it.missed_count);
    unit_put_word(&unit, SLICE("KEYDB.VIEW"));
    unit_put_number(&unit, it.members.view);
    unit_put_number(&unit, it.members.entry);
    for (int i = 0; i < it.missed_count; i++) {
        put_missed(&unit, &it.missed[i]);
    }
    local_writes_tell(node_own(it.node), 0, buf_slice(&unit));
    it.told_stamp = node_clock(it.node)->last;
    keyspace_has_work = true;
    buf_deinit(&unit);
}

/* Finds out the view. */
static struct views_news look(bool willing, int64_t now_ms) REQUIRES(keyspace_lock);
static struct views_news look(bool willing, int64_t now_ms)
{
    if (membership_look(&it.members, willing, now_ms)) {
        tell_view();
    }
    struct views_news news = {.changed = it.view != it.members.view,
                              .settled = membership_is_settled(&it.members)};
    news.differs = news.changed || news.settled != it.settled;
    it.view = it.members.view;
    it.settled = news.settled;
    return news;
}

/* Whose nodes have our view, with all that we have missed of them: told once more, it would have
 * them put back again what they have put back and, being back from an older file, know not of. */
static void forget_missed(void)
{
    int left = 0;
    if (!membership_is_settled(&it.members)) {
        return;
    }
    for (int i = 0; i < it.missed_count; i++) {
        const struct origin *o = origins_at(node_origins(it.node), it.missed[i].origin);
        struct slice node = slice_of((const char *)o->id.node, ORIGIN_NODE_BYTES);
        uint16_t now = (uint16_t)(uintptr_t)radix_find(&it.lives, node);
        bool has_it = now && membership_has(&it.members, o->id.node) &&
                      origins_at(node_origins(it.node), now)->seen >= it.told_stamp;
        it.missed[left] = it.missed[i];
        left += !has_it;
    }
    it.missed_count = left;
}

struct views_news views_look(bool linked, int64_t now_ms)
{
    listen(now_ms);
    /* Who has just begun may be away for the others still, or known by what it was. */
    bool alone = !linked && node_origins(it.node)->count <= 2;
    bool willing = !node_is_merging(it.node) &&
                   (alone || it.members.view || now_ms - it.begin_ms >= MEMBER_SILENT_MS);
    forget_gives();
    struct views_news news = look(willing, now_ms);
    forget_missed();
    news.differs = news.differs || it.held;
    it.held = false;
    return news;
}

static void add_missed(uint16_t origin, uint64_t from, uint64_t upto)
{
    if (it.missed_count == MISSED_MAX) {
        memmove(it.missed, it.missed + 1, (MISSED_MAX - 1) * sizeof(it.missed[0]));
        it.missed_count--;
    }
    it.missed[it.missed_count++] = (struct missed){origin, from, upto};
}

/* Of lives that are over, or of the others. False: none was. */
static bool add_all_missed(const struct version_vector *before, bool over)
{
    bool any = false;
    const struct origins *o = node_origins(it.node);
    for (uint32_t i = 1; i < o->count; i++) {
        const struct origin *origin = origins_at(o, (uint16_t)i);
        uint64_t from = version_vector_at(before, i);
        bool other = memcmp(origin->id.node, node_id(it.node), ORIGIN_NODE_BYTES) != 0;
        if (i != node_self(it.node) && origin->superseded == over && origin->position > from) {
            any = true;
            if (other) {
                add_missed((uint16_t)i, from, origin->position);
            }
        }
    }
    return any;
}

bool views_missed(const struct version_vector *before, int64_t now_ms, struct views_news *news)
{
    /* Lives that are over first: where there is no room for all, these go. */
    bool any = add_all_missed(before, true);
    any = add_all_missed(before, false) || any;
    if (any) {
        membership_missed(&it.members);
        *news = look(false, now_ms);
    }
    return any;
}

/* ---- life ---- */

void views_begin(struct node *n, uint64_t entry, int64_t now_ms)
{
    it.node = n;
    it.begin_ms = now_ms;
    it.begin_stamp = node_clock(n)->last;
    it.view = 0;
    it.settled = false;
    it.held = false;
    it.missed_count = it.gives_heard_count = 0;
    it.gives_looked = 0;
    membership_init(&it.members, node_id(n), entry);
    radix_init(&it.lives);
}

void views_end(void)
{
    it.node = NULL;
    radix_deinit(&it.lives, NULL, NULL);
    membership_deinit(&it.members);
    mem_free(it.heard);
    it.heard = NULL;
    it.heard_count = 0;
}

void views_note_put_back(void)
{
    tell_heard(); /* one record says both: it stands at the head of the first of those writes */
}

void views_write_info(struct buf *out)
{
    uint32_t members = it.node && it.members.view ? 1 : 0;
    for (uint32_t i = 0; it.node && i < it.members.count; i++) {
        members += it.members.others[i].in_view;
    }
    buf_printf(out, "active_members:%" PRIu32 "\r\nactive_members_agree:%d\r\n", members,
               it.node && membership_is_settled(&it.members));
}
