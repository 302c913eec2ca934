/* See bits.h. Long runs go in words of 8 bytes, loaded with memcpy: strings stand at any address.
 */
#include "ds/bits.h"

#include "base/compiler.h"

#include <assert.h>
#include <endian.h>
#include <string.h>

#define WORD_BYTES sizeof(uint64_t)
/* Bytes that BITOP makes at a time, so that they stay in the first cache while one source after the
 * other is put in. */
#define COMBINE_BLOCK_BYTES ((size_t)8 * 1024)

static inline uint64_t load_word(const void *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof(word));
    return word;
}

/* A word with bit 0 of the run as its highest bit. */
static inline uint64_t load_run(const uint8_t *at)
{
    return be64toh(load_word(at));
}

/* ---- Counting ---- */

static uint64_t count_words_plain(const uint8_t *bytes, size_t words)
{
    const uint64_t pairs = 0x5555555555555555, quads = 0x3333333333333333;
    const uint64_t nibbles = 0x0f0f0f0f0f0f0f0f, ones = 0x0101010101010101;
    uint64_t total = 0;
    for (size_t i = 0; i < words; i++) {
        uint64_t w = load_word(bytes + i * WORD_BYTES);
        w -= w >> 1 & pairs;
        w = (w & quads) + (w >> 2 & quads);
        w = (w + (w >> 4)) & nibbles;
        total += w * ones >> 56;
    }
    return total;
}

#if defined(__x86_64__)
/* Four sums, so that one addition need not wait for the one before. */
__attribute__((target("popcnt"))) static uint64_t count_words_popcnt(const uint8_t *bytes,
                                                                     size_t words)
{
    uint64_t sums[4] = {0};
    size_t i = 0;
    for (; i + 4 <= words; i += 4) {
        for (size_t lane = 0; lane < 4; lane++) {
            uint64_t word = load_word(bytes + (i + lane) * WORD_BYTES);
            sums[lane] += (uint64_t)__builtin_popcountll(word);
        }
    }
    for (; i < words; i++) {
        sums[0] += (uint64_t)__builtin_popcountll(load_word(bytes + i * WORD_BYTES));
    }
    return sums[0] + sums[1] + sums[2] + sums[3];
}
#endif

static uint64_t count_words(const uint8_t *bytes, size_t words)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("popcnt")) {
        return count_words_popcnt(bytes, words);
    }
#endif
    return count_words_plain(bytes, words);
}

uint64_t bits_count(const uint8_t *bytes, size_t len)
{
    size_t words = len / WORD_BYTES;
    uint64_t total = count_words(bytes, words);
    for (size_t i = words * WORD_BYTES; i < len; i++) {
        total += (uint64_t)__builtin_popcount(bytes[i]);
    }
    return total;
}

/* The bits of a byte from position `bit` on, and those up to it. */
static inline uint8_t mask_from(unsigned bit)
{
    return (uint8_t)(0xff >> bit);
}

static inline uint8_t mask_to(unsigned bit)
{
    return (uint8_t)(0xff << (7 - bit));
}

uint64_t bits_count_range(const uint8_t *bytes, uint64_t first, uint64_t last)
{
    assert(first <= last);
    size_t from = first / 8, to = last / 8;
    uint8_t head = mask_from(first % 8), tail = mask_to(last % 8);
    if (from == to) {
        return (uint64_t)__builtin_popcount(bytes[from] & head & tail);
    }
    return (uint64_t)__builtin_popcount(bytes[from] & head) +
           bits_count(bytes + from + 1, to - from - 1) +
           (uint64_t)__builtin_popcount(bytes[to] & tail);
}

/* ---- Finding ---- */

/* Position in the byte of its first bit that is set, or 8. */
static inline unsigned first_set(uint8_t byte)
{
    return byte ? (unsigned)__builtin_clz(byte) - 24 : 8;
}

static inline bool four_words_are(const uint8_t *at, uint64_t word)
{
    uint64_t differ = (load_word(at) ^ word) | (load_word(at + WORD_BYTES) ^ word) |
                      (load_word(at + 2 * WORD_BYTES) ^ word) |
                      (load_word(at + 3 * WORD_BYTES) ^ word);
    return differ == 0;
}

int64_t bits_find(const uint8_t *bytes, uint64_t first, uint64_t last, bool value)
{
    assert(first <= last);
    /* What is looked for is set after the exclusive or. */
    const uint8_t flip = value ? 0 : 0xff;
    const uint64_t flip_word = value ? 0 : UINT64_MAX;
    size_t at = first / 8, to = last / 8;
    uint8_t byte = (uint8_t)((bytes[at] ^ flip) & mask_from(first % 8));
    while (byte == 0 && at < to) {
        at++;
        while (to - at > 4 * WORD_BYTES && four_words_are(bytes + at, flip_word)) {
            at += 4 * WORD_BYTES;
        }
        while (to - at > WORD_BYTES && load_word(bytes + at) == flip_word) {
            at += WORD_BYTES;
        }
        byte = bytes[at] ^ flip;
    }
    uint64_t position = (uint64_t)at * 8 + first_set(byte);
    return byte && position <= last ? (int64_t)position : -1;
}

