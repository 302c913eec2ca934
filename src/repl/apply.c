/* See apply.h. */
#include "repl/apply.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/num.h"
#include "base/stats.h"
#include "engine/filter.h"
#include "engine/propagation_error.h"
#include "engine/tracking.h"
#include "engine/transaction.h"
#include "keyspace/expire.h"
#include "keyspace/reclaim.h"
#include "repl/backlog.h"
#include "repl/enveloped.h"
#include "repl/follow_priv.h"
#include "repl/replay.h"
#include "resp/parser.h"

#include <assert.h>
#include <string.h>

/* Commands of one hold, and how long it may be once they are slow. */
#define HOLD_COMMANDS 64
#define HOLD_MAX_NS (50 * 1000)
#define ARENA_BYTES ((size_t)64 * 1024)
/* Bytes that are done are let go of when they are so many. */
#define CONSUME_BYTES ((size_t)256 * 1024)

static struct {
    struct session session;
    struct parser parser;
    struct arena arena;
    struct reply reply;
    /* Received: [0, done) is the backlog's already, [done, parsed) was run but belongs to a
     * transaction that goes on. */
    struct buf in;
    size_t done, parsed;
    size_t wanted; /* of `in`, before it is worth looking again */
    bool asked;
} apply;

void apply_setup(void)
{
    session_init_internal(&apply.session);
    parser_init(&apply.parser);
    arena_init(&apply.arena, ARENA_BYTES);
    reply_init(&apply.reply);
    enveloped_reset();
    /* What is gone because of its time is told by the primary. */
    expire_frozen = true;
}

void apply_teardown(void)
{
    enveloped_reset();
    session_deinit(&apply.session);
    parser_deinit(&apply.parser);
    arena_deinit(&apply.arena);
    reply_deinit(&apply.reply);
    buf_deinit(&apply.in);
}

void apply_reset(void)
{
    session_deinit(&apply.session); /* and a transaction that did not end */
    session_init_internal(&apply.session);
    enveloped_reset();
    parser_deinit(&apply.parser);
    parser_init(&apply.parser);
    buf_clear(&apply.in);
    apply.done = apply.parsed = apply.wanted = 0;
    apply.asked = false;
}

void apply_select(int db)
{
    apply.session.db_index = db >= 0 && db < db_count() ? db : 0;
}

int apply_db(void)
{
    return apply.session.db_index;
}

void apply_take(struct slice bytes)
{
    buf_append_slice(&apply.in, bytes);
}

bool apply_asked(void)
{
    bool asked = apply.asked;
    apply.asked = false;
    return asked;
}

/* ---- one command ---- */

static void report(const struct request *request, struct slice error)
{
    struct slice name = request->argv[0];
    log_warning("What the primary did failed here: %.*s: %.*s",
                (int)(name.len < 64 ? name.len : 64), name.ptr,
                (int)(error.len < 256 ? error.len : 256), error.ptr);
    stats_add(STAT_UNEXPECTED_ERRORS, 1);
    if (follow_settings.read_only) { /* else it may be the doing of our own clients */
        propagation_error_note(true, name, error);
    }
}

static void run_request(struct request *request, struct session *session, int64_t now_ms)
    REQUIRES(keyspace_lock)
{
    int64_t wall_us = clock_wall_us();
    if (filter_wanted()) {
        filter_request(session, request, &apply.arena);
    }
    struct call c = {.argc = request->argc,
                     .argv = request->argv,
                     .blobs = request->blobs,
                     .session = session,
                     .reply = &apply.reply,
                     .now_ms = now_ms};
    if (request->argc == 3 && call_arg_is(&c, 0, "replconf") && call_arg_is(&c, 1, "getack")) {
        apply.asked = true;
        return;
    }
    call_prepare(&c, &apply.arena);
    if (c.refusal.ptr && !transaction_spoil(&c, &apply.arena)) {
        report(request, c.refusal);
        return;
    }
    if (transaction_concerns(&c)) {
        transaction_advance(&c, &apply.arena);
        if (c.refusal.ptr) {
            return; /* it is queued */
        }
    }
    reply_begin(&apply.reply, 2);
    replay_run(&c);
    if (c.failed) {
        report(request, apply.reply.last_error);
    }
    reply_end(&apply.reply);
    call_account(&c, 1, 0, wall_us);
    if (c.execution) {
        transaction_release(c.execution);
    }
}

static void run_select(const struct enveloped_message *m) REQUIRES(keyspace_lock)
{
    char number[NUM_I64_MAX_CHARS];
    struct slice words[] = {SLICE("SELECT"), slice_of(number, num_format_i64(number, m->e.db))};
    struct slice *argv = arena_alloc(&apply.arena, sizeof(words) + sizeof(number));
    memcpy(argv, words, sizeof(words));
    argv[1].ptr = memcpy(argv + 2, number, words[1].len); /* it may be queued */
    struct request select = {.argc = 2, .argv = argv};
    run_request(&select, m->session, m->now_ms);
}

