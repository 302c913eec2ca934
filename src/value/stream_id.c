/* See stream_id.h. */
#include "value/stream_id.h"

#include "base/num.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* No ID's text is longer, however many zeros lead its numbers. */
#define TEXT_MAX 127

struct slice stream_id_key(struct stream_id id, char key[STREAM_ID_KEY_BYTES])
{
    uint64_t words[2] = {htobe64(id.ms), htobe64(id.seq)};
    memcpy(key, words, sizeof(words));
    return slice_of(key, STREAM_ID_KEY_BYTES);
}

struct stream_id stream_id_of_key(const char key[STREAM_ID_KEY_BYTES])
{
    uint64_t words[2];
    memcpy(words, key, sizeof(words));
    return (struct stream_id){be64toh(words[0]), be64toh(words[1])};
}

bool stream_id_increment(struct stream_id *id)
{
    if (id->seq == UINT64_MAX && id->ms == UINT64_MAX) {
        return false;
    }
    id->seq++;
    id->ms += id->seq == 0;
    return true;
}

bool stream_id_decrement(struct stream_id *id)
{
    if (stream_id_is_zero(*id)) {
        return false;
    }
    id->ms -= id->seq == 0;
    id->seq--;
    return true;
}

struct slice stream_id_format(struct stream_id id, char text[STREAM_ID_TEXT_BYTES])
{
    size_t len = num_format_u64(text, id.ms);
    text[len++] = '-';
    len += num_format_u64(text + len, id.seq);
    return slice_of(text, len);
}

/* A number of an ID: the canonical text, or what strtoull makes of another one (leading blanks and
 * zeros, a plus sign), as Redis takes it. */
static bool parse_number(struct slice text, uint64_t *value)
{
    char copy[TEXT_MAX + 1], *end;
    int64_t canonical;
    if (num_parse_u64(text, value)) {
        return true;
    }
    if (text.len == 0 || text.len > TEXT_MAX || memchr(text.ptr, 0, text.len) ||
        num_parse_i64(text, &canonical)) {
        return false;
    }
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = 0;
    errno = 0;
    unsigned long long number = strtoull(copy, &end, 10);
    *value = number;
    return errno == 0 && end != copy && *end == 0;
}

bool stream_id_parse_open(struct slice text, uint64_t missing_seq, struct stream_id *id,
                          bool *any_seq)
{
    struct stream_id parsed = {0, missing_seq};
    const char *dash = text.len > 0 ? memchr(text.ptr, '-', text.len) : NULL;
    struct slice ms = dash ? slice_of(text.ptr, (size_t)(dash - text.ptr)) : text;
    *any_seq = false;
    if (text.len > TEXT_MAX || !parse_number(ms, &parsed.ms)) {
        return false;
    }
    if (dash) {
        struct slice seq = slice_of(dash + 1, text.len - ms.len - 1);
        *any_seq = seq.len == 1 && *seq.ptr == '*';
        parsed.seq = 0;
        if (!*any_seq && !parse_number(seq, &parsed.seq)) {
            return false;
        }
    }
    *id = parsed;
    return true;
}

bool stream_id_parse(struct slice text, uint64_t missing_seq, struct stream_id *id)
{
    bool any_seq;
    struct stream_id parsed;
    if (!stream_id_parse_open(text, missing_seq, &parsed, &any_seq) || any_seq) {
        return false;
    }
    *id = parsed;
    return true;
}

bool stream_id_parse_bound(struct slice text, uint64_t missing_seq, struct stream_id *id)
{
    if (text.len == 1 && (*text.ptr == '-' || *text.ptr == '+')) {
        *id = *text.ptr == '-' ? STREAM_ID_MIN : STREAM_ID_MAX;
        return true;
    }
    return stream_id_parse(text, missing_seq, id);
}
