/* Reads a line from the terminal: see editor.h. Decoding keys (key.h), the line and how it looks
 * (line.h) and the history are elsewhere; here they meet the terminal. */
#include "tools/cli/editor.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "tools/cli/key.h"
#include "tools/cli/line.h"

/* An Escape key is told from the start of a sequence by what does not follow in this time. */
#define EDITOR_ESCAPE_MS 50

/* Asked of the terminal in one read. */
#define EDITOR_READ_BYTES 4096

struct editor {
    struct history *history;
    const struct editor_source *source; /* may be NULL */
    struct text typed;                  /* bytes read and not decoded yet */
    bool pasting;
    bool ended; /* the terminal is gone */

    /* of the line being read */
    const char *prompt;
    struct line line;
    size_t history_at; /* the line shown; history_count(): the one being typed */
    struct text draft; /* what was being typed before the history was visited */
    bool done;
    enum editor_result result;
};

struct editor *editor_create(struct history *history, const struct editor_source *source)
{
    struct editor *e = tool_calloc(1, sizeof(*e));
    e->history = history;
    e->source = source;
    text_init(&e->typed);
    text_init(&e->draft);
    line_init(&e->line);
    return e;
}

void editor_destroy(struct editor **e)
{
    if (*e != NULL) {
        text_deinit(&(*e)->typed);
        text_deinit(&(*e)->draft);
        line_deinit(&(*e)->line);
        free(*e);
        *e = NULL;
    }
}

/* ---- the terminal ---- */

static void write_all(const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = write(STDOUT_FILENO, data, len);
        if (n > 0) {
            data += n;
            len -= (size_t)n;
        } else if (n < 0 && errno != EINTR) {
            return; /* the terminal is gone; reading will tell */
        }
    }
}

static void write_string(const char *text)
{
    write_all(text, strlen(text));
}

static size_t terminal_columns(void)
{
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 2) {
        return 80;
    }
    return size.ws_col;
}

static bool is_capable(void)
{
    const char *term = getenv("TERM");
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
        return false;
    }
    return term == NULL || (strcasecmp(term, "dumb") != 0 && strcasecmp(term, "cons25") != 0 &&
                            strcasecmp(term, "emacs") != 0);
}

/* Keys come one by one, unechoed and uninterpreted. Draining, not flushing: what was typed or
 * pasted ahead is kept. */
static bool enter_raw(struct termios *saved)
{
    if (tcgetattr(STDIN_FILENO, saved) != 0) {
        return false;
    }
    struct termios raw = *saved;
    raw.c_iflag &= ~(tcflag_t)(BRKINT | ICRNL | INPCK | ISTRIP | IXON);
    raw.c_lflag &= ~(tcflag_t)(ECHO | ICANON | IEXTEN | ISIG);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    return tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0;
}

static void leave_raw(const struct termios *saved)
{
    tcsetattr(STDIN_FILENO, TCSADRAIN, saved);
}

void editor_clear_screen(void)
{
    if (isatty(STDOUT_FILENO)) {
        fflush(stdout);
        write_string("\x1b[H\x1b[2J");
    }
}

/* Waits for bytes (timeout_ms -1: forever) and takes them. False when none came. */
static bool take_bytes(struct editor *e, int timeout_ms)
{
    struct pollfd pfd = {STDIN_FILENO, POLLIN, 0};
    int ready;
    do {
        ready = poll(&pfd, 1, timeout_ms);
    } while (ready < 0 && errno == EINTR);
    if (ready <= 0) {
        return false;
    }
    ssize_t n;
    do {
        n = read(STDIN_FILENO, text_reserve(&e->typed, EDITOR_READ_BYTES), EDITOR_READ_BYTES);
    } while (n < 0 && errno == EINTR);
    if (n <= 0) {
        e->ended = true;
        return false;
    }
    text_advance(&e->typed, (size_t)n);
    return true;
}

