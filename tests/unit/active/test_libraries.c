/* Libraries of functions in a group (libraries.h): words that come in any order, data sets that are
 * merged, and starts from files give the same libraries everywhere; those of the referee, who heard
 * all words in their one order.
 *
 * KEYDB_TEST_HISTORIES: how many; 0: without end. KEYDB_TEST_HISTORY: the one with this seed only.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "real.h"
#include "store.h"

#include "active/libraries.h"

#include "base/rand.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NODES_MAX 4
#define WORDS_MAX 200
#define HISTORIES 3000

struct word {
    char text[3][STORE_CODE_BYTES]; /* behind FUNCTION */
    int count;
};

/* What one node has said in one write: one command or two. */
struct said {
    struct word words[2];
    int count;
    uint64_t stamp;
};

static struct node_of_test {
    struct origins origins;
    struct libraries *libraries;
    struct store store;
    struct said said[WORDS_MAX];
    int count;
    uint16_t index[NODES_MAX]; /* of each node's origin here */
    uint64_t clock;
} nodes[NODES_MAX + 1]; /* behind them the referee */

static int node_count;

static struct origin_id id_of(int i)
{
    struct origin_id id = {.epoch = 7};
    memset(id.node, 'a' + (i * 3) % 5, sizeof(id.node));
    return id;
}

static void begin(int count)
{
    node_count = count;
    for (int i = 0; i <= count; i++) {
        struct node_of_test *n = &nodes[i];
        memset(n, 0, sizeof(*n));
        origins_init(&n->origins);
        n->libraries = libraries_create(&n->origins);
        for (int k = 0; k < count; k++) { /* each in another order */
            int who = (k + i) % count;
            struct origin_id id = id_of(who);
            n->index[who] = origins_enter(&n->origins, &id);
        }
    }
    keyspace_lock_exclusive();
}

static void end(void) NO_THREAD_SAFETY_ANALYSIS
{
    for (int i = 0; i <= node_count; i++) {
        libraries_destroy(&nodes[i].libraries);
        origins_deinit(&nodes[i].origins);
    }
    store_use(NULL);
    keyspace_unlock_exclusive();
}

static int words_of(const struct word *w, struct slice argv[4])
{
    argv[0] = SLICE("FUNCTION");
    for (int i = 0; i < w->count; i++) {
        argv[1 + i] = slice_cstr(w->text[i]);
    }
    assert_true(libraries_is_word(1 + w->count, argv));
    return 1 + w->count;
}

static void settle(struct node_of_test *n) NO_THREAD_SAFETY_ANALYSIS
{
    libraries_settle(n->libraries, db_at(0));
    assert_false(libraries_are_unsettled(n->libraries));
}

/* ---- a client ---- */

static bool run_word(struct store *s, const struct word *w)
{
    if (w->count == 1) {
        store_flush(s);
        return true;
    }
    return w->count == 2 ? store_delete(s, slice_cstr(w->text[1]))
                         : store_load(s, slice_cstr(w->text[2]));
}

static struct word load_of(const char *name, const char *functions)
{
    struct word w = {.count = 3, .text = {"LOAD", "REPLACE"}};
    snprintf(w.text[2], sizeof(w.text[2]), "#!lua name=%s %s", name, functions);
    return w;
}

static struct word delete_of(const char *name)
{
    struct word w = {.count = 2, .text = {"DELETE"}};
    snprintf(w.text[1], sizeof(w.text[1]), "%s", name);
    return w;
}

/* The node's client says it, where that is not refused. */
static bool say(int i, int count, const struct word *words) NO_THREAD_SAFETY_ANALYSIS
{
    struct node_of_test *n = &nodes[i];
    struct said *s = &n->said[n->count];
    struct slice argv[4];
    s->count = 0;
    store_use(&n->store);
    for (int k = 0; k < count; k++) {
        if (run_word(&n->store, &words[k])) {
            s->words[s->count++] = words[k];
        }
    }
    if (s->count == 0) {
        return false;
    }
    s->stamp = ++n->clock;
    uint64_t sequence = (uint64_t)++n->count;
    origins_advance(&n->origins, n->index[i], sequence);
    for (int k = 0; k < s->count; k++) {
        int argc = words_of(&s->words[k], argv);
        libraries_heard_own(
            n->libraries,
            (struct library_word){dot_of(s->stamp, n->index[i], sequence), (uint32_t)k}, argc,
            argv);
    }
    settle(n);
    return true;
}

