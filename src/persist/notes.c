/* See notes.h. */
#include "persist/notes.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#define LINE_HEAD "AUX:"

static const struct notes_ops *ops;

void notes_set_ops(const struct notes_ops *set)
{
    ops = set;
}

void notes_tell(notes_put put, void *context)
{
    if (ops) {
        ops->tell(put, context);
    }
}

bool notes_take(struct slice name, struct slice value)
{
    return ops && ops->take(name, value);
}

void notes_outdate(void)
{
    if (ops) {
        ops->outdate();
    }
}

void notes_accept(void)
{
    if (ops) {
        ops->accept();
    }
}

/* ---- a line ---- */

static void put_in_line(const char *name, struct slice value, void *context)
{
    struct buf *out = context;
    assert(value.len <= NOTES_VALUE_BYTES && !memchr(value.ptr, ' ', value.len));
    buf_append_cstr(out, out->len == 0 ? "#" LINE_HEAD : " ");
    buf_printf(out, "%s=", name);
    buf_append_slice(out, value);
}

void notes_format_line(struct buf *out)
{
    struct buf line = {0};
    notes_tell(put_in_line, &line);
    if (line.len > 0) {
        buf_append_slice(out, buf_slice(&line));
        buf_append_cstr(out, "\r\n");
    }
    buf_deinit(&line);
}

void notes_take_line(struct slice line)
{
    size_t head = strlen(LINE_HEAD);
    if (line.len < head || memcmp(line.ptr, LINE_HEAD, head) != 0) {
        return;
    }
    notes_outdate();
    const char *at = line.ptr + head, *end = line.ptr + line.len;
    while (at < end) {
        const char *blank = memchr(at, ' ', (size_t)(end - at));
        const char *stop = blank ? blank : end;
        const char *equals = memchr(at, '=', (size_t)(stop - at));
        if (equals) {
            notes_take(slice_of(at, (size_t)(equals - at)),
                       slice_of(equals + 1, (size_t)(stop - equals - 1)));
        }
        at = blank ? blank + 1 : end;
    }
}
