/* Searching members by where they are: GEOSEARCH, GEOSEARCHSTORE, and the older GEORADIUS and its
 * kin. One search serves them all: options are read, cells that cover the shape are looked through
 * by score, what lies in the shape is collected, put in order, and replied or stored. */
#include "commands/commands.h"
#include "commands/geo_priv.h"
#include "commands/zsets_priv.h"

#include "base/buf.h"
#include "base/mem.h"
#include "value/zset.h"

#include <stdlib.h>

/* How a command says what it looks for. */
enum geo_form {
    GEO_BY_POINT = 1 << 0,  /* GEORADIUS: longitude, latitude, radius, unit */
    GEO_BY_MEMBER = 1 << 1, /* GEORADIUSBYMEMBER: member, radius, unit */
    GEO_SEARCH = 1 << 2,    /* GEOSEARCH: all in options */
    GEO_STORE = 1 << 3,     /* GEOSEARCHSTORE: the destination comes first */
    GEO_READ_ONLY = 1 << 4, /* _RO: no STORE */
};

enum geo_order { GEO_UNORDERED, GEO_ASCENDING, GEO_DESCENDING };

struct geo_query {
    unsigned form;
    const struct entry *source; /* NULL when missing */
    struct geohash_shape shape;
    double unit_m;
    bool from_member, from_point, by_radius, by_box;
    bool with_distance, with_hash, with_point;
    bool any;
    int64_t count; /* 0: all */
    enum geo_order order;
    bool stores; /* under the request's other key (engine/keyspecs.c finds the last that counts) */
    bool store_distance;
};

/* ---- Reading the arguments ---- */

static bool parse_radius(struct call *c, int arg, struct geo_query *q)
{
    double radius;
    if (!call_arg_double(c, arg, &radius, "ERR need numeric radius")) {
        return false;
    }
    if (radius < 0) {
        reply_error(c->reply, "ERR radius cannot be negative");
        return false;
    }
    q->shape.is_box = false;
    if (!geo_parse_unit(c, arg + 1, &q->unit_m)) {
        return false;
    }
    q->shape.radius_m = radius * q->unit_m;
    return true;
}

static bool parse_box(struct call *c, int arg, struct geo_query *q)
{
    double width, height;
    if (!call_arg_double(c, arg, &width, "ERR need numeric width") ||
        !call_arg_double(c, arg + 1, &height, "ERR need numeric height")) {
        return false;
    }
    if (width < 0 || height < 0) {
        reply_error(c->reply, "ERR height or width cannot be negative");
        return false;
    }
    q->shape.is_box = true;
    if (!geo_parse_unit(c, arg + 2, &q->unit_m)) {
        return false;
    }
    q->shape.width_m = width * q->unit_m;
    q->shape.height_m = height * q->unit_m;
    return true;
}

/* The centre is where a member is. Without a source nothing is found, and nothing to say. */
static bool parse_member(struct call *c, int arg, struct geo_query *q)
    REQUIRES_SHARED(keyspace_lock)
{
    double score;
    if (!q->source) {
        return true;
    }
    if (!zset_score(q->source, c->argv[arg], &score)) {
        reply_error(c->reply, "ERR could not decode requested zset member");
        return false;
    }
    q->shape.centre = geohash_point_of_score(score);
    return true;
}

/* What comes before the options. Returns the index of the first option, -1 with an error replied.
 */
static int parse_fixed(struct call *c, struct geo_query *q) REQUIRES_SHARED(keyspace_lock)
{
    if (q->form & GEO_BY_POINT) {
        return geo_parse_point(c, 2, &q->shape.centre) && parse_radius(c, 4, q) ? 6 : -1;
    }
    if (q->form & GEO_BY_MEMBER) {
        /* As Redis: the radius of a search in nothing is not looked at. */
        bool right = !q->source || (parse_member(c, 2, q) && parse_radius(c, 3, q));
        return right ? 5 : -1;
    }
    q->stores = q->form & GEO_STORE;
    return q->form & GEO_STORE ? 3 : 2;
}

static bool parse_count(struct call *c, int arg, struct geo_query *q)
{
    if (!call_arg_i64(c, arg, &q->count)) {
        return false;
    }
    if (q->count <= 0) {
        reply_error(c->reply, "ERR COUNT must be > 0");
        return false;
    }
    return true;
}

