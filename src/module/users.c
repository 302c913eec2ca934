/* Users, and what they may do. See users.h. Checks fail with errno EACCES for what is not allowed
 * (and for a user that is gone). */
#include "module/users.h"

#include "base/mem.h"
#include "engine/acl_log.h"
#include "engine/cron.h"
#include "module/text.h"
#include "module/world.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

struct RedisModuleUser {
    struct acl_user *own; /* NULL: the server's user `name` */
    char *name;
    bool has_sessions; /* some client is, or was, this user: its rules change in the world */
};

/* Users that are to go, and whose clients are still there. State: keyspace; the count is atomic. */
static struct {
    struct acl_user **users;
    _Atomic unsigned count;
} doomed;

/* How often the cron looks for them. */
#define LOOK_PERIOD_MS 100

void user_note_session(RedisModuleUser *user)
{
    user->has_sessions = true;
}

const struct acl_user *user_acl(const RedisModuleUser *user)
{
    return user->own ? user->own : acl_user_find(slice_cstr(user->name));
}

static RedisModuleUser *create(struct acl_user *own, struct slice name)
{
    RedisModuleUser *user = mem_alloc(sizeof(*user));
    *user = (RedisModuleUser){.own = own, .name = mem_dup(name.ptr, name.len)};
    return user;
}

/* It may nothing at first. */
static RedisModuleUser *rm_create(const char *name)
{
    keyspace_assert_exclusive();
    struct slice text = slice_cstr(name);
    return create(acl_unlisted_create(text), text);
}

/* ---- the end of a user ---- */

/* Closes its clients, the caller after its reply. The world stands. */
static void destroy_alone(void *own) NO_THREAD_SAFETY_ANALYSIS
{
    struct acl_user *user = own;
    const RedisModuleCtx *ctx = context_current();
    acl_close_clients(user, ctx ? ctx->session : NULL);
    acl_unlisted_destroy(&user);
}

static void doom(struct acl_user *user)
{
    unsigned count = atomic_load(&doomed.count);
    doomed.users = mem_realloc(doomed.users, (count + 1) * sizeof(struct acl_user *));
    doomed.users[count] = user;
    atomic_store(&doomed.count, count + 1);
}

/* When a script keeps the world, the next look tries anew. */
static void destroy_doomed(int64_t wall_ms UNUSED) NO_THREAD_SAFETY_ANALYSIS
{
    if (atomic_load(&doomed.count) == 0 || !gil_try_stop_world()) {
        return;
    }
    struct acl_user **users = doomed.users; /* modules that are told of it may free others */
    unsigned count = atomic_exchange(&doomed.count, 0);
    doomed.users = NULL;
    for (unsigned i = 0; i < count; i++) {
        destroy_alone(users[i]);
    }
    mem_free(users);
    gil_resume_world();
}

void users_setup(void)
{
    static const struct cron_job job = {
        .name = "module-users", .period_ms = LOOK_PERIOD_MS, .run = destroy_doomed};
    cron_register(&job);
}

void users_teardown(void)
{
    unsigned count = atomic_exchange(&doomed.count, 0);
    for (unsigned i = 0; i < count; i++) {
        acl_unlisted_destroy(&doomed.users[i]);
    }
    mem_free(doomed.users);
    doomed.users = NULL;
}

/* Its clients are closed: at once, or where the world is not to be had for that within a moment. */
static void rm_free(RedisModuleUser *user)
{
    keyspace_assert_exclusive();
    RedisModuleCtx *ctx = context_current();
    if (user->own && !user->has_sessions) {
        acl_unlisted_destroy(&user->own);
    } else if (user->own && (!ctx || !world_run(ctx, destroy_alone, user->own))) {
        doom(user->own);
    }
    mem_free(user->name);
    mem_free(user);
}

/* Of the server's users; NULL where there is none. */
static RedisModuleUser *rm_find(RedisModuleString *name)
{
    keyspace_assert_exclusive();
    const struct acl_user *user = acl_user_find(text_slice(name));
    return user ? create(NULL, text_slice(name)) : NULL;
}

static RedisModuleString *rm_current_name(RedisModuleCtx *ctx)
{
    keyspace_assert_exclusive();
    return ctx->session ? text_give(ctx, text_create(slice_cstr(ctx->session->user))) : NULL;
}

/* For calls that check rights; NULL: the caller's again. */
static void rm_set_context_user(RedisModuleCtx *ctx, const RedisModuleUser *user)
{
    ctx->user = user;
}

