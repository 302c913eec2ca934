/* See model.h. */
#include "model.h"

#include "base/hash.h"
#include "base/num.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static_assert(sizeof(struct model_value) % 8 == 0, "no bytes that nobody sets");

static const char key_names[] = "k0k1k2k3k4k5k6k7k8k9";

struct slice model_key_name(int key)
{
    return slice_of(key_names + (ptrdiff_t)2 * key, 2);
}

static int index_of(struct slice name)
{
    assert(name.len == 2);
    return name.ptr[1] - '0';
}

static struct model_value *value_at(struct model *m, int db, struct slice key)
{
    return &m->values[db][index_of(key)];
}

static int64_t integer(struct slice text)
{
    int64_t number = 0;
    bool good = num_parse_i64(text, &number);
    assert(good);
    (void)good;
    return number;
}

/* The value as one of this type; NULL when it is another's. */
static struct model_value *as_type(struct model_value *v, enum model_type type)
{
    if (v->type == MODEL_NONE) {
        v->type = (uint8_t)type;
    }
    return v->type == type ? v : NULL;
}

static void clear(struct model_value *v)
{
    memset(v, 0, sizeof(*v));
}

static void set_text(struct model_value *v, struct slice text)
{
    memset(v->text, 0, sizeof(v->text));
    memcpy(v->text, text.ptr, text.len);
    v->len = (uint16_t)text.len;
}

/* ---- strings ---- */

static bool run_set(struct model_value *v, int argc, const struct slice *argv)
{
    clear(v);
    v->type = MODEL_STRING;
    set_text(v, argv[2]);
    v->deadline_ms = argc == 5 ? integer(argv[4]) : 0;
    return true;
}

static bool run_append(struct model_value *v, int argc, const struct slice *argv)
{
    (void)argc;
    if ((v->type && v->type != MODEL_STRING) || v->len + argv[2].len > MODEL_TEXT_MAX) {
        return false;
    }
    v->type = MODEL_STRING;
    memcpy(v->text + v->len, argv[2].ptr, argv[2].len);
    v->len = (uint16_t)(v->len + argv[2].len);
    return true;
}

static bool run_incrby(struct model_value *v, int argc, const struct slice *argv)
{
    char text[NUM_I64_MAX_CHARS];
    int64_t number = 0;
    (void)argc;
    if ((v->type && v->type != MODEL_STRING) ||
        (v->type && !num_parse_i64(slice_of(v->text, v->len), &number))) {
        return false;
    }
    v->type = MODEL_STRING;
    set_text(v, slice_of(text, num_format_i64(text, number + integer(argv[2]))));
    return true;
}

/* ---- members ---- */

static bool is_empty(const struct model_value *v)
{
    for (int i = 0; i < MODEL_MEMBERS; i++) {
        if (v->there[i]) {
            return false;
        }
    }
    return v->len == 0;
}

static bool run_hset(struct model_value *v, int argc, const struct slice *argv)
{
    if (!as_type(v, MODEL_HASH)) {
        return false;
    }
    for (int i = 2; i + 1 < argc; i += 2) {
        int f = index_of(argv[i]);
        v->there[f] = 1;
        v->number[f] = (double)integer(argv[i + 1]);
        v->member_deadline_ms[f] = 0;
    }
    return true;
}

static bool run_sadd(struct model_value *v, int argc, const struct slice *argv)
{
    if (!as_type(v, MODEL_SET)) {
        return false;
    }
    for (int i = 2; i < argc; i++) {
        v->there[index_of(argv[i])] = 1;
    }
    return true;
}

static bool run_zadd(struct model_value *v, int argc, const struct slice *argv)
{
    if (!as_type(v, MODEL_ZSET)) {
        return false;
    }
    for (int i = 2; i + 1 < argc; i += 2) {
        int f = index_of(argv[i + 1]);
        v->there[f] = 1;
        v->number[f] = strtod(argv[i].ptr, NULL);
    }
    return true;
}

static bool take_members(struct model_value *v, enum model_type type, int argc,
                         const struct slice *argv)
{
    if (v->type == MODEL_NONE) {
        return true;
    }
    if (v->type != type) {
        return false;
    }
    for (int i = 2; i < argc; i++) {
        int f = index_of(argv[i]);
        v->there[f] = 0;
        v->number[f] = 0;
        v->member_deadline_ms[f] = 0;
    }
    if (is_empty(v)) {
        clear(v);
    }
    return true;
}

static bool run_hdel(struct model_value *v, int argc, const struct slice *argv)
{
    return take_members(v, MODEL_HASH, argc, argv);
}

