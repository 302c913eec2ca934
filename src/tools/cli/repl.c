/* The prompt, and commands read line by line: see repl.h. */
#include "tools/cli/repl.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "base/program.h"
#include "tools/cli/debug.h"
#include "tools/cli/docs.h"
#include "tools/cli/editor.h"
#include "tools/cli/help.h"
#include "tools/cli/hint.h"
#include "tools/cli/history.h"
#include "tools/cli/number.h"
#include "tools/cli/run.h"

/* Commands that take longer show how long. */
#define REPL_SLOW_MS 500

struct repl {
    struct session *s;
    struct docs docs;
    bool docs_loaded;
    bool hints;
    bool leave;
    bool restarts; /* the debugged script is to begin anew: leave, too */
};

static bool is_text(const struct word *word, const char *text)
{
    return word->len == strlen(text) && strncasecmp(word->data, text, word->len) == 0;
}

/* ---- the server's documentation ---- */

static struct reply *ask(struct session *s, const char *word, const char *second)
{
    struct words command = {NULL, 0};
    words_add_strings(&command, word, second, NULL);
    struct reply *reply = session_ask(s, &command);
    words_deinit(&command);
    return reply;
}

/* Errors that will not last: the server wants a password first, or is not ready yet. */
static bool is_passing(const struct reply *reply)
{
    return strncmp(reply->text, "NOAUTH", 6) == 0 || strncmp(reply->text, "LOADING", 7) == 0 ||
           strncmp(reply->text, "BUSY", 4) == 0 || strncmp(reply->text, "MASTERDOWN", 10) == 0;
}

/* Asks for COMMAND DOCS where the connection is in a state to be asked; an old server at least
 * tells the names of its commands. Does nothing once there was an answer. */
static void load_docs(struct repl *r)
{
    struct session *s = r->s;
    if (r->docs_loaded || s->link == NULL || s->debugging || s->in_multi || s->silent ||
        s->skip_next || session_is_subscribed(s)) {
        return;
    }
    struct reply *reply = ask(s, "COMMAND", "DOCS");
    if (reply != NULL && reply->type != REPLY_ERROR) {
        docs_build(&r->docs, reply);
        r->docs_loaded = true;
    } else if (reply != NULL && !is_passing(reply)) {
        struct reply *names = ask(s, "COMMAND", NULL);
        if (names != NULL) {
            docs_build_names(&r->docs, names);
            r->docs_loaded = true;
        }
        reply_destroy(&names);
    }
    reply_destroy(&reply);
}

static void give_hint(void *context, const char *line, size_t len, struct text *out)
{
    const struct repl *r = context;
    if (r->hints && !r->s->debugging) {
        hint_append(out, &r->docs, line, len);
    }
}

static void give_completions(void *context, const char *line, size_t len, struct words *out)
{
    const struct repl *r = context;
    hint_complete(out, &r->docs, line, len);
}

static void print_help(struct repl *r, const struct words *line)
{
    struct text out;
    text_init(&out);
    if (line->count > 1) {
        if (r->s->link == NULL) {
            (void)session_connect(r->s);
        }
        load_docs(r);
        if (!r->docs_loaded) {
            fflush(stdout);
            fprintf(stderr, "Help on commands comes from the server (COMMAND DOCS), and it gave "
                            "none.\n");
        }
    }
    help_append(&out, line, &r->docs);
    fwrite(out.data, 1, out.len, stdout);
    fflush(stdout);
    text_deinit(&out);
}

/* ---- preferences ---- */

/* ":set hints" and the like. `from_file` only changes how a mistake is reported. */
static void set_preference(struct repl *r, const struct words *line, const char *from_file)
{
    if (words_is(line, 0, ":set") && words_is(line, 1, "hints") && line->count == 2) {
        r->hints = true;
    } else if (words_is(line, 0, ":set") && words_is(line, 1, "nohints") && line->count == 2) {
        r->hints = false;
    } else if (from_file != NULL) {
        fprintf(stderr, "%s: unknown preference '%s'\n", from_file, line->list[0].data);
    } else {
        printf("unknown %s internal command '%s'\n", program_name(), line->list[0].data);
    }
}

