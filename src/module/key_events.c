/* See key_events.h. */
#include "module/key_events.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"
#include "engine/execute.h"
#include "engine/gate.h"
#include "engine/identity.h"
#include "engine/modules.h"
#include "keyspace/db.h"
#include "keyspace/event.h"
#include "module/context.h"
#include "module/text.h"

#include <assert.h>
#include <string.h>

/* Subscriptions at most: a note has a bit for each. */
#define SUBSCRIPTIONS_MAX 64

/* Names of events at most that have addresses of their own; modules may make any. */
#define NAMES_MAX 2048
#define NAME_BUCKETS 256

struct subscription {
    struct module *module;
    RedisModuleNotificationFunc callback;
    unsigned classes;
};

/* An event that is to be told. */
struct note {
    struct note *next;
    enum event_class class;
    int db_index;
    int64_t now_ms;
    uint64_t skips; /* subscriptions whose own callbacks made it */
    RedisModuleString *key;
    const char *event; /* a name's, or the bytes below */
    char bytes[];
};

struct name {
    struct name *next;
    char text[];
};

/* A name at the address at which it came: the same that it had, nearly always. */
struct known_name {
    const char *event, *name;
};
#define KNOWN_NAMES 16

struct job {
    struct job *next;
    struct module *module;
    RedisModulePostNotificationJobFunc callback;
    void *data;
    void (*free_data)(void *);
    int db_index;
};

static struct {
    struct subscription subscriptions[SUBSCRIPTIONS_MAX];
    unsigned count;
    struct note *first, **last;
    struct job *first_job, **last_job;
    struct note *kept_note; /* for the next note, which is the only one most of the time */
    RedisModuleString *kept_key;
    struct name *names[NAME_BUCKETS];
    unsigned name_count;
    struct known_name known[KNOWN_NAMES];
    uint64_t active; /* subscriptions that are being told, innermost and outer ones */
    bool telling, working;
} state;

/* ---- the border's names of classes ---- */

static const struct {
    int type;
    unsigned class;
} classes[] = {
    {REDISMODULE_NOTIFY_KEYSPACE, EVENT_KEYSPACE}, {REDISMODULE_NOTIFY_KEYEVENT, EVENT_KEYEVENT},
    {REDISMODULE_NOTIFY_GENERIC, EVENT_GENERIC},   {REDISMODULE_NOTIFY_STRING, EVENT_STRING},
    {REDISMODULE_NOTIFY_LIST, EVENT_LIST},         {REDISMODULE_NOTIFY_SET, EVENT_SET},
    {REDISMODULE_NOTIFY_HASH, EVENT_HASH},         {REDISMODULE_NOTIFY_ZSET, EVENT_ZSET},
    {REDISMODULE_NOTIFY_EXPIRED, EVENT_EXPIRED},   {REDISMODULE_NOTIFY_EVICTED, EVENT_EVICTED},
    {REDISMODULE_NOTIFY_STREAM, EVENT_STREAM},     {REDISMODULE_NOTIFY_KEY_MISS, EVENT_KEY_MISS},
    {REDISMODULE_NOTIFY_LOADED, EVENT_LOADED},     {REDISMODULE_NOTIFY_MODULE, EVENT_MODULE},
    {REDISMODULE_NOTIFY_NEW, EVENT_NEW},
};
#define CLASS_COUNT (sizeof(classes) / sizeof(classes[0]))

/* By numbers of bits: a class's type, and a type's class. */
static int type_of_bit[8 * sizeof(unsigned)];
static unsigned class_of_bit[8 * sizeof(int)];

static void fill_bits(void)
{
    for (size_t i = 0; i < CLASS_COUNT; i++) {
        type_of_bit[__builtin_ctz(classes[i].class)] = classes[i].type;
        class_of_bit[__builtin_ctz((unsigned)classes[i].type)] = classes[i].class;
    }
}

static unsigned classes_of(int types)
{
    unsigned result = 0;
    for (unsigned left = (unsigned)types; left; left &= left - 1) {
        result |= class_of_bit[__builtin_ctz(left)];
    }
    return result;
}

static int types_of(unsigned wanted)
{
    int result = 0;
    for (; wanted; wanted &= wanted - 1) {
        result |= type_of_bit[__builtin_ctz(wanted)];
    }
    return result;
}

/* ---- noting ---- */

