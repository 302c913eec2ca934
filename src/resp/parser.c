/* See parser.h. A request that lies whole in the bytes at hand is parsed straight into its argument
 * vector. One that does not leaves its arguments as offsets in parser->args, and the next call goes
 * on behind them, so that a byte is looked at once, however the stream is cut. */
#include "resp/parser.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/option.h"
#include "resp/limits.h"

#include <assert.h>
#include <stdio.h>

/* Requests of up to so many arguments get their vector at once; beyond, it grows as arguments come,
 * since a count is only somebody's word. */
#define DIRECT_ARGS 1024
/* Room that a long bulk gets on its announcement, and by how much it grows each time that much has
 * come: a length is only somebody's word, and 512 KiB of untouched pages cost next to nothing.
 * Values of a few megabytes move once at most. */
#define BIG_FIRST_BYTES ((size_t)512 * 1024)
#define BIG_GROWTH 16

void parser_init(struct parser *p)
{
    *p = (struct parser){.args_expected = -1, .bulk_len = -1};
}

static void release_args(struct parser *p)
{
    for (uint32_t i = 0; p->has_blobs && i < p->arg_count; i++) {
        if (p->args[i].blob) {
            blob_release(&p->args[i].blob);
        }
    }
    p->arg_count = 0;
    p->has_blobs = false;
    p->blob_bytes = 0;
}

void parser_deinit(struct parser *p)
{
    release_args(p);
    if (p->big) {
        blob_release(&p->big);
    }
    mem_free(p->args);
    parser_init(p);
}

size_t parser_big_missing(const struct parser *p)
{
    return p->big ? (size_t)p->bulk_len + 2 - p->big->len : 0;
}

char *parser_big_reserve(struct parser *p, size_t *room)
{
    size_t missing = parser_big_missing(p);
    assert(missing > 0);
    if (p->big->len == p->big->capacity) {
        size_t more = BIG_GROWTH * p->big->len, whole = p->big->len + missing;
        struct blob *grown = blob_try_reserve(p->big, more < whole ? more : whole);
        if (!grown) {
            return NULL;
        }
        p->big = grown;
    }
    size_t spare = p->big->capacity - p->big->len;
    *room = spare < missing ? spare : missing;
    return p->big->bytes + p->big->len;
}

size_t parser_memory_bytes(const struct parser *p)
{
    return p->arg_capacity * sizeof(*p->args) + p->blob_bytes + (p->big ? p->big->capacity : 0);
}

void parser_release(struct request *request)
{
    for (int i = 0; request->blobs && i < request->argc; i++) {
        if (request->blobs[i]) {
            blob_release(&request->blobs[i]);
        }
    }
    request->blobs = NULL;
}

/* ---- copies: the argument vector, the blobs, the bytes of what is in no blob ---- */

size_t request_copy_bytes(const struct request *request)
{
    size_t each = sizeof(struct slice) + (request->blobs ? sizeof(struct blob *) : 0);
    size_t bytes = (size_t)request->argc * each;
    for (int i = 0; i < request->argc; i++) {
        bytes += request->blobs && request->blobs[i] ? 0 : request->argv[i].len;
    }
    return bytes;
}

struct request request_copy(const struct request *request, void *block)
{
    size_t argc = (size_t)request->argc;
    struct request copy = {.argc = request->argc, .argv = block};
    char *at = (char *)(copy.argv + argc);
    if (request->blobs) {
        copy.blobs = (struct blob **)(void *)at;
        at += argc * sizeof(struct blob *);
    }
    for (size_t i = 0; i < argc; i++) {
        struct blob *blob = request->blobs ? request->blobs[i] : NULL;
        copy.argv[i] = request->argv[i];
        if (blob) {
            copy.blobs[i] = blob_acquire(blob);
            continue;
        }
        if (copy.blobs) {
            copy.blobs[i] = NULL;
        }
        memcpy(at, request->argv[i].ptr, request->argv[i].len);
        copy.argv[i].ptr = at;
        at += request->argv[i].len;
    }
    return copy;
}

