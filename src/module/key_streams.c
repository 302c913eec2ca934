/* Values of keys that modules open: streams. Functions that fail say why in errno
 * (key_value_checked, and what stands at each). An iterator keeps IDs, not places, and finds its
 * entry anew at each step, so that the stream may change meanwhile; a key has one at a time. No
 * event is told: that is the module's. */
#include "base/mem.h"
#include "keyspace/waiting.h"
#include "module/keys.h"
#include "module/text.h"
#include "value/stream.h"

#include <errno.h>

struct iterator {
    struct stream_id first, last; /* what is left of the range, the current entry not counted */
    bool reverse;
    bool is_over;     /* nothing is left */
    bool has_current; /* there is a current entry: NextID has found it, nobody deleted it */
    struct stream_id current;
    RedisModuleString *
        *words; /* its fields and values, from the first NextField on; NULL: not yet */
    uint64_t word_count;
    uint64_t next_word;
};

static struct stream_id from_module(const RedisModuleStreamID *id)
{
    return (struct stream_id){id->ms, id->seq};
}

static int fail(int error)
{
    errno = error;
    return REDISMODULE_ERR;
}

/* ---- adding, deleting ---- */

/* The ID that the new entry gets: 0, or what goes into errno. */
static int choose_id(const RedisModuleKey *k, int flags, const RedisModuleStreamID *given,
                     struct stream_id *id) REQUIRES(keyspace_lock)
{
    static const struct stream_facts none = {0};
    const struct stream_facts *facts = k->ref.entry ? stream_facts(k->ref.entry) : &none;
    if (stream_id_compare(facts->last_id, STREAM_ID_MAX) == 0) {
        return EFBIG;
    }
    if (flags & REDISMODULE_STREAM_ADD_AUTOID) {
        return stream_next_id(facts, k->ctx->now_ms, id) ? 0 : EFBIG;
    }
    *id = from_module(given);
    return stream_id_is_zero(*id) || stream_id_compare(*id, facts->last_id) <= 0 ? EDOM : 0;
}

static void append(RedisModuleKey *k, struct stream_id id, const struct slice *words, int count)
    REQUIRES(keyspace_lock)
{
    if (k->ref.entry) {
        stream_append(k->ref.entry, id, words, count);
        waiting_note_change(k->db, k->key.name);
        return;
    }
    struct entry *e = stream_create(k->key.name);
    stream_append(e, id, words, count);
    key_put_new(k, e);
}

/* EDOM: the ID given is 0-0 or not behind the last one; EFBIG: there is no ID left; ERANGE: too
 * large an entry. An entry has a field at least (EINVAL). */
static int rm_stream_add(RedisModuleKey *k, int flags, RedisModuleStreamID *id,
                         RedisModuleString **argv, int64_t field_count)
{
    keyspace_assert_exclusive();
    bool any_id = flags & REDISMODULE_STREAM_ADD_AUTOID;
    if (field_count <= 0 || !argv || flags & ~REDISMODULE_STREAM_ADD_AUTOID || (!any_id && !id)) {
        return fail(EINVAL);
    }
    if (!key_open_or_missing(k, VALUE_STREAM)) {
        return REDISMODULE_ERR;
    }
    struct stream_id chosen;
    int fault = choose_id(k, flags, id, &chosen);
    if (fault) {
        return fail(fault);
    }
    if (field_count > STREAM_ENTRY_MAX_WORDS / 2) {
        return fail(ERANGE);
    }
    int count = (int)(2 * field_count);
    struct slice *words = mem_alloc((size_t)count * sizeof(*words));
    for (int i = 0; i < count; i++) {
        words[i] = text_slice(argv[i]);
    }
    size_t need_bytes;
    bool fits = stream_entry_fits(k->ref.entry, words, count, &need_bytes);
    if (fits) {
        append(k, chosen, words, count);
    }
    mem_free(words);
    if (!fits) {
        return fail(ERANGE);
    }
    if (any_id && id) {
        *id = (RedisModuleStreamID){chosen.ms, chosen.seq};
    }
    return REDISMODULE_OK;
}

