/* See proc_title.h. */
#include "server/proc_title.h"

#include "base/mem.h"
#include "engine/config.h"
#include "net/settings.h"
#include "net/tls_settings.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Longest title; longer ones are cut. */
#define TITLE_BYTES 1024

static struct {
    bool wanted;
    char *template;
    char *place; /* where the arguments and the environment were */
    size_t bytes;
    char name[256];    /* argv[0] */
    char address[288]; /* as {listen-addr} showed it last: for children */
} title;

/* ---- the place ---- */

/* The environment's strings in memory of their own; the old ones may be written over. */
static void move_environment(void)
{
    size_t count = 0;
    while (environ[count]) {
        count++;
    }
    char **moved = mem_alloc((count + 1) * sizeof(char *));
    for (size_t i = 0; i < count; i++) {
        moved[i] = mem_dup(environ[i], strlen(environ[i]));
    }
    moved[count] = NULL;
    environ = moved; /* for the process's life, as libc wants it */
}

void proc_title_setup(int argc, char **argv)
{
    if (argc < 1) {
        return;
    }
    snprintf(title.name, sizeof(title.name), "%s", argv[0]);
    char *end = argv[0];
    for (int i = 0; i < argc && argv[i] == end; i++) {
        end = argv[i] + strlen(argv[i]) + 1;
    }
    for (char **e = environ; *e == end; e++) {
        end = *e + strlen(*e) + 1;
    }
    move_environment();
    title.place = argv[0];
    title.bytes = (size_t)(end - argv[0]);
}

static void write_title(const char *text, size_t len)
{
    if (!title.wanted || title.bytes == 0) {
        return;
    }
    len = len < title.bytes - 1 ? len : title.bytes - 1;
    memcpy(title.place, text, len);
    memset(title.place + len, 0, title.bytes - len);
}

/* ---- the template ---- */

/* The first address and the port, or the Unix socket. */
static void append_address(struct buf *out)
{
    const struct net_settings *n = &net_settings;
    const char *first = n->bind_count > 0 ? n->bind[0] : "*";
    int64_t port = n->port ? n->port : tls_settings.port;
    if (port) {
        first += first[0] == '-';
        buf_printf(out, strchr(first, ':') ? "[%s]:%lld" : "%s:%lld", first, (long long)port);
    } else {
        buf_append_cstr(out, n->unixsocket ? n->unixsocket : "");
    }
}

/* Appends what a variable stands for; false when there is no such variable. */
static bool append_variable(struct slice name, struct buf *out)
{
    if (slice_equal(name, SLICE("title"))) {
        buf_append_cstr(out, title.name);
    } else if (slice_equal(name, SLICE("listen-addr"))) {
        append_address(out);
    } else if (slice_equal(name, SLICE("server-mode"))) {
        /* "[cluster]" or "[sentinel]" where there are such modes */
    } else if (slice_equal(name, SLICE("port"))) {
        buf_printf(out, "%lld", (long long)net_settings.port);
    } else if (slice_equal(name, SLICE("tls-port"))) {
        buf_printf(out, "%lld", (long long)tls_settings.port);
    } else if (slice_equal(name, SLICE("unixsocket"))) {
        buf_append_cstr(out, net_settings.unixsocket ? net_settings.unixsocket : "");
    } else if (slice_equal(name, SLICE("config-file"))) {
        buf_append_cstr(out, config_file_path()[0] ? config_file_path() : "-");
    } else {
        return false;
    }
    return true;
}

/* Appends the template with its {variables} replaced; false when it is malformed. */
static bool expand(struct slice template, struct buf *out)
{
    for (size_t i = 0; i < template.len; i++) {
        if (template.ptr[i] != '{') {
            buf_append_char(out, template.ptr[i]);
            continue;
        }
        const char *begin = template.ptr + i + 1;
        const char *end = memchr(begin, '}', template.len - i - 1);
        if (!end || !append_variable(slice_of(begin, (size_t)(end - begin)), out)) {
            return false;
        }
        i = (size_t)(end - template.ptr);
    }
    while (out->len > 0 && out->data[out->len - 1] == ' ') {
        out->len--; /* behind an empty variable */
    }
    return true;
}

void proc_title_set(void)
{
    struct buf text = {0}, address = {0};
    append_address(&address);
    snprintf(title.address, sizeof(title.address), "%s", buf_cstr(&address));
    if (expand(slice_cstr(title.template), &text)) {
        write_title(text.data, text.len < TITLE_BYTES ? text.len : TITLE_BYTES);
    }
    buf_deinit(&text);
    buf_deinit(&address);
}

void proc_title_set_child(const char *what)
{
    char text[TITLE_BYTES];
    size_t len = 0;
    for (const char *p = what; *p && len < sizeof(text); p++) {
        text[len++] = *p;
    }
    if (len < sizeof(text)) {
        text[len++] = ' ';
    }
    for (const char *p = title.address; *p && len < sizeof(text); p++) {
        text[len++] = *p;
    }
    write_title(text, len);
}

/* ---- options ---- */

static bool check_template(const struct option *option UNUSED, struct slice text,
                           const char **error)
{
    struct buf expanded = {0};
    bool fine = expand(text, &expanded) && expanded.len > 0;
    *error = "template format is invalid or contains unknown variables";
    buf_deinit(&expanded);
    return fine;
}

static bool apply_template(const struct option *option UNUSED, const char **error UNUSED)
{
    proc_title_set();
    return true;
}

void proc_title_teardown(void)
{
    mem_free(title.template);
    title.template = NULL;
}

const struct option proc_title_options[] = {
    {.name = "set-proc-title",
     .type = OPTION_BOOL,
     .flags = OPTION_IMMUTABLE,
     .target = &title.wanted,
     .initial = "yes"},
    {.name = "proc-title-template",
     .type = OPTION_STRING,
     .target = &title.template,
     .initial = "{title} {listen-addr} {server-mode}",
     .check = check_template,
     .apply = apply_template},
    {.name = NULL},
};
