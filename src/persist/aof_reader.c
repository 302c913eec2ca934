/* See aof_reader.h. */
#include "persist/aof_reader.h"

#include "base/mem.h"
#include "base/num.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define READ_BYTES ((size_t)256 * 1024)
/* "*" or "$", the digits of a number, CR and LF. */
#define HEAD_MAX_BYTES 24
/* Longest line of a note. */
#define NOTE_MAX_BYTES 1024

void aof_reader_init(struct aof_reader *r, int fd, uint64_t size, uint64_t at)
{
    *r = (struct aof_reader){.fd = fd, .size = size, .from = at, .at = at};
}

void aof_reader_deinit(struct aof_reader *r)
{
    buf_deinit(&r->window);
    mem_free(r->argv);
}

void aof_reader_seek(struct aof_reader *r, uint64_t at)
{
    if (at < r->from || at > r->from + r->window.len) {
        r->from = at;
        buf_clear(&r->window);
    }
    r->at = at;
}

/* Has the bytes from r->at up to `end` of the file in the window; AOF_COMMAND when they are. */
static enum aof_record fill(struct aof_reader *r, uint64_t end)
{
    if (end > r->size) {
        return AOF_TORN;
    }
    if (end > r->from + r->window.len && r->at > r->from) {
        buf_consume(&r->window, (size_t)(r->at - r->from));
        r->from = r->at;
    }
    while (end > r->from + r->window.len) {
        uint64_t begin = r->from + r->window.len;
        size_t want = end - begin > READ_BYTES ? (size_t)(end - begin) : READ_BYTES;
        want = want > r->size - begin ? (size_t)(r->size - begin) : want;
        ssize_t got = pread(r->fd, buf_reserve(&r->window, want), want, (off_t)begin);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            errno = got < 0 ? errno : EIO;
            return AOF_UNREADABLE;
        }
        r->window.len += (size_t)got;
    }
    return AOF_COMMAND;
}

static enum aof_record damaged(struct aof_reader *r, uint64_t at, const char *error)
{
    r->error = error;
    r->error_at = at;
    return AOF_DAMAGED;
}

static const char *bytes_at(const struct aof_reader *r, uint64_t at)
{
    return r->window.data + (at - r->from);
}

/* Finds the end of a line of at most `max` bytes that begins at `at`: *end is behind it. */
static enum aof_record find_line(struct aof_reader *r, uint64_t at, size_t max, uint64_t *end)
{
    uint64_t most = r->size - at < max ? r->size : at + max;
    enum aof_record result = fill(r, most);
    if (result != AOF_COMMAND) {
        return result;
    }
    const char *begin = bytes_at(r, at);
    const char *feed = memchr(begin, '\n', (size_t)(most - at));
    if (!feed) {
        return most == r->size ? AOF_TORN : damaged(r, at, "a line without end");
    }
    *end = at + (uint64_t)(feed - begin) + 1;
    return AOF_COMMAND;
}

/* Reads "<kind><number>CRLF" at *at, and goes behind it. */
static enum aof_record read_head(struct aof_reader *r, char kind, uint64_t *at, int64_t *number)
{
    uint64_t end;
    if (*at == r->size) {
        return AOF_TORN;
    }
    enum aof_record result = fill(r, *at + 1);
    if (result != AOF_COMMAND) {
        return result;
    }
    if (*bytes_at(r, *at) != kind) {
        return damaged(r, *at,
                       kind == '*' ? "a command does not begin with *"
                                   : "a word does not begin with $");
    }
    result = find_line(r, *at, HEAD_MAX_BYTES, &end);
    if (result != AOF_COMMAND) {
        return result;
    }
    const char *line = bytes_at(r, *at);
    size_t len = (size_t)(end - *at);
    if (len < 4 || line[len - 2] != '\r' || !num_parse_i64(slice_of(line + 1, len - 3), number) ||
        *number < (kind == '*' ? 1 : 0)) {
        return damaged(r, *at, "a number is damaged");
    }
    *at = end;
    return AOF_COMMAND;
}

