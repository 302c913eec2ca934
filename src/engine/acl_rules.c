/* Rules: words that change a user, and users back as words (acl_priv.h). */
#include "engine/acl_priv.h"

#include "base/log.h"
#include "base/mem.h"
#include "engine/auth.h"

#include <assert.h>

enum pubsub_default { PUBSUB_DEFAULT_NONE, PUBSUB_DEFAULT_ALL };
static int pubsub_default; /* acl-pubsub-default */

const char *acl_fault_text(enum acl_fault fault)
{
    static const char *const texts[] = {
        [ACL_FAULT_NONE] = "",
        [ACL_FAULT_SYNTAX] = "Syntax error",
        [ACL_FAULT_UNKNOWN] = "Unknown command or category name in ACL",
        [ACL_FAULT_KEYS_GIVEN] =
            "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does "
            "not have any effect. Try 'resetkeys' to start with an empty list of patterns",
        [ACL_FAULT_CHANNELS_GIVEN] =
            "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and "
            "does not have any effect. Try 'resetchannels' to start with an empty list of channels",
        [ACL_FAULT_HASH] = "The password hash must be exactly 64 characters and contain only "
                           "lowercase hexadecimal characters",
        [ACL_FAULT_NO_PASSWORD] =
            "The password you are trying to remove from the user does not exist",
        [ACL_FAULT_SUBCOMMAND_ARG] = "Allowing first-arg of a subcommand is not supported",
    };
    return texts[fault];
}

static bool is_blank_or_nul(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r') || c == '\0';
}

bool acl_name_is_valid(struct slice name)
{
    for (size_t i = 0; i < name.len; i++) {
        if (is_blank_or_nul(name.ptr[i])) {
            return false;
        }
    }
    return true;
}

static struct slice own(struct slice text)
{
    return slice_of(mem_dup(text.len > 0 ? text.ptr : "", text.len), text.len);
}

static struct slice behind(struct slice text, size_t skip)
{
    assert(skip <= text.len);
    return slice_of(text.ptr + skip, text.len - skip);
}

/* ---- patterns ---- */

static void patterns_clear(struct acl_patterns *p)
{
    for (int i = 0; i < p->count; i++) {
        mem_free((char *)p->items[i].text.ptr);
    }
    mem_free(p->items);
    *p = (struct acl_patterns){0};
}

static void patterns_add(struct acl_patterns *p, struct slice text, unsigned permissions)
{
    for (int i = 0; i < p->count; i++) {
        if (slice_equal(p->items[i].text, text)) {
            p->items[i].permissions |= permissions;
            return;
        }
    }
    p->items = mem_realloc(p->items, ((size_t)p->count + 1) * sizeof(*p->items));
    p->items[p->count++] = (struct acl_pattern){own(text), permissions};
}

static void patterns_copy(struct acl_patterns *to, const struct acl_patterns *from)
{
    *to = (struct acl_patterns){0};
    for (int i = 0; i < from->count; i++) {
        patterns_add(to, from->items[i].text, from->items[i].permissions);
    }
}

/* ---- selectors ---- */

static struct acl_selector *selector_create(void)
{
    struct acl_selector *s = mem_calloc(1, sizeof(*s));
    s->all_channels = pubsub_default == PUBSUB_DEFAULT_ALL;
    return s;
}

static void drop_first_args(struct acl_selector *s)
{
    for (int i = 0; i < s->first_arg_count; i++) {
        mem_free((char *)s->first_args[i].word.ptr);
    }
    mem_free(s->first_args);
    s->first_args = NULL;
    s->first_arg_count = 0;
}

static void selector_destroy(struct acl_selector *s)
{
    drop_first_args(s);
    buf_deinit(&s->rules);
    patterns_clear(&s->keys);
    patterns_clear(&s->channels);
    mem_free(s);
}

static void add_first_arg(struct acl_selector *s, uint16_t command, struct slice word)
{
    for (int i = 0; i < s->first_arg_count; i++) {
        if (s->first_args[i].command == command && slice_equal(s->first_args[i].word, word)) {
            return;
        }
    }
    s->first_args =
        mem_realloc(s->first_args, ((size_t)s->first_arg_count + 1) * sizeof(*s->first_args));
    s->first_args[s->first_arg_count++] = (struct acl_first_arg){command, own(word)};
}

