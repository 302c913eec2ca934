/* Splitting lines into words (base/option.h) under arbitrary bytes. Oracles: words lie in the
 * scratch buffer one behind the other and are together no longer than the line; quoted and split
 * again they are the same; fewer words are allowed means refused or the same. */
#include "base/option.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define WORDS_MAX 4096

static void require(bool holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "option line: %s\n", what);
        abort();
    }
}

static void check_same_again(const struct slice *words, int count)
{
    static struct slice again[WORDS_MAX];
    struct buf line = {0}, scratch = {0};
    for (int i = 0; i < count; i++) {
        buf_append_cstr(&line, i ? " " : "");
        buf_append_quoted(&line, words[i]);
    }
    require(option_split_line(buf_slice(&line), again, WORDS_MAX, &scratch) == count,
            "as many when quoted");
    for (int i = 0; i < count; i++) {
        require(slice_equal(words[i], again[i]), "the same when quoted");
    }
    buf_deinit(&line);
    buf_deinit(&scratch);
}

/* Arbitrary bytes as words: cut at each 0xff. */
static void check_as_words(struct slice bytes)
{
    static struct slice words[WORDS_MAX];
    int count = 0;
    size_t start = 0;
    for (size_t i = 0; i <= bytes.len && count < WORDS_MAX; i++) {
        if (i == bytes.len || (uint8_t)bytes.ptr[i] == 0xff) {
            words[count++] = slice_of(bytes.ptr + start, i - start);
            start = i + 1;
        }
    }
    check_same_again(words, count);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static struct slice words[WORDS_MAX], few[3];
    struct buf scratch = {0}, other = {0};
    struct slice line = slice_of((const char *)bytes, len);
    int count = option_split_line(line, words, WORDS_MAX, &scratch);
    require(count >= -1 && count <= WORDS_MAX, "the count is in range");
    const char *at = buf_slice(&scratch).ptr;
    for (int i = 0; i < count; i++) {
        require(words[i].ptr == at, "words lie one behind the other");
        at += words[i].len;
    }
    require(count < 0 || (size_t)(at - buf_slice(&scratch).ptr) <= len,
            "words are no longer than the line");
    if (count >= 0) {
        check_same_again(words, count);
    }
    int limited = option_split_line(line, few, 3, &other);
    require(limited == (count > 3 ? -1 : count), "a limit refuses and changes nothing else");
    check_as_words(line);
    buf_deinit(&scratch);
    buf_deinit(&other);
    return 0;
}