/* ---- rules ---- */

struct change {
    struct acl_user *user;
    const struct slice *rules;
    int count;
    struct buf *error;
    bool done;
};

static void apply_change(void *data)
{
    struct change *change = data;
    change->done = acl_unlisted_set(change->user, change->rules, change->count, change->error);
}

static bool fail_change(struct buf *error, const char *why)
{
    errno = ENOTSUP;
    buf_append_cstr(error, why);
    return false;
}

/* Not to be had (ENOTSUP): users of the server's own change by ACL SETUSER only; and one that
 * clients are changes in the world only. */
static bool set(RedisModuleUser *user, const struct slice *rules, int count, struct buf *error)
    REQUIRES(keyspace_lock)
{
    struct change change = {user->own, rules, count, error, false};
    RedisModuleCtx *ctx = context_current();
    if (!user->own) {
        return fail_change(error, "ERR this user is not the module's own: ACL SETUSER changes it");
    }
    if (!user->has_sessions) {
        apply_change(&change);
    } else if (!ctx || !world_run(ctx, apply_change, &change)) {
        return fail_change(error, "ERR clients are this user: now its rules can't be changed");
    }
    return change.done;
}

static int rm_set_rule(RedisModuleUser *user, const char *rule)
{
    keyspace_assert_exclusive();
    struct buf error = {0};
    struct slice text = slice_cstr(rule);
    bool done = set(user, &text, 1, &error);
    buf_deinit(&error);
    return done ? REDISMODULE_OK : REDISMODULE_ERR;
}

/* Words between blanks; `words` has room for half of the bytes and one. */
static int split(struct slice text, struct slice *words)
{
    int count = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == ' ') {
            continue;
        }
        size_t begin = i;
        while (i < text.len && text.ptr[i] != ' ') {
            i++;
        }
        words[count++] = slice_of(text.ptr + begin, i - begin);
    }
    return count;
}

/* All rules of the line, or none. */
static int rm_set_rules(RedisModuleCtx *ctx, RedisModuleUser *user, const char *rules,
                        RedisModuleString **error)
{
    keyspace_assert_exclusive();
    static const char prefix[] = "ERR ";
    struct slice text = slice_cstr(rules);
    struct slice *words = mem_alloc((text.len / 2 + 1) * sizeof(*words));
    struct buf why = {0};
    bool done = set(user, words, split(text, words), &why);
    if (!done && error) {
        struct slice told = buf_slice(&why);
        size_t skip = sizeof(prefix) - 1;
        *error = text_give(ctx, text_create(slice_of(told.ptr + skip, told.len - skip)));
    }
    buf_deinit(&why);
    mem_free(words);
    return done ? REDISMODULE_OK : REDISMODULE_ERR;
}

static RedisModuleString *rm_get_rules(RedisModuleUser *user)
{
    keyspace_assert_exclusive();
    const struct acl_user *acl = user_acl(user);
    struct buf rules = {0};
    if (!acl) {
        return NULL;
    }
    acl_append_user(&rules, acl);
    RedisModuleString *text = text_create(buf_slice(&rules));
    buf_deinit(&rules);
    return text;
}

/* ---- checks ---- */

static int answer(bool allowed)
{
    if (!allowed) {
        errno = EACCES;
        return REDISMODULE_ERR;
    }
    return REDISMODULE_OK;
}

static const struct command *find_command(const struct slice *argv, int argc)
{
    const struct command *cmd = argc > 0 && argv[0].len > 0 ? command_find(argv[0]) : NULL;
    return cmd && cmd->subcommands && argc > 1 ? command_find_sub(cmd, argv[1]) : cmd;
}

/* ENOENT: there is no such command. */
static int rm_check_command(RedisModuleUser *user, RedisModuleString **argv, int argc)
{
    keyspace_assert_exclusive();
    const struct acl_user *acl = user_acl(user);
    struct slice *words = mem_alloc((size_t)(argc + 1) * sizeof(*words));
    for (int i = 0; i < argc; i++) {
        words[i] = text_slice(argv[i]);
    }
    const struct command *cmd = find_command(words, argc);
    int at;
    int result = REDISMODULE_ERR;
    if (!cmd) {
        errno = ENOENT;
    } else {
        result = answer(acl && acl_check(acl, cmd, words, argc, &at) == ACL_ALLOWED);
    }
    mem_free(words);
    return result;
}

