/* The data set behind SYNC: see payload.h. */
#include "tools/cli/payload.h"

#include <assert.h>
#include <limits.h>
#include <string.h>

#include "tools/cli/number.h"

static const char eof_word[] = "$EOF:";

bool payload_init(struct payload *p, const char *line, size_t len)
{
    memset(p, 0, sizeof(*p));
    text_init(&p->window);
    if (len == sizeof(eof_word) - 1 + PAYLOAD_MARK_BYTES &&
        memcmp(line, eof_word, sizeof(eof_word) - 1) == 0) {
        p->marked = true;
        memcpy(p->mark, line + sizeof(eof_word) - 1, PAYLOAD_MARK_BYTES);
        return true;
    }
    char digits[24];
    long long announced;
    if (len < 2 || len > sizeof(digits) || line[0] != '$' || line[1] < '0' || line[1] > '9') {
        return false;
    }
    memcpy(digits, line + 1, len - 1);
    digits[len - 1] = '\0';
    if (!number_parse(digits, 1, LLONG_MAX, &announced)) {
        return false;
    }
    p->announced = (unsigned long long)announced;
    return true;
}

void payload_deinit(struct payload *p)
{
    text_deinit(&p->window);
}

static bool hand_on(struct payload *p, const char *data, size_t len, payload_sink *sink,
                    void *context)
{
    p->taken_bytes += len;
    return len == 0 || sink(context, data, len);
}

size_t payload_take(struct payload *p, const char *data, size_t len, payload_sink *sink,
                    void *context, bool *failed)
{
    assert(!p->done);
    if (!p->marked) {
        unsigned long long left = p->announced - p->taken_bytes;
        size_t part = len < left ? len : (size_t)left;
        *failed = !hand_on(p, data, part, sink, context);
        p->done = p->taken_bytes == p->announced;
        return part;
    }
    struct text *window = &p->window;
    assert(window->len < PAYLOAD_MARK_BYTES);
    text_append(window, data, len);
    const char *found = memmem(window->data, window->len, p->mark, PAYLOAD_MARK_BYTES);
    p->done = found != NULL;
    if (p->done) {
        size_t before = (size_t)(found - window->data);
        *failed = !hand_on(p, window->data, before, sink, context);
        return len - (window->len - before - PAYLOAD_MARK_BYTES);
    }
    size_t keep = window->len < PAYLOAD_MARK_BYTES ? window->len : PAYLOAD_MARK_BYTES - 1;
    size_t certain = window->len - keep;
    *failed = !hand_on(p, window->data, certain, sink, context);
    text_remove(window, 0, certain);
    return len;
}
