/* See follow.h. */
#include "repl/follow.h"

#include "base/field.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/thread.h"
#include "engine/commit.h"
#include "engine/gate.h"
#include "engine/identity.h"
#include "engine/modules.h"
#include "engine/session.h"
#include "engine/shutdown.h"
#include "keyspace/evict.h"
#include "keyspace/expire.h"
#include "net/blocked.h"
#include "net/client.h"
#include "net/feed.h"
#include "net/listener.h"
#include "net/socket.h"
#include "net/tls_settings.h"
#include "net/upstream.h"
#include "persist/load.h"
#include "repl/peers.h"
#include "repl/apply.h"
#include "repl/backlog.h"
#include "repl/enveloped.h"
#include "repl/failover.h"
#include "repl/follow_priv.h"
#include "repl/link.h"
#include "repl/replica.h"
#include "repl/safe_offset.h"
#include "repl/sync.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Between two attempts to connect, and two words about how far we are. */
#define RETRY_MS 1000
#define ACK_MS 1000
#define HOST_MAX 256
/* Where a history may stand: no stream ever comes from there to the end of the numbers. */
#define OFFSET_MAX (UINT64_C(1) << 62)

struct follow_settings follow_settings;

static struct {
    pthread_t thread;
    bool followed;    /* the last link stood; the thread's */
    int64_t hasty_ms; /* of the last attempt that was made at once; the thread's */
    bool started;     /* the thread runs; world */
    bool may_start;   /* the server is up; world */
    int wake_fd;
    _Atomic bool stop, link_stop;
    _Atomic bool cut;      /* the link is to be made anew */
    struct upstream facts; /* of the link; written with the GIL in shared mode, read by the world */
    int64_t begun_ms;      /* the same */
    _Atomic uint64_t changes; /* rises with each change of whom we follow */
    _Atomic bool is_replica;
    _Atomic enum follow_state state;
    _Atomic int64_t heard_ms, down_ms; /* 0: never */
    /* The thread's: whom it follows, and the change that it knows of. */
    uint64_t known;
    char host[HOST_MAX];
    int port;
    int64_t acked_ms;
    struct follow_link link;
} follow = {.wake_fd = -1};

bool follow_is_wanted(void)
{
    return !peers->wanted() && follow_settings.host != NULL;
}

bool follow_is_replica(void)
{
    return follow.is_replica;
}

bool follow_is_connected(void)
{
    return follow.state == FOLLOW_CONNECTED;
}

const char *follow_host(void)
{
    return follow_settings.host;
}

int follow_port(void)
{
    return (int)follow_settings.port;
}

const char *follow_state_word(void)
{
    static const char *const words[] = {"none", "connect", "handshake", "sync", "connected"};
    return words[follow.state];
}

/* The text with a NUL at its end, in memory of its own. */
static char *slice_copy(struct slice text)
{
    char *copy = mem_alloc(text.len + 1);
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    return copy;
}

/* KeyDB's replica-quorum counts the primaries that are there; we have one at most. */
static bool is_stale(void)
{
    int64_t present = follow_is_connected() ? 1 : 0;
    int64_t wanted = follow_settings.quorum < 0 ? 1 : follow_settings.quorum;
    return present < wanted;
}

void follow_set_gates(void)
{
    bool replica = follow.is_replica;
    gate_set(GATE_READONLY, replica && follow_settings.read_only);
    if (peers->on()) {
        peers->judge_stale();
    } else {
        gate_set(GATE_STALE, replica && !follow_settings.serve_stale && is_stale());
    }
    identity_set_replica(replica);
    expire_set_elsewhere(replica);
    evict_set_elsewhere(replica);
}

bool follow_apply_option(const struct option *option, const char **error)
{
    (void)option;
    (void)error;
    follow_set_gates();
    return true;
}

/* World, or the thread while it is awake. */
static void set_state(enum follow_state state)
{
    bool was_up = follow.state == FOLLOW_CONNECTED, is_up = state == FOLLOW_CONNECTED;
    if (was_up && !is_up) {
        follow.down_ms = replica_clock_ms();
    }
    follow.state = state;
    follow_set_gates();
    if (was_up != is_up) {
        modules_news(MODULES_LINK, is_up ? 0 : 1, NULL);
    }
}

static bool is_interrupted(void)
{
    return follow.stop || follow.cut || follow.changes != follow.known;
}

