/* WAITAOF: waits until what was written before is on the disk here, and at so many replicas. The
 * call is parked on commit_event (engine/commit.h), which syncs here raise, and replicas that tell
 * of theirs. It asks for no sync of its own: appendfsync says when there is one. */
#include "base/mem.h"
#include "engine/block.h"
#include "engine/commit.h"
#include "repl/backlog.h"
#include "repl/follow.h"
#include "repl/repl.h"
#include "repl/replica.h"

/* What a call is about. */
struct wait_aof {
    uint64_t position; /* of the log here */
    uint64_t offset;   /* of the stream */
    int64_t local, replicas;
};

static bool is_done(const struct wait_aof *w)
{
    return (w->local == 0 || commit_is_on_disk(w->position)) &&
           replicas_with_safe(w->offset) >= w->replicas;
}

static void tell(struct call *c, const struct wait_aof *w)
{
    reply_array(c->reply, 2);
    reply_i64(c->reply, commit_is_on_disk(w->position));
    reply_i64(c->reply, replicas_with_safe(w->offset));
}

static void is_over(struct call *c)
{
    tell(c, call_block_state(c));
}

/* False, with the error replied: there is no log to wait for. */
static bool check_log(struct call *c, const struct wait_aof *w)
{
    if (w->local > 0 && atomic_load(&commit.log) == COMMIT_NO_LOG) {
        reply_error(c->reply, "ERR WAITAOF cannot be used when numlocal is set but appendonly is "
                              "disabled.");
        return false;
    }
    return true;
}

static void wait_again(struct call *c) REQUIRES(keyspace_lock);
static void wait_again(struct call *c)
{
    const struct wait_aof *w = call_block_state(c);
    commit_watch();
    if (!check_log(c, w)) {
        return;
    }
    if (is_done(w)) {
        tell(c, w);
    } else {
        call_block(c, &(struct block){.event = commit_event, .on_timeout = is_over});
    }
}

static bool parse(struct call *c, struct wait_aof *w, int64_t *timeout_ms)
{
    if (!call_arg_i64(c, 1, &w->local)) {
        return false;
    }
    if (w->local < 0 || w->local > 1) {
        reply_error(c->reply, "ERR value is out of range, value must between 0 and 1");
        return false;
    }
    return call_arg_range(c, 2, 0, INT64_MAX, &w->replicas,
                          "ERR value is out of range, must be positive") &&
           call_arg_timeout_ms(c, 3, timeout_ms);
}

static void wait_aof_command(struct call *c)
{
    struct wait_aof w = {.position = commit_appended(), .offset = backlog_offset()};
    int64_t timeout_ms;
    keyspace_assert_exclusive();
    if (c->retry) {
        wait_again(c);
        return;
    }
    if (!parse(c, &w, &timeout_ms)) {
        return;
    }
    if (follow_is_replica()) {
        reply_error(c->reply, "ERR WAITAOF cannot be used with replica instances. Please also note "
                              "that writes to replicas are just local and are not propagated.");
        return;
    }
    if (!check_log(c, &w)) {
        return;
    }
    commit_watch();
    if (is_done(&w) || !call_may_block(c)) {
        tell(c, &w);
        return;
    }
    if (backlog_is_on() && replicas_with_safe(w.offset) < w.replicas) {
        backlog_tell(SLICE("*3\r\n$8\r\nREPLCONF\r\n$6\r\nGETACK\r\n$1\r\n*\r\n"));
    }
    struct wait_aof *kept = mem_alloc(sizeof(*kept));
    *kept = w;
    call_block(c, &(struct block){.event = commit_event,
                                  .timeout_ms = timeout_ms,
                                  .on_timeout = is_over,
                                  .state = kept});
}

const struct command_row wait_aof_commands[] = {
    {.name = "waitaof",
     .run = wait_aof_command,
     .arity = 4,
     .flags = CMD_BLOCKING | CMD_EXCLUSIVE,
     .categories = CATEGORY_CONNECTION,
     .tips = "request_policy:all_shards,response_policy:agg_min",
     .group = "generic",
     .since = "7.2.0",
     .summary = "Waits until what was written before is on the disk, here and at so many replicas.",
     .complexity = "O(1)",
     .args = "numlocal numreplicas timeout"},
    {.name = NULL},
};
