/* The `help` command of the prompt: see help.h. */
#include "tools/cli/help.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

#include "base/program.h"

bool help_is_asked(const struct words *line)
{
    return words_is(line, 0, "help") || words_is(line, 0, "?");
}

static void append_general(struct text *out)
{
    text_append_format(out,
                       "%s %s\n"
                       "To get help about commands type:\n"
                       "      \"help @<group>\" to get a list of commands in <group>\n"
                       "      \"help <command>\" for help on <command>\n"
                       "      \"help <tab>\" to get a list of possible help topics\n"
                       "      \"quit\" to exit\n"
                       "\n"
                       "To set %s preferences:\n"
                       "      \":set hints\" enable online hints\n"
                       "      \":set nohints\" disable online hints\n"
                       "Set your preferences in ~/.redisclirc\n",
                       program_name(), program_version(), program_name());
}

/* Bold, grey and yellow, as people know it from redis-cli, whose lines end in CR LF here. */
static void append_command(struct text *out, const struct doc_command *c, bool with_group)
{
    text_append_format(out, "\r\n  \x1b[1m%s\x1b[0m \x1b[90m", c->name);
    docs_append_args(out, c->args, c->arg_count);
    text_append_format(out, "\x1b[0m\r\n  \x1b[33msummary:\x1b[0m %s\r\n", c->summary);
    text_append_format(out, "  \x1b[33msince:\x1b[0m %s\r\n", c->since);
    if (with_group) {
        text_append_format(out, "  \x1b[33mgroup:\x1b[0m %s\r\n", c->group);
    }
}

/* Whether the words from `first` on are the first words of the name. */
static bool name_starts_with(const struct doc_command *c, const struct words *line, size_t first)
{
    const char *at = c->name;
    if (c->name_words < line->count - first) {
        return false;
    }
    for (size_t i = first; i < line->count; i++) {
        size_t len = strcspn(at, " ");
        if (line->list[i].len != len || strncasecmp(at, line->list[i].data, len) != 0) {
            return false;
        }
        at += len + (at[len] == ' ' ? 1 : 0);
    }
    return true;
}

void help_append(struct text *out, const struct words *line, const struct docs *d)
{
    assert(help_is_asked(line));
    if (line->count == 1) {
        append_general(out);
        return;
    }
    const char *topic = line->list[1].data;
    bool is_group = topic[0] == '@' && line->count == 2;
    for (size_t i = 0; i < d->command_count; i++) {
        const struct doc_command *c = &d->commands[i];
        bool wanted =
            is_group ? strcasecmp(topic + 1, c->group) == 0 : name_starts_with(c, line, 1);
        if (wanted) {
            append_command(out, c, !is_group);
        }
    }
    text_append_string(out, "\r\n");
}