/* NULL: there are too many names. */
static const char *find_name(const char *event)
{
    size_t len = strlen(event);
    struct name **place = &state.names[hash_bytes(event, len) % NAME_BUCKETS];
    for (; *place; place = &(*place)->next) {
        if (strcmp((*place)->text, event) == 0) {
            return (*place)->text;
        }
    }
    if (state.name_count == NAMES_MAX) {
        return NULL;
    }
    struct name *name = mem_alloc(sizeof(*name) + len + 1);
    name->next = NULL;
    memcpy(name->text, event, len + 1);
    *place = name;
    state.name_count++;
    return name->text;
}

/* The text at an address that is this name's for good: modules (RediSearch) keep the addresses of
 * those that they have met, and compare no texts afterwards. NULL: there are too many names. */
static const char *name_of(const char *event)
{
    struct known_name *known = &state.known[(uintptr_t)event % KNOWN_NAMES];
    if (known->event != event || strcmp(known->name, event) != 0) {
        const char *name = find_name(event);
        if (!name) {
            return NULL;
        }
        *known = (struct known_name){event, name};
    }
    return known->name;
}

static struct note *create_note(const char *event)
{
    const char *name = name_of(event);
    struct note *n = state.kept_note;
    if (unlikely(!name)) {
        size_t bytes = strlen(event) + 1;
        n = mem_alloc(sizeof(*n) + bytes);
        n->event = memcpy(n->bytes, event, bytes);
        return n;
    }
    if (!n) {
        n = mem_alloc(sizeof(*n));
    }
    state.kept_note = NULL;
    n->event = name;
    return n;
}

static void end_note(struct note *n)
{
    text_give_back(&state.kept_key, n->key);
    if (state.kept_note) {
        mem_free(n);
    } else {
        state.kept_note = n;
    }
}

/* The time is that of the call that makes it happen, if one does. */
static void on_event(enum event_class class, const char *event, int db, struct slice key)
{
    struct note *n = create_note(event);
    n->next = NULL;
    n->class = class;
    n->db_index = db;
    n->now_ms = call_running ? call_running->now_ms : keyspace_time_ms(clock_wall_ms());
    n->skips = state.active;
    n->key = text_create_kept(&state.kept_key, key);
    *state.last = n;
    state.last = &n->next;
    keyspace_has_work = true;
}

static void listen(void) NO_THREAD_SAFETY_ANALYSIS
{
    unsigned wanted = 0;
    for (unsigned i = 0; i < state.count; i++) {
        wanted |= state.subscriptions[i].classes;
    }
    event_set_watcher(wanted, wanted ? on_event : NULL);
    modules_listen = wanted != 0;
}

/* ---- telling ---- */

static void tell_one(const struct note *n, unsigned index) REQUIRES(keyspace_lock)
{
    const struct subscription s = state.subscriptions[index];
    uint64_t bit = 1ull << index, before = state.active;
    bool nests = s.module->options & REDISMODULE_OPTIONS_ALLOW_NESTED_KEYSPACE_NOTIFICATIONS;
    if (!(s.classes & n->class) || (n->skips & bit && !nests)) {
        return;
    }
    RedisModuleCtx ctx;
    state.active = n->skips | bit; /* what it does now is of its own making */
    context_begin_at(&ctx, s.module, n->now_ms);
    ctx.db_index = n->db_index;
    s.callback(&ctx, types_of(n->class), n->event, n->key);
    context_end(&ctx);
    state.active = before;
}

/* A module may make events, and subscribe, meanwhile; none is unloaded. */
static void tell_notes(void) REQUIRES(keyspace_lock)
{
    state.telling = true;
    while (state.first) {
        struct note *n = state.first;
        state.first = n->next;
        if (!state.first) {
            state.last = &state.first;
        }
        for (unsigned i = 0; i < state.count; i++) {
            tell_one(n, i);
        }
        end_note(n);
    }
    state.telling = false;
}

static struct job *take_job(void)
{
    struct job *j = state.first_job;
    if (j) {
        state.first_job = j->next;
        if (!state.first_job) {
            state.last_job = &state.first_job;
        }
    }
    return j;
}

static void free_job(struct job *j)
{
    if (j->free_data) {
        j->free_data(j->data);
    }
    mem_free(j);
}

