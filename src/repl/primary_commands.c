/* PSYNC, SYNC, REPLCONF, ROLE, WAIT. */
#include "base/log.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/option.h"
#include "base/stats.h"
#include "engine/block.h"
#include "engine/busy.h"
#include "engine/commit.h"
#include "net/client.h"
#include "persist/rdb_file.h"
#include "repl/peers.h"
#include "repl/backlog.h"
#include "repl/enveloped.h"
#include "repl/failover.h"
#include "repl/follow.h"
#include "repl/follow_link.h"
#include "repl/repl.h"
#include "repl/replica.h"
#include "repl/sync.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- REPLCONF ---- */

/* What WAIT waits for. */
static const struct slice acknowledged = {"\0replica:acknowledged", 21};

struct told {
    struct call *call;
    struct replica *replica;
    int at; /* the value's argument */
};

/* False: the error is replied. */
static bool told_port(struct told *t)
{
    return call_arg_range(t->call, t->at, 0, 65535, &t->replica->port, NULL);
}

static bool told_ip(struct told *t)
{
    struct slice ip = t->call->argv[t->at];
    if (ip.len >= REPLICA_IP_MAX || memchr(ip.ptr, '\0', ip.len) || memchr(ip.ptr, '\n', ip.len) ||
        memchr(ip.ptr, '\r', ip.len)) {
        reply_error(t->call->reply, "ERR REPLCONF ip-address provided by replica instance is not "
                                    "an address");
        return false;
    }
    memcpy(t->replica->ip, ip.ptr, ip.len);
    t->replica->ip[ip.len] = '\0';
    return true;
}

/* Unknown capabilities are those of the future. */
static bool told_capability(struct told *t)
{
    t->replica->knows_eof |= call_arg_is(t->call, t->at, "eof");
    t->replica->knows_psync2 |= call_arg_is(t->call, t->at, "psync2");
    t->replica->knows_envelopes |= call_arg_is(t->call, t->at, FOLLOW_KNOWS_ENVELOPES);
    return true;
}

static bool told_rdb_only(struct told *t)
{
    int64_t only;
    if (!call_arg_i64(t->call, t->at, &only)) {
        return false;
    }
    if (only != 0 && only != 1) {
        reply_error(t->call->reply, "ERR value is out of range, value must between 0 and 1");
        return false;
    }
    t->replica->rdb_only = only == 1;
    return true;
}

/* Parts of the data set, and no others. As in Redis what stands before a fault counts. */
static bool told_rdb_filter(struct told *t)
{
    struct slice parts[OPTION_MAX_WORDS];
    struct buf scratch = {0};
    int count = option_split_line(t->call->argv[t->at], parts, OPTION_MAX_WORDS, &scratch);
    if (count < 0) {
        reply_error(t->call->reply, "ERR Missing rdb-filter-only values");
    } else {
        t->replica->left_out = RDB_FILE_KEYS | RDB_FILE_FUNCTIONS;
    }
    bool fine = count >= 0;
    for (int i = 0; i < count && fine; i++) {
        fine = slice_equal_nocase(parts[i], "functions");
        if (fine) {
            t->replica->left_out &= ~RDB_FILE_FUNCTIONS;
        } else {
            reply_errorf(t->call->reply, "ERR Unsupported rdb-filter-only option: %.*s",
                         (int)(parts[i].len < 1024 ? parts[i].len : 1024), parts[i].ptr);
        }
    }
    buf_deinit(&scratch);
    return fine;
}

static const struct {
    const char *word;
    bool (*take)(struct told *t);
} replconf_words[] = {
    {"listening-port", told_port},
    {"ip-address", told_ip},
    {"capa", told_capability},
    {"rdb-only", told_rdb_only},
    {"rdb-filter-only", told_rdb_filter},
};