static struct acl_selector *selector_copy(const struct acl_selector *from)
{
    struct acl_selector *s = mem_alloc(sizeof(*s));
    *s = *from;
    s->first_args = NULL;
    s->first_arg_count = 0;
    for (int i = 0; i < from->first_arg_count; i++) {
        add_first_arg(s, from->first_args[i].command, from->first_args[i].word);
    }
    s->rules = (struct buf){0};
    buf_append_slice(&s->rules, buf_slice(&from->rules));
    patterns_copy(&s->keys, &from->keys);
    patterns_copy(&s->channels, &from->channels);
    return s;
}

/* ---- rules about commands ---- */

static void set_bit(struct acl_selector *s, const struct command *c, bool allow)
{
    uint64_t bit = UINT64_C(1) << (c->id % 64);
    if (allow) {
        s->allowed[c->id / 64] |= bit;
    } else {
        s->allowed[c->id / 64] &= ~bit;
        s->all_commands = false;
    }
    for (int i = s->first_arg_count - 1; i >= 0; i--) {
        if (s->first_args[i].command == c->id) {
            mem_free((char *)s->first_args[i].word.ptr);
            s->first_args[i] = s->first_args[--s->first_arg_count];
        }
    }
}

static void set_all_commands(struct acl_selector *s, bool allow)
{
    memset(s->allowed, allow ? 0xff : 0, sizeof(s->allowed));
    s->all_commands = s->from_all = allow;
    buf_clear(&s->rules);
    drop_first_args(s);
}

static void set_command(struct acl_selector *s, const struct command *c, bool allow)
{
    set_bit(s, c, allow);
    for (int i = 0; i < c->subcommand_count; i++) {
        set_bit(s, &c->subcommands[i], allow);
    }
}

/* Takes out of the rules what the rule for `name` (lower case) makes void: the same name's, and
 * those of its subcommands or first arguments. */
static void drop_rules(struct acl_selector *s, struct slice name)
{
    struct buf kept = {0};
    struct slice rest = buf_slice(&s->rules);
    while (rest.len > 0) {
        const char *blank = memchr(rest.ptr, ' ', rest.len);
        size_t len = blank ? (size_t)(blank - rest.ptr) : rest.len;
        struct slice rule = slice_of(rest.ptr + 1, len - 1); /* without its sign */
        bool is_void = rule.len >= name.len && memcmp(rule.ptr, name.ptr, name.len) == 0 &&
                       (rule.len == name.len || rule.ptr[name.len] == '|');
        if (!is_void) {
            buf_append_cstr(&kept, kept.len > 0 ? " " : "");
            buf_append(&kept, rest.ptr, len);
        }
        rest = behind(rest, blank ? len + 1 : len);
    }
    buf_deinit(&s->rules);
    s->rules = kept;
}

static void note_rule(struct acl_selector *s, struct slice name, bool allow)
{
    struct buf lower = {0};
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        buf_append_char(&lower, c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c);
    }
    drop_rules(s, buf_slice(&lower));
    buf_append_cstr(&s->rules, s->rules.len > 0 ? " " : "");
    buf_append_char(&s->rules, allow ? '+' : '-');
    buf_append_slice(&s->rules, buf_slice(&lower));
    buf_deinit(&lower);
}

static enum acl_fault apply_category(struct acl_selector *s, struct slice name, bool allow)
{
    if (slice_equal_nocase(name, "@all")) {
        set_all_commands(s, allow);
        return ACL_FAULT_NONE;
    }
    uint32_t category = command_category_of(behind(name, 1));
    if (category == 0) {
        return ACL_FAULT_UNKNOWN;
    }
    for (unsigned id = 0; id < command_id_count(); id++) {
        const struct command *c = command_by_id(id);
        if (c->categories & category) {
            set_command(s, c, allow); /* of a container: its subcommands with it, as in Redis */
        }
    }
    note_rule(s, name, allow);
    return ACL_FAULT_NONE;
}

/* "+command|word". */
static enum acl_fault apply_with_word(struct acl_selector *s, struct slice name, size_t bar)
{
    const struct command *c = command_find_original_full(slice_of(name.ptr, bar));
    struct slice word = behind(name, bar + 1);
    if (!c) {
        return ACL_FAULT_UNKNOWN;
    }
    if (c->parent) {
        return ACL_FAULT_SUBCOMMAND_ARG;
    }
    if (word.len == 0 || !acl_name_is_valid(word)) {
        return ACL_FAULT_SYNTAX;
    }
    if (c->subcommands) {
        const struct command *sub = command_find_sub(c, word);
        if (!sub) {
            return ACL_FAULT_UNKNOWN;
        }
        set_command(s, sub, true);
    } else {
        log_warning("Allowing a command with a first argument only is deprecated: +%.*s",
                    (int)(name.len < 128 ? name.len : 128), name.ptr);
        add_first_arg(s, c->id, word);
    }
    note_rule(s, name, true);
    return ACL_FAULT_NONE;
}

