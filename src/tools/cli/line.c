/* The line being edited: see line.h. */
#include "tools/cli/line.h"

#include <assert.h>
#include <string.h>
#include <wchar.h>

#include "tools/cli/key.h"

static void line_check(const struct line *l)
{
    assert(l->cursor <= l->text.len);
    assert(l->text.len <= LINE_BYTES_MAX);
}

void line_init(struct line *l)
{
    text_init(&l->text);
    text_init(&l->killed);
    l->cursor = 0;
}

void line_deinit(struct line *l)
{
    text_deinit(&l->text);
    text_deinit(&l->killed);
    l->cursor = 0;
}

void line_set(struct line *l, const char *data, size_t len)
{
    text_clear(&l->text);
    l->cursor = 0;
    line_insert(l, data, len);
}

void line_insert(struct line *l, const char *data, size_t len)
{
    if (len <= LINE_BYTES_MAX - l->text.len) {
        text_insert(&l->text, l->cursor, data, len);
        l->cursor += len;
    }
    line_check(l);
}

/* ---- characters ---- */

static size_t char_length(const char *data, size_t len)
{
    size_t size = key_utf8_length(data, len);
    return size == 0 ? 1 : size;
}

static size_t next_offset(const struct line *l, size_t at)
{
    return at == l->text.len ? at : at + char_length(l->text.data + at, l->text.len - at);
}

static size_t previous_offset(const struct line *l, size_t at)
{
    for (size_t back = 4; back > 1; back--) {
        if (at >= back && char_length(l->text.data + at - back, back) == back) {
            return at - back;
        }
    }
    return at > 0 ? at - 1 : 0;
}

void line_left(struct line *l)
{
    l->cursor = previous_offset(l, l->cursor);
}

void line_right(struct line *l)
{
    l->cursor = next_offset(l, l->cursor);
}

static size_t word_left_offset(const struct line *l)
{
    size_t at = l->cursor;
    while (at > 0 && l->text.data[at - 1] == ' ') {
        at--;
    }
    while (at > 0 && l->text.data[at - 1] != ' ') {
        at--;
    }
    return at;
}

static size_t word_right_offset(const struct line *l)
{
    size_t at = l->cursor;
    while (at < l->text.len && l->text.data[at] == ' ') {
        at++;
    }
    while (at < l->text.len && l->text.data[at] != ' ') {
        at++;
    }
    return at;
}

void line_word_left(struct line *l)
{
    l->cursor = word_left_offset(l);
}

void line_word_right(struct line *l)
{
    l->cursor = word_right_offset(l);
}

/* ---- deleting ---- */

void line_backspace(struct line *l)
{
    size_t from = previous_offset(l, l->cursor);
    text_remove(&l->text, from, l->cursor - from);
    l->cursor = from;
    line_check(l);
}

void line_delete(struct line *l)
{
    text_remove(&l->text, l->cursor, next_offset(l, l->cursor) - l->cursor);
    line_check(l);
}

static void kill_range(struct line *l, size_t from, size_t to)
{
    assert(from <= l->cursor && l->cursor <= to && to <= l->text.len);
    if (from < to) {
        text_clear(&l->killed);
        text_append(&l->killed, l->text.data + from, to - from);
        text_remove(&l->text, from, to - from);
        l->cursor = from;
    }
    line_check(l);
}

void line_kill_left(struct line *l)
{
    kill_range(l, 0, l->cursor);
}

void line_kill_right(struct line *l)
{
    kill_range(l, l->cursor, l->text.len);
}

void line_kill_word_left(struct line *l)
{
    kill_range(l, word_left_offset(l), l->cursor);
}

void line_kill_word_right(struct line *l)
{
    kill_range(l, l->cursor, word_right_offset(l));
}

void line_yank(struct line *l)
{
    line_insert(l, l->killed.data, l->killed.len);
}