/* A text that lives until the thread's next protocol error. */
static const char *expected_dollar(char got)
{
    static _Thread_local char text[64];
    snprintf(text, sizeof(text), "Protocol error: expected '$', got '%c'", got);
    return text;
}

/* ---- lines ---- */

/* Bytes of a '*' or '$' line between its type byte and its LF. */
#define NUMBER_MAX_BYTES (PARSER_INLINE_MAX_BYTES - 1)

/* Reads "<number>\r\n" at data[*at], behind the line's type byte. DONE moves *at behind it; ERROR:
 * the line is too long. Which of the two it is depends on where the CR stands, not on how much has
 * come: every cut of a stream gives the same. */
static enum parser_result read_number(struct slice data, size_t *at, int64_t *number, bool *valid)
{
    size_t i = *at;
    int64_t n = 0;
    /* The usual case: one to nine digits without a leading zero. */
    while (i < data.len && i - *at < 10 && (unsigned char)(data.ptr[i] - '0') <= 9) {
        n = n * 10 + (data.ptr[i] - '0');
        i++;
    }
    size_t digits = i - *at;
    if (likely(digits > 0 && digits < 10 && i + 1 < data.len && data.ptr[i] == '\r' &&
               (data.ptr[*at] != '0' || digits == 1))) {
        *valid = data.ptr[i + 1] == '\n';
        *number = n;
        *at = i + 2;
        return PARSER_DONE;
    }
    size_t rest = data.len - *at;
    size_t looked_at = rest < NUMBER_MAX_BYTES ? rest : NUMBER_MAX_BYTES;
    const char *cr = memchr(data.ptr + *at, '\r', looked_at);
    if (!cr || cr + 1 == data.ptr + data.len) {
        return !cr && rest > looked_at ? PARSER_ERROR : PARSER_MORE;
    }
    *valid = cr[1] == '\n' &&
             num_parse_i64(slice_of(data.ptr + *at, (size_t)(cr - data.ptr) - *at), number);
    *at = (size_t)(cr - data.ptr) + 2;
    return PARSER_DONE;
}

static enum parser_result parse_inline(struct slice data, struct arena *arena,
                                       struct request *request, size_t *consumed,
                                       const char **error)
{
    size_t longest = PARSER_INLINE_MAX_BYTES + 1;
    const char *newline = memchr(data.ptr, '\n', data.len < longest ? data.len : longest);
    if (!newline) {
        if (data.len >= longest) {
            *error = "Protocol error: too big inline request";
            return PARSER_ERROR;
        }
        return PARSER_MORE;
    }
    size_t len = (size_t)(newline - data.ptr);
    *consumed = len + 1;
    if (len > 0 && data.ptr[len - 1] == '\r') {
        len--;
    }
    struct slice few[OPTION_MAX_WORDS], *words = few;
    struct buf scratch = {0};
    int count = option_split_line(slice_of(data.ptr, len), words, OPTION_MAX_WORDS, &scratch);
    if (count < 0 && len > 2 * OPTION_MAX_WORDS) {
        /* Perhaps there are more words: as many as the line has room for. */
        int most = (int)(len / 2 + 1);
        words = arena_alloc(arena, (size_t)most * sizeof(*words));
        count = option_split_line(slice_of(data.ptr, len), words, most, &scratch);
    }
    if (count > 0) {
        request->argc = count;
        request->blobs = NULL;
        request->argv = arena_alloc(arena, (size_t)count * sizeof(*request->argv));
        for (int i = 0; i < count; i++) {
            char *copy = arena_alloc(arena, words[i].len + 1);
            memcpy(copy, words[i].ptr, words[i].len);
            request->argv[i] = slice_of(copy, words[i].len);
        }
    }
    buf_deinit(&scratch);
    if (count < 0) {
        *error = "Protocol error: unbalanced quotes in request";
        return PARSER_ERROR;
    }
    return count == 0 ? PARSER_EMPTY : PARSER_DONE;
}

/* ---- the usual request ---- */