/* The next key. Its text is copied to `bytes`, since the buffer moves on. False at the end. */
static bool next_key(struct editor *e, struct key *key, char bytes[8])
{
    bool final = false;
    for (;;) {
        size_t used =
            e->typed.len == 0 ? 0 : key_decode(e->typed.data, e->typed.len, final, e->pasting, key);
        if (used > 0) {
            if (key->code == KEY_TEXT) {
                assert(key->len < 8);
                memcpy(bytes, key->text, key->len);
                key->text = bytes;
            }
            text_remove(&e->typed, 0, used);
            return true;
        }
        bool waiting = e->typed.len > 0;
        if (!take_bytes(e, waiting ? EDITOR_ESCAPE_MS : -1)) {
            if (e->ended) {
                return false;
            }
            final = waiting;
        }
    }
}

static void refresh(struct editor *e, bool with_hint)
{
    struct text hint;
    struct text out;
    text_init(&hint);
    text_init(&out);
    if (with_hint && e->source != NULL && e->line.cursor == e->line.text.len) {
        e->source->hint(e->source->context, e->line.text.data, e->line.text.len, &hint);
    }
    line_draw(&out, &e->line, e->prompt, hint.data, terminal_columns());
    write_all(out.data, out.len);
    text_deinit(&out);
    text_deinit(&hint);
}

/* ---- history ---- */

static void show_history(struct editor *e, size_t index)
{
    size_t count = history_count(e->history);
    assert(index <= count);
    if (e->history_at == count && index < count) {
        text_clear(&e->draft);
        text_append(&e->draft, e->line.text.data, e->line.text.len);
    }
    e->history_at = index;
    if (index == count) {
        line_set(&e->line, e->draft.data, e->draft.len);
    } else {
        const char *line = history_line(e->history, index);
        line_set(&e->line, line, strlen(line));
    }
}

static void history_older(struct editor *e)
{
    if (e->history_at > 0) {
        show_history(e, e->history_at - 1);
    }
}

static void history_newer(struct editor *e)
{
    if (e->history_at < history_count(e->history)) {
        show_history(e, e->history_at + 1);
    }
}

static void draw_search(struct editor *e, const struct text *query, bool found)
{
    struct text prompt;
    struct text out;
    text_init(&prompt);
    text_init(&out);
    text_append_format(&prompt, "(%sreverse-i-search)`%s': ", found ? "" : "failed ", query->data);
    line_draw(&out, &e->line, prompt.data, "", terminal_columns());
    write_all(out.data, out.len);
    text_deinit(&out);
    text_deinit(&prompt);
}

/* Shows the newest line before `before` that contains the query. */
static bool search_step(struct editor *e, const struct text *query, size_t before)
{
    size_t index = history_search(e->history, query->data, before);
    if (index == history_count(e->history)) {
        return false;
    }
    show_history(e, index);
    const char *at = strstr(e->line.text.data, query->data);
    e->line.cursor = at != NULL ? (size_t)(at - e->line.text.data) : e->line.text.len;
    return true;
}

static void search_shorten(struct text *query)
{
    while (query->len > 0 && ((unsigned char)query->data[query->len - 1] & 0xc0) == 0x80) {
        text_truncate(query, query->len - 1);
    }
    text_truncate(query, query->len > 0 ? query->len - 1 : 0);
}

/* ^R: narrows a line of the history down while the user types a part of it. Ends with the first
 * key that does not belong here, which is returned for the normal editing to handle; false when
 * the terminal is gone. */
static bool search_history(struct editor *e, struct key *key, char bytes[8])
{
    struct text query;
    text_init(&query);
    bool found = true;
    bool alive;
    for (;;) {
        draw_search(e, &query, found);
        alive = next_key(e, key, bytes);
        if (!alive) {
            break;
        }
        if (key->code == KEY_TEXT) {
            text_append(&query, key->text, key->len);
            size_t from = e->history_at < history_count(e->history) ? e->history_at + 1
                                                                    : history_count(e->history);
            found = search_step(e, &query, from);
        } else if (key->code == KEY_BACKSPACE) {
            search_shorten(&query);
            found = query.len == 0 || search_step(e, &query, history_count(e->history));
        } else if (key->code == KEY_CONTROL && key->letter == 'R') {
            found = query.len > 0 && search_step(e, &query, e->history_at);
        } else {
            break;
        }
    }
    bool cancelled =
        alive && key->code == KEY_CONTROL && (key->letter == 'G' || key->letter == 'C');
    if (cancelled) {
        show_history(e, history_count(e->history));
        key->code = KEY_UNKNOWN;
    }
    text_deinit(&query);
    return alive;
}

