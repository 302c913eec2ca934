/* See debugger_input.h. */
#include "script/debugger_input.h"

#include <string.h>

/* Digits of a count. */
#define DIGITS_MAX 10

void debugger_input_add(struct debugger_input *in, struct slice bytes)
{
    buf_append_slice(&in->bytes, bytes);
}

/* A line of a sign and a number between 1 and `max`; *at moves behind it. */
static enum debugger_input_result take_count(const struct debugger_input *in, size_t *at, char sign,
                                             int max, int *count)
{
    const char *p = in->bytes.data + *at, *end = in->bytes.data + in->bytes.len;
    int number = 0, digits = 0;
    if (p == end) {
        return DEBUGGER_INPUT_MORE;
    }
    if (*p++ != sign) {
        return DEBUGGER_INPUT_BROKEN;
    }
    while (p < end && *p >= '0' && *p <= '9' && digits < DIGITS_MAX && number <= max) {
        number = 10 * number + (*p++ - '0');
        digits++;
    }
    if (number > max || (p < end && *p != '\r') || (p + 1 < end && p[1] != '\n')) {
        return DEBUGGER_INPUT_BROKEN;
    }
    if (p + 2 > end) {
        return DEBUGGER_INPUT_MORE;
    }
    *count = number;
    *at = (size_t)(p + 2 - in->bytes.data);
    return number > 0 ? DEBUGGER_INPUT_DONE : DEBUGGER_INPUT_BROKEN;
}

static enum debugger_input_result take_word(struct debugger_input *in, size_t *at,
                                            struct slice *word)
{
    int len;
    enum debugger_input_result result = take_count(in, at, '$', DEBUGGER_WORD_BYTES, &len);
    if (result != DEBUGGER_INPUT_DONE) {
        return result;
    }
    if (in->bytes.len - *at < (size_t)len + 2) {
        return DEBUGGER_INPUT_MORE;
    }
    *word = slice_of(in->bytes.data + *at, (size_t)len);
    *at += (size_t)len + 2;
    return memcmp(in->bytes.data + *at - 2, "\r\n", 2) == 0 ? DEBUGGER_INPUT_DONE
                                                            : DEBUGGER_INPUT_BROKEN;
}

enum debugger_input_result debugger_input_next(struct debugger_input *in)
{
    buf_consume(&in->bytes, in->taken);
    in->taken = 0;
    if (in->bytes.len == 0) {
        return DEBUGGER_INPUT_MORE;
    }
    size_t at = 0;
    enum debugger_input_result result = take_count(in, &at, '*', DEBUGGER_WORDS_MAX, &in->count);
    for (int i = 0; result == DEBUGGER_INPUT_DONE && i < in->count; i++) {
        result = take_word(in, &at, &in->words[i]);
    }
    if (result == DEBUGGER_INPUT_DONE) {
        in->taken = at;
    } else if (result == DEBUGGER_INPUT_MORE && in->bytes.len > DEBUGGER_INPUT_BYTES) {
        result = DEBUGGER_INPUT_FULL;
    }
    return result;
}

void debugger_input_deinit(struct debugger_input *in)
{
    buf_deinit(&in->bytes);
    in->taken = 0;
}
