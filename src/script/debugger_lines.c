/* Lines that the debugger's client gets: see debugger_priv.h. */
#include "script/debugger_priv.h"

#include "base/clock.h"
#include "engine/busy.h"
#include "engine/console.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Between two looks at what others want. */
#define WAIT_MS 20

/* ---- making them ---- */

void debugger_add_line(struct debugger *d, struct slice line)
{
    if (d->lines.len + line.len > DEBUGGER_LINES_BYTES) {
        d->lines_lost++;
        return;
    }
    buf_append_char(&d->lines, '+');
    size_t begin = d->lines.len;
    buf_append_slice(&d->lines, line);
    for (size_t i = begin; i < d->lines.len; i++) {
        char *byte = &d->lines.data[i];
        *byte = *byte == '\r' || *byte == '\n' ? ' ' : *byte;
    }
    buf_append(&d->lines, "\r\n", 2);
    d->line_count++;
}

void debugger_add_linef(struct debugger *d, const char *format, ...)
{
    char text[512];
    va_list values;
    va_start(values, format);
    int len = vsnprintf(text, sizeof(text), format, values);
    va_end(values);
    debugger_add_line(d, slice_of(text, len < (int)sizeof(text) ? (size_t)len : sizeof(text) - 1));
}

size_t debugger_line_limit(const struct debugger *d)
{
    return (d->maxlen ? d->maxlen : DEBUGGER_LINE_BYTES) + 1;
}

void debugger_add_cut_line(struct debugger *d, struct buf *line)
{
    size_t max = debugger_line_limit(d) - 1;
    bool cut = line->len > max;
    if (cut) {
        line->len = max;
        buf_append_cstr(line, " ...");
    }
    debugger_add_line(d, buf_slice(line));
    if (cut && !d->hinted) {
        d->hinted = true;
        debugger_add_line(
            d, SLICE("<hint> The above reply was trimmed. Use 'maxlen 0' to disable trimming."));
    }
}

/* ---- the source ---- */

bool debugger_has_breakpoint(const struct debugger *d, int line)
{
    for (int i = 0; i < d->breakpoint_count; i++) {
        if (d->breakpoints[i] == line) {
            return true;
        }
    }
    return false;
}

/* Takes a line, without its end, off the front of *rest; false when there is none. */
static bool next_line(struct slice *rest, struct slice *line)
{
    if (!rest->ptr) {
        return false;
    }
    const char *end = rest->len > 0 ? memchr(rest->ptr, '\n', rest->len) : NULL;
    size_t len = end ? (size_t)(end - rest->ptr) : rest->len;
    *line = slice_of(rest->ptr, len);
    *rest = end ? slice_of(end + 1, rest->len - len - 1) : slice_of(NULL, 0);
    return true;
}

int debugger_count_lines(const struct debugger *d)
{
    struct slice rest = d->source, line;
    int count = 0;
    while (next_line(&rest, &line)) {
        count++;
    }
    return count;
}

static void add_marked(struct debugger *d, int number, struct slice text)
{
    bool here = number == d->line, breaks = debugger_has_breakpoint(d, number);
    struct buf out = {0};
    buf_append_cstr(&out, here ? "->" : "  ");
    buf_append_char(&out, breaks ? '#' : ' ');
    buf_printf(&out, "%-3d ", number);
    size_t limit = DEBUGGER_LINE_BYTES;
    buf_append(&out, text.ptr, text.len < limit ? text.len : limit);
    debugger_add_line(d, buf_slice(&out));
    buf_deinit(&out);
}

void debugger_add_source_line(struct debugger *d, int number)
{
    struct slice rest = d->source, line;
    for (int i = 1; next_line(&rest, &line); i++) {
        if (i == number) {
            add_marked(d, number, line);
            return;
        }
    }
    add_marked(d, number, SLICE("<out of range source code line>"));
}

void debugger_add_source(struct debugger *d, int around, int context)
{
    struct slice rest = d->source, line;
    for (int i = 1; next_line(&rest, &line); i++) {
        if (around == 0 || llabs((long long)around - i) <= context) {
            add_marked(d, i, line);
        }
    }
}

/* ---- sending them ---- */

void debugger_send_bytes(struct debugger *d, struct slice bytes)
{
    uint64_t taken_ns = clock_mono_ns();
    while (bytes.len > 0 && !d->left) {
        ssize_t sent = console_write(d->c, bytes, WAIT_MS);
        uint64_t now_ns = clock_mono_ns();
        if (sent > 0) {
            bytes = slice_of(bytes.ptr + sent, bytes.len - (size_t)sent);
            taken_ns = now_ns;
        }
        d->left = sent < 0 || (now_ns - taken_ns) / 1000000 > DEBUGGER_SEND_MS;
        if (!d->forked && run_current() && !busy_is_killed()) {
            busy_poll();
        }
    }
}

void debugger_send(struct debugger *d)
{
    char head[32];
    if (d->lines_lost > 0) {
        size_t lost = d->lines_lost;
        d->lines_lost = 0;
        char text[64];
        int len = snprintf(text, sizeof(text), "+<hint> %zu more lines were too many.\r\n", lost);
        buf_append(&d->lines, text, (size_t)len);
        d->line_count++;
    }
    int len = snprintf(head, sizeof(head), "*%d\r\n", d->line_count);
    debugger_send_bytes(d, slice_of(head, (size_t)len));
    debugger_send_bytes(d, buf_slice(&d->lines));
    buf_deinit(&d->lines);
    d->line_count = 0;
}
