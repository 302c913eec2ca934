/* See active_files.h. */
#include "repl/active_files.h"

#include "persist/aof.h"
#include "persist/dots.h"

#include <assert.h>
#include <string.h>

static_assert(DOTS_BYTES == ACTIVE_DOT_BYTES, "the files have a dot's bytes");

static struct {
    struct active_node *node;
    struct active_past *past;
    bool logs;                 /* the AOF takes records */
    struct active_table table; /* of a file that is loaded while the node is there */
} files;

/* ---- writing ---- */

static void tell(dots_put put, void *context)
{
    const struct active_node *n = files.node;
    if (n) {
        active_past_tell(active_node_id(n), active_node_clock(files.node)->last,
                         active_node_origins(files.node), active_node_merge(n)->disputes, put,
                         context);
    }
}

static bool dot_of(const struct db *db, const struct entry *e, char out[DOTS_BYTES])
{
    (void)db;
    struct active_dot dot = active_execute_dot(e);
    if (!files.node || dot.stamp == 0) {
        return false;
    }
    active_dot_put(dot, out);
    return true;
}

static void put_head(int db, struct slice unit, struct buf *out)
{
    if (files.node) {
        active_head_put(active_node_head(files.node), db, unit, out);
    }
}

static void write_alone(struct slice record) NO_THREAD_SAFETY_ANALYSIS
{
    keyspace_assert_exclusive();
    aof_log_alone(record);
}

static void switch_records(void) REQUIRES(keyspace_lock)
{
    if (files.node) {
        active_head_switch(active_node_head(files.node), files.logs ? write_alone : NULL);
    }
    dots_wanted = files.node && files.logs;
}

static void logging(bool on) NO_THREAD_SAFETY_ANALYSIS
{
    keyspace_assert_exclusive();
    files.logs = on;
    switch_records();
}

/* ---- loading ---- */

/* A file of our own that is loaded again (DEBUG RELOAD): positions are as they are. */
static const char *take_again(struct slice name, struct slice value, bool *known)
{
    *known = slice_equal(name, SLICE("active-positions"));
    if (!*known) {
        return NULL;
    }
    active_table_deinit(&files.table);
    return active_table_get(&files.table, active_node_origins(files.node), value)
               ? NULL
               : "positions that are damaged";
}

static const char *take(struct slice name, struct slice value, bool *known)
{
    *known = false;
    return files.past   ? active_past_take(files.past, name, value, known)
           : files.node ? take_again(name, value, known)
                        : NULL;
}

static const char *take_dot(const struct db *db, struct slice value, char stamp[ENTRY_STAMP_BYTES],
                            bool *known)
{
    const char *error = NULL;
    struct active_dot dot;
    (void)db;
    *known = false;
    if (files.past) {
        error = active_past_take_dot(files.past, value, &dot);
    } else if (!files.node) {
        return NULL;
    } else if (!active_dot_get(&files.table, value, &dot)) {
        error = "a dot that is damaged";
    }
    if (!error) {
        memcpy(stamp, &dot, sizeof(dot));
        *known = true;
    }
    return error;
}

static const char *take_record(int argc, const struct slice *argv, bool *alone)
{
    *alone = true;
    return files.past ? active_past_take_record(files.past, argc, argv, alone) : NULL;
}

static void apply(int db, struct slice key) NO_THREAD_SAFETY_ANALYSIS
{
    keyspace_assert_exclusive();
    if (files.past) {
        active_past_apply(files.past, db, key);
    }
}

/* ---- which node ---- */

const struct dots_ops active_files_ops = {.tell = tell,
                                          .dot_of = dot_of,
                                          .take = take,
                                          .take_dot = take_dot,
                                          .put_head = put_head,
                                          .logging = logging,
                                          .take_record = take_record,
                                          .apply = apply};

void active_files_setup(void)
{
    dots_set_ops(&active_files_ops);
}

void active_files_load_into(struct active_past *past)
{
    files.past = past;
}

void active_files_attach(struct active_node *node)
{
    if (files.node && files.node != node) {
        active_head_switch(active_node_head(files.node), NULL);
        active_table_deinit(&files.table);
    }
    files.node = node;
    switch_records();
}
