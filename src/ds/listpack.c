/* The listpack: see listpack.h for the format. Reading decodes in place; every change is one
 * splice: bytes of old elements at an offset give way to bytes of new ones. The block grows to the
 * next size class of the allocator and shrinks when less than half of it is in use, so that neither
 * growing nor emptying element by element copies more than a few times. */
#include "ds/listpack.h"

#include "base/mem.h"
#include "base/num.h"
#include "ds/listpack_priv.h"

#define EMPTY_BYTES (LISTPACK_HEADER_BYTES + 1)

struct listpack_coded listpack_code_integer(int64_t value)
{
    struct listpack_coded c = {.tail = {NULL, 0}};
    uint64_t bits = (uint64_t)value;
    if (value >= 0 && value <= 127) {
        c.head[0] = (unsigned char)value;
        c.head_len = 1;
    } else if (value >= -4096 && value <= 4095) {
        c.head[0] = (unsigned char)(LISTPACK_INT_13 | ((bits >> 8) & 31));
        c.head[1] = (unsigned char)bits;
        c.head_len = 2;
    } else {
        unsigned width = value == (int16_t)value                    ? 2
                         : value >= -(1 << 23) && value < (1 << 23) ? 3
                         : value == (int32_t)value                  ? 4
                                                                    : 8;
        c.head[0] = (unsigned char)(width == 8 ? LISTPACK_INT_64 : LISTPACK_INT_16 + width - 2);
        memcpy(c.head + 1, &bits, width);
        c.head_len = (uint8_t)(1 + width);
    }
    c.bytes = c.head_len;
    return c;
}

struct listpack_coded listpack_code_bytes(struct slice bytes)
{
    int64_t value;
    if (bytes.len - 1 < 20 && (unsigned char)bytes.ptr[0] <= '9' && num_parse_i64(bytes, &value)) {
        return listpack_code_integer(value);
    }
    struct listpack_coded c = {.tail = bytes};
    if (bytes.len < 64) {
        c.head[0] = (unsigned char)(LISTPACK_STRING_6 | bytes.len);
        c.head_len = 1;
    } else if (bytes.len < 4096) {
        c.head[0] = (unsigned char)(LISTPACK_STRING_12 | bytes.len >> 8);
        c.head[1] = (unsigned char)bytes.len;
        c.head_len = 2;
    } else {
        uint32_t len = (uint32_t)bytes.len;
        assert(bytes.len < LISTPACK_MAX_BYTES);
        c.head[0] = LISTPACK_STRING_32;
        memcpy(c.head + 1, &len, sizeof(len));
        c.head_len = 5;
    }
    c.bytes = c.head_len + bytes.len;
    return c;
}

static inline uint32_t header_count(const unsigned char *lp)
{
    return (uint32_t)lp[4] | (uint32_t)lp[5] << 8;
}

static inline void set_header(unsigned char *lp, size_t bytes, uint32_t count)
{
    uint32_t total = (uint32_t)bytes;
    assert(bytes <= LISTPACK_MAX_BYTES);
    memcpy(lp, &total, sizeof(total));
    count = count < LISTPACK_UNKNOWN_COUNT ? count : LISTPACK_UNKNOWN_COUNT;
    lp[4] = (unsigned char)count;
    lp[5] = (unsigned char)(count >> 8);
}

int64_t listpack_decode_integer(const unsigned char *at)
{
    unsigned char first = *at;
    if (first < LISTPACK_STRING_6) {
        return first;
    }
    if (first < LISTPACK_STRING_12) {
        uint32_t bits = (uint32_t)(first & 31) << 8 | at[1];
        return (int64_t)(int32_t)(bits << 19) >> 19;
    }
    uint64_t bits = 0;
    unsigned width = (unsigned)listpack_head_bytes(first) - 1;
    assert(width > 0 && first > LISTPACK_STRING_32);
    memcpy(&bits, at + 1, width);
    unsigned unused = 64 - 8 * width;
    return (int64_t)(bits << unused) >> unused;
}

static void write_coded(unsigned char *at, const struct listpack_coded *c)
{
    listpack_write_coded(at, c);
    listpack_write_back(at + c->bytes, c->bytes);
}

/* Makes `removed` bytes at `offset` into `inserted` ones (their content is the caller's) and the
 * header right. */
