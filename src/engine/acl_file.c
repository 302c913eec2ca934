/* Users in files: the aclfile, and `user` lines of keydb.conf. See acl.h. */
#include "engine/acl_priv.h"

#include "base/log.h"
#include "base/mem.h"
#include "engine/auth.h"
#include "engine/config_priv.h"

#include <assert.h>
#include <stdio.h>

/* Words of a line beyond this are some other file. */
#define LINE_MAX_WORDS 65536

static struct {
    char *path; /* aclfile */
    /* What `user` lines have said, until the server starts. */
    struct acl_user **users;
    int count;
    struct waiting { /* of those the ones whose rules name what is unknown: modules may bring it */
        struct acl_user *user;
        struct buf rules; /* as words of a file, to be read again at the start */
    } * waiting;
    int waiting_count;
    struct buf started_lines; /* what CONFIG REWRITE would have written at the start */
    bool is_rewritten;        /* it has written something else since */
    /* Users of included files, whose lines stay there, and those lines as REWRITE spells them. */
    struct included {
        char *name;
        struct buf line;
    } * included;
    int included_count;
} acl_file;

const char *acl_file_path(void)
{
    return acl_file.path ? acl_file.path : "";
}

/* ---- lists of users that are being read ---- */

struct users {
    struct acl_user **items;
    int count;
};

static struct acl_user *users_find(const struct users *u, const char *name)
{
    for (int i = 0; i < u->count; i++) {
        if (strcmp(u->items[i]->name, name) == 0) {
            return u->items[i];
        }
    }
    return NULL;
}

static void users_add(struct users *u, struct acl_user *user_take)
{
    u->items = mem_realloc(u->items, ((size_t)u->count + 1) * sizeof(*u->items));
    u->items[u->count++] = user_take;
}

static void users_free(struct users *u)
{
    for (int i = 0; i < u->count; i++) {
        acl_user_destroy(u->items[i]);
    }
    mem_free(u->items);
    *u = (struct users){0};
}

/* ---- reading ---- */

/* Whether a line of an aclfile is of the user whose name is empty: between the two blanks is
 * nothing. More blanks than one are let pass elsewhere, so what follows is to be as it is written.
 */
static bool is_nameless(struct slice line)
{
    static const char *const begins[] = {"user  on ", "user  off "};
    for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++) {
        size_t len = strlen(begins[i]);
        if (line.len > len && memcmp(line.ptr, begins[i], len) == 0) {
            return true;
        }
    }
    return false;
}

/* A line as words, parted by blanks; freed by the caller. */
static struct slice *split(struct slice line, int *count)
{
    struct slice *words = NULL;
    bool nameless = is_nameless(line);
    int capacity = 0;
    *count = 0;
    for (size_t at = 0; at < line.len && *count < LINE_MAX_WORDS;) {
        size_t end = at;
        while (end < line.len && line.ptr[end] != ' ') {
            end++;
        }
        if (end > at) {
            if (*count == capacity) {
                capacity = capacity ? 2 * capacity : 16;
                words = mem_realloc(words, (size_t)capacity * sizeof(*words));
            }
            words[(*count)++] = slice_of(line.ptr + at, end - at);
            if (nameless && *count == 1) {
                words[(*count)++] = slice_of(line.ptr + end + 1, 0);
            }
        }
        at = end + 1;
    }
    return words;
}

struct reading {
    const char *path;
    unsigned line;
    struct users users;
    struct buf *error;
    bool failed;
};

static void fault_begin(struct reading *r)
{
    r->failed = true;
    buf_printf(r->error, "%s:%u: ", r->path, r->line);
}

/* Applies all rules, so that all faults are told; of faults that may show secrets only the first.
 */
static void read_rules(struct reading *r, struct acl_user *user, const struct slice *rules,
                       int count)
{
    struct slice *words = mem_alloc(((size_t)count + 1) * sizeof(*words));
    struct buf scratch = {0};
    struct slice open;
    bool told = false;
    int joined = acl_join_rules(rules, count, words, &scratch, &open);
    if (joined < 0) {
        fault_begin(r);
        buf_append_cstr(r->error, "Unmatched parentheses in selector definition. ");
    }
    for (int i = 0; i < joined; i++) {
        enum acl_fault fault = acl_user_apply(user, words[i]);
        if (fault == ACL_FAULT_UNKNOWN) {
            fault_begin(r);
            buf_printf(r->error, "Error in applying operation '%.*s': %s. ",
                       (int)(words[i].len < 128 ? words[i].len : 128), words[i].ptr,
                       acl_fault_text(fault));
        } else if (fault != ACL_FAULT_NONE && !told) {
            fault_begin(r);
            buf_printf(r->error, "%s. ", acl_fault_text(fault));
            told = true;
        }
    }
    buf_deinit(&scratch);
    mem_free(words);
}

