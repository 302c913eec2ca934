/* The joined options: reading them from files and arguments, CONFIG SET. config_rewrite.c writes
 * them back. */
#include "engine/config_priv.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/version.h"
#include "engine/modules.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Files that include files that include files ...: deeper is a circle. */
#define INCLUDE_DEPTH_MAX 16
/* Bytes of a faulty line that a report shows. */
#define REPORT_LINE_MAX_BYTES 512

/* Chains of names: some hundred. */
#define NAME_CHAINS 512

/* A name or an alias. */
struct config_name {
    struct config_name *next; /* of its chain */
    struct config_entry *entry;
};

static struct {
    struct config_entry **entries; /* each allocated by itself: pointers stay */
    unsigned count, added_count;   /* of them config_add's */
    struct config_name *chains[NAME_CHAINS];
    char *file_path;           /* absolute; NULL without a file */
    enum config_source source; /* of what is being read */
    int include_depth;
} config;

/* ---- The joined table */

unsigned config_entry_count(void)
{
    return config.count;
}

struct config_entry *config_entry_at(unsigned index)
{
    assert(index < config.count);
    return config.entries[index];
}

/* Where a name is, in any case (FNV-1a). */
static struct config_name **chain_of(struct slice name)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < name.len; i++) {
        hash = (hash ^ ((unsigned char)name.ptr[i] | 0x20)) * 16777619u;
    }
    return &config.chains[hash % NAME_CHAINS];
}

struct config_entry *config_entry_find(struct slice name)
{
    for (const struct config_name *n = *chain_of(name); n; n = n->next) {
        if (option_named(n->entry->option, name)) {
            return n->entry;
        }
    }
    return NULL;
}

static void enter_name(struct config_entry *e, const char *name)
{
    struct config_name **chain = chain_of(slice_cstr(name));
    struct config_name *n = mem_alloc(sizeof(*n));
    *n = (struct config_name){*chain, e};
    *chain = n;
}

bool config_reads_include(void)
{
    return config.source == CONFIG_FROM_INCLUDE;
}

static void reject_option(const struct option *option, const char *why)
{
    log_warning("Option table: %s: %s", option->name, why);
    abort();
}

/* With its default stored. */
static void add_entry(const struct option *o)
{
    option_store_initial(o);
    struct config_entry *e = mem_calloc(1, sizeof(*e));
    e->option = o;
    option_format(o, &e->initial_value);
    config.entries = mem_realloc(config.entries, (config.count + 1) * sizeof(*config.entries));
    config.entries[config.count++] = e;
    enter_name(e, o->name);
    if (o->alias != NULL) {
        enter_name(e, o->alias);
    }
}

static void destroy_entry(struct config_entry *e)
{
    buf_deinit(&e->initial_value);
    buf_deinit(&e->loaded_words);
    buf_deinit(&e->loaded_value);
    mem_free(e);
}

bool config_add(const struct option *option)
{
    if (config_entry_find(slice_cstr(option->name)) != NULL) {
        return false;
    }
    add_entry(option);
    config.added_count++;
    return true;
}

bool config_has_added(void)
{
    return config.added_count > 0;
}

void config_remove(const struct option *option)
{
    struct config_name **at = chain_of(slice_cstr(option->name));
    while ((*at)->entry->option != option) {
        at = &(*at)->next;
    }
    struct config_name *name = *at;
    struct config_entry *e = name->entry;
    *at = name->next;
    mem_free(name);
    unsigned i = 0;
    while (config.entries[i] != e) {
        i++;
    }
    config.count--;
    config.added_count--;
    memmove(&config.entries[i], &config.entries[i + 1],
            (config.count - i) * sizeof(*config.entries));
    destroy_entry(e);
}

void config_register(const struct option *options)
{
    for (const struct option *o = options; o->name != NULL; o++) {
        if (config_entry_find(slice_cstr(o->name)) != NULL ||
            (o->alias != NULL && config_entry_find(slice_cstr(o->alias)) != NULL)) {
            reject_option(o, "double name");
        }
        if (o->type == OPTION_CUSTOM ? o->parse == NULL || o->format == NULL : o->target == NULL) {
            reject_option(o, "no way to store it");
        }
        if ((o->flags & (OPTION_MULTI | OPTION_REPEAT)) != 0 && o->type != OPTION_CUSTOM) {
            reject_option(o, "only custom options take several words or lines");
        }
        add_entry(o);
    }
}

