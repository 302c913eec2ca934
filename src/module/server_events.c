/* See server_events.h. */
#include "module/server_events.h"

#include "base/mem.h"
#include "base/num.h"
#include "engine/config.h"
#include "engine/cron.h"
#include "engine/modules.h"
#include "keyspace/event.h"
#include "module/context.h"
#include "module/keys.h"
#include "module/main_loop.h"
#include "module/text.h"

#include <assert.h>
#include <string.h>

/* How many sub-events each event has that can happen here; 0: it cannot be asked for. */
static const unsigned char parts[MODULES_TOPICS] = {
    [MODULES_ROLE] = 2,       [MODULES_LINK] = 2,        [MODULES_LOADING] = 5,
    [MODULES_ASYNC_LOAD] = 3, [MODULES_CLIENT] = 2,      [MODULES_FLUSH] = 2,
    [MODULES_SHUTDOWN] = 1,   [MODULES_CRON] = 1,        [MODULES_MODULE] = 2,
    [MODULES_SWAPDB] = 1,     [MODULES_CONFIG] = 1,      [MODULES_REPLICA] = 2,
    [MODULES_KEY] = 4,        [MODULES_PERSISTENCE] = 6, [MODULES_PROGRESS] = 2,
    [MODULES_FORK_CHILD] = 2, [MODULES_EVENT_LOOP] = 2,
};

struct subscription {
    struct subscription *next;
    struct module *module;
    RedisModuleEventCallback callback; /* NULL: ended; it goes when nobody is being told */
    unsigned topic;
};

static struct subscription *all; /* in order of subscribing */
static unsigned telling;         /* walks along the list that are under way */

static_assert(MODULES_ROLE == REDISMODULE_EVENT_REPLICATION_ROLE_CHANGED &&
                  MODULES_LINK == REDISMODULE_EVENT_MASTER_LINK_CHANGE &&
                  MODULES_LOADING == REDISMODULE_EVENT_LOADING &&
                  MODULES_ASYNC_LOAD == REDISMODULE_EVENT_REPL_ASYNC_LOAD &&
                  MODULES_CLIENT == REDISMODULE_EVENT_CLIENT_CHANGE &&
                  MODULES_CLIENT_TLS == REDISMODULE_CLIENTINFO_FLAG_SSL &&
                  MODULES_CLIENT_BLOCKED == REDISMODULE_CLIENTINFO_FLAG_BLOCKED &&
                  MODULES_CLIENT_UNIX == REDISMODULE_CLIENTINFO_FLAG_UNIXSOCKET,
              "topics and bits have the interface's numbers");
static_assert(MODULES_PERSISTENCE == REDISMODULE_EVENT_PERSISTENCE &&
                  MODULES_REPLICA == REDISMODULE_EVENT_REPLICA_CHANGE &&
                  MODULES_PROGRESS == REDISMODULE_EVENT_LOADING_PROGRESS &&
                  MODULES_FORK_CHILD == REDISMODULE_EVENT_FORK_CHILD &&
                  MODULES_EVENT_LOOP == REDISMODULE_EVENT_EVENTLOOP &&
                  MODULES_KEY == REDISMODULE_EVENT_KEY,
              "topics have the interface's numbers");
static_assert(MODULES_FLUSH == REDISMODULE_EVENT_FLUSHDB &&
                  MODULES_SHUTDOWN == REDISMODULE_EVENT_SHUTDOWN &&
                  MODULES_CRON == REDISMODULE_EVENT_CRON_LOOP &&
                  MODULES_MODULE == REDISMODULE_EVENT_MODULE_CHANGE &&
                  MODULES_SWAPDB == REDISMODULE_EVENT_SWAPDB &&
                  MODULES_CONFIG == REDISMODULE_EVENT_CONFIG,
              "topics have the interface's numbers");

static_assert(GOING_DELETED == REDISMODULE_SUBEVENT_KEY_DELETED &&
                  GOING_EXPIRED == REDISMODULE_SUBEVENT_KEY_EXPIRED &&
                  GOING_EVICTED == REDISMODULE_SUBEVENT_KEY_EVICTED &&
                  GOING_OVERWRITTEN == REDISMODULE_SUBEVENT_KEY_OVERWRITTEN,
              "and so have ways to go");

static void on_going(enum event_going how, const struct db *db, struct slice key);

static void listen(void) NO_THREAD_SAFETY_ANALYSIS
{
    uint32_t topics = 0;
    for (const struct subscription *s = all; s; s = s->next) {
        topics |= s->callback ? 1u << s->topic : 0;
    }
    atomic_store_explicit(&modules_topics, topics, memory_order_relaxed);
    event_set_going_watcher(topics & 1u << MODULES_KEY ? on_going : NULL);
}

/* ---- telling ---- */

/* What the event's data look like at the border. */
union event_data {
    RedisModuleReplicationInfoV1 role;
    RedisModuleClientInfoV1 client;
    RedisModuleFlushInfoV1 flush;
    RedisModuleCronLoopV1 cron;
    RedisModuleModuleChangeV1 module;
    RedisModuleSwapDbInfoV1 swap;
    RedisModuleLoadingProgressV1 progress;
    RedisModuleConfigChangeV1 config;
};