static enum acl_fault apply_command(struct acl_selector *s, struct slice name, bool allow)
{
    if (name.len > 0 && name.ptr[0] == '@') {
        return apply_category(s, name, allow);
    }
    const char *bar = name.len > 0 ? memrchr(name.ptr, '|', name.len) : NULL;
    if (allow && bar) {
        return apply_with_word(s, name, (size_t)(bar - name.ptr));
    }
    const struct command *c = command_find_original_full(name);
    if (!c) {
        return ACL_FAULT_UNKNOWN;
    }
    set_command(s, c, allow);
    note_rule(s, slice_cstr(c->full_name), allow);
    return ACL_FAULT_NONE;
}

/* Has the rules of commands speak again, of the commands that there are now. Those of commands that
 * are gone stay. */
static void refresh_commands(struct acl_selector *s)
{
    struct buf rules = s->rules;
    s->rules = (struct buf){0};
    set_all_commands(s, s->from_all);
    struct slice rest = buf_slice(&rules);
    while (rest.len > 0) {
        const char *blank = memchr(rest.ptr, ' ', rest.len);
        size_t len = blank ? (size_t)(blank - rest.ptr) : rest.len;
        struct slice name = slice_of(rest.ptr + 1, len - 1);
        if (apply_command(s, name, rest.ptr[0] == '+') != ACL_FAULT_NONE) {
            note_rule(s, name, rest.ptr[0] == '+');
        }
        rest = behind(rest, blank ? len + 1 : len);
    }
    buf_deinit(&rules);
}

static void refresh_user(struct acl_user *user)
{
    for (int k = 0; k < user->selector_count; k++) {
        refresh_commands(user->selectors[k]);
    }
}

void acl_refresh_commands(void)
{
    for (int i = 0; i < acl_user_count(); i++) {
        refresh_user((struct acl_user *)acl_user_at(i));
    }
    acl_unlisted_each(refresh_user);
}

/* ---- rules about keys and channels ---- */

static enum acl_fault apply_keys(struct acl_selector *s, struct slice rule)
{
    unsigned permissions = ACL_READ_WRITE;
    size_t skip = 1;
    if (s->all_keys) {
        return ACL_FAULT_KEYS_GIVEN;
    }
    if (rule.ptr[0] == '%') {
        permissions = 0;
        for (; skip < rule.len && rule.ptr[skip] != '~'; skip++) {
            char c = (char)(rule.ptr[skip] | 0x20);
            unsigned one = c == 'r' ? ACL_READ : c == 'w' ? ACL_WRITE : 0;
            if (one == 0 || permissions & one) {
                return ACL_FAULT_SYNTAX;
            }
            permissions |= one;
        }
        if (permissions == 0 || skip == rule.len) {
            return ACL_FAULT_SYNTAX;
        }
        skip++;
    }
    struct slice pattern = behind(rule, skip);
    if (!acl_name_is_valid(pattern)) {
        return ACL_FAULT_SYNTAX;
    }
    patterns_add(&s->keys, pattern, permissions);
    return ACL_FAULT_NONE;
}

static enum acl_fault apply_channel(struct acl_selector *s, struct slice pattern)
{
    if (s->all_channels) {
        return ACL_FAULT_CHANNELS_GIVEN;
    }
    if (!acl_name_is_valid(pattern)) {
        return ACL_FAULT_SYNTAX;
    }
    patterns_add(&s->channels, pattern, 0);
    return ACL_FAULT_NONE;
}

static void set_keys(struct acl_selector *s, bool all)
{
    patterns_clear(&s->keys);
    s->all_keys = all;
}

static void set_channels(struct acl_selector *s, bool all)
{
    patterns_clear(&s->channels);
    s->all_channels = all;
}

