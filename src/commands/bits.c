/* Bitmaps: strings seen as runs of bits. SETBIT, GETBIT, BITCOUNT, BITPOS and BITOP; BITFIELD is in
 * bits_field.c. Counting and combining of large strings is not done in slices: it runs at the
 * memory's speed, and a reference held between slices would make every writer of the bitmap copy
 * all of it. */
#include "commands/bits_priv.h"
#include "commands/commands.h"
#include "commands/reads_priv.h"
#include "commands/string_bytes.h"

#include "base/mem.h"
#include "base/num.h"
#include "ds/bits.h"
#include "engine/propagate.h"
#include "keyspace/reclaim.h"
#include "resp/limits.h"
#include "value/string.h"

/* Longest shift of BITOP LSHIFT and RSHIFT, in bits: KeyDB's. */
#define SHIFT_MAX_BITS ((int64_t)1 << 30)

bool bits_parse_offset(struct call *c, int arg, unsigned width, uint64_t *offset)
{
    struct slice text = c->argv[arg];
    bool in_fields = width > 0 && text.len > 0 && text.ptr[0] == '#';
    int64_t number;
    if (in_fields) {
        text = slice_of(text.ptr + 1, text.len - 1);
    }
    if (!num_parse_i64(text, &number) ||
        (in_fields && __builtin_mul_overflow(number, (int64_t)width, &number)) || number < 0 ||
        (!c->session->internal && number / 8 >= resp_max_bulk_bytes)) {
        reply_error(c->reply, "ERR bit offset is not an integer or out of range");
        return false;
    }
    *offset = (uint64_t)number;
    return true;
}

size_t bits_len_for(const struct keyref *ref, uint64_t last_bit)
{
    size_t len = ref->entry ? string_len(ref->entry) : 0;
    return last_bit / 8 >= len ? last_bit / 8 + 1 : len;
}

/* ---- One bit ---- */

WRITE_COMMAND(setbit_command)
{
    uint64_t offset;
    int64_t bit;
    struct keyref ref;
    if (!bits_parse_offset(c, 2, 0, &offset)) {
        return;
    }
    if (!num_parse_i64(c->argv[3], &bit) || (bit != 0 && bit != 1)) {
        reply_error(c->reply, "ERR bit is not an integer or out of range");
        return;
    }
    if (!call_open_typed(c, 0, VALUE_STRING, &ref)) {
        return;
    }
    size_t len = bits_len_for(&ref, offset);
    bool grows = !ref.entry || len > string_len(ref.entry);
    uint8_t *bytes = string_bytes_open(c, &ref, len);
    if (!bytes) {
        return;
    }
    int64_t before = (int64_t)bits_get_field(bytes, len, offset, 1);
    if (grows || before != bit) {
        bits_set_field(bytes, offset, 1, (uint64_t)bit);
        call_changed(c, &ref, EVENT_STRING, "setbit");
    }
    reply_i64(c->reply, before);
}

READ_COMMAND(getbit_command)
{
    uint64_t offset;
    struct entry *e;
    char scratch[STRING_VIEW_BYTES];
    if (!bits_parse_offset(c, 2, 0, &offset) || !call_read_typed(c, 0, VALUE_STRING, &e)) {
        return;
    }
    struct slice all = e ? string_view(e, scratch) : SLICE("");
    reply_i64(c->reply, (int64_t)bits_get_field((const uint8_t *)all.ptr, all.len, offset, 1));
}

/* ---- Ranges ---- */

/* A range as BITCOUNT and BITPOS take it. */
struct range {
    int64_t start, end;
    bool given, end_given;
    bool in_bits;
};

/* Reads [start [end [BYTE|BIT]]] from argument `first` on, the unit before the end, as Redis does.
 * False with an error replied. */
static bool parse_range(struct call *c, int first, struct range *range)
{
    *range = (struct range){.start = 0, .end = -1};
    if (c->argc > first + 3) {
        reply_syntax_error(c->reply);
        return false;
    }
    range->given = c->argc > first;
    range->end_given = c->argc > first + 1;
    return !range->given || call_arg_i64(c, first, &range->start);
}