void config_teardown(void)
{
    for (unsigned i = 0; i < config.count; i++) {
        destroy_entry(config.entries[i]);
    }
    for (unsigned i = 0; i < NAME_CHAINS; i++) {
        while (config.chains[i] != NULL) {
            struct config_name *n = config.chains[i];
            config.chains[i] = n->next;
            mem_free(n);
        }
    }
    config_forget_kept();
    mem_free(config.entries);
    mem_free(config.file_path);
    memset(&config, 0, sizeof(config));
}

const struct option *config_find(struct slice name)
{
    const struct config_entry *e = config_entry_find(name);
    return e != NULL ? e->option : NULL;
}

void config_each(void (*visit)(const struct option *o, const char *name, void *context),
                 void *context)
{
    for (unsigned i = 0; i < config.count; i++) {
        const struct option *o = config.entries[i]->option;
        visit(o, o->name, context);
        if (o->alias != NULL) {
            visit(o, o->alias, context);
        }
    }
}

const char *config_file_path(void)
{
    return config.file_path != NULL ? config.file_path : "";
}

/* ---- Words and lines */

static bool word_needs_quotes(struct slice word)
{
    for (size_t i = 0; i < word.len; i++) {
        char c = word.ptr[i];
        if (c <= ' ' || c > '~' || c == '"' || c == '\'') {
            return true;
        }
    }
    return word.len == 0;
}

void config_append_words(struct buf *out, const struct slice *words, int count)
{
    for (int i = 0; i < count; i++) {
        if (i > 0) {
            buf_append_char(out, ' ');
        }
        if (word_needs_quotes(words[i])) {
            buf_append_quoted(out, words[i]);
        } else {
            buf_append_slice(out, words[i]);
        }
    }
}

/* Of an option that may stand on several lines "" takes back those before: by itself, or not. */
static bool is_alone_if_empty(const struct option *option, const struct slice *words, int count)
{
    bool alone = true;
    for (int i = 0; option->flags & OPTION_REPEAT && count > 1 && i < count; i++) {
        alone &= words[i].len > 0;
    }
    return alone;
}

/* Splits a value as CONFIG GET shows it and CONFIG SET takes it into the words of its line. */
static int split_value(const struct option *option, struct slice value, struct slice *words,
                       struct buf *scratch)
{
    words[0] = value;
    if ((option->flags & OPTION_MULTI) == 0 || value.len == 0) {
        return 1;
    }
    int count = option_split_line(value, words, OPTION_MAX_WORDS, scratch);
    if (count == 0) { /* nothing but blanks */
        words[0] = SLICE("");
        count = 1;
    }
    return count;
}

void config_append_value_words(const struct option *option, struct buf *out)
{
    struct slice words[OPTION_MAX_WORDS];
    struct buf value = {0}, scratch = {0};
    option_format(option, &value);
    int count = split_value(option, buf_slice(&value), words, &scratch);
    if (count < 0) { /* not in words after all: the value as one */
        words[0] = buf_slice(&value);
        count = 1;
    }
    config_append_words(out, words, count);
    buf_deinit(&value);
    buf_deinit(&scratch);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

bool config_next_line(struct slice text, size_t *pos, struct slice *line)
{
    if (*pos >= text.len) {
        return false;
    }
    const char *start = text.ptr + *pos;
    const char *newline = memchr(start, '\n', text.len - *pos);
    const char *end = newline != NULL ? newline : text.ptr + text.len;
    *pos = (size_t)(end - text.ptr) + 1;
    while (start < end && is_blank(*start)) {
        start++;
    }
    while (end > start && is_blank(end[-1])) {
        end--;
    }
    *line = slice_of(start, (size_t)(end - start));
    return true;
}

int config_read_file(const char *path, struct buf *content)
{
    int fd = strcmp(path, "-") == 0 ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return errno;
    }
    int error = 0;
    for (;;) {
        const size_t chunk_bytes = 64 * 1024;
        ssize_t got = read(fd, buf_reserve(content, chunk_bytes), chunk_bytes);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            error = got < 0 ? errno : 0;
            break;
        }
        content->len += (size_t)got;
        if (content->len > CONFIG_FILE_MAX_BYTES) {
            error = EFBIG;
            break;
        }
    }
    if (fd != STDIN_FILENO) {
        close(fd);
    }
    return error;
}