/* A replica says how much of the stream it has: no reply. */
static void take_acknowledgement(struct call *c)
{
    struct replica *r = replica_of(client_of(c->session));
    uint64_t offset;
    keyspace_assert_exclusive();
    if (r && c->argc > 2 && num_parse_u64(c->argv[2], &offset) &&
        atomic_load(&r->state) > REPLICA_SYNCING) {
        replica_acknowledge(r, offset);
        call_event(acknowledged);
        if (c->argc > 4 && call_arg_is(c, 3, "fack") && num_parse_u64(c->argv[4], &offset) &&
            offset < UINT64_MAX) {
            replica_acknowledge_safe(r, offset);
            call_event(commit_event);
        }
    }
}

/* Under the keyspace lock in exclusive mode: who is fed tells what it has. */
static void replconf_hear(void *call)
{
    struct call *c = call;
    keyspace_assert_exclusive();
    if (call_arg_is(c, 1, "pull-ack")) {
        if (peers->hear(c)) {
            call_event(acknowledged);
        }
    } else {
        take_acknowledgement(c);
    }
}

/* Beside a script that takes long with nothing held. */
static void replconf_command(struct call *c)
{
    struct client *client = client_of(c->session);
    bool pulls = client && peers->is_peer(client);
    bool is_ack = c->argc > 1 && call_arg_is(c, 1, "ack") && !pulls && c->argc % 2 != 0;
    if (client && (is_ack || (pulls && c->argc > 1 && call_arg_is(c, 1, "pull-ack")))) {
        if (c->held == ACCESS_EXCLUSIVE) {
            replconf_hear(c);
        } else {
            busy_run_within(replconf_hear, c);
        }
        return;
    }
    if (c->argc % 2 == 0) {
        reply_syntax_error(c->reply);
        return;
    }
    bool is_late =
        client && client->feed && atomic_load(&replica_of(client)->state) != REPLICA_GREETING;
    if (!client || pulls || is_ack || is_late) {
        return;
    }
    struct told told = {.call = c, .replica = replica_greet(client)};
    for (int i = 1; i < c->argc; i += 2) {
        size_t w = 0, words = sizeof(replconf_words) / sizeof(replconf_words[0]);
        while (w < words && !call_arg_is(c, i, replconf_words[w].word)) {
            w++;
        }
        told.at = i + 1;
        if (w == words) {
            struct slice word = c->argv[i];
            reply_errorf(c->reply, "ERR Unrecognized REPLCONF option: %.*s",
                         (int)(word.len < 128 ? word.len : 128), word.ptr);
            return;
        }
        if (!replconf_words[w].take(&told)) {
            return;
        }
    }
    reply_ok(c->reply);
}

/* ---- PSYNC, SYNC ---- */

/* Goes on where the replica's link was cut, if that is kept. */
static bool resume(struct replica *r, struct slice id, struct slice wanted)
{
    int64_t next;
    char line[REPL_ID_LEN + 16] = "+CONTINUE\r\n";
    keyspace_assert_exclusive();
    if (slice_equal(id, SLICE("?")) || r->rdb_only) {
        return false;
    }
    enum backlog_resume how = BACKLOG_OUT_OF_RANGE;
    if (num_parse_i64(wanted, &next) && next >= 1) {
        how = backlog_resume(id, (uint64_t)next - 1, &r->stream, &r->disk);
    }
    if (how != BACKLOG_RESUMED && how != BACKLOG_RESUMED_ON_DISK) {
        stats_add(STAT_SYNC_PARTIAL_REFUSED, 1);
        log_notice("Replica %s:%lld asks for what is not kept: it is sent everything", r->ip,
                   (long long)r->port);
        return false;
    }
    stats_add(STAT_SYNC_PARTIAL_OK, 1);
    log_notice("Replica %s:%lld goes on at offset %lld%s", r->ip, (long long)r->port,
               (long long)next, how == BACKLOG_RESUMED ? "" : ", from the disk");
    atomic_store(&r->on_disk, how == BACKLOG_RESUMED_ON_DISK);
    if (r->knows_psync2) {
        snprintf(line, sizeof(line), "+CONTINUE %s\r\n", backlog_id());
    }
    replica_go_on(r, line);
    return true;
}

