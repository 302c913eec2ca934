/* LCS: the longest common subsequence of two strings.
 *
 * The classic dynamic programme, 64 cells at a time: neighbouring lengths differ by at most one, so
 * a row of cells, which runs along the shorter string, is kept as the bits where the length does
 * not grow, and the next row follows by an addition (Hyyro: V' = (V + (V & M)) | (V & ~M), where M
 * marks the bytes that match). The carry into a cell says whether the length grew from the row
 * before. For the way back one bit a cell is enough, which of the two neighbours is longer. Work is
 * the product of both lengths, so it is done in slices over references to the strings, and nobody
 * waits for all of it.
 *
 * Invariant: cell (i, j) stands for the first i bytes of A and the first j bytes of B; where these
 * bytes differ, `ahead` of it is set when LCS(i - 1, j) > LCS(i, j - 1), so that the way back goes
 * up in A; where they match it is not asked. State: owned by the call. */
#include "commands/commands.h"

#include "base/buf.h"
#include "base/mem.h"
#include "engine/call.h"
#include "resp/limits.h"
#include "value/string.h"

/* Words of cells, or steps back, in one hold: some 100-200 microseconds. */
#define LCS_STEP_WORDS (64 * 1024)
#define WORD_CELLS 64
/* What a cell counts for in the limit, as users of Redis know it: never less than we need, since
 * the words of a row with at least one byte are smaller than a count for each of its cells and one.
 */
#define LCS_CELL_BYTES sizeof(uint32_t)

struct lcs_options {
    bool len, idx, with_match_len;
    int64_t min_match_len;
};

struct lcs_match {
    size_t a_first, a_last, b_first, b_last;
    size_t len;
};

enum lcs_phase { LCS_FILL, LCS_TRACE, LCS_DONE };

struct lcs {
    struct lcs_options options;
    struct blob *a_blob, *b_blob;
    struct slice a, b;
    enum lcs_phase phase;
    bool inner_is_a; /* the line runs along A */
    struct slice outer, inner;
    size_t words;   /* of a row */
    size_t x, w;    /* next word to fill: position in outer, word of the row */
    uint64_t carry; /* into the next word */
    uint64_t *row;  /* of the row before (from w on) and of this one: cells no longer than left */
    uint64_t *matches_of; /* for each value of a byte, a row: where inner has it */
    uint64_t *ahead;      /* rows, one a byte of outer; NULL when only the length is asked */
    size_t i, j;          /* way back */
    size_t total, left;   /* length; bytes of it not met yet */
    char *text;           /* the subsequence */
    struct lcs_match run; /* the match being met; len 0: none */
    struct buf matches;   /* of struct lcs_match */
};

static void lcs_destroy(void *state)
{
    struct lcs *l = state;
    blob_release(&l->a_blob);
    blob_release(&l->b_blob);
    mem_free(l->row);
    mem_free(l->matches_of);
    mem_free(l->ahead);
    mem_free(l->text);
    buf_deinit(&l->matches);
    mem_free(l);
}

/* Fills the words from the next one up to `end` of the row. */
static void lcs_fill_words(struct lcs *l, size_t end)
{
    const uint64_t *matching = l->matches_of + (uint8_t)l->outer.ptr[l->x] * l->words;
    uint64_t *ahead = l->ahead ? l->ahead + l->x * l->words : NULL;
    uint64_t carry = l->carry;
    for (size_t w = l->w; w < end; w++) {
        uint64_t row = l->row[w], met = row & matching[w], sum;
        bool over = __builtin_add_overflow(row, met, &sum);
        over |= __builtin_add_overflow(sum, carry, &sum);
        uint64_t grown = row & (matching[w] | (sum ^ row ^ met)); /* from the row before */
        carry = over;
        row = sum | (row & ~matching[w]);
        l->row[w] = row;
        if (ahead) {
            ahead[w] = l->inner_is_a ? grown : ~row;
        }
    }
    l->w = end;
    l->carry = carry;
}

/* The length: how often it grows along the last row. */
static size_t lcs_length(const struct lcs *l)
{
    size_t length = 0;
    for (size_t w = 0; w < l->words; w++) {
        size_t cells = l->inner.len - w * WORD_CELLS;
        uint64_t grown = ~l->row[w] & (cells < WORD_CELLS ? (1ULL << cells) - 1 : UINT64_MAX);
        length += (size_t)__builtin_popcountll(grown);
    }
    return length;
}