/* Words are noted by their offsets first: reading on may move the window. */
static enum aof_record read_word(struct aof_reader *r, uint64_t *at, struct slice *word)
{
    int64_t len;
    enum aof_record result = read_head(r, '$', at, &len);
    if (result != AOF_COMMAND) {
        return result;
    }
    if ((uint64_t)len > r->size - *at || r->size - *at - (uint64_t)len < 2) {
        return AOF_TORN;
    }
    result = fill(r, *at + (uint64_t)len + 2);
    if (result != AOF_COMMAND) {
        return result;
    }
    if (memcmp(bytes_at(r, *at) + len, "\r\n", 2) != 0) {
        return damaged(r, *at + (uint64_t)len, "a word does not end where it should");
    }
    *word = slice_of((const char *)(uintptr_t)*at, (size_t)len);
    *at += (uint64_t)len + 2;
    return AOF_COMMAND;
}

static void make_room(struct aof_reader *r, int words)
{
    if (words > r->capacity) {
        r->capacity = words > 2 * r->capacity ? words : 2 * r->capacity;
        r->argv = mem_realloc(r->argv, (size_t)r->capacity * sizeof(r->argv[0]));
    }
}

static enum aof_record read_command(struct aof_reader *r)
{
    int64_t words;
    uint64_t at = r->at;
    enum aof_record result = read_head(r, '*', &at, &words);
    if (result != AOF_COMMAND) {
        return result;
    }
    if (words > AOF_MAX_WORDS) {
        return damaged(r, r->at, "too many words");
    }
    for (int i = 0; i < words && result == AOF_COMMAND; i++) {
        make_room(r, i + 1);
        result = read_word(r, &at, &r->argv[i]);
    }
    if (result != AOF_COMMAND) {
        return result;
    }
    r->argc = (int)words;
    for (int i = 0; i < r->argc; i++) {
        r->argv[i].ptr = bytes_at(r, (uint64_t)(uintptr_t)r->argv[i].ptr);
    }
    r->at = at;
    return AOF_COMMAND;
}

static enum aof_record read_note(struct aof_reader *r)
{
    uint64_t end;
    enum aof_record result = find_line(r, r->at, NOTE_MAX_BYTES, &end);
    if (result != AOF_COMMAND) {
        return result;
    }
    const char *line = bytes_at(r, r->at);
    size_t len = (size_t)(end - r->at) - 1;
    len -= len > 0 && line[len - 1] == '\r';
    make_room(r, 1);
    r->argc = 1;
    r->argv[0] = slice_of(line + 1, len - 1);
    r->at = end;
    return AOF_NOTE;
}

/* Where the zeros begin that the file ends in; its size when it does not. */
static uint64_t find_zeros(const struct aof_reader *r)
{
    char bytes[4096];
    uint64_t begin = r->size;
    while (begin > r->at) {
        size_t want = begin - r->at < sizeof(bytes) ? (size_t)(begin - r->at) : sizeof(bytes);
        ssize_t got = pread(r->fd, bytes, want, (off_t)(begin - want));
        if (got != (ssize_t)want) {
            return r->size;
        }
        while (want > 0 && bytes[want - 1] == '\0') {
            want--;
            begin--;
        }
        if (want > 0) {
            break;
        }
    }
    return begin;
}

/* When the power goes, a file system may have noted the file's new size and not yet all that stands
 * there: it is zeros then. A record never ends in one, so nothing whole is taken for torn. */
static bool is_torn(const struct aof_reader *r)
{
    uint64_t zeros = find_zeros(r);
    return zeros < r->size && zeros <= r->error_at + HEAD_MAX_BYTES;
}

enum aof_record aof_reader_next(struct aof_reader *r)
{
    if (r->at >= r->size) {
        return AOF_END;
    }
    enum aof_record result = fill(r, r->at + 1);
    if (result != AOF_COMMAND) {
        return result;
    }
    result = *bytes_at(r, r->at) == '#' ? read_note(r) : read_command(r);
    return result == AOF_DAMAGED && is_torn(r) ? AOF_TORN : result;
}