/* The replica waits for a transfer. */
static void start_anew(struct replica *r)
{
    keyspace_assert_exclusive();
    stats_add(STAT_SYNC_FULL, 1);
    backlog_turn_on();
    log_notice("Replica %s:%lld is to be sent everything", r->ip, (long long)r->port);
    replica_wait(r);
}

/* A replica may come while the world stands. */
static struct replica *come(struct call *c)
{
    struct client *client = client_of(c->session);
    if (!client || peers->is_peer(client)) {
        reply_error(c->reply, "ERR only connections can be replicas");
        return NULL;
    }
    if (failover_is_running()) {
        reply_error(c->reply, "NOMASTERLINK Can't SYNC while failing over");
        return NULL;
    }
    if (follow_is_replica() && !follow_is_connected()) {
        reply_error(c->reply, "NOMASTERLINK Can't SYNC while not connected with my master");
        return NULL;
    }
    struct replica *r = replica_greet(client);
    if (atomic_load(&r->state) != REPLICA_GREETING) {
        return NULL;
    }
    if (follow_is_replica() && enveloped_is_on() && !r->knows_envelopes && !r->rdb_only) {
        reply_error(c->reply, "NOMASTERLINK Can't SYNC while an active replica of KeyDB is "
                              "followed, whose stream (RREPLAY) this replica does not know");
        return NULL;
    }
    if (r->left_out && !r->knows_eof) {
        reply_error(c->reply, "ERR Filtered replica requires EOF capability");
        return NULL;
    }
    return r;
}

/* PSYNC id offset FAILOVER: our primary wants us to be it. False: the error is replied. */
static bool take_over(struct call *c)
{
    gil_assert_world();
    log_warning("Asked to take over history %.*s", (int)(c->argv[1].len < 64 ? c->argv[1].len : 64),
                c->argv[1].ptr);
    if (!follow_is_replica()) {
        reply_error(c->reply, "ERR PSYNC FAILOVER can't be sent to a master.");
        return false;
    }
    keyspace_lock_shared();
    bool ours = slice_equal_nocase(c->argv[1], backlog_id());
    keyspace_unlock_shared();
    if (!ours) {
        reply_error(c->reply, "ERR PSYNC FAILOVER replid must match my replid.");
        return false;
    }
    follow_nobody();
    return true;
}

WORLD_COMMAND(psync_command)
{
    if (c->argc > 4 || (c->argc == 4 && !call_arg_is(c, 3, "failover"))) {
        reply_syntax_error(c->reply);
        return;
    }
    struct client *client = client_of(c->session);
    if (client && (client->flags & CLIENT_FED || (c->argc == 4 && !take_over(c)))) {
        return;
    }
    struct replica *r = come(c);
    if (!r) {
        return;
    }
    keyspace_lock_exclusive();
    if (!resume(r, c->argv[1], c->argv[2])) {
        start_anew(r);
    }
    keyspace_unlock_exclusive();
}

WORLD_COMMAND(sync_command)
{
    struct replica *r = come(c);
    if (!r) {
        return;
    }
    r->is_old = true;
    keyspace_lock_exclusive();
    start_anew(r);
    keyspace_unlock_exclusive();
}

/* ---- REPLICAOF ---- */

/* REPLICAOF REMOVE host port: with one primary that is as NO ONE. */
static void remove_primary(struct call *c) REQUIRES(gil);
static void remove_primary(struct call *c)
{
    int64_t port;
    if (!call_arg_is(c, 1, "remove")) {
        reply_syntax_error(c->reply);
    } else if (!num_parse_i64(c->argv[3], &port) || !follow_is_wanted() || port != follow_port() ||
               !slice_equal(c->argv[2], slice_cstr(follow_host()))) {
        reply_error(c->reply, "ERR Master not found");
    } else {
        follow_nobody();
        reply_ok(c->reply);
    }
}

