/* See peer_links.h. */
#include "active/peer_links_priv.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/thread.h"
#include "engine/commit.h"
#include "engine/config.h"
#include "engine/session.h"
#include "engine/shutdown.h"
#include "keyspace/reclaim.h"
#include "active/active.h"
#include "active/frame.h"
#include "active/sources.h"
#include "repl/follow.h"
#include "repl/follow_link.h"
#include "repl/replica.h"
#include "repl/sync.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Frames of one hold, and how long it may be once they are slow. */
#define HOLD_FRAMES 64
#define HOLD_MAX_NS (50 * 1000)
/* The longest wait for what a peer's write may be a consequence of, by a link that says something.
 */
#define CAUSE_WAIT_MS 100
#define CAUSE_SILENT_MS 1500
/* Bytes that are done are let go of when they are so many. */
#define CONSUME_BYTES ((size_t)256 * 1024)
/* Between two attempts to connect: doubled each time from the one to the other. */
#define RETRY_MIN_MS 100
#define RETRY_MAX_MS 3000
static struct {
    struct peer_link *links[PEER_LINKS_MAX]; /* world */
    bool started;
    struct sources wants; /* keyspace */
    struct source_link want[PEER_LINKS_MAX];
    struct {
        char host[HOST_MAX];
        int port;
    } configured[PEER_LINKS_MAX]; /* boot */
    int configured_count;
    bool began;     /* those are linked to */
    bool rewritten; /* the file of the configuration says it no more */
    _Atomic bool ending;
} all;

bool peer_link_is_interrupted(const struct follow_link *f)
{
    const struct peer_link *l = (const struct peer_link *)f;
    return l->stop || l->cut;
}

static void wake(struct peer_link *l)
{
    uint64_t one = 1;
    ssize_t ignored = write(l->f.wake_fd, &one, sizeof(one));
    (void)ignored;
}

void peer_link_wait(struct peer_link *l, int fd, int ms)
{
    uint64_t count;
    short events = fd >= 0 && link_unsent(l->f.link) ? POLLIN | POLLOUT : POLLIN;
    struct pollfd fds[2] = {{.fd = l->f.wake_fd, .events = POLLIN}, {.fd = fd, .events = events}};
    if (poll(fds, 2, ms) > 0 && fds[0].revents) {
        ssize_t ignored = read(l->f.wake_fd, &count, sizeof(count));
        (void)ignored;
    }
}

/* ---- holds ---- */

bool peer_link_begin_hold(struct peer_link *l) NO_THREAD_SAFETY_ANALYSIS
{
    unsigned flags;
    gil_wake();
    if (peer_link_is_interrupted(&l->f) || shutdown_requested(&flags) ||
        shutdown_wait_left_ms() >= 0) {
        gil_sleep();
        return false;
    }
    keyspace_lock_exclusive();
    return true;
}

void peer_link_end_hold(void) NO_THREAD_SAFETY_ANALYSIS
{
    keyspace_unlock_exclusive();
    gil_sleep();
    reclaim_run();
}

static void tell_all(void) REQUIRES(keyspace_lock);
static void tell_all(void)
{
    for (int i = 0; i < PEER_LINKS_MAX; i++) {
        if (all.links[i] && all.want[i].up) {
            all.links[i]->told_due = true;
            wake(all.links[i]);
        }
    }
}

/* Who is requested from where; whom that concerns is told. */
static void choose_sources(void) REQUIRES(keyspace_lock);
static void choose_sources(void)
{
    struct node *node = active_node();
    node_take_directly(node, active_settings.no_forward);
    if (sources_choose(&all.wants, node_origins(node), node_self(node), all.want, PEER_LINKS_MAX,
                       replica_clock_ms())) {
        tell_all();
    }
}

void peer_link_prefer(const struct peer_link *l)
{
    sources_prefer(&all.wants, node_origins(active_node()), all.want, PEER_LINKS_MAX, l->number,
                   replica_clock_ms());
    tell_all();
}

/* ---- the beginning ---- */

static void put_word(struct buf *out, struct slice word)
{
    unit_put_word(out, word);
}

/* A request of some words and those that tell what is requested. */
static void put_request(struct peer_link *l, int count, const struct slice *words, struct buf *out)
    REQUIRES(keyspace_lock);
