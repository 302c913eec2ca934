/* See delivery_back.h. */
#include "active/delivery_back.h"

#include "base/num.h"
#include "active/unit.h"
#include "value/stream_undelivered.h"

#include <assert.h>
#include <string.h>

/* A reply's bulk strings and doubles, in their order, whatever arrays they stand in. */
struct leaves {
    struct slice rest;
    bool broken;
};

static struct slice take_line(struct leaves *l)
{
    const char *end = memchr(l->rest.ptr, '\n', l->rest.len);
    if (!end || end == l->rest.ptr || end[-1] != '\r') {
        l->broken = true;
        return slice_of("", 0);
    }
    struct slice line = slice_of(l->rest.ptr, (size_t)(end - l->rest.ptr) - 1);
    l->rest = slice_of(end + 1, l->rest.len - line.len - 2);
    return line;
}

/* False at the end, and when the reply is none of that kind. */
static bool next_leaf(struct leaves *l, struct slice *leaf)
{
    while (l->rest.len > 0) {
        int64_t number;
        struct slice line = take_line(l);
        if (l->broken || line.len == 0) {
            break;
        }
        struct slice text = slice_of(line.ptr + 1, line.len - 1);
        if (line.ptr[0] == '*') {
            continue;
        }
        if (line.ptr[0] == ',') {
            *leaf = text;
            return true;
        }
        if (line.ptr[0] != '$' || !num_parse_i64(text, &number) || number < 0 || l->rest.len < 2 ||
            (uint64_t)number > l->rest.len - 2 || memcmp(l->rest.ptr + number, "\r\n", 2) != 0) {
            break;
        }
        *leaf = slice_of(l->rest.ptr, (size_t)number);
        l->rest = slice_of(l->rest.ptr + number + 2, l->rest.len - (size_t)number - 2);
        return true;
    }
    l->broken = l->broken || l->rest.len > 0;
    return false;
}

/* The same where a bulk string is to come next. */
static bool next_bulk(struct leaves *l, struct slice *leaf)
{
    return l->rest.len > 0 && l->rest.ptr[0] == '$' && next_leaf(l, leaf);
}

/* The head of an array or a map, as how many elements it has; false when there is none. */
static bool take_head(struct leaves *l, uint64_t *count)
{
    struct slice line = l->rest.len > 0 ? take_line(l) : slice_of("", 0);
    bool map = line.len > 1 && line.ptr[0] == '%';
    l->broken = l->broken || line.len < 2 || (!map && line.ptr[0] != '*') ||
                !num_parse_u64(slice_of(line.ptr + 1, line.len - 1), count) || *count > l->rest.len;
    *count *= map && !l->broken ? 2 : 1;
    return !l->broken;
}

static void put_count(struct buf *out, int count)
{
    char text[NUM_I64_MAX_CHARS];
    unit_put_word(out, slice_of(text, num_format_u64(text, (uint64_t)count)));
}

/* The elements of a reply of a pop from a list, each put where it came from: the one that was taken
 * last first. */
static int put_elements(struct leaves *l, struct slice key, bool left, struct buf *out)
{
    struct slice leaf;
    struct buf spans = {0}; /* of the elements, as they came */
    int count = 0;
    while (next_leaf(l, &leaf)) {
        buf_append(&spans, (const char *)&leaf, sizeof(leaf));
        count++;
    }
    if (l->broken || count == 0) {
        buf_deinit(&spans);
        return 0;
    }
    put_count(out, count + 2);
    unit_put_word(out, left ? SLICE("LPUSH") : SLICE("RPUSH"));
    unit_put_word(out, key);
    for (int i = count - 1; i >= 0; i--) {
        memcpy(&leaf, spans.data + (size_t)i * sizeof(leaf), sizeof(leaf));
        unit_put_word(out, leaf);
    }
    buf_deinit(&spans);
    return count + 3;
}

static int put_members(struct leaves *l, struct slice key, struct buf *out)
{
    struct slice member, score;
    struct buf words = {0};
    int count = 0;
    while (next_leaf(l, &member) && next_leaf(l, &score)) {
        unit_put_word(&words, score);
        unit_put_word(&words, member);
        count += 2;
    }
    if (!l->broken && count > 0) {
        put_count(out, count + 2);
        unit_put_word(out, SLICE("ZADD"));
        unit_put_word(out, key);
        buf_append_slice(out, buf_slice(&words));
    }
    buf_deinit(&words);
    return !l->broken && count > 0 ? count + 3 : 0;
}

/* XREADGROUP's group, and whether it has none of it pending; NULL without one. */
static const struct slice *find_group(int argc, const struct slice *argv, bool *no_ack)
{
    const struct slice *group = NULL;
    *no_ack = false;
    for (int i = 1; i < argc && !slice_equal_nocase(argv[i], "streams"); i++) {
        if (slice_equal_nocase(argv[i], "group") && i + 2 < argc) {
            group = &argv[i + 1];
            i += 2;
        } else if (slice_equal_nocase(argv[i], "noack")) {
            *no_ack = true;
        } else {
            i++; /* COUNT and BLOCK have a value */
        }
    }
    return group;
}