static bool say_one(int i, struct word w)
{
    return say(i, 1, &w);
}

/* ---- links ---- */

/* The receiver hears the sender's next write; false: it has all. */
static bool deliver(int r, int from) NO_THREAD_SAFETY_ANALYSIS
{
    struct node_of_test *n = &nodes[r];
    uint64_t sequence = origins_at(&n->origins, n->index[from])->position + 1;
    struct slice argv[4];
    if (sequence > (uint64_t)nodes[from].count) {
        return false;
    }
    const struct said *s = &nodes[from].said[sequence - 1];
    store_use(&n->store);
    n->clock = s->stamp > n->clock ? s->stamp : n->clock;
    for (int k = 0; k < s->count; k++) {
        int argc = words_of(&s->words[k], argv);
        libraries_hear(
            n->libraries,
            (struct library_word){dot_of(s->stamp, n->index[from], sequence), (uint32_t)k}, argc,
            argv);
    }
    settle(n);
    origins_advance(&n->origins, n->index[from], sequence);
    return true;
}

static void put_row(struct slice row, void *out)
{
    uint32_t len = (uint32_t)row.len;
    buf_append(out, (const char *)&len, sizeof(len));
    buf_append_slice(out, row);
}

static void append_row(struct slice row, void *out)
{
    buf_append_slice(out, row);
}

/* The receiver is given the sender's whole data set. */
static void merge(int r, int from) NO_THREAD_SAFETY_ANALYSIS
{
    struct node_of_test *n = &nodes[r];
    struct buf rows = {0};
    store_use(&nodes[from].store);
    libraries_each(nodes[from].libraries, true, put_row, &rows);
    store_use(&n->store);
    for (size_t at = 0; at < rows.len;) {
        uint32_t len;
        memcpy(&len, rows.data + at, sizeof(len));
        assert_true(libraries_merge(n->libraries, slice_of(rows.data + at + sizeof(len), len)));
        at += sizeof(len) + len;
        settle(n);
    }
    for (int i = 0; i < node_count; i++) {
        origins_advance(&n->origins, n->index[i],
                        origins_at(&nodes[from].origins, nodes[from].index[i])->position);
    }
    n->clock = nodes[from].clock > n->clock ? nodes[from].clock : n->clock;
    buf_deinit(&rows);
}

/* The node begins again from its files. */
static void restart(int i) NO_THREAD_SAFETY_ANALYSIS
{
    struct node_of_test *n = &nodes[i];
    struct buf rows = {0};
    store_use(&n->store);
    libraries_each(n->libraries, false, append_row, &rows);
    libraries_destroy(&n->libraries);
    n->libraries = libraries_create(&n->origins);
    libraries_restore(n->libraries, buf_slice(&rows));
    buf_deinit(&rows);
}

static void dump(void)
{
    for (int i = 0; i < node_count; i++) {
        for (int k = 0; k < nodes[i].count; k++) {
            const struct said *s = &nodes[i].said[k];
            printf("%d:%d @%llu", i, k + 1, (unsigned long long)s->stamp);
            for (int w = 0; w < s->count; w++) {
                printf(" | %s %s", s->words[w].text[0], s->words[w].text[s->words[w].count - 1]);
            }
            printf("\n");
        }
    }
}

static void deliver_all(void)
{
    for (int i = 0; i < node_count * node_count; i++) {
        while (i / node_count != i % node_count && deliver(i / node_count, i % node_count)) {
        }
    }
}

/* The referee hears all in the one order. */
static const char *referee(void)
{
    struct node_of_test *n = &nodes[node_count];
    for (;;) {
        int next = -1;
        struct dot least = {0, 0};
        for (int i = 0; i < node_count; i++) {
            uint64_t at = origins_at(&n->origins, n->index[i])->position;
            if (at == (uint64_t)nodes[i].count) {
                continue;
            }
            struct dot dot = dot_of(nodes[i].said[at].stamp, n->index[i], at + 1);
            if (next < 0 || origins_compare(&n->origins, dot, least) < 0) {
                next = i;
                least = dot;
            }
        }
        if (next < 0) {
            return store_text(&n->store);
        }
        deliver(node_count, next);
    }
}

