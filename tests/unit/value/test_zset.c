/* Sorted sets in both encodings against a naive model: value/zset.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/rand.h"
#include "value/zset.h"
#include "long.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MEMBERS 160
#define KEY SLICE("key")

/* Member i is there when present[i]. */
struct model {
    bool present[MEMBERS];
    double score[MEMBERS];
};

static const double odd_scores[] = {-INFINITY,
                                    -1e308,
                                    -1.5,
                                    -5e-324,
                                    0.0,
                                    5e-324,
                                    0.1,
                                    1e308,
                                    INFINITY,
                                    9007199254740993.0,
                                    4611686018427387904.0,
                                    1e19};

static void set_limits(const char *entries, const char *value)
{
    const char *texts[] = {entries, value}, *error;
    for (int i = 0; i < 2; i++) {
        struct slice word = slice_cstr(texts[i]);
        assert_true(option_store(&zset_options[i], &word, 1, &error));
    }
}

static int setup(void **state)
{
    (void)state;
    hash_set_secret(1);
    return 0;
}

/* Integers, short text, and some members too long for a listpack. */
static struct slice member_of(int i, char *text)
{
    int len = i % 3 == 0   ? snprintf(text, 200, "%d", i - 40)
              : i % 3 == 1 ? snprintf(text, 200, "m%d", i)
                           : snprintf(text, 200, "9%0*d", i > 150 ? 80 : 3, i);
    return slice_of(text, (size_t)len);
}

static double random_score(void)
{
    return rand_below(3) ? (double)rand_below(12) - 4
                         : odd_scores[rand_below(sizeof(odd_scores) / sizeof(odd_scores[0]))];
}

static bool is_before(const struct model *m, int a, int b)
{
    char x[200], y[200];
    if (m->score[a] != m->score[b]) {
        return m->score[a] < m->score[b];
    }
    return slice_compare(member_of(a, x), member_of(b, y)) < 0;
}

/* The members in order; returns how many. */
static int sorted(const struct model *m, int *out)
{
    int count = 0;
    for (int i = 0; i < MEMBERS; i++) {
        int at = count;
        if (!m->present[i]) {
            continue;
        }
        for (; at > 0 && is_before(m, i, out[at - 1]); at--) {
            out[at] = out[at - 1];
        }
        out[at] = i;
        count++;
    }
    return count;
}

static void compare_walks(const struct entry *e, const struct model *m, const int *all, int count)
{
    char text[ZSET_TEXT_BYTES], want[200];
    for (int down = 0; down < 2; down++) {
        uint64_t start = count ? rand_below((uint64_t)count) : 0;
        struct zset_cursor c = zset_cursor_at(e, start, down);
        for (int i = (int)start; i >= 0 && i < count; i += down ? -1 : 1) {
            assert_true(zset_cursor_valid(&c));
            assert_true(slice_equal(zset_cursor_member(&c, text), member_of(all[i], want)));
            assert_true(zset_cursor_score(&c) == m->score[all[i]]);
            zset_cursor_step(&c);
        }
        assert_false(zset_cursor_valid(&c));
    }
}

static void compare_ranges(const struct entry *e, const struct model *m, const int *all, int count)
{
    struct zset_score_range r = {random_score(), random_score(), rand_below(2), rand_below(2)};
    struct zset_span s = zset_span_of_scores(e, &r);
    uint64_t inside = 0;
    for (int i = 0; i < count; i++) {
        double score = m->score[all[i]];
        bool in = (r.min_excluded ? score > r.min : score >= r.min) &&
                  (r.max_excluded ? score < r.max : score <= r.max);
        assert_int_equal(in, (uint64_t)i >= s.start && (uint64_t)i < s.stop);
        inside += in;
    }
    assert_int_equal(inside, s.stop - s.start);
}

static void visit_count(struct slice member, double score, void *context)
{
    (void)member;
    (void)score;
    (*(uint64_t *)context)++;
}