static bool run_srem(struct model_value *v, int argc, const struct slice *argv)
{
    return take_members(v, MODEL_SET, argc, argv);
}

static bool run_zrem(struct model_value *v, int argc, const struct slice *argv)
{
    return take_members(v, MODEL_ZSET, argc, argv);
}

static bool add_number(struct model_value *v, enum model_type type, int field, double by)
{
    if (!as_type(v, type)) {
        return false;
    }
    v->there[field] = 1;
    v->number[field] += by;
    return true;
}

static bool run_hincrby(struct model_value *v, int argc, const struct slice *argv)
{
    (void)argc;
    return add_number(v, MODEL_HASH, index_of(argv[2]), (double)integer(argv[3]));
}

static bool run_zincrby(struct model_value *v, int argc, const struct slice *argv)
{
    (void)argc;
    return add_number(v, MODEL_ZSET, index_of(argv[3]), strtod(argv[2].ptr, NULL));
}

/* ---- deadlines ---- */

static bool run_pexpirememberat(struct model_value *v, int argc, const struct slice *argv)
{
    (void)argc;
    int f = index_of(argv[2]);
    if (v->there[f]) {
        v->member_deadline_ms[f] = integer(argv[3]);
    }
    return true;
}

static bool run_pexpireat(struct model_value *v, int argc, const struct slice *argv)
{
    (void)argc;
    if (v->type) {
        v->deadline_ms = integer(argv[2]);
    }
    return true;
}

static bool run_persist(struct model_value *v, int argc, const struct slice *argv)
{
    if (argc == 3) {
        v->member_deadline_ms[index_of(argv[2])] = 0;
    } else {
        v->deadline_ms = 0;
    }
    return true;
}

static bool run_expired(struct model_value *v, int argc, const struct slice *argv)
{
    if (argc == 4) {
        int f = index_of(argv[3]);
        if (v->there[f] && v->member_deadline_ms[f] &&
            v->member_deadline_ms[f] == integer(argv[2])) {
            v->there[f] = 0;
            v->number[f] = 0;
            v->member_deadline_ms[f] = 0;
            if (is_empty(v)) {
                clear(v);
            }
        }
    } else if (v->type && v->deadline_ms == integer(argv[2])) {
        clear(v);
    }
    return true;
}

/* ---- lists ---- */

static bool push(struct model_value *v, struct slice element, uint16_t at)
{
    if (v->len == MODEL_LIST_MAX) {
        return false;
    }
    memmove(v->list + at + 1, v->list + at, (size_t)(v->len - at) * sizeof(v->list[0]));
    v->list[at] = (uint16_t)integer(element);
    v->len++;
    return true;
}

static bool run_rpush(struct model_value *v, int argc, const struct slice *argv)
{
    bool good = as_type(v, MODEL_LIST) != NULL;
    for (int i = 2; good && i < argc; i++) {
        good = push(v, argv[i], v->len);
    }
    return good;
}

static bool run_lpush(struct model_value *v, int argc, const struct slice *argv)
{
    bool good = as_type(v, MODEL_LIST) != NULL;
    for (int i = 2; good && i < argc; i++) {
        good = push(v, argv[i], 0);
    }
    return good;
}

/* RPOP key count: as many as there are. */
static bool pop(struct model_value *v, struct slice count, bool head)
{
    int64_t wanted = integer(count);
    if (v->type != MODEL_LIST) {
        return v->type == MODEL_NONE;
    }
    uint16_t popped = wanted < v->len ? (uint16_t)wanted : v->len;
    v->len = (uint16_t)(v->len - popped);
    if (head) {
        memmove(v->list, v->list + popped, v->len * sizeof(v->list[0]));
    }
    memset(v->list + v->len, 0, popped * sizeof(v->list[0]));
    if (v->len == 0) {
        clear(v);
    }
    return true;
}

static bool run_rpop(struct model_value *v, int argc, const struct slice *argv)
{
    (void)argc;
    return pop(v, argv[2], false);
}

static bool run_lpop(struct model_value *v, int argc, const struct slice *argv)
{
    (void)argc;
    return pop(v, argv[2], true);
}

