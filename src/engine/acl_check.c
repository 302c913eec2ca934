/* The check of a request against a user's selectors. See acl.h. */
#include "engine/acl_priv.h"

#include "base/glob.h"
#include "base/mem.h"
#include "engine/acl_log.h"

#include <assert.h>

/* Most keys of a request whose places are collected on the stack. */
#define PLACES_ON_STACK 32

/* Keys, or channels, and where they stand. */
struct places {
    int count;
    struct key_place *at; /* `few`, or owned */
    struct key_place few[PLACES_ON_STACK];
};

/* What is to be allowed of a request. */
struct wanted {
    const struct command *cmd;
    const struct slice *argv;
    int argc;
    struct places keys;
    struct places channels;          /* of a module's command */
    int first_channel, last_channel; /* of the others; last < first: none */
    bool channel_patterns;
};

/* ---- what a request wants ---- */

static const struct {
    const char *command;
    bool only_first, patterns;
} listening[] = {
    {"subscribe", false, false}, {"psubscribe", false, true}, {"ssubscribe", false, false},
    {"publish", true, false},    {"spublish", true, false},
};

typedef int (*place_finder)(const struct command *c, const struct slice *argv, int argc,
                            struct key_place *places, int max);

/* Invalid arguments (-1) name no key: the handler finds the same fault, before it touches one. */
static void collect(const struct wanted *w, place_finder find, struct places *p)
{
    p->at = p->few;
    p->count = find(w->cmd, w->argv, w->argc, p->few, PLACES_ON_STACK);
    if (p->count > PLACES_ON_STACK) {
        p->at = mem_alloc((size_t)p->count * sizeof(*p->at));
        int again = find(w->cmd, w->argv, w->argc, p->at, p->count);
        p->count = again < p->count ? again : p->count;
    }
}

static void release(const struct places *p)
{
    if (p->at != p->few) {
        mem_free(p->at);
    }
}

static void find_channels(struct wanted *w)
{
    w->first_channel = 1;
    w->last_channel = 0;
    if (!(w->cmd->categories & CATEGORY_PUBSUB) || w->cmd->parent) {
        return;
    }
    for (size_t i = 0; i < sizeof(listening) / sizeof(listening[0]); i++) {
        if (strcmp(w->cmd->row->name, listening[i].command) == 0) {
            w->last_channel = listening[i].only_first && w->argc > 1 ? 1 : w->argc - 1;
            w->channel_patterns = listening[i].patterns;
        }
    }
}

/* The access that a key's flags ask for; none where only its name or type is looked at. */
static unsigned permissions_of(uint32_t flags)
{
    unsigned read = flags & KEY_ACCESS ? ACL_READ : 0;
    return flags & (KEY_INSERT | KEY_DELETE | KEY_UPDATE) ? read | ACL_WRITE : read;
}

/* ---- one selector ---- */

static bool allows_command(const struct acl_selector *s, const struct wanted *w)
{
    uint16_t id = w->cmd->id;
    if (s->all_commands || w->cmd->flags & CMD_NO_AUTH || s->allowed[id / 64] >> (id % 64) & 1) {
        return true;
    }
    for (int i = 0; i < s->first_arg_count; i++) {
        const struct acl_first_arg *f = &s->first_args[i];
        if (f->command == id && w->argc > 1 && w->argv[1].len == f->word.len &&
            strncasecmp(w->argv[1].ptr, f->word.ptr, f->word.len) == 0) {
            return true;
        }
    }
    return false;
}

static bool allows_key(const struct acl_selector *s, struct slice key, unsigned permissions)
{
    for (int i = 0; i < s->keys.count; i++) {
        const struct acl_pattern *p = &s->keys.items[i];
        if ((p->permissions & permissions) == permissions && glob_match(p->text, key, false)) {
            return true;
        }
    }
    return false;
}

/* Patterns that are listened to must be named; whether one covers another is not decided. */
static bool allows_channel(const struct acl_selector *s, struct slice name, bool is_pattern)
{
    for (int i = 0; i < s->channels.count; i++) {
        struct slice text = s->channels.items[i].text;
        if (is_pattern ? slice_equal(text, name) : glob_match(text, name, false)) {
            return true;
        }
    }
    return s->all_channels;
}

static enum acl_verdict selector_check(const struct acl_selector *s, const struct wanted *w,
                                       int *at)
{
    *at = 0;
    if (!allows_command(s, w)) {
        return ACL_DENIED_COMMAND;
    }
    for (int i = 0; !s->all_keys && i < w->keys.count; i++) {
        const struct key_place *p = &w->keys.at[i];
        if (!(p->flags & KEY_NOT_KEY) &&
            !allows_key(s, key_place_name(p, w->argv), permissions_of(p->flags))) {
            *at = p->index;
            return ACL_DENIED_KEY;
        }
    }
    for (int i = w->first_channel; !s->all_channels && i <= w->last_channel; i++) {
        if (!allows_channel(s, w->argv[i], w->channel_patterns)) {
            *at = i;
            return ACL_DENIED_CHANNEL;
        }
    }
    for (int i = 0; !s->all_channels && i < w->channels.count; i++) {
        const struct key_place *p = &w->channels.at[i];
        bool matters = p->flags & (CHANNEL_PUBLISHED | CHANNEL_SUBSCRIBED);
        if (matters && !allows_channel(s, w->argv[p->index], p->flags & CHANNEL_IS_PATTERN)) {
            *at = p->index;
            return ACL_DENIED_CHANNEL;
        }
    }
    return ACL_ALLOWED;
}

/* ---- users ---- */

