/* See stream.h: facts, deleting, and the type's row of operations. Adding is in stream_add.c,
 * walking in stream_walk.c, consumer groups are in stream_group.c. */
#include "value/stream.h"

#include "base/mem.h"
#include "value/stream_group.h"
#include "value/stream_lag.h"
#include "value/stream_priv.h"

#include <openssl/sha.h>

struct stream_limits stream_limits = {4096, 100};

const struct stream_facts *stream_facts(const struct entry *e)
{
    return &stream_of(e)->facts;
}

struct radix *stream_groups(const struct entry *e)
{
    return &stream_of(e)->groups;
}

const struct radix *stream_nodes(const struct entry *e)
{
    return &stream_of(e)->nodes;
}

uint64_t stream_trim_usual_limit(void)
{
    /* 10,000 where nodes have no limit, and a million at most: as Redis. */
    uint64_t entries = (uint64_t)stream_limits.node_entries;
    return entries == 0 ? 10000 : entries > 10000 ? 1000000 : entries * 100;
}

static struct stream *create_stream(void)
{
    struct stream *s = mem_calloc(1, sizeof(*s));
    radix_init(&s->nodes);
    radix_init(&s->groups);
    return s;
}

struct entry *stream_create(struct slice key)
{
    return entry_create_pointer(key, VALUE_STREAM, ENCODING_STREAM, create_stream(),
                                ENTRY_NO_EXPIRY);
}

/* Finds the first entry that is there, after the one that was may have gone. */
static void renew_first_id(struct stream *s, const struct entry *e)
{
    struct stream_cursor c;
    stream_walk(&c, e, STREAM_ID_MIN, STREAM_ID_MAX, false);
    s->facts.first_id = stream_walk_next(&c) ? c.id : STREAM_ID_MIN;
    assert(stream_id_is_zero(s->facts.first_id) == (s->facts.length == 0));
}

/* ---- nodes ---- */

void stream_master_read(const unsigned char *lp, struct stream_master *m)
{
    const unsigned char *at = listpack_first(lp);
    m->count = (uint64_t)listpack_take_integer(&at);
    m->deleted = (uint64_t)listpack_take_integer(&at);
    m->field_count = (uint64_t)listpack_take_integer(&at);
    m->first_field = (unsigned char *)at;
}

void stream_master_read_fields(const unsigned char *lp, struct stream_master *m)
{
    stream_master_read(lp, m);
    m->terminator = listpack_skip(m->first_field, m->field_count);
    assert(stream_integer(m->terminator) == 0);
}

unsigned char *stream_set_counts(unsigned char *lp, const struct stream_master *m)
{
    unsigned char *at = listpack_first(lp);
    lp = listpack_replace_integer(lp, &at, (int64_t)m->count);
    at = listpack_next(lp, at);
    return listpack_replace_integer(lp, &at, (int64_t)m->deleted);
}

void stream_renew_tail(struct stream *s)
{
    s->tail = radix_last(&s->nodes);
    if (radix_cursor_valid(&s->tail)) {
        char key[STREAM_ID_KEY_BYTES];
        radix_cursor_copy_key(&s->tail, key);
        s->tail_id = stream_id_of_key(key);
    }
}

/* Takes the cursor's node out and frees it; the cursor is on the next one then. */
static void remove_node(struct stream *s, struct radix_cursor *at)
{
    listpack_destroy(radix_remove_at(&s->nodes, at));
    stream_renew_tail(s);
}

/* ---- facts ---- */

static void drop_nodes(struct stream *s)
{
    struct radix_cursor node = radix_first(&s->nodes);
    while (radix_cursor_valid(&node)) {
        remove_node(s, &node);
    }
}

void stream_set_facts(struct entry *e, struct stream_id last_id, const uint64_t *entries_added,
                      const struct stream_id *max_deleted_id)
{
    assert(!entries_added || *entries_added <= STREAM_ADDED_MAX);
    struct stream *s = stream_of(e);
    struct stream_facts *facts = &s->facts;
    bool other_count =
        (entries_added && *entries_added != facts->entries_added) ||
        (max_deleted_id && stream_id_compare(*max_deleted_id, facts->max_deleted_id) < 0);
    facts->last_id = last_id;
    if (facts->length == 0 && s->nodes.count > 0 && stream_id_compare(last_id, s->tail_id) < 0) {
        drop_nodes(s); /* deleted entries, before which the next one may stand */
    }
    if (entries_added) {
        facts->entries_added = *entries_added;
    }
    if (max_deleted_id) {
        facts->max_deleted_id = *max_deleted_id;
    }
    stream_groups_forget_counts(facts, &s->groups, other_count);
}