static void lcs_fill(struct lcs *l, size_t words)
{
    while (words > 0 && l->x < l->outer.len && l->words > 0) {
        size_t end = l->words - l->w < words ? l->words : l->w + words;
        words -= end - l->w;
        lcs_fill_words(l, end);
        if (l->w == l->words) {
            l->w = l->carry = 0;
            l->x++;
        }
    }
    if (l->x == l->outer.len || l->words == 0) {
        l->total = l->left = lcs_length(l);
        l->phase = l->options.len ? LCS_DONE : LCS_TRACE;
        l->i = l->a.len;
        l->j = l->b.len;
        l->text = l->options.len ? NULL : mem_alloc(l->total);
    }
}

/* The run of matching bytes ends: keeps it if it is long enough. */
static void lcs_close_run(struct lcs *l)
{
    if (l->run.len > 0 && (int64_t)l->run.len >= l->options.min_match_len) {
        buf_append(&l->matches, (const char *)&l->run, sizeof(l->run));
    }
    l->run.len = 0;
}

static void lcs_trace_match(struct lcs *l)
{
    assert(l->left > 0);
    l->text[--l->left] = l->a.ptr[--l->i];
    l->j--;
    if (l->run.len++ == 0) {
        l->run.a_last = l->i;
        l->run.b_last = l->j;
    }
    l->run.a_first = l->i;
    l->run.b_first = l->j;
}

static void lcs_trace(struct lcs *l, size_t steps)
{
    for (; steps > 0 && l->i > 0 && l->j > 0; steps--) {
        if (l->a.ptr[l->i - 1] == l->b.ptr[l->j - 1]) {
            lcs_trace_match(l);
            continue;
        }
        lcs_close_run(l);
        size_t x = l->inner_is_a ? l->j - 1 : l->i - 1;
        size_t y = l->inner_is_a ? l->i - 1 : l->j - 1;
        if (l->ahead[x * l->words + y / WORD_CELLS] >> (y % WORD_CELLS) & 1) {
            l->i--;
        } else {
            l->j--;
        }
    }
    if (l->i == 0 || l->j == 0) {
        lcs_close_run(l);
        assert(l->left == 0);
        l->phase = LCS_DONE;
    }
}

static void lcs_reply_range(struct reply *r, size_t first, size_t last)
{
    reply_array(r, 2);
    reply_i64(r, (int64_t)first);
    reply_i64(r, (int64_t)last);
}

static void lcs_reply_matches(struct reply *r, const struct lcs *l)
{
    const struct lcs_match *match = (const void *)l->matches.data;
    size_t count = l->matches.len / sizeof(*match);
    reply_map(r, 2);
    reply_bulk_cstr(r, "matches");
    reply_array(r, count);
    for (size_t i = 0; i < count; i++, match++) {
        reply_array(r, l->options.with_match_len ? 3 : 2);
        lcs_reply_range(r, match->a_first, match->a_last);
        lcs_reply_range(r, match->b_first, match->b_last);
        if (l->options.with_match_len) {
            reply_i64(r, (int64_t)match->len);
        }
    }
    reply_bulk_cstr(r, "len");
    reply_i64(r, (int64_t)l->total);
}

static bool lcs_step(struct call *c, void *state)
{
    struct lcs *l = state;
    if (l->phase == LCS_FILL) {
        lcs_fill(l, LCS_STEP_WORDS);
    } else if (l->phase == LCS_TRACE) {
        lcs_trace(l, LCS_STEP_WORDS);
    }
    if (l->phase != LCS_DONE) {
        return false;
    }
    if (l->options.idx) {
        lcs_reply_matches(c->reply, l);
    } else if (l->options.len) {
        reply_i64(c->reply, (int64_t)l->total);
    } else {
        reply_bulk(c->reply, slice_of(l->text, l->total));
    }
    return true;
}

/* ---- The command ---- */

static bool lcs_parse_options(struct call *c, struct lcs_options *o)
{
    *o = (struct lcs_options){0};
    for (int i = 3; i < c->argc; i++) {
        if (call_arg_is(c, i, "idx")) {
            o->idx = true;
        } else if (call_arg_is(c, i, "len")) {
            o->len = true;
        } else if (call_arg_is(c, i, "withmatchlen")) {
            o->with_match_len = true;
        } else if (call_arg_is(c, i, "minmatchlen") && i + 1 < c->argc) {
            if (!call_arg_i64(c, ++i, &o->min_match_len)) {
                return false;
            }
        } else {
            reply_syntax_error(c->reply);
            return false;
        }
    }
    if (o->idx && o->len) {
        reply_error(c->reply, "ERR If you want both the length and indexes, please just use IDX.");
        return false;
    }
    return true;
}

