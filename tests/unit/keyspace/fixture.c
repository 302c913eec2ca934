/* See fixture.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "keyspace/fixture.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/thread.h"
#include "keyspace/access.h"
#include "keyspace/event.h"
#include "keyspace/expire.h"
#include "keyspace/reclaim.h"
#include "value/string.h"

static struct buf told, told_before;

static void record_event(const char *event, int db, struct slice key, unsigned mask)
{
    (void)mask;
    buf_printf(&told, "%s@%d:%.*s ", event, db, (int)key.len, key.ptr);
}

static void record_change(struct db *db, struct slice key)
{
    if (key.ptr) {
        buf_printf(&told, "!%d:%.*s ", db->id, (int)key.len, key.ptr);
    } else {
        buf_printf(&told, "!%d:* ", db->id);
    }
}

int fixture_enter(void **state)
{
    static const struct option *const tables[] = {access_options, event_options, expire_options,
                                                  reclaim_options};
    (void)state;
    clock_setup();
    thread_enter("test");
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        for (const struct option *o = tables[i]; o->name; o++) {
            option_store_initial(o);
        }
    }
    event_add_listener(record_event);
    event_add_change_listener(record_change);
    return 0;
}

int fixture_leave(void **state)
{
    (void)state;
    buf_deinit(&told);
    buf_deinit(&told_before);
    thread_leave();
    return 0;
}

void fixture_set_option(const struct option *table, const char *name, const char *value)
{
    const char *error = NULL;
    struct slice word = slice_cstr(value);
    while (table->name && !option_named(table, slice_cstr(name))) {
        table++;
    }
    assert_non_null(table->name);
    assert_true(option_store(table, &word, 1, &error));
    assert_true(!table->apply || table->apply(table, &error));
}

const char *fixture_told(void)
{
    struct buf spare = told_before;
    told_before = told;
    told = spare;
    buf_clear(&told);
    return buf_cstr(&told_before);
}

struct keyref fixture_open(struct db *db, const char *key, int64_t now_ms)
{
    struct key k = key_of(slice_cstr(key));
    struct keyref ref;
    db_open(&ref, db, &k, now_ms, 0);
    return ref;
}

struct entry *fixture_read(struct db *db, const char *key, int64_t now_ms)
{
    struct key k = key_of(slice_cstr(key));
    return db_read(db, &k, now_ms, 0);
}

void fixture_set(struct db *db, const char *key, const char *value, int64_t expiry_ms,
                 int64_t now_ms)
{
    struct entry *e = string_create(slice_cstr(key), slice_cstr(value), expiry_ms);
    keyspace_lock_exclusive();
    struct keyref ref = fixture_open(db, key, now_ms);
    db_put(&ref, e);
    keyspace_unlock_exclusive();
    reclaim_run();
}

void fixture_check(void)
{
    keyspace_lock_shared();
    for (int i = 0; i < db_count(); i++) {
        db_check(db_at(i));
    }
    keyspace_unlock_shared();
}
