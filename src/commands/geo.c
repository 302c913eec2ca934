/* Geo: points as members of sorted sets whose scores are geohashes of 52 bits. Searching is in
 * geo_search.c. */
#include "commands/commands.h"
#include "commands/geo_priv.h"

#include "base/num.h"
#include "engine/propagate.h"
#include "keyspace/access.h"
#include "value/zset.h"

#include <math.h>

bool geo_parse_point(struct call *c, int arg, struct geohash_point *point)
{
    if (!call_arg_double(c, arg, &point->longitude, NULL) ||
        !call_arg_double(c, arg + 1, &point->latitude, NULL)) {
        return false;
    }
    if (!geohash_is_valid_point(*point)) {
        reply_errorf(c->reply, "ERR invalid longitude,latitude pair %f,%f", point->longitude,
                     point->latitude);
        return false;
    }
    return true;
}

bool geo_parse_unit(struct call *c, int arg, double *metres)
{
    static const struct {
        const char *word;
        double metres;
    } units[] = {{"m", 1}, {"km", 1000}, {"ft", 0.3048}, {"mi", 1609.34}};
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (call_arg_is(c, arg, units[i].word)) {
            *metres = units[i].metres;
            return true;
        }
    }
    reply_error(c->reply, "ERR unsupported unit provided. please use M, KM, FT, MI");
    return false;
}

static void reply_coordinate(struct call *c, double value)
{
    char text[NUM_DOUBLE_MAX_CHARS];
    struct slice digits = slice_of(text, num_format_long_double(text, value));
    if (c->reply->proto >= 3) {
        reply_raw(c->reply, SLICE(","));
        reply_raw(c->reply, digits);
        reply_raw(c->reply, SLICE("\r\n"));
    } else {
        reply_bulk(c->reply, digits);
    }
}

void geo_reply_point(struct call *c, struct geohash_point point)
{
    reply_array(c->reply, 2);
    reply_coordinate(c, point.longitude);
    reply_coordinate(c, point.latitude);
}

/* Above this a ten-thousandth is not much more than what a double can tell. */
#define DISTANCE_QUICK_MAX 1e8
/* Nearer than this to the middle between two ten-thousandths, the product's rounding could decide.
 */
#define DISTANCE_DOUBT 1e-3

void geo_reply_distance(struct call *c, double distance)
{
    double scaled = distance * 10000, whole = floor(scaled);
    if (!(distance > 0 && distance < DISTANCE_QUICK_MAX) ||
        fabs(scaled - whole - 0.5) < DISTANCE_DOUBT) {
        reply_bulkf(c->reply, "%.4f", distance);
        return;
    }
    char text[32];
    uint64_t parts = (uint64_t)whole + (scaled - whole > 0.5);
    size_t len = num_format_u64(text, parts / 10000);
    text[len++] = '.';
    for (uint64_t unit = 1000; unit > 0; unit /= 10) {
        text[len++] = (char)('0' + parts / unit % 10);
    }
    reply_bulk(c->reply, slice_of(text, len));
}

/* ---- GEOADD ---- */

#define GEO_ADD_CH (1u << 31)

/* Reads NX, XX and CH; returns the index of the first longitude, -1 with an error replied. */
static int parse_add_flags(struct call *c, unsigned *flags)
{
    int arg = 2;
    for (*flags = 0; arg < c->argc; arg++) {
        if (call_arg_is(c, arg, "nx")) {
            *flags |= ZSET_ADD_NX;
        } else if (call_arg_is(c, arg, "xx")) {
            *flags |= ZSET_ADD_XX;
        } else if (call_arg_is(c, arg, "ch")) {
            *flags |= GEO_ADD_CH;
        } else {
            break;
        }
    }
    bool both = (*flags & ZSET_ADD_NX) && (*flags & ZSET_ADD_XX);
    if (arg == c->argc || (c->argc - arg) % 3 != 0 || both) {
        reply_syntax_error(c->reply);
        return -1;
    }
    return arg;
}

