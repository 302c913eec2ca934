/* What DEBUG shows of a listpack: each element with its place and its bytes' form. */
#include "ds/listpack.h"

#include <assert.h>

/* Bytes of an element that are shown. */
#define SHOWN_BYTES 40

void listpack_describe(const unsigned char *lp, struct buf *out)
{
    unsigned index = 0;
    buf_printf(out, "listpack: %zu bytes, %u elements\n", listpack_bytes(lp), listpack_count(lp));
    for (const unsigned char *at = listpack_first(lp); at; at = listpack_next(lp, at)) {
        char text[LISTPACK_TEXT_BYTES];
        int64_t integer;
        struct slice s = listpack_get(at, text);
        bool cut = s.len > SHOWN_BYTES;
        buf_printf(out, "  %u: offset %zu, first byte 0x%02x, %s of %zu bytes: ", index++,
                   (size_t)(at - lp), *at,
                   listpack_get_integer(at, &integer) ? "integer" : "string", s.len);
        buf_append_quoted(out, cut ? slice_of(s.ptr, SHOWN_BYTES) : s);
        buf_append_cstr(out, cut ? " ...\n" : "\n");
    }
}