/* The options without value; false when the word is none of them. */
static bool parse_word(struct call *c, int arg, struct geo_query *q)
{
    if (call_arg_is(c, arg, "withdist")) {
        q->with_distance = true;
    } else if (call_arg_is(c, arg, "withhash")) {
        q->with_hash = true;
    } else if (call_arg_is(c, arg, "withcoord")) {
        q->with_point = true;
    } else if (call_arg_is(c, arg, "any")) {
        q->any = true;
    } else if (call_arg_is(c, arg, "asc")) {
        q->order = GEO_ASCENDING;
    } else if (call_arg_is(c, arg, "desc")) {
        q->order = GEO_DESCENDING;
    } else if ((q->form & GEO_STORE) && call_arg_is(c, arg, "storedist")) {
        q->store_distance = true;
    } else {
        return false;
    }
    return true;
}

/* Where and how GEOSEARCH searches. Returns the arguments taken, 0 when it is no such option, -1
 * with an error replied. */
static int parse_search_option(struct call *c, int arg, struct geo_query *q)
    REQUIRES_SHARED(keyspace_lock)
{
    int more = c->argc - arg - 1;
    if (call_arg_is(c, arg, "frommember") && more >= 1 && !q->from_point) {
        q->from_member = true;
        return parse_member(c, arg + 1, q) ? 2 : -1;
    }
    if (call_arg_is(c, arg, "fromlonlat") && more >= 2 && !q->from_member) {
        q->from_point = true;
        return geo_parse_point(c, arg + 1, &q->shape.centre) ? 3 : -1;
    }
    if (call_arg_is(c, arg, "byradius") && more >= 2 && !q->by_box) {
        q->by_radius = true;
        return parse_radius(c, arg + 1, q) ? 3 : -1;
    }
    if (call_arg_is(c, arg, "bybox") && more >= 3 && !q->by_radius) {
        q->by_box = true;
        return parse_box(c, arg + 1, q) ? 4 : -1;
    }
    return 0;
}

/* STORE and STOREDIST of GEORADIUS; as above. */
static int parse_store_option(struct call *c, int arg, struct geo_query *q)
{
    bool distance = call_arg_is(c, arg, "storedist");
    if ((!distance && !call_arg_is(c, arg, "store")) || arg + 1 >= c->argc) {
        return 0;
    }
    q->stores = true;
    q->store_distance = distance;
    return 2;
}

static bool parse_options(struct call *c, int first, struct geo_query *q)
    REQUIRES_SHARED(keyspace_lock)
{
    for (int arg = first, taken; arg < c->argc; arg += taken) {
        taken = 0;
        if (parse_word(c, arg, q)) {
            taken = 1;
        } else if (call_arg_is(c, arg, "count") && arg + 1 < c->argc) {
            taken = parse_count(c, arg + 1, q) ? 2 : -1;
        } else if (q->form & GEO_SEARCH) {
            taken = parse_search_option(c, arg, q);
        } else if (!(q->form & GEO_READ_ONLY)) {
            taken = parse_store_option(c, arg, q);
        }
        if (taken == 0) {
            reply_syntax_error(c->reply);
        }
        if (taken <= 0) {
            return false;
        }
    }
    return true;
}

/* What each option alone does not show; false with an error replied. */
static bool check_options(struct call *c, struct geo_query *q)
{
    bool search = q->form & GEO_SEARCH;
    int name_len = (int)c->argv[0].len;
    if (q->stores && (q->with_distance || q->with_hash || q->with_point)) {
        reply_errorf(c->reply,
                     "ERR %s is not compatible with WITHDIST, WITHHASH and WITHCOORD options",
                     q->form & GEO_STORE ? "GEOSEARCHSTORE" : "STORE option in GEORADIUS");
    } else if (search && !q->from_member && !q->from_point) {
        reply_errorf(c->reply,
                     "ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for %.*s",
                     name_len, c->argv[0].ptr);
    } else if (search && !q->by_radius && !q->by_box) {
        reply_errorf(c->reply, "ERR exactly one of BYRADIUS and BYBOX can be specified for %.*s",
                     name_len, c->argv[0].ptr);
    } else if (q->any && !q->count) {
        reply_error(c->reply, "ERR the ANY argument requires COUNT argument");
    } else {
        if (q->count && q->order == GEO_UNORDERED && !q->any) {
            q->order = GEO_ASCENDING;
        }
        return true;
    }
    return false;
}

