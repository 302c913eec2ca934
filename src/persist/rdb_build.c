/* See rdb_build.h. */
#include "persist/rdb_build.h"

#include "base/num.h"
#include "value/hash.h"
#include "value/list.h"
#include "value/member_ttl.h"
#include "value/set.h"

#include <math.h>

struct rdb_due {
    size_t offset, len; /* in due_names */
    int64_t at_ms;
};

void rdb_build_begin(struct rdb_build *b, enum value_type type, struct slice key, uint64_t expected)
{
    *b = (struct rdb_build){.type = type, .key = key, .expected = expected};
    if (type == VALUE_ZSET) {
        zset_draft_init(&b->draft, true);
    }
}

static bool add_to_list(struct rdb_build *b, struct slice element)
{
    if (!b->e) {
        b->e = list_create(b->key, ENTRY_NO_EXPIRY);
    }
    list_push(b->e, LIST_TAIL, &element, 1);
    return true;
}

static bool add_to_set(struct rdb_build *b, struct slice element)
{
    struct set_member m;
    set_member_init(&m, element);
    if (!b->e) {
        b->e = set_create(b->key, &m, b->expected, ENTRY_NO_EXPIRY);
    }
    return set_add(b->e, &m);
}

static bool add_to_hash(struct rdb_build *b, struct slice field, struct slice value)
{
    if (!b->e) {
        const struct slice texts[] = {field, value};
        b->e = hash_create(b->key, texts, 2);
    }
    return hash_set(&b->e, field, value, NULL);
}

/* A score as text: of a sorted set in a listpack, or a whole number. */
static bool add_with_score_text(struct rdb_build *b, struct slice member, struct slice text)
{
    double score;
    return num_parse_double(text, &score) && rdb_build_add_scored(b, member, score);
}

bool rdb_build_add_scored(struct rdb_build *b, struct slice member, double score)
{
    assert(b->type == VALUE_ZSET);
    if (isnan(score) || member.len > ZSET_MAX_MEMBER_BYTES ||
        zset_draft_find(&b->draft, member) != NULL) {
        return false;
    }
    zset_draft_add(&b->draft, member, score);
    return !b->draft.lost;
}

bool rdb_build_add_deadline(struct rdb_build *b, struct slice member, int64_t at_ms)
{
    if (at_ms <= 0 || member.len > MEMBER_TTL_MAX_BYTES) {
        return false;
    }
    struct rdb_due due = {b->due_names.len, member.len, at_ms};
    buf_reserve(&b->due_names, member.len + 1); /* an address even for an empty one */
    buf_append_slice(&b->due_names, member);
    buf_append(&b->due, (const char *)&due, sizeof(due));
    return true;
}

/* The third of field, value, deadline; `first` is the field still. */
static bool add_third(struct rdb_build *b, struct slice text)
{
    int64_t at_ms;
    b->has_deadline = b->half = false;
    return num_parse_i64(text, &at_ms) &&
           (at_ms == 0 || rdb_build_add_deadline(b, buf_slice(&b->first), at_ms));
}

bool rdb_build_add(struct slice element, void *build)
{
    struct rdb_build *b = build;
    if (element.len > UINT32_MAX) {
        return false;
    }
    if (b->type == VALUE_LIST) {
        return add_to_list(b, element);
    }
    if (b->type == VALUE_SET) {
        return add_to_set(b, element);
    }
    if (b->has_deadline) {
        return add_third(b, element);
    }
    if (!b->half) {
        buf_clear(&b->first);
        buf_reserve(&b->first, element.len + 1);
        buf_append_slice(&b->first, element);
        b->half = true;
        return true;
    }
    if (b->type == VALUE_ZSET) {
        b->half = false;
        return add_with_score_text(b, buf_slice(&b->first), element);
    }
    assert(b->type == VALUE_HASH);
    b->half = b->has_deadline = b->with_deadlines;
    return add_to_hash(b, buf_slice(&b->first), element);
}

bool rdb_build_deadlines(const struct rdb_build *b, struct entry **e)
{
    if (b->due.len == 0) {
        return true;
    }
    if (!*e) {
        return false;
    }
    *e = entry_with_block(*e);
    for (size_t at = 0; at < b->due.len; at += sizeof(struct rdb_due)) {
        struct rdb_due due;
        memcpy(&due, b->due.data + at, sizeof(due));
        struct slice member = slice_of(b->due_names.data + due.offset, due.len);
        if (!value_ops_of[entry_type(*e)]->has(*e, member) ||
            member_ttl_get(*e, member) != ENTRY_NO_EXPIRY ||
            !member_ttl_set(*e, member, due.at_ms)) {
            return false;
        }
    }
    return true;
}

bool rdb_build_finish(struct rdb_build *b, struct entry **e)
{
    if (b->half || b->has_deadline) {
        return false;
    }
    if (b->type == VALUE_ZSET && b->draft.count > 0) {
        zset_draft_sort(&b->draft);
        b->e = zset_draft_finish(&b->draft, b->key, ENTRY_NO_EXPIRY);
    }
    if (!rdb_build_deadlines(b, &b->e)) {
        return false;
    }
    *e = b->e;
    b->e = NULL;
    return true;
}

void rdb_build_drop(struct rdb_build *b)
{
    if (b->e) {
        entry_destroy(&b->e);
    }
    if (b->type == VALUE_ZSET) {
        zset_draft_deinit(&b->draft);
    }
    buf_deinit(&b->first);
    buf_deinit(&b->due_names);
    buf_deinit(&b->due);
}
