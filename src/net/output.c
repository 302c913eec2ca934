/* See output.h. */
#include "net/output.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/stats.h"
#include "engine/auth.h"
#include "net/feed.h"
#include "net/client_memory.h"
#include "net/sys.h"
#include "net/tls.h"

#include <assert.h>
#include <errno.h>

/* Vectors of one system call, and bytes that are worth one: a socket's buffer takes no more at a
 * time. */
#define VECTORS_MAX 128
/* Unsent replies that a client may have before authentication (Redis's limit since CVE-2025-21605);
 * what the socket's own buffer takes comes before. */
#define STRANGER_UNREAD_BYTES 1024
/* Replies of a turn that no hard limit counts: as much as Redis builds in a client's own buffer,
 * which it does not count, so that the smallest limit leaves room for answers to simple requests.
 */
#define UNCOUNTED_BYTES ((uint64_t)16 * 1024)

static void fail(struct client *c)
{
    client_close_asap(c);
}

static void note_sent(struct client *c, size_t sent)
{
    stats_add(STAT_NET_OUTPUT_BYTES, sent);
    c->net_out_bytes += sent;
}

/* What a send has come to: the bytes that the socket took, 0 when it is full or broken (the client
 * is marked then). */
static inline size_t judge_send(struct client *c, ssize_t sent)
{
    stats_add(STAT_WRITES, 1);
    if (likely(sent > 0)) {
        note_sent(c, (size_t)sent);
        return (size_t)sent;
    }
    if (sent < 0 && errno != EAGAIN && errno != EINTR) {
        fail(c);
    }
    return 0;
}

/* One send of some vectors. */
static size_t send_vectors(struct client *c, struct iovec *vectors, int count)
{
    if (unlikely(c->flags & CLIENT_TLS)) {
        return judge_send(c, tls_send(c->tls, vectors, count));
    }
    if (count == 1) {
        return judge_send(c, sys_send(c->fd, vectors[0].iov_base, vectors[0].iov_len));
    }
    struct msghdr message = {.msg_iov = vectors, .msg_iovlen = (size_t)count};
    return judge_send(c, sys_sendmsg(c->fd, &message));
}

/* ---- the queue ---- */

static void enqueue(struct client *c, const char *ptr, size_t len, struct blob *blob)
{
    struct output_piece *piece = mem_alloc(sizeof(*piece) + (blob ? 0 : len));
    piece->next = NULL;
    piece->len = len;
    piece->blob = blob ? blob_acquire(blob) : NULL;
    piece->ptr = blob ? ptr : piece->copy;
    if (!blob) {
        memcpy(piece->copy, ptr, len);
    }
    *c->out_last = piece;
    c->out_last = &piece->next;
    c->out_bytes += len;
    c->out_count++;
    server_thread_note_recent(c->thread, &c->thread->recent_output, c->out_bytes);
}

/* Drops the piece that *link points to. */
static void drop_at(struct client *c, struct output_piece **link)
{
    struct output_piece *piece = *link;
    *link = piece->next;
    if (!*link) {
        c->out_last = link;
    }
    c->out_count--;
    if (piece->blob) {
        blob_release(&piece->blob);
    }
    mem_free(piece);
}

static void drop_first(struct client *c)
{
    drop_at(c, &c->out_first);
}

void output_discard(struct client *c)
{
    while (c->out_first) {
        drop_first(c);
    }
    c->out_bytes = 0;
}

static void want_write(struct client *c, bool wanted)
{
    if (wanted && !(c->flags & CLIENT_WANTS_WRITE)) {
        c->flags |= CLIENT_WANTS_WRITE;
        event_add(&c->write_event, NULL);
    } else if (!wanted && c->flags & CLIENT_WANTS_WRITE) {
        c->flags &= ~(uint32_t)CLIENT_WANTS_WRITE;
        event_del(&c->write_event);
    }
}

/* Who has not proved who it is and does not read what it is told. */
static bool is_deaf_stranger(const struct client *c)
{
    return c->out_bytes > STRANGER_UNREAD_BYTES && !c->session.authenticated && auth_required();
}

/* A monitor is a normal client, but sent everything like a replica: its output has an end even
 * where that of normal clients has none. */