/* LREM key 1|-1|0 element: the nearest to that end, or all. */
static bool run_lrem(struct model_value *v, int argc, const struct slice *argv)
{
    (void)argc;
    int64_t element = integer(argv[3]);
    bool from_head = integer(argv[2]) > 0;
    if (v->type != MODEL_LIST) {
        return v->type == MODEL_NONE;
    }
    for (int n = 0; n < v->len; n++) {
        int i = from_head ? n : v->len - 1 - n;
        if (v->list[i] == element) {
            v->len--;
            memmove(v->list + i, v->list + i + 1, (size_t)(v->len - i) * sizeof(v->list[0]));
            v->list[v->len] = 0;
            if (integer(argv[2]) != 0) {
                break;
            }
            n--; /* from the tail on: the next one is where this one was not */
        }
    }
    if (v->len == 0) {
        clear(v);
    }
    return true;
}

/* LSET key index element, from the head. */
static bool run_lset(struct model_value *v, int argc, const struct slice *argv)
{
    (void)argc;
    int64_t index = integer(argv[2]);
    if (v->type != MODEL_LIST || index < 0 || index >= v->len) {
        return false;
    }
    v->list[index] = (uint16_t)integer(argv[3]);
    return true;
}

/* LINSERT key BEFORE pivot element. */
static bool run_linsert(struct model_value *v, int argc, const struct slice *argv)
{
    (void)argc;
    if (v->type != MODEL_LIST) {
        return v->type == MODEL_NONE;
    }
    for (uint16_t at = 0; at < v->len; at++) {
        if (v->list[at] == integer(argv[3])) {
            return push(v, argv[4], at);
        }
    }
    return true;
}

static bool run_del(struct model_value *v, int argc, const struct slice *argv)
{
    (void)argc;
    (void)argv;
    clear(v);
    return true;
}

/* RESTORE key deadline payload REPLACE ABSTTL. */
static bool run_restore(struct model_value *v, int argc, const struct slice *argv)
{
    (void)argc;
    assert(argv[3].len == sizeof(*v));
    memcpy(v, argv[3].ptr, sizeof(*v));
    v->deadline_ms = integer(argv[2]);
    return true;
}

/* ---- the executor ---- */

static const struct {
    const char *name;
    bool (*run)(struct model_value *v, int argc, const struct slice *argv);
} commands[] = {
    {"set", run_set},
    {"del", run_del},
    {"restore", run_restore},
    {"append", run_append},
    {"incrby", run_incrby},
    {"hset", run_hset},
    {"hdel", run_hdel},
    {"hincrby", run_hincrby},
    {"sadd", run_sadd},
    {"srem", run_srem},
    {"zadd", run_zadd},
    {"zrem", run_zrem},
    {"zincrby", run_zincrby},
    {"pexpirememberat", run_pexpirememberat},
    {"pexpireat", run_pexpireat},
    {"persist", run_persist},
    {"keydb.expired", run_expired},
    {"rpush", run_rpush},
    {"lpush", run_lpush},
    {"lrem", run_lrem},
    {"rpop", run_rpop},
    {"lpop", run_lpop},
    {"lset", run_lset},
    {"linsert", run_linsert},
};

bool model_run(struct model *m, int db, int argc, const struct slice *argv)
{
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (slice_equal_nocase(argv[0], commands[i].name)) {
            struct model_value *v = value_at(m, db, argv[1]);
            struct model_value before = *v;
            bool good = commands[i].run(v, argc, argv);
            m->changed = memcmp(&before, v, sizeof(before)) != 0;
            if (v->type == MODEL_NONE) {
                m->dots[db][index_of(argv[1])] = (struct dot){0, 0};
            }
            return good;
        }
    }
    assert(slice_equal_nocase(argv[0], "publish"));
    return true;
}

static bool executor_run(void *context, int db, int argc, const struct slice *argv)
{
    return model_run(context, db, argc, argv);
}

static bool executor_changed(void *context)
{
    return ((const struct model *)context)->changed;
}

static void executor_flush(void *context, int db, struct dot before, merge_key_fn kept,
                           void *argument)
{
    struct model *m = context;
    for (int d = 0; d < MODEL_DBS; d++) {
        for (int k = 0; k < MODEL_KEYS && (db < 0 || d == db); k++) {
            if (!m->values[d][k].type) {
                continue;
            }
            if (origins_compare(m->origins, m->dots[d][k], before) > 0) {
                kept(d, model_key_name(k), argument);
            } else {
                clear(&m->values[d][k]);
                m->dots[d][k] = (struct dot){0, 0};
            }
        }
    }
}

static bool executor_exists(void *context, int db, struct slice key)
{
    return value_at(context, db, key)->type != MODEL_NONE;
}

static bool executor_has_deadline(void *context, int db, struct slice key)
{
    return value_at(context, db, key)->deadline_ms != 0;
}