/* One whose stream cannot be gone on with: the next link begins anew. */
static enum apply_result give_up(const char *why) REQUIRES(keyspace_lock)
{
    log_warning("The primary's stream can't be followed any further: %s. Everything is fetched "
                "anew",
                why);
    follow_dismiss_replicas();
    backlog_turn_off();
    return APPLY_BROKEN;
}

/* A message of an active replica of KeyDB, of so many bytes. */
static enum apply_result run_enveloped(const struct request *outer, size_t bytes)
    REQUIRES(keyspace_lock)
{
    struct enveloped_message m;
    size_t end = apply.parsed + bytes;
    struct slice behind = buf_from(&apply.in, end);
    enum enveloped_result result = enveloped_take(outer, behind, &apply.session, &apply.arena, &m);
    if (result == ENVELOPED_WAIT) {
        return APPLY_IDLE;
    }
    if (result == ENVELOPED_LOST) {
        return give_up(m.why);
    }
    apply.parsed = end;
    if (result == ENVELOPED_RUN) {
        expire_frozen = false; /* he does not tell what is gone at that time */
        if (m.selects) {
            run_select(&m);
        }
        run_request(&m.e.request, m.session, m.now_ms);
        expire_frozen = true;
        enveloped_ran(&m);
    }
    return APPLY_MORE;
}

/* ---- the stream ---- */

/* The next whole request. */
static enum parser_result next_request(struct request *request, size_t *consumed,
                                       const char **error)
{
    static const struct parser_limits limits = {INT32_MAX, INT64_MAX / 4, true};
    if (apply.in.len < apply.wanted) {
        return PARSER_MORE;
    }
    struct slice rest = buf_from(&apply.in, apply.parsed);
    enum parser_result result =
        parser_next(&apply.parser, &limits, rest, &apply.arena, request, consumed, error);
    if (result == PARSER_BIG) {
        /* The bytes are kept as they came, since they go on as they came: parsed anew when the
         * large argument is here. */
        apply.wanted = apply.in.len + parser_big_missing(&apply.parser);
        parser_deinit(&apply.parser);
        parser_init(&apply.parser);
        return PARSER_MORE;
    }
    apply.wanted = 0;
    return result;
}

/* What was run counts, up to here. */
static void commit(void) REQUIRES(keyspace_lock)
{
    if (!apply.session.in_transaction && !enveloped_is_amid() && apply.parsed > apply.done) {
        backlog_forward(slice_of(apply.in.data + apply.done, apply.parsed - apply.done),
                        apply.session.db_index);
        apply.done = apply.parsed;
    }
}

/* A request of so many bytes, whole. */
static enum apply_result run_one(struct request *request, size_t bytes) REQUIRES(keyspace_lock)
{
    enum apply_result result = APPLY_MORE;
    if (envelope_is(request)) {
        result = run_enveloped(request, bytes);
    } else {
        apply.parsed += bytes;
        run_request(request, &apply.session, clock_wall_us() / 1000);
    }
    parser_release(request);
    return result;
}

static enum apply_result run_some(void) REQUIRES(keyspace_lock)
{
    uint64_t begin = clock_ticks();
    for (int i = 0; i < HOLD_COMMANDS || enveloped_is_amid(); i++) {
        struct request request;
        size_t consumed = 0;
        const char *error = NULL;
        enum apply_result ran = APPLY_MORE;
        enum parser_result result = next_request(&request, &consumed, &error);
        if (result == PARSER_ERROR) {
            log_warning("The primary's stream is broken: %s", error);
            return APPLY_BROKEN;
        }
        if (result == PARSER_MORE) {
            return APPLY_IDLE;
        }
        if (result == PARSER_DONE) {
            ran = run_one(&request, consumed);
        } else {
            apply.parsed += consumed;
        }
        if (ran != APPLY_MORE) {
            return ran;
        }
        commit();
        if (!enveloped_is_amid() && clock_ticks_to_ns(clock_ticks() - begin) > HOLD_MAX_NS) {
            break;
        }
    }
    return APPLY_MORE;
}

static void tidy_up(void)
{
    if (apply.session.transaction) {
        transaction_keep(&apply.session);
    }
    enveloped_keep();
    reply_reset(&apply.reply);
    arena_reset(&apply.arena);
    if (apply.done == apply.in.len || apply.done >= CONSUME_BYTES) {
        size_t done = apply.done;
        buf_consume(&apply.in, done);
        apply.parsed -= done;
        apply.wanted -= apply.wanted < done ? apply.wanted : done;
        apply.done = 0;
    }
}

enum apply_result apply_some(void)
{
    tracking_writer = 0;
    keyspace_lock_exclusive();
    enum apply_result result = run_some();
    enveloped_end_hold();
    keyspace_unlock_exclusive();
    reclaim_run();
    tidy_up();
    return result;
}
