/* Reads replies out of a stream of bytes: see reader.h.
 *
 * The state between two calls: `stack` holds the chain of aggregates that are open, outermost
 * first; each frame knows how many items are still missing (always at least one while the frame
 * is on the stack). A frame's reply lives in its parent's `items`. That array only moves when an
 * item is added to the parent, which cannot happen while a child is open, so the pointers hold. */
#include "tools/common/reader.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tools/common/text.h"

/* Used bytes at the buffer's front are dropped when they are at least this many. */
#define READER_COMPACT_BYTES (64 * 1024)

struct frame {
    struct reply *node;
    long long missing; /* items still to come, > 0 */
};

struct reader {
    struct text buffer;
    size_t pos;     /* bytes of `buffer` used up */
    size_t scanned; /* from `pos` on, bytes known to hold no CR LF */
    struct reply *root;
    struct frame stack[READER_DEPTH_MAX];
    size_t depth;
    bool failed;
    char error[128];
};

struct reader *reader_create(void)
{
    struct reader *r = tool_calloc(1, sizeof(*r));
    text_init(&r->buffer);
    return r;
}

void reader_destroy(struct reader **r)
{
    if (*r != NULL) {
        reply_destroy(&(*r)->root);
        text_deinit(&(*r)->buffer);
        free(*r);
        *r = NULL;
    }
}

static void reader_check(const struct reader *r)
{
    assert(r->pos <= r->buffer.len);
    assert(r->scanned <= r->buffer.len - r->pos);
    assert(r->depth <= READER_DEPTH_MAX);
    assert(r->depth == 0 || r->root != NULL);
}

char *reader_room(struct reader *r, size_t size_bytes)
{
    if (r->pos == r->buffer.len) {
        text_clear(&r->buffer);
        r->pos = 0;
        r->scanned = 0;
    } else if (r->pos >= READER_COMPACT_BYTES && r->pos >= r->buffer.len / 2) {
        text_remove(&r->buffer, 0, r->pos);
        r->pos = 0;
    }
    return text_reserve(&r->buffer, size_bytes);
}

void reader_received(struct reader *r, size_t len)
{
    text_advance(&r->buffer, len);
}

void reader_feed(struct reader *r, const void *data, size_t len)
{
    if (len > 0) {
        memcpy(reader_room(r, len), data, len);
        reader_received(r, len);
    }
}

const char *reader_error(const struct reader *r)
{
    assert(r->failed);
    return r->error;
}

size_t reader_pending(const struct reader *r)
{
    return r->buffer.len - r->pos;
}

const char *reader_peek(const struct reader *r, size_t *len)
{
    assert(r->depth == 0);
    *len = r->buffer.len - r->pos;
    return r->buffer.data + r->pos;
}

void reader_skip(struct reader *r, size_t count)
{
    reader_check(r);
    assert(r->depth == 0 && count <= r->buffer.len - r->pos);
    r->pos += count;
    r->scanned = 0;
}

static bool fail(struct reader *r, const char *why)
{
    r->failed = true;
    snprintf(r->error, sizeof(r->error), "%s", why);
    return false;
}

static bool fail_type(struct reader *r, char type)
{
    struct text shown;
    text_init(&shown);
    text_append_quoted(&shown, &type, 1);
    r->failed = true;
    snprintf(r->error, sizeof(r->error), "Protocol error, got %s as reply type byte", shown.data);
    text_deinit(&shown);
    return false;
}

/* Finds the line that starts at `pos`. Returns false when it is not complete yet (or the reader
 * failed because it is too long); else its length without CR LF, type byte included. */
static bool find_line(struct reader *r, size_t *len)
{
    const char *start = r->buffer.data + r->pos;
    size_t have = r->buffer.len - r->pos;
    while (r->scanned < have) {
        const char *cr = memchr(start + r->scanned, '\r', have - r->scanned);
        if (cr == NULL) {
            r->scanned = have;
            break;
        }
        r->scanned = (size_t)(cr - start);
        if (r->scanned + 1 == have) {
            break; /* the LF may be next */
        }
        if (cr[1] == '\n') {
            *len = r->scanned;
            return true;
        }
        r->scanned++;
    }
    if (have > READER_LINE_MAX) {
        return fail(r, "Line too long");
    }
    return false;
}

/* Reads all of text[0, len) as a decimal number. */
static bool parse_integer(const char *text, size_t len, long long *out)
{
    char copy[32];
    if (len == 0 || len >= sizeof(copy) || memchr(text, '\0', len) != NULL) {
        return false;
    }
    memcpy(copy, text, len);
    copy[len] = '\0';
    bool digit_first = copy[0] >= '0' && copy[0] <= '9';
    bool sign_first = (copy[0] == '-' || copy[0] == '+') && copy[1] >= '0' && copy[1] <= '9';
    if (!digit_first && !sign_first) {
        return false;
    }
    char *end;
    errno = 0;
    *out = strtoll(copy, &end, 10);
    return errno == 0 && *end == '\0';
}