static void compare(const struct entry *e, const struct model *m)
{
    int all[MEMBERS];
    int count = sorted(m, all);
    char text[200];
    uint64_t rank, visited = 0, cursor = 0;
    double score;
    zset_check(e);
    assert_int_equal(zset_count(e), count);
    for (int i = 0; i < count; i++) {
        assert_true(zset_rank(e, member_of(all[i], text), &rank, &score));
        assert_int_equal(rank, i);
        assert_true(score == m->score[all[i]]);
    }
    for (int i = 0; i < MEMBERS; i++) {
        assert_int_equal(zset_score(e, member_of(i, text), &score), m->present[i]);
    }
    compare_walks(e, m, all, count);
    compare_ranges(e, m, all, count);
    do {
        cursor = zset_scan(e, cursor, 10, visit_count, &visited);
    } while (cursor);
    assert_int_equal(visited, count);
}

static void check_add(struct entry *e, struct model *m, int i)
{
    static const unsigned choices[] = {0,
                                       0,
                                       0,
                                       ZSET_ADD_NX,
                                       ZSET_ADD_XX,
                                       ZSET_ADD_GT,
                                       ZSET_ADD_LT,
                                       ZSET_ADD_INCR,
                                       ZSET_ADD_INCR | ZSET_ADD_GT};
    char text[200];
    unsigned flags = choices[rand_below(sizeof(choices) / sizeof(choices[0]))];
    double given = random_score(), score = given, old = m->score[i];
    double wanted = flags & ZSET_ADD_INCR && m->present[i] ? old + given : given;
    enum zset_added got = zset_add(e, member_of(i, text), flags, &score);
    if (!m->present[i]) {
        assert_int_equal(got, flags & ZSET_ADD_XX ? ZSET_SKIPPED : ZSET_ADDED);
    } else if (flags & ZSET_ADD_NX) {
        assert_int_equal(got, ZSET_SKIPPED);
    } else if (isnan(wanted)) {
        assert_int_equal(got, ZSET_NAN);
    } else if ((flags & ZSET_ADD_GT && wanted <= old) || (flags & ZSET_ADD_LT && wanted >= old)) {
        assert_int_equal(got, ZSET_SKIPPED);
    } else {
        assert_int_equal(got, wanted == old ? ZSET_UNCHANGED : ZSET_UPDATED);
    }
    if (got == ZSET_ADDED || got == ZSET_UPDATED) {
        assert_true(score == wanted);
        m->present[i] = true;
        m->score[i] = wanted;
    }
}

static void check_remove_ranks(struct entry *e, struct model *m)
{
    int all[MEMBERS];
    int count = sorted(m, all);
    uint64_t start = rand_below((uint64_t)count + 1);
    uint64_t stop = start + rand_below(((uint64_t)count - start) / 3 + 1);
    zset_remove_ranks(e, start, stop);
    for (uint64_t i = start; i < stop; i++) {
        m->present[all[i]] = false;
    }
}

static void random_steps(int steps, int members)
{
    struct model m = {0};
    char text[200];
    struct entry *e = zset_create(KEY, 1);
    for (int s = 0; s < UNIT_LONG(steps); s++) {
        int i = (int)rand_below((uint64_t)members);
        uint64_t choice = rand_below(20);
        if (choice < 13) {
            check_add(e, &m, i);
        } else if (choice < 19) {
            assert_int_equal(zset_remove(e, member_of(i, text)), m.present[i]);
            m.present[i] = false;
        } else {
            check_remove_ranks(e, &m);
        }
        if (s % 20 == 0) {
            compare(e, &m);
        }
    }
    compare(e, &m);
    struct entry *copy = entry_copy(e, SLICE("other"), ENTRY_NO_EXPIRY);
    compare(copy, &m);
    assert_int_equal(entry_encoding(copy), entry_encoding(e));
    entry_destroy(&e);
    compare(copy, &m);
    entry_destroy(&copy);
}

