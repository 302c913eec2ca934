/* What a module tells the logs and the replicas of what it has done. All that one command tells is
 * a unit, with what is called with the flag '!'. Nothing of a module's command is told by itself.
 */
#include "module/replicate.h"

#include "engine/propagate.h"
#include "module/words.h"

#include "base/hash.h"
#include "base/stats.h"

#include <string.h>

/* Keys of one command that are looked for at once; of one with more all are. */
#define FEW_KEYS 16

/* Words of a command that need no block of their own. */
#define FEW_WORDS 16

/* Outside of a command (a timer) there is no call whose change it is. */
static void count_change(RedisModuleCtx *ctx)
{
    if (ctx->call && ctx->held == ACCESS_EXCLUSIVE) {
        ctx->call->dirty++;
    } else {
        stats_add(STAT_DIRTY, 1);
    }
}

/* ---- peers ---- */

/* Commands without keys that they are told as they are. */
static bool is_for_peers(struct slice name)
{
    static const char *const names[] = {"publish", "spublish", "flushdb", "flushall"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (slice_equal_nocase(name, names[i])) {
            return true;
        }
    }
    return false;
}

/* In the tree a key stands behind its database's number. */
static void note_key(RedisModuleCtx *ctx, struct slice name)
{
    struct buf place = {0};
    int db = context_db(ctx);
    buf_append(&place, (const char *)&db, sizeof(db));
    buf_append_slice(&place, name);
    radix_insert(&ctx->keys_for_peers, buf_slice(&place), ctx);
    buf_deinit(&place);
}

/* Whether they are to be told the words themselves. */
static bool note_keys(RedisModuleCtx *ctx, int argc, const struct slice *argv)
{
    const struct command *cmd = command_find_original(argv[0]);
    cmd = cmd ? cmd : command_find(argv[0]);
    struct key_place few[FEW_KEYS], *places = few;
    int count = cmd ? command_find_keys(cmd, argv, argc, few, FEW_KEYS) : 0;
    if (count > FEW_KEYS) {
        places = arena_alloc(&ctx->pool, (size_t)count * sizeof(*places));
        count = command_find_keys(cmd, argv, argc, places, count);
    }
    for (int i = 0; i < count; i++) {
        if (!(places[i].flags & (KEY_NOT_KEY | KEY_RO))) {
            note_key(ctx, key_place_name(&places[i], argv));
        }
    }
    return count <= 0 && is_for_peers(argv[0]);
}

static void tell_key(const RedisModuleCtx *ctx, struct slice place) REQUIRES(keyspace_lock);
static void tell_key(const RedisModuleCtx *ctx, struct slice place)
{
    int db;
    memcpy(&db, place.ptr, sizeof(db));
    struct key key = key_of(slice_of(place.ptr + sizeof(db), place.len - sizeof(db)));
    struct call told = {.db = db_at(db), .now_ms = ctx->now_ms};
    propagate_key_to_peers(&told, told.db, &key);
}

void replicate_keys(RedisModuleCtx *ctx)
{
    struct buf place = {0};
    struct radix_cursor at = radix_first(&ctx->keys_for_peers);
    for (; propagate_peers && radix_cursor_valid(&at); radix_cursor_next(&at)) {
        size_t bytes = radix_cursor_key_bytes(&at);
        buf_clear(&place);
        radix_cursor_copy_key(&at, buf_reserve(&place, bytes));
        place.len = bytes;
        tell_key(ctx, buf_slice(&place));
    }
    buf_deinit(&place);
    radix_deinit(&ctx->keys_for_peers, NULL, NULL);
}

/* ---- telling ---- */

/* With propagate_on. */
static void tell(RedisModuleCtx *ctx, unsigned targets, int argc, const struct slice *argv)
    REQUIRES(keyspace_lock)
{
    struct call told = {.db = db_at(context_db(ctx))};
    unsigned aimed = propagate_aimed();
    context_begin_unit(ctx);
    if (propagate_peers && aimed & targets & PROPAGATE_TO_PEERS && !note_keys(ctx, argc, argv)) {
        targets &= ~PROPAGATE_TO_PEERS;
    }
    propagate_aim(aimed & targets);
    propagate_instead(&told, argc, argv);
    propagate_aim(aimed);
}

static int rm_replicate(RedisModuleCtx *ctx, const char *name, const char *format, ...)
{
    struct words w;
    va_list arguments;
    keyspace_assert_exclusive();
    if (!command_find(slice_cstr(name)) && !command_find_original(slice_cstr(name))) {
        return REDISMODULE_ERR;
    }
    va_start(arguments, format);
    bool fine = words_parse(&w, &ctx->pool, name, format, arguments);
    va_end(arguments);
    if (!fine) {
        return REDISMODULE_ERR;
    }
    unsigned targets = PROPAGATE_TO_ALL;
    if (w.flags & WORDS_NO_AOF) {
        targets &= ~PROPAGATE_TO_AOF;
    }
    if (w.flags & WORDS_NO_REPLICAS) {
        targets &= ~(PROPAGATE_TO_REPLICAS | PROPAGATE_TO_PEERS);
    }
    count_change(ctx);
    if (propagate_on) {
        tell(ctx, targets, w.argc, w.argv);
    }
    return REDISMODULE_OK;
}

/* By the name that every server knows. */
static void tell_renamed(RedisModuleCtx *ctx, const struct call *c) REQUIRES(keyspace_lock);
static void tell_renamed(RedisModuleCtx *ctx, const struct call *c)
{
    struct slice few[FEW_WORDS], *words = few;
    if (c->argc > FEW_WORDS) {
        words = arena_alloc(&ctx->pool, (size_t)c->argc * sizeof(*words));
    }
    memcpy(words, c->argv, (size_t)c->argc * sizeof(*words));
    words[0] = command_word(c->cmd);
    tell(ctx, PROPAGATE_TO_ALL, c->argc, words);
}

/* The command as it came. */
static void tell_call(RedisModuleCtx *ctx, const struct call *c) REQUIRES(keyspace_lock)
{
    if (command_any_renamed) {
        tell_renamed(ctx, c);
    } else {
        tell(ctx, PROPAGATE_TO_ALL, c->argc, c->argv);
    }
}

static int rm_replicate_verbatim(RedisModuleCtx *ctx)
{
    keyspace_assert_exclusive();
    if (ctx->call) {
        count_change(ctx);
        if (propagate_on) {
            tell_call(ctx, ctx->call);
        }
    }
    return REDISMODULE_OK;
}

const struct api_function replicate_functions[] = {
    API(Replicate, rm_replicate),
    API(ReplicateVerbatim, rm_replicate_verbatim),
    {NULL, NULL},
};
