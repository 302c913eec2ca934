/* See log_head.h. */
#include "active/log_head.h"

#include "base/num.h"
#include "active/effect.h"
#include "active/libraries.h"

#include <string.h>

void log_head_init(struct log_head *h, const struct origins *origins, int first_db)
{
    *h = (struct log_head){.origins = origins, .first_db = first_db};
}

void log_head_deinit(struct log_head *h)
{
    buf_deinit(&h->words);
    buf_deinit(&h->key);
    buf_deinit(&h->changes);
    buf_deinit(&h->later);
}

static void forget_unit(struct log_head *h)
{
    h->waits = h->has_key = false;
    buf_clear(&h->words);
    h->word_count = 0;
}

static void forget_changes(struct log_head *h)
{
    buf_clear(&h->changes);
    h->change_count = 0;
}

void log_head_switch(struct log_head *h, void (*write)(struct slice record))
{
    /* The files that begin now have everything up to here. */
    forget_unit(h);
    forget_changes(h);
    buf_clear(&h->later);
    h->merges = false;
    h->write = write;
}

/* ---- words ---- */

static void put_dot(const struct log_head *h, struct dot dot, struct buf *out)
{
    char origin[ORIGIN_CHARS];
    origin_format(&origins_at(h->origins, dot_origin(dot))->id, origin);
    unit_put_word(out, slice_of(origin, sizeof(origin)));
    unit_put_number(out, dot_sequence(dot));
    unit_put_number(out, dot.stamp);
}

static bool is_same(struct dot a, struct dot b)
{
    return a.stamp == b.stamp && a.place == b.place;
}

/* The last key goes to the others. */
static void put_key(struct log_head *h)
{
    if (!h->has_key) {
        return;
    }
    bool plain = is_same(h->key_dot, h->dot);
    unit_put_word(&h->words, plain ? SLICE("KEY") : SLICE("DOT"));
    unit_put_number(&h->words, (uint64_t)h->key_db);
    unit_put_word(&h->words, buf_slice(&h->key));
    h->word_count += 3;
    if (!plain) {
        put_dot(h, h->key_dot, &h->words);
        h->word_count += 3;
    }
    h->has_key = false;
}

void log_head_note_key(struct log_head *h, int db, struct slice key, struct dot dot)
{
    if (h->has_key && h->key_db == db && slice_equal(buf_slice(&h->key), key)) {
        h->key_dot = dot;
        return;
    }
    put_key(h);
    h->has_key = true;
    h->key_db = db;
    h->key_dot = dot;
    buf_clear(&h->key);
    buf_append_slice(&h->key, key);
}

/* ---- units ---- */

static void begin(struct log_head *h, struct dot dot) REQUIRES(keyspace_lock)
{
    log_head_flush(h);
    h->waits = h->write != NULL;
    h->dot = dot;
}

static void note_library(struct log_head *h, struct dot dot, const struct unit_command *c)
{
    struct buf row = {0};
    libraries_put_word(h->origins, (struct library_word){dot, c->number}, c->argc, c->argv, &row);
    log_head_say(h, "LIBRARY", buf_slice(&row));
    buf_deinit(&row);
}

void log_head_begin_own(struct log_head *h, const struct unit *unit)
{
    struct unit_command c = unit_command_before(unit);
    struct effect effect;
    if (h->merges) {
        buf_append(&h->later, (const char *)&unit->dot, sizeof(unit->dot));
        return;
    }
    begin(h, unit->dot);
    while (h->waits && unit_command_next(unit, &c)) {
        for (int i = 0; effect_walk(c.argc, c.argv, i, &effect); i++) {
            if (effect.key > 0) {
                log_head_note_key(h, c.db, c.argv[effect.key], unit->dot);
            }
            if (effect.class == EFFECT_LIBRARY) {
                note_library(h, unit->dot, &c);
            }
        }
    }
}

void log_head_begin(struct log_head *h, struct dot dot)
{
    begin(h, dot);
    h->merges = h->waits;
}

void log_head_end(struct log_head *h)
{
    h->merges = false;
    log_head_flush(h);
    for (size_t at = 0; at < h->later.len; at += sizeof(struct dot)) {
        struct dot dot;
        memcpy(&dot, h->later.data + at, sizeof(dot));
        begin(h, dot);
        log_head_flush(h);
    }
    buf_clear(&h->later);
}