/* All triples must be right before the first is added. */
static bool triples_are_valid(struct call *c, int first)
{
    struct geohash_point point;
    for (int i = first; i < c->argc; i += 3) {
        if (!geo_parse_point(c, i, &point)) {
            return false;
        }
        if (c->argv[i + 2].len > ZSET_MAX_MEMBER_BYTES) {
            reply_error(c->reply, "ERR string exceeds maximum allowed size (proto-max-bulk-len)");
            return false;
        }
    }
    return true;
}

/* What was added is told as members of a sorted set, whose scores nobody has to compute again: to
 * peers those that changed, to the other logs all, under the conditions that stood here. */
static void tell_added(struct call *c, unsigned flags, struct propagate_draft *changed,
                       struct propagate_draft *all) REQUIRES(keyspace_lock);
static void tell_added(struct call *c, unsigned flags, struct propagate_draft *changed,
                       struct propagate_draft *all)
{
    struct propagate_draft d = {0};
    if (propagate_peers) {
        propagate_add(&d, SLICE("ZADD"));
        propagate_add(&d, call_key(c, 0)->name);
        propagate_add_draft(&d, changed);
        propagate_draft_to_peers(c, &d);
    }
    propagate_add(&d, SLICE("ZADD"));
    propagate_add(&d, call_key(c, 0)->name);
    if (flags & (ZSET_ADD_NX | ZSET_ADD_XX)) {
        propagate_add(&d, flags & ZSET_ADD_NX ? SLICE("NX") : SLICE("XX"));
    }
    if (flags & GEO_ADD_CH) {
        propagate_add(&d, SLICE("CH"));
    }
    propagate_add_draft(&d, all);
    propagate_draft_instead(c, &d);
}

static void draft_member(struct propagate_draft *d, double score, struct slice member)
{
    propagate_add_number(d, (int64_t)score); /* of 52 bits */
    propagate_add(d, member);
}

static void add_triples(struct call *c, struct keyref *ref, int first, unsigned flags)
    REQUIRES(keyspace_lock)
{
    uint64_t added = 0, updated = 0;
    struct propagate_draft changed = {0}, all = {0};
    struct entry *e = ref->entry ? ref->entry : zset_create(ref->key.name, c->argv[first + 2].len);
    for (int i = first; i < c->argc; i += 3) {
        struct geohash_point point;
        bool right = geo_parse_point(c, i, &point);
        assert(right);
        (void)right;
        double score = (double)geohash_encode(point, GEOHASH_MAX_STEP).bits;
        enum zset_added result = zset_add(e, c->argv[i + 2], flags & ~GEO_ADD_CH, &score);
        added += result == ZSET_ADDED;
        updated += result == ZSET_UPDATED;
        if (unlikely(propagate_peers) && (result == ZSET_ADDED || result == ZSET_UPDATED)) {
            draft_member(&changed, score, c->argv[i + 2]);
        }
        if (unlikely(propagate_on)) {
            draft_member(&all, score, c->argv[i + 2]);
        }
    }
    if (!ref->entry) {
        assert(added > 0);
        entry_set_clock(e, access_initial(c->now_ms));
        db_put(ref, e);
    }
    if (added + updated > 0) {
        call_changed(c, ref, EVENT_ZSET, "zadd");
        c->dirty += added + updated - 1;
    }
    if (unlikely(propagate_on) && added + updated > 0) {
        tell_added(c, flags, &changed, &all);
    }
    buf_deinit(&all.words);
    reply_i64(c->reply, (int64_t)(flags & GEO_ADD_CH ? added + updated : added));
}

WRITE_COMMAND(geoadd_command)
{
    unsigned flags;
    struct keyref ref;
    int first = parse_add_flags(c, &flags);
    if (first < 0 || !triples_are_valid(c, first) || !call_open_typed(c, 0, VALUE_ZSET, &ref)) {
        return;
    }
    if (!ref.entry && (flags & ZSET_ADD_XX)) {
        reply_i64(c->reply, 0);
        return;
    }
    add_triples(c, &ref, first, flags);
}

/* ---- Asking about members ---- */

