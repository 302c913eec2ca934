/* See delivery_back.h. */
#include "active/delivery_back.h"

#include "base/num.h"
#include "active/unit.h"

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
        if (line.ptr[0] != '$' || !num_parse_i64(text, &number) || number < 0 ||
            (uint64_t)number + 2 > l->rest.len) {
            break;
        }
        *leaf = slice_of(l->rest.ptr, (size_t)number);
        l->rest = slice_of(l->rest.ptr + number + 2, l->rest.len - (size_t)number - 2);
        return true;
    }
    l->broken = l->broken || l->rest.len > 0;
    return false;
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
    unit_put_word(out, left ? SLICE("LPUSH") : SLICE("RPUSH"));
    unit_put_word(out, key);
    for (int i = count - 1; i >= 0; i--) {
        memcpy(&leaf, spans.data + (size_t)i * sizeof(leaf), sizeof(leaf));
        unit_put_word(out, leaf);
    }
    buf_deinit(&spans);
    return count + 2;
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
        unit_put_word(out, SLICE("ZADD"));
        unit_put_word(out, key);
        buf_append_slice(out, buf_slice(&words));
    }
    buf_deinit(&words);
    return !l->broken && count > 0 ? count + 2 : 0;
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
    if ((!list && !zset) || !next_leaf(&l, &key)) {
        return 0;
    }
    return list ? put_elements(&l, key, takes_left(argc, argv), out) : put_members(&l, key, out);
}

bool delivery_is_back(int argc, const struct slice *argv)
{
    if (argc < 3) {
        return false;
    }
    return slice_equal(argv[0], SLICE("LPUSH")) || slice_equal(argv[0], SLICE("RPUSH")) ||
           (slice_equal(argv[0], SLICE("ZADD")) && argc % 2 == 0);
}