/* ---- Searching ---- */

struct geo_found {
    const char *name; /* the member where it stays, NULL: at name_at in the names */
    size_t name_at, name_len;
    struct geohash_point point;
    double distance_m, score;
    size_t number; /* order of finding: decides between equal distances */
};

struct geo_results {
    struct geo_found *list;
    size_t count, capacity;
    struct buf names; /* of members of small sets, which have none to point to */
    bool lost;        /* there was no memory for all of them */
};

static void results_deinit(struct geo_results *r)
{
    mem_free(r->list);
    buf_deinit(&r->names);
}

/* `stays`: the member's bytes live as long as the results. */
static void results_add(struct geo_results *r, struct slice member, bool stays,
                        struct geo_found found)
{
    if (r->count == r->capacity) {
        size_t capacity = r->capacity ? r->capacity * 2 : 32;
        void *list = mem_try_realloc(r->list, capacity * sizeof(*r->list));
        if (!list) {
            r->lost = true;
            return;
        }
        r->list = list;
        r->capacity = capacity;
    }
    found.name = stays ? member.ptr : NULL;
    found.name_at = r->names.len;
    found.name_len = member.len;
    found.number = r->count;
    if (!stays) {
        buf_append_slice(&r->names, member);
    }
    r->list[r->count++] = found;
}

static struct slice result_name(const struct geo_results *r, size_t i)
{
    const struct geo_found *found = &r->list[i];
    const char *copied = r->names.data ? r->names.data + found->name_at : "";
    return slice_of(found->name ? found->name : copied, found->name_len);
}

/* Collects the members of a cell that lie in the shape; with a limit, until there are so many. */
static void search_cell(const struct geo_query *q, struct geohash_cell cell, size_t limit,
                        struct geo_results *r) REQUIRES_SHARED(keyspace_lock)
{
    struct zset_score_range range = {.min = (double)geohash_score_min(cell),
                                     .max = (double)geohash_score_end(cell),
                                     .max_excluded = true};
    struct zset_span span = zset_span_of_scores(q->source, &range);
    struct zset_cursor at = zset_cursor_at(q->source, span.start, false);
    char text[ZSET_TEXT_BYTES];
    for (uint64_t left = span.stop - span.start; left > 0; left--) {
        struct geo_found found = {.score = zset_cursor_score(&at)};
        found.point = geohash_point_of_score(found.score);
        if (geohash_shape_contains(&q->shape, found.point, &found.distance_m)) {
            results_add(r, zset_cursor_member(&at, text), !at.listpack, found);
        }
        if ((limit > 0 && r->count >= limit) || r->lost) {
            return;
        }
        zset_cursor_step(&at);
    }
}

static int compare_distances(const struct geo_found *x, const struct geo_found *y)
{
    return (x->distance_m > y->distance_m) - (x->distance_m < y->distance_m);
}

/* Where they are equally far, what was found first comes first, whichever way. */
static int compare_found(const void *a, const void *b)
{
    const struct geo_found *x = a, *y = b;
    int order = compare_distances(x, y);
    return order ? order : (x->number > y->number) - (x->number < y->number);
}

static int compare_found_down(const void *a, const void *b)
{
    const struct geo_found *x = a, *y = b;
    int order = compare_distances(y, x);
    return order ? order : (x->number > y->number) - (x->number < y->number);
}

/* Finds, orders and cuts. */
static void search(const struct geo_query *q, struct geo_results *r) REQUIRES_SHARED(keyspace_lock)
{
    struct geohash_cell cells[GEOHASH_COVER_MAX];
    int count = geohash_cover(&q->shape, cells);
    size_t limit = q->any ? (size_t)q->count : 0;
    for (int i = 0; i < count && !(limit > 0 && r->count >= limit) && !r->lost; i++) {
        search_cell(q, cells[i], limit, r);
    }
    if (q->order != GEO_UNORDERED && r->count > 1) {
        qsort(r->list, r->count, sizeof(*r->list),
              q->order == GEO_ASCENDING ? compare_found : compare_found_down);
    }
    if (q->count && r->count > (uint64_t)q->count) {
        r->count = (size_t)q->count;
    }
}