/* Arguments of a request that parse_usual takes, and digits of a length that it reads. */
#define USUAL_ARGS 16
#define USUAL_DIGITS 4
/* Type byte, digits, CR LF: bytes that must be there before a header is looked at. */
#define USUAL_HEADER_BYTES (1 + USUAL_DIGITS + 2)

static inline uint32_t load32(const char *p)
{
    uint32_t word;
    memcpy(&word, p, sizeof(word));
    return word;
}

/* Reads "<type><n>\r\n" of up to USUAL_DIGITS digits without a leading zero. NULL when it looks
 * different. */
static inline const char *read_usual_header(const char *p, char type, size_t *number)
{
    uint32_t word = load32(p);
    uint32_t one_digit = (uint32_t)(unsigned char)type | (uint32_t)'\r' << 16 |
                         (uint32_t)'\n'
                             << 24;
    size_t n = ((word >> 8) & 0xff) - '0';
    if (likely((word & 0xffff00ff) == one_digit)) {
        *number = n;
        return likely(n <= 9) ? p + 4 : NULL;
    }
    if (unlikely(*p++ != type || n - 1 > 8)) {
        return NULL;
    }
    size_t second = ((word >> 16) & 0xff) - '0';
    if (likely(word >> 24 == '\r' && p[3] == '\n' && second <= 9)) {
        *number = n * 10 + second;
        return p + 4;
    }
    for (int digits = 1; digits < USUAL_DIGITS && *++p != '\r'; digits++) {
        size_t digit = (unsigned char)(*p - '0');
        if (digit > 9) {
            return NULL;
        }
        n = n * 10 + digit;
    }
    p += *p != '\r'; /* all USUAL_DIGITS were digits: behind the last one */
    if (p[0] != '\r' || p[1] != '\n') {
        return NULL;
    }
    *number = n;
    return p + 2;
}

/* Parses a request that is all there, well formed, of few and short arguments: nearly every one.
 * False when it is anything else, nothing being changed: the general way sees to it. */
static bool parse_usual(const struct parser_limits *limits, struct slice data, struct arena *arena,
                        struct request *request, size_t *consumed)
{
    const char *p = data.ptr, *end;
    size_t count, len;
    if (data.len < USUAL_HEADER_BYTES || !(p = read_usual_header(p, '*', &count)) ||
        count - 1 >= USUAL_ARGS || (int64_t)count > limits->max_args) {
        return false;
    }
    end = data.ptr + data.len;
    struct slice *argv = arena_alloc(arena, count * sizeof(*argv));
    for (size_t i = 0; i < count; i++) {
        /* An empty last argument is shorter than the longest header looked at: the general way has
         * to decide. */
        if (unlikely(end - p < USUAL_HEADER_BYTES || !(p = read_usual_header(p, '$', &len)) ||
                     (size_t)(end - p) < len + 2 || (int64_t)len > limits->max_bulk_bytes ||
                     p[len] != '\r' || p[len + 1] != '\n')) {
            return false;
        }
        argv[i] = slice_of(p, len);
        p += len + 2;
    }
    request->argc = (int)count;
    request->argv = argv;
    request->blobs = NULL;
    *consumed = (size_t)(p - data.ptr);
    return true;
}

/* ---- arguments ---- */

static void save_arg(struct parser *p, size_t offset, size_t len, struct blob *blob)
{
    if (p->arg_count == p->arg_capacity) {
        p->arg_capacity = p->arg_capacity ? 2 * p->arg_capacity : 8;
        p->args = mem_realloc(p->args, p->arg_capacity * sizeof(*p->args));
    }
    p->args[p->arg_count++] = (struct parser_arg){offset, len, blob};
    if (blob) {
        p->has_blobs = true;
        p->blob_bytes += blob->capacity;
    }
}