static const struct {
    int theirs;
    uint32_t ours;
} key_accesses[] = {
    {REDISMODULE_CMD_KEY_ACCESS, KEY_ACCESS},
    {REDISMODULE_CMD_KEY_UPDATE, KEY_UPDATE},
    {REDISMODULE_CMD_KEY_INSERT, KEY_INSERT},
    {REDISMODULE_CMD_KEY_DELETE, KEY_DELETE},
};

/* EINVAL: flags that say no access. */
static int rm_check_key(RedisModuleUser *user, RedisModuleString *key, int flags)
{
    keyspace_assert_exclusive();
    const struct acl_user *acl = user_acl(user);
    uint32_t wanted = 0;
    for (size_t i = 0; i < sizeof(key_accesses) / sizeof(key_accesses[0]); i++) {
        if (flags & key_accesses[i].theirs) {
            wanted |= key_accesses[i].ours;
            flags &= ~key_accesses[i].theirs;
        }
    }
    if (flags) {
        errno = EINVAL;
        return REDISMODULE_ERR;
    }
    return answer(acl && acl_may_touch(acl, text_slice(key), wanted));
}

#define CHANNEL_FLAGS                                                                              \
    ((int)(REDISMODULE_CMD_CHANNEL_PATTERN | REDISMODULE_CMD_CHANNEL_PUBLISH |                     \
           REDISMODULE_CMD_CHANNEL_SUBSCRIBE | REDISMODULE_CMD_CHANNEL_UNSUBSCRIBE))

/* Everybody may cease to listen. */
static int rm_check_channel(RedisModuleUser *user, RedisModuleString *channel, int flags)
{
    keyspace_assert_exclusive();
    const struct acl_user *acl = user_acl(user);
    if (flags & ~CHANNEL_FLAGS) {
        errno = EINVAL;
        return REDISMODULE_ERR;
    }
    if (flags & (int)REDISMODULE_CMD_CHANNEL_UNSUBSCRIBE) {
        return REDISMODULE_OK;
    }
    bool is_pattern = flags & (int)REDISMODULE_CMD_CHANNEL_PATTERN;
    return answer(acl && acl_may_listen(acl, text_slice(channel), is_pattern));
}

/* ---- ACL LOG ---- */

static const enum acl_verdict reasons[] = {
    [REDISMODULE_ACL_LOG_AUTH] = ACL_DENIED_AUTH,
    [REDISMODULE_ACL_LOG_CMD] = ACL_DENIED_COMMAND,
    [REDISMODULE_ACL_LOG_KEY] = ACL_DENIED_KEY,
    [REDISMODULE_ACL_LOG_CHANNEL] = ACL_DENIED_CHANNEL,
};

static void log_denial(const RedisModuleCtx *ctx, struct slice user,
                       const RedisModuleString *object, RedisModuleACLLogEntryReason reason)
{
    static const struct session nobody = {0};
    bool seen = ctx->session && !ctx->blocked; /* else it may be another thread's */
    if ((size_t)reason < sizeof(reasons) / sizeof(reasons[0])) {
        acl_log_note(seen ? ctx->session : &nobody, ctx->call ? ctx->call->cmd : NULL,
                     reasons[reason], ACL_CONTEXT_MODULE, user, text_slice(object));
    }
}

static void rm_log_denial(RedisModuleCtx *ctx, RedisModuleUser *user, RedisModuleString *object,
                          RedisModuleACLLogEntryReason reason)
{
    log_denial(ctx, slice_cstr(user->name), object, reason);
}

static void rm_log_denial_by_name(RedisModuleCtx *ctx, RedisModuleString *user,
                                  RedisModuleString *object, RedisModuleACLLogEntryReason reason)
{
    log_denial(ctx, text_slice(user), object, reason);
}

const struct api_function user_functions[] = {
    API(CreateModuleUser, rm_create),
    API(FreeModuleUser, rm_free),
    API(GetModuleUserFromUserName, rm_find),
    API(GetCurrentUserName, rm_current_name),
    API(SetContextUser, rm_set_context_user),
    API(SetModuleUserACL, rm_set_rule),
    API(SetModuleUserACLString, rm_set_rules),
    API(GetModuleUserACLString, rm_get_rules),
    API(ACLCheckCommandPermissions, rm_check_command),
    API(ACLCheckKeyPermissions, rm_check_key),
    API(ACLCheckChannelPermissions, rm_check_channel),
    API(ACLAddLogEntry, rm_log_denial),
    API(ACLAddLogEntryByUserName, rm_log_denial_by_name),
    {NULL, NULL},
};