static bool executor_has_member_deadline(void *context, int db, struct slice key,
                                         struct slice member)
{
    return value_at(context, db, key)->member_deadline_ms[index_of(member)] != 0;
}

static bool executor_is_integer(void *context, int db, struct slice key, struct slice member)
{
    double score = value_at(context, db, key)->number[index_of(member)];
    return score == (double)(int64_t)score && score < 9e15 && score > -9e15;
}

static struct dot executor_dot(void *context, int db, struct slice key)
{
    return ((struct model *)context)->dots[db][index_of(key)];
}

static void executor_set_dot(void *context, int db, struct slice key, struct dot dot)
{
    ((struct model *)context)->dots[db][index_of(key)] = dot;
}

static void executor_touch(void *context, const struct origins *o, int db, const struct key *key,
                           struct dot dot)
{
    assert(key->hash == hash_slice(key->name));
    if (executor_exists(context, db, key->name) &&
        origins_compare(o, dot, executor_dot(context, db, key->name)) > 0) {
        executor_set_dot(context, db, key->name, dot);
    }
}

static void executor_elements(void *context, int db, struct slice key, bool left,
                              merge_element_fn visit, void *argument)
{
    const struct model_value *v = value_at(context, db, key);
    char text[NUM_I64_MAX_CHARS];
    bool more = v->type == MODEL_LIST;
    for (int n = 0; more && n < v->len; n++) {
        uint16_t element = v->list[left ? n : v->len - 1 - n];
        more = visit(slice_of(text, num_format_i64(text, element)), argument);
    }
}

static bool executor_dump(void *context, int db, struct slice key, int64_t *deadline_ms,
                          struct buf *payload)
{
    struct model_value v = *value_at(context, db, key);
    *deadline_ms = v.deadline_ms;
    v.deadline_ms = 0;
    if (v.type) {
        buf_append(payload, (const char *)&v, sizeof(v));
    }
    return v.type != MODEL_NONE;
}

static bool executor_load(void *context, int db, struct slice key, int64_t deadline_ms,
                          struct slice payload)
{
    struct model_value *v = value_at(context, db, key);
    clear(v);
    executor_set_dot(context, db, key, (struct dot){0, 0});
    if (payload.len > 0) {
        assert(payload.len == sizeof(*v));
        memcpy(v, payload.ptr, sizeof(*v));
        v->deadline_ms = deadline_ms;
    }
    return true;
}

static bool executor_survives(void *context, int db, int argc, const struct slice *argv)
{
    const struct model_value *v = value_at(context, db, argv[1]);
    return v->type != MODEL_NONE && (argc == 3 || v->there[index_of(argv[3])]);
}

/* The bytes are the same for the same content. */
static bool executor_digest(void *context, int db, struct slice key, struct buf *out)
{
    struct buf payload = {0};
    int64_t deadline_ms;
    bool there = executor_dump(context, db, key, &deadline_ms, &payload);
    if (there) {
        uint64_t sum[2] = {hash_slice(buf_slice(&payload)), (uint64_t)deadline_ms};
        buf_append(out, (const char *)sum, sizeof(sum));
    }
    buf_deinit(&payload);
    return there;
}

const struct merge_executor model_executor = {
    .run = executor_run,
    .changed = executor_changed,
    .flush = executor_flush,
    .exists = executor_exists,
    .survives = executor_survives,
    .has_deadline = executor_has_deadline,
    .has_member_deadline = executor_has_member_deadline,
    .is_integer = executor_is_integer,
    .dot = executor_dot,
    .touch = executor_touch,
    .elements = executor_elements,
    .dump = executor_dump,
    .load = executor_load,
    .digest = executor_digest,
};

void model_describe(const struct model_value *v, struct buf *out)
{
    static const char *const names[] = {"none", "string", "hash", "set", "zset", "list"};
    buf_printf(out, "%s", names[v->type]);
    if (v->type == MODEL_STRING) {
        buf_printf(out, " '%.*s'", v->len, v->text);
    }
    for (int i = 0; i < MODEL_MEMBERS; i++) {
        if (v->there[i]) {
            buf_printf(out, " m%d=%g", i, v->number[i]);
        }
        if (v->member_deadline_ms[i]) {
            buf_printf(out, "@%lld", (long long)v->member_deadline_ms[i]);
        }
    }
    for (int i = 0; v->type == MODEL_LIST && i < v->len; i++) {
        buf_printf(out, " %u", v->list[i]);
    }
    if (v->deadline_ms) {
        buf_printf(out, " deadline %lld", (long long)v->deadline_ms);
    }
}
