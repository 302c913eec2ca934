/* Entries are added: see stream.h. IDs of new ones, appending, and putting an entry in between. */
#include "value/stream.h"

#include "base/mem.h"
#include "value/stream_group.h"
#include "value/stream_lag.h"
#include "value/stream_priv.h"

static inline size_t max_node_bytes(void)
{
    uint64_t limit = (uint64_t)stream_limits.node_bytes;
    return limit == 0 || limit > STREAM_NODE_BYTES_CAP ? STREAM_NODE_BYTES_CAP : (size_t)limit;
}

static inline uint64_t max_node_entries(void)
{
    uint64_t limit = (uint64_t)stream_limits.node_entries;
    return limit == 0 || limit > STREAM_NODE_ENTRIES_CAP ? STREAM_NODE_ENTRIES_CAP : limit;
}

/* ---- IDs ---- */

uint32_t stream_id_tag;

void stream_set_id_tag(uint32_t tag)
{
    stream_id_tag = tag;
}

/* The first sequence number that may be given, and the one that may follow `seq`, 0 when there is
 * none: with a tag those that end in it. */
static inline uint64_t first_seq(void)
{
    return stream_id_tag;
}

static uint64_t next_seq(uint64_t seq)
{
    if (!stream_id_tag) {
        return seq + 1;
    }
    uint64_t tagged = (seq & ~(uint64_t)UINT32_MAX) | stream_id_tag;
    if (tagged > seq) {
        return tagged;
    }
    tagged += (uint64_t)1 << 32;
    return tagged > seq ? tagged : 0;
}

bool stream_next_id(const struct stream_facts *facts, int64_t now_ms, struct stream_id *id)
{
    assert(now_ms >= 0);
    if ((uint64_t)now_ms > facts->last_id.ms) {
        *id = (struct stream_id){(uint64_t)now_ms, first_seq()};
        return true;
    }
    *id = (struct stream_id){facts->last_id.ms, next_seq(facts->last_id.seq)};
    if (id->seq == 0 && id->ms < UINT64_MAX) {
        *id = (struct stream_id){id->ms + 1, first_seq()};
    }
    return stream_id_compare(*id, facts->last_id) > 0;
}

