/* HyperLogLog: strings in the format of ds/hll.h.
 *
 * PFCOUNT keeps the cardinality that it has computed in the value, as Redis does, which makes the
 * next one cheap, and is a change of the value that logs and replicas are told (as PFCOUNT). The
 * computing is done in shared mode, beside other reads; only keeping it needs a hold of its own. */
#include "commands/commands.h"
#include "commands/reads_priv.h"
#include "commands/string_bytes.h"

#include "base/mem.h"
#include "base/rand.h"
#include "ds/hll.h"
#include "engine/identity.h"
#include "engine/propagate.h"
#include "value/string.h"

#include <math.h>

static int64_t sparse_max_bytes;

const struct option hyperloglog_options[] = {
    {.name = "hll-sparse-max-bytes",
     .type = OPTION_MEMORY,
     .target = &sparse_max_bytes,
     .initial = "3000",
     .min = 0,
     .max = INT64_MAX},
    {.name = NULL},
};

static void reply_corrupt(struct call *c)
{
    reply_error(c->reply, "INVALIDOBJ Corrupted HLL object detected");
}

/* True when the value is a HyperLogLog by its head; replies the error otherwise. */
static bool check_head(struct call *c, struct slice value)
{
    if (!hll_is_valid_head(value)) {
        reply_error(c->reply, "WRONGTYPE Key is not a valid HyperLogLog string value.");
        return false;
    }
    return true;
}

/* The bytes of a key that is there, checked as above; false with the error replied. */
static bool view_value(struct call *c, const struct entry *e, char *scratch, struct slice *value)
    REQUIRES_SHARED(keyspace_lock)
{
    if (entry_type(e) != VALUE_STRING) {
        reply_wrong_type(c->reply);
        return false;
    }
    *value = string_view(e, scratch);
    return check_head(c, *value);
}

/* Makes the content of `value` that of the opened key; false with an error replied. */
static bool store_value(struct call *c, struct keyref *ref, const struct buf *value)
    REQUIRES(keyspace_lock)
{
    uint8_t *bytes = string_bytes_open(c, ref, value->len);
    if (bytes) {
        memcpy(bytes, value->data, value->len);
    }
    return bytes != NULL;
}

/* ---- PFADD ---- */

/* Adds to a dense value where it stands; `*changes` is the number of registers that changed. False
 * with an error replied. A value that would not change is not touched: it may be shared. */
static bool add_in_place(struct call *c, struct keyref *ref, struct slice value, uint64_t *changes)
    REQUIRES(keyspace_lock)
{
    int arg = 2;
    while (arg < c->argc && !hll_dense_would_add(value, c->argv[arg])) {
        arg++;
    }
    if (arg == c->argc) {
        return true;
    }
    uint8_t *bytes = string_bytes_open(c, ref, value.len);
    if (!bytes) {
        return false;
    }
    for (; arg < c->argc; arg++) {
        *changes += hll_dense_add(bytes, c->argv[arg]);
    }
    hll_invalidate(bytes);
    return true;
}

/* Adds to a copy of the value (empty: a new one), which is stored when it has changed. */
static bool add_to_copy(struct call *c, struct keyref *ref, struct slice value, uint64_t *changes)
    REQUIRES(keyspace_lock)
{
    struct buf copy = {0};
    bool stored = true;
    if (ref->entry) {
        buf_append_slice(&copy, value);
    } else {
        hll_init(&copy);
        *changes = 1;
    }
    for (int arg = 2; arg < c->argc; arg++) {
        enum hll_result result = hll_add(&copy, c->argv[arg], (size_t)sparse_max_bytes);
        assert(result != HLL_CORRUPT);
        *changes += result == HLL_CHANGED;
    }
    if (*changes > 0) {
        hll_invalidate((uint8_t *)copy.data);
        stored = store_value(c, ref, &copy);
    }
    buf_deinit(&copy);
    return stored;
}

WRITE_COMMAND(pfadd_command)
{
    struct keyref ref;
    struct slice value = SLICE("");
    char scratch[STRING_VIEW_BYTES];
    uint64_t changes = 0;
    call_open(c, 0, &ref);
    if (ref.entry && !view_value(c, ref.entry, scratch, &value)) {
        return;
    }
    if (ref.entry && !hll_check(value)) {
        reply_corrupt(c);
        return;
    }
    bool in_place = ref.entry && hll_encoding_of(value) == HLL_DENSE;
    if (!(in_place ? add_in_place(c, &ref, value, &changes)
                   : add_to_copy(c, &ref, value, &changes))) {
        return;
    }
    if (changes > 0) {
        call_changed(c, &ref, EVENT_STRING, "pfadd");
        c->dirty += changes - 1;
    }
    reply_i64(c->reply, changes > 0);
}

/* ---- PFCOUNT ---- */