WORLD_COMMAND(replicaof_command)
{
    int64_t port;
    gil_assert_world();
    if (failover_is_running()) {
        reply_error(c->reply, "ERR REPLICAOF not allowed while failing over.");
        return;
    }
    if (c->argc > 4) {
        reply_syntax_error(c->reply);
        return;
    }
    if (peers->on()) {
        peers->replicaof(c);
        return;
    }
    if (c->argc == 3 && call_arg_is(c, 1, "no") && call_arg_is(c, 2, "one")) {
        follow_nobody();
        reply_ok(c->reply);
        return;
    }
    if (client_of(c->session) && client_of(c->session)->flags & CLIENT_FED) {
        reply_error(c->reply, "ERR Command is not valid when client is a replica.");
        return;
    }
    if (c->argc == 4) {
        remove_primary(c);
        return;
    }
    if (!num_parse_i64(c->argv[2], &port) || port < 0 || port > 65535) {
        reply_error(c->reply, "ERR Invalid master port");
        return;
    }
    if (c->argv[1].len == 0 || c->argv[1].len > 255 ||
        memchr(c->argv[1].ptr, '\0', c->argv[1].len)) {
        reply_error(c->reply, "ERR Invalid master host");
        return;
    }
    if (follow_set(c->argv[1], (int)port)) {
        reply_ok(c->reply);
    } else {
        reply_status(c->reply, "OK Already connected to specified master");
    }
}

/* ---- FAILOVER ---- */

/* Reads the arguments; false with the error replied. */
static bool parse_failover(struct call *c, struct failover_request *request, bool *abort)
{
    for (int i = 1; i < c->argc; i++) {
        if (i + 1 < c->argc && call_arg_is(c, i, "timeout") && !request->timeout_ms) {
            if (!call_arg_i64(c, ++i, &request->timeout_ms)) {
                return false;
            }
            if (request->timeout_ms <= 0) {
                reply_error(c->reply, "ERR FAILOVER timeout must be greater than 0");
                return false;
            }
        } else if (call_arg_is(c, i, "abort") && !*abort) {
            *abort = true;
        } else if (i + 2 < c->argc && call_arg_is(c, i, "to") && !request->host.ptr) {
            if (!call_arg_i64(c, i + 2, &request->port)) {
                return false;
            }
            request->host = c->argv[i + 1];
            i += 2;
        } else if (call_arg_is(c, i, "force") && !request->force) {
            request->force = true;
        } else {
            reply_syntax_error(c->reply);
            return false;
        }
    }
    return true;
}

WORLD_COMMAND(failover_command)
{
    struct failover_request request = {0};
    bool abort = false;
    gil_assert_world();
    if (!parse_failover(c, &request, &abort)) {
        return;
    }
    const char *error = NULL;
    if (abort && (c->argc > 2 || !failover_abort("Failover manually aborted"))) {
        error = c->argc > 2 ? "ERR syntax error" : "ERR No failover in progress.";
    } else if (!abort) {
        error = failover_begin(&request);
    }
    if (error) {
        reply_error(c->reply, error);
    } else {
        reply_ok(c->reply);
    }
}

/* ---- ROLE ---- */

struct roles {
    struct buf ips; /* NUL-terminated, one behind the other */
    int64_t ports[1024];
    uint64_t offsets[1024];
    int count;
};

static void note_role(struct replica *r, void *context)
{
    struct roles *roles = context;
    if (atomic_load(&r->state) == REPLICA_ONLINE && roles->count < 1024) {
        buf_append(&roles->ips, r->ip, strlen(r->ip) + 1);
        roles->ports[roles->count] = r->port;
        roles->offsets[roles->count++] = atomic_load(&r->ack_offset);
    }
}

static void reply_decimal(struct reply *r, uint64_t number)
{
    char text[NUM_I64_MAX_CHARS];
    reply_bulk(r, slice_of(text, num_format_u64(text, number)));
}

