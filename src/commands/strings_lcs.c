/* LCS: the longest common subsequence of two strings.
 *
 * The classic dynamic programme, with less memory: its lengths are kept for one line only, and for
 * the way back one bit a cell is enough, which of the two neighbours is longer. The line runs along
 * the shorter string. Work is the product of both lengths, so it is done in slices over references
 * to the strings, and nobody waits for all of it.
 *
 * Invariant: cell (i, j) stands for the first i bytes of A and the first j bytes of B; `ahead` of
 * it is set when LCS(i - 1, j) > LCS(i, j - 1), so that the way back goes up in A. State: owned by
 * the call. */
#include "commands/commands.h"

#include "base/buf.h"
#include "base/mem.h"
#include "engine/call.h"
#include "resp/limits.h"
#include "value/string.h"

/* Cells or steps back in one hold: some 100-200 microseconds. */
#define LCS_STEP_CELLS (64 * 1024)
/* What a cell counts for in the limit, as users of Redis know it (we need a thirty-second of it).
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
    size_t x, y;    /* next cell to fill: position in outer and inner */
    uint32_t *line; /* lengths of the line before (from y on) and of this one (before y) */
    uint32_t diagonal, before; /* neighbours of the next cell */
    uint8_t *ahead;            /* bits, x * inner.len + y; NULL when only the length is asked */
    size_t i, j;               /* way back */
    size_t total, left;        /* length; bytes of it not met yet */
    char *text;                /* the subsequence */
    struct lcs_match run;      /* the match being met; len 0: none */
    struct buf matches;        /* of struct lcs_match */
};

static void lcs_destroy(void *state)
{
    struct lcs *l = state;
    blob_release(&l->a_blob);
    blob_release(&l->b_blob);
    mem_free(l->line);
    mem_free(l->ahead);
    mem_free(l->text);
    buf_deinit(&l->matches);
    mem_free(l);
}

/* Fills the cells from the next one up to `end` of the line. Works on copies of the state, since
 * the compiler cannot know that the lengths it stores are not part of it. */
static void lcs_fill_cells(struct lcs *l, size_t end)
{
    const char *inner = l->inner.ptr;
    const char byte = l->outer.ptr[l->x];
    uint32_t *line = l->line;
    uint8_t *ahead = l->ahead;
    const bool inner_is_a = l->inner_is_a;
    uint32_t diagonal = l->diagonal, before = l->before;
    size_t bit = l->x * l->inner.len + l->y;
    for (size_t y = l->y; y < end; y++, bit++) {
        uint32_t above = line[y];
        uint32_t longer = above > before ? above : before;
        if (ahead) {
            bool up = inner_is_a ? before > above : above > before;
            uint8_t others = bit % 8 ? ahead[bit / 8] : 0;
            ahead[bit / 8] = (uint8_t)(others | up << (bit % 8));
        }
        before = byte == inner[y] ? diagonal + 1 : longer;
        diagonal = above;
        line[y] = before;
    }
    l->y = end;
    l->diagonal = diagonal;
    l->before = before;
}

static void lcs_fill(struct lcs *l, size_t cells)
{
    while (cells > 0 && l->x < l->outer.len) {
        size_t end = l->inner.len - l->y < cells ? l->inner.len : l->y + cells;
        cells -= end - l->y;
        lcs_fill_cells(l, end);
        if (l->y == l->inner.len) {
            l->y = l->diagonal = l->before = 0;
            l->x++;
        }
    }
    if (l->x == l->outer.len) {
        l->total = l->left = l->inner.len ? l->line[l->inner.len - 1] : 0;
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
        size_t bit = x * l->inner.len + y;
        if (l->ahead[bit / 8] >> (bit % 8) & 1) {
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
        lcs_fill(l, LCS_STEP_CELLS);
    } else if (l->phase == LCS_TRACE) {
        lcs_trace(l, LCS_STEP_CELLS);
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
    l->line = mem_calloc(l->inner.len + 1, sizeof(*l->line));
    if (!options->len) {
        l->ahead = mem_try_alloc(l->outer.len * l->inner.len / 8 + 1);
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