static const struct output_limit *limit_of(const struct client *c)
{
    const struct output_limit *limit = &net_settings.output_limit[client_class_of(c)];
    bool unlimited = limit->hard_bytes == 0 && limit->soft_bytes == 0;
    return unlimited && c->flags & CLIENT_MONITOR ? &net_settings.output_limit[CLIENT_CLASS_REPLICA]
                                                  : limit;
}

static void close_over_limit(struct client *c, uint64_t bytes)
{
    if (!(c->flags & CLIENT_CLOSE_ASAP)) {
        log_warning(
            "Closing client %s: %zu bytes of unread replies passed client-output-buffer-limit",
            c->session.peer, (size_t)bytes);
        stats_add(STAT_OUTPUT_LIMIT_CLOSED, 1);
        client_close_asap(c);
    }
}

/* Whether so many bytes may be added to what the client is told. The limit is one of what it is
 * told, whatever its socket would take: else a reply would be noticed late, and cut where the
 * socket was full. */
static __attribute__((noinline)) bool admit(struct client *c, size_t bytes)
{
    if (c->flags & (CLIENT_CLOSE_ASAP | CLIENT_FED)) {
        return false;
    }
    uint64_t hard = (uint64_t)limit_of(c)->hard_bytes;
    if (c->told_in_us != c->thread->wall_us) {
        c->told_in_us = c->thread->wall_us;
        c->told_bytes = c->out_bytes;
    }
    c->told_bytes += bytes;
    if (hard == 0 || c->told_bytes <= hard + UNCOUNTED_BYTES) {
        return true;
    }
    close_over_limit(c, c->told_bytes);
    return false;
}

/* True when the client's class may have a hard limit. For each reply: hence as little as that. */
static ALWAYS_INLINE bool is_limited(const struct client *c)
{
    return unlikely(net_settings.normal_output_is_limited) || unlikely(c->session.subscriptions) ||
           unlikely(c->flags & CLIENT_MONITOR);
}

void output_check_limits(struct client *c)
{
    const struct output_limit *limit = limit_of(c);
    uint64_t bytes = c->out_bytes + feed_pending(c);
    uint64_t hard_bytes = (uint64_t)limit->hard_bytes, least = feed_least_limit(c);
    hard_bytes = hard_bytes > 0 && hard_bytes < least ? least : hard_bytes;
    bool hard = hard_bytes > 0 && bytes > hard_bytes;
    bool soft = limit->soft_bytes > 0 && bytes > (uint64_t)limit->soft_bytes;
    if (!soft) {
        c->soft_limit_since_s = 0;
    } else if (c->soft_limit_since_s == 0) {
        c->soft_limit_since_s = c->thread->mono_s;
    } else {
        hard |= c->thread->mono_s - c->soft_limit_since_s > (uint64_t)limit->soft_seconds;
    }
    if (hard || is_deaf_stranger(c)) {
        close_over_limit(c, bytes);
    }
}

bool output_is_empty(const struct client *c)
{
    return !c->out_first && !(c->flags & CLIENT_TLS && tls_unsent(c->tls));
}

/* After every change of the queue. */
static void settle(struct client *c)
{
    if (!output_is_empty(c)) {
        if (c->flags & CLIENT_TLS && !tls_unsent(c->tls)) {
            want_write(c, false); /* the socket is not full: only an event armed anew comes */
        }
        want_write(c, !(c->flags & CLIENT_COMMITTING));
        output_check_limits(c);
        if (client_memory_is_limited()) {
            client_memory_note(c);
        }
        return;
    }
    want_write(c, false);
    c->soft_limit_since_s = 0;
    if (c->flags & CLIENT_CLOSE_AFTER_REPLY) {
        client_close_asap(c);
    }
}

/* ---- sending a reply ---- */

/* A place in a list of pieces: `skip` bytes of piece `index` are sent. */
struct place {
    uint32_t index;
    size_t skip;
};