/* Reads the "$len" line at position. */
static enum parser_result read_bulk_header(struct parser *p, const struct parser_limits *limits,
                                           struct slice data, const char **error)
{
    size_t at = p->position;
    bool valid;
    if (at >= data.len) {
        return PARSER_MORE;
    }
    if (unlikely(data.ptr[at] != '$')) {
        *error = expected_dollar(data.ptr[at]);
        return PARSER_ERROR;
    }
    at++;
    int64_t len;
    enum parser_result result = read_number(data, &at, &len, &valid);
    if (unlikely(result != PARSER_DONE)) {
        *error = "Protocol error: too big bulk count string";
        return result;
    }
    if (unlikely(!valid || len < 0 || len > limits->max_bulk_bytes)) {
        bool stranger = valid && !limits->authenticated && len > limits->max_bulk_bytes &&
                        len <= resp_max_bulk_bytes;
        *error = stranger ? "Protocol error: unauthenticated bulk length"
                          : "Protocol error: invalid bulk length";
        return PARSER_ERROR;
    }
    p->bulk_len = len;
    p->position = at;
    return PARSER_DONE;
}

/* Begins reading a long bulk into its own blob: what has come of it is copied there. */
static enum parser_result start_big(struct parser *p, struct slice data, const char **error)
{
    size_t whole = (size_t)p->bulk_len + 2, come = data.len - p->position;
    size_t first = come < BIG_FIRST_BYTES ? BIG_FIRST_BYTES : come;
    p->big = blob_try_create(first < whole ? first : whole);
    if (!p->big) {
        *error = "Protocol error: no memory for this bulk length";
        return PARSER_ERROR;
    }
    p->big->len = come;
    memcpy(p->big->bytes, data.ptr + p->position, p->big->len);
    return PARSER_BIG;
}

/* Takes the blob as an argument, once it is whole. */
static enum parser_result finish_big(struct parser *p, const char **error)
{
    if (parser_big_missing(p) > 0) {
        return PARSER_MORE;
    }
    struct blob *blob = p->big;
    size_t len = (size_t)p->bulk_len;
    if (blob->bytes[len] != '\r' || blob->bytes[len + 1] != '\n') {
        *error = "Protocol error: expected CRLF after bulk";
        return PARSER_ERROR;
    }
    blob->len = len;
    p->big = NULL;
    p->bulk_len = -1;
    save_arg(p, 0, len, blob);
    return PARSER_DONE;
}

/* Reads one argument's bytes; `*offset` is where they are. */
static enum parser_result read_bulk(struct parser *p, const struct parser_limits *limits,
                                    struct slice data, size_t *offset, size_t *len,
                                    const char **error)
{
    if (p->bulk_len < 0) {
        enum parser_result result = read_bulk_header(p, limits, data, error);
        if (result != PARSER_DONE) {
            return result;
        }
    }
    size_t want = (size_t)p->bulk_len;
    if (unlikely(data.len - p->position < want + 2)) {
        return want > PARSER_BIG_BYTES ? start_big(p, data, error) : PARSER_MORE;
    }
    const char *body = data.ptr + p->position;
    if (unlikely(body[want] != '\r' || body[want + 1] != '\n')) {
        *error = "Protocol error: expected CRLF after bulk";
        return PARSER_ERROR;
    }
    *offset = p->position;
    *len = want;
    p->position += want + 2;
    p->bulk_len = -1;
    return PARSER_DONE;
}

/* The straight way: all arguments are there. On anything else saves what it has. */
static enum parser_result parse_direct(struct parser *p, const struct parser_limits *limits,
                                       struct slice data, struct arena *arena,
                                       struct request *request, const char **error)
{
    int argc = (int)p->args_expected;
    struct slice *argv = arena_alloc(arena, (size_t)argc * sizeof(*argv));
    for (int i = 0; i < argc; i++) {
        size_t offset, len;
        enum parser_result result = read_bulk(p, limits, data, &offset, &len, error);
        if (unlikely(result != PARSER_DONE)) {
            for (int k = 0; k < i; k++) {
                save_arg(p, (size_t)(argv[k].ptr - data.ptr), argv[k].len, NULL);
            }
            return result;
        }
        argv[i] = slice_of(data.ptr + offset, len);
    }
    request->argc = argc;
    request->argv = argv;
    request->blobs = NULL;
    return PARSER_DONE;
}

