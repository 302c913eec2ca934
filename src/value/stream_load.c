/* See stream_load.h. */
#include "value/stream_load.h"

#include "base/stats.h"

#include "value/stream_priv.h"

/* A walk over a node whose listpack is sound, but nothing else. */
struct node_check {
    const unsigned char *lp;
    const unsigned char *at; /* the next element, NULL at the end */
    struct stream_id base;   /* master's ID */
    struct stream_id last;   /* of the live entry before, or the greatest before this node */
    uint64_t fields;         /* of the master */
    uint64_t live, deleted;  /* entries met */
    struct stream_id first_live;
};

static bool take_integer(struct node_check *n, int64_t *value)
{
    if (!n->at || !listpack_get_integer(n->at, value)) {
        return false;
    }
    n->at = listpack_next(n->lp, n->at);
    return true;
}

/* A count, at most what the listpack can hold. */
static bool take_count(struct node_check *n, uint64_t *count)
{
    int64_t value;
    if (!take_integer(n, &value) || value < 0 || value > (int64_t)LISTPACK_MAX_BYTES) {
        return false;
    }
    *count = (uint64_t)value;
    return true;
}

static bool skip(struct node_check *n, uint64_t count)
{
    for (; count > 0; count--) {
        if (!n->at) {
            return false;
        }
        n->at = listpack_next(n->lp, n->at);
    }
    return true;
}

/* Checks the entry at n->at and goes behind it. */
static bool check_entry(struct node_check *n)
{
    /* Deleting sets a bit of the flags in place, so they are one byte. */
    const unsigned char *flags_at = n->at;
    int64_t flags, ms, seq, said;
    uint64_t fields = n->fields;
    if (*flags_at > (STREAM_FLAG_DELETED | STREAM_FLAG_SAME_FIELDS) || !take_integer(n, &flags) ||
        !take_integer(n, &ms) || !take_integer(n, &seq)) {
        return false;
    }
    bool same_fields = flags & STREAM_FLAG_SAME_FIELDS;
    if (!same_fields && !take_count(n, &fields)) {
        return false;
    }
    uint64_t elements = same_fields ? 3 + fields : 4 + 2 * fields;
    if (fields == 0 || !skip(n, same_fields ? fields : 2 * fields) || !take_integer(n, &said) ||
        said < 0 || (uint64_t)said != elements) {
        return false;
    }
    /* Differences wrap (stream.c). */
    struct stream_id id = {n->base.ms + (uint64_t)ms, n->base.seq + (uint64_t)seq};
    if (stream_id_compare(id, n->base) < 0) {
        return false;
    }
    if (flags & STREAM_FLAG_DELETED) {
        n->deleted++;
        return true;
    }
    if (stream_id_compare(id, n->last) <= 0) {
        return false;
    }
    n->last = id;
    n->first_live = n->live == 0 ? id : n->first_live;
    n->live++;
    return true;
}

static bool check_node(struct node_check *n)
{
    uint64_t count, deleted;
    int64_t terminator;
    if (!take_count(n, &count) || !take_count(n, &deleted) || !take_count(n, &n->fields) ||
        n->fields == 0 || !skip(n, n->fields) || !take_integer(n, &terminator) || terminator != 0 ||
        !n->at) {
        return false;
    }
    while (n->at) {
        if (!check_entry(n)) {
            return false;
        }
    }
    return n->live == count && n->deleted == deleted;
}

bool stream_load_node(struct entry *e, struct stream_id master, struct slice listpack)
{
    struct stream *s = stream_of(e);
    const unsigned char *lp = (const unsigned char *)listpack.ptr;
    stats_add(STAT_SANITIZATIONS, 1);
    if (!listpack_validate(lp, listpack.len, NULL, NULL)) {
        return false;
    }
    struct node_check n = {
        .lp = lp, .at = listpack_first(lp), .base = master, .last = s->facts.last_id};
    /* Not before what is there: the tree's order is that of the entries. */
    if (s->nodes.count > 0 &&
        (stream_id_compare(master, n.last) <= 0 || stream_id_compare(master, s->tail_id) <= 0)) {
        return false;
    }
    if (!check_node(&n)) {
        return false;
    }
    char key[STREAM_ID_KEY_BYTES];
    void *existing = radix_insert(&s->nodes, stream_id_key(master, key), listpack_copy(lp));
    assert(!existing);
    s->tail = radix_last(&s->nodes);
    s->tail_id = master;
    if (s->facts.length == 0 && n.live > 0) {
        s->facts.first_id = n.first_live;
    }
    s->facts.length += n.live;
    s->facts.last_id = n.last;
    return true;
}

bool stream_load_facts(struct entry *e, uint64_t length, struct stream_id last_id,
                       struct stream_id max_deleted_id, uint64_t entries_added)
{
    const struct stream *s = stream_of(e);
    /* What is added next has to stand behind the last node's ID. */
    bool behind = length == 0 || stream_id_compare(last_id, s->tail_id) >= 0;
    if (length != s->facts.length || stream_id_compare(last_id, s->facts.last_id) < 0 || !behind ||
        entries_added < length) {
        return false;
    }
    uint64_t added = entries_added < STREAM_ADDED_MAX ? entries_added : STREAM_ADDED_MAX;
    stream_set_facts(e, last_id, &added, &max_deleted_id);
    return true;
}