/* Collects vectors from `at` on, joining what is adjacent. */
static int collect(const struct reply *r, struct place at, uint32_t end, struct iovec *vectors)
{
    int count = 0;
    for (uint32_t i = at.index; i < end; i++) {
        const struct reply_piece *p = &r->pieces[i];
        const char *ptr = p->ptr + (i == at.index ? at.skip : 0);
        size_t len = p->len - (i == at.index ? at.skip : 0);
        if (len == 0) {
            continue;
        }
        struct iovec *last = count ? &vectors[count - 1] : NULL;
        if (last && (const char *)last->iov_base + last->iov_len == ptr) {
            last->iov_len += len;
        } else if (count == VECTORS_MAX) {
            break;
        } else {
            vectors[count++] = (struct iovec){(char *)ptr, len};
        }
    }
    return count;
}

static void advance(const struct reply *r, struct place *at, uint32_t end, size_t sent)
{
    while (at->index < end && sent >= r->pieces[at->index].len - at->skip) {
        sent -= r->pieces[at->index].len - at->skip;
        at->index++;
        at->skip = 0;
    }
    assert(at->index < end || sent == 0);
    at->skip += sent;
}

/* Sends what is left of some pieces, as far as the socket takes it; queues the rest. */
static __attribute__((noinline)) void send_rest(struct client *c, const struct reply *r,
                                                struct place at, uint32_t end)
{
    while (!c->out_first && at.skip == 0 && at.index < end && !(c->flags & CLIENT_COMMITTING)) {
        struct iovec vectors[VECTORS_MAX];
        int count = collect(r, at, end, vectors);
        size_t wanted = 0;
        for (int i = 0; i < count; i++) {
            wanted += vectors[i].iov_len;
        }
        size_t sent = count ? send_vectors(c, vectors, count) : 0;
        advance(r, &at, end, sent);
        if (sent < wanted) {
            break;
        }
        if (wanted == 0) {
            at.index = end;
        }
    }
    for (; at.index < end; at.index++, at.skip = 0) {
        const struct reply_piece *p = &r->pieces[at.index];
        if (p->len > at.skip) {
            enqueue(c, p->ptr + at.skip, p->len - at.skip, p->blob);
        }
    }
    settle(c);
}

static inline void send_pieces(struct client *c, const struct reply *r, uint32_t begin,
                               uint32_t end)
{
    struct place at = {begin, 0};
    if (unlikely(c->flags & (CLIENT_CLOSE_ASAP | CLIENT_FED | CLIENT_TLS | CLIENT_COMMITTING))) {
        if (c->flags & (CLIENT_CLOSE_ASAP | CLIENT_FED)) {
            return;
        }
    } else if (likely(end - begin == 1 && !c->out_first)) {
        /* The usual reply: one run of bytes, all of it taken. */
        size_t len = r->pieces[begin].len;
        at.skip = judge_send(c, sys_send(c->fd, r->pieces[begin].ptr, len));
        if (likely(at.skip == len && !(c->flags & CLIENT_CLOSE_AFTER_REPLY))) {
            return;
        }
    }
    send_rest(c, r, at, end);
}

static size_t ranges_bytes(const struct reply *r, const struct reply_range *ranges, int count)
{
    size_t bytes = 0;
    for (int k = 0; k < count; k++) {
        for (uint32_t i = ranges[k].begin; i < ranges[k].end; i++) {
            bytes += r->pieces[i].len;
        }
    }
    return bytes;
}

void output_ranges(struct client *c, const struct reply *r, const struct reply_range *ranges,
                   int count)
{
    if (unlikely(is_limited(c)) && !admit(c, ranges_bytes(r, ranges, count))) {
        return;
    }
    uint32_t closes = count > 1 ? c->flags & CLIENT_CLOSE_AFTER_REPLY : 0;
    c->flags &= ~closes; /* behind the last range, not the first */
    for (int k = 0; k < count; k++) {
        c->flags |= k == count - 1 ? closes : 0;
        send_pieces(c, r, ranges[k].begin, ranges[k].end);
    }
}

void output_pieces(struct client *c, const struct reply *r, uint32_t begin, uint32_t end)
{
    const struct reply_range range = {begin, end};
    output_ranges(c, r, &range, 1);
}

void output_bytes(struct client *c, struct slice bytes)
{
    if (c->flags & (CLIENT_CLOSE_ASAP | CLIENT_FED) || (is_limited(c) && !admit(c, bytes.len))) {
        return;
    }
    if (!c->out_first && !(c->flags & CLIENT_COMMITTING)) {
        struct iovec vector = {(char *)bytes.ptr, bytes.len};
        size_t sent = send_vectors(c, &vector, 1);
        bytes = slice_of(bytes.ptr + sent, bytes.len - sent);
    }
    if (bytes.len > 0) {
        enqueue(c, bytes.ptr, bytes.len, NULL);
    }
    settle(c);
}