/* ---- Results ---- */

static void reply_results(struct call *c, const struct geo_query *q, const struct geo_results *r)
{
    unsigned extras = q->with_distance + q->with_hash + q->with_point;
    reply_array(c->reply, r->count);
    for (size_t i = 0; i < r->count; i++) {
        const struct geo_found *found = &r->list[i];
        if (extras > 0) {
            reply_array(c->reply, extras + 1);
        }
        reply_bulk(c->reply, result_name(r, i));
        if (q->with_distance) {
            geo_reply_distance(c, found->distance_m / q->unit_m);
        }
        if (q->with_hash) {
            reply_i64(c->reply, (int64_t)found->score);
        }
        if (q->with_point) {
            geo_reply_point(c, found->point);
        }
    }
}

static void store_results(struct call *c, const struct geo_query *q, const struct geo_results *r)
    REQUIRES(keyspace_lock)
{
    bool search = q->form & GEO_SEARCH;
    struct zset_draft draft;
    assert(c->key_count == 2);
    zset_draft_init(&draft, false);
    for (size_t i = 0; i < r->count; i++) {
        const struct geo_found *found = &r->list[i];
        zset_draft_add(&draft, result_name(r, i),
                       q->store_distance ? found->distance_m / q->unit_m : found->score);
    }
    zset_draft_sort(&draft);
    zsets_store(c, search ? 0 : 1, &draft, search ? "geosearchstore" : "georadiusstore");
    zset_draft_deinit(&draft);
}

/* Reads the arguments and searches; false with the reply made. */
static bool find_results(struct call *c, struct geo_query *q, struct geo_results *r)
    REQUIRES_SHARED(keyspace_lock)
{
    struct entry *source;
    if (!call_read_typed(c, q->form & GEO_STORE ? 1 : 0, VALUE_ZSET, &source)) {
        return false;
    }
    q->source = source;
    int first = parse_fixed(c, q);
    if (first < 0 || !parse_options(c, first, q) || !check_options(c, q)) {
        return false;
    }
    if (q->source) {
        search(q, r);
    }
    if (r->lost) {
        zsets_reply_lost(c);
    }
    return !r->lost;
}

static void search_and_reply(struct call *c, unsigned form) REQUIRES_SHARED(keyspace_lock)
{
    struct geo_query q = {.form = form, .unit_m = 1};
    struct geo_results r = {0};
    if (find_results(c, &q, &r)) {
        reply_results(c, &q, &r);
    }
    results_deinit(&r);
}

static void search_and_store(struct call *c, unsigned form) REQUIRES(keyspace_lock)
{
    struct geo_query q = {.form = form, .unit_m = 1};
    struct geo_results r = {0};
    if (find_results(c, &q, &r)) {
        if (q.stores) {
            store_results(c, &q, &r);
        } else {
            reply_results(c, &q, &r);
        }
    }
    results_deinit(&r);
}

WRITE_COMMAND(georadius_command)
{
    search_and_store(c, GEO_BY_POINT);
}

WRITE_COMMAND(georadiusbymember_command)
{
    search_and_store(c, GEO_BY_MEMBER);
}

WRITE_COMMAND(geosearchstore_command)
{
    search_and_store(c, GEO_SEARCH | GEO_STORE);
}

READ_COMMAND(georadius_ro_command)
{
    search_and_reply(c, GEO_BY_POINT | GEO_READ_ONLY);
}

READ_COMMAND(georadiusbymember_ro_command)
{
    search_and_reply(c, GEO_BY_MEMBER | GEO_READ_ONLY);
}

READ_COMMAND(geosearch_command)
{
    search_and_reply(c, GEO_SEARCH | GEO_READ_ONLY);
}

#define SEARCHES                                                                                   \
    .categories = CATEGORY_GEO, .group = "geo",                                                    \
    .complexity =                                                                                  \
        "O(N+log(M)), N being the members in the cells that cover the shape, M all members"