/* The thread comes to another state by itself; not when somebody has decided about it since. */
static void come_to(enum follow_state state) NO_THREAD_SAFETY_ANALYSIS
{
    gil_wake();
    if (!is_interrupted()) {
        set_state(state);
    }
    gil_sleep();
}

static bool is_link_interrupted(const struct follow_link *l)
{
    (void)l;
    return is_interrupted();
}

/* ---- the handshake ---- */

/* Asks for what is missing; the reply's line. */
static bool ask_for_stream(char line[FOLLOW_LINE_BYTES]) NO_THREAD_SAFETY_ANALYSIS
{
    char id[REPL_ID_LEN + 1] = "?", next[NUM_I64_MAX_CHARS] = "-1";
    size_t digits = 2;
    gil_wake();
    keyspace_lock_shared();
    if (backlog_is_on() && load_is_complete()) {
        memcpy(id, backlog_id(), sizeof(id));
        digits = num_format_u64(next, backlog_offset() + 1);
    }
    keyspace_unlock_shared();
    gil_sleep();
    if (failover_hands_over()) {
        return FOLLOW_ASK(&follow.link, line, SLICE("PSYNC"), slice_cstr(id),
                          slice_of(next, digits), SLICE("FAILOVER"));
    }
    return FOLLOW_ASK(&follow.link, line, SLICE("PSYNC"), slice_cstr(id), slice_of(next, digits));
}

static void close_one(struct replica *r, void *context)
{
    (void)context;
    atomic_store(&r->closing, true);
}

void follow_dismiss_replicas(void)
{
    replicas_each(close_one, NULL);
    feeds_wake();
}

/* "+CONTINUE" or "+CONTINUE id". */
static bool go_on(const char *line) NO_THREAD_SAFETY_ANALYSIS
{
    struct slice id = slice_cstr(line + strlen("+CONTINUE"));
    while (id.len > 0 && id.ptr[0] == ' ') {
        id = slice_of(id.ptr + 1, id.len - 1);
    }
    bool fine = false;
    gil_wake();
    if (!is_interrupted()) {
        keyspace_lock_exclusive();
        fine = backlog_is_on(); /* else there was nothing to go on with */
        if (fine && id.len == REPL_ID_LEN && !slice_equal(id, slice_cstr(backlog_id()))) {
            backlog_rename(id);
            follow_dismiss_replicas();
        }
        backlog_cease();
        keyspace_unlock_exclusive();
    }
    gil_sleep();
    log_notice(fine ? "The primary goes on where the link was cut"
                    : "The primary goes on with what nobody began");
    return fine;
}

/* "+FULLRESYNC id offset". */
static bool fetch_everything(const char *line)
{
    char id[REPL_ID_LEN + 1];
    uint64_t offset;
    const char *at = line + strlen("+FULLRESYNC ");
    if (strlen(at) < REPL_ID_LEN + 2 || at[REPL_ID_LEN] != ' ' ||
        !num_parse_u64(slice_cstr(at + REPL_ID_LEN + 1), &offset) || offset > OFFSET_MAX) {
        log_warning("The primary answers to PSYNC: %.200s", line);
        return false;
    }
    memcpy(id, at, REPL_ID_LEN);
    id[REPL_ID_LEN] = '\0';
    log_notice("The primary sends everything: history %s at %" PRIu64, id, offset);
    come_to(FOLLOW_SYNC);
    return follow_receive(&follow.link, id, offset);
}

/* Tells what the other one said to our PSYNC, if a failover waits for that. */
static void tell_failover(bool taken) NO_THREAD_SAFETY_ANALYSIS
{
    gil_wake();
    if (!is_interrupted() && failover_hands_over()) {
        failover_answered(taken);
    }
    gil_sleep();
}

static bool shake_hands(void)
{
    char line[FOLLOW_LINE_BYTES];
    come_to(FOLLOW_HANDSHAKE);
    if (!follow_greet(&follow.link)) {
        return false;
    }
    enveloped_set(follow.link.is_enveloped);
    if (!ask_for_stream(line)) {
        return false;
    }
    tell_failover(strncmp(line, "+CONTINUE", 9) == 0 || strncmp(line, "+FULLRESYNC ", 12) == 0);
    if (strncmp(line, "+CONTINUE", 9) == 0) {
        return go_on(line);
    }
    if (strncmp(line, "+FULLRESYNC ", 12) == 0) {
        return fetch_everything(line);
    }
    log_warning("The primary answers to PSYNC: %.200s", line);
    return false;
}

