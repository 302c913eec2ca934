/* See pairs.h for the format. Every change is one splice: the bytes of a pair give way to others,
 * in room that is there. */
#include "ds/pairs.h"

#include "base/compiler.h"
#include "ds/listpack_priv.h"

#define BYTES_BITS 18
/* The four bits that say that an element follows, and the shortest texts that need none. */
#define CODE_ELEMENT 15
#define FIELD_SHORTEST 1
#define VALUE_SHORTEST 2

static_assert(PAIRS_TEXT_BYTES == LISTPACK_TEXT_BYTES, "elements are a listpack's");
static_assert(sizeof(((struct pairs_text *)NULL)->head) ==
                  sizeof(((struct listpack_coded *)NULL)->head),
              "elements are a listpack's");

static inline void set_header(unsigned char *p, size_t bytes, uint32_t count)
{
    assert(bytes >= PAIRS_HEADER_BYTES && bytes <= PAIRS_MAX_BYTES && count <= PAIRS_MAX_COUNT);
    uint32_t word = (uint32_t)bytes | count << BYTES_BITS;
    memcpy(p, &word, sizeof(word));
}

void pairs_init(unsigned char *p)
{
    set_header(p, PAIRS_HEADER_BYTES, 0);
}

size_t pairs_bytes(const unsigned char *p)
{
    return listpack_load32(p) & PAIRS_MAX_BYTES;
}

uint32_t pairs_count(const unsigned char *p)
{
    return listpack_load32(p) >> BYTES_BITS;
}

/* ---- texts ---- */

/* How a text of at most PAIRS_MAX_BYTES is written. `shortest` is the length that code 0 means. */
static void code(struct pairs_text *t, struct slice text, size_t shortest)
{
    struct listpack_coded c = listpack_code_bytes(text);
    size_t beyond = text.len - shortest;
    if (beyond < CODE_ELEMENT && text.len <= c.bytes) {
        *t = (struct pairs_text){.tail = text, .bytes = text.len, .code = (uint8_t)beyond};
        return;
    }
    t->tail = c.tail;
    t->bytes = c.bytes;
    t->code = CODE_ELEMENT;
    t->head_len = c.head_len;
    memcpy(t->head, c.head, sizeof(t->head));
}

static unsigned char *write_text(unsigned char *at, const struct pairs_text *t)
{
    memcpy(at, t->head, t->head_len);
    if (t->tail.len > 0) {
        memcpy(at + t->head_len, t->tail.ptr, t->tail.len);
    }
    return at + t->bytes;
}

static inline size_t text_bytes(const unsigned char *at, unsigned text_code, size_t shortest)
{
    return likely(text_code < CODE_ELEMENT) ? text_code + shortest : listpack_element_bytes(at);
}

static inline struct slice read_text(const unsigned char *at, unsigned text_code, size_t shortest,
                                     char *text)
{
    return likely(text_code < CODE_ELEMENT) ? slice_of((const char *)at, text_code + shortest)
                                            : listpack_get(at, text);
}

size_t pairs_pair_bytes(struct slice field, struct slice value)
{
    struct pairs_text f, v;
    code(&f, field, FIELD_SHORTEST);
    code(&v, value, VALUE_SHORTEST);
    return 1 + f.bytes + v.bytes;
}

/* ---- positions ---- */

static inline const unsigned char *value_at(const unsigned char *at)
{
    return at + 1 + text_bytes(at + 1, *at >> 4, FIELD_SHORTEST);
}

/* Behind the pair at `at`. */
static inline const unsigned char *step(const unsigned char *at)
{
    const unsigned char *value = value_at(at);
    return value + text_bytes(value, *at & 15, VALUE_SHORTEST);
}

unsigned char *pairs_first(const unsigned char *p)
{
    return pairs_count(p) > 0 ? (unsigned char *)p + PAIRS_HEADER_BYTES : NULL;
}

unsigned char *pairs_next(const unsigned char *p, const unsigned char *at)
{
    const unsigned char *next = step(at);
    return next < p + pairs_bytes(p) ? (unsigned char *)next : NULL;
}

unsigned char *pairs_seek(const unsigned char *p, uint32_t index)
{
    assert(index < pairs_count(p));
    const unsigned char *at = p + PAIRS_HEADER_BYTES;
    for (; index > 0; index--) {
        at = step(at);
    }
    return (unsigned char *)at;
}

/* Looks for a field of the short form: the usual needle, hence as few steps a pair as there can be.
 * The last byte is where similar names differ. */
static const unsigned char *find_short(const unsigned char *at, const unsigned char *end,
                                       struct slice field)
{
    unsigned wanted = (unsigned)(field.len - FIELD_SHORTEST);
    unsigned char last = (unsigned char)field.ptr[field.len - 1];
    for (; at < end; at = step(at)) {
        if (*at >> 4 == wanted && at[field.len] == last &&
            memcmp(at + 1, field.ptr, field.len) == 0) {
            return at;
        }
    }
    return NULL;
}

