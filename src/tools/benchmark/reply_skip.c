/* The reply skipper of reply_skip.h. */
#include "tools/benchmark/reply_skip.h"

#include <assert.h>
#include <string.h>

/* Far above what a server can hold, far below what could overflow `open`. */
#define LENGTH_MAX (UINT64_C(1) << 40)
#define OPEN_MAX (UINT64_C(1) << 48)
/* Decimal digits of LENGTH_MAX. */
#define LENGTH_DIGITS_MAX 13

void bench_reply_skip_init(struct bench_reply_skip *skip)
{
    assert(skip != NULL);
    memset(skip, 0, sizeof(*skip));
    skip->state = BENCH_SKIP_TYPE;
}

static void keep_error_text(struct bench_reply_skip *skip, const char *bytes, size_t len)
{
    size_t room = BENCH_ERROR_TEXT_MAX - skip->error_len;
    size_t take = len < room ? len : room;
    memcpy(skip->error_text + skip->error_len, bytes, take);
    skip->error_len += (uint32_t)take;
}

/* One element has ended; returns 1 when it was the last of a reply to a request. */
static int element_ended(struct bench_reply_skip *skip)
{
    assert(skip->open > 0);
    skip->state = BENCH_SKIP_TYPE;
    skip->keep_text = false;
    if (--skip->open > 0) {
        return 0;
    }
    bool counts = !skip->in_push;
    if (skip->outer_error) {
        skip->error_count++;
    }
    skip->in_push = false;
    skip->outer_error = false;
    return counts ? 1 : 0;
}

/* The type byte of an element; false when it is none. */
static bool type_begins(struct bench_reply_skip *skip, char type)
{
    bool outermost = skip->open == 0;
    skip->type = type;
    if (outermost) {
        skip->open = 1;
    }
    switch (type) {
    case '-':
        skip->outer_error = outermost;
        skip->keep_text = outermost && skip->error_count == 0;
        skip->state = BENCH_SKIP_LINE;
        return true;
    case '+':
    case ':':
    case ',':
    case '#':
    case '_':
    case '(':
        skip->state = BENCH_SKIP_LINE;
        return true;
    case '!':
        skip->outer_error = outermost;
        break;
    case '>':
        skip->in_push = outermost;
        break;
    case '$':
    case '=':
    case '*':
    case '~':
    case '%':
    case '|':
        break;
    default:
        return false;
    }
    skip->state = BENCH_SKIP_LENGTH;
    skip->length = 0;
    skip->digits = 0;
    skip->negative = false;
    return true;
}

/* The elements of an aggregate become open ones, and the aggregate itself ends. */
static int aggregate_begins(struct bench_reply_skip *skip, uint64_t elements)
{
    if (skip->open > OPEN_MAX) {
        skip->state = BENCH_SKIP_BROKEN;
        return 0;
    }
    skip->open += elements;
    if (skip->type == '|') {
        /* The announced element follows the pairs: what was open stays open. */
        skip->state = BENCH_SKIP_TYPE;
        return 0;
    }
    return element_ended(skip);
}

/* The line with a length has ended; returns 1 when that ended a reply. */
static int length_ended(struct bench_reply_skip *skip)
{
    if (skip->digits == 0 || (skip->negative && skip->length != 1)) {
        skip->state = BENCH_SKIP_BROKEN;
        return 0;
    }
    uint64_t length = skip->negative ? 0 : skip->length;
    switch (skip->type) {
    case '*':
    case '~':
    case '>':
        return aggregate_begins(skip, length);
    case '%':
    case '|':
        return aggregate_begins(skip, 2 * length);
    default:
        if (skip->negative) {
            return element_ended(skip);
        }
        skip->state = BENCH_SKIP_BODY;
        skip->keep_text = skip->outer_error && skip->error_count == 0;
        return 0;
    }
}

/* Reads the digits of a length; returns the first byte not read. */
static const char *length_read(struct bench_reply_skip *skip, const char *at, const char *end)
{
    while (at < end) {
        char c = *at++;
        if (c >= '0' && c <= '9' && skip->digits < LENGTH_DIGITS_MAX) {
            skip->length = skip->length * 10 + (uint64_t)(c - '0');
            skip->digits++;
        } else if (c == '\r') {
            skip->state = skip->length <= LENGTH_MAX ? BENCH_SKIP_LENGTH_LF : BENCH_SKIP_BROKEN;
            break;
        } else if (c == '-' && skip->digits == 0 && !skip->negative) {
            skip->negative = true;
        } else {
            skip->state = BENCH_SKIP_BROKEN;
            break;
        }
    }
    return at;
}

/* Skips a simple line; returns the first byte behind what it read. */
static const char *line_read(struct bench_reply_skip *skip, const char *at, const char *end,
                             int64_t *replies)
{
    const char *lf = memchr(at, '\n', (size_t)(end - at));
    const char *stop = lf != NULL ? lf : end;
    if (skip->keep_text) {
        keep_error_text(skip, at, (size_t)(stop - at));
        while (lf != NULL && skip->error_len > 0 && skip->error_text[skip->error_len - 1] == '\r') {
            skip->error_len--;
        }
    }
    if (lf == NULL) {
        return end;
    }
    *replies += element_ended(skip);
    return lf + 1;
}

static const char *body_read(struct bench_reply_skip *skip, const char *at, const char *end)
{
    uint64_t here = (uint64_t)(end - at);
    uint64_t take = skip->length < here ? skip->length : here;
    if (skip->keep_text) {
        keep_error_text(skip, at, take);
    }
    skip->length -= take;
    if (skip->length == 0) {
        skip->state = BENCH_SKIP_BODY_CR;
    }
    return at + take;
}

int64_t bench_reply_skip_feed(struct bench_reply_skip *skip, const char *bytes, size_t len)
{
    assert(skip != NULL && (bytes != NULL || len == 0));
    const char *at = bytes;
    const char *end = len ? bytes + len : bytes;
    int64_t replies = 0;
    while (at < end) {
        switch (skip->state) {
        case BENCH_SKIP_TYPE:
            if (!type_begins(skip, *at++)) {
                skip->state = BENCH_SKIP_BROKEN;
            }
            break;
        case BENCH_SKIP_LINE:
            at = line_read(skip, at, end, &replies);
            break;
        case BENCH_SKIP_LENGTH:
            at = length_read(skip, at, end);
            break;
        case BENCH_SKIP_LENGTH_LF:
            if (*at++ == '\n') {
                replies += length_ended(skip);
            } else {
                skip->state = BENCH_SKIP_BROKEN;
            }
            break;
        case BENCH_SKIP_BODY:
            at = body_read(skip, at, end);
            break;
        case BENCH_SKIP_BODY_CR:
            skip->state = *at++ == '\r' ? BENCH_SKIP_BODY_LF : BENCH_SKIP_BROKEN;
            break;
        case BENCH_SKIP_BODY_LF:
            if (*at++ == '\n') {
                replies += element_ended(skip);
            } else {
                skip->state = BENCH_SKIP_BROKEN;
            }
            break;
        case BENCH_SKIP_BROKEN:
            return -1;
        }
    }
    return skip->state == BENCH_SKIP_BROKEN ? -1 : replies;
}