static void put_request(struct peer_link *l, int count, const struct slice *words, struct buf *out)
{
    struct buf requested = {0};
    int more =
        sources_put_words(&all.wants, node_origins(active_node()), l->number, &l->told, &requested);
    buf_printf(out, "*%d\r\n", count + more);
    for (int i = 0; i < count; i++) {
        put_word(out, words[i]);
    }
    buf_append_slice(out, buf_slice(&requested));
    buf_deinit(&requested);
    l->told_due = false;
}

/* What the peer is asked; false: not any more. */
static bool write_pull(struct peer_link *l, struct buf *out)
{
    char node[ACTIVE_NODE_CHARS], clock[NUM_I64_MAX_CHARS];
    if (!peer_link_begin_hold(l)) {
        return false;
    }
    receiver_init(&l->take, node_self(active_node()));
    mem_free(l->had);
    l->had = version_vector_create(node_origins(active_node()));
    all.want[l->number] =
        (struct source_link){.up = true, .take = &l->take, .heard_ms = replica_clock_ms()};
    choose_sources();
    active_node_text(node);
    uint64_t now = hlc_tell(node_clock(active_node()));
    struct slice words[] = {SLICE("KEYDB.PULL"), SLICE(FRAME_VERSION), slice_of(node, sizeof(node)),
                            slice_of(clock, num_format_u64(clock, now))};
    put_request(l, 4, words, out);
    peer_link_end_hold();
    return true;
}

/* "+PULL <node id>", or MERGE: a whole data set comes. */
static bool take_answer(struct peer_link *l, const char *line)
{
    struct origin_id id;
    char text[ORIGIN_CHARS];
    memset(text, '0', sizeof(text));
    l->gets_all = line[0] != '\0' && line[1] == 'M';
    l->set_comes = false;
    const char *word = l->gets_all ? "+MERGE " : "+PULL ";
    bool fine =
        strncmp(line, word, strlen(word)) == 0 && strlen(line + strlen(word)) == ACTIVE_NODE_CHARS;
    if (fine) {
        memcpy(text, line + strlen(word), ACTIVE_NODE_CHARS);
    }
    if (!fine || !origin_parse(slice_of(text, sizeof(text)), &id)) {
        return follow_refused(&l->f, "it answers to KEYDB.PULL", line);
    }
    if (!peer_link_begin_hold(l)) {
        return false;
    }
    memcpy(all.want[l->number].node, id.node, ORIGIN_NODE_BYTES);
    if (l->gets_all) {
        all.want[l->number].busy = true;
        peer_link_prefer(l);
    }
    choose_sources();
    peer_link_end_hold();
    return true;
}

/* He can be followed only by a server that is no node. */
static bool is_ours(struct peer_link *l)
{
    if (l->f.is_enveloped) {
        return follow_broken(&l->f, "it is an active replica of KeyDB, which can be followed with "
                                    "'active-replica no' until nobody writes to it any more");
    }
    return true;
}

static bool pull(struct peer_link *l)
{
    char line[FOLLOW_LINE_BYTES];
    struct buf request = {0};
    bool fine = follow_greet(&l->f) && is_ours(l) && write_pull(l, &request) &&
                follow_send_bytes(&l->f, buf_slice(&request)) && follow_line(&l->f, line) &&
                take_answer(l, line);
    buf_deinit(&request);
    return fine;
}

/* ---- frames ---- */

/* Whether a cause of what comes next is on its way by another link, which is lively, and has not
 * been waited for too long: then it is not waited for again before it has come. */
static bool cause_comes(void *link, uint16_t origin, uint64_t position)
{
    struct peer_link *l = link;
    int64_t now_ms = replica_clock_ms();
    int from = origin < all.wants.count ? all.wants.rows[origin].link : -1;
    keyspace_assert_exclusive();
    if (from < 0 || from == l->number || !all.want[from].up ||
        now_ms - all.want[from].heard_ms > CAUSE_SILENT_MS) {
        return false;
    }
    if (origin >= l->late_count) {
        uint32_t count = (uint32_t)origin + 1;
        l->late = mem_realloc(l->late, count * sizeof(*l->late));
        memset(l->late + l->late_count, 0, (count - l->late_count) * sizeof(*l->late));
        l->late_count = count;
    }
    if (origins_at(node_origins(active_node()), origin)->position < l->late[origin]) {
        return false;
    }
    l->cause_ms = l->cause_ms ? l->cause_ms : now_ms;
    if (now_ms - l->cause_ms >= CAUSE_WAIT_MS) {
        l->late[origin] = position;
        return false;
    }
    return true;
}