bool stream_next_seq(const struct stream_facts *facts, struct stream_id *id)
{
    id->seq = first_seq();
    if (id->ms == facts->last_id.ms) {
        id->seq = next_seq(facts->last_id.seq);
        return id->seq != 0;
    }
    return id->ms > facts->last_id.ms;
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

/* Makes room for an entry, and for no more than is written: a listpack holds a gigabyte, an entry
 * may have half of that. */
static unsigned char *reserve_entry(unsigned char *lp, bool same_fields, const struct slice *words,
                                    int count)
{
    size_t bytes = words_bytes(words, count, 1);
    bytes = same_fields ? bytes - words_bytes(words, count, 2) : bytes;
    return listpack_reserve(lp, bytes + (size_t)count * LISTPACK_SLACK_BYTES +
                                    5 * LISTPACK_INTEGER_BYTES);
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

/* True when an entry of `bytes` may go into the node, whose master is in *m then. */
static bool has_room(const unsigned char *lp, size_t bytes, struct stream_master *m)
{
    stream_master_read(lp, m);
    return listpack_bytes(lp) + bytes < max_node_bytes() &&
           m->count + m->deleted < max_node_entries();
}

/* The last node with its master in *m, when an entry of `bytes` may go there; else NULL. */
static unsigned char *tail_with_room(const struct stream *s, size_t bytes, struct stream_master *m)
{
    unsigned char *lp = radix_cursor_valid(&s->tail) ? radix_cursor_value(&s->tail) : NULL;
    return lp && has_room(lp, bytes, m) ? lp : NULL;
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
    lp = stream_set_counts(lp, &m);
    lp = reserve_entry(lp, same_fields, words, count);
    lp = write_entry(lp, same_fields, s->tail_id, id, words, count);
    radix_cursor_set_value(&s->tail, lp);
    s->facts.length++;
    s->facts.entries_added += s->facts.entries_added < STREAM_ADDED_MAX;
    s->facts.last_id = id;
    if (s->facts.length == 1) {
        s->facts.first_id = id;
    }
}

/* ---- in between ---- */

/* The words of the entry that the walk is on, in `words`, whose numbers are in `texts`. */
struct entry_words {
    struct slice *words;
    char (*texts)[STREAM_TEXT_BYTES];
    int count;
};

static void take_words(struct stream_cursor *c, struct entry_words *w)
{
    w->count = (int)(2 * c->field_count);
    w->words = mem_realloc(w->words, (size_t)w->count * sizeof(*w->words));
    w->texts = mem_realloc(w->texts, (size_t)w->count * sizeof(*w->texts));
    for (int i = 0; i < w->count; i += 2) {
        stream_walk_pair(c, &w->words[i], &w->words[i + 1], w->texts[i], w->texts[i + 1]);
    }
}

static unsigned char *add_words(unsigned char *lp, struct stream_id master, struct stream_id id,
                                const struct slice *words, int count)
{
    struct stream_master m;
    stream_master_read(lp, &m);
    bool same_fields = has_fields(lp, &m, words, count);
    m.count++;
    lp = stream_set_counts(lp, &m);
    lp = reserve_entry(lp, same_fields, words, count);
    return write_entry(lp, same_fields, master, id, words, count);
}

/* Puts a node with one entry, which is its master, between others. */
static void add_node(struct stream *s, struct stream_id id, unsigned char *lp)
{
    char key[STREAM_ID_KEY_BYTES];
    void *existing = radix_insert(&s->nodes, stream_id_key(id, key), lp);
    assert(!existing);
    (void)existing;
    stream_renew_tail(s);
}

/* A node is full: deleted entries go from it, and what is in it from `from` on, an entry that is
 * there and not its master, has a node of its own then. (No deleted one may be last in a node
 * before others that have lesser IDs: trimming looks at it.) */
static void split_node(struct stream *s, const struct entry *e, struct stream_id master,
                       struct stream_id from)
{
    char key[STREAM_ID_KEY_BYTES];
    struct radix_cursor node = radix_seek(&s->nodes, RADIX_EQUAL, stream_id_key(master, key));
    unsigned char *old = radix_cursor_value(&node), *halves[2] = {NULL, NULL};
    struct entry_words w = {NULL, NULL, 0};
    struct stream_cursor c;
    stream_walk(&c, e, master, STREAM_ID_MAX, false);
    while (stream_walk_next(&c) && c.lp == old) {
        int half = stream_id_compare(c.id, from) >= 0;
        struct stream_id id = c.id;
        take_words(&c, &w);
        if (!halves[half]) {
            halves[half] = create_node(w.words, w.count);
        }
        halves[half] = add_words(halves[half], half ? from : master, id, w.words, w.count);
    }
    if (halves[0]) {
        radix_cursor_set_value(&node, halves[0]);
    } else {
        radix_remove(&s->nodes, slice_of(key, sizeof(key)));
    }
    listpack_destroy(old);
    if (halves[1]) {
        add_node(s, from, halves[1]);
    }
    stream_renew_tail(s);
    mem_free(w.words);
    mem_free(w.texts);
}

/* Moves the last `bytes` of a listpack to `at`. */
static void rotate(unsigned char *lp, unsigned char *at, size_t bytes)
{
    unsigned char *end = listpack_end(lp);
    unsigned char *moved = mem_alloc(bytes);
    memcpy(moved, end - bytes, bytes);
    memmove(at + bytes, at, (size_t)(end - bytes - at));
    memcpy(at, moved, bytes);
    mem_free(moved);
}

/* Puts the entry into the cursor's node before the entry whose flags are at `before` (NULL: behind
 * all). */
static void put_into(struct radix_cursor *node, struct stream_id master, struct stream_id id,
                     const unsigned char *before, const struct slice *words, int count)
{
    unsigned char *lp = radix_cursor_value(node);
    size_t from_end = before ? (size_t)(listpack_end(lp) - before) : 0;
    /* The counts in front may grow by a byte: places are told from the end. */
    lp = add_words(lp, master, id, words, count);
    if (from_end > 0) {
        unsigned char *end = listpack_end(lp);
        const unsigned char *last = listpack_last(lp);
        for (int64_t i = stream_integer(last); i > 0; i--) {
            last = listpack_prev(lp, last);
        }
        size_t bytes = (size_t)(end - last);
        rotate(lp, end - bytes - from_end, bytes);
    }
    radix_cursor_set_value(node, lp);
}

/* The place of an ID that is not there, behind a node's master. */
struct place {
    struct radix_cursor node;
    struct stream_id master;
    struct stream_id next; /* of the entry before which it belongs; STREAM_ID_MAX: none here */
    const unsigned char *before; /* its flags; NULL: behind all of the node */
};

/* False when it belongs before all nodes. */
static bool find_place(struct stream *s, const struct entry *e, struct stream_id id,
                       struct place *p)
{
    char key[STREAM_ID_KEY_BYTES];
    *p = (struct place){.node = radix_seek(&s->nodes, RADIX_LESS_EQUAL, stream_id_key(id, key)),
                        .next = STREAM_ID_MAX};
    if (!radix_cursor_valid(&p->node)) {
        return false;
    }
    struct stream_cursor c;
    radix_cursor_copy_key(&p->node, key);
    p->master = stream_id_of_key(key);
    stream_walk(&c, e, id, STREAM_ID_MAX, false);
    if (stream_walk_next(&c) && c.lp == radix_cursor_value(&p->node)) {
        p->next = c.id;
        p->before = c.flags;
    }
    return true;
}

/* Where the ID is not, and is not the last. */
static void put_between(struct stream *s, const struct entry *e, struct stream_id id,
                        const struct slice *words, int count)
{
    struct place p;
    size_t bytes = words_bytes(words, count, 1);
    struct stream_master m;
    bool behind_one = find_place(s, e, id, &p);
    if (behind_one && !has_room(radix_cursor_value(&p.node), bytes, &m) &&
        (p.before || m.deleted > 0)) {
        split_node(s, e, p.master, p.next);
        behind_one = find_place(s, e, id, &p);
    }
    bool own_node = !behind_one || (!p.before && !has_room(radix_cursor_value(&p.node), bytes, &m));
    if (own_node) {
        add_node(s, id, add_words(create_node(words, count), id, id, words, count));
    } else {
        put_into(&p.node, p.master, id, p.before, words, count);
    }
}

void stream_insert(struct entry *e, struct stream_id id, const struct slice *words, int count)
{
    struct stream *s = stream_of(e);
    struct stream_facts *facts = &s->facts;
    if (stream_id_compare(id, facts->last_id) > 0) {
        stream_append(e, id, words, count);
        return;
    }
    struct stream_id deleted = facts->max_deleted_id;
    if (stream_delete(e, id)) {
        facts->max_deleted_id = deleted;
    }
    put_between(s, e, id, words, count);
    facts->length++;
    facts->entries_added += facts->entries_added < STREAM_ADDED_MAX;
    if (facts->length == 1 || stream_id_compare(id, facts->first_id) < 0) {
        facts->first_id = id;
    }
    stream_groups_forget_ranks(&s->groups, id);
}