/* ---- Reading */

bool config_takes_back(const struct option *option, const struct slice *words, int count)
{
    return (option->flags & (OPTION_REPEAT | OPTION_WHOLE)) == OPTION_REPEAT && count == 1 &&
           words[0].len == 0;
}

/* The words that an option's line leaves it with: those of the line, and for OPTION_REPEAT those of
 * earlier lines before them, up to one that takes back what was before it. */
static int join_repeated(const struct config_entry *e, const struct slice *words, int count,
                         struct slice *joined, struct buf *scratch)
{
    int earlier = 0;
    if ((e->option->flags & OPTION_REPEAT) != 0 && e->loaded_words.len > 0 &&
        !config_takes_back(e->option, words, count)) {
        earlier = option_split_line(buf_slice(&e->loaded_words), joined, OPTION_MAX_WORDS, scratch);
        assert(earlier >= 0);
    }
    if (count > 0 && config_takes_back(e->option, joined, earlier)) {
        earlier = 0;
    }
    if (earlier + count > OPTION_MAX_WORDS) {
        return -1;
    }
    memcpy(joined + earlier, words, (size_t)count * sizeof(*words));
    return earlier + count;
}

bool config_apply_words(const struct slice *words, int count, const char **error)
{
    assert(count >= 1);
    struct config_entry *e = config_entry_find(words[0]);
    if (e == NULL && count > 1 && words[0].len > 0 && memchr(words[0].ptr, '.', words[0].len)) {
        config_keep_line(words, count);
        return true;
    }
    if (e == NULL) {
        *error = "Bad directive or wrong number of arguments";
        return false;
    }
    struct slice joined[OPTION_MAX_WORDS], parts[OPTION_MAX_WORDS];
    struct buf scratch = {0}, part_scratch = {0};
    const struct slice *values = words + 1;
    int value_count = count - 1;
    bool is_wordless = count == 1 && (e->option->flags & OPTION_WORDLESS) != 0;
    if (is_wordless && ((e->option->flags & OPTION_REPEAT) == 0 || e->loaded_words.len == 0)) {
        parts[0] = SLICE(""); /* else it adds nothing to the lines before it */
        values = parts;
        value_count = 1;
    } else if (count == 2 && (!e->option->lines || e->option->has_lines)) {
        /* `save "3600 1"`, `replicaof "host 6379"`: words that belong together, in one pair of
         * quotes */
        value_count = split_value(e->option, words[1], parts, &part_scratch);
        values = parts;
    }
    int total = value_count < 0 ? 0 : join_repeated(e, values, value_count, joined, &scratch);
    bool stored = false;
    if (value_count < 0) {
        *error = "unbalanced quotes or too many words";
    } else if (!is_alone_if_empty(e->option, values, value_count)) {
        *error = "an empty word stands on a line of its own";
    } else if (total < 0) {
        *error = "too many words on all lines of the option";
    } else if (count == 1 && !is_wordless) {
        *error = "wrong number of arguments";
    } else {
        stored = option_store(e->option, joined, total, error);
    }
    if (stored) {
        struct buf canonical = {0};
        config_append_words(&canonical, joined, total);
        buf_deinit(&e->loaded_words);
        e->loaded_words = canonical;
        buf_clear(&e->loaded_value);
        option_format(e->option, &e->loaded_value);
        e->source = config.source;
        e->in_include |= config.source == CONFIG_FROM_INCLUDE;
    }
    buf_deinit(&part_scratch);
    buf_deinit(&scratch);
    return stored;
}

/* Says on standard error what is wrong with a line, in the frame that Redis's users know. Secrets
 * are not repeated. */