/* Takes frames in one hold: 1 there may be more, 0 nothing whole is left, or what is waits for the
 * end of a MERGE, -1 the link is to be closed. */
static int take_some(struct peer_link *l) REQUIRES(keyspace_lock);
static int take_some(struct peer_link *l)
{
    struct node *node = active_node();
    struct origins *origins = node_origins(node);
    int64_t now_ms = replica_clock_ms();
    struct receiver_sink sink = node_sink(node, now_ms);
    sink.comes = cause_comes;
    sink.link = l;
    uint64_t begin = clock_ticks();
    const char *error = NULL;
    bool clocks = false;
    int result = 1;
    l->waits = false;
    for (int i = 0; i < HOLD_FRAMES && result == 1; i++) {
        struct frame f;
        size_t consumed;
        struct slice rest = buf_from(&l->in, l->done);
        enum frame_result got = frame_next(rest, FRAME_MAX_BYTES, &f, &consumed, &error);
        enum receiver_result taken = got == FRAME_WHOLE
                                         ? receiver_frame(&l->take, origins, &f, &sink, &error)
                                         : (got == FRAME_MORE ? RECEIVED_LATER : RECEIVED_NEVER);
        if (got == FRAME_WHOLE && f.kind == 'S' && l->gets_all) {
            l->gets_all = false;
            l->set_comes = true;
            l->done += consumed;
            result = 0;
        } else if (taken == RECEIVED_LATER) {
            l->waits = got == FRAME_WHOLE;
            result = 0;
        } else if (taken == RECEIVED_GAP || taken == RECEIVED_NEVER) {
            result = -1;
        } else {
            l->done += consumed;
            l->cause_ms = 0;
            l->units += f.kind == 'W';
            clocks |= f.kind == 'C';
            all.want[l->number].heard_ms = now_ms;
        }
        if (clock_ticks_to_ns(clock_ticks() - begin) > HOLD_MAX_NS) {
            break;
        }
    }
    if (clocks) {
        choose_sources();
        l->told_due = true; /* the peer may wait to be told how far we are */
    }
    if (result < 0) {
        log_warning("What active peer %s:%d sends is wrong: %s", l->host, l->port, error);
        (void)follow_broken(&l->f, "what it sent is wrong");
        l->wrong = true;
    }
    return result;
}

static bool take_all(struct peer_link *l)
{
    int result = 1;
    while (result == 1) {
        if (!peer_link_begin_hold(l)) {
            return !peer_link_is_interrupted(&l->f);
        }
        result = take_some(l);
        peer_link_end_hold();
    }
    if (l->done == l->in.len || l->done >= CONSUME_BYTES) {
        buf_consume(&l->in, l->done);
        l->done = 0;
    }
    commit_put();
    return result == 0;
}

/* Behind a data set the peer has as long again to say something. */
static void note_busy(const struct peer_link *l) REQUIRES(keyspace_lock);
static void note_busy(const struct peer_link *l)
{
    struct source_link *want = &all.want[l->number];
    bool was_busy = want->busy;
    want->busy = l->gets_all || l->set_comes;
    if (was_busy && !want->busy) {
        want->heard_ms = replica_clock_ms();
    }
}

/* Tells the peer how far we are and what we want of him. */
static bool acknowledge(struct peer_link *l)
{
    static const struct slice words[] = {{"REPLCONF", 8}, {"PULL-ACK", 8}};
    struct buf request = {0};
    l->acked_ms = replica_clock_ms();
    if (!peer_link_begin_hold(l)) {
        return !peer_link_is_interrupted(&l->f);
    }
    note_busy(l);
    choose_sources();
    put_request(l, 2, words, &request);
    peer_link_end_hold();
    bool fine = follow_send_bytes(&l->f, buf_slice(&request));
    buf_deinit(&request);
    return fine;
}

