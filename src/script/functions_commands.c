/* FUNCTION and FCALL. */
#include "script/functions.h"

#include "base/glob.h"
#include "base/mem.h"
#include "engine/busy.h"
#include "engine/gate.h"
#include "engine/propagate.h"
#include "script/functions_payload.h"

#include <assert.h>

/* Most libraries of one payload. */
#define RESTORE_LIBRARIES_MAX 4096

static void reply_failure(struct call *c, struct buf *error)
{
    struct buf text = {0};
    buf_append_cstr(&text, "ERR ");
    buf_append_slice(&text, buf_slice(error));
    reply_error_slice(c->reply, buf_slice(&text));
    buf_deinit(&text);
    buf_deinit(error);
}

static void refuse_arguments(struct call *c)
{
    reply_errorf(
        c->reply,
        "ERR unknown subcommand or wrong number of arguments for '%.*s'. Try FUNCTION HELP.",
        c->argv[1].len < 128 ? (int)c->argv[1].len : 128, c->argv[1].ptr);
}

/* Peers have the last word about a library, whatever was there before. */
static void tell_peers_of(struct call *c, const struct library *l) REQUIRES(keyspace_lock);
static void tell_peers_of(struct call *c, const struct library *l)
{
    TELL_PEERS(c, SLICE("FUNCTION"), SLICE("LOAD"), SLICE("REPLACE"),
               slice_of(l->code, l->code_len));
}

WRITE_COMMAND(function_fcall)
{
    functions_call(c, false);
}

static uint32_t flags_of_fcall(const struct call *c) REQUIRES(keyspace_lock)
{
    const struct function *f = functions_find(c->argv[1]);
    return run_command_flags(c->cmd->flags, f ? f->flags : SCRIPT_UNDECLARED);
}

WRITE_COMMAND(function_fcall_ro)
{
    functions_call(c, true);
}

WRITE_COMMAND(function_load)
{
    bool replace = false;
    struct buf error = {0};
    for (int i = 2; i < c->argc - 1; i++) {
        if (!call_arg_is(c, i, "replace")) {
            reply_errorf(c->reply, "ERR Unknown option given: %.*s",
                         c->argv[i].len < 128 ? (int)c->argv[i].len : 128, c->argv[i].ptr);
            return;
        }
        replace = true;
    }
    struct library *l =
        functions_compile(c->argv[c->argc - 1], c->session->internal, !replace, &error);
    if (!l || !functions_adopt_take(&l, 1, replace, false, &error)) {
        reply_failure(c, &error);
        return;
    }
    c->dirty++;
    if (propagate_peers) {
        tell_peers_of(c, l);
    }
    reply_bulk_cstr(c->reply, l->name);
}

WRITE_COMMAND(function_delete)
{
    if (!functions_delete(c->argv[2])) {
        reply_error(c->reply, "ERR Library not found");
        return;
    }
    c->dirty++;
    reply_ok(c->reply);
}

WRITE_COMMAND(function_flush)
{
    if (c->argc > 3) {
        refuse_arguments(c);
        return;
    }
    if (c->argc == 3 && (!call_arg_is(c, 2, "sync") && !call_arg_is(c, 2, "async"))) {
        reply_error(c->reply, "ERR FUNCTION FLUSH only supports SYNC|ASYNC option");
        return;
    }
    functions_flush();
    c->dirty++;
    if (propagate_peers) {
        TELL_PEERS(c, SLICE("FUNCTION"), SLICE("FLUSH"));
    }
    reply_ok(c->reply);
}

/* ---- LIST ---- */

static void reply_flags(struct reply *r, unsigned flags)
{
    uint64_t count = 0;
    for (unsigned i = 0; script_flag_names[i]; i++) {
        count += flags >> i & 1;
    }
    reply_set(r, count);
    for (unsigned i = 0; script_flag_names[i]; i++) {
        if (flags >> i & 1) {
            reply_status(r, script_flag_names[i]);
        }
    }
}