static bool parse_unit(struct call *c, int arg, struct range *range)
{
    if (arg >= c->argc || call_arg_is(c, arg, "byte")) {
        return true;
    }
    range->in_bits = call_arg_is(c, arg, "bit");
    if (!range->in_bits) {
        reply_syntax_error(c->reply);
    }
    return range->in_bits;
}

/* The bits first..last of a string of `len` bytes that the range names; false when it is empty. */
static bool resolve_range(const struct range *range, size_t len, uint64_t *first, uint64_t *last)
{
    int64_t total = (int64_t)(range->in_bits ? len * 8 : len);
    int64_t start = range->start < 0 ? range->start + total : range->start;
    int64_t end = range->end < 0 ? range->end + total : range->end;
    start = start < 0 ? 0 : start;
    end = end < 0 ? 0 : end;
    end = end >= total ? total - 1 : end;
    if (start > end) {
        return false;
    }
    *first = (uint64_t)start * (range->in_bits ? 1 : 8);
    *last = (uint64_t)end * (range->in_bits ? 1 : 8) + (range->in_bits ? 0 : 7);
    return true;
}

READ_COMMAND(bitcount_command)
{
    struct range range;
    struct entry *e;
    char scratch[STRING_VIEW_BYTES];
    if (c->argc == 3) {
        reply_syntax_error(c->reply);
        return;
    }
    if (!parse_range(c, 2, &range) || (range.end_given && !call_arg_i64(c, 3, &range.end)) ||
        !parse_unit(c, 4, &range) || !call_read_typed(c, 0, VALUE_STRING, &e)) {
        return;
    }
    struct slice all = e ? string_view(e, scratch) : SLICE("");
    uint64_t first, last, count = 0;
    bool reversed = range.start < 0 && range.end < 0 && range.start > range.end;
    if (!reversed && resolve_range(&range, all.len, &first, &last)) {
        count = bits_count_range((const uint8_t *)all.ptr, first, last);
    }
    reply_i64(c->reply, (int64_t)count);
}

/* Where the bit is in a string that exists. Without an end given the string is followed by zeros
 * without end. */
static int64_t find_bit(struct slice all, const struct range *range, bool bit)
{
    uint64_t first, last;
    if (!resolve_range(range, all.len, &first, &last)) {
        return -1;
    }
    int64_t position = bits_find((const uint8_t *)all.ptr, first, last, bit);
    if (position < 0 && !bit && !range->end_given) {
        return (int64_t)all.len * 8;
    }
    return position;
}

READ_COMMAND(bitpos_command)
{
    int64_t bit;
    struct range range;
    struct entry *e;
    char scratch[STRING_VIEW_BYTES];
    if (!call_arg_i64(c, 2, &bit)) {
        return;
    }
    if (bit != 0 && bit != 1) {
        reply_error(c->reply, "ERR The bit argument must be 1 or 0.");
        return;
    }
    if (!parse_range(c, 3, &range) || !parse_unit(c, 5, &range) ||
        (range.end_given && !call_arg_i64(c, 4, &range.end)) ||
        !call_read_typed(c, 0, VALUE_STRING, &e)) {
        return;
    }
    if (!e) {
        reply_i64(c->reply, bit ? -1 : 0);
        return;
    }
    reply_i64(c->reply, find_bit(string_view(e, scratch), &range, bit == 1));
}

/* ---- BITOP ---- */

struct bitop_word {
    const char *word;
    enum bits_operation operation;
    bool shifts, left;
};

static const struct bitop_word bitop_words[] = {
    {"and", BITS_AND, false, false},  {"or", BITS_OR, false, false},
    {"xor", BITS_XOR, false, false},  {"not", BITS_NOT, false, false},
    {"lshift", BITS_NOT, true, true}, {"rshift", BITS_NOT, true, false},
};

static const struct bitop_word *bitop_find(struct slice word)
{
    for (size_t i = 0; i < sizeof(bitop_words) / sizeof(bitop_words[0]); i++) {
        if (slice_equal_nocase(word, bitop_words[i].word)) {
            return &bitop_words[i];
        }
    }
    return NULL;
}