bool peer_link_receive(struct peer_link *l)
{
    struct follow_link *f = &l->f;
    if (f->begin == f->end) {
        ssize_t got = link_receive(f->link, f->bytes, sizeof(f->bytes));
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
            peer_link_wait(l, f->link->fd, LOOK_MS);
            return true;
        }
        if (got <= 0) {
            return follow_broken(f, got == 0 ? FOLLOW_CLOSED : strerror(errno));
        }
        f->begin = 0;
        f->end = (size_t)got;
    }
    buf_append(&l->in, f->bytes + f->begin, f->end - f->begin);
    f->begin = f->end;
    l->heard_ms = replica_clock_ms();
    return true;
}

bool peer_link_keep(struct peer_link *l)
{
    int64_t now_ms = replica_clock_ms();
    if (now_ms - l->heard_ms > sync_settings.timeout_s * 1000) {
        return follow_broken(&l->f, "it says nothing any more");
    }
    return !(l->told_due || now_ms - l->acked_ms >= ACK_MS) || acknowledge(l);
}

/* More bytes, unless those that are here wait; then a while has passed. */
static bool look_again(struct peer_link *l, bool *more)
{
    size_t had = l->in.len;
    if (l->waits) {
        peer_link_wait(l, -1, l->cause_ms ? 1 : LOOK_MS);
        l->heard_ms = replica_clock_ms(); /* it is we who do not listen */
        *more = true;
        return true;
    }
    bool fine = peer_link_receive(l);
    *more = l->in.len > had;
    return fine;
}

/* Until the link ends; true when a data set is next. */
static bool serve_frames(struct peer_link *l)
{
    bool more = true; /* behind an answer, or a data set, some may be here */
    while (!peer_link_is_interrupted(&l->f)) {
        if ((more && !take_all(l)) || !peer_link_keep(l)) {
            return false;
        }
        if (l->set_comes) {
            buf_consume(&l->in, l->done);
            l->done = 0;
            return true;
        }
        if (!look_again(l, &more)) {
            return false;
        }
    }
    return false;
}

/* ---- the thread ---- */

/* What is requested by this link is requested by others now. */
static void leave(struct peer_link *l) NO_THREAD_SAFETY_ANALYSIS
{
    gil_wake();
    keyspace_lock_exclusive();
    all.want[l->number] = (struct source_link){.up = false};
    if (active_is_on()) {
        choose_sources();
    }
    receiver_deinit(&l->take);
    source_told_deinit(&l->told);
    keyspace_unlock_exclusive();
    gil_sleep();
    buf_deinit(&l->in);
    mem_free(l->late);
    l->late = NULL;
    mem_free(l->had);
    l->had = NULL;
    l->late_count = 0;
    l->done = 0;
    l->waits = false;
}

static void note_facts(struct peer_link *l)
{
    gil_wake();
    l->facts = (struct upstream){.id = session_next_id(), .fd = l->f.link->fd};
    (void)socket_peer(l->facts.fd, l->facts.peer);
    (void)socket_local(l->facts.fd, l->facts.local);
    l->begun_ms = replica_clock_ms();
    gil_sleep();
}

static void serve(struct peer_link *l)
{
    l->heard_ms = l->acked_ms = replica_clock_ms();
    if (l->gets_all) {
        l->state = LINK_SYNC;
        if (!serve_frames(l) || !peer_link_sync(l)) {
            return;
        }
        l->set_comes = false;
        l->told_due = true;
    }
    l->state = LINK_CONNECTED;
    l->met = true;
    log_notice("Takes the writes of active peer %s:%d", l->host, l->port);
    (void)serve_frames(l);
}

/* There is no link, and the next try comes by itself: that is said once for each reason. */
static void say_failed(struct peer_link *l, const char *why)
{
    if (!peer_link_is_interrupted(&l->f) && why[0] && strcmp(l->failed, why) != 0) {
        log_warning("No link to active peer %s:%d: %s (tried again by itself)", l->host, l->port,
                    why);
        snprintf(l->failed, sizeof(l->failed), "%s", why);
    }
}