static void test_small(void **state)
{
    (void)state;
    set_limits("128", "64");
    random_steps(2000, 100);
}

static void test_large(void **state)
{
    (void)state;
    set_limits("0", "64");
    random_steps(3000, MEMBERS);
}

static void test_tiny_limits(void **state)
{
    (void)state;
    set_limits("2", "2");
    for (int i = 0; i < 30; i++) {
        random_steps(60, 12);
    }
}

static enum encoding encoding_after(int members, size_t last_len)
{
    static char long_member[100];
    char text[200];
    struct entry *e = zset_create(KEY, 1);
    double score = 1;
    for (int i = 0; i < members - 1; i++) {
        zset_add(e, slice_of(text, (size_t)snprintf(text, sizeof(text), "%d", i)), 0, &score);
    }
    zset_add(e, slice_of(long_member, last_len), 0, &score);
    enum encoding result = entry_encoding(e);
    zset_check(e);
    entry_destroy(&e);
    return result;
}

static void test_limits_decide_the_encoding(void **state)
{
    (void)state;
    set_limits("128", "64");
    assert_int_equal(encoding_after(128, 64), ENCODING_LISTPACK);
    assert_int_equal(encoding_after(129, 64), ENCODING_SKIPLIST);
    assert_int_equal(encoding_after(128, 65), ENCODING_SKIPLIST);
    set_limits("9223372036854775807", "9223372036854775807");
    assert_int_equal(encoding_after(300, 64), ENCODING_LISTPACK);
#if !defined(                                                                                      \
    __SANITIZE_THREAD__) /* it takes ten times as long there, and one thread races with nobody */
    assert_int_equal(encoding_after(ZSET_LISTPACK_ENTRIES_CAP + 1, 64), ENCODING_SKIPLIST);
#endif
}

static void test_members_decide_the_digest(void **state)
{
    uint8_t sums[3][20];
    (void)state;
    for (int i = 0; i < 3; i++) {
        char text[200];
        struct zset_draft d;
        set_limits(i == 0 ? "128" : "0", "64");
        zset_draft_init(&d, i == 1);
        for (int k = 0; k < 50; k++) {
            zset_draft_add(&d, member_of(k, text),
                           k == 0 ? -0.0 : (k * 7) % 11 + (i == 2 && k == 49));
        }
        zset_draft_sort(&d);
        struct entry *e = zset_draft_finish(&d, KEY, ENTRY_NO_EXPIRY);
        zset_check(e);
        assert_int_equal(entry_encoding(e), i == 0 ? ENCODING_LISTPACK : ENCODING_SKIPLIST);
        assert_true(entry_memory_bytes(e, 5) > 50 * 4);
        zset_ops.digest(e, sums[i]);
        entry_destroy(&e);
    }
    assert_memory_equal(sums[0], sums[1], 20);
    assert_memory_not_equal(sums[0], sums[2], 20);
}

/* Members that begin alike, are each other's beginnings, and hold zeros; scores with many ties. */
static struct slice draft_member(int i, char *text)
{
    static const char *const beginnings[] = {"member:", "member", "mem", "member:00000000"};
    int len = snprintf(text, 40, "%s%0*d", beginnings[i % 4], i % 4 == 1 ? 5 : 1, i / 4);
    if (i % 4 == 2) {
        memset(text + len, 0, 3);
        len += i / 4 % 3 + 1;
    }
    return slice_of(text, (size_t)len);
}

static void fill_draft(struct zset_draft *d, int count, bool indexed, int scores)
{
    char text[48];
    zset_draft_init(d, indexed);
    for (int i = 0; i < count; i++) {
        double score = scores == 0 ? i : (double)rand_below((uint64_t)scores) - 2;
        if (indexed && i % 2) {
            assert_null(zset_draft_find_or_add(d, draft_member(i, text), score));
            assert_non_null(zset_draft_find_or_add(d, draft_member(i, text), 77));
        } else {
            zset_draft_add(d, draft_member(i, text), score);
        }
    }
}