/* The selector that came the farthest tells what is denied. */
static enum acl_verdict check_selectors(const struct acl_user *user, const struct wanted *w,
                                        int *at)
{
    enum acl_verdict worst = ACL_ALLOWED;
    *at = 0;
    for (int i = 0; i < user->selector_count; i++) {
        int here;
        enum acl_verdict verdict = selector_check(user->selectors[i], w, &here);
        if (verdict == ACL_ALLOWED) {
            return ACL_ALLOWED;
        }
        if (verdict > worst || (verdict == worst && here > *at)) {
            worst = verdict;
            *at = here;
        }
    }
    return worst;
}

enum acl_verdict acl_check(const struct acl_user *user, const struct command *cmd,
                           const struct slice *argv, int argc, int *at)
{
    struct wanted w; /* the places are not set one by one */
    w.cmd = cmd;
    w.argv = argv;
    w.argc = argc;
    w.channels.count = 0;
    w.channels.at = w.channels.few;
    if (user->unlimited) {
        return ACL_ALLOWED;
    }
    collect(&w, command_find_keys, &w.keys);
    find_channels(&w);
    if (cmd->extra && cmd->extra->find_channels) {
        collect(&w, cmd->extra->find_channels, &w.channels);
    }
    enum acl_verdict verdict = check_selectors(user, &w, at);
    release(&w.keys);
    release(&w.channels);
    return verdict;
}

bool acl_may_listen(const struct acl_user *user, struct slice name, bool is_pattern)
{
    for (int i = 0; i < user->selector_count; i++) {
        if (allows_channel(user->selectors[i], name, is_pattern)) {
            return true;
        }
    }
    return user->unlimited;
}

bool acl_may_touch(const struct acl_user *user, struct slice key, uint32_t flags)
{
    for (int i = 0; i < user->selector_count; i++) {
        const struct acl_selector *s = user->selectors[i];
        if (s->all_keys || allows_key(s, key, permissions_of(flags))) {
            return true;
        }
    }
    return user->unlimited;
}

static bool reads_all_keys(const struct acl_selector *s)
{
    bool all = s->all_keys;
    for (int i = 0; i < s->keys.count && !all; i++) {
        all = s->keys.items[i].permissions & ACL_READ &&
              slice_equal(s->keys.items[i].text, SLICE("*"));
    }
    return all;
}

bool acl_may_read_all_keys(const struct call *c)
{
    const struct acl_user *user = c->session->acl;
    const struct wanted w = {.cmd = c->cmd, .argv = c->argv, .argc = c->argc};
    if (user->unlimited) {
        return true;
    }
    for (int i = 0; i < user->selector_count; i++) {
        if (allows_command(user->selectors[i], &w) && reads_all_keys(user->selectors[i])) {
            return true;
        }
    }
    return false;
}

/* ---- denials ---- */

/* A name as far as an error shows it. */
static int shown(struct slice name)
{
    return name.len < 128 ? (int)name.len : 128;
}

void acl_append_denial(struct buf *out, enum acl_verdict verdict, const struct acl_user *user,
                       const struct command *cmd, struct slice object, bool verbose)
{
    const char *kind = verdict == ACL_DENIED_KEY ? "key" : "channel";
    assert(verdict != ACL_ALLOWED && verdict != ACL_DENIED_AUTH);
    if (verdict == ACL_DENIED_COMMAND) {
        buf_printf(out, "User %s has no permissions to run the '%s' command", user->name,
                   cmd->full_name);
    } else if (verbose) {
        buf_printf(out, "User %s has no permissions to access the '%.*s' %s", user->name,
                   shown(object), object.ptr, kind);
    } else {
        buf_printf(out, "No permissions to access a %s", kind);
    }
}

/* Counts and logs a denial; returns its object. */
static struct slice note_denial(const struct call *c, enum acl_verdict verdict,
                                enum acl_context context, int at)
{
    struct slice object =
        verdict == ACL_DENIED_COMMAND ? slice_cstr(c->cmd->full_name) : c->argv[at];
    acl_log_note(c->session, c->cmd, verdict, context, slice_cstr(c->session->acl->name), object);
    return object;
}

enum acl_verdict acl_check_call(const struct call *c, enum acl_context context, struct buf *error)
{
    int at;
    const struct acl_user *user = c->session->acl;
    enum acl_verdict verdict = acl_check(user, c->cmd, c->argv, c->argc, &at);
    if (verdict != ACL_ALLOWED) {
        struct slice object = note_denial(c, verdict, context, at);
        buf_append_cstr(error, "NOPERM ");
        acl_append_denial(error, verdict, user, c->cmd, object, false);
    }
    return verdict;
}

#define QUEUED_DENIAL                                                                              \
    "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC "   \
    "call. This command is no longer allowed for the following reason: "

const char *acl_check_queued(const struct call *c)
{
    static const char *const errors[] = {
        [ACL_ALLOWED] = NULL,
        [ACL_DENIED_COMMAND] = QUEUED_DENIAL "no permission to execute the command or subcommand",
        [ACL_DENIED_KEY] = QUEUED_DENIAL "no permission to touch the specified keys",
        [ACL_DENIED_CHANNEL] = QUEUED_DENIAL
        "no permission to access one of the channels used as arguments to the command",
    };
    int at;
    enum acl_verdict verdict = acl_check(c->session->acl, c->cmd, c->argv, c->argc, &at);
    if (verdict != ACL_ALLOWED) {
        note_denial(c, verdict, ACL_CONTEXT_MULTI, at);
    }
    return errors[verdict];
}