/* What the thread has counted last, in shared mode, and of which bytes: it is kept if they are
 * still the same under the exclusive hold that follows. State: thread-owned. */
static _Thread_local struct {
    uint64_t cardinality;
    size_t len; /* 0: nothing */
    char bytes[HLL_DENSE_BYTES];
} counted;

/* Whether a count is to be kept. Not at a replica, whose values are its primary's (that tells it to
 * count as well), nor among peers, where a count orders nothing. */
static bool may_keep(const struct call *c)
{
    return !propagate_peers && (c->session->internal || !identity_is_replica());
}

/* Keeps a count in the value. */
static void keep_count(struct call *c, size_t len, uint64_t cardinality) REQUIRES(keyspace_lock)
{
    struct keyref ref;
    call_open(c, 0, &ref);
    uint8_t *bytes = string_bytes_open(c, &ref, len);
    if (bytes) {
        hll_keep(bytes, cardinality);
        c->dirty++;
        event_key_changed(ref.db, ref.key.name);
        if (propagate_on) {
            propagate_instead(c, c->argc, c->argv);
        }
    }
}

/* Counts a value that has no valid count. In shared mode what is counted is noted, and the call
 * wants to come back and keep it. False when the value is corrupt. */
static bool count_afresh(struct call *c, struct slice value, uint64_t *cardinality)
    REQUIRES_SHARED(keyspace_lock)
{
    bool noted = counted.len == value.len && memcmp(counted.bytes, value.ptr, value.len) == 0;
    if (noted) {
        *cardinality = counted.cardinality;
    } else if (!hll_estimate(value, cardinality)) {
        return false;
    }
    counted.len = 0;
    if (c->held == ACCESS_SHARED && may_keep(c) && value.len <= sizeof(counted.bytes)) {
        memcpy(counted.bytes, value.ptr, value.len);
        counted.len = value.len;
        counted.cardinality = *cardinality;
        call_need_exclusive(c);
    }
    return true;
}

static void count_one(struct call *c) REQUIRES_SHARED(keyspace_lock) NO_THREAD_SAFETY_ANALYSIS
{
    char scratch[STRING_VIEW_BYTES];
    struct slice value;
    uint64_t cardinality = 0;
    const struct entry *e = call_read(c, 0);
    if (e && !view_value(c, e, scratch, &value)) {
        return;
    }
    if (e && !hll_cached(value, &cardinality)) {
        if (!count_afresh(c, value, &cardinality)) {
            reply_corrupt(c);
            return;
        }
        if (c->held == ACCESS_EXCLUSIVE && may_keep(c)) {
            keyspace_assert_exclusive();
            keep_count(c, value.len, cardinality);
        }
    }
    reply_i64(c->reply, (int64_t)cardinality);
}

static void count_union(struct call *c) REQUIRES_SHARED(keyspace_lock)
{
    struct hll_registers registers = {{0}};
    char scratch[STRING_VIEW_BYTES];
    for (int k = 0; k < c->key_count; k++) {
        const struct entry *e = call_read(c, k);
        struct slice value;
        if (!e) {
            continue;
        }
        if (!view_value(c, e, scratch, &value)) {
            return;
        }
        if (!hll_merge(&registers, value)) {
            reply_corrupt(c);
            return;
        }
    }
    reply_i64(c->reply, (int64_t)hll_estimate_registers(&registers));
}

READ_COMMAND(pfcount_command)
{
    if (c->key_count == 1) {
        count_one(c);
    } else {
        count_union(c);
    }
}

/* ---- PFMERGE ---- */

/* Merges all keys, the destination among them; false with an error replied. *dense: one of them
 * is. */
static bool merge_keys(struct call *c, struct hll_registers *registers, bool *dense)
    REQUIRES(keyspace_lock)
{
    char scratch[STRING_VIEW_BYTES];
    *dense = false;
    for (int k = 0; k < c->key_count; k++) {
        struct keyref ref;
        struct slice value;
        call_open(c, k, &ref);
        reads_count(&ref);
        if (!ref.entry) {
            continue;
        }
        if (!view_value(c, ref.entry, scratch, &value)) {
            return false;
        }
        *dense = *dense || hll_encoding_of(value) == HLL_DENSE;
        if (!hll_merge(registers, value)) {
            reply_corrupt(c);
            return false;
        }
    }
    return true;
}

/* The destination's value with the registers raised; it was found not to be corrupt. */
static void raise_destination(struct keyref *ref, const struct hll_registers *registers, bool dense,
                              struct buf *value) REQUIRES(keyspace_lock)
{
    char scratch[STRING_VIEW_BYTES];
    if (ref->entry) {
        buf_append_slice(value, string_view(ref->entry, scratch));
    } else {
        hll_init(value);
    }
    if (dense) {
        enum hll_result result = hll_make_dense(value);
        assert(result != HLL_CORRUPT);
        (void)result;
    }
    enum hll_result result = hll_raise(value, registers, (size_t)sparse_max_bytes);
    assert(result != HLL_CORRUPT);
    (void)result;
    hll_invalidate((uint8_t *)value->data);
}

