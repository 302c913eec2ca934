/* MODULE, and `loadmodule` in the configuration. */
#include "module/module.h"

#include "base/log.h"
#include "base/mem.h"
#include "commands/peer.h"
#include "engine/call.h"
#include "engine/config.h"
#include "engine/modules.h"
#include "module/admin.h"
#include "module/loader.h"

#include <string.h>

/* ---- MODULE ---- */

PLAIN_COMMAND(module_list)
{
    modules_reply_list(c->reply);
}

/* Whether the caller may; else it is told so. */
static bool is_allowed(struct call *c)
{
    if (config_allows_module(peer_is_local(c->session))) {
        return true;
    }
    reply_error(c->reply,
                "ERR MODULE command not allowed. If the enable-module-command option is set to "
                "\"local\", you can run it from a local connection, otherwise you need to set this "
                "option in the configuration file, and then restart the server.");
    return false;
}

/* Whether the module that has just been loaded has all options that it was to be given; else it
 * goes again. */
static bool are_options_known(bool loaded, struct buf *error) REQUIRES(gil)
{
    struct buf name = {0};
    bool some = config_drop_kept(&name);
    const struct module *last = loaded_first();
    while (last && last->next) {
        last = last->next;
    }
    if (some && loaded) {
        struct buf ignored = {0};
        buf_printf(error, "the module has no option '%s'", buf_cstr(&name));
        if (!loader_unload(slice_cstr(last->name), &ignored)) {
            log_warning("MODULE LOADEX: %s", buf_cstr(&ignored));
        }
        buf_deinit(&ignored);
    }
    buf_deinit(&name);
    return !some;
}

static void load(struct call *c, int first_arg, int arg_count) REQUIRES(gil)
{
    struct buf error = {0};
    char *path = mem_dup(c->argv[2].ptr, c->argv[2].len);
    bool loaded = false;
    if (memchr(path, '\0', c->argv[2].len)) {
        buf_printf(&error, "%s: no path has a NUL byte", path);
    } else {
        loaded = loader_load(path, c->argv + first_arg, arg_count, &error);
    }
    if (!are_options_known(loaded, &error)) {
        loaded = false;
    }
    if (loaded) {
        reply_ok(c->reply);
    } else {
        log_warning("MODULE LOAD: %s", buf_cstr(&error));
        reply_errorf(c->reply,
                     "ERR Error loading the extension. Please check the server logs. (%s)",
                     buf_cstr(&error));
    }
    buf_deinit(&error);
    mem_free(path);
}

WORLD_COMMAND(module_load)
{
    gil_assert_world();
    if (is_allowed(c)) {
        load(c, 3, c->argc - 3);
    }
}

/* CONFIG name value ... before ARGS arg ...; an option that the module does not have is no reason
 * to load it all the same. */
WORLD_COMMAND(module_loadex)
{
    gil_assert_world();
    int i = 3;
    if (!is_allowed(c)) {
        return;
    }
    while (i + 2 < c->argc && call_arg_is(c, i, "config")) {
        i += 3;
    }
    if (i < c->argc && !call_arg_is(c, i, "args")) {
        reply_error(c->reply, "ERR syntax error");
        return;
    }
    for (int k = 3; k < i; k += 3) {
        config_keep_line(c->argv + k + 1, 2);
    }
    int first_arg = i < c->argc ? i + 1 : i;
    load(c, first_arg, c->argc - first_arg);
}

WORLD_COMMAND(module_unload)
{
    gil_assert_world();
    struct buf error = {0};
    if (!is_allowed(c)) {
        return;
    }
    if (loader_unload(c->argv[2], &error)) {
        reply_ok(c->reply);
    } else {
        reply_errorf(c->reply, "ERR Error unloading module: %s", buf_cstr(&error));
    }
    buf_deinit(&error);
}

PLAIN_COMMAND(module_help)
{
    static const char *const lines[] = {
        "LIST",
        "    Reply the modules that are loaded.",
        "LOAD <path> [<arg> ...]",
        "    Load a module and pass arguments to it.",
        "LOADEX <path> [[CONFIG NAME VALUE]...] [ARGS ...]",
        "    Load a module, set options of it, and pass arguments to it.",
        "UNLOAD <name>",
        "    Take a module out.",
        NULL,
    };
    call_reply_help(c, lines);
}

#define CHANGES                                                                                    \
    (CMD_NO_ASYNC_LOADING | CMD_ADMIN | CMD_NOSCRIPT | CMD_PROTECTED | CMD_WORLD | CMD_BARRIER)