static bool is_double(const char *text, size_t len)
{
    char copy[400]; /* the longest that %f makes of a double is 1 + 309 + 1 + 6 */
    if (len == 0 || len >= sizeof(copy) || memchr(text, '\0', len) != NULL) {
        return false;
    }
    memcpy(copy, text, len);
    copy[len] = '\0';
    if (strcasecmp(copy, "inf") == 0 || strcasecmp(copy, "-inf") == 0 ||
        strcasecmp(copy, "nan") == 0 || strcasecmp(copy, "-nan") == 0) {
        return true;
    }
    if (strspn(copy, "0123456789+-.eE") != len) {
        return false;
    }
    char *end;
    (void)strtod(copy, &end);
    return *end == '\0';
}

static bool is_big_number(const char *text, size_t len)
{
    size_t i = len > 0 && (text[0] == '-' || text[0] == '+') ? 1 : 0;
    if (i == len) {
        return false;
    }
    for (; i < len; i++) {
        if (text[i] < '0' || text[i] > '9') {
            return false;
        }
    }
    return true;
}

static void set_text(struct reply *node, enum reply_type type, const char *text, size_t len)
{
    node->type = type;
    node->text = tool_copy(text, len);
    node->len = len;
}

/* Where the next reply goes: the root, or one more item of the innermost open aggregate. */
static struct reply *next_slot(struct reader *r)
{
    if (r->depth == 0) {
        assert(r->root == NULL);
        r->root = tool_malloc(sizeof(*r->root));
        reply_init(r->root);
        return r->root;
    }
    struct reply *parent = r->stack[r->depth - 1].node;
    if (parent->count == parent->capacity) {
        parent->capacity = parent->capacity < 4 ? 4 : parent->capacity * 2;
        parent->items = tool_realloc(parent->items, parent->capacity * sizeof(*parent->items));
    }
    struct reply *slot = &parent->items[parent->count++];
    reply_init(slot);
    return slot;
}

static void consume(struct reader *r, size_t len)
{
    assert(len <= r->buffer.len - r->pos);
    r->pos += len;
    r->scanned = 0;
}

/* Drops the attribute that has just been completed: what it decorates takes its place. */
static void drop_attribute(struct reader *r)
{
    if (r->depth == 0) {
        reply_destroy(&r->root);
        return;
    }
    struct reply *parent = r->stack[r->depth - 1].node;
    parent->count--;
    reply_deinit(&parent->items[parent->count]);
}

/* Counts `node`, which is complete, in its parents. Returns whether the root is complete. */
static bool complete(struct reader *r, const struct reply *node)
{
    for (;;) {
        if (node->type == REPLY_ATTRIBUTE) {
            drop_attribute(r);
            return false;
        }
        if (r->depth == 0) {
            return true;
        }
        struct frame *top = &r->stack[r->depth - 1];
        assert(top->missing > 0);
        if (--top->missing > 0) {
            return false;
        }
        node = top->node;
        r->depth--;
    }
}

/* ---- one function for each shape of line; each returns whether it made progress ---- */

static bool read_aggregate(struct reader *r, enum reply_type type, size_t len, bool *whole)
{
    long long count;
    const char *line = r->buffer.data + r->pos;
    if (!parse_integer(line + 1, len - 1, &count)) {
        return fail(r, "Bad multi-bulk length");
    }
    bool pairs = type == REPLY_MAP || type == REPLY_ATTRIBUTE;
    if (count < -1 || count > READER_ITEMS_MAX || (count < 0 && type != REPLY_ARRAY)) {
        return fail(r, "Multi-bulk length out of range");
    }
    if (count > 0 && r->depth == READER_DEPTH_MAX) {
        return fail(r, "Too deeply nested reply");
    }
    struct reply *node = next_slot(r);
    consume(r, len + 2);
    node->type = count < 0 ? REPLY_NIL : type;
    if (count <= 0) {
        *whole = complete(r, node);
        return true;
    }
    r->stack[r->depth].node = node;
    r->stack[r->depth].missing = pairs ? count * 2 : count;
    r->depth++;
    return true;
}