void line_transpose(struct line *l)
{
    size_t middle = l->cursor == l->text.len ? previous_offset(l, l->cursor) : l->cursor;
    size_t start = previous_offset(l, middle);
    size_t end = next_offset(l, middle);
    if (start == middle || middle == end) {
        return;
    }
    struct text left;
    text_init(&left);
    text_append(&left, l->text.data + start, middle - start);
    text_remove(&l->text, start, middle - start);
    text_insert(&l->text, start + (end - middle), left.data, left.len);
    text_deinit(&left);
    l->cursor = end;
    line_check(l);
}

/* ---- drawing ---- */

/* What character data[0, size) looks like: appended to `out` unless NULL; returns the columns. */
static size_t draw_char(struct text *out, const char *data, size_t size)
{
    unsigned char byte = (unsigned char)data[0];
    if (size == 1 && (byte < 0x20 || byte == 0x7f)) {
        if (out != NULL) {
            text_append_char(out, '^');
            text_append_char(out, (char)(byte ^ 0x40));
        }
        return 2;
    }
    wchar_t wide;
    mbstate_t state;
    memset(&state, 0, sizeof(state));
    int width = byte < 0x80 ? 1 : -1;
    if (width < 0 && mbrtowc(&wide, data, size, &state) == size) {
        width = wcwidth(wide);
    }
    if (out != NULL) {
        text_append(out, width < 0 ? "?" : data, width < 0 ? 1 : size);
    }
    return width < 0 ? 1 : (size_t)width;
}

static size_t columns_between(const struct line *l, size_t from, size_t to)
{
    size_t columns = 0;
    while (from < to) {
        size_t next = next_offset(l, from);
        columns += draw_char(NULL, l->text.data + from, next - from);
        from = next;
    }
    return columns;
}

/* The first character to show, so that the cursor is inside of `room` columns. The last `room`
 * columns before the cursor are enough, so a long line costs no more than a short one. */
static size_t first_visible(const struct line *l, size_t room)
{
    size_t at = l->cursor;
    size_t columns = 0;
    while (at > 0) {
        size_t before = previous_offset(l, at);
        columns += draw_char(NULL, l->text.data + before, at - before);
        if (columns >= room) {
            break;
        }
        at = before;
    }
    return at;
}

/* Appends as much of `hint` as fits. */
static void draw_hint(struct text *out, const char *hint, size_t room)
{
    size_t len = strlen(hint);
    if (len == 0 || room == 0) {
        return;
    }
    text_append_string(out, "\x1b[0;90;49m");
    size_t columns = 0;
    for (size_t at = 0; at < len;) {
        size_t size = char_length(hint + at, len - at);
        size_t width = draw_char(NULL, hint + at, size);
        if (columns + width > room) {
            break;
        }
        columns += draw_char(out, hint + at, size);
        at += size;
    }
    text_append_string(out, "\x1b[0m");
}

void line_draw(struct text *out, const struct line *l, const char *prompt, const char *hint,
               size_t columns)
{
    assert(columns >= 2);
    size_t prompt_columns = strlen(prompt);
    const char *shown = prompt_columns + 8 < columns ? prompt : "> ";
    if (columns < 10) {
        shown = "";
    }
    prompt_columns = strlen(shown);
    size_t room = columns - prompt_columns;
    size_t at = first_visible(l, room);
    size_t cursor_column = prompt_columns + columns_between(l, at, l->cursor);
    text_append_format(out, "\r%s", shown);
    size_t used = 0;
    while (at < l->text.len) {
        size_t next = next_offset(l, at);
        size_t width = draw_char(NULL, l->text.data + at, next - at);
        if (used + width >= room) {
            break; /* the last column stays free: writing there may wrap */
        }
        used += draw_char(out, l->text.data + at, next - at);
        at = next;
    }
    if (at == l->text.len) {
        draw_hint(out, hint, room - 1 > used ? room - 1 - used : 0);
    }
    text_append_string(out, "\x1b[0K\r");
    if (cursor_column > 0) {
        text_append_format(out, "\x1b[%zuC", cursor_column);
    }
}