#define MAY_STORE SEARCHES, .flags = CMD_WRITE | CMD_DENYOOM | CMD_SLOW
#define ONLY_READS SEARCHES, .flags = CMD_READONLY | CMD_SLOW, .keys = "i1/r0,1,0/RO+ACCESS"
#define RADIUS_OPTIONS "[WITHCOORD] [WITHDIST] [WITHHASH] [COUNT count [ANY]] [ASC|DESC]"
#define SEARCH_SHAPE                                                                               \
    "<FROMMEMBER member|FROMLONLAT longitude latitude> <BYRADIUS radius <m|km|ft|mi>|BYBOX width " \
    "height <m|km|ft|mi>> [ASC|DESC] [COUNT count [ANY]]"

const struct command_row geo_search_commands[] = {
    {.name = "georadius",
     .run = georadius_command,
     .arity = -6,
     MAY_STORE,
     .keys = "i1/r0,1,0/RO+ACCESS; kw:STORE@6/r0,1,0/OW+UPDATE; kw:STOREDIST@6/r0,1,0/OW+UPDATE",
     .since = "3.2.0",
     .summary = "Finds members in a circle around a point; may store them.",
     .args = "key longitude latitude radius <m|km|ft|mi> " RADIUS_OPTIONS
             " [STORE storekey|STOREDIST storedistkey]",
     .history = "6.2.0:Takes ANY.|7.0.0:Units in any case.",
     .deprecated_since = "6.2.0",
     .replaced_by = "GEOSEARCH and GEOSEARCHSTORE with BYRADIUS"},
    {.name = "georadiusbymember",
     .run = georadiusbymember_command,
     .arity = -5,
     MAY_STORE,
     .keys = "i1/r0,1,0/RO+ACCESS; kw:STORE@5/r0,1,0/OW+UPDATE; kw:STOREDIST@5/r0,1,0/OW+UPDATE",
     .since = "3.2.0",
     .summary = "Finds members in a circle around a member; may store them.",
     .args = "key member radius <m|km|ft|mi> " RADIUS_OPTIONS
             " [STORE storekey|STOREDIST storedistkey]",
     .history = "6.2.0:Takes ANY.|7.0.0:Units in any case.",
     .deprecated_since = "6.2.0",
     .replaced_by = "GEOSEARCH and GEOSEARCHSTORE with BYRADIUS and FROMMEMBER"},
    {.name = "georadiusbymember_ro",
     .run = georadiusbymember_ro_command,
     .arity = -5,
     ONLY_READS,
     .since = "3.2.10",
     .summary = "Finds members in a circle around a member.",
     .args = "key member radius <m|km|ft|mi> " RADIUS_OPTIONS,
     .history = "6.2.0:Takes ANY.",
     .deprecated_since = "6.2.0",
     .replaced_by = "GEOSEARCH with BYRADIUS and FROMMEMBER"},
    {.name = "georadius_ro",
     .run = georadius_ro_command,
     .arity = -6,
     ONLY_READS,
     .since = "3.2.10",
     .summary = "Finds members in a circle around a point.",
     .args = "key longitude latitude radius <m|km|ft|mi> " RADIUS_OPTIONS,
     .history = "6.2.0:Takes ANY.",
     .deprecated_since = "6.2.0",
     .replaced_by = "GEOSEARCH with BYRADIUS"},
    {.name = "geosearch",
     .run = geosearch_command,
     .arity = -7,
     ONLY_READS,
     .since = "6.2.0",
     .summary = "Finds members in a circle or a rectangle.",
     .args = "key " SEARCH_SHAPE " [WITHCOORD] [WITHDIST] [WITHHASH]",
     .history = "7.0.0:Units in any case."},
    {.name = "geosearchstore",
     .run = geosearchstore_command,
     .arity = -8,
     MAY_STORE,
     .keys = "i1/r0,1,0/OW+UPDATE; i2/r0,1,0/RO+ACCESS",
     .since = "6.2.0",
     .summary = "Finds members in a circle or a rectangle and stores them as a sorted set.",
     .args = "destination source " SEARCH_SHAPE " [STOREDIST]",
     .history = "7.0.0:Units in any case."},
    {.name = NULL},
};
