/* See hll.h. The sparse form is changed so that the same additions in the same order give the same
 * bytes as Redis gives, since values are compared, dumped and replicated as strings: one run is
 * split into at most three, then equal neighbours are joined within a window that begins one run
 * before. */
#include "ds/hll.h"

#include <assert.h>
#include <endian.h>
#include <math.h>
#include <string.h>

#define INDEX_BITS 14
#define HASH_BITS (64 - INDEX_BITS)
/* The highest value a register can have: all bits of the hash zero but the sentinel behind them. */
#define REGISTER_MAX (HASH_BITS + 1)
#define REGISTER_BITS 6
#define REGISTER_MASK ((1u << REGISTER_BITS) - 1)

#define ENCODING_AT 4
#define CARDINALITY_AT 8
#define CARDINALITY_INVALID 0x80

#define ZERO_MAX_LEN 64
#define XZERO_MAX_LEN 16384
#define VAL_MAX_LEN 4
#define VAL_MAX_VALUE 32
/* Runs looked at for joining after a change: those that a split can have made, and their
 * neighbours. */
#define JOIN_WINDOW_RUNS 5
/* What splitting one run can add. */
#define SPLIT_MAX_BYTES 5

static_assert(HLL_REGISTERS == 1 << INDEX_BITS, "the low bits of the hash are the index");
static_assert(HLL_DENSE_BYTES == 12304, "the size that every dense value in the world has");

/* Where an element belongs: a register, and the value that it asks for. */
struct place {
    unsigned index;
    uint8_t value;
};

uint64_t hll_hash(struct slice element)
{
    const uint64_t factor = 0xc6a4a7935bd1e995;
    const int shift = 47;
    uint64_t h = UINT64_C(0xadc83b19) ^ ((uint64_t)element.len * factor);
    const char *at = element.ptr;
    size_t left = element.len;
    for (; left >= sizeof(uint64_t); left -= sizeof(uint64_t), at += sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, at, sizeof(word));
        word = le64toh(word) * factor;
        word = (word ^ word >> shift) * factor;
        h = (h ^ word) * factor;
    }
    if (left > 0) {
        uint64_t word = 0;
        memcpy(&word, at, left);
        h = (h ^ le64toh(word)) * factor;
    }
    h = (h ^ h >> shift) * factor;
    return h ^ h >> shift;
}

static struct place place_of(struct slice element)
{
    uint64_t hash = hll_hash(element);
    uint64_t rest = hash >> INDEX_BITS | (uint64_t)1 << HASH_BITS;
    return (struct place){(unsigned)(hash & (HLL_REGISTERS - 1)),
                          (uint8_t)(__builtin_ctzll(rest) + 1)};
}

/* ---- The head ---- */

bool hll_is_valid_head(struct slice value)
{
    if (value.len < HLL_HEAD_BYTES || memcmp(value.ptr, "HYLL", 4) != 0) {
        return false;
    }
    uint8_t encoding = (uint8_t)value.ptr[ENCODING_AT];
    return encoding == HLL_SPARSE || (encoding == HLL_DENSE && value.len == HLL_DENSE_BYTES);
}

enum hll_encoding hll_encoding_of(struct slice value)
{
    assert(value.len >= HLL_HEAD_BYTES);
    return (enum hll_encoding)value.ptr[ENCODING_AT];
}

bool hll_cached(struct slice value, uint64_t *cardinality)
{
    uint64_t stored;
    assert(value.len >= HLL_HEAD_BYTES);
    memcpy(&stored, value.ptr + CARDINALITY_AT, sizeof(stored));
    *cardinality = le64toh(stored);
    return !((uint8_t)value.ptr[HLL_HEAD_BYTES - 1] & CARDINALITY_INVALID);
}

void hll_keep(uint8_t *value, uint64_t cardinality)
{
    uint64_t stored = htole64(cardinality);
    memcpy(value + CARDINALITY_AT, &stored, sizeof(stored));
}

void hll_invalidate(uint8_t *value)
{
    value[HLL_HEAD_BYTES - 1] |= CARDINALITY_INVALID;
}

/* ---- Dense registers: four of them are three bytes ---- */

