/* See stream.h: walking over the entries of a stream. */
#include "value/stream_group.h"
#include "value/stream_priv.h"

/* ---- nodes ---- */

static struct stream_id node_id(const struct radix_cursor *node)
{
    char key[STREAM_ID_KEY_BYTES];
    assert(radix_cursor_key_bytes(node) == sizeof(key));
    radix_cursor_copy_key(node, key);
    return stream_id_of_key(key);
}

/* Makes the node under the cursor the one the walk is in, or ends the walk. */
static void enter_node(struct stream_cursor *c)
{
    struct stream_master m;
    c->lp = NULL;
    if (!radix_cursor_valid(&c->node)) {
        return;
    }
    c->lp = radix_cursor_value(&c->node);
    c->base = node_id(&c->node);
    stream_master_read_fields(c->lp, &m);
    c->master_fields = m.field_count;
    c->fields = m.first_field;
    c->entries = listpack_next(c->lp, m.terminator);
    c->flags = NULL;
    assert(c->entries);
}

void stream_walk(struct stream_cursor *c, const struct entry *e, struct stream_id first,
                 struct stream_id last, bool down)
{
    const struct radix *nodes = &stream_of(e)->nodes;
    char key[STREAM_ID_KEY_BYTES];
    *c = (struct stream_cursor){.first = first, .last = last, .down = down};
    c->node = radix_seek(nodes, RADIX_LESS_EQUAL, stream_id_key(down ? last : first, key));
    if (!radix_cursor_valid(&c->node) && !down) {
        c->node = radix_first(nodes);
    }
    enter_node(c);
}

/* ---- entries ---- */

/* Behind the current entry, or at the node's first one; NULL at the node's end. */
static const unsigned char *entry_behind(const struct stream_cursor *c)
{
    if (!c->flags) {
        return c->entries;
    }
    return listpack_skip(c->at, c->left * (c->same_fields ? 1 : 2) + 1);
}

/* Before the current entry, or at the node's last one; NULL at the node's begin. */
static const unsigned char *entry_before(const struct stream_cursor *c)
{
    if (c->flags == c->entries) {
        return NULL;
    }
    const unsigned char *at = c->flags ? listpack_prev(c->lp, c->flags) : listpack_last(c->lp);
    for (int64_t i = stream_integer(at); i > 0; i--) {
        at = listpack_prev(c->lp, at);
    }
    return at;
}

/* Makes the entry at `at` the one the walk is on. */
static void read_entry(struct stream_cursor *c, const unsigned char *at)
{
    c->flags = at;
    c->same_fields = listpack_take_integer(&at) & STREAM_FLAG_SAME_FIELDS;
    c->id.ms = c->base.ms + (uint64_t)listpack_take_integer(&at);
    c->id.seq = c->base.seq + (uint64_t)listpack_take_integer(&at);
    c->field_count = c->master_fields;
    if (!c->same_fields) {
        c->field_count = (uint64_t)listpack_take_integer(&at);
    }
    c->at = at;
    c->field = c->fields;
    c->left = c->field_count;
}

bool stream_walk_next(struct stream_cursor *c)
{
    while (c->lp) {
        const unsigned char *at = c->down ? entry_before(c) : entry_behind(c);
        if (!at) {
            if (c->down) {
                radix_cursor_prev(&c->node);
            } else {
                radix_cursor_next(&c->node);
            }
            enter_node(c);
            continue;
        }
        read_entry(c, at);
        if (stream_integer(c->flags) & STREAM_FLAG_DELETED) {
            continue; /* whose ID says nothing of those behind it */
        }
        if (c->down ? stream_id_compare(c->id, c->first) < 0
                    : stream_id_compare(c->id, c->last) > 0) {
            c->lp = NULL;
            break;
        }
        bool in_range = c->down ? stream_id_compare(c->id, c->last) <= 0
                                : stream_id_compare(c->id, c->first) >= 0;
        if (in_range) {
            return true;
        }
    }
    return false;
}

void stream_walk_pair(struct stream_cursor *c, struct slice *field, struct slice *value,
                      char *field_text, char *value_text)
{
    assert(c->left > 0);
    c->left--;
    if (c->same_fields) {
        *field = listpack_get(c->field, field_text);
        c->field = listpack_next(c->lp, c->field);
    } else {
        *field = listpack_get(c->at, field_text);
        c->at = listpack_next(c->lp, c->at);
    }
    *value = listpack_get(c->at, value_text);
    c->at = listpack_next(c->lp, c->at);
}

bool stream_find(const struct entry *e, struct stream_id id, struct stream_cursor *c)
{
    stream_walk(c, e, id, id, false);
    return stream_walk_next(c);
}

struct stream_id stream_node_last_id(const struct radix_cursor *node)
{
    struct stream_cursor c = {.node = *node, .down = true};
    enter_node(&c);
    read_entry(&c, entry_before(&c));
    return c.id;
}

/* ---- checking ---- */

/* Checks a node: every element is where the layout says, the IDs of what is there ascend, the
 * counts are right. Returns the last of them. */
static struct stream_id check_node(const struct radix_cursor *node, struct stream_id before,
                                   uint64_t *length)
{
    struct stream_cursor c = {.node = *node};
    struct stream_master m;
    uint64_t alive = 0, deleted = 0;
    enter_node(&c);
    stream_master_read_fields(c.lp, &m);
    for (const unsigned char *at = c.entries; at; at = entry_behind(&c)) {
        char field_text[STREAM_TEXT_BYTES], value_text[STREAM_TEXT_BYTES];
        struct slice field, value;
        const unsigned char *previous = c.flags;
        read_entry(&c, at);
        assert(entry_before(&c) == previous && stream_id_compare(c.id, c.base) >= 0);
        bool is_deleted = stream_integer(at) & STREAM_FLAG_DELETED;
        assert(is_deleted || stream_id_compare(c.id, before) > 0);
        before = is_deleted ? before : c.id;
        alive += !is_deleted;
        deleted += is_deleted;
        while (c.left > 0) {
            stream_walk_pair(&c, &field, &value, field_text, value_text);
        }
        int64_t elements = 3 + (int64_t)c.field_count;
        elements = c.same_fields ? elements : elements + 1 + (int64_t)c.field_count;
        assert(stream_integer(c.at) == elements);
    }
    assert(alive + deleted > 0 && alive == m.count && deleted == m.deleted);
    *length += alive;
    return before;
}

void stream_check(const struct entry *e)
{
    const struct stream *s = stream_of(e);
    struct stream_id before = STREAM_ID_MIN;
    uint64_t length = 0;
    radix_check(&s->nodes);
    stream_groups_check(&s->groups);
    struct radix_cursor node = radix_first(&s->nodes);
    assert(s->tail.node == radix_last(&s->nodes).node);
    for (; radix_cursor_valid(&node); radix_cursor_next(&node)) {
        if (node.node == s->tail.node) {
            assert(stream_id_compare(node_id(&node), s->tail_id) == 0);
        }
        before = check_node(&node, before, &length);
    }
    struct stream_cursor c;
    stream_walk(&c, e, STREAM_ID_MIN, STREAM_ID_MAX, false);
    struct stream_id first = stream_walk_next(&c) ? c.id : STREAM_ID_MIN;
    assert(stream_id_compare(first, s->facts.first_id) == 0);
    assert(length == s->facts.length && stream_id_compare(before, s->facts.last_id) <= 0);
}
