/* Configuration options as data. A folder exports a table of `struct option`; the server joins the
 * tables, reads keydb.conf with them and serves CONFIG GET/SET/REWRITE from them. An option's value
 * lives in a variable of the module it belongs to. State: the tables are immutable; the variables
 * are world state (written before threads start or under the GIL, read by any server thread
 * between). */
#ifndef BASE_OPTION_H
#define BASE_OPTION_H

#include "base/buf.h"
#include "base/compiler.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

enum option_type {
    OPTION_BOOL,   /* bool; yes|no */
    OPTION_INT,    /* int64_t; decimal, within min..max; with OPTION_OCTAL in base 8 */
    OPTION_MEMORY, /* int64_t bytes; "1gb" forms; shown in bytes; within min..max; percentages with
                      OPTION_PERCENT are stored negative */
    OPTION_STRING, /* char *, owned by the option; "" or NULL when empty (OPTION_NULLABLE) */
    OPTION_ENUM,   /* int; one of enum_names */
    OPTION_CUSTOM, /* parse/format below */
};

enum option_flag {
    OPTION_IMMUTABLE = 1 << 0, /* only in keydb.conf and arguments; CONFIG SET refuses */
    OPTION_SENSITIVE = 1 << 1, /* never shown in logs, MONITOR or SLOWLOG */
    OPTION_OCTAL = 1 << 2,
    OPTION_PERCENT = 1 << 3,
    OPTION_MULTI = 1 << 4,     /* takes several words on its line (OPTION_CUSTOM only) */
    OPTION_REPEAT = 1 << 5,    /* may stand on several lines, which add up (OPTION_CUSTOM only) */
    OPTION_HIDDEN = 1 << 6,    /* not shown by CONFIG GET patterns, only by its exact name */
    OPTION_PROTECTED = 1 << 7, /* CONFIG SET refuses unless enable-protected-configs allows */
    OPTION_NULLABLE = 1 << 9,  /* OPTION_STRING: an empty value is stored as NULL, else as "" */
    OPTION_NO_EFFECT =
        1 << 8, /* accepted for existing files; has nothing to switch in this design */
    OPTION_WORDLESS = 1 << 11, /* its name alone on a line says the empty value (OPTION_MULTI) */
    OPTION_WHOLE = 1 << 12,    /* a line with the whole value leaves nothing of those before it, and
                                  an empty line takes nothing back (OPTION_REPEAT) */
    OPTION_VOLATILE = 1 << 10, /* names a file whose content may have changed: CONFIG SET applies it
                                  although the value is the same */
};

struct option_enum {
    const char *name;
    int value;
};

/* Most words that one option line may carry. */
#define OPTION_MAX_WORDS 256

struct option {
    const char *name;
    const char *alias; /* an older or Redis's other name, or NULL */
    enum option_type type;
    unsigned flags;
    void *target;        /* the variable; NULL for OPTION_CUSTOM that keeps its own */
    const char *initial; /* the built-in default, as text */
    const char *empty;   /* how a line of a file says the empty value; NULL: as "" */
    int64_t min, max;    /* OPTION_INT, OPTION_MEMORY */
    int64_t floor;       /* OPTION_MEMORY: what is accepted below it is raised to it; 0: nothing */
    const struct option_enum *enum_names; /* ends with {NULL, 0} */
    /* OPTION_CUSTOM: takes the words after the name. On a fault returns false and says why in
     * `error`. */
    bool (*parse)(const struct option *option, const struct slice *words, int count,
                  const char **error);
    /* OPTION_CUSTOM: appends the current value as CONFIG GET shows it. */
    void (*format)(const struct option *option, struct buf *out);
    /* Extra check of a parsed value before it is stored (OPTION_INT, _MEMORY, _STRING, _ENUM), or
     * NULL. */
    bool (*check)(const struct option *option, struct slice text, const char **error);
    /* Called after CONFIG SET stored a changed value, to make it work at once. On a fault returns
     * false with `error` set, and CONFIG SET restores all old values. NULL when nothing is to be
     * done. */
    bool (*apply)(const struct option *option, const char **error);
    /* For options whose apply only prepares what is to hold: called once at the end of a CONFIG SET
     * that has set one of them, to put it into force or (some option of the command was refused) to
     * drop it. NULL for all others. */
    void (*settle)(bool accepted);
    /* For an option whose every line is a thing of its own (`user`): appends the lines that a file
     * should hold now, each with its newline; false when those that were read still say it. When
     * included files have lines of it too (`in_include`), they stay and the appended ones come
     * behind them; *lost becomes true when that can't say the truth. CONFIG REWRITE asks; format is
     * not for it then. NULL for all others. */
    bool (*lines)(bool in_include, struct buf *out, bool *lost);
    /* With lines: whether its lines are such things on this server; else it is as any option. NULL:
     * always. */
    bool (*has_lines)(void);
};

/* Parses `words` and stores the value. On a fault returns false, sets *error to a text that lives
 * until the thread's next call, and leaves the old value. Does not call apply. */
bool option_store(const struct option *option, const struct slice *words, int count,
                  const char **error) MUST_CHECK;
/* Stores the built-in default. Aborts when the table is wrong. */
void option_store_initial(const struct option *option);
/* Appends the current value as CONFIG GET shows it. */
void option_format(const struct option *option, struct buf *out);
/* True when `name` is the option's name or alias, in any case. */
bool option_named(const struct option *option, struct slice name);

/* Splits a line of keydb.conf into words: blanks separate, "..." takes \n \r \t \b \a \\ \" \xHH,
 * '...' takes
 * \'. Stores up to `max` words into `words`, whose bytes live in `scratch` (cleared first). Returns
 * the count, or -1 when quotes are unbalanced or there are more words. Also used for inline
 * requests. */
int option_split_line(struct slice line, struct slice *words, int max, struct buf *scratch);

#endif
