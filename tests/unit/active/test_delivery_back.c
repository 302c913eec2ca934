/* What puts back what a call took (active/delivery_back.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "active/delivery_back.h"

#include <stdio.h>
#include <string.h>

#define WORDS_MAX 20

/* The write as "WORD WORD ...", "" for none. */
static const char *back_of(const char *line, const char *reply)
{
    static char text[300];
    struct slice argv[WORDS_MAX];
    struct buf out = {0};
    int argc = 0;
    while (*line && argc < WORDS_MAX) {
        size_t len = strcspn(line, " ");
        argv[argc++] = slice_of(line, len);
        line += len + (line[len] == ' ');
    }
    int count = delivery_put_back(argc, argv, slice_cstr(reply), &out);
    size_t used = 0;
    text[0] = '\0';
    const char *at = buf_cstr(&out);
    for (int i = 0; i < count; i++) {
        const char *word = strchr(at, '\n') + 1;
        size_t len = (size_t)(strchr(word, '\r') - word);
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%.*s", i ? " " : "", (int)len,
                                 word);
        at = word + len + 2;
    }
    assert_int_equal(*at, '\0');
    buf_deinit(&out);
    return text;
}

static void test_each_pop(void **state)
{
    (void)state;
    static const char *const cases[][3] = {
        {"BLPOP k l 0", "*2\r\n$1\r\nl\r\n$2\r\nee\r\n", "3 LPUSH l ee"},
        {"brpop k 0", "*2\r\n$1\r\nk\r\n$0\r\n\r\n", "3 RPUSH k "},
        {"BLMPOP 0 2 k left LEFT COUNT 3", "*2\r\n$4\r\nleft\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n",
         "4 LPUSH left b a"},
        {"BLMPOP 0 1 left RIGHT", "*2\r\n$4\r\nleft\r\n*1\r\n$1\r\na\r\n", "3 RPUSH left a"},
        {"BZPOPMIN k 0", "*3\r\n$1\r\nk\r\n$1\r\nm\r\n$3\r\n1.5\r\n", "4 ZADD k 1.5 m"},
        {"BZPOPMAX k 0", "*3\r\n$1\r\nk\r\n$1\r\nm\r\n,1.5\r\n", "4 ZADD k 1.5 m"},
        {"BZMPOP 0 1 k MIN",
         "*2\r\n$1\r\nk\r\n*2\r\n*2\r\n$1\r\nm\r\n,1\r\n*2\r\n$1\r\nn\r\n,inf\r\n",
         "6 ZADD k 1 m inf n"},
        {"BLMOVE k l LEFT LEFT 0", "$1\r\ne\r\n", ""},
        {"XREADGROUP GROUP g c STREAMS s >", "*1\r\n$1\r\ns\r\n", ""},
        {"XREADGROUP COUNT 3 GROUP g c STREAMS s >",
         "*1\r\n*2\r\n$1\r\ns\r\n*2\r\n*2\r\n$3\r\n1-1\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n*2\r\n$"
         "3\r\n2-1\r\n*0\r\n",
         "12 XCLAIM s g (undelivered) 0 1-1 2-1 TIME 0 RETRYCOUNT 0 JUSTID"},
        {"XREADGROUP GROUP g c NOACK STREAMS s t > >",
         "%2\r\n$1\r\ns\r\n*1\r\n*2\r\n$3\r\n1-1\r\n*0\r\n$1\r\nt\r\n*1\r\n*2\r\n$3\r\n5-1\r\n*"
         "0\r\n",
         "12 XCLAIM s g (undelivered) 0 1-1 TIME 0 RETRYCOUNT 0 JUSTID FORCE "
         "12 XCLAIM t g (undelivered) 0 5-1 TIME 0 RETRYCOUNT 0 JUSTID FORCE"},
        {"XREADGROUP GROUP g c STREAMS s >",
         "*1\r\n*2\r\n$1\r\ns\r\n*9\r\n*2\r\n$3\r\n1-1\r\n*0\r\n", ""},
        {"XREADGROUP GROUP g c STREAMS s >",
         "*1\r\n*2\r\n$1\r\ns\r\n*1\r\n*2\r\n$3\r\n1-1\r\n*-1\r\n", ""},
        {"XREADGROUP STREAMS s >", "*1\r\n*2\r\n$1\r\ns\r\n*1\r\n*2\r\n$3\r\n1-1\r\n*0\r\n", ""},
        {"XREADGROUP GROUP g c STREAMS s >", "*-1\r\n", ""},
        {"BLPOP k 0", "-WRONGTYPE\r\n", ""},
        {"BLPOP k 0", "*-1\r\n", ""},
        {"BLPOP k 0", "_\r\n", ""},
        {"BLPOP k 0", "*2\r\n$1\r\nk\r\n$900\r\ne\r\n", ""},
        {"BLPOP k 0", "*2\r\n$1\r\nk\r\n$-5\r\ne\r\n", ""},
        {"BLPOP k 0", "*2\r\n$1\r\nk\r\n$1", ""},
        {"BLPOP k 0", "", ""},
        {"BZPOPMIN k 0", "*3\r\n$1\r\nk\r\n$1\r\nm\r\n", ""},
        {"BLMPOP", "*2\r\n$1\r\nk\r\n*1\r\n$1\r\na\r\n", "3 RPUSH k a"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_string_equal(back_of(cases[i][0], cases[i][1]), cases[i][2]);
    }
}

static void test_what_may_be_written(void **state)
{
    (void)state;
    struct slice push[] = {SLICE("LPUSH"), SLICE("k"), SLICE("e")};
    struct slice zadd[] = {SLICE("ZADD"), SLICE("k"), SLICE("1"), SLICE("m")};
    struct slice flush[] = {SLICE("FLUSHALL"), SLICE("k"), SLICE("e")};
    struct slice claim[] = {
        SLICE("XCLAIM"),     SLICE("s"),   SLICE("g"),     SLICE("(undelivered)"),
        SLICE("0"),          SLICE("1-1"), SLICE("TIME"),  SLICE("0"),
        SLICE("RETRYCOUNT"), SLICE("0"),   SLICE("JUSTID")};
    assert_true(delivery_is_back(3, push) && delivery_is_back(4, zadd) &&
                delivery_is_back(11, claim));
    claim[3] = SLICE("c");
    assert_false(delivery_is_back(11, claim));
    assert_false(delivery_is_back(2, push) || delivery_is_back(3, zadd) ||
                 delivery_is_back(3, flush) || delivery_is_back(0, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_pop),
        cmocka_unit_test(test_what_may_be_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
