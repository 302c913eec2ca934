/* See aof_manifest.h. */
#include "persist/aof_manifest.h"

#include "base/crc.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/option.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Words of a line: names and values in pairs, some of which we do not know. */
#define WORDS_MAX 64
/* Of the first line: the word before the checksum, its digits, and the line with its end. */
#define SUM_WORD "# crc64 "
#define SUM_DIGITS 16
#define SUM_LINE_BYTES (sizeof(SUM_WORD) - 1 + SUM_DIGITS + 1)

void aof_manifest_deinit(struct aof_manifest *m)
{
    for (int i = 0; i < m->count; i++) {
        mem_free(m->files[i].name);
    }
    mem_free(m->files);
    *m = (struct aof_manifest){0};
}

/* ---- changing ---- */

static int rank(enum aof_kind kind)
{
    return kind == AOF_BASE ? 0 : kind == AOF_INCREMENT ? 1 : 2;
}

/* Puts a file behind those of its kind. */
static void insert(struct aof_manifest *m, struct aof_file file)
{
    int at = m->count;
    if (m->count == m->capacity) {
        m->capacity = m->capacity ? 2 * m->capacity : 4;
        m->files = mem_realloc(m->files, (size_t)m->capacity * sizeof(m->files[0]));
    }
    while (at > 0 && rank(m->files[at - 1].kind) > rank(file.kind)) {
        m->files[at] = m->files[at - 1];
        at--;
    }
    m->files[at] = file;
    m->count++;
}

static struct aof_file take(struct aof_manifest *m, int at)
{
    struct aof_file file = m->files[at];
    m->count--;
    memmove(m->files + at, m->files + at + 1, (size_t)(m->count - at) * sizeof(m->files[0]));
    return file;
}

static void make_history(struct aof_manifest *m, int at)
{
    struct aof_file file = take(m, at);
    file.kind = AOF_HISTORY;
    insert(m, file);
}

void aof_manifest_add(struct aof_manifest *m, struct slice name, int64_t seq, enum aof_kind kind)
{
    if (kind == AOF_BASE && aof_manifest_base(m)) {
        make_history(m, 0);
    }
    insert(m, (struct aof_file){mem_dup(name.ptr, name.len), seq, kind});
    if (kind == AOF_BASE && seq > m->base_seq) {
        m->base_seq = seq;
    } else if (kind == AOF_INCREMENT && seq > m->increment_seq) {
        m->increment_seq = seq;
    }
}

void aof_manifest_retire(struct aof_manifest *m, int keep)
{
    int first = aof_manifest_base(m) ? 1 : 0;
    for (int left = aof_manifest_increments(m) - keep; left > 0; left--) {
        make_history(m, first);
    }
}

void aof_manifest_forget_history(struct aof_manifest *m)
{
    while (m->count > 0 && m->files[m->count - 1].kind == AOF_HISTORY) {
        mem_free(m->files[--m->count].name);
    }
}

void aof_manifest_copy(struct aof_manifest *to, const struct aof_manifest *from)
{
    assert(to->count == 0);
    for (int i = 0; i < from->count; i++) {
        const struct aof_file *f = &from->files[i];
        insert(to, (struct aof_file){mem_dup(f->name, strlen(f->name)), f->seq, f->kind});
    }
    to->base_seq = from->base_seq;
    to->increment_seq = from->increment_seq;
}

/* ---- asking ---- */

const struct aof_file *aof_manifest_base(const struct aof_manifest *m)
{
    return m->count > 0 && m->files[0].kind == AOF_BASE ? &m->files[0] : NULL;
}

const struct aof_file *aof_manifest_increment(const struct aof_manifest *m, int i)
{
    int at = i + (aof_manifest_base(m) ? 1 : 0);
    return at < m->count && m->files[at].kind == AOF_INCREMENT ? &m->files[at] : NULL;
}

int aof_manifest_increments(const struct aof_manifest *m)
{
    int count = 0;
    while (aof_manifest_increment(m, count)) {
        count++;
    }
    return count;
}

void aof_manifest_next_base(const struct aof_manifest *m, const char *stem, bool rdb,
                            struct buf *name)
{
    buf_clear(name);
    buf_printf(name, "%s.%" PRId64 ".base.%s", stem, m->base_seq + 1, rdb ? "rdb" : "aof");
}

void aof_manifest_next_increment(const struct aof_manifest *m, const char *stem, struct buf *name)
{
    buf_clear(name);
    buf_printf(name, "%s.%" PRId64 ".incr.aof", stem, m->increment_seq + 1);
}

/* ---- the text ---- */

/* Names with blanks, quotes or unprintable bytes are quoted. */
static bool wants_quotes(const char *name)
{
    for (const char *p = name; *p; p++) {
        if (*p <= ' ' || *p > '~' || *p == '"' || *p == '\'' || *p == '\\') {
            return true;
        }
    }
    return *name == '\0';
}