static void assert_all_have(const char *text)
{
    for (int i = 0; i < node_count; i++) {
        assert_string_equal(store_text(&nodes[i].store), text);
    }
}

/* ---- one by one ---- */

static void test_the_later_loading_stands(void **state)
{
    (void)state;
    begin(2);
    nodes[1].clock = 10;
    assert_true(say_one(0, load_of("x", "f")));
    assert_true(say_one(1, load_of("x", "g")));
    deliver_all();
    assert_all_have("#!lua name=x g");
    assert_int_equal(nodes[1].store.loads, 1); /* what was void was not run */
    end();
}

static void test_a_deletion_and_a_loading(void **state)
{
    (void)state;
    begin(2);
    assert_true(say_one(0, load_of("x", "f")));
    deliver_all();
    nodes[1].clock = 10;
    assert_true(say_one(0, load_of("x", "g")));
    assert_true(say_one(1, delete_of("x")));
    deliver_all();
    assert_all_have("");
    nodes[0].clock = 20;
    assert_true(say_one(0, load_of("x", "h")));
    assert_true(say_one(1, load_of("x", "i")));
    deliver_all();
    assert_all_have("#!lua name=x h");
    end();
}

static void test_what_does_not_go_together(void **state)
{
    (void)state;
    begin(2);
    nodes[1].clock = 10;
    assert_true(say_one(0, load_of("x", "f")));
    assert_true(say_one(0, load_of("z", "h")));
    assert_true(say_one(1, load_of("y", "f g")));
    deliver_all();
    assert_all_have("#!lua name=y f g #!lua name=z h");
    restart(0);
    assert_true(say_one(1, delete_of("y")));
    deliver_all();
    assert_all_have("#!lua name=x f #!lua name=z h"); /* it is back */
    end();
}

static void test_all_go(void **state)
{
    (void)state;
    const struct word flush = {.count = 1, .text = {"FLUSH"}};
    begin(3);
    assert_true(say_one(0, load_of("x", "f")));
    nodes[1].clock = 10;
    assert_true(say_one(1, flush));
    nodes[2].clock = 20;
    assert_true(say_one(2, load_of("y", "g")));
    assert_true(deliver(2, 1));
    assert_true(deliver(2, 0)); /* late */
    deliver_all();
    assert_all_have("#!lua name=y g");
    end();
}

static void test_in_one_write_the_last_word_stands(void **state)
{
    (void)state;
    const struct word flush = {.count = 1, .text = {"FLUSH"}};
    const struct word both[] = {load_of("x", "f"), flush}, other[] = {flush, load_of("y", "g")};
    begin(2);
    assert_true(say(0, 2, both));
    deliver_all();
    assert_all_have("");
    assert_true(say(0, 2, other));
    deliver_all();
    assert_all_have("#!lua name=y g");
    restart(1);
    merge(1, 0);
    assert_all_have("#!lua name=y g");
    end();
}

/* Libraries of files that no node has written. */
static void test_what_nobody_has_written(void **state)
{
    (void)state;
    begin(2);
    assert_true(store_load(&nodes[0].store, SLICE("#!lua name=x a")));
    assert_true(store_load(&nodes[0].store, SLICE("#!lua name=z c")));
    assert_true(store_load(&nodes[1].store, SLICE("#!lua name=x b")));
    restart(0);
    restart(1);
    merge(0, 1);
    merge(1, 0);
    assert_all_have("#!lua name=x b #!lua name=z c");
    assert_true(say_one(1, delete_of("x")));
    deliver_all();
    assert_all_have("#!lua name=z c");
    end();
}

static void count_row(struct slice row, void *count)
{
    (void)row;
    ++*(size_t *)count;
}

/* Also on the node whose clients delete them, which has nothing to settle. */
static void test_what_went_long_ago_is_forgotten(void **state) NO_THREAD_SAFETY_ANALYSIS
{
    (void)state;
    size_t rows = 0;
    begin(1);
    store_use(&nodes[0].store);
    for (uint64_t i = 1; i <= LIBRARIES_GONE_MAX + 100; i++) {
        char name[32];
        snprintf(name, sizeof(name), "gone%d", (int)i);
        const struct slice words[] = {SLICE("FUNCTION"), SLICE("DELETE"), slice_cstr(name)};
        libraries_heard_own(nodes[0].libraries,
                            (struct library_word){dot_of(i, nodes[0].index[0], i), 0}, 3, words);
    }
    libraries_each(nodes[0].libraries, false, count_row, &rows);
    assert_int_equal(rows, LIBRARIES_GONE_MAX);
    end();
}

