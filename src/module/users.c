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
    struct acl_user *own; /* what it may do, as no session looks at it; NULL: the server's `name` */
    struct acl_user *worn; /* a copy of it that its sessions are; NULL: none was */
    char *name;
};

/* Sessions of `from`, which then goes, are to be of `to` (NULL: closed): that needs the world, and
 * so waits until nobody's call is amid. State: keyspace; the count is atomic. */
struct move {
    struct acl_user *from, *to;
};
static struct {
    struct move *moves; /* the first is the oldest: sessions may move on from one to the next */
    _Atomic unsigned count;
} pending;

/* How often the cron looks for them. */
#define LOOK_PERIOD_MS 100

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

/* ---- sessions of users ---- */

static void note_move(struct acl_user *from, struct acl_user *to)
{
    unsigned count = atomic_load(&pending.count);
    pending.moves = mem_realloc(pending.moves, (count + 1) * sizeof(*pending.moves));
    pending.moves[count] = (struct move){from, to};
    atomic_store(&pending.count, count + 1);
}

const struct acl_user *user_for_session(RedisModuleUser *user)
{
    if (!user->own) {
        return user_acl(user);
    }
    if (!user->worn) {
        user->worn = acl_unlisted_copy(user->own);
    }
    return user->worn;
}

/* The caller of what runs is closed after its reply. The world stands. Modules that are told of
 * closed clients may make more moves, which wait for the next look. */
static void move_sessions(void *data UNUSED) NO_THREAD_SAFETY_ANALYSIS
{
    const RedisModuleCtx *ctx = context_current();
    struct move *moves = pending.moves;
    unsigned count = atomic_exchange(&pending.count, 0);
    pending.moves = NULL;
    for (unsigned i = 0; i < count; i++) {
        if (moves[i].to) {
            acl_move_clients(moves[i].from, moves[i].to);
        } else {
            acl_close_clients(moves[i].from, ctx ? ctx->session : NULL);
        }
        acl_unlisted_destroy(&moves[i].from);
    }
    mem_free(moves);
}

void users_settle(RedisModuleCtx *ctx)
{
    if (unlikely(atomic_load_explicit(&pending.count, memory_order_relaxed) > 0)) {
        world_run_last(ctx, move_sessions, NULL); /* else look() does */
    }
}

/* When a script keeps the world, the next look tries anew. */
static void look(int64_t wall_ms UNUSED) NO_THREAD_SAFETY_ANALYSIS
{
    if (atomic_load(&pending.count) > 0 && gil_try_stop_world()) {
        move_sessions(NULL);
        gil_resume_world();
    }
}

void users_setup(void)
{
    static const struct cron_job job = {
        .name = "module-users", .period_ms = LOOK_PERIOD_MS, .run = look};
    cron_register(&job);
}

void users_teardown(void)
{
    unsigned count = atomic_exchange(&pending.count, 0);
    for (unsigned i = 0; i < count; i++) {
        acl_unlisted_destroy(&pending.moves[i].from);
    }
    mem_free(pending.moves);
    pending.moves = NULL;
}

/* Its clients are closed when the call that frees it ends, or within a moment (users_settle). */
static void rm_free(RedisModuleUser *user)
{
    keyspace_assert_exclusive();
    if (user->worn) {
        note_move(user->worn, NULL);
    }
    if (user->own) {
        acl_unlisted_destroy(&user->own);
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

/* Users of the server's own are not to be had (ENOTSUP): they change by ACL SETUSER only. What
 * sessions may do changes when the call ends. */
static bool set(RedisModuleUser *user, const struct slice *rules, int count, struct buf *error)
{
    if (!user->own) {
        errno = ENOTSUP;
        buf_append_cstr(error, "ERR this user is not the module's own: ACL SETUSER changes it");
        return false;
    }
    if (!acl_unlisted_set(user->own, rules, count, error)) {
        return false;
    }
    if (user->worn) {
        struct acl_user *now = acl_unlisted_copy(user->own);
        note_move(user->worn, now);
        user->worn = now;
    }
    return true;
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
