/* See signal_options.h. */
#include "server/signal_options.h"

#include "engine/shutdown.h"

#include <signal.h>
#include <stdatomic.h>

static _Atomic unsigned on_sigint, on_sigterm;

static const struct {
    const char *name;
    unsigned flag;
} words_known[] = {{"default", 0},
                   {"save", SHUTDOWN_SAVE},
                   {"nosave", SHUTDOWN_NOSAVE},
                   {"now", SHUTDOWN_NOW},
                   {"force", SHUTDOWN_FORCE}};

#define WORDS_KNOWN (sizeof(words_known) / sizeof(words_known[0]))

static _Atomic unsigned *flags_of(const struct option *option)
{
    return option->target;
}

static bool parse_flags(const struct option *option, const struct slice *words, int count,
                        const char **error)
{
    unsigned flags = 0;
    for (int i = 0; i < count; i++) {
        size_t k = 0;
        while (k < WORDS_KNOWN && !slice_equal_nocase(words[i], words_known[k].name)) {
            k++;
        }
        if (k == WORDS_KNOWN) {
            *error = "argument(s) must be one of the following: default, save, nosave, now, force";
            return false;
        }
        flags |= words_known[k].flag;
    }
    if ((flags & SHUTDOWN_SAVE) && (flags & SHUTDOWN_NOSAVE)) {
        *error = "shutdown options SAVE and NOSAVE can't be used simultaneously";
        return false;
    }
    *flags_of(option) = flags;
    return true;
}

static void format_flags(const struct option *option, struct buf *out)
{
    unsigned flags = *flags_of(option);
    bool first = true;
    for (size_t k = 0; k < WORDS_KNOWN; k++) {
        if (flags == words_known[k].flag || (flags & words_known[k].flag)) {
            buf_printf(out, "%s%s", first ? "" : " ", words_known[k].name);
            first = false;
        }
    }
}

unsigned signal_shutdown_flags(int signal_number)
{
    return signal_number == SIGINT ? on_sigint : on_sigterm;
}

const struct option signal_options[] = {
    {.name = "shutdown-on-sigint",
     .type = OPTION_CUSTOM,
     .flags = OPTION_MULTI | OPTION_WORDLESS,
     .target = &on_sigint,
     .initial = "default",
     .parse = parse_flags,
     .format = format_flags},
    {.name = "shutdown-on-sigterm",
     .type = OPTION_CUSTOM,
     .flags = OPTION_MULTI | OPTION_WORDLESS,
     .target = &on_sigterm,
     .initial = "default",
     .parse = parse_flags,
     .format = format_flags},
    {.name = NULL},
};