/* A file in the home directory, or where the environment variable says; NULL when there is
 * neither. The caller frees it. */
static char *personal_path(const char *variable, const char *name)
{
    const char *set = getenv(variable);
    if (set != NULL) {
        return set[0] != '\0' ? tool_strdup(set) : NULL;
    }
    const char *home = getenv("HOME");
    if (home == NULL || home[0] == '\0') {
        return NULL;
    }
    struct text path;
    text_init(&path);
    text_append_format(&path, "%s/%s", home, name);
    return path.data; /* handed over */
}

static void load_preferences(struct repl *r)
{
    char *path = personal_path("REDISCLI_RCFILE", ".redisclirc");
    FILE *file = path != NULL ? fopen(path, "re") : NULL;
    char *line = NULL;
    size_t capacity = 0;
    ssize_t len;
    while (file != NULL && (len = getline(&line, &capacity, file)) > 0) {
        struct words words;
        if (words_split(line, (size_t)len, &words)) {
            if (words.count > 0) {
                set_preference(r, &words, path);
            }
            words_deinit(&words);
        }
    }
    free(line);
    if (file != NULL) {
        fclose(file);
    }
    free(path);
}

/* ---- one line ---- */

/* Lines that hold secrets stay out of the history. */
static bool is_sensitive(const struct words *line)
{
    if (words_is(line, 0, "auth") || (words_is(line, 0, "acl") && (words_is(line, 1, "setuser") ||
                                                                   words_is(line, 1, "deluser")))) {
        return true;
    }
    bool config_set = words_is(line, 0, "config") && words_is(line, 1, "set");
    bool sentinel = words_is(line, 0, "sentinel");
    for (size_t i = 1; i < line->count; i++) {
        const struct word *word = &line->list[i];
        if (config_set && (is_text(word, "requirepass") || is_text(word, "masterauth") ||
                           is_text(word, "masteruser") || is_text(word, "tls-key-file-pass"))) {
            return true;
        }
        if (sentinel && (is_text(word, "auth-pass") || is_text(word, "sentinel-pass"))) {
            return true;
        }
        if ((words_is(line, 0, "hello") || words_is(line, 0, "migrate")) &&
            (is_text(word, "auth") || is_text(word, "auth2"))) {
            return true;
        }
    }
    return false;
}

static long long now_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (long long)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void connect_elsewhere(struct repl *r, const struct words *line)
{
    long long port;
    if (!number_parse(line->list[2].data, 1, 65535, &port)) {
        printf("Invalid port '%s'\n", line->list[2].data);
        return;
    }
    session_set_address(r->s, line->list[1].data, (int)port);
    docs_deinit(&r->docs);
    r->docs_loaded = false;
    (void)session_connect(r->s);
}

/* "5 ping" runs PING five times. False when the number is none that makes sense. */
static bool take_repeat(struct words *line, long long *times)
{
    *times = 1;
    if (line->count < 2) {
        return true;
    }
    const char *first = line->list[0].data;
    size_t sign = first[0] == '-' ? 1 : 0;
    if (first[sign] == '\0' || strspn(first + sign, "0123456789") != line->list[0].len - sign) {
        return true;
    }
    if (!number_parse(first, 1, LLONG_MAX, times)) {
        return false;
    }
    words_drop_first(line, 1);
    return true;
}

static void run_line(struct repl *r, struct words *line)
{
    long long times;
    if (!take_repeat(line, &times)) {
        printf("Invalid %s repeat command option value.\n", program_name());
        return;
    }
    long long start_ms = now_ms();
    (void)run_repeatedly(r->s, line, times, false);
    if (r->s->debug_ended) {
        debug_end(r->s);
    }
    long long elapsed_ms = now_ms() - start_ms;
    if (elapsed_ms >= REPL_SLOW_MS && r->s->output == OUTPUT_TTY) {
        printf("(%.2fs)\n", (double)elapsed_ms / 1000);
    }
}