static void read_user(struct reading *r, const struct slice *words, int count)
{
    if (count < 2 || !slice_equal(words[0], SLICE("user"))) {
        r->failed = true;
        buf_printf(r->error, "%s:%u should start with user keyword followed by the username. ",
                   r->path, r->line);
        return;
    }
    struct acl_user *user = acl_user_create(words[1]);
    if (!acl_name_is_valid(words[1])) {
        r->failed = true;
        buf_printf(r->error, "'%s:%u: username '%s' contains invalid characters. ", r->path,
                   r->line, user->name);
    } else if (users_find(&r->users, user->name)) {
        r->failed = true;
        buf_printf(r->error, "WARNING: Duplicate user '%s' found on line %u. ", user->name,
                   r->line);
    } else {
        users_add(&r->users, user);
        read_rules(r, user, words + 2, count - 2);
        return;
    }
    acl_user_destroy(user);
}

/* Reads a whole file into r->users. */
static void read_file(struct reading *r)
{
    struct buf content = {0};
    struct slice line;
    int fault = config_read_file(r->path, &content);
    if (fault != 0) {
        r->failed = true;
        buf_printf(r->error, "Error loading ACLs, opening file '%s': %s", r->path, strerror(fault));
    }
    for (size_t pos = 0; fault == 0 && config_next_line(buf_slice(&content), &pos, &line);) {
        int count;
        struct slice *words = split(line, &count);
        r->line++;
        if (count > 0) {
            read_user(r, words, count);
        }
        mem_free(words);
    }
    if (r->failed && fault == 0) {
        buf_append_cstr(r->error, "WARNING: ACL errors detected, no change to the previously "
                                  "active ACL rules was performed");
    }
    buf_deinit(&content);
}

static void adopt(struct users *u, const struct session *caller) REQUIRES(gil)
{
    acl_replace_users(u->items, u->count, caller);
    mem_free(u->items);
    *u = (struct users){0};
}

bool acl_load_file(const struct session *caller, struct buf *error)
{
    struct reading r = {.path = acl_file_path(), .error = error};
    read_file(&r);
    if (r.failed) {
        users_free(&r.users);
        return false;
    }
    adopt(&r.users, caller);
    return true;
}

/* ---- writing ---- */

static void append_line(struct buf *out, const struct acl_user *user)
{
    buf_printf(out, "user %s ", user->name);
    acl_append_user(out, user);
    buf_append_char(out, '\n');
}

bool acl_save_file(void)
{
    struct buf content = {0};
    for (int i = 0; i < acl_user_count(); i++) {
        append_line(&content, acl_user_at(i));
    }
    int fault = config_replace_file(acl_file_path(), buf_slice(&content));
    buf_deinit(&content);
    if (fault != 0) {
        log_warning("Saving users to %s failed: %s", acl_file_path(), strerror(fault));
    }
    return fault == 0;
}

/* ---- keydb.conf ---- */

static void keep_waiting(struct acl_user *user, const struct slice *rules, int count)
{
    int n = acl_file.waiting_count++;
    acl_file.waiting = mem_realloc(acl_file.waiting, (size_t)(n + 1) * sizeof(*acl_file.waiting));
    acl_file.waiting[n] = (struct waiting){.user = user};
    config_append_words(&acl_file.waiting[n].rules, rules, count);
}

/* Applies rules; those of commands and categories that are unknown are left out. Why they are
 * wrong, or NULL. */
static const char *apply_known(struct acl_user *user, const struct slice *rules, int count,
                               bool *some_unknown)
{
    enum acl_fault fault = ACL_FAULT_NONE;
    for (int i = 0; i < count && fault == ACL_FAULT_NONE; i++) {
        fault = acl_user_apply(user, rules[i]);
        if (fault == ACL_FAULT_UNKNOWN) {
            *some_unknown = true;
            fault = ACL_FAULT_NONE;
        }
    }
    return fault == ACL_FAULT_NONE ? NULL : acl_fault_text(fault);
}