/* ---- the stream ---- */

static bool acknowledge(void)
{
    uint64_t safe;
    char number[NUM_I64_MAX_CHARS], safe_number[NUM_I64_MAX_CHARS];
    struct slice words[] = {SLICE("REPLCONF"), SLICE("ACK"),
                            slice_of(number, num_format_u64(number, backlog_offset())),
                            SLICE("FACK"), slice_of(safe_number, 0)};
    bool any_safe = safe_offset_get(&safe);
    if (any_safe) {
        words[4].len = num_format_u64(safe_number, safe);
    }
    follow.acked_ms = replica_clock_ms();
    return follow_send(&follow.link, any_safe ? 5 : 3, words);
}

bool follow_is_ending(void)
{
    unsigned flags;
    return shutdown_requested(&flags) || shutdown_wait_left_ms() >= 0;
}

static void sleep_ms(int ms)
{
    struct pollfd p = {.fd = follow.wake_fd, .events = POLLIN};
    uint64_t count;
    if (poll(&p, 1, ms) > 0) {
        ssize_t ignored = read(follow.wake_fd, &count, sizeof(count));
        (void)ignored;
    }
}

/* Applies what has come; nothing once the server is to end (asked with the GIL held: what is here
 * stays as it was when that was decided). */
static bool apply_all(void) NO_THREAD_SAFETY_ANALYSIS
{
    enum apply_result result = APPLY_MORE;
    while (result == APPLY_MORE) {
        gil_wake();
        if (is_interrupted()) {
            result = APPLY_BROKEN;
        } else {
            result = follow_is_ending() ? APPLY_IDLE : apply_some();
        }
        gil_sleep();
    }
    commit_put();
    return result == APPLY_IDLE;
}

static void serve_stream(void)
{
    struct follow_link *l = &follow.link;
    follow.heard_ms = replica_clock_ms();
    if (!acknowledge()) {
        return;
    }
    bool rest = false; /* something that came is left */
    for (;;) {
        if (follow_is_ending()) {
            rest = true;
            sleep_ms(ACK_MS / 4);
            if (is_interrupted()) {
                return;
            }
            continue;
        }
        int got = follow_wait(l, rest ? 0 : ACK_MS / 4);
        int64_t now_ms = replica_clock_ms();
        if (got < 0) {
            return;
        }
        if (now_ms - follow.heard_ms > sync_settings.timeout_s * 1000) {
            (void)follow_broken(l, "nothing was heard within repl-timeout");
            return;
        }
        if (got > 0) {
            follow.heard_ms = now_ms;
            apply_take(slice_of(l->bytes + l->begin, l->end - l->begin));
            l->begin = l->end;
        }
        if ((got > 0 || rest) && !apply_all()) {
            (void)follow_broken(l, "what came is no stream of commands");
            return;
        }
        rest = follow_is_ending();
        bool due = apply_asked() || safe_offset_has_news() || now_ms - follow.acked_ms >= ACK_MS;
        if (due && !acknowledge()) {
            return;
        }
    }
}

/* ---- the thread ---- */

/* What comes goes on where the data are. */
static void begin_stream(int fd) NO_THREAD_SAFETY_ANALYSIS
{
    apply_reset();
    gil_wake();
    follow.facts.id = session_next_id();
    follow.facts.fd = fd;
    (void)socket_peer(fd, follow.facts.peer);
    (void)socket_local(fd, follow.facts.local);
    follow.begun_ms = replica_clock_ms();
    keyspace_lock_shared();
    apply_select(backlog_stream_db());
    keyspace_unlock_shared();
    gil_sleep();
}

void follow_talk(struct link *socket)
{
    follow.link.link = socket;
    follow.link.begin = follow.link.end = 0;
    follow.link.why[0] = '\0';
    follow.link.interrupted = is_link_interrupted;
    follow.link.wake_fd = follow.wake_fd;
    begin_stream(socket->fd);
    if (shake_hands()) {
        come_to(FOLLOW_CONNECTED);
        log_notice("Following primary %s:%d", follow.host, follow.port);
        follow.followed = true;
        serve_stream();
    }
}

/* A link that stood and broke is tried again at once, unless that was done a moment ago: a primary
 * that drops us each time is not to be busy with us. */