/* One connection, from its beginning to its end; true when it brought something that was good. */
static bool run_link(struct peer_link *l)
{
    struct link socket = {.timeout_ms = sync_settings.timeout_s * 1000, .stop = &l->link_stop};
    char source[HOST_MAX];
    gil_wake();
    link_prepare(&socket);
    snprintf(source, sizeof(source), "%s", link_source_address ? link_source_address : "");
    gil_sleep();
    if (!link_connect(&socket, l->host, l->port, source)) {
        say_failed(l, socket.why);
        return false;
    }
    l->f.link = &socket;
    l->f.begin = l->f.end = 0;
    l->f.why[0] = '\0';
    note_facts(l);
    l->state = LINK_HANDSHAKE;
    l->wrong = false;
    bool pulled = pull(l);
    if (pulled) {
        l->failed[0] = '\0';
        serve(l);
        l->down_ms = replica_clock_ms();
        log_notice("The link to active peer %s:%d has ended: %s", l->host, l->port,
                   l->f.why[0] ? l->f.why : "by itself");
    } else {
        say_failed(l, l->f.why);
    }
    l->state = LINK_CONNECT;
    leave(l);
    link_close(&socket);
    return pulled && !l->wrong;
}

static void *run(void *argument)
{
    struct peer_link *l = argument;
    char name[16];
    int retry_ms = RETRY_MIN_MS;
    snprintf(name, sizeof(name), "active-%d", l->number);
    thread_enter(name);
    while (!l->stop) {
        l->cut = false;
        bool pulled = run_link(l);
        retry_ms = pulled ? RETRY_MIN_MS : 2 * retry_ms;
        retry_ms = retry_ms < RETRY_MAX_MS ? retry_ms : RETRY_MAX_MS;
        if (!peer_link_is_interrupted(&l->f)) {
            peer_link_wait(l, -1, retry_ms);
        }
    }
    thread_leave();
    l->state = LINK_ENDED;
    return NULL;
}

/* ---- whom ---- */

static void destroy(struct peer_link *l)
{
    close(l->f.wake_fd);
    mem_free(l);
}

/* Those that were taken away and have ended make room. */
static void bury(void)
{
    for (int i = 0; i < PEER_LINKS_MAX; i++) {
        if (all.links[i] && all.links[i]->state == LINK_ENDED) {
            pthread_join(all.links[i]->thread, NULL);
            destroy(all.links[i]);
            all.links[i] = NULL;
        }
    }
}

static void ensure_started(void)
{
    if (!all.started) {
        sources_init(&all.wants);
        all.started = true;
    }
}

static const char *start(struct slice host, int port)
{
    int number = 0;
    ensure_started(); /* REPLICAOF may come before the boot's end */
    bury();
    while (number < PEER_LINKS_MAX && all.links[number]) {
        number++;
    }
    if (number == PEER_LINKS_MAX) {
        return "ERR too many servers to replicate from";
    }
    struct peer_link *l = mem_calloc(1, sizeof(*l));
    l->port = port;
    l->number = number;
    snprintf(l->host, sizeof(l->host), "%.*s", (int)host.len, host.ptr);
    l->f.interrupted = peer_link_is_interrupted;
    l->f.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    all.links[number] = l;
    int error = l->f.wake_fd < 0 ? errno : thread_start(&l->thread, run, l);
    if (error) {
        log_warning("Can't start a thread for an active peer: %s", strerror(error));
        all.links[number] = NULL;
        destroy(l);
        return "ERR no thread for another server to replicate from";
    }
    return NULL;
}

static void stop(struct peer_link *l)
{
    l->stop = l->link_stop = true;
    wake(l);
}

bool peer_links_are_ending(void)
{
    return all.ending;
}

static bool is_there(const struct peer_link *l)
{
    return l && !l->stop;
}

const struct peer_link *peer_link_at(int number)
{
    return is_there(all.links[number]) ? all.links[number] : NULL;
}

bool peer_links_have_met(void)
{
    bool met = all.began || all.configured_count == 0;
    for (int i = 0; i < PEER_LINKS_MAX && met; i++) {
        const struct peer_link *l = peer_link_at(i);
        met = !l || l->met;
    }
    return met;
}

static struct peer_link *find(struct slice host, int port)
{
    for (int i = 0; i < PEER_LINKS_MAX; i++) {
        struct peer_link *l = all.links[i];
        if (is_there(l) && l->port == port && slice_equal(host, slice_cstr(l->host))) {
            return l;
        }
    }
    return NULL;
}