/* "10.0.0.1:6379", "[::1]:6379", "path:0". */
static void fill_client(RedisModuleClientInfoV1 *c, const struct session *s, int bits)
{
    struct slice peer = slice_cstr(s->peer);
    size_t end = peer.len;
    int64_t port = 0;
    while (end > 0 && peer.ptr[end - 1] != ':') {
        end--;
    }
    if (end == 0 || !num_parse_i64(slice_of(peer.ptr + end, peer.len - end), &port)) {
        port = 0;
    }
    struct slice address = slice_of(peer.ptr, end > 0 ? end - 1 : 0);
    if (address.len > 1 && address.ptr[0] == '[') {
        address = slice_of(address.ptr + 1, address.len - 2);
    }
    *c = (RedisModuleClientInfoV1){
        .version = REDISMODULE_CLIENTINFO_VERSION,
        .flags = (uint64_t)bits |
                 (s->subscriptions > 0 ? (uint64_t)REDISMODULE_CLIENTINFO_FLAG_PUBSUB : 0) |
                 (s->tracking ? (uint64_t)REDISMODULE_CLIENTINFO_FLAG_TRACKING : 0) |
                 (s->in_transaction ? (uint64_t)REDISMODULE_CLIENTINFO_FLAG_MULTI : 0),
        .id = s->id,
        .port = (uint16_t)port,
        .db = (uint16_t)s->db_index};
    size_t len = address.len < sizeof(c->addr) ? address.len : sizeof(c->addr) - 1;
    memcpy(c->addr, address.ptr, len);
}

static int hz(void)
{
    const struct option *option = config_find(SLICE("hz"));
    struct buf text = {0};
    if (option) {
        option_format(option, &text);
    }
    int64_t value = 0;
    bool fine = option && num_parse_i64(buf_slice(&text), &value);
    buf_deinit(&text);
    return fine ? (int)value : 0;
}

/* NULL where the event has none. */
static void *fill(union event_data *d, enum modules_topic topic, const struct modules_facts *f)
{
    switch (topic) {
    case MODULES_ROLE:
        d->role = (RedisModuleReplicationInfoV1){.version = REDISMODULE_REPLICATIONINFO_VERSION,
                                                 .master = f->second,
                                                 .masterhost = (char *)f->name,
                                                 .masterport = f->first,
                                                 .replid1 = (char *)f->ids[0],
                                                 .replid2 = (char *)f->ids[1],
                                                 .repl1_offset = f->offsets[0],
                                                 .repl2_offset = f->offsets[1]};
        return d;
    case MODULES_CLIENT:
        fill_client(&d->client, f->session, f->first);
        return d;
    case MODULES_FLUSH:
        d->flush = (RedisModuleFlushInfoV1){
            .version = REDISMODULE_FLUSHINFO_VERSION, .sync = f->second, .dbnum = f->first};
        return d;
    case MODULES_CRON:
        d->cron = (RedisModuleCronLoopV1){.version = REDISMODULE_CRON_LOOP_VERSION, .hz = f->first};
        return d;
    case MODULES_PROGRESS:
        d->progress = (RedisModuleLoadingProgressV1){
            .version = REDISMODULE_LOADING_PROGRESS_VERSION, .hz = hz(), .progress = f->first};
        return d;
    case MODULES_MODULE:
        d->module = (RedisModuleModuleChangeV1){.version = REDISMODULE_MODULE_CHANGE_VERSION,
                                                .module_name = f->name,
                                                .module_version = f->first};
        return d;
    case MODULES_SWAPDB:
        d->swap = (RedisModuleSwapDbInfoV1){.version = REDISMODULE_SWAPDBINFO_VERSION,
                                            .dbnum_first = f->first,
                                            .dbnum_second = f->second};
        return d;
    case MODULES_CONFIG:
        d->config = (RedisModuleConfigChangeV1){.version = REDISMODULE_CONFIGCHANGE_VERSION,
                                                .num_changes = (uint32_t)f->first,
                                                .config_names = f->names};
        return d;
    default:
        return NULL;
    }
}

static void sweep(void)
{
    for (struct subscription **link = &all; *link;) {
        struct subscription *s = *link;
        if (s->callback) {
            link = &s->next;
        } else {
            *link = s->next;
            mem_free(s);
        }
    }
}

/* A callback may subscribe, and end subscriptions; modules neither come nor go meanwhile. */
static const struct subscription *first_of(unsigned topic)
{
    const struct subscription *s = all;
    telling++;
    while (s && (s->topic != topic || !s->callback)) {
        s = s->next;
    }
    return s;
}

static const struct subscription *next_of(const struct subscription *s)
{
    unsigned topic = s->topic;
    do {
        s = s->next;
    } while (s && (s->topic != topic || !s->callback));
    return s;
}

static void end_telling(void)
{
    if (--telling == 0) {
        sweep();
    }
}