/* A replica's ROLE. */
static void reply_follower(struct call *c) REQUIRES(gil)
{
    reply_array(c->reply, 5);
    reply_bulk_cstr(c->reply, "slave");
    reply_bulk_cstr(c->reply, follow_host());
    reply_i64(c->reply, follow_port());
    reply_bulk_cstr(c->reply, follow_state_word());
    reply_i64(c->reply, follow_is_connected() ? (int64_t)backlog_offset() : -1);
}

WORLD_COMMAND(role_command)
{
    gil_assert_world();
    if (peers->on() && peers->reply_role(c)) {
        return;
    }
    if (follow_is_replica()) {
        reply_follower(c);
        return;
    }
    struct roles *roles = mem_alloc(sizeof(*roles)); /* large, and hardly used: not zeroed */
    roles->ips = (struct buf){0};
    roles->count = 0;
    replicas_each(note_role, roles);
    reply_array(c->reply, 3);
    reply_bulk_cstr(c->reply, peers->wanted() ? "active-replica" : "master");
    reply_i64(c->reply, (int64_t)backlog_offset());
    reply_array(c->reply, (uint64_t)roles->count);
    const char *ip = roles->ips.data;
    for (int i = 0; i < roles->count; i++, ip += strlen(ip) + 1) {
        reply_array(c->reply, 3);
        reply_bulk_cstr(c->reply, ip);
        reply_decimal(c->reply, (uint64_t)roles->ports[i]);
        reply_decimal(c->reply, roles->offsets[i]);
    }
    buf_deinit(&roles->ips);
    mem_free(roles);
}

/* ---- WAIT ---- */

/* What a WAIT is about. */
struct wait {
    uint64_t offset;
    uint64_t sequence; /* of an active replica's own writes */
    int64_t replicas;
};

/* Active peers count when they have applied our own writes. */
static int servers_with(const struct wait *w)
{
    return replicas_with(w->offset) + (peers->on() ? peers->with(w->sequence) : 0);
}

static void wait_is_over(struct call *c)
{
    const struct wait *w = call_block_state(c);
    reply_i64(c->reply, servers_with(w));
}

static void wait_again(struct call *c) REQUIRES(keyspace_lock);
static void wait_again(struct call *c)
{
    const struct wait *w = call_block_state(c);
    if (servers_with(w) >= w->replicas) {
        wait_is_over(c);
    } else {
        call_block(c, &(struct block){.event = acknowledged, .on_timeout = wait_is_over});
    }
}

/* So many replicas are there always, and an error does not wait. */
static bool wait_may_wait(const struct call *c)
{
    int64_t replicas;
    return c->argc > 1 && num_parse_i64(c->argv[1], &replicas) && replicas > 0;
}

static void wait_command(struct call *c)
{
    struct wait w = {.offset = backlog_offset()};
    int64_t timeout_ms;
    keyspace_assert_exclusive();
    if (c->retry) {
        wait_again(c);
        return;
    }
    if (follow_is_replica()) {
        reply_error(
            c->reply,
            "ERR WAIT cannot be used with replica instances. Please also note that since "
            "Redis 4.0 if a replica is configured to be writable (which is not the default) "
            "writes to replicas are just local and are not propagated.");
        return;
    }
    if (!call_arg_i64(c, 1, &w.replicas) || !call_arg_timeout_ms(c, 2, &timeout_ms)) {
        return;
    }
    if (peers->on()) {
        w.sequence = peers->last_write();
    }
    int have = servers_with(&w);
    if (have >= w.replicas || !call_may_block(c)) {
        reply_i64(c->reply, have);
        return;
    }
    struct wait *kept = mem_alloc(sizeof(*kept));
    *kept = w;
    if (backlog_is_on()) {
        backlog_tell(SLICE("*3\r\n$8\r\nREPLCONF\r\n$6\r\nGETACK\r\n$1\r\n*\r\n"));
    }
    if (peers->on()) {
        peers->ask();
    }
    call_block(c, &(struct block){.event = acknowledged,
                                  .timeout_ms = timeout_ms,
                                  .on_timeout = wait_is_over,
                                  .state = kept});
}