/* The sources' bytes: views into entries, which stay where they are until the destination is
 * changed. */
struct bitop_sources {
    struct slice *bytes;
    char (*scratch)[STRING_VIEW_BYTES];
    int count;
    size_t longest;
};

static void bitop_sources_deinit(struct bitop_sources *s)
{
    mem_free(s->bytes);
    mem_free(s->scratch);
}

/* Opens keys 1..count; false with WRONGTYPE replied, and nothing to free. */
static bool bitop_sources_init(struct call *c, struct bitop_sources *s, int count)
    REQUIRES(keyspace_lock)
{
    *s = (struct bitop_sources){.count = count};
    s->bytes = mem_alloc((size_t)count * sizeof(*s->bytes));
    s->scratch = mem_alloc((size_t)count * sizeof(*s->scratch));
    for (int k = 0; k < count; k++) {
        struct keyref ref;
        bool right = call_open_typed(c, k + 1, VALUE_STRING, &ref);
        reads_count(&ref);
        if (!right) {
            bitop_sources_deinit(s);
            return false;
        }
        s->bytes[k] = ref.entry ? string_view(ref.entry, s->scratch[k]) : SLICE("");
        s->longest = s->bytes[k].len > s->longest ? s->bytes[k].len : s->longest;
    }
    return true;
}

/* Stores the result under key 0, or deletes that when there is none, and replies its length. */
static void bitop_store(struct call *c, struct blob *result_take) REQUIRES(keyspace_lock)
{
    struct keyref ref;
    size_t len = result_take ? result_take->len : 0;
    call_open(c, 0, &ref);
    if (result_take) {
        string_bytes_put(&ref, result_take);
        call_changed(c, &ref, EVENT_STRING, "set");
    } else if (db_delete(&ref, reclaim_lazy_server_del())) {
        call_changed(c, &ref, EVENT_GENERIC, "del");
    }
    propagate_stored(c, 0);
    reply_i64(c->reply, (int64_t)len);
}

/* Room for a result of `len` bytes; NULL with an error replied. */
static struct blob *bitop_result(struct call *c, size_t len)
{
    if (!c->session->internal && len > (uint64_t)resp_max_bulk_bytes) {
        reply_error(c->reply, "ERR string exceeds maximum allowed size (proto-max-bulk-len)");
        return NULL;
    }
    struct blob *result = blob_try_create(len);
    if (!result) {
        string_bytes_reply_no_memory(c);
        return NULL;
    }
    result->len = len;
    return result;
}

static void bitop_combine(struct call *c, enum bits_operation operation) REQUIRES(keyspace_lock)
{
    struct bitop_sources sources;
    struct blob *result = NULL;
    if (!bitop_sources_init(c, &sources, c->argc - 3)) {
        return;
    }
    size_t len = sources.longest;
    if (len > 0) {
        result = bitop_result(c, len);
    }
    if (result) {
        bits_combine(operation, (uint8_t *)result->bytes, len, sources.bytes, sources.count);
    }
    if (result || len == 0) {
        bitop_store(c, result);
    }
    bitop_sources_deinit(&sources);
}

static void bitop_shift_by(struct call *c, int64_t left_by) REQUIRES(keyspace_lock)
{
    struct bitop_sources source;
    if (!bitop_sources_init(c, &source, 1)) {
        return;
    }
    struct slice in = source.bytes[0];
    uint64_t by = (uint64_t)(left_by < 0 ? -left_by : left_by);
    size_t len = left_by < 0  ? bits_shifted_right_len(in.len, by)
                 : in.len > 0 ? bits_shifted_left_len(in.len, by)
                              : 0;
    struct blob *result = len > 0 ? bitop_result(c, len) : NULL;
    if (result && left_by < 0) {
        bits_shift_right((uint8_t *)result->bytes, in, by);
    } else if (result) {
        bits_shift_left((uint8_t *)result->bytes, in, by);
    }
    if (result || len == 0) {
        bitop_store(c, result);
    }
    bitop_sources_deinit(&source);
}