static unsigned char *splice(unsigned char *lp, size_t offset, size_t removed, size_t inserted,
                             int64_t count_change)
{
    size_t bytes = listpack_bytes(lp);
    size_t after = bytes - removed + inserted;
    assert(offset >= LISTPACK_HEADER_BYTES && offset + removed < bytes);
    assert(after <= LISTPACK_MAX_BYTES);
    uint32_t count = header_count(lp);
    if (after > bytes && after > mem_usable_size(lp)) {
        lp = mem_realloc(lp, after);
    }
    if (inserted != removed) {
        memmove(lp + offset + inserted, lp + offset + removed, bytes - offset - removed);
    }
    if (after < bytes && after < mem_usable_size(lp) / 2) {
        lp = mem_realloc(lp, after);
    }
    if (count != LISTPACK_UNKNOWN_COUNT) {
        count = (uint32_t)(count + count_change);
    }
    set_header(lp, after, count);
    return lp;
}

static unsigned char *insert_coded(unsigned char *lp, size_t offset, size_t removed,
                                   const struct listpack_coded *c)
{
    size_t inserted = c->bytes + listpack_back_bytes(c->bytes);
    lp = splice(lp, offset, removed, inserted, removed > 0 ? 0 : 1);
    write_coded(lp + offset, c);
    return lp;
}

/* ---- life ---- */

unsigned char *listpack_create(size_t capacity)
{
    unsigned char *lp = mem_alloc(capacity > EMPTY_BYTES ? capacity : EMPTY_BYTES);
    set_header(lp, EMPTY_BYTES, 0);
    lp[LISTPACK_HEADER_BYTES] = LISTPACK_END;
    return lp;
}

void listpack_destroy(unsigned char *lp)
{
    mem_free(lp);
}

unsigned char *listpack_copy(const unsigned char *lp)
{
    size_t bytes = listpack_bytes(lp);
    return memcpy(mem_alloc(bytes), lp, bytes);
}

unsigned char *listpack_shrink(unsigned char *lp)
{
    size_t bytes = listpack_bytes(lp);
    return mem_good_size(bytes) < mem_usable_size(lp) ? mem_realloc(lp, bytes) : lp;
}

size_t listpack_bytes(const unsigned char *lp)
{
    return listpack_load32(lp);
}

uint32_t listpack_count(const unsigned char *lp)
{
    uint32_t count = header_count(lp);
    if (likely(count != LISTPACK_UNKNOWN_COUNT)) {
        return count;
    }
    count = 0;
    for (const unsigned char *at = lp + LISTPACK_HEADER_BYTES; *at != LISTPACK_END;
         at += listpack_step(at)) {
        count++;
    }
    return count;
}

bool listpack_fits(const unsigned char *lp, size_t len)
{
    /* An element takes at most five bytes before and five behind its own. */
    return len <= LISTPACK_MAX_BYTES && listpack_bytes(lp) + len + 10 <= LISTPACK_MAX_BYTES;
}

/* ---- positions ---- */

unsigned char *listpack_first(const unsigned char *lp)
{
    const unsigned char *at = lp + LISTPACK_HEADER_BYTES;
    return *at == LISTPACK_END ? NULL : (unsigned char *)at;
}

unsigned char *listpack_next(const unsigned char *lp, const unsigned char *at)
{
    (void)lp;
    at += listpack_step(at);
    return *at == LISTPACK_END ? NULL : (unsigned char *)at;
}

unsigned char *listpack_skip(const unsigned char *at, uint64_t count)
{
    for (; count > 0; count--) {
        /* Small integers and short strings, whose length behind them is one byte. */
        if (likely(*at < LISTPACK_STRING_6)) {
            at += 2;
        } else if (likely(*at < LISTPACK_INT_13)) {
            at += 2 + (*at & 63);
        } else {
            assert(*at != LISTPACK_END);
            at += listpack_step(at);
        }
    }
    return *at == LISTPACK_END ? NULL : (unsigned char *)at;
}

/* The element that ends before `end`; NULL at the head. */
static unsigned char *before(const unsigned char *lp, const unsigned char *end)
{
    if (end == lp + LISTPACK_HEADER_BYTES) {
        return NULL;
    }
    size_t size = 0;
    unsigned shift = 0;
    const unsigned char *p = end;
    do {
        p--;
        size |= (size_t)(*p & 127) << shift;
        shift += 7;
    } while (*p & 128);
    assert(size + LISTPACK_HEADER_BYTES <= (size_t)(p - lp));
    return (unsigned char *)p - size;
}