static void reply_library(struct reply *r, const struct library *l, bool with_code)
{
    reply_map(r, with_code ? 4 : 3);
    reply_bulk_cstr(r, "library_name");
    reply_bulk_cstr(r, l->name);
    reply_bulk_cstr(r, "engine");
    reply_bulk_cstr(r, "LUA");
    reply_bulk_cstr(r, "functions");
    reply_array(r, (uint64_t)l->count);
    for (int i = 0; i < l->count; i++) {
        const struct function *f = &l->functions[i];
        reply_map(r, 3);
        reply_bulk_cstr(r, "name");
        reply_bulk_cstr(r, f->name);
        reply_bulk_cstr(r, "description");
        if (f->description) {
            reply_bulk_cstr(r, f->description);
        } else {
            reply_null(r);
        }
        reply_bulk_cstr(r, "flags");
        reply_flags(r, f->flags);
    }
    if (with_code) {
        reply_bulk_cstr(r, "library_code");
        reply_bulk(r, slice_of(l->code, l->code_len));
    }
}

static bool parse_list(struct call *c, bool *with_code, struct slice *pattern)
{
    for (int i = 2; i < c->argc; i++) {
        if (!*with_code && call_arg_is(c, i, "withcode")) {
            *with_code = true;
        } else if (!pattern->ptr && call_arg_is(c, i, "libraryname")) {
            if (++i == c->argc) {
                reply_error(c->reply, "ERR library name argument was not given");
                return false;
            }
            *pattern = c->argv[i];
        } else {
            reply_errorf(c->reply, "ERR Unknown argument %.*s",
                         c->argv[i].len < 128 ? (int)c->argv[i].len : 128, c->argv[i].ptr);
            return false;
        }
    }
    return true;
}

WRITE_COMMAND(function_list)
{
    bool with_code = false;
    struct slice pattern = {NULL, 0};
    if (!parse_list(c, &with_code, &pattern)) {
        return;
    }
    uint64_t count = 0;
    uint32_t handle = reply_deferred(c->reply);
    for (int i = 0; i < (int)functions_library_count(); i++) {
        const struct library *l = functions_library_at(i);
        if (!pattern.ptr || glob_match(pattern, slice_cstr(l->name), true)) {
            reply_library(c->reply, l, with_code);
            count++;
        }
    }
    reply_set_deferred_array(c->reply, handle, count);
}

/* ---- STATS, KILL ---- */

PLAIN_COMMAND(function_stats)
{
    if (atomic_load(&gate_word) & GATE_SCRIPT && gate_busy_refusal()) {
        reply_error(c->reply, gate_busy_refusal());
        return;
    }
    reply_map(c->reply, 2);
    reply_bulk_cstr(c->reply, "running_script");
    busy_reply_running(c->reply);
    reply_bulk_cstr(c->reply, "engines");
    reply_map(c->reply, 1);
    reply_bulk_cstr(c->reply, "LUA");
    reply_map(c->reply, 2);
    reply_bulk_cstr(c->reply, "libraries_count");
    reply_i64(c->reply, (int64_t)functions_library_count());
    reply_bulk_cstr(c->reply, "functions_count");
    reply_i64(c->reply, (int64_t)functions_function_count());
}

PLAIN_COMMAND(function_kill)
{
    busy_kill(c, BUSY_FUNCTION);
}

/* ---- DUMP, RESTORE ---- */

WRITE_COMMAND(function_dump)
{
    struct buf out = {0};
    for (int i = 0; i < (int)functions_library_count(); i++) {
        const struct library *l = functions_library_at(i);
        functions_payload_add(&out, slice_of(l->code, l->code_len));
    }
    functions_payload_end(&out);
    reply_bulk(c->reply, buf_slice(&out));
    buf_deinit(&out);
}

/* Compiles all libraries of a payload; -1 with the error's text, and none. */
static int read_payload(struct slice body, bool trusted, struct library **libraries,
                        struct buf *error) REQUIRES(keyspace_lock)
{
    int count = 0;
    bool fine = true;
    struct buf code = {0};
    while (body.len > 0 && fine) {
        buf_clear(&code);
        if (count == RESTORE_LIBRARIES_MAX || !functions_payload_next(&body, &code)) {
            buf_append_cstr(error, "failed loading functions payload");
            fine = false;
        } else {
            libraries[count] = functions_compile(buf_slice(&code), trusted, false, error);
            fine = libraries[count] != NULL;
            count += fine;
        }
    }
    buf_deinit(&code);
    for (int i = 0; !fine && i < count; i++) {
        functions_free(libraries[i]);
    }
    return fine ? count : -1;
}