static bool store_bulk(struct reader *r, char type, const char *body, size_t size, bool *whole)
{
    if (type == '=' && (size < 4 || body[3] != ':')) {
        return fail(r, "Verbatim string 4 bytes of content type are missing or incorrectly "
                       "encoded.");
    }
    struct reply *node = next_slot(r);
    if (type == '=') {
        set_text(node, REPLY_VERBATIM, body + 4, size - 4);
        memcpy(node->verbatim, body, 3);
    } else {
        set_text(node, type == '!' ? REPLY_ERROR : REPLY_STRING, body, size);
    }
    *whole = complete(r, node);
    return true;
}

static bool read_bulk(struct reader *r, char type, size_t len, bool *whole)
{
    long long size;
    const char *line = r->buffer.data + r->pos;
    if (!parse_integer(line + 1, len - 1, &size)) {
        return fail(r, "Bad bulk string length");
    }
    if (size < -1 || size > READER_BULK_MAX || (size < 0 && type != '$')) {
        return fail(r, "Bulk string length out of range");
    }
    if (size < 0) {
        struct reply *node = next_slot(r);
        consume(r, len + 2);
        *whole = complete(r, node);
        return true;
    }
    size_t needed = len + 2 + (size_t)size + 2;
    if (r->buffer.len - r->pos < needed) {
        return false; /* the line is parsed again when more has come; it is short */
    }
    const char *body = line + len + 2;
    if (body[size] != '\r' || body[size + 1] != '\n') {
        return fail(r, "Bulk string is not followed by CR LF");
    }
    if (!store_bulk(r, type, body, (size_t)size, whole)) {
        return false;
    }
    consume(r, needed);
    return true;
}

static bool read_line(struct reader *r, char type, size_t len, bool *whole)
{
    const char *rest = r->buffer.data + r->pos + 1;
    size_t rest_len = len - 1;
    struct reply value;
    reply_init(&value);
    switch (type) {
    case ':':
        value.type = REPLY_INTEGER;
        if (!parse_integer(rest, rest_len, &value.integer)) {
            return fail(r, "Bad integer value");
        }
        break;
    case '#':
        value.type = REPLY_BOOL;
        value.boolean = rest_len == 1 && (rest[0] == 't' || rest[0] == 'T');
        if (rest_len != 1 || strchr("tTfF", rest[0]) == NULL || rest[0] == '\0') {
            return fail(r, "Bad bool value");
        }
        break;
    case '_':
        if (rest_len != 0) {
            return fail(r, "Bad nil value");
        }
        break;
    case ',':
        if (!is_double(rest, rest_len)) {
            return fail(r, "Bad double value");
        }
        set_text(&value, REPLY_DOUBLE, rest, rest_len);
        break;
    case '(':
        if (!is_big_number(rest, rest_len)) {
            return fail(r, "Bad bignum value");
        }
        set_text(&value, REPLY_BIGNUMBER, rest, rest_len);
        break;
    default:
        assert(type == '+' || type == '-');
        set_text(&value, type == '+' ? REPLY_STATUS : REPLY_ERROR, rest, rest_len);
        break;
    }
    struct reply *node = next_slot(r);
    *node = value;
    consume(r, len + 2);
    *whole = complete(r, node);
    return true;
}

static bool aggregate_type(char type, enum reply_type *out)
{
    switch (type) {
    case '*':
        *out = REPLY_ARRAY;
        return true;
    case '%':
        *out = REPLY_MAP;
        return true;
    case '~':
        *out = REPLY_SET;
        return true;
    case '>':
        *out = REPLY_PUSH;
        return true;
    case '|':
        *out = REPLY_ATTRIBUTE;
        return true;
    default:
        return false;
    }
}

/* Uses up one item, or one opening line of an aggregate. Returns false when it could not: too few
 * bytes, or a failure. */
static bool step(struct reader *r, bool *whole)
{
    if (r->pos == r->buffer.len) {
        return false;
    }
    char type = r->buffer.data[r->pos];
    if (type == '\0' || strchr("+-:$*_#,(!=%~>|", type) == NULL) {
        return fail_type(r, type);
    }
    size_t len = 0;
    if (!find_line(r, &len)) {
        return false;
    }
    enum reply_type aggregate;
    if (aggregate_type(type, &aggregate)) {
        return read_aggregate(r, aggregate, len, whole);
    }
    if (type == '$' || type == '=' || type == '!') {
        return read_bulk(r, type, len, whole);
    }
    return read_line(r, type, len, whole);
}

enum reader_result reader_next(struct reader *r, struct reply **out)
{
    *out = NULL;
    reader_check(r);
    bool whole = false;
    while (!r->failed && !whole) {
        if (!step(r, &whole) && !r->failed) {
            return READER_MORE;
        }
    }
    if (r->failed) {
        return READER_ERROR;
    }
    assert(r->depth == 0);
    *out = r->root;
    r->root = NULL;
    reader_check(r);
    return READER_REPLY;
}
