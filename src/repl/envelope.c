/* See envelope.h. */
#include "repl/envelope.h"

#include "base/num.h"

#include <string.h>

#define COMMAND "rreplay"
/* Of mvcc: what is above is milliseconds. */
#define COUNTER_BITS 20

bool envelope_is(const struct request *request)
{
    return slice_equal_nocase(request->argv[0], COMMAND);
}

bool envelope_has(const struct envelope *e, const char *name)
{
    return slice_equal_nocase(e->request.argv[0], name);
}

static bool is_uuid(struct slice text)
{
    if (text.len != ENVELOPE_UUID_CHARS) {
        return false;
    }
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        bool digit = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
        if (i == 8 || i == 13 || i == 18 || i == 23 ? c != '-' : !digit) {
            return false;
        }
    }
    return true;
}

/* The request that `bytes` are; NULL, or what is wrong. */
static const char *parse(struct slice bytes, struct parser *parser, struct arena *arena,
                         struct request *request)
{
    static const struct parser_limits limits = {INT32_MAX, INT64_MAX / 4, true};
    const char *error = NULL;
    size_t consumed = 0;
    if (bytes.len == 0 || bytes.ptr[0] != '*') {
        return "an envelope without a command";
    }
    enum parser_result result =
        parser_next(parser, &limits, bytes, arena, request, &consumed, &error);
    if (result == PARSER_DONE && consumed == bytes.len) {
        return NULL;
    }
    if (result == PARSER_DONE) {
        parser_release(request);
    }
    parser_deinit(parser);
    parser_init(parser);
    return result == PARSER_DONE ? "an envelope with more than a command"
                                 : "an envelope without a whole command";
}

/* What this envelope itself says; NULL, or what is wrong. */
static const char *read_words(const struct request *r, int dbs, struct envelope *e)
{
    int64_t db;
    e->number = 0;
    if (r->argc < 3 || r->argc > 5) {
        return "an envelope of so many words";
    }
    if (!is_uuid(r->argv[1])) {
        return "an envelope without a UUID";
    }
    if (r->argc > 3) {
        if (!num_parse_i64(r->argv[3], &db) || db < 0 || db >= dbs) {
            return "an envelope for a database that is not here (see 'databases')";
        }
        e->db = (int)db;
    }
    if (r->argc > 4 && !num_parse_u64(r->argv[4], &e->number)) {
        return "an envelope with an mvcc that is no number";
    }
    e->author = r->argv[1];
    return NULL;
}

const char *envelope_open(const struct request *outer, int dbs, struct parser *parser,
                          struct arena *arena, struct envelope *e)
{
    *e = (struct envelope){.request = *outer};
    for (int depth = 0; envelope_is(&e->request); depth++) {
        struct slice inner;
        if (depth == ENVELOPE_DEPTH_MAX) {
            return "too many envelopes in one another";
        }
        const char *error = read_words(&e->request, dbs, e);
        if (error) {
            return error;
        }
        if (depth == 0) {
            e->sent_ms = (int64_t)(e->number >> COUNTER_BITS);
        }
        inner = e->request.argv[2];
        error = parse(inner, parser, arena, &e->request);
        if (error) {
            return error;
        }
    }
    return NULL;
}

/* ---- authors ---- */

/* The author's row, or -1. */
static int find(const struct envelope_authors *authors, struct slice uuid)
{
    for (int i = 0; i < authors->count; i++) {
        if (memcmp(authors->rows[i].uuid, uuid.ptr, ENVELOPE_UUID_CHARS) == 0) {
            return i;
        }
    }
    return -1;
}

bool envelope_is_news(const struct envelope_authors *authors, const struct envelope *e)
{
    int row = e->number > 0 ? find(authors, e->author) : -1;
    return row < 0 || e->number > authors->rows[row].number;
}

/* A row to be overwritten. */
static int make_room(struct envelope_authors *authors)
{
    int oldest = 0;
    if (authors->count < ENVELOPE_AUTHORS_MAX) {
        return authors->count++;
    }
    for (int i = 1; i < authors->count; i++) {
        oldest = authors->rows[i].number < authors->rows[oldest].number ? i : oldest;
    }
    return oldest;
}

void envelope_note(struct envelope_authors *authors, const struct envelope *e)
{
    if (e->number == 0) {
        return;
    }
    int row = find(authors, e->author);
    if (row < 0) {
        row = make_room(authors);
        memcpy(authors->rows[row].uuid, e->author.ptr, ENVELOPE_UUID_CHARS);
    }
    authors->rows[row].number = e->number;
}
