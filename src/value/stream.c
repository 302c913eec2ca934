/* See stream.h: facts, appending, deleting, and the type's row of operations. Walking is in
 * stream_walk.c, consumer groups are in stream_group.c. */
#include "value/stream.h"

#include "base/mem.h"
#include "value/stream_group.h"
#include "value/stream_lag.h"
#include "value/stream_priv.h"

#include <openssl/sha.h>

static struct {
    int64_t node_bytes, node_entries;
} limits = {4096, 100};

static inline size_t max_node_bytes(void)
{
    uint64_t limit = (uint64_t)limits.node_bytes;
    return limit == 0 || limit > STREAM_NODE_BYTES_CAP ? STREAM_NODE_BYTES_CAP : (size_t)limit;
}

static inline uint64_t max_node_entries(void)
{
    uint64_t limit = (uint64_t)limits.node_entries;
    return limit == 0 || limit > STREAM_NODE_ENTRIES_CAP ? STREAM_NODE_ENTRIES_CAP : limit;
}

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
    uint64_t entries = (uint64_t)limits.node_entries;
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

/* ---- IDs ---- */

bool stream_next_id(const struct stream_facts *facts, int64_t now_ms, struct stream_id *id)
{
    assert(now_ms >= 0);
    if ((uint64_t)now_ms > facts->last_id.ms) {
        *id = (struct stream_id){(uint64_t)now_ms, 0};
        return true;
    }
    *id = facts->last_id;
    return stream_id_increment(id);
}