static void report(enum modules_topic topic, unsigned part,
                   const struct modules_facts *facts) NO_THREAD_SAFETY_ANALYSIS
{
    for (const struct subscription *s = first_of(topic); s; s = next_of(s)) {
        union event_data data;
        RedisModuleCtx ctx;
        context_begin(&ctx, s->module, ACCESS_EXCLUSIVE);
        s->callback(&ctx, (RedisModuleEvent){topic, 1}, part, fill(&data, topic, facts));
        context_end(&ctx);
    }
    end_telling();
}

/* A time at which nothing has expired: the key is there for whoever looks, and looking takes
 * nothing away. */
#define BEFORE_ALL_MS 1

/* Of keys, amid the change: its callback may look at keys, by the handle that it gets or by its
 * own, and changes nothing. */
static void on_going(enum event_going how, const struct db *db,
                     struct slice key) NO_THREAD_SAFETY_ANALYSIS
{
    RedisModuleString *name = text_create(key);
    for (const struct subscription *s = first_of(MODULES_KEY); s; s = next_of(s)) {
        RedisModuleCtx ctx;
        context_begin(&ctx, s->module, ACCESS_EXCLUSIVE);
        ctx.db_index = db->id;
        ctx.looks = true;
        ctx.now_ms = BEFORE_ALL_MS;
        RedisModuleKeyInfoV1 info = {.version = REDISMODULE_KEYINFO_VERSION,
                                     .key = key_open(&ctx, name, REDISMODULE_READ)};
        if (info.key) {
            s->callback(&ctx, (RedisModuleEvent){MODULES_KEY, 1}, how, &info);
            key_close(info.key);
        }
        context_end(&ctx);
    }
    end_telling();
    text_release(name);
}

struct late_news {
    struct main_job job; /* first */
    enum modules_topic topic;
    unsigned part;
};

static void run_late(struct main_job *job, bool alive)
{
    struct late_news *late = (struct late_news *)job;
    if (alive) {
        report(late->topic, late->part, NULL);
    }
    mem_free(late);
}

static void report_later(enum modules_topic topic, unsigned part)
{
    struct late_news *late = mem_alloc(sizeof(*late));
    *late = (struct late_news){.job = {.run = run_late}, .topic = topic, .part = part};
    main_loop_post(&late->job);
}

static void run_cron(int64_t wall_ms)
{
    (void)wall_ms;
    if (modules_want(MODULES_CRON)) {
        modules_tell_news(MODULES_CRON, 0, &(struct modules_facts){.first = hz()});
    }
}

static const struct cron_job cron_loop = {.name = "modules", .period_ms = 1, .run = run_cron};

/* ---- for modules ---- */

/* The module's subscription; else where one is to be linked. */
static struct subscription **find(const struct module *m, unsigned topic)
{
    struct subscription **link = &all;
    while (*link && ((*link)->module != m || (*link)->topic != topic)) {
        link = &(*link)->next;
    }
    return link;
}

static void tidy(void)
{
    if (telling == 0) {
        sweep();
    }
    listen();
}

/* That of old servers, which modules of today ask for all the same: nobody has it, and Redis does
 * not refuse it. */
static bool is_of_the_past(uint64_t id)
{
    return id == REDISMODULE_EVENT_REPL_BACKUP;
}

/* One callback a module and event; NULL: no more. */
static int rm_subscribe(RedisModuleCtx *ctx, RedisModuleEvent event,
                        RedisModuleEventCallback callback)
{
    keyspace_assert_exclusive();
    if (event.id >= MODULES_TOPICS || event.dataver > 1) {
        return REDISMODULE_ERR;
    }
    if (parts[event.id] == 0) {
        return is_of_the_past(event.id) ? REDISMODULE_OK : REDISMODULE_ERR;
    }
    struct subscription **link = find(ctx->module, (unsigned)event.id);
    if (!*link && callback) {
        *link = mem_calloc(1, sizeof(**link));
        (*link)->module = ctx->module;
        (*link)->topic = (unsigned)event.id;
    }
    if (*link) {
        (*link)->callback = callback;
    }
    tidy();
    return REDISMODULE_OK;
}

static int rm_is_supported(RedisModuleEvent event, uint64_t part)
{
    return event.id < MODULES_TOPICS && part < parts[event.id];
}

const struct api_function server_event_functions[] = {
    API(SubscribeToServerEvent, rm_subscribe),
    API(IsSubEventSupported, rm_is_supported),
    {NULL, NULL},
};

/* ---- life ---- */

void server_events_withdraw(const struct module *m)
{
    for (struct subscription *s = all; s; s = s->next) {
        if (s->module == m) {
            s->callback = NULL;
        }
    }
    tidy();
}

void server_events_setup(void)
{
    modules_set_reporter(report, report_later);
    cron_register(&cron_loop);
}

void server_events_teardown(void)
{
    modules_set_reporter(NULL, NULL);
    for (struct subscription *s = all; s; s = s->next) {
        s->callback = NULL;
    }
    tidy();
}