static enum acl_fault selector_apply(struct acl_selector *s, struct slice rule)
{
    char first = rule.len > 0 ? rule.ptr[0] : '\0';
    if (slice_equal_nocase(rule, "allkeys") || slice_equal_nocase(rule, "~*")) {
        set_keys(s, true);
    } else if (slice_equal_nocase(rule, "resetkeys")) {
        set_keys(s, false);
    } else if (slice_equal_nocase(rule, "allchannels") || slice_equal_nocase(rule, "&*")) {
        set_channels(s, true);
    } else if (slice_equal_nocase(rule, "resetchannels")) {
        set_channels(s, false);
    } else if (slice_equal_nocase(rule, "allcommands")) {
        set_all_commands(s, true);
    } else if (slice_equal_nocase(rule, "nocommands")) {
        set_all_commands(s, false);
    } else if (first == '~' || first == '%') {
        return apply_keys(s, rule);
    } else if (first == '&') {
        return apply_channel(s, behind(rule, 1));
    } else if (first == '+' || first == '-') {
        return apply_command(s, behind(rule, 1), first == '+');
    } else {
        return ACL_FAULT_SYNTAX;
    }
    return ACL_FAULT_NONE;
}

/* "(rule rule ...)". A bracket at the end of a word would close the selector when it is read again
 * from a file: there is none. */
static enum acl_fault add_selector(struct acl_user *user, struct slice rule)
{
    if (rule.len < 2 || rule.ptr[rule.len - 1] != ')') {
        return ACL_FAULT_SYNTAX;
    }
    struct acl_selector *s = selector_create();
    enum acl_fault fault = ACL_FAULT_NONE;
    for (size_t at = 1; at < rule.len - 1 && fault == ACL_FAULT_NONE;) {
        size_t end = at;
        while (end < rule.len - 1 && !is_blank_or_nul(rule.ptr[end])) {
            end++;
        }
        struct slice word = slice_of(rule.ptr + at, end - at);
        if (word.len > 0) {
            fault = word.ptr[word.len - 1] == ')' ? ACL_FAULT_SYNTAX : selector_apply(s, word);
        }
        at = end + 1;
    }
    if (fault != ACL_FAULT_NONE) {
        selector_destroy(s);
        return fault;
    }
    user->selectors =
        mem_realloc(user->selectors, ((size_t)user->selector_count + 1) * sizeof(*user->selectors));
    user->selectors[user->selector_count++] = s;
    return ACL_FAULT_NONE;
}

/* ---- users ---- */

static void clear_selectors(struct acl_user *user, int from)
{
    while (user->selector_count > from) {
        selector_destroy(user->selectors[--user->selector_count]);
    }
}

static void clear_passwords(struct acl_user *user)
{
    mem_free(user->passwords);
    user->passwords = NULL;
    user->password_count = 0;
}

struct acl_user *acl_user_create(struct slice name)
{
    struct acl_user *user = mem_calloc(1, sizeof(*user));
    user->name = mem_dup(name.len > 0 ? name.ptr : "", name.len);
    user->selectors = mem_alloc(sizeof(*user->selectors));
    user->selectors[0] = selector_create();
    user->selector_count = 1;
    return user;
}

static void user_clear(struct acl_user *user)
{
    clear_selectors(user, 0);
    clear_passwords(user);
    mem_free(user->selectors);
    user->selectors = NULL;
}

void acl_user_destroy(struct acl_user *user)
{
    user_clear(user);
    mem_free(user->name);
    mem_free(user);
}

void acl_user_swap(struct acl_user *user, struct acl_user *source)
{
    struct acl_user old = *user;
    char *name = source->name;
    *user = *source;
    user->name = old.name;
    *source = old;
    source->name = name;
}

void acl_user_copy(struct acl_user *user, const struct acl_user *source)
{
    char *name = user->name;
    user_clear(user);
    *user = *source;
    user->name = name;
    size_t bytes = (size_t)source->password_count * sizeof(*source->passwords);
    user->passwords = bytes > 0 ? mem_alloc(bytes) : NULL;
    if (bytes > 0) {
        memcpy(user->passwords, source->passwords, bytes);
    }
    user->selectors = mem_alloc((size_t)source->selector_count * sizeof(*user->selectors));
    for (int i = 0; i < source->selector_count; i++) {
        user->selectors[i] = selector_copy(source->selectors[i]);
    }
}

static bool add_password(struct acl_user *user, const char *hash)
{
    user->nopass = false;
    for (int i = 0; i < user->password_count; i++) {
        if (memcmp(user->passwords[i], hash, AUTH_HASH_CHARS) == 0) {
            return false;
        }
    }
    user->passwords =
        mem_realloc(user->passwords, ((size_t)user->password_count + 1) * sizeof(*user->passwords));
    memcpy(user->passwords[user->password_count++], hash, AUTH_HASH_CHARS);
    return true;
}

