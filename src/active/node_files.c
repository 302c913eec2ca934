/* See node_files.h. */
#include "active/node_files.h"

#include "persist/aof.h"
#include "persist/dots.h"

#include <assert.h>
#include <string.h>

static_assert(DOTS_BYTES == DOT_BYTES, "the files have a dot's bytes");

static struct {
    struct node *node;
    struct restored *past;
    bool logs;              /* the AOF takes records */
    struct dot_table table; /* of a file that is loaded while the node is there */
} files;

/* ---- writing ---- */

/* The callbacks are called as dots.h says. */
static void tell(dots_put put, void *context) NO_THREAD_SAFETY_ANALYSIS
{
    const struct node *n = files.node;
    if (n) {
        restored_tell(node_id(n), node_clock(files.node)->last, node_origins(files.node),
                      node_merge(n)->conflicts, node_merge(n)->libraries, node_gives(files.node),
                      put, context);
    }
}

static bool entry_dot(const struct db *db, const struct entry *e, char out[DOTS_BYTES])
{
    (void)db;
    struct dot dot = executor_dot(e);
    if (!files.node || dot.stamp == 0) {
        return false;
    }
    dot_put(dot, out);
    return true;
}

static void put_head(int db, struct slice unit, struct buf *out)
{
    if (files.node) {
        log_head_put(node_head(files.node), db, unit, out);
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
        log_head_switch(node_head(files.node), files.logs ? write_alone : NULL);
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
    dot_table_deinit(&files.table);
    return dot_table_get(&files.table, node_origins(files.node), value)
               ? NULL
               : "positions that are damaged";
}

static const char *take(struct slice name, struct slice value, bool *known)
{
    *known = false;
    return files.past   ? restored_take(files.past, name, value, known)
           : files.node ? take_again(name, value, known)
                        : NULL;
}

static const char *take_dot(const struct db *db, struct slice value, char stamp[ENTRY_STAMP_BYTES],
                            bool *known)
{
    const char *error = NULL;
    struct dot dot;
    (void)db;
    *known = false;
    if (files.past) {
        error = restored_take_dot(files.past, value, &dot);
    } else if (!files.node) {
        return NULL;
    } else if (!dot_get(&files.table, value, &dot)) {
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
    return files.past ? restored_take_record(files.past, argc, argv, alone) : NULL;
}

static void apply(int db, struct slice key) NO_THREAD_SAFETY_ANALYSIS
{
    keyspace_assert_exclusive();
    if (files.past) {
        restored_apply(files.past, db, key);
    }
}

/* ---- which node ---- */

const struct dots_ops node_files_ops = {.tell = tell,
                                        .dot_of = entry_dot,
                                        .take = take,
                                        .take_dot = take_dot,
                                        .put_head = put_head,
                                        .logging = logging,
                                        .take_record = take_record,
                                        .apply = apply};

void node_files_setup(void)
{
    dots_set_ops(&node_files_ops);
}

void node_files_load_into(struct restored *past)
{
    files.past = past;
}

void node_files_attach(struct node *node)
{
    if (files.node && files.node != node) {
        log_head_switch(node_head(files.node), NULL);
        dot_table_deinit(&files.table);
    }
    files.node = node;
    switch_records();
}