WRITE_COMMAND(pfmerge_command)
{
    struct hll_registers registers = {{0}};
    struct keyref ref;
    struct buf value = {0};
    bool dense;
    if (!merge_keys(c, &registers, &dense)) {
        return;
    }
    call_open(c, 0, &ref);
    raise_destination(&ref, &registers, dense, &value);
    if (store_value(c, &ref, &value)) {
        call_changed(c, &ref, EVENT_STRING, "pfadd");
        propagate_stored(c, 0);
        reply_ok(c->reply);
    }
    buf_deinit(&value);
}

/* ---- PFDEBUG ---- */

/* Makes the opened value dense. *was_sparse tells whether it was sparse; false with an error
 * replied. */
static bool make_dense(struct call *c, struct keyref *ref, struct slice value, bool *was_sparse)
    REQUIRES(keyspace_lock)
{
    struct buf copy = {0};
    bool done = true;
    *was_sparse = hll_encoding_of(value) == HLL_SPARSE;
    if (!*was_sparse) {
        return true;
    }
    buf_append_slice(&copy, value);
    if (hll_make_dense(&copy) == HLL_CORRUPT) {
        reply_corrupt(c);
        done = false;
    } else {
        done = store_value(c, ref, &copy);
    }
    if (done) {
        /* The bytes are others, what they mean is the same: no event, as in Redis. */
        event_key_changed(ref->db, ref->key.name);
        c->dirty++;
        propagate_stored(c, 0);
    }
    buf_deinit(&copy);
    return done;
}

static void debug_getreg(struct call *c, struct keyref *ref, struct slice value)
    REQUIRES(keyspace_lock)
{
    struct hll_registers registers = {{0}};
    bool was_sparse;
    /* Merged before it is made dense, after which `value` is not there any more. */
    if (!hll_merge(&registers, value)) {
        reply_corrupt(c);
        return;
    }
    if (!make_dense(c, ref, value, &was_sparse)) {
        return;
    }
    reply_array(c->reply, HLL_REGISTERS);
    for (int i = 0; i < HLL_REGISTERS; i++) {
        reply_i64(c->reply, registers.at[i]);
    }
}

static void debug_decode(struct call *c, struct keyref *ref, struct slice value)
    REQUIRES(keyspace_lock)
{
    (void)ref;
    if (hll_encoding_of(value) != HLL_SPARSE) {
        reply_error(c->reply, "ERR HLL encoding is not sparse");
        return;
    }
    struct buf text = {0};
    if (hll_describe(value, &text)) {
        reply_bulk(c->reply, buf_slice(&text));
    } else {
        reply_corrupt(c);
    }
    buf_deinit(&text);
}

static void debug_encoding(struct call *c, struct keyref *ref, struct slice value)
    REQUIRES(keyspace_lock)
{
    (void)ref;
    reply_status(c->reply, hll_encoding_of(value) == HLL_SPARSE ? "sparse" : "dense");
}

static void debug_todense(struct call *c, struct keyref *ref, struct slice value)
    REQUIRES(keyspace_lock)
{
    bool was_sparse;
    if (make_dense(c, ref, value, &was_sparse)) {
        reply_i64(c->reply, was_sparse);
    }
}

static const struct pfdebug_row {
    const char *word;
    void (*run)(struct call *c, struct keyref *ref, struct slice value);
} pfdebug_rows[] = {
    {"getreg", debug_getreg},
    {"decode", debug_decode},
    {"encoding", debug_encoding},
    {"todense", debug_todense},
};

WRITE_COMMAND(pfdebug_command)
{
    struct keyref ref;
    struct slice value;
    char scratch[STRING_VIEW_BYTES];
    call_open(c, 0, &ref);
    if (!ref.entry) {
        reply_error(c->reply, "ERR The specified key does not exist");
        return;
    }
    if (!view_value(c, ref.entry, scratch, &value)) {
        return;
    }
    for (size_t i = 0; i < sizeof(pfdebug_rows) / sizeof(pfdebug_rows[0]); i++) {
        if (call_arg_is(c, 1, pfdebug_rows[i].word)) {
            pfdebug_rows[i].run(c, &ref, value);
            return;
        }
    }
    reply_errorf(c->reply, "ERR Unknown PFDEBUG subcommand '%.*s'",
                 (int)(c->argv[1].len < 128 ? c->argv[1].len : 128), c->argv[1].ptr);
}

/* ---- PFSELFTEST ---- */