static enum acl_fault remove_password(struct acl_user *user, const char *hash)
{
    for (int i = 0; i < user->password_count; i++) {
        if (memcmp(user->passwords[i], hash, AUTH_HASH_CHARS) == 0) {
            memmove(user->passwords[i], user->passwords[i + 1],
                    (size_t)(user->password_count - i - 1) * sizeof(*user->passwords));
            user->password_count--;
            return ACL_FAULT_NONE;
        }
    }
    return ACL_FAULT_NO_PASSWORD;
}

static bool is_hash(struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'f')) {
            return false;
        }
    }
    return text.len == AUTH_HASH_CHARS;
}

/* ">password" and "<password"; "#hash" and "!hash". */
static enum acl_fault apply_password(struct acl_user *user, struct slice rule)
{
    static_assert(sizeof(*user->passwords) == AUTH_HASH_CHARS, "a password is its hash");
    char hash[AUTH_HASH_CHARS];
    struct slice text = behind(rule, 1);
    if (rule.ptr[0] == '#' || rule.ptr[0] == '!') {
        if (!is_hash(text)) {
            return ACL_FAULT_HASH;
        }
        memcpy(hash, text.ptr, sizeof(hash));
    } else {
        auth_hash(text, hash);
    }
    if (rule.ptr[0] == '>' || rule.ptr[0] == '#') {
        add_password(user, hash);
        return ACL_FAULT_NONE;
    }
    return remove_password(user, hash);
}

static void reset(struct acl_user *user)
{
    struct acl_selector *root = user->selectors[0];
    clear_passwords(user);
    clear_selectors(user, 1);
    user->enabled = user->nopass = false;
    user->sanitize = ACL_SANITIZE_YES;
    set_all_commands(root, false);
    set_keys(root, false);
    set_channels(root, pubsub_default == PUBSUB_DEFAULT_ALL);
}

static enum acl_fault apply(struct acl_user *user, struct slice rule)
{
    if (slice_equal_nocase(rule, "on") || slice_equal_nocase(rule, "off")) {
        user->enabled = rule.len == 2;
    } else if (slice_equal_nocase(rule, "nopass")) {
        clear_passwords(user);
        user->nopass = true;
    } else if (slice_equal_nocase(rule, "resetpass")) {
        clear_passwords(user);
        user->nopass = false;
    } else if (slice_equal_nocase(rule, "sanitize-payload")) {
        user->sanitize = ACL_SANITIZE_YES;
    } else if (slice_equal_nocase(rule, "skip-sanitize-payload")) {
        user->sanitize = ACL_SANITIZE_SKIP;
    } else if (slice_equal_nocase(rule, "clearselectors")) {
        clear_selectors(user, 1);
    } else if (slice_equal_nocase(rule, "reset")) {
        reset(user);
    } else if (rule.len > 0 && strchr("><#!", rule.ptr[0]) && rule.ptr[0] != '\0') {
        return apply_password(user, rule);
    } else if (rule.len > 0 && rule.ptr[0] == '(') {
        return add_selector(user, rule);
    } else if (rule.len > 0) { /* an empty word says nothing, as in Redis */
        return selector_apply(user->selectors[0], rule);
    }
    return ACL_FAULT_NONE;
}

enum acl_fault acl_user_apply(struct acl_user *user, struct slice rule)
{
    enum acl_fault fault = apply(user, rule);
    const struct acl_selector *root = user->selectors[0];
    user->unlimited = root->all_commands && root->all_keys && root->all_channels;
    return fault;
}

void acl_user_set_default(struct acl_user *user)
{
    static const char *const rules[] = {"+@all", "~*", "&*", "on", "nopass"};
    reset(user);
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        enum acl_fault fault = acl_user_apply(user, slice_cstr(rules[i]));
        assert(fault == ACL_FAULT_NONE);
        (void)fault;
    }
}