static bool is_tried_at_once(void)
{
    int64_t now_ms = replica_clock_ms();
    bool at_once = follow.followed && now_ms - follow.hasty_ms >= RETRY_MS;
    follow.hasty_ms = at_once ? now_ms : follow.hasty_ms;
    return at_once;
}

/* One connection, from its beginning to its end; true when the next try is to come at once. */
static bool run_link(void)
{
    bool at_once = false;
    struct link socket = {.timeout_ms = sync_settings.timeout_s * 1000, .stop = &follow.link_stop};
    come_to(FOLLOW_CONNECT);
    gil_wake();
    link_prepare(&socket);
    gil_sleep();
    if (!link_connect(&socket, follow.host, follow.port, link_source_address)) {
        log_notice("Can't connect to primary %s:%d: %s", follow.host, follow.port, socket.why);
        return false;
    }
    follow.followed = false;
    follow_talk(&socket);
    if (!is_interrupted()) {
        const char *why = follow.link.why;
        at_once = is_tried_at_once();
        log_warning("The link to primary %s:%d has ended: %s, again %s", follow.host, follow.port,
                    why[0] ? why : "the handshake failed", at_once ? "at once" : "in a second");
        come_to(FOLLOW_CONNECT);
    }
    link_close(&socket);
    return at_once;
}

/* Takes note of whom we follow; false: nobody. */
static bool learn_wish(void) NO_THREAD_SAFETY_ANALYSIS
{
    gil_wake();
    follow.link_stop = follow.cut = false;
    follow.known = follow.changes;
    bool follows = follow_settings.host != NULL;
    snprintf(follow.host, sizeof(follow.host), "%s", follows ? follow_settings.host : "");
    follow.port = (int)follow_settings.port;
    gil_sleep();
    return follows;
}

static void *run(void *argument)
{
    (void)argument;
    thread_enter("follow");
    apply_setup();
    while (!follow.stop) {
        bool follows = learn_wish();
        bool at_once = follows && !gate_is_loading() && run_link();
        if (!is_interrupted() && !at_once) {
            sleep_ms(follows ? RETRY_MS : -1);
        }
    }
    apply_teardown();
    thread_leave();
    return NULL;
}

static void wake(void)
{
    uint64_t one = 1;
    ssize_t ignored = write(follow.wake_fd, &one, sizeof(one));
    (void)ignored;
}

static void start_thread(void)
{
    follow.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int error = follow.wake_fd < 0 ? errno : thread_start(&follow.thread, run, NULL);
    if (error) {
        log_warning("Can't start the thread that follows a primary: %s", strerror(error));
        return;
    }
    follow.started = true;
}

/* Whom we follow has changed. */
static void tell_thread(void)
{
    follow.changes++;
    follow.link_stop = true;
    if (!follow.started && follow.may_start) {
        start_thread();
    } else if (follow.started) {
        wake();
    }
}

void follow_start(void)
{
    follow.may_start = true;
    if (follow_settings.host && !peers->wanted()) {
        follow.is_replica = true;
        set_state(FOLLOW_CONNECT);
        tell_thread();
    }
}

void follow_stop(void)
{
    if (follow.started) {
        follow.stop = follow.link_stop = true;
        wake();
        pthread_join(follow.thread, NULL);
        follow.started = false;
        close(follow.wake_fd);
    }
    mem_free(follow_settings.host);
    follow_settings.host = NULL;
}

/* ---- whom ---- */

/* Who waits for what only a primary gives is told so. */
static bool unblock(struct client *c, void *context)
{
    gil_assert_world();
    (void)context;
    if (c->flags & CLIENT_BLOCKED) {
        blocked_unblock(c, PARKED_DEMOTED);
    }
    return true;
}

/* Tells modules what we are now. */
static void tell_role(void) NO_THREAD_SAFETY_ANALYSIS
{
    if (!modules_want(MODULES_ROLE)) {
        return;
    }
    char ids[2][REPL_ID_LEN + 1];
    const char *host = follow_settings.host;
    keyspace_lock_shared();
    memcpy(ids[0], backlog_id(), sizeof(ids[0]));
    memcpy(ids[1], backlog_second_id(), sizeof(ids[1]));
    struct modules_facts facts = {.name = host ? host : "",
                                  .first = host ? (int)follow_settings.port : 0,
                                  .second = !host,
                                  .ids = {ids[0], ids[1]},
                                  .offsets = {backlog_offset(), (uint64_t)backlog_second_end()}};
    keyspace_unlock_shared();
    modules_tell_news(MODULES_ROLE, host ? 1 : 0, &facts);
}

