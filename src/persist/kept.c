/* See kept.h. */
#include "persist/kept.h"

#include "base/log.h"
#include "engine/function_store.h"
#include "keyspace/db.h"

static void note_libraries(void) REQUIRES(keyspace_lock)
{
    for (size_t i = 0; i < function_store_count(); i++) {
        function_store_note_aside(function_store_code(i));
    }
}

static void flush_all(void) REQUIRES(keyspace_lock)
{
    function_store_flush();
    for (int i = 0; i < db_count(); i++) {
        db_flush(db_at(i), false);
    }
}

bool kept_may_begin(void)
{
    gil_assert_world();
    return !db_aside_is_open();
}

void kept_begin(void)
{
    gil_assert_world();
    db_aside_open();
    keyspace_lock_exclusive();
    note_libraries();
    function_store_flush();
    db_aside_swap();
    keyspace_unlock_exclusive();
}

void kept_restore(void)
{
    struct buf error = {0};
    gil_assert_world();
    keyspace_lock_exclusive();
    flush_all();
    db_aside_swap();
    if (!function_store_take_aside(&error)) {
        log_warning("A library of functions is lost: %s", buf_cstr(&error));
    }
    keyspace_unlock_exclusive();
    buf_deinit(&error);
    kept_drop();
}

void kept_drop(void)
{
    gil_assert_world();
    function_store_drop_aside();
    db_aside_close();
}

bool kept_add_aside(bool replace, struct buf *error)
{
    gil_assert_world();
    keyspace_lock_exclusive();
    bool fine = replace || !db_aside_overlaps();
    if (!fine) {
        buf_append_cstr(error, "a key that is there twice");
    }
    fine = fine && function_store_add_aside(replace, error);
    if (fine) {
        db_aside_add();
    }
    keyspace_unlock_exclusive();
    return fine;
}
