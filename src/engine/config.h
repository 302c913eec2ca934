/* The set of all options: joined from the folders' tables at boot, read from keydb.conf and
 * arguments, served by CONFIG. State: world. */
#ifndef ENGINE_CONFIG_H
#define ENGINE_CONFIG_H

#include "base/option.h"

/* Adds a table (ends with a NULL name) and stores its defaults. Boot. Aborts on a double name. */
void config_register(const struct option *options);
/* Adds one option, or takes it out again: those of modules, which come and go. It is in no table,
 * and its owner's. False when the name is taken. World. */
bool config_add(const struct option *option) MUST_CHECK;
void config_remove(const struct option *option);
/* Whether there are such options: they are looked at with the keyspace lock in exclusive mode, or
 * not at all. Awake. */
bool config_has_added(void);
/* What files and arguments say of names with a dot is for modules that are loaded later: it is kept
 * until one claims it. Keeps a name and its words; gives the words of the last line of that name,
 * in canonical form, and forgets its lines (false: there is none); forgets all, and appends the
 * first name that nobody has claimed (false: there is none). World, or boot. */
void config_keep_line(const struct slice *words, int count);
bool config_claim_line(struct slice name, struct buf *words);
bool config_drop_kept(struct buf *first_name);
/* Forgets all tables (the options' variables keep their values). */
void config_teardown(void);
/* The option of that name or alias, NULL when there is none. */
const struct option *config_find(struct slice name);
/* Calls `visit` for every option, in order of registration; an alias counts by itself (name given).
 */
void config_each(void (*visit)(const struct option *o, const char *name, void *context),
                 void *context);

/* Reads one line of a file or of arguments: words[0] is the name. On a fault returns false and says
 * why. `include` is handled by config_load_file. Boot. A later line replaces what an earlier one
 * said, but for OPTION_REPEAT: its parse function gets the words of all lines so far, joined, and
 * always replaces the value. */
bool config_apply_words(const struct slice *words, int count, const char **error) MUST_CHECK;
/* Reads a file ("-" is standard input). On a fault reports file, line and text on stderr as Redis
 * does and returns false. */
bool config_load_file(const char *path) MUST_CHECK;
/* Reads text (arguments joined into lines). The name stands for the file in reports. */
bool config_load_text(struct slice text, const char *name) MUST_CHECK;
/* CONFIG SET: names and values alternate. All or none; on a fault *failed is the option's name as
 * given and *error why ("can't set immutable config", "duplicate parameter" ...), NULL when there
 * is no such option. Values that change are applied (option.h), each apply function once; when one
 * refuses, all old values are restored and applied. The value of an OPTION_MULTI option is split
 * into words as a line is. `peer_is_local`: enable-protected-configs local allows it. World. */
bool config_set_from(const struct slice *pairs, int pair_count, bool peer_is_local,
                     struct slice *failed, const char **error) MUST_CHECK;
/* The same for a caller that has compared OPTION_PROTECTED options with its peer itself: here only
 * enable-protected-configs no refuses them. */
bool config_set(const struct slice *pairs, int pair_count, struct slice *failed,
                const char **error) MUST_CHECK;
/* Appends words as a file should hold them: separated by blanks, quoted where they must be.
 * option_split_line reads the same words back. */
void config_append_words(struct buf *out, const struct slice *words, int count);
/* CONFIG REWRITE into the file that was loaded: keeps comments and order, changes what differs,
 * appends what is new. Written to a temporary file, fsynced, renamed. On a fault *error says why
 * ("No such file or directory" ...). `include` lines stay; what an included file set and nobody
 * changed is not repeated, what was changed is overruled behind them. Where no line can do that (a
 * user of an included file) all else is written, and the result is false all the same. */
bool config_rewrite(const char **error) MUST_CHECK;
/* The same, with a line for every option that has a value and is shown by CONFIG GET *. */
bool config_rewrite_all(const char **error) MUST_CHECK;
/* Path of the loaded file (absolute), "" without one. */
const char *config_file_path(void);
/* enable-protected-configs, enable-debug-command, enable-module-command: who may ("no", "yes",
 * "local"). */
extern const struct option config_protect_options[];
bool config_allows_protected(bool peer_is_local);
bool config_allows_debug(bool peer_is_local);
bool config_allows_module(bool peer_is_local);

#endif