/* The entries of one stream: [id, [field ...]] each. */
static int put_entries(struct leaves *l, struct slice key, struct slice group, bool no_ack,
                       struct buf *out)
{
    struct buf ids = {0};
    uint64_t entries = 0, parts, fields;
    int count = 0;
    take_head(l, &entries);
    for (; (uint64_t)count < entries && !l->broken; count++) {
        struct slice leaf;
        bool whole = take_head(l, &parts) && parts == 2 && next_bulk(l, &leaf);
        if (whole) {
            unit_put_word(&ids, leaf);
            whole = take_head(l, &fields);
        }
        while (whole && fields-- > 0) {
            whole = next_bulk(l, &leaf);
        }
        l->broken = l->broken || !whole;
    }
    int words = 0;
    if (!l->broken && count > 0) {
        words = count + 10 + no_ack;
        put_count(out, words);
        unit_put_word(out, SLICE("XCLAIM"));
        unit_put_word(out, key);
        unit_put_word(out, group);
        unit_put_word(out, SLICE(STREAM_UNDELIVERED));
        unit_put_word(out, SLICE("0"));
        buf_append_slice(out, buf_slice(&ids));
        unit_put_word(out, SLICE("TIME"));
        unit_put_word(out, SLICE("0"));
        unit_put_word(out, SLICE("RETRYCOUNT"));
        unit_put_word(out, SLICE("0"));
        unit_put_word(out, SLICE("JUSTID"));
        if (no_ack) { /* it is pending nowhere */
            unit_put_word(out, SLICE("FORCE"));
        }
        words++;
    }
    buf_deinit(&ids);
    return words;
}

/* XREADGROUP's reply: for each stream its key and its entries, in an array of two or of a map. */
static int put_streams(struct leaves *l, int argc, const struct slice *argv, struct buf *out)
{
    bool no_ack, map = l->rest.len > 0 && l->rest.ptr[0] == '%';
    const struct slice *group = find_group(argc, argv, &no_ack);
    uint64_t streams, pair;
    int words = 0;
    if (!group || !take_head(l, &streams)) {
        return 0;
    }
    for (uint64_t i = map ? streams / 2 : streams; i > 0; i--) {
        struct slice key;
        if ((!map && (!take_head(l, &pair) || pair != 2)) || !next_bulk(l, &key)) {
            break;
        }
        int more = put_entries(l, key, *group, no_ack, out);
        if (more == 0) {
            break;
        }
        words += more;
    }
    return words;
}

/* BLMPOP timeout numkeys key ... LEFT|RIGHT [COUNT n]: the side stands behind the keys. */
static bool takes_left(int argc, const struct slice *argv)
{
    int64_t keys;
    if (slice_equal_nocase(argv[0], "blpop")) {
        return true;
    }
    return argc > 3 && num_parse_i64(argv[2], &keys) && keys > 0 && keys < argc - 3 &&
           slice_equal_nocase(argv[3 + keys], "left");
}

int delivery_put_back(int argc, const struct slice *argv, struct slice reply, struct buf *out)
{
    struct leaves l = {.rest = reply};
    struct slice key;
    bool list = slice_equal_nocase(argv[0], "blpop") || slice_equal_nocase(argv[0], "brpop") ||
                slice_equal_nocase(argv[0], "blmpop");
    bool zset = slice_equal_nocase(argv[0], "bzpopmin") ||
                slice_equal_nocase(argv[0], "bzpopmax") || slice_equal_nocase(argv[0], "bzmpop");
    if (slice_equal_nocase(argv[0], "xreadgroup")) {
        return put_streams(&l, argc, argv, out);
    }
    if ((!list && !zset) || !next_leaf(&l, &key)) {
        return 0;
    }
    return list ? put_elements(&l, key, takes_left(argc, argv), out) : put_members(&l, key, out);
}

bool delivery_back_next(struct slice *text, struct slice *word)
{
    struct leaves l = {.rest = *text};
    if (!next_bulk(&l, word)) {
        return false;
    }
    *text = l.rest;
    return true;
}

uint64_t delivery_back_count(struct slice text)
{
    uint64_t count = 0;
    struct slice word;
    while (delivery_back_next(&text, &word)) {
        count++;
    }
    return text.len == 0 ? count : 0;
}

bool delivery_is_back(int argc, const struct slice *argv)
{
    if (argc < 3) {
        return false;
    }
    return slice_equal(argv[0], SLICE("LPUSH")) || slice_equal(argv[0], SLICE("RPUSH")) ||
           (slice_equal(argv[0], SLICE("ZADD")) && argc % 2 == 0) ||
           (slice_equal(argv[0], SLICE("XCLAIM")) && argc >= 11 &&
            slice_equal(argv[3], SLICE(STREAM_UNDELIVERED)));
}