const struct command_row repl_commands[] = {
    {.name = "failover",
     .run = failover_command,
     .arity = -1,
     .flags = CMD_ADMIN | CMD_NOSCRIPT | CMD_STALE | CMD_WORLD,
     .group = "server",
     .since = "6.2.0",
     .summary = "Hands the role of the primary to a replica, without a write lost.",
     .complexity = "O(1)",
     .args = "[TO host port [FORCE]] [ABORT] [TIMEOUT milliseconds]"},
    {.name = "psync",
     .run = psync_command,
     .arity = -3,
     .flags =
         CMD_ADMIN | CMD_NOSCRIPT | CMD_NO_ASYNC_LOADING | CMD_NO_MULTI | CMD_WORLD | CMD_BARRIER,
     .categories = CATEGORY_REPLICATION,
     .group = "server",
     .since = "2.8.0",
     .summary = "Makes the connection a replica's, which goes on where it was if that can be.",
     .args = "replicationid offset"},
    {.name = "replconf",
     .run = replconf_command,
     .arity = -1,
     .flags = CMD_ADMIN | CMD_NOSCRIPT | CMD_LOADING | CMD_STALE | CMD_ALLOW_BUSY | CMD_EXCLUSIVE,
     .categories = CATEGORY_REPLICATION,
     .group = "server",
     .since = "3.0.0",
     .summary = "What replicas tell their primary of themselves.",
     .complexity = "O(1)"},
    {.name = "replicaof",
     .run = replicaof_command,
     .arity = -3,
     .flags = CMD_NO_ASYNC_LOADING | CMD_ADMIN | CMD_NOSCRIPT | CMD_STALE | CMD_WORLD,
     .group = "server",
     .since = "5.0.0",
     .summary = "Has the server follow another one, or be a primary.",
     .complexity = "O(1)",
     .args = "<host port|NO ONE>"},
    {.name = "slaveof",
     .run = replicaof_command,
     .arity = -3,
     .flags = CMD_NO_ASYNC_LOADING | CMD_ADMIN | CMD_NOSCRIPT | CMD_STALE | CMD_WORLD,
     .group = "server",
     .since = "1.0.0",
     .summary = "An older name of REPLICAOF.",
     .complexity = "O(1)",
     .args = "<host port|NO ONE>",
     .deprecated_since = "5.0.0",
     .replaced_by = "`REPLICAOF`"},
    {.name = "role",
     .run = role_command,
     .arity = 1,
     .flags = CMD_NOSCRIPT | CMD_LOADING | CMD_STALE | CMD_FAST | CMD_SENTINEL | CMD_WORLD,
     .categories = CATEGORY_ADMIN | CATEGORY_DANGEROUS,
     .group = "server",
     .since = "2.8.12",
     .summary = "Tells whether the server is a primary or a replica.",
     .complexity = "O(1)"},
    {.name = "sync",
     .run = sync_command,
     .arity = 1,
     .flags =
         CMD_ADMIN | CMD_NOSCRIPT | CMD_NO_ASYNC_LOADING | CMD_NO_MULTI | CMD_WORLD | CMD_BARRIER,
     .categories = CATEGORY_REPLICATION,
     .group = "server",
     .since = "1.0.0",
     .summary = "Makes the connection a replica's, as it was before PSYNC."},
    {.name = "wait",
     .run = wait_command,
     .arity = 3,
     .flags = CMD_BLOCKING | CMD_EXCLUSIVE,
     .categories = CATEGORY_CONNECTION,
     .tips = "request_policy:all_shards,response_policy:agg_min",
     .group = "generic",
     .since = "3.0.0",
     .summary = "Waits until so many replicas have what was written before.",
     .complexity = "O(1)",
     .args = "numreplicas timeout",
     .may_wait = wait_may_wait},
    {.name = NULL},
};