static void report_fault(const char *file, unsigned line_number, struct slice line,
                         const char *error)
{
    fprintf(stderr,
            "\n*** FATAL CONFIG FILE ERROR (KeyDB %s) ***\n"
            "Reading the configuration file, at line %u of %s\n",
            KEYDB_VERSION, line_number, file);
    size_t name_len = 0;
    while (name_len < line.len && !is_blank(line.ptr[name_len])) {
        name_len++;
    }
    const struct option *option = config_find(slice_of(line.ptr, name_len));
    bool secret = option != NULL && (option->flags & OPTION_SENSITIVE) != 0;
    struct slice shown = slice_of(line.ptr, secret ? name_len : line.len);
    if (shown.len > REPORT_LINE_MAX_BYTES) {
        shown.len = REPORT_LINE_MAX_BYTES;
    }
    fprintf(stderr, ">>> '%.*s%s'\n%s\n", (int)shown.len, shown.ptr,
            shown.len == line.len ? ""
            : secret              ? " (redacted)"
                                  : "...",
            error);
}

static bool load_lines(struct slice text, const char *name);

/* Reads a file into the options: the main one or an included one. */
static bool load_path(const char *path)
{
    struct buf content = {0};
    int fault = config_read_file(path, &content);
    bool loaded = false;
    if (fault != 0) {
        fprintf(stderr, "Fatal error, can't open config file '%s': %s\n", path, strerror(fault));
    } else {
        loaded = load_lines(buf_slice(&content), strcmp(path, "-") == 0 ? "standard input" : path);
    }
    buf_deinit(&content);
    return loaded;
}

/* Reads what `include` names: a file, or all files that a pattern matches, in order of their names
 * (none is fine). On a fault that is the include line's own, *error says why; others are reported
 * already and *error is NULL. */
static bool load_include(struct slice pattern, const char **error)
{
    *error = NULL;
    if (config.include_depth == INCLUDE_DEPTH_MAX) {
        *error = "include is nested too deeply";
        return false;
    }
    char *path = mem_dup(pattern.ptr, pattern.len);
    glob_t matches = {0};
    int found = glob(path, GLOB_NOMAGIC, NULL, &matches);
    bool loaded = found == 0 || (found == GLOB_NOMATCH && pattern.len > 0);
    if (!loaded) {
        *error = pattern.len > 0 ? "include cannot read a directory of its pattern"
                                 : "include names no file";
    }
    enum config_source outer = config.source;
    config.source = outer == CONFIG_FROM_TEXT ? CONFIG_FROM_TEXT : CONFIG_FROM_INCLUDE;
    config.include_depth++;
    for (size_t i = 0; loaded && found == 0 && i < matches.gl_pathc; i++) {
        loaded = load_path(matches.gl_pathv[i]);
    }
    config.include_depth--;
    config.source = outer;
    globfree(&matches);
    mem_free(path);
    return loaded;
}

static bool load_line(struct slice line, const char **error)
{
    struct slice words[OPTION_MAX_WORDS];
    struct buf scratch = {0};
    int count = option_split_line(line, words, OPTION_MAX_WORDS, &scratch);
    bool loaded = true;
    if (count < 0) {
        *error = "Unbalanced quotes in configuration line";
        loaded = false;
    } else if (count == 2 && slice_equal_nocase(words[0], "include")) {
        loaded = load_include(words[1], error);
    } else if (count > 0) {
        loaded = config_apply_words(words, count, error);
    }
    buf_deinit(&scratch);
    return loaded;
}

static bool load_lines(struct slice text, const char *name)
{
    struct slice line;
    unsigned line_number = 0;
    for (size_t pos = 0; config_next_line(text, &pos, &line);) {
        line_number++;
        if (line.len == 0 || line.ptr[0] == '#') {
            continue;
        }
        const char *error = NULL;
        if (!load_line(line, &error)) {
            if (error != NULL) {
                report_fault(name, line_number, line, error);
            }
            return false;
        }
    }
    return true;
}

/* An absolute path to the same file, as it was named (a link stays a link). */
static char *absolute_path(const char *path)
{
    while (path[0] == '.' && path[1] == '/') {
        path += 2;
    }
    char *directory = path[0] == '/' ? NULL : getcwd(NULL, 0);
    struct buf joined = {0};
    if (directory != NULL) {
        buf_printf(&joined, "%s/", strcmp(directory, "/") == 0 ? "" : directory);
        free(directory);
    }
    buf_append_cstr(&joined, path);
    char *result = mem_dup(joined.data, joined.len);
    buf_deinit(&joined);
    return result;
}