WRITE_COMMAND(function_restore)
{
    bool replace = c->argc > 3 && call_arg_is(c, 3, "replace");
    bool flush = c->argc > 3 && call_arg_is(c, 3, "flush");
    struct slice body;
    struct buf error = {0};
    if (c->argc > 4) {
        refuse_arguments(c);
        return;
    }
    if (c->argc == 4 && !replace && !flush && !call_arg_is(c, 3, "append")) {
        reply_error(c->reply,
                    "ERR Wrong restore policy given, value should be either FLUSH, APPEND "
                    "or REPLACE.");
        return;
    }
    if (!functions_payload_open(c->argv[2], &body)) {
        reply_error(c->reply, "ERR DUMP payload version or checksum are wrong");
        return;
    }
    struct library **libraries = mem_alloc(RESTORE_LIBRARIES_MAX * sizeof(*libraries));
    int count = read_payload(body, c->session->internal, libraries, &error);
    if (count < 0 || !functions_adopt_take(libraries, count, replace, flush, &error)) {
        reply_failure(c, &error);
    } else {
        c->dirty += flush || count > 0;
        if (propagate_peers && flush) {
            TELL_PEERS(c, SLICE("FUNCTION"), SLICE("FLUSH"));
        }
        for (int i = 0; propagate_peers && i < count; i++) {
            tell_peers_of(c, libraries[i]);
        }
        reply_ok(c->reply);
    }
    mem_free(libraries);
}

PLAIN_COMMAND(function_help)
{
    static const char *const lines[] = {
        "DELETE <library name>",
        "    Deletes a library and its functions.",
        "DUMP",
        "    Returns all libraries as a payload for RESTORE.",
        "FLUSH [ASYNC|SYNC]",
        "    Deletes all libraries.",
        "KILL",
        "    Ends the function that runs, unless it has written already.",
        "LIST [LIBRARYNAME <pattern>] [WITHCODE]",
        "    Describes the libraries, or those whose names match.",
        "LOAD [REPLACE] <function code>",
        "    Loads a library, in place of one of the same name with REPLACE.",
        "RESTORE <payload> [FLUSH|APPEND|REPLACE]",
        "    Loads the libraries of a payload: in place of all, beside the others (the default), "
        "or",
        "    in place of those of the same names.",
        "STATS",
        "    Describes the function that runs, and counts libraries and functions.",
        NULL,
    };
    call_reply_help(c, lines);
}

/* ---- tables ---- */

#define ALL_SUCCEED "request_policy:all_shards,response_policy:all_succeeded"

