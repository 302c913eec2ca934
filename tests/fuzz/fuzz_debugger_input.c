/* What a client of the script debugger may send (script/debugger_input.h): the requests are the
 * same in whatever portions the bytes come, and within their limits. */
#include "base/buf.h"
#include "script/debugger_input.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void require(bool holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "debugger input: %s\n", what);
        abort();
    }
}

/* Writes the requests that are there into `out`, until one is not. */
static enum debugger_input_result take_all(struct debugger_input *in, struct buf *out)
{
    enum debugger_input_result result;
    while ((result = debugger_input_next(in)) == DEBUGGER_INPUT_DONE) {
        require(in->count >= 1 && in->count <= DEBUGGER_WORDS_MAX, "count of words");
        buf_printf(out, "*%d", in->count);
        for (int i = 0; i < in->count; i++) {
            size_t len = in->words[i].len;
            require(len >= 1 && len <= DEBUGGER_WORD_BYTES, "length of a word");
            buf_printf(out, "$%zu:", len);
            buf_append_slice(out, in->words[i]);
        }
    }
    return result;
}

static enum debugger_input_result read_in_portions(struct slice bytes, size_t portion,
                                                   struct buf *out)
{
    struct debugger_input *in = calloc(1, sizeof(*in));
    enum debugger_input_result result = DEBUGGER_INPUT_MORE;
    while (bytes.len > 0 && result == DEBUGGER_INPUT_MORE) {
        size_t len = bytes.len < portion ? bytes.len : portion;
        debugger_input_add(in, slice_of(bytes.ptr, len));
        bytes = slice_of(bytes.ptr + len, bytes.len - len);
        result = take_all(in, out);
    }
    debugger_input_deinit(in);
    free(in);
    return result;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    struct buf whole = {0}, parts = {0};
    size_t portion = 1 + data[0] % 16;
    struct slice bytes = slice_of((const char *)data + 1, size - 1);
    enum debugger_input_result all = read_in_portions(bytes, bytes.len + 1, &whole);
    enum debugger_input_result some = read_in_portions(bytes, portion, &parts);
    require(all == some, "same result");
    require(slice_equal(buf_slice(&whole), buf_slice(&parts)), "same requests");
    buf_deinit(&whole);
    buf_deinit(&parts);
    return 0;
}
