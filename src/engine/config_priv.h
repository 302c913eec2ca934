/* The joined options and what their file said, for config.c (loading, setting) and
 * config_rewrite.c. State: world. */
#ifndef ENGINE_CONFIG_PRIV_H
#define ENGINE_CONFIG_PRIV_H

#include "engine/config.h"

/* Who gave an option its value at boot. */
enum config_source { CONFIG_FROM_DEFAULT, CONFIG_FROM_FILE, CONFIG_FROM_INCLUDE, CONFIG_FROM_TEXT };

/* A file or its longest line may not be longer than this: configurations are written by people. */
#define CONFIG_FILE_MAX_BYTES (16 * 1024 * 1024)

struct config_entry {
    const struct option *option;
    struct buf initial_value; /* the built-in default as CONFIG GET shows it */
    /* Of the line that set it last at boot (OPTION_REPEAT: of all its lines): the words in
     * canonical form, and what CONFIG GET showed after it. Empty without a line. */
    struct buf loaded_words, loaded_value;
    enum config_source source;
    bool in_include; /* some included file sets it */
    bool pending;    /* among the names of the CONFIG SET that is running */
};

/* Whether a file that another one includes is being read. Boot. */
bool config_reads_include(void);
/* Number of registered options. */
unsigned config_entry_count(void);
/* The option registered at that place; index < config_entry_count(). */
struct config_entry *config_entry_at(unsigned index);
/* By name or alias, NULL when unknown. */
struct config_entry *config_entry_find(struct slice name);
/* Forgets the lines that are kept for modules. */
void config_forget_kept(void);
/* Whether these words of a line of an OPTION_REPEAT option take back all lines before it. */
bool config_takes_back(const struct option *option, const struct slice *words, int count);
/* Appends the current value as CONFIG GET shows it, in words of canonical form. */
void config_append_value_words(const struct option *option, struct buf *out);
/* Reads a whole file ("-": standard input) into `content`; returns 0 or an errno value (EFBIG over
 * CONFIG_FILE_MAX_BYTES). */
int config_read_file(const char *path, struct buf *content) MUST_CHECK;
/* Replaces the file behind `path` (a link's target) by `content`, as a whole or not at all, for
 * good: a temporary file, synced, renamed, the directory synced. A new file is its owner's only.
 * Returns 0 or an errno value. */
int config_replace_file(const char *path, struct slice content) MUST_CHECK;
/* The line that starts at *pos (without its newline, blanks around it trimmed); moves *pos behind
 * it. False at the end. */
bool config_next_line(struct slice text, size_t *pos, struct slice *line);

#endif