static void do_jobs(void) REQUIRES(keyspace_lock)
{
    state.working = true;
    for (struct job *j; (j = take_job());) {
        RedisModuleCtx ctx;
        context_begin(&ctx, j->module, ACCESS_EXCLUSIVE);
        ctx.db_index = j->db_index;
        j->callback(&ctx, j->data);
        context_end(&ctx);
        free_job(j);
        tell_notes();
    }
    state.working = false;
}

/* engine/modules.h. What a callback does is told by the loop that has called it. */
static void tell(bool last) NO_THREAD_SAFETY_ANALYSIS
{
    if (state.telling) {
        return;
    }
    tell_notes();
    if (last && !state.working && state.first_job) {
        do_jobs();
    }
}

static void tell_at_end(void)
{
    if (state.first || state.first_job) {
        tell(true);
    }
}

/* ---- for modules ---- */

static int rm_subscribe(RedisModuleCtx *ctx, int types, RedisModuleNotificationFunc callback)
{
    keyspace_assert_exclusive();
    if (state.count == SUBSCRIPTIONS_MAX) {
        return REDISMODULE_ERR;
    }
    state.subscriptions[state.count++] =
        (struct subscription){ctx->module, callback, classes_of(types)};
    listen();
    return REDISMODULE_OK;
}

static int rm_add_job(RedisModuleCtx *ctx, RedisModulePostNotificationJobFunc callback, void *data,
                      void (*free_data)(void *))
{
    keyspace_assert_exclusive();
    const struct session client = {.id = 1};
    if (gate_is_loading() || (identity_is_replica() && gate_write_refusal(&client))) {
        return REDISMODULE_ERR; /* it could not write */
    }
    struct job *j = mem_alloc(sizeof(*j));
    *j = (struct job){.module = ctx->module,
                      .callback = callback,
                      .data = data,
                      .free_data = free_data,
                      .db_index = context_db(ctx)};
    *state.last_job = j;
    state.last_job = &j->next;
    keyspace_has_work = true;
    return REDISMODULE_OK;
}

static int rm_notify(RedisModuleCtx *ctx, int type, const char *event, RedisModuleString *key)
{
    keyspace_assert_exclusive();
    unsigned class = classes_of(type) & ~(unsigned)(EVENT_KEYSPACE | EVENT_KEYEVENT);
    if (class) {
        event_notify(class, event, context_db(ctx), text_slice(key));
    }
    return REDISMODULE_OK;
}

static int rm_get_notify(void)
{
    return types_of(event_mask());
}

static int rm_get_flags_all(void)
{
    return (REDISMODULE_NOTIFY_NEW << 1) - 1;
}

const struct api_function key_event_functions[] = {
    API(SubscribeToKeyspaceEvents, rm_subscribe),
    API(AddPostNotificationJob, rm_add_job),
    API(NotifyKeyspaceEvent, rm_notify),
    API(GetNotifyKeyspaceEvents, rm_get_notify),
    API(GetKeyspaceNotificationFlagsAll, rm_get_flags_all),
    {NULL, NULL},
};

/* ---- life ---- */

/* Notes' bits of subscriptions are void: none is under way when a module goes, but in the world. */
void key_events_withdraw(const struct module *m)
{
    unsigned kept = 0;
    tell_at_end();
    for (unsigned i = 0; i < state.count; i++) {
        if (state.subscriptions[i].module != m) {
            state.subscriptions[kept++] = state.subscriptions[i];
        }
    }
    state.count = kept;
    listen();
}

void key_events_setup(void)
{
    state.last = &state.first;
    state.last_job = &state.first_job;
    fill_bits();
    modules_set_teller(tell);
    keyspace_set_listener_work(tell_at_end);
}

/* Modules are not asked any more. */
void key_events_teardown(void) NO_THREAD_SAFETY_ANALYSIS
{
    keyspace_set_listener_work(NULL);
    modules_set_teller(NULL);
    event_set_watcher(0, NULL);
    while (state.first) {
        struct note *n = state.first;
        state.first = n->next;
        end_note(n);
    }
    mem_free(state.kept_note);
    state.kept_note = NULL;
    text_drop_kept(&state.kept_key);
    for (struct job *j; (j = take_job());) {
        mem_free(j);
    }
    for (unsigned i = 0; i < NAME_BUCKETS; i++) {
        for (struct name *name; (name = state.names[i]);) {
            state.names[i] = name->next;
            mem_free(name);
        }
    }
    memset(state.known, 0, sizeof(state.known));
    state.name_count = 0;
    state.count = 0;
    modules_listen = false;
}