bool stream_next_seq(const struct stream_facts *facts, struct stream_id *id)
{
    id->seq = 0;
    if (id->ms == facts->last_id.ms) {
        id->seq = facts->last_id.seq + 1;
        return id->seq != 0;
    }
    return id->ms > facts->last_id.ms;
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

/* Writes the master's first two numbers. */
static unsigned char *set_counts(unsigned char *lp, const struct stream_master *m)
{
    unsigned char *at = listpack_first(lp);
    lp = listpack_replace_integer(lp, &at, (int64_t)m->count);
    at = listpack_next(lp, at);
    return listpack_replace_integer(lp, &at, (int64_t)m->deleted);
}

/* Takes the cursor's node out and frees it; the cursor is on the next one then. */
static void remove_node(struct stream *s, struct radix_cursor *at)
{
    listpack_destroy(radix_remove_at(&s->nodes, at));
    s->tail = radix_last(&s->nodes);
    if (radix_cursor_valid(&s->tail)) {
        char key[STREAM_ID_KEY_BYTES];
        radix_cursor_copy_key(&s->tail, key);
        s->tail_id = stream_id_of_key(key);
    }
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

/* ---- appending ---- */

/* Bytes of every word, or (step 2) of the fields alone. */
static size_t words_bytes(const struct slice *words, int count, int step)
{
    size_t bytes = 0;
    for (int i = 0; i < count; i += step) {
        bytes += words[i].len;
    }
    return bytes;
}

bool stream_entry_fits(const struct entry *e, const struct slice *words, int count,
                       size_t *need_bytes)
{
    size_t bytes = words_bytes(words, count, 1);
    if (count > STREAM_ENTRY_MAX_WORDS || bytes > STREAM_ENTRY_MAX_BYTES) {
        return false;
    }
    const struct stream *s = e ? stream_of(e) : NULL;
    size_t tail =
        s && radix_cursor_valid(&s->tail) ? listpack_bytes(radix_cursor_value(&s->tail)) : 0;
    /* Fields that are new stand in the node twice; listpack_reserve takes half as much more. */
    *need_bytes = tail + tail / 2 + 3 * (bytes + (size_t)count * LISTPACK_SLACK_BYTES);
    return true;
}

/* A listpack with nothing but the master of an entry of these words. */
static unsigned char *create_node(const struct slice *words, int count)
{
    size_t bytes = 0;
    for (int i = 0; i < count; i += 2) {
        bytes += words[i].len + LISTPACK_SLACK_BYTES;
    }
    /* Room for the entry as well, so that the usual small stream is allocated once. */
    unsigned char *lp = listpack_create(LISTPACK_HEADER_BYTES + 1);
    lp = listpack_reserve(lp, bytes + 4 * LISTPACK_INTEGER_BYTES);
    unsigned char *end = listpack_end(lp);
    end = listpack_write_integer(end, 0);
    end = listpack_write_integer(end, 0);
    end = listpack_write_integer(end, count / 2);
    for (int i = 0; i < count; i += 2) {
        end = listpack_write(end, words[i]);
    }
    end = listpack_write_integer(end, 0);
    listpack_extend(lp, end, (uint32_t)count / 2 + 4);
    return lp;
}

static bool has_fields(const unsigned char *lp, const struct stream_master *m,
                       const struct slice *words, int count)
{
    if (m->field_count != (uint64_t)count / 2) {
        return false;
    }
    const unsigned char *at = m->first_field;
    for (int i = 0; i < count; i += 2) {
        if (!listpack_equals(at, words[i])) {
            return false;
        }
        at = listpack_next(lp, at);
    }
    return true;
}

/* Writes an entry behind the last one. */
static unsigned char *write_entry(unsigned char *lp, bool same_fields, struct stream_id master,
                                  struct stream_id id, const struct slice *words, int count)
{
    unsigned char *end = listpack_end(lp);
    uint32_t elements = 3;
    /* Differences wrap: a sequence number may be less than the master's. */
    end = listpack_write_integer(end, same_fields ? STREAM_FLAG_SAME_FIELDS : 0);
    end = listpack_write_integer(end, (int64_t)(id.ms - master.ms));
    end = listpack_write_integer(end, (int64_t)(id.seq - master.seq));
    if (!same_fields) {
        end = listpack_write_integer(end, count / 2);
        elements++;
    }
    for (int i = same_fields; i < count; i += 1 + same_fields) {
        end = listpack_write(end, words[i]);
        elements++;
    }
    end = listpack_write_integer(end, elements);
    listpack_extend(lp, end, elements + 1);
    return lp;
}

/* The last node with its master in *m, when an entry of `bytes` may go there; else NULL. */
static unsigned char *tail_with_room(const struct stream *s, size_t bytes, struct stream_master *m)
{
    if (!radix_cursor_valid(&s->tail)) {
        return NULL;
    }
    unsigned char *lp = radix_cursor_value(&s->tail);
    stream_master_read(lp, m);
    bool room =
        listpack_bytes(lp) + bytes < max_node_bytes() && m->count + m->deleted < max_node_entries();
    return room ? lp : NULL;
}

/* Makes a node for an entry, the last one from now on. */
static unsigned char *add_tail(struct stream *s, struct stream_id id, const struct slice *words,
                               int count)
{
    char key[STREAM_ID_KEY_BYTES];
    struct slice key_slice = stream_id_key(id, key);
    if (radix_cursor_valid(&s->tail)) {
        radix_cursor_set_value(&s->tail, listpack_shrink(radix_cursor_value(&s->tail)));
    }
    unsigned char *lp = create_node(words, count);
    void *existing = radix_insert(&s->nodes, key_slice, lp);
    assert(!existing);
    s->tail = radix_seek(&s->nodes, RADIX_EQUAL, key_slice);
    s->tail_id = id;
    return lp;
}

void stream_append(struct entry *e, struct stream_id id, const struct slice *words, int count)
{
    struct stream *s = stream_of(e);
    struct stream_master m;
    size_t bytes = words_bytes(words, count, 1);
    assert(count > 0 && count % 2 == 0 && count <= STREAM_ENTRY_MAX_WORDS &&
           bytes <= STREAM_ENTRY_MAX_BYTES);
    assert(stream_id_compare(id, s->facts.last_id) > 0);
    unsigned char *lp = tail_with_room(s, bytes, &m);
    if (!lp) {
        lp = add_tail(s, id, words, count);
        stream_master_read(lp, &m);
    }
    bool same_fields = has_fields(lp, &m, words, count);
    m.count++;
    lp = set_counts(lp, &m);
    /* No more than is written: a listpack holds a gigabyte, an entry may have half of that. */
    bytes = same_fields ? bytes - words_bytes(words, count, 2) : bytes;
    lp = listpack_reserve(lp, bytes + (size_t)count * LISTPACK_SLACK_BYTES +
                                  5 * LISTPACK_INTEGER_BYTES);
    lp = write_entry(lp, same_fields, s->tail_id, id, words, count);
    radix_cursor_set_value(&s->tail, lp);
    s->facts.length++;
    s->facts.entries_added += s->facts.entries_added < STREAM_ADDED_MAX;
    s->facts.last_id = id;
    if (s->facts.length == 1) {
        s->facts.first_id = id;
    }
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
        radix_cursor_set_value(&c.node, set_counts(lp, &m));
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
    radix_cursor_set_value(&node, set_counts(lp, &m));
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
     .target = &limits.node_bytes,
     .initial = "4096",
     .min = 0,
     .max = INT64_MAX},
    {.name = "stream-node-max-entries",
     .type = OPTION_INT,
     .target = &limits.node_entries,
     .initial = "100",
     .min = 0,
     .max = INT64_MAX},
    {.name = NULL},
};
