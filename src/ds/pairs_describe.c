/* What DEBUG shows of pairs. */
#include "ds/pairs.h"

/* Bytes of a text that are shown. */
#define SHOWN_BYTES 40

static void describe_text(struct buf *out, const char *name, struct slice text)
{
    bool cut = text.len > SHOWN_BYTES;
    buf_printf(out, ", %s of %zu bytes: ", name, text.len);
    buf_append_quoted(out, cut ? slice_of(text.ptr, SHOWN_BYTES) : text);
    buf_append_cstr(out, cut ? " ..." : "");
}

void pairs_describe(const unsigned char *p, struct buf *out)
{
    unsigned index = 0;
    buf_printf(out, "pairs: %zu bytes, %u pairs\n", pairs_bytes(p), pairs_count(p));
    for (const unsigned char *at = pairs_first(p); at; at = pairs_next(p, at)) {
        char text[PAIRS_TEXT_BYTES];
        buf_printf(out, "  %u: offset %zu, head 0x%02x", index++, (size_t)(at - p), *at);
        describe_text(out, "field", pairs_field(at, text));
        describe_text(out, "value", pairs_value(at, text));
        buf_append_char(out, '\n');
    }
}
