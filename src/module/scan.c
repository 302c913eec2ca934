/* Walks of modules over a database, or over a collection. What a step finds is gathered first and
 * then shown, so that who is shown it may change whatever it likes. A cursor belongs to the module
 * that made it. */
#include "base/mem.h"
#include "keyspace/db.h"
#include "module/keys.h"
#include "module/text.h"
#include "value/hash.h"
#include "value/set.h"
#include "value/zset.h"

#include <errno.h>
#include <stdio.h>

/* About so many things are shown in one step. */
#define STEP_COUNT 10
/* Room for "%.17g". */
#define SCORE_CHARS 32

struct RedisModuleScanCursor {
    uint64_t at;
    bool is_over;
};

/* What a step has found: names, or names with values. */
struct found {
    struct pair {
        RedisModuleString *name, *value; /* value NULL: it has none */
    } * pairs;
    size_t count, capacity;
};

static RedisModuleScanCursor *rm_create(void)
{
    return mem_calloc(1, sizeof(RedisModuleScanCursor));
}

static void rm_restart(RedisModuleScanCursor *cursor)
{
    *cursor = (RedisModuleScanCursor){0};
}

static void rm_destroy(RedisModuleScanCursor *cursor)
{
    mem_free(cursor);
}

static void add(struct found *f, struct slice name, RedisModuleString *value_take)
{
    if (f->count == f->capacity) {
        f->capacity = f->capacity ? 2 * f->capacity : STEP_COUNT;
        f->pairs = mem_realloc(f->pairs, f->capacity * sizeof(*f->pairs));
    }
    f->pairs[f->count++] = (struct pair){text_create(name), value_take};
}

static void end(struct found *f)
{
    for (size_t i = 0; i < f->count; i++) {
        text_release(f->pairs[i].name);
        if (f->pairs[i].value) {
            text_release(f->pairs[i].value);
        }
    }
    mem_free(f->pairs);
}

/* 1 while there is more, with errno 0. */
static int step_result(RedisModuleScanCursor *cursor, uint64_t next)
{
    cursor->at = next;
    cursor->is_over = next == 0;
    errno = 0;
    return !cursor->is_over;
}

static int fail(int error)
{
    errno = error;
    return 0;
}

/* ---- a database ---- */

static void find_key(struct entry *e, void *context)
{
    add(context, entry_key(e), NULL);
}

/* A key that somebody who was shown another one has deleted is not shown any more. */
static void show_key(RedisModuleCtx *ctx, RedisModuleString *name, RedisModuleScanCB show,
                     void *context) REQUIRES(keyspace_lock)
{
    RedisModuleKey *k = key_open(ctx, name, REDISMODULE_READ | REDISMODULE_OPEN_KEY_NOEFFECTS);
    if (k) {
        show(ctx, name, k, context);
        key_close(k);
    }
}

static int rm_scan(RedisModuleCtx *ctx, RedisModuleScanCursor *cursor, RedisModuleScanCB show,
                   void *context)
{
    struct found f = {0};
    keyspace_assert_exclusive();
    if (cursor->is_over) {
        return fail(ENOENT);
    }
    uint64_t next =
        db_scan(db_at(context_db(ctx)), cursor->at, STEP_COUNT, ctx->now_ms, find_key, &f);
    for (size_t i = 0; i < f.count; i++) {
        show_key(ctx, f.pairs[i].name, show, context);
    }
    end(&f);
    return step_result(cursor, next);
}

/* ---- a collection ---- */

static void find_field(const struct hash_item *item, void *context)
{
    add(context, item->field, text_create(item->value.bytes));
}

static void find_member(struct set_member *m, void *context)
{
    add(context, set_member_bytes(m), NULL);
}

static void find_scored(struct slice member, double score, void *context)
{
    char text[SCORE_CHARS];
    int len = snprintf(text, sizeof(text), "%.17g", score);
    add(context, member, text_create(slice_of(text, (size_t)len)));
}

/* The elements from the cursor on; false when the type has none that a module may walk. */
static bool find_elements(const struct entry *e, uint64_t at, struct found *f, uint64_t *next)
{
    switch (entry_type(e)) {
    case VALUE_HASH:
        *next = hash_scan(e, at, STEP_COUNT, find_field, f);
        return true;
    case VALUE_SET:
        *next = set_scan(e, at, STEP_COUNT, find_member, f);
        return true;
    case VALUE_ZSET:
        *next = zset_scan(e, at, STEP_COUNT, find_scored, f);
        return true;
    default:
        return false;
    }
}

static int rm_scan_key(RedisModuleKey *k, RedisModuleScanCursor *cursor, RedisModuleScanKeyCB show,
                       void *context)
{
    struct found f = {0};
    uint64_t next;
    keyspace_assert_exclusive();
    const struct entry *e = k ? key_look(k)->entry : NULL;
    if (!e) {
        return fail(EINVAL);
    }
    if (cursor->is_over) {
        return fail(ENOENT);
    }
    if (!find_elements(e, cursor->at, &f, &next)) {
        return fail(EINVAL);
    }
    for (size_t i = 0; i < f.count; i++) {
        show(k, f.pairs[i].name, f.pairs[i].value, context);
    }
    end(&f);
    return step_result(cursor, next);
}

const struct api_function scan_functions[] = {
    API(ScanCursorCreate, rm_create),   API(ScanCursorRestart, rm_restart),
    API(ScanCursorDestroy, rm_destroy), API(Scan, rm_scan),
    API(ScanKey, rm_scan_key),          {NULL, NULL},
};