static inline uint8_t dense_get(const uint8_t *registers, unsigned index)
{
    const uint8_t *at = registers + index / 4 * 3;
    switch (index % 4) {
    case 0:
        return at[0] & REGISTER_MASK;
    case 1:
        return (uint8_t)((at[0] >> 6 | at[1] << 2) & REGISTER_MASK);
    case 2:
        return (uint8_t)((at[1] >> 4 | at[2] << 4) & REGISTER_MASK);
    default:
        return at[2] >> 2;
    }
}

static inline void dense_set(uint8_t *registers, unsigned index, uint8_t value)
{
    assert(index < HLL_REGISTERS && value <= REGISTER_MASK);
    uint8_t *at = registers + index / 4 * 3;
    unsigned shift = index % 4 * REGISTER_BITS;
    uint32_t group = (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16;
    group = (group & ~(REGISTER_MASK << shift)) | (uint32_t)value << shift;
    at[0] = (uint8_t)group;
    at[1] = (uint8_t)(group >> 8);
    at[2] = (uint8_t)(group >> 16);
}

static bool dense_raise(uint8_t *registers, struct place place)
{
    if (dense_get(registers, place.index) >= place.value) {
        return false;
    }
    dense_set(registers, place.index, place.value);
    return true;
}

bool hll_dense_add(uint8_t value[HLL_DENSE_BYTES], struct slice element)
{
    return dense_raise(value + HLL_HEAD_BYTES, place_of(element));
}

bool hll_dense_would_add(struct slice value, struct slice element)
{
    assert(value.len == HLL_DENSE_BYTES);
    struct place place = place_of(element);
    return dense_get((const uint8_t *)value.ptr + HLL_HEAD_BYTES, place.index) < place.value;
}

/* ---- Sparse runs ---- */

/* A run as it is written. */
struct run {
    unsigned len;  /* registers */
    uint8_t value; /* 0 for ZERO and XZERO */
    uint8_t bytes; /* 1, or 2 for XZERO */
};

/* Reads the run at `at`; false when it is cut off by the end. */
static inline bool run_read(const uint8_t *at, const uint8_t *end, struct run *run)
{
    if (at >= end) {
        return false;
    }
    if (*at & 0x80) {
        *run = (struct run){(*at & 3u) + 1, (uint8_t)((*at >> 2 & 31) + 1), 1};
    } else if (!(*at & 0x40)) {
        *run = (struct run){(*at & 63u) + 1, 0, 1};
    } else if (end - at >= 2) {
        *run = (struct run){((*at & 63u) << 8 | at[1]) + 1, 0, 2};
    } else {
        return false;
    }
    return true;
}

static uint8_t val_byte(uint8_t value, unsigned len)
{
    assert(value >= 1 && value <= VAL_MAX_VALUE && len >= 1 && len <= VAL_MAX_LEN);
    return (uint8_t)(0x80u | (value - 1u) << 2 | (len - 1));
}

/* Writes `len` registers of a value, nothing when len is 0; returns the bytes written. */
static size_t run_write(uint8_t *out, uint8_t value, unsigned len)
{
    if (len == 0) {
        return 0;
    }
    if (value > 0) {
        out[0] = val_byte(value, len);
        return 1;
    }
    assert(len <= XZERO_MAX_LEN);
    if (len <= ZERO_MAX_LEN) {
        out[0] = (uint8_t)(len - 1);
        return 1;
    }
    out[0] = (uint8_t)(0x40u | (len - 1) >> 8);
    out[1] = (uint8_t)(len - 1);
    return 2;
}

/* Calls for every run of a sparse value; false when the runs do not cover all registers exactly. */
typedef void (*run_visit)(void *context, unsigned first, struct run run);

static bool for_each_run(struct slice value, run_visit visit, void *context)
{
    const uint8_t *at = (const uint8_t *)value.ptr + HLL_HEAD_BYTES;
    const uint8_t *end = (const uint8_t *)value.ptr + value.len;
    unsigned first = 0;
    while (at < end) {
        struct run run;
        if (!run_read(at, end, &run) || run.len > HLL_REGISTERS - first) {
            return false;
        }
        if (visit) {
            visit(context, first, run);
        }
        first += run.len;
        at += run.bytes;
    }
    return first == HLL_REGISTERS;
}

bool hll_check(struct slice value)
{
    return hll_encoding_of(value) == HLL_DENSE || for_each_run(value, NULL, NULL);
}

/* The start of a run. A search may begin at any of them, but knows the run before the one it finds
 * only when it has passed that. */
struct cursor {
    size_t at;      /* offset in the value */
    unsigned first; /* first register */
};

static const struct cursor from_start = {HLL_HEAD_BYTES, 0};

/* The run that covers a register. */
struct found {
    struct cursor here;
    struct cursor before; /* the run before it; equal to `here` when there is none */
    struct run run;
};

/* Finds the run that covers `index`, from *from on, and moves *from to two runs before it (less at
 * the start). There the search for a higher register may begin, whatever was changed by raising
 * this one: a change touches the run before and what follows, so the next search passes at least
 * one run before it finds its own, or begins at the start. False when the value is corrupt. */
static bool find_run(const struct buf *value, struct cursor *from, unsigned index,
                     struct found *found)
{
    const uint8_t *bytes = (const uint8_t *)value->data;
    struct cursor older = *from;
    *found = (struct found){*from, *from, {0, 0, 0}};
    while (run_read(bytes + found->here.at, bytes + value->len, &found->run) &&
           found->run.len <= HLL_REGISTERS - found->here.first) {
        if (index < found->here.first + found->run.len) {
            *from = older;
            return true;
        }
        older = found->before;
        found->before = found->here;
        found->here.at += found->run.bytes;
        found->here.first += found->run.len;
    }
    return false;
}

/* Joins neighbouring VAL runs of the same value from offset `at` on, where one run can hold both.
 */
static void join_runs(struct buf *value, size_t at)
{
    uint8_t *bytes = (uint8_t *)value->data;
    for (int left = JOIN_WINDOW_RUNS; left > 0; left--) {
        struct run run, next;
        if (!run_read(bytes + at, bytes + value->len, &run)) {
            return;
        }
        size_t after = at + run.bytes;
        if (run.value > 0 && run_read(bytes + after, bytes + value->len, &next) &&
            next.value == run.value && run.len + next.len <= VAL_MAX_LEN) {
            bytes[after] = val_byte(run.value, run.len + next.len);
            memmove(bytes + at, bytes + after, value->len - after);
            value->len--;
        } else {
            at = after;
        }
    }
}

/* Writes the runs that replace `found` when one of its registers gets a value; returns their
 * bytes. */
static size_t split_run(const struct found *found, struct place place, uint8_t out[SPLIT_MAX_BYTES])
{
    unsigned before = place.index - found->here.first;
    size_t len = run_write(out, found->run.value, before);
    len += run_write(out + len, place.value, 1);
    len += run_write(out + len, found->run.value, found->run.len - before - 1);
    assert(len <= SPLIT_MAX_BYTES);
    return len;
}

/* Replaces `old_len` bytes at `at` by others. */
static void replace_bytes(struct buf *value, size_t at, size_t old_len, const uint8_t *bytes,
                          size_t len)
{
    if (len > old_len) {
        buf_reserve(value, len - old_len);
    }
    memmove(value->data + at + len, value->data + at + old_len, value->len - at - old_len);
    memcpy(value->data + at, bytes, len);
    value->len = value->len - old_len + len;
}

static enum hll_result dense_after_all(struct buf *value, struct place place)
{
    if (hll_make_dense(value) == HLL_CORRUPT) {
        return HLL_CORRUPT;
    }
    bool raised = dense_raise((uint8_t *)value->data + HLL_HEAD_BYTES, place);
    return raised ? HLL_CHANGED : HLL_UNCHANGED;
}

/* Raises a register of a sparse value. */
static enum hll_result sparse_raise(struct buf *value, struct cursor *from, struct place place,
                                    size_t max_bytes)
{
    struct found found;
    if (place.value > VAL_MAX_VALUE) {
        return dense_after_all(value, place);
    }
    if (!find_run(value, from, place.index, &found)) {
        return HLL_CORRUPT;
    }
    if (found.run.value >= place.value) {
        return HLL_UNCHANGED;
    }
    uint8_t runs[SPLIT_MAX_BYTES];
    size_t len = split_run(&found, place, runs);
    if (len > found.run.bytes && value->len + len - found.run.bytes > max_bytes) {
        return dense_after_all(value, place);
    }
    replace_bytes(value, found.here.at, found.run.bytes, runs, len);
    join_runs(value, found.before.at);
    return HLL_CHANGED;
}

static enum hll_result raise_register(struct buf *value, struct cursor *from, struct place place,
                                      size_t max_bytes)
{
    if (hll_encoding_of(buf_slice(value)) == HLL_SPARSE) {
        return sparse_raise(value, from, place, max_bytes);
    }
    bool raised = dense_raise((uint8_t *)value->data + HLL_HEAD_BYTES, place);
    return raised ? HLL_CHANGED : HLL_UNCHANGED;
}

/* ---- Making and changing values ---- */

void hll_init(struct buf *value)
{
    uint8_t runs[2];
    buf_clear(value);
    buf_append(value, "HYLL\1\0\0\0\0\0\0\0\0\0\0\0", HLL_HEAD_BYTES);
    size_t len = run_write(runs, 0, HLL_REGISTERS);
    buf_append(value, (const char *)runs, len);
}

enum hll_result hll_add(struct buf *value, struct slice element, size_t sparse_max_bytes)
{
    struct cursor from = from_start;
    return raise_register(value, &from, place_of(element), sparse_max_bytes);
}

enum hll_result hll_raise(struct buf *value, const struct hll_registers *registers,
                          size_t sparse_max_bytes)
{
    enum hll_result result = HLL_UNCHANGED;
    struct cursor from = from_start;
    for (unsigned i = 0; i < HLL_REGISTERS; i++) {
        if (registers->at[i] == 0) {
            continue;
        }
        struct place place = {i, registers->at[i]};
        enum hll_result one = raise_register(value, &from, place, sparse_max_bytes);
        if (one == HLL_CORRUPT) {
            return HLL_CORRUPT;
        }
        result = one == HLL_CHANGED ? one : result;
    }
    return result;
}

static void set_dense_run(void *context, unsigned first, struct run run)
{
    for (unsigned i = 0; run.value > 0 && i < run.len; i++) {
        dense_set(context, first + i, run.value);
    }
}

enum hll_result hll_make_dense(struct buf *value)
{
    if (hll_encoding_of(buf_slice(value)) == HLL_DENSE) {
        return HLL_UNCHANGED;
    }
    if (!hll_check(buf_slice(value))) {
        return HLL_CORRUPT;
    }
    struct buf dense = {0};
    buf_append(&dense, value->data, HLL_HEAD_BYTES);
    dense.data[ENCODING_AT] = HLL_DENSE;
    memset(buf_reserve(&dense, HLL_DENSE_BYTES - HLL_HEAD_BYTES), 0,
           HLL_DENSE_BYTES - HLL_HEAD_BYTES);
    dense.len = HLL_DENSE_BYTES;
    bool whole = for_each_run(buf_slice(value), set_dense_run, dense.data + HLL_HEAD_BYTES);
    assert(whole);
    (void)whole;
    buf_deinit(value);
    *value = dense;
    return HLL_CHANGED;
}

/* ---- Looking at all registers ---- */

static inline uint8_t higher(uint8_t a, uint8_t b)
{
    return a > b ? a : b;
}

/* Merges all registers; false when one is higher than any hash can make it. */
static bool merge_dense(struct hll_registers *registers, const uint8_t *packed)
{
    uint8_t highest = 0;
    for (uint8_t *to = registers->at; to < registers->at + HLL_REGISTERS; to += 4, packed += 3) {
        for (unsigned i = 0; i < 4; i++) {
            uint8_t value = dense_get(packed, i);
            highest = higher(highest, value);
            to[i] = higher(to[i], value);
        }
    }
    return highest <= REGISTER_MAX;
}

static void merge_run(void *context, unsigned first, struct run run)
{
    struct hll_registers *registers = context;
    for (unsigned i = 0; run.value > 0 && i < run.len; i++) {
        registers->at[first + i] = higher(registers->at[first + i], run.value);
    }
}

bool hll_merge(struct hll_registers *registers, struct slice value)
{
    if (hll_encoding_of(value) == HLL_DENSE) {
        return merge_dense(registers, (const uint8_t *)value.ptr + HLL_HEAD_BYTES);
    }
    return for_each_run(value, merge_run, registers);
}

/* How many registers have each value. */
struct histogram {
    uint32_t of[REGISTER_MASK + 1];
};

/* Four counts of each value, so that equal neighbours do not wait for one another. */
static void count_dense(struct histogram *histogram, const uint8_t *packed)
{
    struct histogram lanes[4] = {0};
    for (unsigned group = 0; group < HLL_REGISTERS / 4; group++, packed += 3) {
        for (unsigned i = 0; i < 4; i++) {
            lanes[i].of[dense_get(packed, i)]++;
        }
    }
    for (unsigned v = 0; v <= REGISTER_MASK; v++) {
        histogram->of[v] = lanes[0].of[v] + lanes[1].of[v] + lanes[2].of[v] + lanes[3].of[v];
    }
}

static void count_run(void *context, unsigned first, struct run run)
{
    struct histogram *histogram = context;
    (void)first;
    histogram->of[run.value] += run.len;
}

/* ---- Estimating: sigma and tau are the series of the paper, summed until they stand still ---- */

static double sigma(double x)
{
    if (x == 1.0) {
        return INFINITY;
    }
    double weight = 1, sum = x, last;
    do {
        x *= x;
        last = sum;
        sum += x * weight;
        weight += weight;
    } while (sum != last);
    return sum;
}

static double tau(double x)
{
    if (x == 0.0 || x == 1.0) {
        return 0.0;
    }
    double weight = 1, sum = 1 - x, last;
    do {
        x = sqrt(x);
        last = sum;
        weight *= 0.5;
        sum -= (1 - x) * (1 - x) * weight;
    } while (sum != last);
    return sum / 3;
}

static uint64_t estimate(const struct histogram *histogram)
{
    const double alpha = 0.721347520444481703680; /* 1 / (2 ln 2) */
    const double m = HLL_REGISTERS;
    double z = m * tau((m - histogram->of[REGISTER_MAX]) / m);
    for (unsigned v = HASH_BITS; v >= 1; v--) {
        z = (z + histogram->of[v]) * 0.5;
    }
    z += m * sigma(histogram->of[0] / m);
    return (uint64_t)llround(alpha * m * m / z);
}

bool hll_estimate(struct slice value, uint64_t *cardinality)
{
    struct histogram histogram = {0};
    if (hll_encoding_of(value) == HLL_SPARSE) {
        if (!for_each_run(value, count_run, &histogram)) {
            return false;
        }
    } else {
        count_dense(&histogram, (const uint8_t *)value.ptr + HLL_HEAD_BYTES);
        for (unsigned v = REGISTER_MAX + 1; v <= REGISTER_MASK; v++) {
            if (histogram.of[v] > 0) {
                return false;
            }
        }
    }
    *cardinality = estimate(&histogram);
    return true;
}

uint64_t hll_estimate_registers(const struct hll_registers *registers)
{
    struct histogram histogram = {0};
    for (unsigned i = 0; i < HLL_REGISTERS; i++) {
        assert(registers->at[i] <= REGISTER_MAX);
        histogram.of[registers->at[i]]++;
    }
    return estimate(&histogram);
}

/* ---- For people ---- */

static void describe_run(void *context, unsigned first, struct run run)
{
    struct buf *out = context;
    const char *blank = first > 0 ? " " : "";
    if (run.value > 0) {
        buf_printf(out, "%sv:%u,%u", blank, run.value, run.len);
    } else {
        buf_printf(out, "%s%c:%u", blank, run.bytes == 2 ? 'Z' : 'z', run.len);
    }
}

bool hll_describe(struct slice value, struct buf *out)
{
    assert(hll_encoding_of(value) == HLL_SPARSE);
    return for_each_run(value, describe_run, out);
}
