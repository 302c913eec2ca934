/* See identity.h. */
#include "repl/identity.h"

#include "base/log.h"
#include "base/num.h"
#include "keyspace/db.h"
#include "persist/notes.h"
#include "repl/backlog.h"
#include "repl/follow.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

/* What the file that was loaded says so far. */
static struct {
    char id[REPL_ID_LEN];
    uint64_t offset;
    int db;
    bool has_id, has_offset;
} loaded;

static void tell(notes_put put, void *context)
{
    char number[NUM_I64_MAX_CHARS];
    keyspace_assert_shared();
    if (!backlog_is_on()) {
        return;
    }
    put("repl-stream-db", slice_of(number, num_format_i64(number, backlog_stream_db())), context);
    put("repl-id", slice_cstr(backlog_id()), context);
    put("repl-offset", slice_of(number, num_format_u64(number, backlog_offset())), context);
}

static void outdate(void)
{
    loaded.has_id = loaded.has_offset = false;
    loaded.db = 0;
}

static bool take_id(struct slice value)
{
    bool fine = value.len == REPL_ID_LEN;
    for (size_t i = 0; fine && i < value.len; i++) {
        fine = isxdigit((unsigned char)value.ptr[i]);
    }
    if (fine) {
        memcpy(loaded.id, value.ptr, REPL_ID_LEN);
        loaded.has_id = true;
    }
    return fine;
}

static bool take(struct slice name, struct slice value)
{
    int64_t number;
    if (slice_equal(name, SLICE("repl-id"))) {
        return take_id(value);
    }
    if (slice_equal(name, SLICE("repl-offset")) && num_parse_i64(value, &number) && number >= 0 &&
        number <= INT64_MAX / 2) {
        loaded.offset = (uint64_t)number;
        loaded.has_offset = true;
        return true;
    }
    if (slice_equal(name, SLICE("repl-stream-db")) && num_parse_i64(value, &number) &&
        number >= 0 && number < db_count()) {
        loaded.db = (int)number;
    }
    return false;
}

static void accept(void)
{
    struct slice id = slice_of(loaded.id, REPL_ID_LEN);
    if (!loaded.has_id || !loaded.has_offset) {
        return;
    }
    keyspace_lock_exclusive();
    if (follow_is_wanted()) {
        backlog_follow(id, loaded.offset, loaded.db);
    } else {
        backlog_continue(id, loaded.offset);
    }
    keyspace_unlock_exclusive();
    log_notice("The data are history %.*s at %" PRIu64, REPL_ID_LEN, loaded.id, loaded.offset);
    outdate();
}

static const struct notes_ops ops = {
    .tell = tell, .take = take, .outdate = outdate, .accept = accept};

void identity_setup(void)
{
    notes_set_ops(&ops);
}