/* ---- deleting ---- */

/* Marks the entry whose flags are at `flags` as deleted. The flags stay one byte. */
static void mark_deleted(unsigned char *flags)
{
    int64_t value = stream_integer(flags);
    assert(value == (int64_t)*flags && !(value & STREAM_FLAG_DELETED));
    *flags |= STREAM_FLAG_DELETED;
}

bool stream_delete(struct entry *e, struct stream_id id)
{
    struct stream *s = stream_of(e);
    struct stream_cursor c;
    struct stream_master m;
    if (!stream_find(e, id, &c)) {
        return false;
    }
    unsigned char *lp = radix_cursor_value(&c.node);
    stream_master_read(lp, &m);
    if (m.count == 1) {
        remove_node(s, &c.node);
    } else {
        mark_deleted((unsigned char *)c.flags);
        m.count--;
        m.deleted++;
        radix_cursor_set_value(&c.node, stream_set_counts(lp, &m));
    }
    s->facts.length--;
    if (stream_id_compare(id, s->facts.max_deleted_id) > 0) {
        s->facts.max_deleted_id = id;
    }
    if (stream_id_compare(id, s->facts.first_id) == 0) {
        renew_first_id(s, e);
    }
    return true;
}

/* True when all entries of the node are to go. */
static bool trims_node(const struct stream *s, const struct radix_cursor *node, uint64_t count,
                       const struct stream_trim *trim)
{
    if (trim->kind == STREAM_TRIM_LENGTH) {
        return s->facts.length - count >= trim->length;
    }
    return stream_id_compare(stream_node_last_id(node), trim->id) < 0;
}

/* Deletes from the front of the first node what is to go, which is not the whole node. Returns how
 * many. */
static uint64_t trim_within(struct stream *s, const struct entry *e, const struct stream_trim *trim)
{
    struct stream_cursor c;
    struct stream_master m;
    uint64_t removed = 0;
    stream_walk(&c, e, STREAM_ID_MIN, STREAM_ID_MAX, false);
    struct radix_cursor node = radix_first(&s->nodes);
    unsigned char *lp = radix_cursor_value(&node);
    while (stream_walk_next(&c) && c.lp == lp) {
        bool stays = trim->kind == STREAM_TRIM_LENGTH ? s->facts.length <= trim->length
                                                      : stream_id_compare(c.id, trim->id) >= 0;
        if (stays) {
            break;
        }
        mark_deleted((unsigned char *)c.flags);
        s->facts.length--;
        removed++;
    }
    stream_master_read(lp, &m);
    m.count -= removed;
    m.deleted += removed;
    /* Nothing may be left in it, where a deleted entry is behind trim->id: it stays nevertheless,
     * so that nodes hold the same entries as in Redis, and approximate trimming does the same. */
    radix_cursor_set_value(&node, stream_set_counts(lp, &m));
    return removed;
}

/* Takes whole nodes out. *more says whether the node that is the first then still has entries that
 * are to go, maybe. */
static uint64_t trim_nodes(struct stream *s, const struct stream_trim *trim, bool *more)
{
    uint64_t removed = 0;
    struct radix_cursor node = radix_first(&s->nodes);
    *more = false;
    while (radix_cursor_valid(&node)) {
        struct stream_master m;
        if (trim->kind == STREAM_TRIM_LENGTH && s->facts.length <= trim->length) {
            return removed;
        }
        stream_master_read(radix_cursor_value(&node), &m);
        if (trim->limit > 0 && removed + m.count > trim->limit) {
            return removed;
        }
        if (!trims_node(s, &node, m.count, trim)) {
            *more = true;
            return removed;
        }
        remove_node(s, &node);
        s->facts.length -= m.count;
        removed += m.count;
    }
    return removed;
}

uint64_t stream_trim(struct entry *e, const struct stream_trim *trim)
{
    struct stream *s = stream_of(e);
    bool more;
    assert(trim->kind != STREAM_TRIM_NONE);
    uint64_t removed = trim_nodes(s, trim, &more);
    if (more && !trim->approximate) {
        removed += trim_within(s, e, trim);
    }
    if (removed > 0) {
        renew_first_id(s, e);
    }
    return removed;
}

/* ---- The table of operations ---- */