/* ---- completion ---- */

/* TAB: goes round the completions, and back to what was typed. Ends as search_history() does. */
static bool complete_line(struct editor *e, struct key *key, char bytes[8])
{
    struct words list = {NULL, 0};
    if (e->source != NULL) {
        e->source->complete(e->source->context, e->line.text.data, e->line.text.len, &list);
    }
    if (list.count == 0) {
        write_string("\a");
        key->code = KEY_UNKNOWN;
        words_deinit(&list);
        return true;
    }
    words_add(&list, e->line.text.data, e->line.text.len); /* last: what was typed */
    size_t at = 0;
    bool alive;
    for (;;) {
        line_set(&e->line, list.list[at].data, list.list[at].len);
        if (at == list.count - 1) {
            write_string("\a");
        }
        refresh(e, true);
        alive = next_key(e, key, bytes);
        if (!alive) {
            break;
        }
        if (key->code == KEY_TAB) {
            at = (at + 1) % list.count;
        } else if (key->code == KEY_BACK_TAB) {
            at = (at + list.count - 1) % list.count;
        } else {
            break;
        }
    }
    if (alive && key->code == KEY_ESCAPE) {
        const struct word *original = &list.list[list.count - 1];
        line_set(&e->line, original->data, original->len);
        key->code = KEY_UNKNOWN;
    }
    words_deinit(&list);
    return alive;
}

/* ---- keys ---- */

static void finish(struct editor *e, enum editor_result result)
{
    e->done = true;
    e->result = result;
}

static void suspend(struct editor *e, struct termios *saved)
{
    leave_raw(saved);
    write_string("\x1b[?2004l\n");
    raise(SIGTSTP);
    (void)enter_raw(saved);
    write_string("\x1b[?2004h");
    (void)e;
}

static void on_control(struct editor *e, char letter, struct termios *saved)
{
    struct line *l = &e->line;
    switch (letter) {
    case 'A':
        l->cursor = 0;
        break;
    case 'B':
        line_left(l);
        break;
    case 'C':
        l->cursor = l->text.len;
        refresh(e, false);
        write_string("^C");
        if (l->text.len == 0) {
            finish(e, EDITOR_END);
        } else {
            line_set(l, "", 0);
            finish(e, EDITOR_LINE);
        }
        break;
    case 'D':
        if (l->text.len == 0) {
            finish(e, EDITOR_END);
        } else {
            line_delete(l);
        }
        break;
    case 'E':
        l->cursor = l->text.len;
        break;
    case 'F':
        line_right(l);
        break;
    case 'K':
        line_kill_right(l);
        break;
    case 'L':
        editor_clear_screen();
        break;
    case 'N':
        history_newer(e);
        break;
    case 'P':
        history_older(e);
        break;
    case 'T':
        line_transpose(l);
        break;
    case 'U':
        line_kill_left(l);
        break;
    case 'W':
        line_kill_word_left(l);
        break;
    case 'Y':
        line_yank(l);
        break;
    case 'Z':
        suspend(e, saved);
        break;
    default:
        break;
    }
}

static void on_key(struct editor *e, const struct key *key, struct termios *saved)
{
    struct line *l = &e->line;
    switch (key->code) {
    case KEY_TEXT:
        line_insert(l, key->text, key->len);
        break;
    case KEY_ENTER:
        finish(e, EDITOR_LINE);
        break;
    case KEY_BACKSPACE:
        line_backspace(l);
        break;
    case KEY_DELETE:
        line_delete(l);
        break;
    case KEY_LEFT:
        line_left(l);
        break;
    case KEY_RIGHT:
        line_right(l);
        break;
    case KEY_UP:
        history_older(e);
        break;
    case KEY_DOWN:
        history_newer(e);
        break;
    case KEY_HOME:
        l->cursor = 0;
        break;
    case KEY_END:
        l->cursor = l->text.len;
        break;
    case KEY_WORD_LEFT:
        line_word_left(l);
        break;
    case KEY_WORD_RIGHT:
        line_word_right(l);
        break;
    case KEY_KILL_WORD_RIGHT:
        line_kill_word_right(l);
        break;
    case KEY_CONTROL:
        on_control(e, key->letter, saved);
        break;
    case KEY_PASTE_BEGIN:
    case KEY_PASTE_END:
        e->pasting = key->code == KEY_PASTE_BEGIN;
        break;
    default:
        break;
    }
}