bool peer_links_add(struct slice host, int port, const char **error)
{
    *error = NULL;
    if (find(host, port)) {
        return false;
    }
    if (!active_settings.multi) {
        peer_links_remove_all();
    }
    *error = start(host, port);
    return !*error;
}

bool peer_links_remove(struct slice host, int port)
{
    struct peer_link *l = find(host, port);
    if (l) {
        stop(l);
    }
    return l != NULL;
}

void peer_links_remove_all(void)
{
    for (int i = 0; i < PEER_LINKS_MAX; i++) {
        if (all.links[i]) {
            stop(all.links[i]);
        }
    }
}

void peer_links_forget(void)
{
    memset(all.want, 0, sizeof(all.want));
    if (all.started) {
        sources_deinit(&all.wants);
        sources_init(&all.wants);
    }
}

void peer_links_cut(void)
{
    for (int i = 0; i < PEER_LINKS_MAX; i++) {
        if (all.links[i]) {
            all.links[i]->cut = true;
            wake(all.links[i]);
        }
    }
}

bool peer_links_look(struct upstream *facts)
{
    for (int i = 0; i < PEER_LINKS_MAX; i++) {
        const struct peer_link *l = all.links[i];
        if (is_there(l) && l->state == LINK_CONNECTED) {
            *facts = l->facts;
            facts->idle_s = (replica_clock_ms() - l->heard_ms) / 1000;
            facts->age_s = (replica_clock_ms() - l->begun_ms) / 1000;
            return true;
        }
    }
    return false;
}

bool peer_links_configure(struct slice host, int port)
{
    if (!host.ptr) {
        all.configured_count = 0;
        return true;
    }
    if (all.configured_count == PEER_LINKS_MAX || host.len >= HOST_MAX) {
        return false;
    }
    snprintf(all.configured[all.configured_count].host, HOST_MAX, "%.*s", (int)host.len, host.ptr);
    all.configured[all.configured_count++].port = port;
    return true;
}

static void put_line(const char *host, int port, struct buf *out)
{
    buf_append_cstr(out, "replicaof ");
    config_append_words(out, (const struct slice[]){slice_cstr(host)}, 1);
    buf_printf(out, " %d\n", port);
}

bool peer_links_put_lines(bool in_include, struct buf *out)
{
    struct buf configured = {0}, now = {0};
    gil_assert_world();
    for (int i = 0; i < all.configured_count; i++) {
        put_line(all.configured[i].host, all.configured[i].port, &configured);
    }
    for (int i = 0; i < PEER_LINKS_MAX; i++) {
        if (is_there(all.links[i])) {
            put_line(all.links[i]->host, all.links[i]->port, &now);
        }
    }
    all.rewritten |= !slice_equal(buf_slice(&now), buf_slice(&configured));
    if (all.rewritten) {
        buf_append_cstr(out, in_include ? "replicaof no one\n" : "");
        buf_append_slice(out, buf_slice(&now));
    }
    buf_deinit(&configured);
    buf_deinit(&now);
    return all.rewritten;
}

void peer_links_start(void)
{
    gil_wake();
    gil_stop_world();
    ensure_started();
    for (int i = active_settings.multi || !all.configured_count ? 0 : all.configured_count - 1;
         i < all.configured_count; i++) {
        struct slice host = slice_cstr(all.configured[i].host);
        const char *error =
            find(host, all.configured[i].port) ? NULL : start(host, all.configured[i].port);
        if (error) {
            log_warning("Can't replicate from %s: %s", all.configured[i].host, error);
        }
    }
    all.began = true;
    gil_resume_world();
    gil_sleep();
}

void peer_links_stop(void) NO_THREAD_SAFETY_ANALYSIS
{
    if (!all.started) {
        return;
    }
    all.ending = true;
    peer_links_remove_all();
    for (int i = 0; i < PEER_LINKS_MAX; i++) {
        if (all.links[i]) {
            pthread_join(all.links[i]->thread, NULL);
        }
    }
    gil_wake();
    gil_stop_world();
    for (int i = 0; i < PEER_LINKS_MAX; i++) {
        if (all.links[i]) {
            destroy(all.links[i]);
            all.links[i] = NULL;
        }
    }
    gil_resume_world();
    gil_sleep();
    sources_deinit(&all.wants);
    all.started = false;
}
