/* The request parser (resp/parser.h) under arbitrary bytes. Oracle: a stream gives the same
 * requests, empty requests and error, whole, byte by byte, and cut at places that the input
 * chooses.
 *
 * The input's first byte chooses the limits and the second the cuts; in the rest three bytes are
 * escapes, so that short inputs make long bulks: 0xfd n is "$<300 n>\r\n", 0xfe n is 300 n bytes of
 * 'x', 0xfc n is "*<n>\r\n". */
#include "../unit/resp/feed.h"

#include <stdint.h>

/* Inputs of 4 KiB would expand to a mebibyte of nothing new. */
#define STREAM_MAX_BYTES (100 * 1024)
/* Calls of the parser get a copy of all that is there: pieces are not smaller than this part of the
 * stream. */
#define PIECES_MAX 300

static struct buf expand(const uint8_t *bytes, size_t len)
{
    struct buf stream = {0};
    for (size_t i = 0; i < len && stream.len < STREAM_MAX_BYTES; i++) {
        unsigned n = i + 1 < len ? bytes[i + 1] : 0;
        switch (bytes[i]) {
        case 0xfc:
            buf_printf(&stream, "*%u\r\n", n);
            i++;
            break;
        case 0xfd:
            buf_printf(&stream, "$%u\r\n", 300 * n);
            i++;
            break;
        case 0xfe:
            memset(buf_reserve(&stream, 300 * n), 'x', 300 * n);
            stream.len += 300 * n;
            i++;
            break;
        default:
            buf_append_char(&stream, (char)bytes[i]);
        }
    }
    return stream;
}

static void assert_same(const struct buf *expected, struct buf *got, const char *how)
{
    if (expected->len != got->len ||
        memcmp(buf_slice(expected).ptr, buf_slice(got).ptr, got->len) != 0) {
        fprintf(stderr, "%s differs:\n%.500s\n---\n%.500s\n", how, buf_slice(expected).ptr,
                buf_cstr(got));
        abort();
    }
    buf_deinit(got);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static const struct parser_limits limits[] = {
        {INT32_MAX, 1 << 20, true},
        {10, 16384, false},
        {100, 100, true},
    };
    if (len < 2) {
        return 0;
    }
    struct parser_limits chosen = limits[bytes[0] % 3];
    size_t step = 1 + bytes[1] * (size_t)bytes[1];
    struct buf stream = expand(bytes + 2, len - 2);
    struct slice all = buf_slice(&stream);
    step = step > all.len / PIECES_MAX ? step : all.len / PIECES_MAX;
    struct buf whole = feed_log_of(all, chosen, all.len, 1);
    struct buf again = feed_log_of(all, chosen, bytes[0], step);
    assert_same(&whole, &again, "in steps");
    again = feed_log_of(all, chosen, all.len / 2, all.len);
    assert_same(&whole, &again, "in halves");
    if (all.len <= PIECES_MAX) {
        again = feed_log_of(all, chosen, 0, 1);
        assert_same(&whole, &again, "byte by byte");
    }
    buf_deinit(&whole);
    buf_deinit(&stream);
    return 0;
}