/* Elements that the test adds to one value. */
#define SELFTEST_ELEMENTS 100000
/* The estimate's standard error is 1.04 / sqrt(16384), 0.81 %; seven of it are never met by chance.
 * Of few elements, pairs that share a register decide: 8 of 512 on average, and never 16 more. */
#define SELFTEST_ERROR_MAX 0.057
#define SELFTEST_ERROR_FEW 16

/* Adds to a sparse and to a dense value; the first way in which they are wrong, NULL when none. */
static const char *selftest_run(struct buf *sparse, struct buf *dense)
{
    uint64_t seed = rand_u64();
    hll_init(sparse);
    hll_init(dense);
    if (hll_make_dense(dense) != HLL_CHANGED) {
        return "an empty value does not become dense";
    }
    for (uint64_t i = 1; i <= SELFTEST_ELEMENTS; i++) {
        uint64_t number = seed + i;
        struct slice element = slice_of((const char *)&number, sizeof(number));
        uint64_t one, other;
        enum hll_result result = hll_add(sparse, element, (size_t)sparse_max_bytes);
        if ((result == HLL_CHANGED) != hll_dense_add((uint8_t *)dense->data, element)) {
            return "sparse and dense registers differ";
        }
        if ((i & (i - 1)) != 0 && i != SELFTEST_ELEMENTS) {
            continue;
        }
        if (!hll_estimate(buf_slice(sparse), &one) || !hll_estimate(buf_slice(dense), &other) ||
            one != other) {
            return "sparse and dense estimates differ";
        }
        if (fabs((double)one - (double)i) >
            fmax((double)i * SELFTEST_ERROR_MAX, SELFTEST_ERROR_FEW)) {
            return "the estimate is too far off";
        }
    }
    return NULL;
}

PLAIN_COMMAND(pfselftest_command)
{
    struct buf sparse = {0}, dense = {0};
    const char *fault = selftest_run(&sparse, &dense);
    if (fault) {
        reply_errorf(c->reply, "TESTFAILED %s", fault);
    } else {
        reply_ok(c->reply);
    }
    buf_deinit(&sparse);
    buf_deinit(&dense);
}

const struct command_row hyperloglog_commands[] = {
    {.name = "pfadd",
     .run = pfadd_command,
     .arity = -2,
     .flags = CMD_WRITE | CMD_DENYOOM | CMD_FAST,
     .categories = CATEGORY_HYPERLOGLOG,
     .keys = "i1/r0,1,0/RW+INSERT",
     .group = "hyperloglog",
     .since = "2.8.9",
     .summary = "Adds elements to a HyperLogLog; a missing key is created.",
     .complexity = "O(1) for each element",
     .args = "key [element [element ...]]"},
    {.name = "pfcount",
     .run = pfcount_command,
     .arity = -2,
     .flags = CMD_READONLY | CMD_MAY_REPLICATE | CMD_SLOW,
     .categories = CATEGORY_HYPERLOGLOG,
     .keys = "i1/r-1,1,0/RW+ACCESS",
     .group = "hyperloglog",
     .since = "2.8.9",
     .summary = "Estimates how many different elements were added to one HyperLogLog or to "
                "several together.",
     .complexity = "O(N), N being the number of keys; each takes some microseconds",
     .args = "key [key ...]"},
    {.name = "pfdebug",
     .run = pfdebug_command,
     .arity = 3,
     .flags = CMD_WRITE | CMD_DENYOOM | CMD_ADMIN,
     .categories = CATEGORY_HYPERLOGLOG,
     .keys = "i2/r0,1,0/RW+ACCESS",
     .group = "hyperloglog",
     .since = "2.8.9",
     .summary = "Shows the inside of a HyperLogLog: its registers (GETREG), its sparse form "
                "(DECODE), its encoding (ENCODING); TODENSE makes it dense.",
     .complexity = "O(1)",
     .args = "subcommand key"},
    {.name = "pfmerge",
     .run = pfmerge_command,
     .arity = -2,
     .flags = CMD_WRITE | CMD_DENYOOM | CMD_SLOW,
     .categories = CATEGORY_HYPERLOGLOG,
     .keys = "i1/r0,1,0/RW+ACCESS+INSERT; i2/r-1,1,0/RO+ACCESS",
     .group = "hyperloglog",
     .since = "2.8.9",
     .summary = "Merges HyperLogLogs into the first one.",
     .complexity = "O(N), N being the number of keys",
     .args = "destkey [sourcekey [sourcekey ...]]"},
    {.name = "pfselftest",
     .run = pfselftest_command,
     .arity = 1,
     .flags = CMD_ADMIN,
     .categories = CATEGORY_HYPERLOGLOG,
     .group = "hyperloglog",
     .since = "2.8.9",
     .summary = "Tests the HyperLogLog code of this server.",
     .complexity = "O(1), some milliseconds"},
    {.name = NULL},
};