/* The prompt's own commands; everything else is the server's. */
static void execute(struct repl *r, struct words *line)
{
    const struct words *l = line;
    if (words_is(l, 0, "quit") || words_is(l, 0, "exit")) {
        r->leave = true;
    } else if (l->list[0].data[0] == ':') {
        set_preference(r, l, NULL);
    } else if (words_is(l, 0, "restart") && r->s->debugs_file) {
        r->leave = r->restarts = true;
    } else if (words_is(l, 0, "restart")) {
        printf("Use 'restart' only in Lua debugging mode.\n");
    } else if (help_is_asked(l) && !r->s->debugging) {
        print_help(r, l);
    } else if (words_is(l, 0, "connect") && l->count == 3) {
        connect_elsewhere(r, l);
    } else if (words_is(l, 0, "clear") && l->count == 1) {
        editor_clear_screen();
    } else {
        run_line(r, line);
    }
    fflush(stdout);
}

static void handle_line(struct repl *r, struct history *history, const struct text *typed)
{
    struct words line;
    bool whole = r->s->debugging && debug_split_code(typed, &line);
    if (!whole && !words_split(typed->data, typed->len, &line)) {
        history_add(history, typed->data, typed->len);
        printf("Invalid argument(s)\n");
        fflush(stdout);
        return;
    }
    if (line.count > 0 && line.list[0].len > 0) {
        if (!is_sensitive(&line)) {
            history_add(history, typed->data, typed->len);
        }
        execute(r, &line);
    }
    words_deinit(&line);
}

/* A prompt for a person: connects first, so that the prompt tells where it is. */
static void begin_interactive(struct repl *r)
{
    load_preferences(r);
    session_catch_interrupts(r->s);
    if (!r->s->debugging) {
        (void)session_connect(r->s);
    }
}

/* True: the debugged script is to begin anew. */
static bool run(struct session *s)
{
    struct repl r;
    memset(&r, 0, sizeof(r));
    r.s = s;
    s->tells_redirections = true;
    r.hints = true;
    bool person = isatty(STDIN_FILENO) != 0;
    char *history_path = person ? personal_path("REDISCLI_HISTFILE", ".rediscli_history") : NULL;
    struct history *history = history_create(history_path);
    struct editor_source source = {&r, give_hint, give_completions};
    struct editor *editor = editor_create(history, &source);
    struct text prompt;
    struct text typed;
    text_init(&prompt);
    text_init(&typed);
    if (person) {
        begin_interactive(&r);
    } else if (!s->debugging) {
        (void)session_connect(s);
    }
    while (!r.leave) {
        if (person) {
            load_docs(&r);
        }
        text_clear(&prompt);
        session_prompt(s, &prompt);
        if (editor_read(editor, prompt.data, &typed) == EDITOR_END) {
            break;
        }
        handle_line(&r, history, &typed);
        if (!r.leave && s->interactive && session_is_subscribed(s)) {
            (void)run_listen(s, false);
        }
    }
    text_deinit(&typed);
    text_deinit(&prompt);
    editor_destroy(&editor);
    history_destroy(&history);
    free(history_path);
    docs_deinit(&r.docs);
    return r.restarts;
}

int repl_run(struct session *s)
{
    (void)run(s);
    return 0;
}

bool repl_debug(struct session *s)
{
    return run(s);
}

int repl_help(struct session *s, const struct words *line)
{
    struct repl r;
    memset(&r, 0, sizeof(r));
    r.s = s;
    print_help(&r, line);
    int status = line->count > 1 && !r.docs_loaded ? 1 : 0;
    docs_deinit(&r.docs);
    return status;
}