/* The point of a member; false when there is none. */
static bool point_of(const struct entry *e, struct slice member, struct geohash_point *point)
    REQUIRES_SHARED(keyspace_lock)
{
    double score;
    if (!e || !zset_score(e, member, &score)) {
        return false;
    }
    *point = geohash_point_of_score(score);
    return true;
}

READ_COMMAND(geohash_command)
{
    struct entry *e;
    if (!call_read_typed(c, 0, VALUE_ZSET, &e)) {
        return;
    }
    reply_array(c->reply, (uint64_t)(c->argc - 2));
    for (int i = 2; i < c->argc; i++) {
        struct geohash_point point;
        char text[GEOHASH_TEXT_BYTES];
        if (point_of(e, c->argv[i], &point)) {
            geohash_text(point, text);
            reply_bulk(c->reply, slice_of(text, sizeof(text)));
        } else {
            reply_null(c->reply);
        }
    }
}

READ_COMMAND(geopos_command)
{
    struct entry *e;
    if (!call_read_typed(c, 0, VALUE_ZSET, &e)) {
        return;
    }
    reply_array(c->reply, (uint64_t)(c->argc - 2));
    for (int i = 2; i < c->argc; i++) {
        struct geohash_point point;
        if (point_of(e, c->argv[i], &point)) {
            geo_reply_point(c, point);
        } else {
            reply_null_array(c->reply);
        }
    }
}

READ_COMMAND(geodist_command)
{
    struct entry *e;
    struct geohash_point a, b;
    double metres = 1;
    if (c->argc == 5 && !geo_parse_unit(c, 4, &metres)) {
        return;
    }
    if (c->argc > 5) {
        reply_syntax_error(c->reply);
        return;
    }
    if (!call_read_typed(c, 0, VALUE_ZSET, &e)) {
        return;
    }
    if (point_of(e, c->argv[2], &a) && point_of(e, c->argv[3], &b)) {
        geo_reply_distance(c, geohash_distance_m(a, b) / metres);
    } else {
        reply_null(c->reply);
    }
}

const struct command_row geo_commands[] = {
    {.name = "geoadd",
     .run = geoadd_command,
     .arity = -5,
     .flags = CMD_WRITE | CMD_DENYOOM,
     .categories = CATEGORY_GEO,
     .keys = "i1/r0,1,0/RW+UPDATE",
     .group = "geo",
     .since = "3.2.0",
     .summary = "Adds members with their positions, or moves them.",
     .complexity = "O(log N) for each member, N being the members there are",
     .members = {-1, -3},
     .args = "key [NX|XX] [CH] longitude latitude member [longitude latitude member ...]",
     .history = "6.2.0:Takes CH, NX and XX."},
    {.name = "geodist",
     .run = geodist_command,
     .arity = -4,
     .flags = CMD_READONLY,
     .categories = CATEGORY_GEO,
     .keys = "i1/r0,1,0/RO+ACCESS",
     .group = "geo",
     .since = "3.2.0",
     .summary = "Returns the distance between two members.",
     .complexity = "O(1)",
     .members = {2, 1},
     .args = "key member1 member2 [m|km|ft|mi]"},
    {.name = "geohash",
     .run = geohash_command,
     .arity = -2,
     .flags = CMD_READONLY,
     .categories = CATEGORY_GEO,
     .keys = "i1/r0,1,0/RO+ACCESS",
     .group = "geo",
     .since = "3.2.0",
     .summary = "Returns the positions of members as standard geohashes.",
     .complexity = "O(1) for each member",
     .members = {2, 1},
     .args = "key [member [member ...]]"},
    {.name = "geopos",
     .run = geopos_command,
     .arity = -2,
     .flags = CMD_READONLY,
     .categories = CATEGORY_GEO,
     .keys = "i1/r0,1,0/RO+ACCESS",
     .group = "geo",
     .since = "3.2.0",
     .summary = "Returns longitude and latitude of members.",
     .complexity = "O(1) for each member",
     .members = {2, 1},
     .args = "key [member [member ...]]"},
    {.name = NULL},
};