/* A `user` line: validated here, where the file and line can be told, and kept until the start. */
static bool user_parse(const struct option *option UNUSED, const struct slice *words, int count,
                       const char **error)
{
    if (count == 1 && words[0].len == 0) { /* the built-in default: none */
        return true;
    }
    struct users list = {acl_file.users, acl_file.count};
    struct acl_user *user = acl_user_create(words[0]);
    struct slice *rules = mem_alloc((size_t)count * sizeof(*rules));
    struct buf scratch = {0};
    struct slice open;
    bool some_unknown = false;
    *error = NULL;
    int joined = acl_join_rules(words + 1, count - 1, rules, &scratch, &open);
    if (!acl_name_is_valid(words[0])) {
        *error = "Usernames can't contain spaces or null characters";
    } else if (users_find(&list, user->name)) {
        *error = "Duplicate user found. A user can only be defined once in config files";
    } else if (joined < 0) {
        *error = "Unmatched parentheses in selector definition";
    }
    if (!*error) {
        *error = apply_known(user, rules, joined, &some_unknown);
    }
    if (!*error && some_unknown) {
        keep_waiting(user, rules, joined);
    }
    buf_deinit(&scratch);
    mem_free(rules);
    if (*error) {
        acl_user_destroy(user);
        return false;
    }
    users_add(&list, user);
    acl_file.users = list.items;
    acl_file.count = list.count;
    if (config_reads_include()) {
        int n = acl_file.included_count++;
        acl_file.included =
            mem_realloc(acl_file.included, (size_t)(n + 1) * sizeof(*acl_file.included));
        acl_file.included[n] = (struct included){.name = mem_dup(words[0].ptr, words[0].len)};
    }
    return true;
}

static struct included *included_find(const struct acl_user *user)
{
    for (int i = 0; i < acl_file.included_count; i++) {
        if (strcmp(acl_file.included[i].name, user->name) == 0) {
            return &acl_file.included[i];
        }
    }
    return NULL;
}

/* CONFIG GET shows nothing of users: ACL LIST does. */
static void user_format(const struct option *option UNUSED, struct buf *out UNUSED)
{
}

/* The default user as keydb.conf makes it without a line of its own. */
static bool default_is_plain(void)
{
    struct acl_user *plain = acl_user_create(SLICE("default"));
    struct buf now = {0}, then = {0};
    acl_user_set_default(plain);
    auth_apply_requirepass(plain);
    acl_append_user(&now, acl_default_user());
    acl_append_user(&then, plain);
    bool same = slice_equal(buf_slice(&now), buf_slice(&then));
    buf_deinit(&now);
    buf_deinit(&then);
    acl_user_destroy(plain);
    return same;
}

/* A user as a line of keydb.conf. */
static void append_quoted_line(struct buf *out, const struct acl_user *user)
{
    struct buf text = {0};
    int count;
    append_line(&text, user);
    text.len--;
    struct slice *words = split(buf_slice(&text), &count);
    config_append_words(out, words, count);
    buf_append_char(out, '\n');
    mem_free(words);
    buf_deinit(&text);
}

/* Whether the user needs a line: the default one often needs none. */
static bool is_worth_a_line(const struct acl_user *user)
{
    return user != acl_default_user() || !default_is_plain();
}

static void append_lines(struct buf *out)
{
    for (int i = 0; i < acl_user_count(); i++) {
        if (is_worth_a_line(acl_user_at(i))) {
            append_quoted_line(out, acl_user_at(i));
        }
    }
}

/* The lines of users that no included file has. False when an included file has one that is another
 * now, or gone: a second line for it would be refused at the next start. */
static bool append_own_lines(struct buf *out)
{
    int unchanged = 0;
    for (int i = 0; i < acl_user_count(); i++) {
        const struct acl_user *user = acl_user_at(i);
        const struct included *included = included_find(user);
        struct buf line = {0};
        if (is_worth_a_line(user)) {
            append_quoted_line(&line, user);
        }
        if (!included) {
            buf_append_slice(out, buf_slice(&line));
        } else {
            unchanged += slice_equal(buf_slice(&line), buf_slice(&included->line));
        }
        buf_deinit(&line);
    }
    return unchanged == acl_file.included_count;
}