void output_hold(struct client *c)
{
    want_write(c, false);
    c->out_before_hold = c->out_count;
}

void output_break_off(struct client *c, struct slice bytes)
{
    struct output_piece **link = &c->out_first;
    assert(c->out_count >= c->out_before_hold && !(c->flags & CLIENT_COMMITTING));
    for (uint32_t i = 0; i < c->out_before_hold; i++) {
        link = &(*link)->next;
    }
    while (*link) {
        c->out_bytes -= (*link)->len;
        drop_at(c, link);
    }
    enqueue(c, bytes.ptr, bytes.len, NULL);
    c->flags |= CLIENT_CLOSE_AFTER_REPLY;
    output_flush(c);
}

void output_flush(struct client *c)
{
    bool ready = true;
    if (c->flags & CLIENT_TLS) {
        enum tls_status status = tls_flush(c->tls);
        ready = status == TLS_DONE;
        if (status == TLS_ENDED) {
            fail(c);
        }
    }
    while (ready && c->out_first && !(c->flags & CLIENT_COMMITTING)) {
        struct iovec vectors[VECTORS_MAX];
        int count = 0;
        size_t wanted = 0;
        for (struct output_piece *p = c->out_first; p && count < VECTORS_MAX; p = p->next) {
            vectors[count++] = (struct iovec){(char *)p->ptr, p->len};
            wanted += p->len;
        }
        size_t sent = send_vectors(c, vectors, count);
        size_t left = sent;
        c->out_bytes -= sent;
        while (c->out_first && left >= c->out_first->len) {
            left -= c->out_first->len;
            drop_first(c);
        }
        if (left > 0) {
            c->out_first->ptr += left;
            c->out_first->len -= left;
        }
        if (sent < wanted) {
            break;
        }
    }
    settle(c);
    if (c->feed) {
        output_feed(c);
    }
}

/* ---- feeds ---- */

/* Bytes of a feed that one turn sends at most: others have theirs between. */
#define FEED_TURN_BYTES ((size_t)1024 * 1024)

static size_t vectors_bytes(const struct iovec *vectors, int count)
{
    size_t bytes = 0;
    for (int i = 0; i < count; i++) {
        bytes += vectors[i].iov_len;
    }
    return bytes;
}

/* Sends as far as it goes; true when the socket is full. */
static bool send_feed(struct client *c)
{
    struct iovec vectors[VECTORS_MAX];
    struct feed *f = c->feed;
    size_t done = 0;
    while (done < FEED_TURN_BYTES) {
        int count = f->ops->next(f, vectors, VECTORS_MAX);
        if (count <= 0) {
            if (count < 0) {
                fail(c);
            }
            return false;
        }
        size_t wanted = vectors_bytes(vectors, count), sent = send_vectors(c, vectors, count);
        f->ops->sent(f, sent);
        done += sent;
        /* TLS may take a part though the socket is not full. */
        if (sent < wanted && !(sent > 0 && output_is_empty(c))) {
            return true;
        }
    }
    feeds_wake();
    c->thread->more_to_do = true;
    return false;
}

void output_feed(struct client *c)
{
    if (c->flags & CLIENT_CLOSE_ASAP || !(c->flags & CLIENT_FED)) {
        return;
    }
    if (feed_is_over(c)) { /* whoever hangs has a full socket, and is not asked for more */
        fail(c);
        return;
    }
    if (!output_is_empty(c)) {
        return;
    }
    output_check_limits(c); /* before the socket takes what is too much */
    if (c->flags & CLIENT_CLOSE_ASAP) {
        return;
    }
    if (!(c->flags & CLIENT_WANTS_WRITE)) { /* else the socket is full */
        bool full = send_feed(c);
        /* The last record may stand half in the socket, though the turn's share is sent or the feed
         * has no more: until it has gone nobody asks the feed again. */
        want_write(c, full || !output_is_empty(c));
    }
    output_check_limits(c);
}