bool config_load_file(const char *path)
{
    assert(config.include_depth == 0);
    mem_free(config.file_path);
    config.file_path = strcmp(path, "-") == 0 ? NULL : absolute_path(path);
    config.source = CONFIG_FROM_FILE;
    return load_path(path);
}

bool config_load_text(struct slice text, const char *name)
{
    config.source = CONFIG_FROM_TEXT;
    return load_lines(text, name);
}

/* ---- CONFIG SET */

struct set_item {
    struct config_entry *entry;
    struct slice name, value;
    struct buf old_value;
    bool changed;
};

/* Fills items from the pairs. False with *failed and *error set (*error NULL: unknown). Who is
 * accepted is `pending`. */
static bool set_choose(struct set_item *items, const struct slice *pairs, int pair_count,
                       bool peer_is_local, struct slice *failed, const char **error)
{
    for (int i = 0; i < pair_count; i++) {
        struct set_item *item = &items[i];
        *item = (struct set_item){.name = pairs[2 * i], .value = pairs[2 * i + 1]};
        struct config_entry *e = config_entry_find(item->name);
        *failed = item->name;
        *error = NULL;
        if (e == NULL) {
            return false;
        }
        if ((e->option->flags & OPTION_IMMUTABLE) != 0) {
            *error = "can't set immutable config";
        } else if ((e->option->flags & OPTION_PROTECTED) != 0 &&
                   !config_allows_protected(peer_is_local)) {
            *error = "can't set protected config";
        } else if (e->pending) {
            *error = "duplicate parameter";
        }
        if (*error != NULL) {
            return false;
        }
        e->pending = true;
        item->entry = e;
    }
    return true;
}

static bool set_store(const struct option *option, struct slice value, const char **error)
{
    struct slice words[OPTION_MAX_WORDS];
    struct buf scratch = {0};
    int count = split_value(option, value, words, &scratch);
    bool stored = false;
    if (count < 0) {
        *error = "unbalanced quotes or too many words";
    } else if (!is_alone_if_empty(option, words, count)) {
        *error = "an empty word stands by itself";
    } else {
        stored = option_store(option, words, count, error);
    }
    buf_deinit(&scratch);
    return stored;
}

/* Stores item i and notes whether that changed anything. */
static bool set_one(struct set_item *item, const char **error)
{
    option_format(item->entry->option, &item->old_value);
    if (!set_store(item->entry->option, item->value, error)) {
        return false;
    }
    struct buf new_value = {0};
    option_format(item->entry->option, &new_value);
    item->changed = (item->entry->option->flags & OPTION_VOLATILE) != 0 ||
                    !slice_equal(buf_slice(&new_value), buf_slice(&item->old_value));
    buf_deinit(&new_value);
    return true;
}

/* True when an earlier changed item has the same apply function: one call serves all its options.
 */
static bool apply_is_double(const struct set_item *items, int i)
{
    for (int k = 0; k < i; k++) {
        if (items[k].changed && items[k].entry->option->apply == items[i].entry->option->apply) {
            return true;
        }
    }
    return false;
}

/* Makes the changed items [0, count) work; stops at the first that fails and returns its index,
 * `count` when none. */
static int set_apply(const struct set_item *items, int count, const char **error)
{
    for (int i = 0; i < count; i++) {
        const struct option *o = items[i].entry->option;
        if (items[i].changed && o->apply != NULL && !apply_is_double(items, i) &&
            !o->apply(o, error)) {
            return i;
        }
    }
    return count;
}

/* Gives the items [0, count) their old values again. */
static void set_restore(const struct set_item *items, int count)
{
    for (int i = 0; i < count; i++) {
        const char *error;
        if (items[i].changed &&
            !set_store(items[i].entry->option, buf_slice(&items[i].old_value), &error)) {
            log_warning("CONFIG SET could not restore '%s': %s", items[i].entry->option->name,
                        error);
        }
    }
}