/* ---- Fields ---- */

uint64_t bits_get_field(const uint8_t *bytes, size_t len, uint64_t offset, unsigned width)
{
    assert(width >= 1 && width <= BITS_FIELD_MAX_WIDTH);
    /* A field touches nine bytes at most; those that are missing are zero. */
    uint8_t window[WORD_BYTES + 1] = {0};
    uint64_t at = offset / 8;
    unsigned skip = offset % 8;
    if (at < len) {
        size_t there = len - at;
        memcpy(window, bytes + at, there < sizeof(window) ? there : sizeof(window));
    }
    uint64_t run = load_run(window) << skip;
    run |= (uint64_t)window[WORD_BYTES] >> (8 - skip);
    return run >> (BITS_FIELD_MAX_WIDTH - width);
}

void bits_set_field(uint8_t *bytes, uint64_t offset, unsigned width, uint64_t value)
{
    assert(width >= 1 && width <= BITS_FIELD_MAX_WIDTH);
    /* From the field's end: the lowest bits of the value go into the last byte. */
    uint64_t end = offset + width;
    while (width > 0) {
        size_t at = (end - 1) / 8;
        unsigned in_byte = (unsigned)(end - at * 8); /* 1..8 bits of it lie before the end */
        unsigned taken = in_byte < width ? in_byte : width;
        unsigned shift = 8 - in_byte;
        unsigned mask = ((1u << taken) - 1) << shift;
        bytes[at] = (uint8_t)((bytes[at] & ~mask) | ((unsigned)(value << shift) & mask));
        value >>= taken;
        end -= taken;
        width -= taken;
    }
}

int64_t bits_sign_extend(uint64_t field, unsigned width)
{
    assert(width >= 1 && width <= BITS_FIELD_MAX_WIDTH);
    uint64_t sign = (uint64_t)1 << (width - 1);
    uint64_t low = width == BITS_FIELD_MAX_WIDTH ? field : field & ((sign << 1) - 1);
    return (int64_t)((low ^ sign) - sign);
}

bool bits_add_signed(int64_t value, int64_t increment, unsigned width, enum bits_overflow policy,
                     int64_t *sum)
{
    assert(width >= 1 && width <= BITS_FIELD_MAX_WIDTH);
    const int64_t max = (int64_t)(((uint64_t)1 << (width - 1)) - 1);
    const int64_t min = -max - 1;
    bool beyond = __builtin_add_overflow(value, increment, sum);
    if (!beyond && *sum >= min && *sum <= max) {
        return true;
    }
    bool upwards = beyond ? increment > 0 : *sum > max;
    int64_t room;
    if (width < BITS_FIELD_MAX_WIDTH && __builtin_sub_overflow(max, value, &room)) {
        upwards = true;
    }
    if (policy == BITS_OVERFLOW_SATURATE) {
        *sum = upwards ? max : min;
    } else {
        *sum = bits_sign_extend((uint64_t)value + (uint64_t)increment, width);
    }
    return false;
}

bool bits_add_unsigned(uint64_t value, int64_t increment, unsigned width, enum bits_overflow policy,
                       uint64_t *sum)
{
    assert(width >= 1 && width < BITS_FIELD_MAX_WIDTH);
    const uint64_t max = ((uint64_t)1 << width) - 1;
    bool downwards = value <= max && increment < 0 && (uint64_t)0 - (uint64_t)increment > value;
    bool upwards = value > max || (increment > 0 && (uint64_t)increment > max - value);
    *sum = value + (uint64_t)increment;
    if (!downwards && !upwards) {
        return true;
    }
    if (policy == BITS_OVERFLOW_SATURATE) {
        *sum = upwards ? max : 0;
    } else {
        *sum &= max;
    }
    return false;
}

/* ---- Combining ---- */

/* A register of 16 bytes, which all machines have. */
typedef uint64_t vector __attribute__((vector_size(16)));
/* So many at a time, as they do not depend on one another. */
#define VECTORS 4

static ALWAYS_INLINE void combine_vector(enum bits_operation operation, uint8_t *out,
                                         const uint8_t *a, const uint8_t *b)
{
    vector left, right;
    memcpy(&left, a, sizeof(left));
    memcpy(&right, b, sizeof(right));
    left = operation == BITS_AND   ? (left & right)
           : operation == BITS_OR  ? (left | right)
           : operation == BITS_XOR ? (left ^ right)
                                   : ~right;
    memcpy(out, &left, sizeof(left));
}

