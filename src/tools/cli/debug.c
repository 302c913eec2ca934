/* A session of the script debugger: see debug.h. */
#include "tools/cli/debug.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/format.h"
#include "tools/cli/run.h"

static const char last_line[] = "<endsession>";

/* ---- what is sent ---- */

void debug_note_command(struct session *s, const struct words *command)
{
    if (s->debugging) {
        return;
    }
    if (command->count == 3 && words_is(command, 0, "script") && words_is(command, 1, "debug")) {
        s->debugs_eval = words_is(command, 2, "yes") || words_is(command, 2, "sync");
    } else if (s->debugs_eval && words_is(command, 0, "eval")) {
        s->debugging = true;
    }
}

bool debug_split_code(const struct text *line, struct words *out)
{
    static const char *const names[] = {"eval ", "e "};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        size_t len = strlen(names[i]);
        if (line->len >= len && memcmp(line->data, names[i], len) == 0) {
            *out = (struct words){NULL, 0};
            words_add(out, line->data, len - 1);
            words_add(out, line->data + len, line->len - len);
            return true;
        }
    }
    return false;
}

/* ---- what comes ---- */

/* An SGR colour, and whether it is bold. */
struct colour {
    int code;
    bool bold;
};

static struct colour colour_of(const char *line, size_t len)
{
    static const struct {
        const char *mark;
        struct colour colour;
    } rows[] = {
        {"<debug>", {37, true}},   {"<redis>", {32, false}}, {"<reply>", {36, false}},
        {"<error>", {31, false}},  {"<hint>", {37, true}},   {"<value>", {35, false}},
        {"<retval>", {35, false}},
    };
    struct colour found = {37, false};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strstr(line, rows[i].mark) != NULL) {
            found = rows[i].colour;
        }
    }
    if (len > 4 && isdigit((unsigned char)line[3]) != 0) {
        if (line[1] == '>') {
            found = (struct colour){33, false}; /* the line that runs next */
        } else if (line[2] == '#') {
            found = (struct colour){37, true}; /* a breakpoint */
        }
    }
    return found;
}

static bool has_colours(void)
{
    const char *terminal = getenv("TERM");
    return terminal != NULL && strstr(terminal, "xterm") != NULL;
}

static void append_line(struct text *out, const struct reply *line)
{
    if (!has_colours()) {
        text_append(out, line->text, line->len);
        return;
    }
    struct colour colour = colour_of(line->text, line->len);
    text_append_format(out, "\033[%d;%d;49m", colour.bold ? 1 : 0, colour.code);
    text_append(out, line->text, line->len);
    text_append_string(out, "\033[0m");
}

void debug_format(struct session *s, struct text *out, const struct reply *reply)
{
    if (reply->type != REPLY_ARRAY) {
        format_reply(out, reply, s->o, OUTPUT_RAW);
        return;
    }
    for (size_t i = 0; i < reply->count; i++) {
        const struct reply *line = &reply->items[i];
        text_append_string(out, i > 0 ? s->o->element_delimiter : "");
        if (line->type != REPLY_STATUS) {
            continue;
        }
        if (strncmp(line->text, last_line, strlen(last_line)) == 0) {
            s->debugging = s->debugs_eval = false;
            s->debug_ended = true;
            s->output = OUTPUT_TTY;
        } else {
            append_line(out, line);
        }
    }
    text_append_string(out, s->o->command_delimiter);
}

void debug_end(struct session *s)
{
    s->debug_ended = false;
    (void)run_last_reply(s);
    printf("\n(Lua debugging session ended%s)\n\n",
           s->o->ldb_sync ? "" : " -- dataset changes rolled back");
    fflush(stdout);
    (void)session_connect(s);
}