bool follow_set(struct slice host, int port)
{
    gil_assert_world();
    bool was_primary = !follow_settings.host;
    if (follow_settings.host && slice_equal(host, slice_cstr(follow_settings.host)) &&
        follow_settings.port == port) {
        return false;
    }
    mem_free(follow_settings.host);
    follow_settings.host = slice_copy(host);
    follow_settings.port = port;
    follow.down_ms = 0;
    follow.is_replica = true;
    keyspace_lock_exclusive();
    backlog_cease();
    keyspace_unlock_exclusive();
    client_each(unblock, NULL);
    follow_dismiss_replicas();
    set_state(FOLLOW_CONNECT);
    tell_thread();
    sync_judge();
    sync_wake();
    log_notice("Follows primary %s:%d from now on", follow_settings.host, port);
    if (was_primary) {
        tell_role();
    }
    return true;
}

void follow_forget(void)
{
    gil_assert_world();
    assert(!follow.is_replica);
    mem_free(follow_settings.host);
    follow_settings.host = NULL;
}

bool follow_nobody(void)
{
    gil_assert_world();
    if (!follow_settings.host) {
        return false;
    }
    mem_free(follow_settings.host);
    follow_settings.host = NULL;
    follow.is_replica = false;
    keyspace_lock_exclusive();
    backlog_promote();
    keyspace_unlock_exclusive();
    load_accept();
    follow_dismiss_replicas();
    set_state(FOLLOW_NOBODY);
    tell_thread();
    sync_judge();
    sync_wake();
    log_notice("Is a primary from now on");
    tell_role();
    return true;
}

/* ---- CLIENT ---- */

static bool look(struct upstream *facts)
{
    gil_assert_world();
    if (peers->on()) {
        return peers->look(facts);
    }
    if (!follow_is_connected()) {
        return false;
    }
    *facts = follow.facts;
    facts->age_s = (replica_clock_ms() - follow.begun_ms) / 1000;
    facts->idle_s = (replica_clock_ms() - follow.heard_ms) / 1000;
    bool taken = keyspace_visit();
    keyspace_assert_shared();
    facts->db = backlog_stream_db();
    keyspace_leave(taken);
    return true;
}

static void cut(void)
{
    gil_assert_world();
    log_notice("The link to the primary is cut by a command");
    if (peers->on()) {
        peers->cut();
        return;
    }
    follow.cut = true;
    set_state(FOLLOW_CONNECT);
    wake();
}

void follow_setup(void)
{
    static const struct upstream_ops ops = {.look = look, .cut = cut};
    upstream_set_ops(&ops);
}

/* ---- INFO ---- */

static int64_t seconds_since(int64_t then_ms)
{
    return then_ms ? (replica_clock_ms() - then_ms) / 1000 : -1;
}

void follow_write_info(struct buf *out)
{
    bool connected = follow_is_connected();
    if (!follow.is_replica) {
        buf_append_cstr(out, "role:master\r\n");
        return;
    }
    field_text(out, "role", "slave");
    /* KeyDB's, for its monitors: with one primary, and by replica-quorum. */
    field_text(out, "master_global_link_status", is_stale() ? "down" : "up");
    field_i64(out, "connected_masters", connected);
    field_text(out, "master_host", follow_settings.host);
    field_i64(out, "master_port", follow_settings.port);
    field_text(out, "master_link_status", connected ? "up" : "down");
    field_i64(out, "master_last_io_seconds_ago", connected ? seconds_since(follow.heard_ms) : -1);
    field_i64(out, "master_sync_in_progress", follow.state == FOLLOW_SYNC);
    field_u64(out, "slave_read_repl_offset", backlog_offset());
    field_u64(out, "slave_repl_offset", backlog_offset());
    follow_write_transfer(out);
    if (!connected) {
        field_i64(out, "master_link_down_since_seconds", seconds_since(follow.down_ms));
    }
    field_i64(out, "slave_priority", follow_settings.priority);
    field_i64(out, "slave_read_only", follow_settings.read_only);
    field_i64(out, "replica_announced", follow_settings.announced);
}

