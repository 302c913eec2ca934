/* KeyDB's nested hashes: KEYDB.NHSET and KEYDB.NHGET. A path "a.b.c" is the key before the first
 * dot, and the names of a way down its tree behind it. */
#include "commands/commands.h"
#include "engine/call.h"

#include "base/json.h"
#include "engine/propagate.h"
#include "keyspace/access.h"
#include "keyspace/reclaim.h"
#include "value/nested.h"

struct path {
    struct slice names[NESTED_MAX_DEPTH];
    unsigned depth;
};

/* Takes argument `i` apart; false with the fault replied. The key before the first dot is the
 * call's already (engine/keyspecs.c). */
static bool parse_path(struct call *c, int i, struct path *path)
{
    struct slice rest = c->argv[i];
    path->depth = 0;
    for (bool key = true;; key = false) {
        const char *dot = rest.len > 0 ? memchr(rest.ptr, '.', rest.len) : NULL;
        struct slice part = dot ? slice_of(rest.ptr, (size_t)(dot - rest.ptr)) : rest;
        if (part.len == 0) {
            reply_syntax_error(c->reply);
            return false;
        }
        if (!key && path->depth == NESTED_MAX_DEPTH) {
            reply_errorf(c->reply, "ERR a path has at most %d parts", NESTED_MAX_DEPTH + 1);
            return false;
        }
        if (!key) {
            path->names[path->depth++] = part;
        }
        if (!dot) {
            return true;
        }
        rest = slice_of(dot + 1, rest.len - part.len - 1);
    }
}

WRITE_COMMAND(nhset_command)
{
    struct path path;
    struct keyref ref;
    if (!parse_path(c, 1, &path) || !call_open_typed(c, 0, VALUE_NESTED, &ref)) {
        return;
    }
    struct nested_leaf leaf = {.kind = c->argc > 3 ? NESTED_LIST : NESTED_STRING,
                               .strings = c->argv + 2,
                               .count = (size_t)c->argc - 2};
    enum nested_set outcome = NESTED_ADDED;
    if (ref.entry) {
        struct entry *replaced;
        outcome = nested_set(ref.entry, path.names, path.depth, &leaf, &replaced);
        if (outcome == NESTED_BLOCKED) {
            reply_wrong_type(c->reply);
            return;
        }
        if (replaced) {
            reclaim_entry(replaced, true);
        }
    } else {
        struct entry *e = nested_create(ref.key.name, path.names, path.depth, &leaf);
        entry_set_clock(e, access_initial(c->now_ms));
        db_put(&ref, e);
    }
    call_changed(c, &ref, EVENT_HASH, "nhset");
    propagate_stored(c, 0);
    reply_i64(c->reply, outcome == NESTED_REPLACED);
}

/* ---- KEYDB.NHGET ---- */

/* A string, an array of strings, or for a map an array of pairs of a name and what it leads to. */
static void reply_tree(struct call *c, const struct nested_node *top)
{
    struct nested_walk w;
    for (nested_walk_begin(&w, top); w.step != NESTED_STEP_DONE; nested_walk_next(&w)) {
        const struct nested_node *n = w.node;
        if (w.step == NESTED_STEP_MAP_END) {
            continue;
        }
        if (n != top) {
            reply_array(c->reply, 2);
            reply_bulk(c->reply, nested_name(n));
        }
        if (nested_kind(n) != NESTED_STRING) {
            reply_array(c->reply, nested_count(n));
        }
        if (w.step == NESTED_STEP_LEAF) {
            size_t offset = 0;
            for (uint64_t i = 0; i < nested_count(n); i++) {
                reply_bulk(c->reply, nested_string_at(n, &offset));
            }
        }
    }
}

static void append_leaf(struct buf *out, const struct nested_node *n)
{
    bool list = nested_kind(n) == NESTED_LIST;
    size_t offset = 0;
    buf_append_cstr(out, list ? "[" : "");
    for (uint64_t i = 0; i < nested_count(n); i++) {
        buf_append_cstr(out, i > 0 ? ", " : "");
        json_append_string(out, nested_string_at(n, &offset));
    }
    buf_append_cstr(out, list ? "]" : "");
}

static void append_json(struct buf *out, const struct nested_node *top)
{
    struct nested_walk w;
    for (nested_walk_begin(&w, top); w.step != NESTED_STEP_DONE; nested_walk_next(&w)) {
        if (w.step == NESTED_STEP_MAP_END) {
            buf_append_char(out, '}');
            continue;
        }
        if (w.node != top) {
            buf_append_cstr(out, nested_walk_follows(&w) ? ", " : "");
            json_append_string(out, nested_name(w.node));
            buf_append_cstr(out, " : ");
        }
        if (w.step == NESTED_STEP_MAP) {
            buf_append_char(out, '{');
        } else {
            append_leaf(out, w.node);
        }
    }
}

READ_COMMAND(nhget_command)
{
    struct path path;
    struct entry *e;
    int at = c->argc - 1;
    bool json = at == 2 && call_arg_is(c, 1, "json");
    if (at > 2 || (at == 2 && !json && !call_arg_is(c, 1, "resp"))) {
        reply_syntax_error(c->reply);
        return;
    }
    if (!parse_path(c, at, &path) || !call_read_typed(c, 0, VALUE_NESTED, &e)) {
        return;
    }
    const struct nested_node *n = e ? nested_find(e, path.names, path.depth) : NULL;
    if (!n) {
        reply_no_such_key(c->reply);
    } else if (json) {
        struct buf out = {0};
        append_json(&out, n);
        reply_bulk(c->reply, buf_slice(&out));
        buf_deinit(&out);
    } else {
        reply_tree(c, n);
    }
}

const struct command_row nested_commands[] = {
    {.name = "keydb.nhget",
     .run = nhget_command,
     .arity = -2,
     .flags = CMD_READONLY | CMD_SLOW,
     .categories = CATEGORY_HASH,
     .keys = "?/?/RO+ACCESS",
     .group = "hash",
     .since = "6.3.0",
     .summary = "Returns what a path of a nested hash leads to, as a reply or as JSON.",
     .complexity = "O(D+N), D being the names in the path, N the nodes below it",
     .args = "[JSON|RESP] path"},
    {.name = "keydb.nhset",
     .run = nhset_command,
     .arity = -3,
     .flags = CMD_WRITE | CMD_DENYOOM,
     .categories = CATEGORY_HASH,
     .keys = "i1/r0,1,0/RW+UPDATE",
     .group = "hash",
     .since = "6.3.0",
     .summary = "Sets a string or a list of strings at a path of a nested hash.",
     .complexity = "O(D+N), D being the names in the path, N the values",
     .args = "path value [value ...]"},
    {.name = NULL},
};