static void test_damaged_rows_are_refused(void **state)
{
    (void)state;
    begin(1);
    struct buf rows = {0};
    assert_true(say_one(0, load_of("x", "f")));
    libraries_each(nodes[0].libraries, true, append_row, &rows);
    struct library_row row;
    struct slice whole = buf_slice(&rows), rest = whole;
    assert_true(library_row_next(&rest, &row));
    assert_int_equal(rest.len, 0);
    for (size_t len = 0; len < whole.len; len++) {
        rest = slice_of(whole.ptr, len);
        assert_false(library_row_next(&rest, &row));
    }
    for (size_t i = 0; i < whole.len; i++) {
        char bytes[256];
        memcpy(bytes, whole.ptr, whole.len);
        bytes[i] = (char)0xff;
        rest = slice_of(bytes, whole.len);
        bool good = library_row_next(&rest, &row); /* whatever it is: within the bytes */
        assert_true(!good || row.name.len < whole.len);
    }
    buf_deinit(&rows);
    end();
}

/* ---- random histories ---- */

static void say_something(int i)
{
    static const char *const names[] = {"x", "y", "z", "w"};
    const char *name = names[rand_below(4)];
    char functions[8];
    snprintf(functions, sizeof(functions), "%c %c", 'a' + (char)rand_below(6),
             'a' + (char)rand_below(6));
    struct word words[2];
    for (int k = 0; k < 2; k++) {
        uint64_t what = rand_below(20);
        words[k] = what < 13   ? load_of(name, functions)
                   : what < 19 ? delete_of(names[rand_below(4)])
                               : (struct word){.count = 1, .text = {"FLUSH"}};
    }
    nodes[i].clock += rand_below(4) ? 0 : rand_below(30);
    if (nodes[i].count < WORDS_MAX) {
        say(i, rand_below(6) ? 1 : 2, words);
    }
}

static void run_history(uint64_t seed)
{
    rand_set_seed(seed);
    begin(2 + (int)rand_below(NODES_MAX - 1));
    int steps = 5 + (int)rand_below(120);
    for (int step = 0; step < steps; step++) {
        int a = (int)rand_below((uint64_t)node_count), b = (int)rand_below((uint64_t)node_count);
        uint64_t what = rand_below(100);
        if (what < 35) {
            say_something(a);
        } else if (what < 92 && a != b) {
            deliver(a, b);
        } else if (what < 95 && a != b) {
            merge(a, b);
        } else if (what >= 97) {
            restart(a);
        }
    }
    deliver_all();
    const char *text = referee();
    for (int i = 0; i < node_count; i++) {
        char ours[sizeof(nodes[i].store.codes) + 1];
        snprintf(ours, sizeof(ours), "%s", store_text(&nodes[i].store));
        text = store_text(&nodes[node_count].store);
        if (strcmp(ours, text) != 0) {
            dump();
            print_error("history %llu, node %d: %s\n", (unsigned long long)seed, i, ours);
            assert_string_equal(ours, text);
        }
    }
    end();
}

static void test_random_histories(void **state)
{
    (void)state;
    const char *one = getenv("KEYDB_TEST_HISTORY"), *many = getenv("KEYDB_TEST_HISTORIES");
    uint64_t count = many ? strtoull(many, NULL, 10) : HISTORIES;
    if (one) {
        run_history(strtoull(one, NULL, 10));
        return;
    }
    for (uint64_t seed = 1; count == 0 || seed <= count; seed++) {
        run_history(seed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_later_loading_stands),
        cmocka_unit_test(test_a_deletion_and_a_loading),
        cmocka_unit_test(test_what_does_not_go_together),
        cmocka_unit_test(test_all_go),
        cmocka_unit_test(test_in_one_write_the_last_word_stands),
        cmocka_unit_test(test_what_nobody_has_written),
        cmocka_unit_test(test_what_went_long_ago_is_forgotten),
        cmocka_unit_test(test_damaged_rows_are_refused),
        cmocka_unit_test(test_random_histories),
    };
    return cmocka_run_group_tests(tests, real_setup, real_teardown);
}