static const struct command_row subcommands[] = {
    {.name = "help",
     .run = module_help,
     .arity = 2,
     .flags = CMD_LOADING | CMD_STALE,
     .group = "server",
     .since = "5.0.0",
     .summary = "Lists the subcommands.",
     .complexity = "O(1)"},
    {.name = "list",
     .run = module_list,
     .arity = 2,
     .flags = CMD_ADMIN | CMD_NOSCRIPT,
     .tips = "nondeterministic_output_order",
     .group = "server",
     .since = "4.0.0",
     .summary = "Lists the loaded modules.",
     .complexity = "O(N) where N is the number of loaded modules"},
    {.name = "load",
     .run = module_load,
     .arity = -3,
     .flags = CHANGES,
     .group = "server",
     .since = "4.0.0",
     .summary = "Loads a module.",
     .complexity = "O(1)",
     .args = "path [arg [arg ...]]"},
    {.name = "loadex",
     .run = module_loadex,
     .arity = -3,
     .flags = CHANGES,
     .group = "server",
     .since = "7.0.0",
     .summary = "Loads a module and sets its options.",
     .complexity = "O(1)",
     .args = "path [CONFIG name value [CONFIG name value ...]] [ARGS args [args ...]]"},
    {.name = "unload",
     .run = module_unload,
     .arity = 3,
     .flags = CHANGES,
     .group = "server",
     .since = "4.0.0",
     .summary = "Takes a module out.",
     .complexity = "O(1)",
     .args = "name"},
    {.name = NULL},
};

const struct command_row module_commands[] = {
    {.name = "module",
     .run = NULL,
     .arity = -2,
     .group = "server",
     .since = "4.0.0",
     .summary = "Holds the commands about modules.",
     .complexity = "Depends on the subcommand.",
     .subcommands = subcommands},
    {.name = NULL},
};

/* ---- loadmodule: a line for each module, in the order of loading ---- */

/* What lines have said, and what CONFIG REWRITE would have written when they had been loaded.
 * State: world. */
static struct {
    struct buf lines; /* the words of each, as a file has them, with a newline */
    struct buf started;
    bool is_rewritten; /* something else has been written since */
    bool is_loaded;    /* all that the lines say */
} configured;

static bool parse_line(const struct option *option UNUSED, const struct slice *words, int count,
                       const char **error)
{
    if (count == 1 && words[0].len == 0) { /* the built-in default: none */
        return true;
    }
    if (count < 1 || words[0].len == 0) {
        *error = "loadmodule names no file";
        return false;
    }
    if (memchr(words[0].ptr, '\0', words[0].len)) {
        *error = "no path has a NUL byte";
        return false;
    }
    config_append_words(&configured.lines, words, count);
    buf_append_char(&configured.lines, '\n');
    return true;
}

static void format_none(const struct option *option UNUSED, struct buf *out UNUSED)
{
}

static void append_lines(struct buf *out)
{
    for (const struct module *m = loaded_first(); m; m = m->next) {
        struct slice path = slice_cstr(m->path);
        buf_append_cstr(out, "loadmodule ");
        config_append_words(out, &path, 1);
        if (m->arg_count > 0) {
            buf_append_char(out, ' ');
            config_append_words(out, m->args, m->arg_count);
        }
        buf_append_char(out, '\n');
    }
}

/* Modules of an included file cannot be taken out by a line behind it. */
static bool rewrite_lines(bool in_include, struct buf *out, bool *lost)
{
    struct buf now = {0};
    append_lines(&now);
    configured.is_rewritten |= !slice_equal(buf_slice(&now), buf_slice(&configured.started));
    if (configured.is_rewritten && in_include) {
        *lost = true;
    } else if (configured.is_rewritten) {
        buf_append_slice(out, buf_slice(&now));
    }
    buf_deinit(&now);
    return configured.is_rewritten && !in_include;
}

const struct option module_options[] = {
    {.name = "loadmodule",
     .type = OPTION_CUSTOM,
     .flags = OPTION_IMMUTABLE | OPTION_MULTI | OPTION_HIDDEN,
     .initial = "",
     .parse = parse_line,
     .format = format_none,
     .lines = rewrite_lines},
    {.name = NULL},
};

static bool load_line(struct slice line) REQUIRES(gil)
{
    struct slice words[OPTION_MAX_WORDS];
    struct buf scratch = {0}, error = {0};
    int count = option_split_line(line, words, OPTION_MAX_WORDS, &scratch);
    char *path = mem_dup(words[0].ptr, words[0].len);
    bool fine = loader_load(path, words + 1, count - 1, &error);
    if (!fine) {
        log_warning("Can't load module from %s: server aborting", path);
        log_warning("%s", buf_cstr(&error));
    }
    mem_free(path);
    buf_deinit(&error);
    buf_deinit(&scratch);
    return fine;
}

bool module_load_configured(void) NO_THREAD_SAFETY_ANALYSIS
{
    bool fine = true;
    struct buf unclaimed = {0};
    struct slice rest = buf_slice(&configured.lines);
    gil_wake();
    gil_stop_world();
    while (fine && rest.len > 0) {
        size_t len = (size_t)((const char *)memchr(rest.ptr, '\n', rest.len) - rest.ptr);
        fine = load_line(slice_of(rest.ptr, len));
        rest = slice_of(rest.ptr + len + 1, rest.len - len - 1);
    }
    if (fine && config_drop_kept(&unclaimed)) {
        log_warning("The configuration sets %s, and no module has such an option: server aborting",
                    buf_cstr(&unclaimed));
        fine = false;
    }
    buf_deinit(&unclaimed);
    append_lines(&configured.started);
    configured.is_loaded = true;
    gil_resume_world();
    gil_sleep();
    return fine;
}

bool module_is_startup(void)
{
    return !configured.is_loaded;
}

void admin_teardown(void)
{
    buf_deinit(&configured.lines);
    buf_deinit(&configured.started);
}
