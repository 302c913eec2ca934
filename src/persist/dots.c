/* See dots.h. */
#include "persist/dots.h"

#include "engine/propagate.h"

#include <assert.h>

bool dots_wanted;

static const struct dots_ops *ops;

void dots_set_ops(const struct dots_ops *set)
{
    ops = set;
}

void dots_tell(dots_put put, void *context)
{
    if (ops) {
        ops->tell(put, context);
    }
}

bool dots_of(const struct db *db, const struct entry *e, char out[DOTS_BYTES])
{
    return ops && ops->dot_of(db, e, out);
}

const char *dots_take(struct slice name, struct slice value, bool *known)
{
    *known = false;
    return ops ? ops->take(name, value, known) : NULL;
}

const char *dots_take_dot(const struct db *db, struct slice value, char stamp[ENTRY_STAMP_BYTES],
                          bool *known)
{
    *known = false;
    return ops ? ops->take_dot(db, value, stamp, known) : NULL;
}

void dots_logging(bool on)
{
    if (ops) {
        ops->logging(on);
    }
}

const char *dots_take_record(int argc, const struct slice *argv, bool *alone)
{
    *alone = !ops; /* then nobody waits for its unit */
    return ops ? ops->take_record(argc, argv, alone) : NULL;
}

void dots_apply(int db, struct slice key)
{
    if (ops) {
        ops->apply(db, key);
    }
}

bool dots_is_record(struct slice name)
{
    return slice_equal_nocase(name, "keydb.dot") || slice_equal_nocase(name, "keydb.aux") ||
           slice_equal_nocase(name, "keydb.dots") || slice_equal_nocase(name, "keydb.merging") ||
           slice_equal_nocase(name, "keydb.merged") || slice_equal_nocase(name, "keydb.parted");
}

/* ---- a log of units ---- */

void dots_put_select(int db, struct buf *out)
{
    char text[PROPAGATE_NUMBER_BYTES];
    struct slice word = propagate_number(db, text);
    buf_printf(out, "*2\r\n$6\r\nSELECT\r\n$%zu\r\n%.*s\r\n", word.len, (int)word.len, word.ptr);
}

static void select_db(int db, int *selected_db, struct buf *out)
{
    if (db != *selected_db) {
        dots_put_select(db, out);
        *selected_db = db;
    }
}

static void put_head(int db, struct slice unit, struct buf *out)
{
    if (ops) {
        ops->put_head(db, unit, out);
    }
}

void dots_add(struct dots_unit *unit, int db, struct slice commands, int *selected_db,
              struct buf *out)
{
    assert(db >= 0 || db == PROPAGATE_ANY_DB);
    if (db == PROPAGATE_ANY_DB && !unit->open) {
        unit->open = true; /* MULTI */
        buf_clear(&unit->held);
        buf_append_slice(&unit->held, commands);
    } else if (db == PROPAGATE_ANY_DB) { /* EXEC */
        unit->open = false;
        buf_append_slice(&unit->held, commands);
        put_head(-1, buf_slice(&unit->held), out);
        buf_append_slice(out, buf_slice(&unit->held));
        buf_clear(&unit->held);
    } else if (unit->open) {
        select_db(db, selected_db, &unit->held);
        buf_append_slice(&unit->held, commands);
    } else {
        select_db(db, selected_db, out);
        put_head(db, commands, out);
        buf_append_slice(out, commands);
    }
}