/* The first line, for what follows it. */
static void format_sum(struct slice rest, char line[SUM_LINE_BYTES + 1])
{
    snprintf(line, SUM_LINE_BYTES + 1, SUM_WORD "%016" PRIx64 "\n", crc64(0, rest.ptr, rest.len));
}

/* False when there is a checksum and it is another one. */
static bool sum_is_right(struct slice text)
{
    char line[SUM_LINE_BYTES + 1];
    if (text.len < sizeof(SUM_WORD) - 1 || memcmp(text.ptr, SUM_WORD, sizeof(SUM_WORD) - 1) != 0) {
        return true;
    }
    if (text.len < SUM_LINE_BYTES) {
        return false;
    }
    format_sum(slice_of(text.ptr + SUM_LINE_BYTES, text.len - SUM_LINE_BYTES), line);
    return memcmp(text.ptr, line, SUM_LINE_BYTES) == 0;
}

static void format_files(const struct aof_manifest *m, struct buf *out)
{
    for (int i = 0; i < m->count; i++) {
        const struct aof_file *f = &m->files[i];
        buf_append_cstr(out, "file ");
        if (wants_quotes(f->name)) {
            buf_append_quoted(out, slice_cstr(f->name));
        } else {
            buf_append_cstr(out, f->name);
        }
        buf_printf(out, " seq %" PRId64 " type %c\n", f->seq, (char)f->kind);
    }
}

void aof_manifest_format(const struct aof_manifest *m, struct buf *out)
{
    struct buf files = {0};
    char line[SUM_LINE_BYTES + 1];
    format_files(m, &files);
    format_sum(buf_slice(&files), line);
    buf_append_cstr(out, line);
    buf_append_slice(out, buf_slice(&files));
    buf_deinit(&files);
}

static bool is_plain_name(struct slice name)
{
    return name.len > 0 && !memchr(name.ptr, '/', name.len) && !memchr(name.ptr, '\0', name.len) &&
           !slice_equal(name, SLICE(".")) && !slice_equal(name, SLICE(".."));
}

/* Takes what a line says of a file; NULL, or the fault. */
static const char *parse_words(const struct slice *words, int count, struct slice *name,
                               int64_t *seq, char *kind)
{
    if (count < 6 || count % 2 != 0) {
        return "not pairs of a word and its value";
    }
    for (int i = 0; i < count; i += 2) {
        if (slice_equal_nocase(words[i], "file")) {
            *name = words[i + 1];
            if (!is_plain_name(*name)) {
                return "a file's name must be without directory";
            }
        } else if (slice_equal_nocase(words[i], "seq")) {
            if (!num_parse_i64(words[i + 1], seq) || *seq <= 0) {
                return "not a sequence number";
            }
        } else if (slice_equal_nocase(words[i], "type")) {
            *kind = words[i + 1].len == 1 ? *words[i + 1].ptr : '?';
        }
    }
    return name->len == 0 || *seq == 0 || *kind == 0 ? "file, seq and type are needed" : NULL;
}

static const char *parse_line(struct aof_manifest *m, struct slice line, struct buf *scratch)
{
    struct slice words[WORDS_MAX], name = {NULL, 0};
    int64_t seq = 0;
    char kind = 0;
    int count = option_split_line(line, words, WORDS_MAX, scratch);
    const char *fault =
        count < 0 ? "unbalanced quotes" : parse_words(words, count, &name, &seq, &kind);
    if (fault) {
        return fault;
    }
    if (m->count == AOF_MANIFEST_MAX_FILES) {
        return "too many files";
    }
    switch (kind) {
    case AOF_BASE:
        if (aof_manifest_base(m)) {
            return "more than one base";
        }
        break;
    case AOF_INCREMENT:
        if (seq <= m->increment_seq) {
            return "increments are not in order";
        }
        break;
    case AOF_HISTORY:
        break;
    default:
        return "not a type of file";
    }
    aof_manifest_add(m, name, seq, (enum aof_kind)kind);
    return NULL;
}

bool aof_manifest_parse(struct aof_manifest *m, struct slice text, const char **error, int *line)
{
    struct buf scratch = {0};
    const char *fault = text.len == 0 ? "the manifest is empty" : NULL;
    *line = 0;
    if (!sum_is_right(text)) {
        fault = "its checksum is another (who has changed it by hand takes that line out)";
        *line = 1;
    }
    while (!fault && text.len > 0) {
        const char *end = memchr(text.ptr, '\n', text.len);
        size_t len = end ? (size_t)(end - text.ptr) : text.len;
        ++*line;
        if (!end || len > AOF_MANIFEST_LINE_BYTES) {
            fault = end ? "the line is too long" : "the last line has no end";
        } else if (len > 0 && *text.ptr == '#') {
            /* a comment */
        } else {
            fault = parse_line(m, slice_of(text.ptr, len), &scratch);
        }
        text = end ? slice_of(end + 1, text.len - len - 1) : slice_of(NULL, 0);
    }
    buf_deinit(&scratch);
    if (fault) {
        aof_manifest_deinit(m);
        *error = fault;
    }
    return !fault;
}