/* ---- options ---- */

static bool parse_primary(const struct option *option, const struct slice *words, int count,
                          const char **error)
{
    int64_t port = 0;
    (void)option;
    bool none =
        (count == 1 && words[0].len == 0) ||
        (count == 2 && slice_equal_nocase(words[0], "no") && slice_equal_nocase(words[1], "one"));
    *error = NULL;
    if (!none && count != 2) {
        *error = "wrong number of arguments";
    } else if (!none && (words[0].len == 0 || words[0].len >= HOST_MAX)) {
        *error = "Invalid master host";
    } else if (!none && (!num_parse_i64(words[1], &port) || port < 0 || port > 65535)) {
        *error = "Invalid master port"; /* 0 is taken as Redis does, though nobody is there */
    }
    if (*error != NULL) {
        return false;
    }
    if (!peers->configure(none ? (struct slice){NULL, 0} : words[0], (int)port)) {
        *error = "too many lines of replicaof";
        return false;
    }
    mem_free(follow_settings.host);
    follow_settings.host = none ? NULL : slice_copy(words[0]);
    follow_settings.port = port;
    return true;
}

static void format_primary(const struct option *option, struct buf *out)
{
    (void)option;
    if (follow_settings.host) {
        buf_printf(out, "%s %" PRId64, follow_settings.host, follow_settings.port);
    }
}

/* An active replica pulls from several. */
static bool put_lines(bool in_include, struct buf *out, bool *lost UNUSED)
{
    return peers->put_lines(in_include, out);
}

static bool has_lines(void)
{
    return peers->wanted();
}

static const struct option_enum diskless_names[] = {{"disabled", DISKLESS_DISABLED},
                                                    {"on-empty-db", DISKLESS_ON_EMPTY},
                                                    {"swapdb", DISKLESS_SWAP},
                                                    {NULL, 0}};

const struct option follow_options[] = {
    {.name = "replicaof",
     .alias = "slaveof",
     .type = OPTION_CUSTOM,
     .flags = OPTION_IMMUTABLE | OPTION_MULTI,
     .initial = "",
     .empty = "no one",
     .parse = parse_primary,
     .format = format_primary,
     .lines = put_lines,
     .has_lines = has_lines},
    {.name = "masterauth",
     .type = OPTION_STRING,
     .flags = OPTION_SENSITIVE,
     .target = &follow_settings.password,
     .initial = ""},
    {.name = "masteruser", .type = OPTION_STRING, .target = &follow_settings.user, .initial = ""},
    {.name = "replica-read-only",
     .alias = "slave-read-only",
     .type = OPTION_BOOL,
     .target = &follow_settings.read_only,
     .initial = "yes",
     .apply = follow_apply_option},
    {.name = "replica-serve-stale-data",
     .alias = "slave-serve-stale-data",
     .type = OPTION_BOOL,
     .target = &follow_settings.serve_stale,
     .initial = "yes",
     .apply = follow_apply_option},
    {.name = "replica-quorum",
     .type = OPTION_INT,
     .target = &follow_settings.quorum,
     .initial = "-1",
     .min = -1,
     .max = INT32_MAX,
     .apply = follow_apply_option},
    {.name = "replica-lazy-flush",
     .alias = "slave-lazy-flush",
     .type = OPTION_BOOL,
     .target = &follow_settings.lazy_flush,
     .initial = "no"},
    {.name = "repl-diskless-load",
     .type = OPTION_ENUM,
     .target = &follow_settings.diskless_load,
     .initial = "disabled",
     .enum_names = diskless_names},
    {.name = "replica-priority",
     .alias = "slave-priority",
     .type = OPTION_INT,
     .target = &follow_settings.priority,
     .initial = "100",
     .min = 0,
     .max = INT32_MAX},
    {.name = "replica-announced",
     .type = OPTION_BOOL,
     .target = &follow_settings.announced,
     .initial = "yes"},
    {.name = "replica-announce-ip",
     .alias = "slave-announce-ip",
     .type = OPTION_STRING,
     .target = &follow_settings.announce_ip,
     .initial = ""},
    {.name = "replica-announce-port",
     .alias = "slave-announce-port",
     .type = OPTION_INT,
     .target = &follow_settings.announce_port,
     .initial = "0",
     .min = 0,
     .max = 65535},
    {.name = NULL},
};