static void release_node(void *value, void *context)
{
    (void)context;
    listpack_destroy(value);
}

static void destroy(struct entry *e)
{
    struct stream *s = stream_of(e);
    stream_groups_destroy(&s->groups);
    radix_deinit(&s->nodes, release_node, NULL);
    mem_free_sized(s, sizeof(*s));
}

static void *copy(const struct entry *e)
{
    const struct stream *s = stream_of(e);
    struct stream *t = create_stream();
    t->facts = s->facts;
    char key[STREAM_ID_KEY_BYTES];
    struct radix_cursor c = radix_first(&s->nodes);
    for (; radix_cursor_valid(&c); radix_cursor_next(&c)) {
        radix_cursor_copy_key(&c, key);
        radix_insert(&t->nodes, slice_of(key, sizeof(key)), listpack_copy(radix_cursor_value(&c)));
    }
    t->tail = radix_last(&t->nodes);
    t->tail_id = s->tail_id;
    stream_groups_copy(&s->groups, &t->groups);
    return t;
}

static size_t memory(const struct entry *e, size_t samples)
{
    const struct stream *s = stream_of(e);
    size_t bytes = mem_usable_size(s) + radix_memory_bytes(&s->nodes), nodes = 0;
    uint64_t seen = 0, full = s->nodes.count > 0 ? s->nodes.count - 1 : 0;
    struct radix_cursor c = radix_first(&s->nodes);
    /* The last node is another matter than the full ones before it: it counts for itself. */
    for (; seen < full && (samples == 0 || seen < samples); radix_cursor_next(&c)) {
        nodes += mem_usable_size(radix_cursor_value(&c));
        seen++;
    }
    bytes += seen ? (size_t)((double)nodes / (double)seen * (double)full) : 0;
    bytes += radix_cursor_valid(&s->tail) ? mem_usable_size(radix_cursor_value(&s->tail)) : 0;
    return bytes + stream_groups_memory(&s->groups, samples);
}

static size_t free_effort(const struct entry *e)
{
    const struct stream *s = stream_of(e);
    return 1 + s->nodes.count + stream_groups_free_effort(&s->groups);
}

static const char *encoding(const struct entry *e)
{
    (void)e;
    return "stream";
}

/* Chains a word to a hash. */
static void digest_add(uint8_t sum[20], const void *bytes, size_t len)
{
    uint8_t both[40];
    memcpy(both, sum, 20);
    SHA1(bytes, len, both + 20);
    SHA1(both, sizeof(both), sum);
}

/* A hash over the entries in order, then the groups' part. What no command but XINFO shows (IDs
 * last used and deleted) belongs to it: streams that differ there behave differently. */
static void digest(const struct entry *e, uint8_t sum[20])
{
    const struct stream *s = stream_of(e);
    char field_text[STREAM_TEXT_BYTES], value_text[STREAM_TEXT_BYTES];
    struct stream_cursor c;
    uint64_t facts[] = {
        s->facts.length,      s->facts.entries_added,     s->facts.last_id.ms,
        s->facts.last_id.seq, s->facts.max_deleted_id.ms, s->facts.max_deleted_id.seq};
    memset(sum, 0, 20);
    digest_add(sum, facts, sizeof(facts));
    stream_walk(&c, e, STREAM_ID_MIN, STREAM_ID_MAX, false);
    while (stream_walk_next(&c)) {
        uint64_t head[] = {c.id.ms, c.id.seq, c.field_count};
        digest_add(sum, head, sizeof(head));
        for (uint64_t i = 0; i < c.field_count; i++) {
            struct slice field, value;
            stream_walk_pair(&c, &field, &value, field_text, value_text);
            digest_add(sum, field.ptr, field.len);
            digest_add(sum, value.ptr, value.len);
        }
    }
    stream_groups_digest(&s->groups, sum);
}

const struct value_ops stream_ops = {
    .name = "stream",
    .destroy = destroy,
    .copy = copy,
    .memory = memory,
    .free_effort = free_effort,
    .encoding = encoding,
    .digest = digest,
};

const struct option stream_options[] = {
    {.name = "stream-node-max-bytes",
     .type = OPTION_MEMORY,
     .target = &stream_limits.node_bytes,
     .initial = "4096",
     .min = 0,
     .max = INT64_MAX},
    {.name = "stream-node-max-entries",
     .type = OPTION_INT,
     .target = &stream_limits.node_entries,
     .initial = "100",
     .min = 0,
     .max = INT64_MAX},
    {.name = NULL},
};