int acl_join_rules(const struct slice *rules, int count, struct slice *words, struct buf *scratch,
                   struct slice *open)
{
    size_t bytes = 0;
    int joined = 0, first = -1;
    for (int i = 0; i < count; i++) {
        bytes += rules[i].len + 1;
    }
    buf_reserve(scratch, bytes); /* the words must not move */
    for (int i = 0; i < count; i++) {
        bool closes = rules[i].len > 0 && rules[i].ptr[rules[i].len - 1] == ')';
        bool opens = first < 0 && rules[i].len > 0 && rules[i].ptr[0] == '(' && !closes;
        if (opens) {
            first = i;
            words[joined].ptr = scratch->data + scratch->len;
        } else if (first >= 0) {
            buf_append_char(scratch, ' ');
        } else {
            words[joined++] = rules[i];
            continue;
        }
        buf_append_slice(scratch, rules[i]);
        if (closes) {
            words[joined].len = (size_t)(scratch->data + scratch->len - words[joined].ptr);
            joined++;
            first = -1;
        }
    }
    if (first >= 0) {
        *open = rules[first];
        return -1;
    }
    return joined;
}

/* ---- as text ---- */

static void append_sep(struct buf *out, size_t start)
{
    if (out->len > start) {
        buf_append_char(out, ' ');
    }
}

static void append_key_patterns(struct buf *out, const struct acl_selector *s)
{
    size_t start = out->len;
    if (s->all_keys) {
        buf_append_cstr(out, "~*");
    }
    for (int i = 0; i < s->keys.count; i++) {
        static const char *const signs[] = {"", "%R~", "%W~", "~"};
        append_sep(out, start);
        buf_append_cstr(out, signs[s->keys.items[i].permissions]);
        buf_append_slice(out, s->keys.items[i].text);
    }
}

static void append_channel_patterns(struct buf *out, const struct acl_selector *s)
{
    size_t start = out->len;
    if (s->all_channels) {
        buf_append_cstr(out, "&*");
    }
    for (int i = 0; i < s->channels.count; i++) {
        append_sep(out, start);
        buf_append_char(out, '&');
        buf_append_slice(out, s->channels.items[i].text);
    }
}

static void append_rules(struct buf *out, const struct acl_selector *s)
{
    buf_append_cstr(out, s->from_all ? "+@all" : "-@all");
    if (s->rules.len > 0) {
        buf_append_char(out, ' ');
        buf_append_slice(out, buf_slice(&s->rules));
    }
}

static void append_selector(struct buf *out, const struct acl_selector *s)
{
    append_key_patterns(out, s);
    if (s->all_keys || s->keys.count > 0) {
        buf_append_char(out, ' ');
    }
    if (!s->all_channels) {
        buf_append_cstr(out, s->channels.count > 0 ? "resetchannels " : "resetchannels");
    }
    append_channel_patterns(out, s);
    buf_append_char(out, ' ');
    append_rules(out, s);
}

void acl_append_user(struct buf *out, const struct acl_user *user)
{
    static const char *const sanitize[] = {"sanitize-payload ", "skip-sanitize-payload "};
    buf_append_cstr(out, user->enabled ? "on " : "off ");
    buf_append_cstr(out, user->nopass ? "nopass " : "");
    buf_append_cstr(out, sanitize[user->sanitize]);
    for (int i = 0; i < user->password_count; i++) {
        buf_append_char(out, '#');
        buf_append(out, user->passwords[i], sizeof(*user->passwords));
        buf_append_char(out, ' ');
    }
    append_selector(out, user->selectors[0]);
    for (int i = 1; i < user->selector_count; i++) {
        buf_append_cstr(out, " (");
        append_selector(out, user->selectors[i]);
        buf_append_char(out, ')');
    }
}

static const struct acl_selector *selector_at(const struct acl_user *user, int selector)
{
    assert(selector >= 0 && selector < user->selector_count);
    return user->selectors[selector];
}

void acl_append_commands(struct buf *out, const struct acl_user *user, int selector)
{
    append_rules(out, selector_at(user, selector));
}

void acl_append_keys(struct buf *out, const struct acl_user *user, int selector)
{
    append_key_patterns(out, selector_at(user, selector));
}

void acl_append_channels(struct buf *out, const struct acl_user *user, int selector)
{
    append_channel_patterns(out, selector_at(user, selector));
}

static const struct option_enum pubsub_defaults[] = {
    {"allchannels", PUBSUB_DEFAULT_ALL}, {"resetchannels", PUBSUB_DEFAULT_NONE}, {NULL, 0}};

const struct option acl_rule_options[] = {
    {.name = "acl-pubsub-default",
     .type = OPTION_ENUM,
     .target = &pubsub_default,
     .initial = "resetchannels",
     .enum_names = pubsub_defaults},
    {.name = NULL},
};