/* ENOENT: there is no such entry; EBADF also while there is an iterator, which has its own. */
static int rm_stream_delete(RedisModuleKey *k, RedisModuleStreamID *id)
{
    keyspace_assert_exclusive();
    if (!id) {
        return fail(EINVAL);
    }
    struct entry *e = key_value_checked(k, VALUE_STREAM, REDISMODULE_WRITE);
    if (!e) {
        return REDISMODULE_ERR;
    }
    if (k->walk) {
        return fail(EBADF);
    }
    return stream_delete(e, from_module(id)) ? REDISMODULE_OK : fail(ENOENT);
}

/* ---- trimming: the number of entries that went, -1 with errno ---- */

static long long trim(RedisModuleKey *k, int flags, struct stream_trim *how) REQUIRES(keyspace_lock)
{
    if (flags & ~REDISMODULE_STREAM_TRIM_APPROX) {
        errno = EINVAL;
        return -1;
    }
    struct entry *e = key_value_checked(k, VALUE_STREAM, REDISMODULE_WRITE);
    if (!e) {
        return -1;
    }
    how->approximate = flags & REDISMODULE_STREAM_TRIM_APPROX;
    how->limit = how->approximate ? stream_trim_usual_limit() : 0;
    return (long long)stream_trim(e, how);
}

static long long rm_trim_by_length(RedisModuleKey *k, int flags, long long length)
{
    keyspace_assert_exclusive();
    if (length < 0) {
        errno = EINVAL;
        return -1;
    }
    struct stream_trim how = {.kind = STREAM_TRIM_LENGTH, .length = (uint64_t)length};
    return trim(k, flags, &how);
}

static long long rm_trim_by_id(RedisModuleKey *k, int flags, RedisModuleStreamID *id)
{
    keyspace_assert_exclusive();
    if (!id) {
        errno = EINVAL;
        return -1;
    }
    struct stream_trim how = {.kind = STREAM_TRIM_ID, .id = from_module(id)};
    return trim(k, flags, &how);
}

/* ---- iterators ---- */

static void forget_words(struct iterator *it)
{
    for (uint64_t i = 0; it->words && i < it->word_count; i++) {
        text_release(it->words[i]);
    }
    mem_free(it->words);
    it->words = NULL;
    it->word_count = it->next_word = 0;
}

static void end_iterator(RedisModuleKey *k)
{
    forget_words(k->walk);
    mem_free(k->walk);
}

/* The iterator of a stream; NULL: errno, EBADF when there is none. */
static struct iterator *iterator_of(RedisModuleKey *k, int modes) REQUIRES(keyspace_lock)
{
    if (!key_value_checked(k, VALUE_STREAM, modes)) {
        return NULL;
    }
    if (k->end_walk != end_iterator) {
        errno = EBADF;
        return NULL;
    }
    return k->walk;
}

/* EBADF also when there is an iterator already; EDOM: nothing is behind, or before, an excluded
 * bound. */
static int rm_iterator_start(RedisModuleKey *k, int flags, RedisModuleStreamID *start,
                             RedisModuleStreamID *end)
{
    keyspace_assert_exclusive();
    bool excluded = flags & REDISMODULE_STREAM_ITERATOR_EXCLUSIVE;
    if (flags & ~(REDISMODULE_STREAM_ITERATOR_EXCLUSIVE | REDISMODULE_STREAM_ITERATOR_REVERSE)) {
        return fail(EINVAL);
    }
    if (!key_value_checked(k, VALUE_STREAM, 0)) {
        return REDISMODULE_ERR;
    }
    if (k->walk) {
        return fail(EBADF);
    }
    struct stream_id first = start ? from_module(start) : STREAM_ID_MIN;
    struct stream_id last = end ? from_module(end) : STREAM_ID_MAX;
    if (excluded &&
        ((start && !stream_id_increment(&first)) || (end && !stream_id_decrement(&last)))) {
        return fail(EDOM);
    }
    struct iterator *it = mem_calloc(1, sizeof(*it));
    it->first = first;
    it->last = last;
    it->reverse = flags & REDISMODULE_STREAM_ITERATOR_REVERSE;
    k->walk = it;
    k->end_walk = end_iterator;
    return REDISMODULE_OK;
}

static int rm_iterator_stop(RedisModuleKey *k)
{
    keyspace_assert_exclusive();
    if (!iterator_of(k, 0)) {
        return REDISMODULE_ERR;
    }
    key_end_walk(k);
    return REDISMODULE_OK;
}