static const struct command_row function_subcommands[] = {
    {.name = "delete",
     .run = function_delete,
     .arity = 3,
     .flags = CMD_NOSCRIPT | CMD_WRITE,
     .categories = CATEGORY_SCRIPTING,
     .tips = ALL_SUCCEED,
     .group = "scripting",
     .since = "7.0.0",
     .summary = "Deletes a library and its functions.",
     .complexity = "O(N) where N is the number of libraries",
     .args = "library-name"},
    {.name = "dump",
     .run = function_dump,
     .arity = 2,
     .flags = CMD_NOSCRIPT | CMD_EXCLUSIVE | CMD_SLOW,
     .categories = CATEGORY_SCRIPTING,
     .group = "scripting",
     .since = "7.0.0",
     .summary = "Returns all libraries as a payload.",
     .complexity = "O(N) where N is the length of their code"},
    {.name = "flush",
     .run = function_flush,
     .arity = -2,
     .flags = CMD_NOSCRIPT | CMD_WRITE | CMD_SLOW,
     .categories = CATEGORY_SCRIPTING,
     .tips = ALL_SUCCEED,
     .group = "scripting",
     .since = "7.0.0",
     .summary = "Deletes all libraries.",
     .complexity = "O(N) where N is the number of functions",
     .args = "[ASYNC|SYNC]"},
    {.name = "help",
     .run = function_help,
     .arity = 2,
     .flags = CMD_LOADING | CMD_STALE,
     .categories = CATEGORY_SCRIPTING,
     .group = "scripting",
     .since = "7.0.0",
     .summary = "Lists the subcommands.",
     .complexity = "O(1)"},
    {.name = "kill",
     .run = function_kill,
     .arity = 2,
     .flags = CMD_NOSCRIPT | CMD_ALLOW_BUSY,
     .categories = CATEGORY_SCRIPTING,
     .tips = "request_policy:all_shards,response_policy:one_succeeded",
     .group = "scripting",
     .since = "7.0.0",
     .summary = "Ends the function that runs, unless it has written.",
     .complexity = "O(1)"},
    {.name = "list",
     .run = function_list,
     .arity = -2,
     .flags = CMD_NOSCRIPT | CMD_EXCLUSIVE | CMD_SLOW,
     .categories = CATEGORY_SCRIPTING,
     .tips = "nondeterministic_output_order",
     .group = "scripting",
     .since = "7.0.0",
     .summary = "Describes the libraries.",
     .complexity = "O(N) where N is the number of functions",
     .args = "[LIBRARYNAME library-name-pattern] [WITHCODE]"},
    {.name = "load",
     .run = function_load,
     .arity = -3,
     .flags = CMD_NOSCRIPT | CMD_WRITE | CMD_DENYOOM | CMD_SLOW,
     .categories = CATEGORY_SCRIPTING,
     .tips = ALL_SUCCEED,
     .group = "scripting",
     .since = "7.0.0",
     .summary = "Loads a library.",
     .complexity = "O(N) where N is the length of its code, and what the code does",
     .args = "[REPLACE] function-code"},
    {.name = "restore",
     .run = function_restore,
     .arity = -3,
     .flags = CMD_NOSCRIPT | CMD_WRITE | CMD_DENYOOM | CMD_SLOW,
     .categories = CATEGORY_SCRIPTING,
     .tips = ALL_SUCCEED,
     .group = "scripting",
     .since = "7.0.0",
     .summary = "Loads the libraries of a payload.",
     .complexity = "O(N) where N is the length of the payload",
     .args = "serialized-value [FLUSH|APPEND|REPLACE]"},
    {.name = "stats",
     .run = function_stats,
     .arity = 2,
     .flags = CMD_NOSCRIPT | CMD_ALLOW_BUSY,
     .categories = CATEGORY_SCRIPTING,
     .tips = "nondeterministic_output,request_policy:all_shards,response_policy:special",
     .group = "scripting",
     .since = "7.0.0",
     .summary = "Describes the function that runs, and counts libraries and functions.",
     .complexity = "O(1)"},
    {.name = NULL},
};

#define FCALL_FLAGS                                                                                \
    (CMD_NOSCRIPT | CMD_SKIP_MONITOR | CMD_NO_MANDATORY_KEYS | CMD_STALE | CMD_EXCLUSIVE | CMD_SLOW)
#define FCALL_ARGS "function numkeys [key [key ...]] [arg [arg ...]]"

const struct command_row function_commands[] = {
    {.name = "fcall",
     .run = function_fcall,
     .flags_of = flags_of_fcall,
     .arity = -3,
     .flags = FCALL_FLAGS | CMD_MAY_REPLICATE,
     .categories = CATEGORY_SCRIPTING,
     .keys = "i2/n0,1,1/RW+ACCESS+UPDATE",
     .group = "scripting",
     .since = "7.0.0",
     .summary = "Calls a function of a library.",
     .complexity = "Depends on the function",
     .args = FCALL_ARGS},
    {.name = "fcall_ro",
     .run = function_fcall_ro,
     .flags_of = flags_of_fcall,
     .arity = -3,
     .flags = FCALL_FLAGS | CMD_READONLY,
     .categories = CATEGORY_SCRIPTING,
     .keys = "i2/n0,1,1/RO+ACCESS",
     .group = "scripting",
     .since = "7.0.0",
     .summary = "Calls a function that only reads.",
     .complexity = "Depends on the function",
     .args = FCALL_ARGS},
    {.name = "function",
     .run = NULL,
     .arity = -2,
     .group = "scripting",
     .since = "7.0.0",
     .summary = "Holds the commands about libraries of functions.",
     .complexity = "Depends on the subcommand.",
     .subcommands = function_subcommands},
    {.name = NULL},
};