static bool user_lines(bool in_include UNUSED, struct buf *out, bool *lost)
{
    if (acl_file_path()[0]) {
        return false; /* they are in there */
    }
    struct buf now = {0};
    append_lines(&now);
    acl_file.is_rewritten |= !slice_equal(buf_slice(&now), buf_slice(&acl_file.started_lines));
    buf_deinit(&now);
    if (acl_file.is_rewritten) {
        *lost = !append_own_lines(out);
    }
    return acl_file.is_rewritten;
}

static void tell_fault(const char *fault)
{
    log_warning("Aborting: %s", fault);
    fprintf(stderr, "Fatal error loading the users: %s\n", fault);
}

/* The user's rules once more, now that modules have been loaded. */
static bool read_again(const struct waiting *w)
{
    struct slice rules[OPTION_MAX_WORDS];
    struct buf scratch = {0}, error = {0};
    struct acl_user *fresh = acl_user_create(slice_cstr(w->user->name));
    int count = option_split_line(buf_slice(&w->rules), rules, OPTION_MAX_WORDS, &scratch);
    for (int i = 0; i < count && error.len == 0; i++) {
        enum acl_fault fault = acl_user_apply(fresh, rules[i]);
        if (fault != ACL_FAULT_NONE) {
            buf_printf(&error, "user %s: %s: %.*s", w->user->name, acl_fault_text(fault),
                       (int)(rules[i].len < 128 ? rules[i].len : 128), rules[i].ptr);
        }
    }
    bool fine = error.len == 0;
    if (fine) {
        acl_user_copy(w->user, fresh);
    } else {
        tell_fault(buf_cstr(&error));
    }
    acl_user_destroy(fresh);
    buf_deinit(&scratch);
    buf_deinit(&error);
    return fine;
}

static bool read_waiting(void)
{
    bool fine = true;
    for (int i = 0; i < acl_file.waiting_count; i++) {
        fine = fine && read_again(&acl_file.waiting[i]);
        buf_deinit(&acl_file.waiting[i].rules);
    }
    mem_free(acl_file.waiting);
    acl_file.waiting = NULL;
    acl_file.waiting_count = 0;
    return fine;
}

static bool load_lines(void) NO_THREAD_SAFETY_ANALYSIS
{
    if (!read_waiting()) {
        return false;
    }
    struct users list = {acl_file.users, acl_file.count};
    acl_file.users = NULL;
    acl_file.count = 0;
    if (!users_find(&list, "default")) {
        struct acl_user *same = acl_user_create(SLICE("default"));
        acl_user_copy(same, acl_default_user());
        users_add(&list, same);
    }
    adopt(&list, NULL);
    append_lines(&acl_file.started_lines);
    for (int i = 0; i < acl_user_count(); i++) {
        struct included *included = included_find(acl_user_at(i));
        if (included && is_worth_a_line(acl_user_at(i))) {
            append_quoted_line(&included->line, acl_user_at(i));
        }
    }
    return true;
}

static bool load_file_at_start(void) NO_THREAD_SAFETY_ANALYSIS
{
    struct buf error = {0};
    if (!auth_default_takes_any()) {
        log_warning("requirepass is ignored: the default user is as the aclfile says");
    }
    bool loaded = acl_load_file(NULL, &error);
    if (!loaded) {
        tell_fault(buf_cstr(&error));
    }
    buf_deinit(&error);
    return loaded;
}

bool acl_load_at_start(void)
{
    if (acl_file_path()[0] == '\0') {
        return load_lines();
    }
    if (acl_file.count > 0) {
        fprintf(stderr, "Fatal error: keydb.conf has user lines and an aclfile as well. Users are "
                        "either in the one or in the other.\n");
        return false;
    }
    return load_file_at_start();
}

const struct option acl_file_options[] = {
    {.name = "aclfile",
     .type = OPTION_STRING,
     .flags = OPTION_IMMUTABLE,
     .target = &acl_file.path,
     .initial = ""},
    {.name = "user",
     .type = OPTION_CUSTOM,
     .flags = OPTION_IMMUTABLE | OPTION_SENSITIVE | OPTION_MULTI | OPTION_HIDDEN,
     .initial = "",
     .parse = user_parse,
     .format = user_format,
     .lines = user_lines},
    {.name = NULL},
};