/* Goes to the next entry of the range; false at its end. */
static bool advance(struct iterator *it, const struct entry *e, struct stream_cursor *c)
    REQUIRES(keyspace_lock)
{
    if (it->is_over || stream_id_compare(it->first, it->last) > 0) {
        return false;
    }
    stream_walk(c, e, it->first, it->last, it->reverse);
    if (!stream_walk_next(c)) {
        it->is_over = true;
        return false;
    }
    it->current = c->id;
    struct stream_id *bound = it->reverse ? &it->last : &it->first;
    *bound = c->id;
    it->is_over = it->reverse ? !stream_id_decrement(bound) : !stream_id_increment(bound);
    return true;
}

/* ENOENT: there are no more entries. */
static int rm_iterator_next_id(RedisModuleKey *k, RedisModuleStreamID *id, long *field_count)
{
    keyspace_assert_exclusive();
    struct iterator *it = iterator_of(k, 0);
    if (!it) {
        return REDISMODULE_ERR;
    }
    struct stream_cursor c;
    forget_words(it);
    it->has_current = advance(it, k->ref.entry, &c);
    if (!it->has_current) {
        return fail(ENOENT);
    }
    if (id) {
        *id = (RedisModuleStreamID){c.id.ms, c.id.seq};
    }
    if (field_count) {
        *field_count = (long)c.field_count;
    }
    return REDISMODULE_OK;
}

/* Copies the current entry's fields and values: what is there may change between two of them. */
static void copy_words(struct iterator *it, const struct entry *e) REQUIRES(keyspace_lock)
{
    struct stream_cursor c;
    if (!stream_find(e, it->current, &c)) {
        it->has_current = false;
        return;
    }
    char field_text[STREAM_TEXT_BYTES], value_text[STREAM_TEXT_BYTES];
    it->word_count = 2 * c.field_count;
    it->words = mem_alloc((it->word_count + 1) * sizeof(RedisModuleString *));
    for (uint64_t i = 0; i < it->word_count; i += 2) {
        struct slice field, value;
        stream_walk_pair(&c, &field, &value, field_text, value_text);
        it->words[i] = text_create(field);
        it->words[i + 1] = text_create(value);
    }
}

/* ENOENT: the entry has no more fields, or there is no entry. */
static int rm_iterator_next_field(RedisModuleKey *k, RedisModuleString **field,
                                  RedisModuleString **value)
{
    keyspace_assert_exclusive();
    struct iterator *it = iterator_of(k, 0);
    if (!it) {
        return REDISMODULE_ERR;
    }
    if (it->has_current && !it->words) {
        copy_words(it, k->ref.entry);
    }
    if (!it->has_current || it->next_word == it->word_count) {
        return fail(ENOENT);
    }
    RedisModuleString *const *pair = it->words + it->next_word;
    it->next_word += 2;
    if (field) {
        *field = text_give(k->ctx, text_acquire(pair[0]));
    }
    if (value) {
        *value = text_give(k->ctx, text_acquire(pair[1]));
    }
    return REDISMODULE_OK;
}

/* ENOENT: there is no current entry, or it is deleted already. */
static int rm_iterator_delete(RedisModuleKey *k)
{
    keyspace_assert_exclusive();
    struct iterator *it = iterator_of(k, REDISMODULE_WRITE);
    if (!it) {
        return REDISMODULE_ERR;
    }
    bool deleted = it->has_current && stream_delete(k->ref.entry, it->current);
    it->has_current = false;
    forget_words(it);
    return deleted ? REDISMODULE_OK : fail(ENOENT);
}

const struct api_function key_stream_functions[] = {
    API(StreamAdd, rm_stream_add),
    API(StreamDelete, rm_stream_delete),
    API(StreamTrimByLength, rm_trim_by_length),
    API(StreamTrimByID, rm_trim_by_id),
    API(StreamIteratorStart, rm_iterator_start),
    API(StreamIteratorStop, rm_iterator_stop),
    API(StreamIteratorNextID, rm_iterator_next_id),
    API(StreamIteratorNextField, rm_iterator_next_field),
    API(StreamIteratorDelete, rm_iterator_delete),
    {NULL, NULL},
};