/* Handles keys until the line is entered or left. The row is drawn anew when no further key is
 * waiting, so that a paste is not drawn byte by byte. */
static void edit(struct editor *e, struct termios *saved)
{
    struct key key;
    char bytes[8];
    while (!e->done) {
        if (e->typed.len == 0) {
            refresh(e, true);
        }
        if (!next_key(e, &key, bytes)) {
            finish(e, EDITOR_END);
            break;
        }
        bool alive = true;
        while (alive && (key.code == KEY_TAB || (key.code == KEY_CONTROL && key.letter == 'R'))) {
            alive = key.code == KEY_TAB ? complete_line(e, &key, bytes)
                                        : search_history(e, &key, bytes);
        }
        if (!alive) {
            finish(e, EDITOR_END);
            break;
        }
        on_key(e, &key, saved);
    }
}

/* ---- without editing ---- */

static enum editor_result read_plain(const char *prompt, struct text *out)
{
    if (isatty(STDIN_FILENO)) {
        fputs(prompt, stdout);
        fflush(stdout);
    }
    char *line = NULL;
    size_t capacity = 0;
    ssize_t len;
    do {
        clearerr(stdin);
        errno = 0;
        len = getline(&line, &capacity, stdin);
    } while (len < 0 && errno == EINTR);
    if (len > 0) {
        if (line[len - 1] == '\n') {
            len--;
        }
        text_append(out, line, (size_t)len);
    }
    free(line);
    return len < 0 ? EDITOR_END : EDITOR_LINE;
}

/* ---- public ---- */

enum editor_result editor_read(struct editor *e, const char *prompt, struct text *out)
{
    struct termios saved;
    text_clear(out);
    fflush(stdout);
    if (!is_capable() || !enter_raw(&saved)) {
        return read_plain(prompt, out);
    }
    write_string("\x1b[?2004h"); /* pasted text comes in brackets */
    e->prompt = prompt;
    e->done = false;
    e->history_at = history_count(e->history);
    line_set(&e->line, "", 0);
    edit(e, &saved);
    if (!e->ended) {
        e->line.cursor = e->line.text.len;
        if (e->result == EDITOR_LINE && e->line.text.len > 0) {
            refresh(e, false); /* the whole line stays on the screen, without the hint */
        }
        write_string("\x1b[?2004l\n");
    }
    leave_raw(&saved);
    text_append(out, e->line.text.data, e->line.text.len);
    e->prompt = NULL;
    return e->result;
}

char *editor_read_secret(const char *prompt)
{
    struct termios saved;
    struct text secret;
    text_init(&secret);
    if (!isatty(STDIN_FILENO) || !enter_raw(&saved)) {
        enum editor_result plain = read_plain("", &secret);
        char *line = plain == EDITOR_LINE ? tool_copy(secret.data, secret.len) : NULL;
        text_deinit(&secret);
        return line;
    }
    fputs(prompt, stderr);
    bool entered = false;
    char c;
    while (!entered && read(STDIN_FILENO, &c, 1) == 1 && c != 3 && c != 4) {
        if (c == '\r' || c == '\n') {
            entered = true;
        } else if (c == 0x7f || c == '\b') {
            if (secret.len > 0) {
                text_truncate(&secret, secret.len - 1);
                fputs("\b \b", stderr);
            }
        } else if ((unsigned char)c >= 0x20) {
            text_append_char(&secret, c);
            fputc('*', stderr);
        }
    }
    fputs("\r\n", stderr);
    leave_raw(&saved);
    char *out = entered ? tool_copy(secret.data, secret.len) : NULL;
    explicit_bzero(secret.data, secret.len);
    text_deinit(&secret);
    return out;
}