unsigned char *listpack_last(const unsigned char *lp)
{
    return before(lp, lp + listpack_bytes(lp) - 1);
}

unsigned char *listpack_prev(const unsigned char *lp, const unsigned char *at)
{
    return before(lp, at);
}

unsigned char *listpack_seek(const unsigned char *lp, int64_t index)
{
    uint32_t count = header_count(lp);
    if (count != LISTPACK_UNKNOWN_COUNT) {
        if (index < -(int64_t)count || index >= (int64_t)count) {
            return NULL;
        }
        /* From the nearer end. */
        if (index < 0 && -index > (int64_t)count / 2) {
            index += count;
        } else if (index > (int64_t)count / 2) {
            index -= count;
        }
    }
    unsigned char *at = index < 0 ? listpack_last(lp) : listpack_first(lp);
    while (index > 0 && at != NULL) {
        at = listpack_next(lp, at);
        index--;
    }
    while (index < -1 && at != NULL) {
        at = before(lp, at);
        index++;
    }
    return at;
}

/* ---- elements ---- */

struct slice listpack_get(const unsigned char *at, char *text)
{
    if (listpack_is_string(*at)) {
        size_t head = listpack_head_bytes(*at);
        return slice_of((const char *)at + head, listpack_element_bytes(at) - head);
    }
    return slice_of(text, num_format_i64(text, listpack_decode_integer(at)));
}

bool listpack_get_integer(const unsigned char *at, int64_t *value)
{
    if (listpack_is_string(*at)) {
        return false;
    }
    *value = listpack_decode_integer(at);
    return true;
}

int64_t listpack_take_wide_integer(const unsigned char **at)
{
    assert(!listpack_is_string(**at) && **at <= LISTPACK_INT_64);
    int64_t value = listpack_decode_integer(*at);
    *at += listpack_step(*at);
    return value;
}

bool listpack_equals(const unsigned char *at, struct slice bytes)
{
    if (listpack_is_string(*at)) {
        return slice_equal(listpack_get(at, NULL), bytes);
    }
    int64_t value;
    return num_parse_i64(bytes, &value) && value == listpack_decode_integer(at);
}

/* Looks for a text that is no integer and not empty: the usual needle, hence as few steps an
 * element as there can be. */
static unsigned char *find_text(unsigned char *at, struct slice bytes, uint32_t skip)
{
    for (;;) {
        unsigned char first = *at;
        size_t size = listpack_element_bytes(at);
        if (first >= LISTPACK_STRING_6 && listpack_is_string(first) &&
            listpack_same_string(at, size, bytes)) {
            return at;
        }
        at += size + listpack_back_bytes(size);
        for (uint32_t i = 0; i < skip && *at != LISTPACK_END; i++) {
            at += listpack_step(at);
        }
        if (*at == LISTPACK_END) {
            return NULL;
        }
    }
}

unsigned char *listpack_find(const unsigned char *lp, unsigned char *at, struct slice bytes,
                             uint32_t skip)
{
    (void)lp;
    if (at == NULL) {
        return NULL;
    }
    int64_t wanted = 0;
    bool numeric = num_parse_i64(bytes, &wanted);
    if (!numeric && bytes.len > 0) {
        return find_text(at, bytes, skip);
    }
    for (;;) {
        size_t size = listpack_element_bytes(at);
        if (listpack_is_string(*at)) {
            size_t head = listpack_head_bytes(*at);
            if (size - head == bytes.len && memcmp(at + head, bytes.ptr, bytes.len) == 0) {
                return at;
            }
        } else if (numeric && listpack_decode_integer(at) == wanted) {
            return at;
        }
        at += size + listpack_back_bytes(size);
        for (uint32_t i = 0; i < skip && *at != LISTPACK_END; i++) {
            at += listpack_step(at);
        }
        if (*at == LISTPACK_END) {
            return NULL;
        }
    }
}

/* ---- changes ---- */

unsigned char *listpack_append(unsigned char *lp, struct slice bytes)
{
    struct listpack_coded c = listpack_code_bytes(bytes);
    return insert_coded(lp, listpack_bytes(lp) - 1, 0, &c);
}

unsigned char *listpack_prepend(unsigned char *lp, struct slice bytes)
{
    struct listpack_coded c = listpack_code_bytes(bytes);
    return insert_coded(lp, LISTPACK_HEADER_BYTES, 0, &c);
}