/* Steps of every size give the same set, which has all members, in order; given up in between,
 * nothing leaks. */
static void test_drafts_by_steps(void **state)
{
    static const int counts[] = {1, 2, 15, 16, 17, 31, 32, 33, 48, 49, 1000};
    static const uint64_t steps[] = {1, 3, 16, 100, UINT64_MAX};
    (void)state;
    set_limits("20", "64");
    for (int round = 0; round < (int)(sizeof(counts) / sizeof(counts[0])) * 5 * 4; round++) {
        int count = counts[round / 20], scores = (int[]){0, 1, 5, 100000}[round % 4];
        uint64_t step = steps[round / 4 % 5];
        struct zset_draft d;
        fill_draft(&d, count, round % 2, scores);
        while (!zset_draft_sort_some(&d, step)) {
        }
        while (!zset_draft_build_some(&d, step)) {
        }
        assert_int_equal(d.count, count);
        struct entry *e = zset_draft_finish(&d, KEY, ENTRY_NO_EXPIRY);
        zset_check(e);
        assert_int_equal(zset_count(e), count);
        assert_int_equal(entry_encoding(e), count <= 20 ? ENCODING_LISTPACK : ENCODING_SKIPLIST);
        for (int i = 0; i < count; i++) {
            char text[48];
            double score;
            assert_true(zset_score(e, draft_member(i, text), &score));
        }
        entry_destroy(&e);
        fill_draft(&d, count, round % 2, scores);
        for (int k = 0; k < round * 7; k++) {
            if (zset_draft_sort_some(&d, step) && zset_draft_build_some(&d, step)) {
                break;
            }
        }
        zset_draft_deinit(&d);
    }
}

/* Where the arrays to sort in are not to be had, it sorts without. */
static void test_drafts_without_memory(void **state)
{
    struct zset_draft d;
    (void)state;
    set_limits("20", "64");
    fill_draft(&d, 1000, true, 50);
    mem_fail_above(1000);
    zset_draft_sort(&d);
    mem_fail_above(SIZE_MAX);
    struct entry *e = zset_draft_finish(&d, KEY, ENTRY_NO_EXPIRY);
    zset_check(e);
    assert_int_equal(zset_count(e), 1000);
    entry_destroy(&e);
}

static void test_lex_spans(void **state)
{
    (void)state;
    for (int large = 0; large < 2; large++) {
        set_limits(large ? "0" : "128", "64");
        struct entry *e = zset_create(KEY, 1);
        double zero = 0;
        for (char letter = 'a'; letter <= 'e'; letter++) {
            zset_add(e, slice_of(&letter, 1), 0, &zero);
        }
        struct zset_lex_bound low = {ZSET_LEX_LOWEST, {0}, false},
                              high = {ZSET_LEX_HIGHEST, {0}, false};
        struct zset_lex_bound b = {ZSET_LEX_MEMBER, SLICE("b"), false},
                              not_d = {ZSET_LEX_MEMBER, SLICE("d"), true};
        const struct {
            struct zset_lex_range range;
            uint64_t start, stop;
        } cases[] = {{{low, high}, 0, 5}, {{b, not_d}, 1, 3},   {{not_d, high}, 4, 5},
                     {{low, low}, 0, 0},  {{high, high}, 5, 5}, {{high, low}, 5, 5},
                     {{not_d, b}, 4, 4},  {{low, b}, 0, 2}};
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
            struct zset_span s = zset_span_of_members(e, &cases[i].range);
            assert_int_equal(s.start, cases[i].start);
            assert_int_equal(s.stop, cases[i].stop);
        }
        entry_destroy(&e);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_tiny_limits),
        cmocka_unit_test(test_limits_decide_the_encoding),
        cmocka_unit_test(test_members_decide_the_digest),
        cmocka_unit_test(test_drafts_by_steps),
        cmocka_unit_test(test_drafts_without_memory),
        cmocka_unit_test(test_lex_spans),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