/* Turns the saved arguments into a request. */
static void hand_over(struct parser *p, struct slice data, struct arena *arena,
                      struct request *request)
{
    size_t count = p->arg_count;
    request->argc = (int)count;
    request->argv = arena_alloc(arena, count * sizeof(*request->argv));
    request->blobs = p->has_blobs ? arena_alloc(arena, count * sizeof(*request->blobs)) : NULL;
    for (size_t i = 0; i < count; i++) {
        struct parser_arg *a = &p->args[i];
        request->argv[i] = a->blob ? blob_slice(a->blob) : slice_of(data.ptr + a->offset, a->len);
        if (request->blobs) {
            request->blobs[i] = a->blob;
        }
    }
    mem_free(p->args);
    p->args = NULL;
    p->arg_count = p->arg_capacity = 0;
    p->has_blobs = false;
    p->blob_bytes = 0;
}

static enum parser_result parse_saved(struct parser *p, const struct parser_limits *limits,
                                      struct slice data, struct arena *arena,
                                      struct request *request, const char **error)
{
    enum parser_result result = p->big ? finish_big(p, error) : PARSER_DONE;
    while (result == PARSER_DONE && p->arg_count < p->args_expected) {
        size_t offset, len;
        result = read_bulk(p, limits, data, &offset, &len, error);
        if (result == PARSER_DONE) {
            save_arg(p, offset, len, NULL);
        }
    }
    if (result == PARSER_DONE) {
        hand_over(p, data, arena, request);
    }
    return result;
}

/* Reads the "*n" line. EMPTY when there are no arguments. */
static enum parser_result start_multibulk(struct parser *p, const struct parser_limits *limits,
                                          struct slice data, const char **error)
{
    size_t at = 1;
    int64_t count;
    bool valid;
    enum parser_result result = read_number(data, &at, &count, &valid);
    if (result != PARSER_DONE) {
        *error = "Protocol error: too big mbulk count string";
        return result;
    }
    if (!valid || count > limits->max_args) {
        bool stranger = valid && !limits->authenticated && count <= INT32_MAX;
        *error = stranger ? "Protocol error: unauthenticated multibulk length"
                          : "Protocol error: invalid multibulk length";
        return PARSER_ERROR;
    }
    p->position = at;
    if (count <= 0) {
        return PARSER_EMPTY;
    }
    p->args_expected = count;
    return PARSER_DONE;
}

/* Whatever is not usual; out of line, so that the usual way saves no registers for it. */
static __attribute__((noinline)) enum parser_result
parse_any(struct parser *p, const struct parser_limits *limits, struct slice data,
          struct arena *arena, struct request *request, size_t *consumed, const char **error)
{
    enum parser_result result;
    bool fresh = p->args_expected < 0;
    if (fresh) {
        if (data.len == 0) {
            return PARSER_MORE;
        }
        if (data.ptr[0] != '*') {
            return parse_inline(data, arena, request, consumed, error);
        }
        result = start_multibulk(p, limits, data, error);
        if (result != PARSER_DONE) {
            *consumed = p->position;
            p->position = 0;
            return result;
        }
    }
    if (fresh && p->args_expected <= DIRECT_ARGS) {
        result = parse_direct(p, limits, data, arena, request, error);
    } else {
        result = parse_saved(p, limits, data, arena, request, error);
    }
    if (result == PARSER_DONE) {
        *consumed = p->position;
        p->args_expected = p->bulk_len = -1;
        p->position = 0;
    }
    return result;
}

enum parser_result parser_next(struct parser *p, const struct parser_limits *limits,
                               struct slice data, struct arena *arena, struct request *request,
                               size_t *consumed, const char **error)
{
    if (likely(p->args_expected < 0 && parse_usual(limits, data, arena, request, consumed))) {
        return PARSER_DONE;
    }
    return parse_any(p, limits, data, arena, request, consumed, error);
}