unsigned char *listpack_append_integer(unsigned char *lp, int64_t value)
{
    struct listpack_coded c = listpack_code_integer(value);
    return insert_coded(lp, listpack_bytes(lp) - 1, 0, &c);
}

unsigned char *listpack_insert(unsigned char *lp, unsigned char **at, struct slice bytes,
                               bool after)
{
    struct listpack_coded c = listpack_code_bytes(bytes);
    size_t offset = (size_t)(*at - lp) + (after ? listpack_step(*at) : 0);
    lp = insert_coded(lp, offset, 0, &c);
    *at = lp + offset;
    return lp;
}

unsigned char *listpack_replace(unsigned char *lp, unsigned char **at, struct slice bytes)
{
    struct listpack_coded c = listpack_code_bytes(bytes);
    size_t offset = (size_t)(*at - lp);
    lp = insert_coded(lp, offset, listpack_step(*at), &c);
    *at = lp + offset;
    return lp;
}

unsigned char *listpack_replace_integer(unsigned char *lp, unsigned char **at, int64_t value)
{
    struct listpack_coded c = listpack_code_integer(value);
    size_t offset = (size_t)(*at - lp);
    lp = insert_coded(lp, offset, listpack_step(*at), &c);
    *at = lp + offset;
    return lp;
}

unsigned char *listpack_remove(unsigned char *lp, unsigned char **at)
{
    size_t offset = (size_t)(*at - lp);
    lp = splice(lp, offset, listpack_step(*at), 0, -1);
    *at = lp[offset] == LISTPACK_END ? NULL : lp + offset;
    return lp;
}

unsigned char *listpack_remove_range(unsigned char *lp, int64_t start, uint32_t count)
{
    const unsigned char *from = listpack_seek(lp, start);
    if (from == NULL || count == 0) {
        return lp;
    }
    const unsigned char *to = from;
    uint32_t removed = 0;
    while (removed < count && *to != LISTPACK_END) {
        to += listpack_step(to);
        removed++;
    }
    return splice(lp, (size_t)(from - lp), (size_t)(to - from), 0, -(int64_t)removed);
}

unsigned char *listpack_join(unsigned char *a, unsigned char *b_take)
{
    size_t extra = listpack_bytes(b_take) - EMPTY_BYTES;
    size_t offset = listpack_bytes(a) - 1;
    uint32_t count = header_count(a), more = header_count(b_take);
    bool known = count != LISTPACK_UNKNOWN_COUNT && more != LISTPACK_UNKNOWN_COUNT;
    if (extra > 0) {
        a = splice(a, offset, 0, extra, 0);
        memcpy(a + offset, b_take + LISTPACK_HEADER_BYTES, extra);
        set_header(a, offset + extra + 1, known ? count + more : LISTPACK_UNKNOWN_COUNT);
    }
    listpack_destroy(b_take);
    return a;
}

/* ---- many at once ---- */

unsigned char *listpack_reserve(unsigned char *lp, size_t more)
{
    size_t bytes = listpack_bytes(lp), needed = bytes + more, has = mem_usable_size(lp);
    assert(more <= LISTPACK_MAX_BYTES && needed <= LISTPACK_MAX_BYTES);
    if (needed <= has) {
        return lp;
    }
    return mem_realloc(lp, needed > has + has / 2 ? needed : has + has / 2);
}

unsigned char *listpack_write(unsigned char *at, struct slice bytes)
{
    struct listpack_coded c = listpack_code_bytes(bytes);
    write_coded(at, &c);
    return at + c.bytes + listpack_back_bytes(c.bytes);
}

unsigned char *listpack_write_integer(unsigned char *at, int64_t value)
{
    if (value >= 0 && value <= 127) {
        at[0] = (unsigned char)value;
        at[1] = 1;
        return at + 2;
    }
    struct listpack_coded c = listpack_code_integer(value);
    write_coded(at, &c);
    return at + c.bytes + listpack_back_bytes(c.bytes);
}

void listpack_extend(unsigned char *lp, unsigned char *end, uint32_t count)
{
    uint32_t old = header_count(lp);
    *end = LISTPACK_END;
    set_header(lp, (size_t)(end - lp) + 1,
               old == LISTPACK_UNKNOWN_COUNT ? LISTPACK_UNKNOWN_COUNT : old + count);
}