/* BITOP LSHIFT|RSHIFT destkey key bits: a negative count shifts the other way. */
static void bitop_shift(struct call *c, bool left) REQUIRES(keyspace_lock)
{
    int64_t by;
    if (c->argc != 5) {
        reply_error(c->reply, "ERR BITOP SHIFT must be called with a single source key and an "
                              "integer shift.");
        return;
    }
    if (!call_arg_i64_error(c, 4, &by, "ERR BITOP SHIFT's last parameter must be an integer")) {
        return;
    }
    if (by > SHIFT_MAX_BITS || by < -SHIFT_MAX_BITS) {
        reply_error(c->reply, "ERR BITOP SHIFT value is too large.");
        return;
    }
    bitop_shift_by(c, left ? by : -by);
}

WRITE_COMMAND(bitop_command)
{
    const struct bitop_word *word = bitop_find(c->argv[1]);
    if (!word) {
        reply_syntax_error(c->reply);
    } else if (word->shifts) {
        bitop_shift(c, word->left);
    } else if (word->operation == BITS_NOT && c->argc != 4) {
        reply_error(c->reply, "ERR BITOP NOT must be called with a single source key.");
    } else {
        bitop_combine(c, word->operation);
    }
}

const struct command_row bit_commands[] = {
    {.name = "bitcount",
     .run = bitcount_command,
     .arity = -2,
     .flags = CMD_READONLY | CMD_SLOW,
     .categories = CATEGORY_BITMAP,
     .keys = "i1/r0,1,0/RO+ACCESS",
     .group = "bitmap",
     .since = "2.6.0",
     .summary = "Counts the bits that are set in a string or a part of it.",
     .complexity = "O(N), N being the bytes looked at",
     .args = "key [start end [BYTE|BIT]]",
     .history = "7.0.0:Takes BYTE and BIT."},
    {.name = "bitop",
     .run = bitop_command,
     .arity = -4,
     .flags = CMD_WRITE | CMD_DENYOOM | CMD_SLOW,
     .categories = CATEGORY_BITMAP,
     .keys = "i2/r0,1,0/OW+UPDATE; i3/r-1,1,0/RO+ACCESS",
     .group = "bitmap",
     .since = "2.6.0",
     .summary = "Combines strings bit by bit and stores the result; KeyDB's LSHIFT and RSHIFT take "
                "one key and a number of bits to shift it by.",
     .complexity = "O(N), N being the bytes of all strings",
     .args = "<AND|OR|XOR|NOT> destkey key [key ...]",
     .history = "6.3.0:KeyDB's LSHIFT and RSHIFT."},
    {.name = "bitpos",
     .run = bitpos_command,
     .arity = -3,
     .flags = CMD_READONLY | CMD_SLOW,
     .categories = CATEGORY_BITMAP,
     .keys = "i1/r0,1,0/RO+ACCESS",
     .group = "bitmap",
     .since = "2.8.7",
     .summary = "Finds the first bit of a value in a string or a part of it.",
     .complexity = "O(N), N being the bytes looked at",
     .args = "key bit [start [end [BYTE|BIT]]]",
     .history = "7.0.0:Takes BYTE and BIT."},
    {.name = "getbit",
     .run = getbit_command,
     .arity = 3,
     .flags = CMD_READONLY | CMD_FAST,
     .categories = CATEGORY_BITMAP,
     .keys = "i1/r0,1,0/RO+ACCESS",
     .group = "bitmap",
     .since = "2.2.0",
     .summary = "Returns the bit at an offset of a string; 0 beyond its end.",
     .complexity = "O(1)",
     .args = "key offset"},
    {.name = "setbit",
     .run = setbit_command,
     .arity = 4,
     .flags = CMD_WRITE | CMD_DENYOOM,
     .categories = CATEGORY_BITMAP,
     .keys = "i1/r0,1,0/RW+ACCESS+UPDATE",
     .group = "bitmap",
     .since = "2.2.0",
     .summary = "Sets or clears the bit at an offset of a string, growing it with zeros, and "
                "returns the bit before.",
     .complexity = "O(1), amortised over growth",
     .args = "key offset value"},
    {.name = NULL},
};