/* Refuses what would be too much work, by the memory that it takes elsewhere; replies the error. */
static bool lcs_size_allowed(struct call *c, size_t a_len, size_t b_len)
{
    uint64_t cells, bytes;
    if (a_len >= UINT32_MAX - 1 || b_len >= UINT32_MAX - 1) {
        reply_error(c->reply, "ERR String too long for LCS");
        return false;
    }
    if (__builtin_mul_overflow((uint64_t)a_len + 1, (uint64_t)b_len + 1, &cells) ||
        __builtin_mul_overflow(cells, (uint64_t)LCS_CELL_BYTES, &bytes) ||
        bytes > (uint64_t)resp_max_bulk_bytes) {
        reply_error(c->reply, "ERR Insufficient memory, transient memory for LCS exceeds "
                              "proto-max-bulk-len");
        return false;
    }
    return true;
}

/* A reference to the string's bytes that outlives the hold. */
static struct blob *lcs_hold(const struct entry *e)
{
    char scratch[STRING_VIEW_BYTES];
    if (!e) {
        return blob_create_copy(SLICE(""));
    }
    struct blob *blob = string_blob(e);
    return blob ? blob_acquire(blob) : blob_create_copy(string_view(e, scratch));
}

/* The row before the first, in which no length grows, and what follows from inner alone. */
static void lcs_start_rows(struct lcs *l)
{
    l->row = mem_alloc(l->words * sizeof(*l->row) + 1);
    memset(l->row, 0xff, l->words * sizeof(*l->row));
    l->matches_of = mem_calloc((UINT8_MAX + 1) * l->words + 1, sizeof(*l->matches_of));
    for (size_t y = 0; y < l->inner.len; y++) {
        size_t at = (uint8_t)l->inner.ptr[y] * l->words + y / WORD_CELLS;
        l->matches_of[at] |= 1ULL << (y % WORD_CELLS);
    }
}

static struct lcs *lcs_create(const struct lcs_options *options, const struct entry *a,
                              const struct entry *b)
{
    struct lcs *l = mem_calloc(1, sizeof(*l));
    l->options = *options;
    l->a_blob = lcs_hold(a);
    l->b_blob = lcs_hold(b);
    l->a = blob_slice(l->a_blob);
    l->b = blob_slice(l->b_blob);
    l->inner_is_a = l->a.len < l->b.len;
    l->inner = l->inner_is_a ? l->a : l->b;
    l->outer = l->inner_is_a ? l->b : l->a;
    l->words = (l->inner.len + WORD_CELLS - 1) / WORD_CELLS;
    lcs_start_rows(l);
    if (!options->len) {
        l->ahead = mem_try_alloc(l->outer.len * l->words * sizeof(*l->ahead) + 1);
    }
    return l;
}

READ_COMMAND(lcs_command)
{
    struct lcs_options options;
    struct entry *a = call_read(c, 0);
    struct entry *b = call_read(c, 1);
    if ((a && entry_type(a) != VALUE_STRING) || (b && entry_type(b) != VALUE_STRING)) {
        reply_error(c->reply, "ERR The specified keys must contain string values");
        return;
    }
    if (!lcs_parse_options(c, &options) ||
        !lcs_size_allowed(c, a ? string_len(a) : 0, b ? string_len(b) : 0)) {
        return;
    }
    struct lcs *l = lcs_create(&options, a, b);
    if (!options.len && !l->ahead) {
        reply_error(c->reply,
                    "ERR Insufficient memory, failed allocating transient memory for LCS");
        lcs_destroy(l);
        return;
    }
    /* Short strings are done at once: filled, traced. */
    if (lcs_step(c, l) || (l->phase == LCS_TRACE && lcs_step(c, l))) {
        lcs_destroy(l);
        return;
    }
    c->continuation = (struct continuation){lcs_step, lcs_destroy, l, ACCESS_SHARED};
}

const struct command_row string_lcs_commands[] = {
    {.name = "lcs",
     .run = lcs_command,
     .arity = -3,
     .flags = CMD_READONLY | CMD_SLOW,
     .categories = CATEGORY_STRING,
     .keys = "i1/r1,1,0/RO+ACCESS",
     .group = "string",
     .since = "7.0.0",
     .summary = "Finds the longest common subsequence of two strings.",
     .complexity = "O(N*M), N and M being the lengths",
     .args = "key1 key2 [LEN] [IDX] [MINMATCHLEN min-match-len] [WITHMATCHLEN]"},
    {.name = NULL},
};