static ALWAYS_INLINE uint8_t combine_byte(enum bits_operation operation, uint8_t a, uint8_t b)
{
    return (uint8_t)(operation == BITS_AND   ? (a & b)
                     : operation == BITS_OR  ? (a | b)
                     : operation == BITS_XOR ? (a ^ b)
                                             : ~b);
}

/* One operation by its constant, so that the loops have no branch in them. `a` may be `out`. */
static ALWAYS_INLINE void combine_by(enum bits_operation operation, uint8_t *out, const uint8_t *a,
                                     const uint8_t *b, size_t len)
{
    size_t i = 0;
    for (; i + VECTORS * sizeof(vector) <= len; i += VECTORS * sizeof(vector)) {
        for (size_t k = 0; k < VECTORS * sizeof(vector); k += sizeof(vector)) {
            combine_vector(operation, out + i + k, a + i + k, b + i + k);
        }
    }
    for (; i < len; i++) {
        out[i] = combine_byte(operation, a[i], b[i]);
    }
}

/* out = a op b; of BITS_NOT, b alone. */
static void combine_two(enum bits_operation operation, uint8_t *out, const uint8_t *a,
                        const uint8_t *b, size_t len)
{
    switch (operation) {
    case BITS_AND:
        combine_by(BITS_AND, out, a, b, len);
        break;
    case BITS_OR:
        combine_by(BITS_OR, out, a, b, len);
        break;
    case BITS_XOR:
        combine_by(BITS_XOR, out, a, b, len);
        break;
    case BITS_NOT:
        combine_by(BITS_NOT, out, b, b, len);
        break;
    }
}

/* How many of the bytes from..from+len a source has. */
static size_t bytes_there(struct slice source, size_t from, size_t len)
{
    size_t there = source.len > from ? source.len - from : 0;
    return there < len ? there : len;
}

/* Two sources that both have all bytes of the block, or the one that is inverted: nothing need be
 * copied first. Returns how many sources that takes. */
static int combine_first(enum bits_operation operation, uint8_t *out, size_t from, size_t len,
                         const struct slice *sources, int count)
{
    int taken = operation == BITS_NOT ? 1 : 2;
    if (count < taken || bytes_there(sources[0], from, len) < len ||
        bytes_there(sources[taken - 1], from, len) < len) {
        return 0;
    }
    combine_two(operation, out + from, (const uint8_t *)sources[0].ptr + from,
                (const uint8_t *)sources[taken - 1].ptr + from, len);
    return taken;
}

void bits_combine(enum bits_operation operation, uint8_t *out, size_t len,
                  const struct slice *sources, int count)
{
    assert(count >= 1 && (operation != BITS_NOT || count == 1));
    for (size_t from = 0; from < len; from += COMBINE_BLOCK_BYTES) {
        size_t block = len - from < COMBINE_BLOCK_BYTES ? len - from : COMBINE_BLOCK_BYTES;
        int k = combine_first(operation, out, from, block, sources, count);
        assert(k > 0 || operation != BITS_NOT); /* the one source is the longest */
        for (; k < count; k++) {
            size_t there = bytes_there(sources[k], from, block);
            const uint8_t *in = (const uint8_t *)sources[k].ptr + (there ? from : 0);
            if (k > 0) {
                combine_two(operation, out + from, out + from, in, there);
            } else if (there > 0) {
                memcpy(out + from, in, there);
            }
            if (k == 0 || operation == BITS_AND) {
                memset(out + from + there, 0, block - there);
            }
        }
    }
}

/* ---- Shifting ---- */

size_t bits_shifted_left_len(size_t len, uint64_t by)
{
    return len + (by + 7) / 8;
}

size_t bits_shifted_right_len(size_t len, uint64_t by)
{
    return by / 8 < len ? len - by / 8 : 0;
}

void bits_shift_left(uint8_t *out, struct slice source, uint64_t by)
{
    const uint8_t *in = (const uint8_t *)source.ptr;
    size_t whole = by / 8;
    unsigned part = by % 8;
    memset(out, 0, whole);
    unsigned carried = 0;
    for (size_t i = 0; i < source.len; i++) {
        unsigned wide = (unsigned)in[i] << part | carried;
        out[whole + i] = (uint8_t)wide;
        carried = wide >> 8;
    }
    if (part > 0) {
        out[whole + source.len] = (uint8_t)carried;
    }
}

void bits_shift_right(uint8_t *out, struct slice source, uint64_t by)
{
    const uint8_t *in = (const uint8_t *)source.ptr + by / 8;
    size_t len = bits_shifted_right_len(source.len, by);
    unsigned part = by % 8;
    for (size_t i = 0; i < len; i++) {
        unsigned next = i + 1 < len ? in[i + 1] : 0;
        out[i] = (uint8_t)((in[i] | next << 8) >> part);
    }
}