/* Ends what the items' apply functions have prepared; each settle function is called once. */
static void set_settle(const struct set_item *items, int count, bool accepted)
{
    for (int i = 0; i < count; i++) {
        const struct option *o = items[i].entry ? items[i].entry->option : NULL;
        bool is_double = false;
        for (int k = 0; o != NULL && k < i; k++) {
            is_double |= items[k].entry != NULL && items[k].entry->option->settle == o->settle;
        }
        if (o != NULL && o->settle != NULL && !is_double) {
            o->settle(accepted);
        }
    }
}

/* Modules are told which options have changed. */
static void tell_modules(const struct set_item *items, int count)
{
    if (!modules_want(MODULES_CONFIG)) {
        return;
    }
    const char **names = mem_alloc((size_t)count * sizeof(*names));
    struct modules_facts facts = {.names = names};
    for (int i = 0; i < count; i++) {
        if (items[i].changed) {
            names[facts.first++] = items[i].entry->option->name;
        }
    }
    if (facts.first > 0) {
        modules_tell_news(MODULES_CONFIG, 0, &facts);
    }
    mem_free(names);
}

bool config_set_from(const struct slice *pairs, int pair_count, bool peer_is_local,
                     struct slice *failed, const char **error)
{
    assert(pair_count >= 1);
    /* More pairs than options hold an unknown or a double name among the first ones. */
    int count = pair_count <= (int)config.count ? pair_count : (int)config.count + 1;
    struct set_item *items = mem_calloc((size_t)count, sizeof(*items));
    bool done = set_choose(items, pairs, count, peer_is_local, failed, error);
    int stored = 0;
    while (done && stored < count) {
        done = set_one(&items[stored], error);
        *failed = items[stored].name;
        stored += done;
    }
    if (!done) {
        set_restore(items, stored);
    } else {
        int applied = set_apply(items, count, error);
        if (applied < count) {
            done = false;
            *failed = items[applied].name;
            set_restore(items, count);
            /* What was applied, the failed one included, is applied again with the old values. */
            const char *ignored;
            if (set_apply(items, applied + 1, &ignored) <= applied) {
                log_warning("CONFIG SET could not go back to the old value of '%s': %s",
                            items[applied].entry->option->name, ignored);
            }
        }
    }
    set_settle(items, count, done);
    if (done) {
        tell_modules(items, count);
    }
    for (int i = 0; i < count; i++) {
        if (items[i].entry != NULL) {
            items[i].entry->pending = false;
        }
        buf_deinit(&items[i].old_value);
    }
    mem_free(items);
    return done;
}

bool config_set(const struct slice *pairs, int pair_count, struct slice *failed, const char **error)
{
    return config_set_from(pairs, pair_count, true, failed, error);
}

/* ---- Protection */

enum protection { PROTECT_NO, PROTECT_YES, PROTECT_LOCAL };

static const struct option_enum protection_names[] = {
    {"no", PROTECT_NO}, {"yes", PROTECT_YES}, {"local", PROTECT_LOCAL}, {NULL, 0}};

static int protected_configs, debug_command, module_command;

static bool allows(int protection, bool peer_is_local)
{
    return protection == PROTECT_YES || (protection == PROTECT_LOCAL && peer_is_local);
}

bool config_allows_protected(bool peer_is_local)
{
    return allows(protected_configs, peer_is_local);
}

bool config_allows_debug(bool peer_is_local)
{
    return allows(debug_command, peer_is_local);
}

bool config_allows_module(bool peer_is_local)
{
    return allows(module_command, peer_is_local);
}

const struct option config_protect_options[] = {
    {.name = "enable-protected-configs",
     .type = OPTION_ENUM,
     .flags = OPTION_IMMUTABLE,
     .target = &protected_configs,
     .initial = "no",
     .enum_names = protection_names},
    {.name = "enable-debug-command",
     .type = OPTION_ENUM,
     .flags = OPTION_IMMUTABLE,
     .target = &debug_command,
     .initial = "no",
     .enum_names = protection_names},
    {.name = "enable-module-command",
     .type = OPTION_ENUM,
     .flags = OPTION_IMMUTABLE,
     .target = &module_command,
     .initial = "no",
     .enum_names = protection_names},
    {.name = NULL},
};