void log_head_conflict(struct log_head *h, int db, struct slice key, uint64_t state_stamp,
                       bool pending)
{
    if (!h->write) {
        return;
    }
    unit_put_word(&h->changes, pending ? SLICE("CONFLICT") : SLICE("RESOLVED"));
    unit_put_number(&h->changes, (uint64_t)db);
    unit_put_word(&h->changes, key);
    h->change_count += 3;
    if (pending) {
        unit_put_number(&h->changes, state_stamp);
        h->change_count++;
    }
}

void log_head_say(struct log_head *h, const char *what, struct slice row)
{
    if (h->write) {
        unit_put_word(&h->changes, slice_cstr(what));
        unit_put_word(&h->changes, row);
        h->change_count += 2;
    }
}

/* ---- heads ---- */

static const char *line_end(const char *at, const char *end)
{
    const char *found = at < end ? memchr(at, '\n', (size_t)(end - at)) : NULL;
    return found ? found + 1 : end;
}

/* The second word of a command's bytes, empty when there is none. */
static struct slice second_word(struct slice command)
{
    const char *end = command.ptr + command.len;
    const char *at = line_end(command.ptr, end); /* behind "*N" */
    for (int i = 0; i < 2 && at < end; i++) {
        const char *word = line_end(at, end);
        int64_t len;
        if (word - at < 4 || !num_parse_i64(slice_of(at + 1, (size_t)(word - at - 3)), &len) ||
            len < 0 || len > end - word) {
            break;
        }
        if (i == 1) {
            return slice_of(word, (size_t)len);
        }
        at = word + len + 2;
    }
    return SLICE("");
}

/* True when the one key is the unit's own. */
static bool says_itself(const struct log_head *h, int db, struct slice unit)
{
    return db >= 0 && h->has_key && h->word_count == 0 && is_same(h->key_dot, h->dot) &&
           h->key.len > 0 && db == h->first_db + h->key_db &&
           slice_equal(second_word(unit), buf_slice(&h->key));
}

static void put_record(struct log_head *h, int db, struct slice unit, bool alone, struct buf *out)
{
    bool itself = says_itself(h, db, unit);
    if (!itself) {
        put_key(h);
    }
    bool none = !itself && h->word_count == 0 && !alone;
    bool is_write = h->dot.stamp != 0;
    buf_printf(out, "*%d\r\n", (is_write ? 4 : 1) + h->word_count + h->change_count + none + alone);
    unit_put_word(out, is_write ? SLICE("KEYDB.DOT") : SLICE("KEYDB.DOTS"));
    if (is_write) {
        put_dot(h, h->dot, out);
    }
    buf_append_slice(out, buf_slice(&h->words));
    buf_append_slice(out, buf_slice(&h->changes));
    if (none) {
        unit_put_word(out, SLICE("NOKEY"));
    }
    if (alone) {
        unit_put_word(out, SLICE("ALONE"));
    }
    forget_unit(h);
    forget_changes(h);
}

void log_head_put(struct log_head *h, int db, struct slice unit, struct buf *out)
{
    if (h->waits) {
        put_record(h, db, unit, false, out);
    }
}

void log_head_write(struct log_head *h, int argc, const struct slice *argv)
{
    struct buf record = {0};
    log_head_flush(h);
    if (h->write) {
        buf_printf(&record, "*%d\r\n", argc);
        for (int i = 0; i < argc; i++) {
            unit_put_word(&record, argv[i]);
        }
        h->write(buf_slice(&record));
    }
    buf_deinit(&record);
}

/* A key of a data set to which nothing was done. */
static bool says_nothing(const struct log_head *h)
{
    return h->dot.stamp == 0 && !h->has_key && h->word_count == 0 && h->change_count == 0;
}

void log_head_flush(struct log_head *h)
{
    if (h->waits && !h->merges && says_nothing(h)) {
        forget_unit(h);
    }
    if (h->waits && !h->merges) {
        struct buf record = {0};
        put_record(h, -1, SLICE(""), true, &record);
        h->write(buf_slice(&record));
        buf_deinit(&record);
    }
}