/* True when the element at `at` is `t`. Heads that begin with the same byte are as long, and equal
 * heads mean as many bytes behind them. */
static inline bool same_element(const unsigned char *at, const struct pairs_text *t)
{
    return *at == t->head[0] && memcmp(at, t->head, t->head_len) == 0 &&
           (t->tail.len == 0 || memcmp(at + t->head_len, t->tail.ptr, t->tail.len) == 0);
}

static const unsigned char *find_coded(const unsigned char *p, const struct pairs_text *field)
{
    const unsigned char *end = p + pairs_bytes(p);
    const unsigned char *at = p + PAIRS_HEADER_BYTES;
    if (likely(field->code != CODE_ELEMENT)) {
        return find_short(at, end, field->tail);
    }
    for (; at < end; at = step(at)) {
        if (*at >> 4 == CODE_ELEMENT && same_element(at + 1, field)) {
            return at;
        }
    }
    return NULL;
}

unsigned char *pairs_find(const unsigned char *p, struct slice field)
{
    struct pairs_text wanted;
    if (unlikely(field.len > PAIRS_MAX_BYTES)) {
        return NULL;
    }
    code(&wanted, field, FIELD_SHORTEST);
    return (unsigned char *)find_coded(p, &wanted);
}

struct slice pairs_field(const unsigned char *at, char *text)
{
    return read_text(at + 1, *at >> 4, FIELD_SHORTEST, text);
}

struct slice pairs_value(const unsigned char *at, char *text)
{
    return read_text(value_at(at), *at & 15, VALUE_SHORTEST, text);
}

/* ---- changes ---- */

void pairs_plan_set(const unsigned char *p, struct slice field, struct slice value,
                    struct pairs_change *change)
{
    code(&change->field, field, FIELD_SHORTEST);
    code(&change->value, value, VALUE_SHORTEST);
    const unsigned char *at = find_coded(p, &change->field);
    size_t bytes = pairs_bytes(p);
    change->is_new = at == NULL;
    change->offset = at ? (size_t)(at - p) : bytes;
    change->removed = at ? (size_t)(step(at) - at) : 0;
    change->bytes_after = bytes - change->removed + 1 + change->field.bytes + change->value.bytes;
}

static void splice(unsigned char *p, size_t offset, size_t removed, size_t inserted,
                   uint32_t count_after)
{
    size_t bytes = pairs_bytes(p);
    assert(offset >= PAIRS_HEADER_BYTES && offset + removed <= bytes);
    if (inserted != removed) {
        memmove(p + offset + inserted, p + offset + removed, bytes - offset - removed);
    }
    set_header(p, bytes - removed + inserted, count_after);
}

void pairs_apply(unsigned char *p, const struct pairs_change *change)
{
    size_t inserted = 1 + change->field.bytes + change->value.bytes;
    splice(p, change->offset, change->removed, inserted, pairs_count(p) + change->is_new);
    assert(pairs_bytes(p) == change->bytes_after);
    unsigned char *at = p + change->offset;
    *at = (unsigned char)(change->field.code << 4 | change->value.code);
    write_text(write_text(at + 1, &change->field), &change->value);
}

void pairs_remove(unsigned char *p, unsigned char *at)
{
    splice(p, (size_t)(at - p), (size_t)(step(at) - at), 0, pairs_count(p) - 1);
}

/* ---- checking ---- */

/* Bytes of the text at `at`, of which `left` are there; SIZE_MAX when it is none. */
static size_t checked_bytes(const unsigned char *at, size_t left, unsigned text_code,
                            size_t shortest)
{
    if (text_code == CODE_ELEMENT &&
        (left == 0 || *at > LISTPACK_INT_64 || listpack_head_bytes(*at) > left)) {
        return SIZE_MAX;
    }
    size_t size = text_bytes(at, text_code, shortest);
    return size <= left ? size : SIZE_MAX;
}

bool pairs_are_valid(const unsigned char *p, size_t size)
{
    if (size < PAIRS_HEADER_BYTES || pairs_bytes(p) != size) {
        return false;
    }
    size_t at = PAIRS_HEADER_BYTES;
    for (uint32_t left = pairs_count(p); left > 0; left--) {
        if (at == size) {
            return false;
        }
        unsigned char head = p[at++];
        size_t field = checked_bytes(p + at, size - at, head >> 4, FIELD_SHORTEST);
        if (field == SIZE_MAX) {
            return false;
        }
        at += field;
        size_t value = checked_bytes(p + at, size - at, head & 15, VALUE_SHORTEST);
        if (value == SIZE_MAX) {
            return false;
        }
        at += value;
    }
    return at == size;
}
